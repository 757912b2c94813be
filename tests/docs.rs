//! The pages: links that lead somewhere, tables that agree with the program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::command::Place;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Markdown page of the repository, build output and fixtures left out.
fn pages() -> BTreeMap<PathBuf, String> {
    fn walk(dir: &Path, pages: &mut BTreeMap<PathBuf, String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | "fixtures") && !name.starts_with('.') {
                    walk(&path, pages);
                }
            } else if name.ends_with(".md") {
                pages.insert(path.clone(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(&root(), &mut all);
    all
}

/// The lines outside of code blocks.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    page.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !fence && !code
    })
}

/// A heading as the address that a link to it has.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn anchors(page: &str) -> Vec<String> {
    let headings = prose(page).filter_map(|(_, line)| {
        line.starts_with('#')
            .then(|| line.trim_start_matches('#'))
            .filter(|rest| rest.starts_with(' '))
    });
    headings.map(anchor).collect()
}

/// The targets of `[text](target)` in a line, code spans left out.
fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (idx, span) in line.split('`').enumerate() {
        if idx % 2 == 1 {
            continue;
        }
        for rest in span.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                found.push(target);
            }
        }
    }
    found
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    assert!(pages.len() >= 3, "{:?}", pages.keys());
    let mut bad = Vec::new();
    let mut checked = 0;
    for (path, text) in &pages {
        for (line_idx, line) in prose(text) {
            for target in links(line).into_iter().filter(|target| !target.contains("://")) {
                checked += 1;
                let (file, heading) = target.split_once('#').unwrap_or((target, ""));
                let to =
                    if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
                let to = to.canonicalize().unwrap_or(to);
                let place = format!("{}:{}", path.display(), line_idx + 1);
                if !to.exists() {
                    bad.push(format!("{place}: no file '{file}'"));
                } else if !heading.is_empty()
                    && !pages
                        .get(&to)
                        .is_some_and(|text| anchors(text).iter().any(|a| a == heading))
                {
                    bad.push(format!("{place}: no heading '#{heading}' in '{file}'"));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(checked >= 4, "only {checked} links were found");
}

#[test]
fn links_and_headings_are_read_as_they_are_shown() {
    assert_eq!(links("see [a](b.md#c), `[x](y)` and [d](https://e)"), ["b.md#c", "https://e"]);
    assert_eq!(
        anchors("# One, two: `three`\n```\n# no\n```\n## Exit codes\n"),
        ["one-two-three", "exit-codes"]
    );
}

#[test]
fn the_readme_has_two_setup_commands_and_every_exit_code() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let setup = readme.split("\n## ").find(|part| part.starts_with("Set up")).unwrap();
    let commands: Vec<_> =
        setup.split("```sh\n").skip(1).map(|block| block.split("\n```").next().unwrap()).collect();
    assert_eq!(commands, ["cargo run --release -- demo", "cargo test --workspace"]);
    let table = readme.split("\n## ").find(|part| part.starts_with("Exit codes")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let listed: Vec<&str> =
        rows.flat_map(|row| row.split('|').nth(1).unwrap().split(',')).map(str::trim).collect();
    let mut listed: Vec<u16> = listed.iter().map(|code| code.parse().unwrap()).collect();
    listed.sort_unstable();
    let place = Place::new();
    let explained = place.etch(["explain"]).run().exits(0).out().to_owned();
    let explained: Vec<u16> =
        explained.lines().map(|line| line[..3].trim().parse().unwrap()).collect();
    assert_eq!(listed, explained);
}

#[test]
fn every_flag_that_a_page_names_exists() {
    let place = Place::new();
    let mut help = String::new();
    for topic in ["run", "resume", "sessions", "show", "tool", "config", "trust", "auth", "version"]
    {
        help += place.etch(["help", topic]).run().exits(0).out();
    }
    let known: Vec<&str> = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).collect();
    for name in ["README.md", "docs/scripting.md", "docs/auth.md"] {
        let page = fs::read_to_string(root().join(name)).unwrap();
        for (line_idx, line) in page.lines().enumerate().filter(|(_, line)| line.contains("etch")) {
            for word in line.split([' ', '`', ',', '"', ')']).filter(|word| word.starts_with("--"))
            {
                let flag = word.split('=').next().unwrap();
                let is_rule = flag.chars().all(|c| c == '-');
                // The flags of `cargo` and `git` stand in lines of their own.
                assert!(
                    is_rule || known.contains(&flag) || line.contains("git diff"),
                    "{name}:{}: {flag}",
                    line_idx + 1
                );
            }
        }
    }
}

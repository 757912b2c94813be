//! Ignore rules against git itself, on generated trees.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use etch::workspace::ignore::layers::UserFiles;
use etch::workspace::walk::{Entry, Kind, Options, Visit, walk};

use crate::support::command::TempDir;
use crate::support::random::Random;

struct Collect;

impl Visit for Collect {
    type Worker = Vec<String>;
    const FILES_PER_JOB: usize = 4;

    fn worker(&self) -> Vec<String> {
        Vec::new()
    }

    fn visit(&self, worker: &mut Vec<String>, entry: &Entry<'_>) {
        if entry.kind == Kind::File {
            worker.push(String::from_utf8_lossy(entry.path).into_owned());
        }
    }

    fn is_needed(&self, _: &mut Vec<String>, _: &[u8]) -> bool {
        true
    }
}

/// Files below `dir` that the rules keep, relative to `root`.
fn kept(root: &Path, dir: &Path, home: Option<&Path>) -> BTreeSet<String> {
    let host = etch::host::Host::fixed();
    let host = match home {
        Some(home) => host.with_home(home),
        None => host,
    };
    let user = UserFiles::of(&host);
    let options =
        Options { hidden: true, ignored: false, base: root, user: &user, stop: &|| false };
    let (workers, skipped) = walk(&[dir.to_owned()], &options, &Collect);
    assert_eq!(skipped.unreadable, []);
    let prefix = format!("{}/", root.display());
    let all = workers.into_iter().flatten();
    all.map(|path| path.strip_prefix(&prefix).expect("below the root").to_owned()).collect()
}

/// What git keeps below `dir`: untracked and not excluded.
fn git_keeps(root: &Path, home: &Path) -> BTreeSet<String> {
    let output = git(root, home, &["ls-files", "--others", "--exclude-standard", "-z"]);
    let text = String::from_utf8(output).expect("names are UTF-8");
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn git(root: &Path, home: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .args(args)
        .current_dir(root)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").expect("a PATH"))
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

const NAMES: &[&str] = &[
    "a", "b", "ab", "a.o", "b.o", ".h", ".hx", "a b", "x ", "#c", "!d", "[e]", "f*", "foo", "a\\b",
];
const PIECES: &[&str] = &[
    "a",
    "b",
    "ab",
    "*",
    "?",
    "**",
    "*.o",
    "a*",
    "*b",
    "[ab]",
    "[!a]",
    "[a-b]x",
    ".h",
    ".*",
    "foo",
    "\\#c",
    "\\!d",
    "\\[e\\]",
    "f\\*",
    "a b",
    "x\\ ",
    "[[:alpha:]]",
    "fo**",
    "[",
    "\\",
    "#c",
    "!d",
    "[]e[]*",
    "*o*",
    "**o",
    "a\\\\b",
    "[a",
];

fn rule(random: &mut Random) -> String {
    let mut rule = String::new();
    if random.below(4) == 0 {
        rule.push('!');
    }
    if random.below(4) == 0 {
        rule.push('/');
    }
    for piece in 0..=[0, 0, 0, 1, 1, 2][random.below(6)] {
        if piece > 0 {
            rule.push('/');
        }
        rule.push_str(random.pick(PIECES));
    }
    rule.push_str(["", "", "", "", "/", "//", " ", "  ", "\t", "\\ "][random.below(10)]);
    rule
}

fn rules(random: &mut Random) -> String {
    let mut text = String::new();
    if random.below(8) == 0 {
        text.push('\u{feff}');
    }
    for _ in 0..=random.below(6) {
        text.push_str(&rule(random));
        text.push_str(["\n", "\n", "\n", "\r\n", "\n\n", "\n# comment\n"][random.below(6)]);
    }
    if random.below(4) == 0 {
        // The last line need not end.
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
    }
    text
}

/// Fills a folder with names of the vocabulary, rules in some folders.
fn grow(random: &mut Random, dir: &Path, depth: usize) {
    fs::create_dir_all(dir).expect("a folder");
    if random.below(3) == 0 {
        fs::write(dir.join(".gitignore"), rules(random)).expect("rules");
    }
    for name in NAMES {
        match random.below(4) {
            0 => {}
            1 if depth > 0 => grow(random, &dir.join(name), depth - 1),
            _ => fs::write(dir.join(name), "").expect("a file"),
        }
    }
}

#[test]
fn generated_trees_are_filtered_as_git_filters_them() {
    let mut wrong = Vec::new();
    let seeds: Vec<u64> = match std::env::var("IGNORE_SEEDS") {
        Ok(count) => (1..=count.parse().expect("a number of seeds")).collect(),
        Err(_) => (1..=40).collect(),
    };
    let mut kept_count = 0;
    for seed in seeds {
        let scratch = TempDir::new();
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (home, root) = (scratch.path().join("home"), scratch.path().join("w"));
        fs::create_dir_all(home.join(".config/git")).expect("a home");
        git(scratch.path(), &home, &["init", "-q", "w"]);
        if seed % 3 == 0 {
            fs::write(home.join(".config/git/ignore"), rules(&mut random)).expect("excludes");
        }
        if seed % 4 == 0 {
            fs::write(root.join(".git/info/exclude"), rules(&mut random)).expect("excludes");
        }
        // Above the repository: does not count.
        scratch.write(".gitignore", "*\n");
        grow(&mut random, &root, 2);
        let (ours, theirs) = (kept(&root, &root, Some(&home)), git_keeps(&root, &home));
        kept_count += theirs.len();
        for path in ours.symmetric_difference(&theirs) {
            let side = if ours.contains(path) { "only we keep" } else { "only git keeps" };
            wrong.push(format!("seed {seed}: {side} {path:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
    assert!(kept_count > 100, "the rules ignore nearly everything: {kept_count} kept");
}

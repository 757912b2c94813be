//! The repository checks itself: floors, headers, and where the world may be touched.

use std::fs;
use std::path::{Path, PathBuf};

/// The floors from the ground up; a module may use only modules of lower rows, and in its own
/// row only those that stand before it.
const FLOORS: &[&[&str]] = &[
    &["sys", "cancel", "host", "text", "diff", "toml"],
    &["process", "workspace", "wire"],
    &["model"],
    &["config", "session"],
    &["hook", "policy", "provider", "tool"],
    &["context"],
    &["agent"],
    &["harness"],
    &["render", "chat", "command"],
];

/// Edges inside one floor that are meant: (user, used).
const SIDEWAYS: &[(&str, &str)] = &[
    ("host", "sys"),
    ("diff", "text"),
    ("toml", "text"),
    ("policy", "tool"),
    ("chat", "render"),
    ("command", "render"),
    ("command", "chat"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(dir: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            files.push(path);
        }
    }
}

/// Every source file with its module, its path below `src` and its text.
fn sources() -> Vec<(String, String, String)> {
    let src = root().join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let read = |path: PathBuf| {
        let below = path.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
        let module = below.split(['/', '.']).next().unwrap().to_owned();
        (module, below, fs::read_to_string(&path).unwrap())
    };
    files.into_iter().map(read).collect()
}

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

fn bad_edges(module: &str, path: &str, text: &str) -> Vec<String> {
    let Some(own) = floor(module) else {
        return vec![format!("{path}: module '{module}' stands on no floor")];
    };
    let mut bad = Vec::new();
    for (line_idx, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        let mut say = |what: String| bad.push(format!("{path}:{}: {what}", line_idx + 1));
        if code.contains("super::super") {
            say("climbs by 'super::super': name the module".to_owned());
        }
        let code = code.replace("$crate::", "crate::");
        for part in code.split("crate::").skip(1) {
            let name = |c: &char| c.is_alphanumeric() || *c == '_';
            let target: String = part.chars().take_while(name).collect();
            let sideways = SIDEWAYS.contains(&(module, target.as_str()));
            match floor(&target) {
                _ if target == module || sideways => {}
                Some(other) if other < own => {}
                Some(_) => say(format!("'{module}' must not use '{target}'")),
                None => say(format!("'crate::{target}' names no module of a floor")),
            }
        }
    }
    bad
}

#[test]
fn lower_floors_never_use_higher_ones() {
    let mut bad = Vec::new();
    for (module, path, text) in sources() {
        if module != "lib" && module != "main" {
            bad.extend(bad_edges(&module, &path, &text));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    // The check itself can fail.
    assert_eq!(bad_edges("host", "x.rs", "use crate::agent::Turn;").len(), 1);
    assert_eq!(bad_edges("host", "x.rs", "use crate::{cancel, agent};").len(), 1);
    assert_eq!(bad_edges("agent", "x.rs", "use crate::host::Host;").len(), 0);
}

#[test]
fn every_module_says_what_it_owns() {
    let bare: Vec<_> = sources()
        .into_iter()
        .filter(|(_, _, text)| !text.starts_with("//! "))
        .map(|s| s.1)
        .collect();
    assert!(bare.is_empty(), "without a `//!` header: {bare:?}");
}

/// Words that only some modules may write, outside their tests.
const RESERVED: &[(&str, &[&str])] = &[
    ("SystemTime::now", &["host"]),
    ("Instant::now", &["host", "process", "wire"]),
    ("env::var", &["host"]),
    ("env::current_dir", &["host"]),
    ("println!", &["main"]),
    ("unsafe {", &["sys"]),
    ("thread::sleep", &[]),
    (".unwrap()", &[]),
];

#[test]
fn the_world_is_touched_only_where_it_may_be() {
    let mut bad = Vec::new();
    for (module, path, text) in sources() {
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for (line_idx, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or("");
            for (word, allowed) in RESERVED {
                if line.contains(word) && !allowed.contains(&module.as_str()) {
                    bad.push(format!("src/{path}:{}: {word}", line_idx + 1));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

//! Diffs, applied by the tools that people apply them with.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use etch::diff::{FileChange, diff};

use crate::support::command::Place;

/// What becomes of one file; `None`: it is not there.
struct Edit {
    path: PathBuf,
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
}

impl Edit {
    fn new(path: impl Into<PathBuf>, old: &[u8], new: &[u8]) -> Edit {
        Edit { path: path.into(), old: Some(old.to_vec()), new: Some(new.to_vec()) }
    }

    fn unified(&self, bytes_max: usize) -> Vec<u8> {
        let change = match (&self.old, &self.new) {
            (None, _) => FileChange::Created,
            (_, None) => FileChange::Deleted,
            _ => FileChange::Modified,
        };
        let old = self.old.as_deref().unwrap_or(b"");
        let new = self.new.as_deref().unwrap_or(b"");
        diff(old, new).unified(&self.path, change, bytes_max)
    }
}

/// Applies the diffs of all edits by `tool` to a tree of the old files; returns what is wrong.
fn apply(tool: &str, edits: &[Edit], bytes_max: usize) -> Vec<String> {
    let place = Place::new();
    let mut patch = Vec::new();
    for edit in edits {
        let path = place.work().join(&edit.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if let Some(old) = &edit.old {
            fs::write(&path, old).unwrap();
        }
        patch.extend(edit.unified(bytes_max));
    }
    place.sh(tool).stdin(patch).run().exits(0);
    let wrong = |edit: &&Edit| fs::read(place.work().join(&edit.path)).ok() != edit.new;
    edits.iter().filter(wrong).map(|edit| format!("{tool}: {}", edit.path.display())).collect()
}

#[track_caller]
fn check(edits: &[Edit], bytes_max: usize) {
    let mut wrong = apply("patch -p1 --quiet", edits, bytes_max);
    wrong.extend(apply("git apply --whitespace=nowarn", edits, bytes_max));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn patch_and_git_accept_diffs_of_all_kinds_of_files() {
    let pieces: [&[u8]; 6] = [b"a\n", b"b\n", b"\n", b"crlf\r\n", b"lone\rcr\n", b"\xff\xfe\n"];
    let mut files: Vec<Vec<u8>> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        files.push(piece.to_vec());
        files.push(piece[..piece.len() - 1].to_vec());
        files.push([&pieces.concat(), *piece].concat());
        files.push([pieces[(at + 1) % 6], piece, b"x\n-- y\n+++ z\n--- w"].concat());
    }
    files.retain(|file| !file.is_empty());
    let mut edits = Vec::new();
    for (at, old) in files.iter().enumerate() {
        for new in files.iter().filter(|new| *new != old) {
            edits.push(Edit::new(format!("dir{at}/f{}", edits.len()), old, new));
        }
    }
    check(&edits, usize::MAX);
}

#[test]
fn patch_and_git_accept_files_that_come_and_go() {
    let whole = b"one\ntwo\n".as_slice();
    let edits = [
        Edit { path: "created".into(), old: None, new: Some(whole.to_vec()) },
        Edit { path: "created-cut".into(), old: None, new: Some(b"no end".to_vec()) },
        Edit { path: "deleted".into(), old: Some(whole.to_vec()), new: None },
        Edit { path: "deleted-cut".into(), old: Some(b"no end".to_vec()), new: None },
        Edit::new("filled", b"", whole),
        Edit::new("emptied", whole, b""),
    ];
    check(&edits, usize::MAX);
}

#[test]
fn patch_and_git_accept_odd_names() {
    let names: [&[u8]; 8] = [
        b"my file.txt",
        b" lead",
        b"tab\there",
        b"new\nline",
        b"quote\"back\\slash",
        "naïve—界".as_bytes(),
        b"latin\xe9",
        b"deep/er/-rf",
    ];
    let path = |name: &&[u8]| Path::new(std::ffi::OsStr::from_bytes(name)).to_owned();
    let edits: Vec<_> = names.iter().map(|name| Edit::new(path(name), b"a\n", b"b\n")).collect();
    check(&edits, usize::MAX);
}

#[test]
fn the_whole_hunks_of_a_cut_diff_apply() {
    let old: String = (0..300).map(|n| format!("line {n}\n")).collect();
    let [first, second] = [old.replace("line 50\n", ""), old.replace("line 9\n", "nine\n")];
    let both = first.replace("line 150\n", "line 150a\nline 150b\n");
    let cut = Edit::new("one", old.as_bytes(), both.as_bytes()).unified(150);
    assert!(String::from_utf8_lossy(&cut).contains("\n[diff cut: 2 added lines"));
    for tool in ["patch -p1 --quiet", "git apply"] {
        let place = Place::new();
        place.file("one", &old);
        place.file("two", &old);
        // What follows the cut one is still found.
        let next = Edit::new("two", old.as_bytes(), second.as_bytes()).unified(usize::MAX);
        place.sh(tool).stdin([&cut[..], &next].concat()).run().exits(0);
        let found = |name: &str| fs::read_to_string(place.work().join(name)).unwrap();
        assert_eq!((found("one"), found("two")), (first.clone(), second.clone()), "{tool}");
    }
}

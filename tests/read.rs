//! `read`: what a model sees of files of every kind, and what reading them costs.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use etch::model::ResultStatus;
use etch::tool::{Need, Overlap, Plan};
use serde_json::json;

use crate::support::tool::{Tree, file_tools};

#[test]
fn lines_are_numbered_and_the_rest_is_announced() {
    let tree = Tree::new();
    let lines: String = (1..=12).map(|n| format!("line {n}\n")).collect();
    tree.file("a.txt", &lines);
    let read = |arguments| tree.ok("read", arguments);
    assert_eq!(
        read(json!({"path": "a.txt", "offset": 9, "limit": 2})),
        " 9 | line 9\n10 | line 10\n\n[2 more lines in file. Use offset=11 to continue.]"
    );
    assert_eq!(
        read(json!({"path": "a.txt", "offset": 9, "limit": 3, "lineNumbers": false})),
        "line 9\nline 10\nline 11\n\n[1 more line in file. Use offset=12 to continue.]"
    );
    assert_eq!(read(json!({"path": "a.txt", "offset": 12})), "12 | line 12");
    let all = read(json!({"path": "./a.txt", "offset": 0, "limit": -1}));
    assert_eq!((all.lines().count(), all.lines().last()), (12, Some("12 | line 12")));
    assert_eq!(
        tree.error("read", json!({"path": "a.txt", "offset": 13})),
        "a.txt: offset 13 is beyond end of file (12 lines total)"
    );
    tree.file("empty", "");
    assert_eq!(read(json!({"path": "empty"})), "(empty file)");
    tree.file("blank", "\n");
    assert_eq!(read(json!({"path": "blank"})), "1 | ");
    assert_eq!(read(json!({"path": "blank", "lineNumbers": false})), "(empty line)");
    tree.file("crlf", "\u{feff}a\r\nb\x1b[31m\0x".replace('\0', "\t") + "\r\n");
    assert_eq!(read(json!({"path": "crlf"})), "1 | a\n2 | b\x1b[31m\tx");
}

#[test]
fn limits_in_lines_and_bytes_are_stated() {
    let tree = Tree::new();
    tree.file("long", "x\n".repeat(2_500));
    let text = tree.ok("read", json!({"path": "long"}));
    assert!(text.ends_with("2000 | x\n\n[500 more lines in file. Use offset=2001 to continue.]"));
    let more = tree.ok("read", json!({"path": "long", "limit": 9_999}));
    assert_eq!(more, text);
    tree.file("wide", format!("{}\n", "y".repeat(1_000)).repeat(60));
    let text = tree.ok("read", json!({"path": "wide"}));
    let hint = "\n\n[Showing lines 1-50 of 60 (50.0KB limit). Use offset=51 to continue.]";
    assert!(text.ends_with(hint), "{}", &text[text.len() - 100..]);
    assert!(text.len() - hint.len() <= 50 * 1024);
}

#[test]
fn a_line_over_the_limit_can_be_read_to_its_end() {
    let tree = Tree::new();
    let line = "0123456789\u{754c}".repeat(9_000);
    tree.file("min.js", format!("{line}\nlast\n"));
    let text = tree.ok("read", json!({"path": "min.js"}));
    let (shown, hint) = text.split_once("\n\n").unwrap();
    assert_eq!(
        hint,
        "[Line 1 is 117000 bytes long; bytes 1-8192 are shown. Use offset=1 column=8193 to \
         continue it, offset=2 for the next line, or grep for a window around a match.]"
    );
    let mut joined = shown.strip_prefix("1 | ").unwrap().to_owned();
    while joined.len() < line.len() {
        let column = joined.len() + 1;
        let text =
            tree.ok("read", json!({"path": "min.js", "column": column, "lineNumbers": false}));
        let piece = text.lines().next().unwrap();
        assert!(!piece.is_empty() && line[joined.len()..].starts_with(piece));
        joined.push_str(piece);
    }
    assert_eq!(
        tree.error("read", json!({"path": "min.js", "column": 117_001})),
        "min.js: column 117001 is beyond the end of line 1 (117000 bytes)"
    );
}

#[test]
fn several_files_come_in_one_call_and_a_bad_one_spoils_none() {
    let tree = Tree::new();
    tree.file("a", "1\n2\n3\n");
    tree.file("b", "x");
    let files = json!([{"path": "a", "offset": 2, "limit": 1}, {"path": "gone"}, {"path": "b"}]);
    // `files` wins over `path`.
    let text = tree.ok("read", json!({"path": "b", "files": files}));
    let (head, rest) = text.split_once("--- gone").unwrap();
    assert_eq!(
        head,
        "[1 of 3 files could not be read]\n\n--- a (offset=2, limit=1) ---\n2 | 2\n\n\
         [1 more line in file. Use offset=3 to continue.]\n\n"
    );
    assert!(rest.starts_with(" (offset=1, limit=2000) ---\nerror: "), "{rest}");
    assert!(rest.ends_with("\n\n--- b (offset=1, limit=2000) ---\n1 | x"), "{rest}");
    // The forms that models send.
    let pair = "--- a (offset=1, limit=2000) ---\n1 | 1\n2 | 2\n3 | 3\n\n\
                --- b (offset=1, limit=2000) ---\n1 | x";
    for arguments in [
        json!({"files": ["a", "b"]}),
        json!({"path": ["a", "b"]}),
        json!({"paths": ["a", "b"]}),
        json!({"files": [{"file_path": "a"}, {"path": "b", "limit": "0"}]}),
        json!({"files": "[{\"path\":\"a\"},{\"path\":\"b\"}]"}),
        json!({"files": "[\"a\", \"b\"]"}),
    ] {
        assert_eq!(tree.ok("read", arguments.clone()), pair, "{arguments}");
    }
    let one = tree.ok("read", json!({"files": "b"}));
    assert_eq!(one, "--- b (offset=1, limit=2000) ---\n1 | x");
    assert_eq!(tree.ok("read", json!({"path": "b", "files": []})), "1 | x");
    let all_bad = tree.call("read", r#"{"files":["gone","lost"]}"#);
    assert_eq!(all_bad.status, ResultStatus::Error);
    assert!(all_bad.text.starts_with("[2 of 2 files could not be read]\n\n"), "{}", all_bad.text);
}

#[test]
fn a_batch_is_bounded_and_names_what_it_left_out() {
    let tree = Tree::new();
    for name in ["a", "b", "c", "d"] {
        tree.file(name, format!("{}\n", "y".repeat(99)).repeat(480));
    }
    let files = json!([{"path": "a"}, {"path": "b"}, {"path": "c"}, {"path": "d", "offset": 7}]);
    let text = tree.ok("read", json!({"files": files}));
    assert!(text.len() < 121 * 1024, "{}", text.len());
    let end = "\n\n[Limit of 120.0KB for one call reached. Not read: d (offset=7).]";
    assert!(text.ends_with(end), "{}", &text[text.len() - 200..]);
    let nine = vec!["a"; 9];
    assert_eq!(
        tree.error("read", json!({"files": nine})),
        "'files' has 9 files; at most 8 per call"
    );
    assert_eq!(
        tree.error("read", json!({})),
        "'path' is missing: it must be a string (or give 'files', a list of objects with path)"
    );
}

/// None of them is waited for: a pipe without a writer would block for ever.
#[test]
fn pipes_sockets_devices_and_folders_are_named() {
    let tree = Tree::reading_outside();
    assert!(Command::new("mkfifo").arg(tree.path("p")).status().unwrap().success());
    let _socket = UnixListener::bind(tree.path("s")).unwrap();
    symlink("/dev/zero", tree.path("z")).unwrap();
    symlink("/dev/tty", tree.path("t")).unwrap();
    fs::create_dir(tree.path("d")).unwrap();
    for (name, what) in [
        ("p", "p: not a regular file (pipe)"),
        ("s", "s: not a regular file (socket)"),
        ("z", "/dev/zero: not a regular file (device)"),
        ("t", "/dev/tty: not a regular file (device)"),
        ("d", "d: is a directory"),
    ] {
        assert_eq!(tree.error("read", json!({"path": name})), what);
        tree.error("write", json!({"path": name, "content": "x"}));
        tree.error("edit", json!({"path": name, "edits": [{"oldText": "a", "newText": "b"}]}));
    }
    let inside = Tree::new();
    symlink("/etc/passwd", inside.path("link")).unwrap();
    let refused = inside.error("read", json!({"path": "link"}));
    assert!(refused.contains("/etc/passwd"), "{refused}");
}

#[test]
fn read_and_edit_agree_on_what_is_text() {
    let utf16: Vec<u8> = "\u{feff}n = 7\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let table: &[(&[u8], Option<&str>)] = &[
        (b"n = 7\n# gar\xe7on\n", None),
        ("\u{feff}n = 7\r\n".as_bytes(), None),
        ("n = 7 \u{fffd}\n".as_bytes(), None),
        (&utf16, Some("f is UTF-16LE text (byte order mark at offset 0)")),
        (b"n = 7\n\0", Some("f is binary (a NUL byte at offset 6)")),
        (b"\x89PNG\r\n\x1a\nn = 7\n", Some("f is binary (PNG image)")),
        (
            b"n = 7\n\xb2\xe2\xca\xd4",
            Some(
                "f is not UTF-8 (byte 0xb2 at offset 6; perhaps GBK, Shift-JIS or another encoding",
            ),
        ),
    ];
    for (content, refusal) in table {
        let tree = Tree::new();
        let path = tree.file("f", content);
        let state = || {
            let data = fs::metadata(&path).unwrap();
            (data.ino(), data.mtime_nsec(), data.ctime_nsec())
        };
        let before = state();
        let edits = json!([{"oldText": "n = 7", "newText": "n = 8"}]);
        let read = tree.call("read", r#"{"path":"f"}"#).text;
        let edit = tree.call("edit", &json!({"path": "f", "edits": edits}).to_string()).text;
        match refusal {
            None => {
                assert!(read.starts_with("1 | n = 7"), "{read}");
                assert!(edit.starts_with("Successfully applied 1 edit to f."), "{edit}");
            }
            Some(why) => {
                assert!(read.strip_prefix("tool error: ").unwrap().starts_with(why), "{read}");
                assert!(edit.strip_prefix("tool error: ").unwrap().starts_with(why), "{edit}");
                assert_eq!((fs::read(&path).unwrap(), state()), (content.to_vec(), before));
            }
        }
    }
    let tree = Tree::new();
    tree.file("latin", b"n = 7\n# gar\xe7on\n");
    assert_eq!(
        tree.ok("read", json!({"path": "latin"})),
        "1 | n = 7\n2 | # gar\\xe7on\n\n[1 byte here is not UTF-8 and shown as \\xNN, first 0xe7 \
         on line 2; perhaps Latin-1 or Windows-1252.]"
    );
}

/// A file of 64 GB, nearly all of it a hole: whoever goes through it does not come back in time.
#[test]
fn a_huge_file_costs_only_what_is_shown() {
    let tree = Tree::new();
    let path = tree.file("huge", "line\n".repeat(4_000));
    File::options().write(true).open(&path).unwrap().set_len(64 << 30).unwrap();
    assert_eq!(
        tree.ok("read", json!({"path": "huge", "offset": 3_000, "limit": 2})),
        "3000 | line\n3001 | line\n\n[More lines in file. Use offset=3002 to continue.]"
    );
    let limit = "huge has 64.0GB, more than edit holds in memory (64.0MB): change it with bash";
    let edits = json!([{"oldText": "line", "newText": "x"}]);
    let refused = tree.error("edit", json!({"path": "huge", "edits": edits}));
    assert_eq!(refused, limit);
}

#[test]
fn a_cancelled_read_ends_in_the_middle() {
    let tree = Tree::new();
    let path = tree.file("huge", "line\n".repeat(4_000));
    File::options().write(true).open(&path).unwrap().set_len(64 << 30).unwrap();
    let cancel = tree.cancel.clone();
    let cancelling = std::thread::spawn(move || cancel.cancel(etch::cancel::Reason::User));
    let output = tree.call("read", r#"{"path":"huge","offset":100000}"#);
    cancelling.join().unwrap();
    assert_eq!(output, etch::tool::ToolOutput::interrupted());
}

#[test]
fn names_that_are_no_plain_text_are_read_by_what_is_shown_for_them() {
    let tree = Tree::new();
    for name in
        [&b"a\xff"[..], b"new\nline", b" lead", b"-rf", b"*[x]*", "caf\u{65}\u{301}".as_bytes()]
    {
        let path = tree.workspace.root().join(std::ffi::OsStr::from_bytes(name));
        fs::write(&path, "here").unwrap();
        let shown = tree.workspace.shown(&path);
        assert_eq!(tree.ok("read", json!({"path": shown})), "1 | here", "{shown}");
    }
}

/// Names that nobody can type: asked for by what a model would send.
#[test]
fn a_name_that_looks_like_one_other_is_that_one_for_reading_only() {
    let tree = Tree::new();
    tree.file("it\u{2019}s.txt", "curly");
    tree.file("shot 7.30\u{202f}PM.png.txt", "narrow");
    tree.file("cafe\u{301}.txt", "two parts");
    tree.file("a\u{a0}b", "no-break");
    tree.file("a\u{2009}b", "thin");
    let long = "n".repeat(255);
    tree.file(&long, "long");
    for (asked, want) in [
        ("it's.txt", "curly"),
        ("shot 7.30 PM.png.txt", "narrow"),
        ("caf\u{e9}.txt", "two parts"),
        (&long, "long"),
    ] {
        let text = tree.ok("read", json!({"path": asked}));
        assert!(text.lines().any(|line| line == format!("1 | {want}")), "{asked}: {text}");
        if asked != long {
            // What is written has the name that was given, or nothing is written.
            let edit = json!({"path": asked, "oldText": want, "newText": "x"});
            tree.error("edit", edit);
        }
    }
    let both = tree.error("read", json!({"path": "a b"}));
    let quoted = |name: &str| tree.workspace.shown(&tree.path(name));
    for name in ["a\u{a0}b", "a\u{2009}b"] {
        assert!(both.contains(&quoted(name)), "{both}");
        assert!(tree.ok("read", json!({"path": quoted(name)})).starts_with("1 | "));
    }
    let too_long = "n".repeat(256);
    assert!(tree.error("read", json!({"path": too_long})).contains("name too long"));
}

#[test]
fn a_plan_names_every_file_and_runs_beside_others() {
    let tree = Tree::new();
    tree.file("a", "");
    tree.file("b", "");
    let needs = |names: &[&str]| Plan {
        overlap: Overlap::ReadOnly,
        lane: None,
        needs: names.iter().map(|name| Need::Read(tree.path(name))).collect(),
    };
    assert_eq!(tree.plan("read", json!({"path": "a"})), Ok(needs(&["a"])));
    let files = json!([{"path": "a"}, {"path": "gone"}, {"path": "b"}]);
    assert_eq!(tree.plan("read", json!({"files": files})), Ok(needs(&["a", "b"])));
    assert!(tree.plan("read", json!({"path": "gone"})).is_err());
}

#[test]
fn the_file_tools_take_little_of_the_prompt() {
    let size = |name: &str| {
        let tools = file_tools();
        let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
        let spec = tool.spec();
        let parameters: serde_json::Value = serde_json::from_str(&spec.parameters).unwrap();
        assert_eq!(parameters["type"], "object");
        let outer = json!({"name": spec.name, "description": spec.description, "parameters": {}});
        outer.to_string().len() + spec.parameters.len()
    };
    let sizes = ["read", "write", "edit"].map(size);
    assert!(sizes.iter().sum::<usize>() <= 1_600, "{sizes:?}");
}

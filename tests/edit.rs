//! `edit`: what is replaced, what is not touched, and what is said when it does not fit.

use std::fs;
use std::process::Command;

use etch::tool::{Caller, Need, Overlap, Plan};
use serde_json::{Value, json};

use crate::support::tool::{Tree, names};

/// A tree with one file, read by the model.
fn tree(content: impl AsRef<[u8]>) -> Tree {
    let tree = Tree::new();
    tree.file("f", content);
    if let Err(message) = tree.plan("read", json!({"path": "f"})) {
        panic!("{message}");
    }
    tree.call("read", r#"{"path":"f","limit":1}"#);
    tree
}

fn edits(edits: Value) -> Value {
    json!({"path": "f", "edits": edits})
}

fn one(old: &str, new: &str) -> Value {
    edits(json!([{"oldText": old, "newText": new}]))
}

#[test]
fn an_edit_is_applied_and_its_diff_shown() {
    let tree = tree("one\ntwo\nthree\n");
    let output = tree.call("edit", &one("two", "2").to_string());
    assert_eq!(
        output.text,
        "Successfully applied 1 edit to f.\n\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n \
         three"
    );
    assert_eq!(output.changed, ["f"]);
    // A write by etch counts as read, so the next edit needs no reading.
    let two = json!([{"oldText": "three", "newText": "3"}, {"oldText": "one", "newText": "1"}]);
    let text = tree.ok("edit", edits(two));
    assert!(text.starts_with("Successfully applied 2 edits to f.\n\n"), "{text}");
    assert_eq!(tree.bytes("f"), "1\\n2\\n3\\n");
    assert_eq!(names(tree.workspace.root()), ["f"]);
}

#[test]
fn a_dry_run_checks_and_shows_the_same_and_writes_nothing() {
    let tree = tree("a\n");
    let with_dry_run = |mut arguments: Value| {
        arguments["dryRun"] = true.into();
        arguments
    };
    let path = tree.path("f");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(
        tree.ok("edit", with_dry_run(one("a", "b"))),
        "Previewed 1 edit for f.\n\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b"
    );
    tree.error("edit", with_dry_run(one("x", "b")));
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    let plan = |overlap, need| Ok(Plan { overlap, lane: None, needs: vec![need] });
    let read = plan(Overlap::ReadOnly, Need::Read(path.clone()));
    assert_eq!(tree.plan("edit", with_dry_run(one("a", "b"))), read);
    let write = plan(Overlap::Serial, Need::Write(path));
    assert_eq!(tree.plan("edit", one("a", "b")), write);
    // Unread files are refused here as well.
    tree.file("g", "a");
    let arguments = json!({"path": "g", "oldText": "a", "newText": "b", "dryRun": true});
    assert!(tree.error("edit", arguments).starts_with("g exists and was not read in this run"));
}

#[test]
fn a_file_must_have_been_read_and_not_changed_since() {
    let tree = Tree::new();
    tree.file("f", "a 1\nb\n");
    let unread = "f exists and was not read in this run: read it first (the part in question is \
                  enough), then send this again";
    assert_eq!(tree.error("edit", one("a", "x")), unread);
    tree.ok("read", json!({"files": [{"path": "f", "offset": 2, "limit": 1}]}));
    tree.file("f", "a 2\nb\n");
    let changed = "f changed on disk since it was read: read it again, then send this again";
    assert_eq!(tree.error("edit", one("a", "x")), changed);
    assert_eq!(tree.bytes("f"), "a 2\\nb\\n");
    tree.read("f");
    tree.ok("edit", one("a", "x"));
    // Larger files are known by what the file system says of them.
    let line = "a line of some length ".repeat(100) + "\n";
    tree.file("f", line.repeat(5_000) + "end");
    tree.read("f");
    tree.ok("edit", one("end", "END"));
    tree.ok("edit", one("END", "end"));
    tree.file("f", line.repeat(5_000) + "END");
    assert_eq!(tree.error("edit", one("END", "x")), changed);
    // A person is not asked to have read.
    tree.file("g", "a");
    let arguments = r#"{"path":"g","oldText":"a","newText":"b"}"#;
    tree.call_by(Caller::Person, "edit", arguments);
    assert_eq!(tree.bytes("g"), "b");
}

#[test]
fn bytes_outside_the_span_are_never_touched() {
    for (content, want) in [
        (&b"n = 7\n# gar\xe7on\n"[..], &b"n = 8\n# gar\xe7on\n"[..]),
        (b"n = 7\r\nx\ny\rz\r\n", b"n = 8\r\nx\ny\rz\r\n"),
        (b"\xef\xbb\xbfn = 7", b"\xef\xbb\xbfn = 8"),
        ("n = 7 \u{fffd}".as_bytes(), "n = 8 \u{fffd}".as_bytes()),
        (
            "Z\u{fc}rich \u{2013} \u{201c}q\u{201d} m\u{b3} \u{bc} \u{fb02}ow\u{2026}\nkeep   \nn = 7".as_bytes(),
            "Z\u{fc}rich \u{2013} \u{201c}q\u{201d} m\u{b3} \u{bc} \u{fb02}ow\u{2026}\nkeep   \nn = 8".as_bytes(),
        ),
    ] {
        let tree = tree(content);
        tree.ok("edit", one("n = 7", "n = 8"));
        assert_eq!(tree.bytes("f"), want.escape_ascii().to_string());
    }
}

#[test]
fn text_is_literal_whatever_it_looks_like() {
    for new in ["$&", "$$", "$1 ${0} $name", "\\1 \\n \\\\", "%s {} {0}", "\u{1b}\u{7f}"] {
        let tree = tree("a PLACE b PLACE a.*(b)[c]$");
        let all = json!([{"oldText": "PLACE", "newText": new, "replaceAll": true}]);
        tree.ok("edit", edits(all));
        tree.ok("edit", one("a.*(b)[c]$", new));
        assert_eq!(fs::read_to_string(tree.path("f")).unwrap(), format!("a {new} b {new} {new}"));
    }
}

#[test]
fn nothing_is_replaced_by_mistake() {
    let lines: String = (1..=500).map(|n| format!("line {n}\n")).collect();
    let tree = tree(&lines);
    let empty = "f: edit 1 oldText must not be empty: send the exact text to replace (to insert, a \
                 line that stands there and the same line with the new text; to replace the whole \
                 file, write)";
    let blank = "f: edit 1 oldText must include non-whitespace context: send the lines around the \
                 place";
    let missing = "'edits[0].oldText' is missing: it must be a string";
    let line_17 = "f: edit 2 oldText was not found; line 17 differs from it only in upper and lower \
                   case (first at line 17: the file has \"l\", oldText has \"L\"):\n17 | line 17\n\
                   Send oldText exactly as it stands there.";
    for (edits, want) in [
        (json!([{"oldText": "", "newText": "hi"}]), empty),
        (json!([{"newText": "hi"}]), missing),
        (json!([{"oldText": null, "newText": "hi"}]), missing),
        (json!([{"oldText": "\n", "newText": "hi"}]), blank),
        (json!([{"oldText": "line 7\n"}]), "'edits[0].newText' is missing: it must be a string"),
        (
            json!([]),
            "at least one edit is required: 'edits' is a list of objects with oldText and newText",
        ),
        (
            json!([{"oldText": "line 1\n", "newText": "x"}, {"oldText": "Line 17\n", "newText": "y"}]),
            line_17,
        ),
        (
            json!([{"oldText": "line 1\nline 2\n", "newText": "x"}, {"oldText": "line 2\nline 3", "newText": "y"}]),
            "f: edits 1 and 2 overlap at line 2: send them as one edit",
        ),
        (
            json!([{"oldText": "line 49", "newText": "x"}]),
            "f: edit 1 oldText is ambiguous: it matches 11 places (lines 49, 490, 491, 492, 493, \
             494, 495, 496, 497, 498, 499); include more surrounding lines, or set replaceAll",
        ),
        (
            json!([{"oldText": "line 7\n", "newText": "line 7\n"}]),
            "f: edit produced no changes: newText is the same as oldText",
        ),
    ] {
        assert_eq!(tree.error("edit", json!({"path": "f", "edits": edits})), want);
    }
    assert_eq!(fs::read_to_string(tree.path("f")).unwrap(), lines);
    for old in ["", "x"] {
        let arguments = json!({"path": "new", "oldText": old, "newText": "hi"});
        let said = tree.error("edit", arguments);
        assert_eq!(said, "new does not exist: edit changes a file, write creates one");
    }
}

#[test]
fn a_near_miss_is_quoted_and_changes_nothing() {
    let content = "Z\u{fc}rich \u{201c}q\u{201d}\nkeep   \n\n\n\n\n\n\nsend('k')\n";
    let tree = tree(content);
    let curly = "send(\u{2018}k\u{2019})";
    let quoted = " oldText was not found; line 9 differs from it only in quotes (first at line 9: \
                  the file has \"'\", oldText has \"\u{2018} (U+2018)\"):\n9 | send('k')\n\
                  Send oldText exactly as it stands there.";
    assert_eq!(tree.error("edit", one(curly, "send('m')")), format!("f: edit 1{quoted}"));
    let both = json!([
        {"oldText": "keep", "newText": "kept"},
        {"oldText": curly, "newText": "send('m')"},
    ]);
    assert_eq!(tree.error("edit", edits(both)), format!("f: edit 2{quoted}"));
    assert_eq!(fs::read_to_string(tree.path("f")).unwrap(), content);
}

#[test]
fn forms_that_models_send_mean_the_same() {
    for arguments in [
        r#"{"path":"f","edits":[{"oldText":"a\nb","newText":"x"}]}"#,
        r#"{"path":"f","oldText":"a\nb","newText":"x"}"#,
        r#"{"file_path":"f","old_string":"a\nb","new_string":"x","replace_all":false}"#,
        r#"{"path":"f","edits":{"old_text":"a\nb","new_text":"x"}}"#,
        r#"{"path":"f","edits":"[{\"oldText\":\"a\\nb\",\"newText\":\"x\"}]"}"#,
        r#"{"path":"f","edits":["{\"oldText\":\"a\\nb\",\"newText\":\"x\"}"],"dry_run":"false"}"#,
        "{\"path\":\"f\",\"edits\":[{\"oldText\":\"a\nb\",\"newText\":\"x\"}]}",
    ] {
        let tree = tree("a\nb\n");
        let output = tree.call("edit", arguments);
        assert!(output.text.starts_with("Successfully applied 1 edit to f."), "{}", output.text);
        assert_eq!(tree.bytes("f"), "x\\n");
    }
}

#[test]
fn line_ends_stay_those_of_the_file() {
    let tree = tree(b"a\r\nb\r\nc\r\n");
    tree.ok("edit", one("a\nb", "1\n2\n3"));
    tree.ok("edit", one("c", "c\nd"));
    assert_eq!(tree.bytes("f"), "1\\r\\n2\\r\\n3\\r\\nc\\r\\nd\\r\\n");
}

/// The diff that is shown, applied to the old file by the tools people use, gives the new one.
#[test]
fn the_diff_is_the_real_difference() {
    let lines: Vec<String> = (1..=5_000).map(|n| format!("line {n}")).collect();
    let content = lines.join("\n");
    let tree = tree(&content);
    let two = json!([
        {"oldText": "line 3\n", "newText": "line three\n"},
        {"oldText": "line 5000", "newText": "the end\n"},
        {"oldText": "line 2500\nline 2501\n", "newText": ""},
    ]);
    let text = tree.ok("edit", edits(two));
    let (_, diff) = text.split_once("\n\n").unwrap();
    assert!(diff.len() < 1_000, "{diff}");
    let other = Tree::new();
    other.file("f", &content);
    other.file("d.patch", format!("{diff}\n"));
    let mut patch = Command::new("patch");
    patch.args(["-p1", "-s", "-i", "d.patch"]).current_dir(other.workspace.root());
    if let Ok(status) = patch.status() {
        assert!(status.success());
        assert_eq!(other.bytes("f"), tree.bytes("f"));
    }
}

#[test]
fn a_large_diff_is_cut_and_says_so() {
    let tree = tree("old line of some length\n".repeat(3_000));
    let all = json!([{"oldText": "old", "newText": "new", "replaceAll": true}]);
    let text = tree.ok("edit", edits(all));
    assert!(text.len() < 22 * 1024, "{}", text.len());
    assert!(text.lines().last().unwrap().starts_with('['), "{}", text.lines().last().unwrap());
}

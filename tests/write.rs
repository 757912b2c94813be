//! `write`: what is replaced, what is refused, and what a crash in the middle leaves.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use etch::tool::{Caller, Need, Overlap, Plan};
use etch::workspace::atomic::{self, Options};
use serde_json::json;

use crate::support::command::Place;
use crate::support::tool::{Tree, names};

#[test]
fn a_new_file_comes_with_its_folders() {
    let tree = Tree::new();
    let output = tree.call("write", r#"{"path":"a/b/n.md","content":"é\n"}"#);
    assert_eq!(output.text, "Successfully wrote 3 bytes to a/b/n.md.");
    assert_eq!(output.changed, ["a/b/n.md"]);
    assert_eq!(fs::read_to_string(tree.path("a/b/n.md")).unwrap(), "é\n");
    // What etch wrote counts as read.
    let text = tree.ok("write", json!({"path": "a/b/n.md", "content": "e\n"}));
    assert_eq!(
        text,
        "Successfully wrote 2 bytes to a/b/n.md.\n\n--- a/a/b/n.md\n+++ b/a/b/n.md\n\
         @@ -1 +1 @@\n-é\n+e"
    );
    let needs = vec![Need::Write(tree.path("x/y"))];
    let plan = Plan { overlap: Overlap::Serial, lane: None, needs };
    assert_eq!(tree.plan("write", json!({"path": "x/y", "content": ""})), Ok(plan));
}

#[test]
fn what_the_model_has_not_seen_is_not_replaced() {
    let tree = Tree::new();
    tree.file("f", "old\n");
    let write = json!({"path": "f", "content": "new\n"});
    let unread = "f exists and was not read in this run: read it first (the part in question is \
                  enough), then send this again";
    assert_eq!(tree.error("write", write.clone()), unread);
    tree.read("f");
    tree.file("f", "other\n");
    let changed = "f changed on disk since it was read: read it again, then send this again";
    assert_eq!(tree.error("write", write.clone()), changed);
    // Touched, or written with the same bytes, is no change.
    tree.read("f");
    tree.file("f", "other\n");
    tree.ok("write", write.clone());
    assert_eq!(tree.bytes("f"), "new\\n");
    // An empty file and the same content are no loss; neither is what a person wants.
    tree.file("empty", "");
    tree.ok("write", json!({"path": "empty", "content": "x"}));
    tree.file("g", "same");
    tree.ok("write", json!({"path": "g", "content": "same"}));
    tree.file("h", "old");
    let by_person = tree.call_by(Caller::Person, "write", r#"{"path":"h","content":"x"}"#);
    assert!(by_person.text.starts_with("Successfully"), "{}", by_person.text);
}

#[test]
fn the_same_content_is_not_written_again() {
    let tree = Tree::new();
    let path = tree.file("f", "same\n");
    let state = || {
        let metadata = fs::metadata(&path).unwrap();
        (metadata.ino(), metadata.mtime_nsec(), metadata.ctime_nsec())
    };
    let before = state();
    let output = tree.call("write", r#"{"path":"f","content":"same\n"}"#);
    assert_eq!(output.text, "f already has exactly this content; nothing was written.");
    assert_eq!((output.changed, state()), (Vec::new(), before));
}

#[test]
fn arguments_that_are_cut_or_wrong_write_nothing() {
    let tree = Tree::new();
    tree.file("n.md", "old");
    tree.read("n.md");
    let whole = r#"{"path":"n.md","content":"line 1\nline 2"}"#;
    for cut in 1..whole.len() {
        let output = tree.call("write", &whole[..cut]);
        assert!(output.text.contains("send it again in smaller pieces"), "{}", output.text);
    }
    for (arguments, want) in [
        ("", "'path' is missing: it must be a string"),
        (r#"{"path":"n.md"}"#, "'content' is missing: it must be a string"),
        (r#"{"path":"n.md","content":["a"]}"#, "'content' must be a string, not a list"),
        (
            r#"{"path":"n.md","content":"a","mode":"append"}"#,
            "'mode' is no argument; known are path, content",
        ),
    ] {
        assert_eq!(tree.call("write", arguments).text, format!("tool error: {want}"));
    }
    assert_eq!(tree.bytes("n.md"), "old");
}

#[test]
fn modes_links_and_hard_links_stay_what_they_are() {
    let tree = Tree::new();
    for (name, mode) in [("script", 0o755), ("secret", 0o600), ("group", 0o664)] {
        let path = tree.file(name, "old");
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        tree.read(name);
        tree.ok("edit", json!({"path": name, "oldText": "old", "newText": "new"}));
        tree.ok("write", json!({"path": name, "content": "newer"}));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode, "{name}");
    }
    tree.file("src/target", "old");
    symlink("src/target", tree.path("link")).unwrap();
    symlink("src", tree.path("folder")).unwrap();
    tree.read("link");
    let text = tree.ok("write", json!({"path": "link", "content": "one"}));
    assert!(text.starts_with("Successfully wrote 3 bytes to src/target."), "{text}");
    tree.ok("edit", json!({"path": "folder/target", "oldText": "one", "newText": "two"}));
    assert!(fs::symlink_metadata(tree.path("link")).unwrap().is_symlink());
    assert_eq!(tree.bytes("src/target"), "two");
    tree.file("first", "a longer old text");
    fs::hard_link(tree.path("first"), tree.path("second")).unwrap();
    tree.read("first");
    let text = tree.ok("write", json!({"path": "first", "content": "new"}));
    let said = "Successfully wrote 3 bytes to first (in place: the file has 2 hard links, all of \
                them changed).";
    assert!(text.starts_with(said), "{text}");
    assert_eq!(tree.bytes("second"), "new");
    let left = ["first", "folder", "group", "link", "script", "second", "secret", "src"];
    assert_eq!(names(tree.workspace.root()), left);
}

/// By a link as the last component, a link as a folder, a dangling link, dots, or plainly.
#[test]
fn nothing_outside_the_tree_is_written() {
    let tree = Tree::new();
    let victim = tree.dir.write("outside/victim", "orig");
    let outside = victim.parent().unwrap().to_owned();
    symlink(&victim, tree.path("notes.md")).unwrap();
    symlink(&outside, tree.path("ext")).unwrap();
    symlink(outside.join("new"), tree.path("dangling")).unwrap();
    let absolute = victim.to_str().unwrap();
    for path in ["notes.md", "ext/victim", "ext/deep/new", "dangling", "../outside/x", absolute] {
        let write = tree.error("write", json!({"path": path, "content": "X"}));
        let edit = tree.error("edit", json!({"path": path, "oldText": "orig", "newText": "X"}));
        for said in [write, edit] {
            assert!(said.contains("outside"), "{path}: {said}");
        }
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "orig");
    assert_eq!(names(&outside), ["victim"]);
}

/// As a user without the rights of root, by the real binary.
#[test]
fn what_may_not_be_written_fails_cleanly_and_a_closed_folder_works_in_place() {
    let place = Place::new();
    for (name, mode) in [("ro/file", 0o644), ("ro/closed", 0o444), ("rw/closed", 0o444)] {
        let path = place.file(name, "old");
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let script = r#"
        trap 'chmod -R u+w .' EXIT
        chmod 555 ro
        for file in ro/file ro/closed rw/closed ro/new; do
            "$ETCH" tool write "$file" --content new
        done
        true"#;
    // Root may do everything: then another user does it, if there is a way to become one.
    let metadata = fs::metadata(place.work()).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(place.work());
    command.env("ETCH", env!("CARGO_BIN_EXE_etch")).env("HOME", place.home.path());
    if metadata.uid() == 0 {
        use std::os::unix::process::CommandExt;
        // The binary may lie where only root may look.
        let copy = place.home.path().join("etch");
        fs::copy(env!("CARGO_BIN_EXE_etch"), &copy).unwrap();
        command.env("ETCH", &copy).uid(65_534).gid(65_534);
        let mut owned = Command::new("chown");
        owned.args(["-R", "65534:65534"]).arg(place.home.path());
        let is_owned = owned.status().is_ok_and(|status| status.success());
        let can = is_owned && {
            let mut probe = Command::new(&copy);
            probe.arg("--version").uid(65_534).stdout(Stdio::null());
            probe.status().is_ok_and(|status| status.success())
        };
        if !can {
            return;
        }
    }
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    let in_place =
        "Successfully wrote 3 bytes to ro/file (in place: its folder does not allow new files)";
    let read_only = "it may not be written (mode 0444); change its mode first if that is meant";
    for part in [
        in_place.to_owned(),
        format!("cannot write ro/closed: {read_only}"),
        format!("cannot write rw/closed: {read_only}"),
        "cannot write ro/new: cannot create a file in its folder: permission denied; nothing was \
         changed"
            .to_owned(),
    ] {
        assert!(said.contains(&part), "{part}\n{said}");
    }
    assert_eq!(fs::read_to_string(place.work().join("ro/file")).unwrap(), "new");
    assert_eq!(fs::read_to_string(place.work().join("rw/closed")).unwrap(), "old");
    assert_eq!(names(&place.work().join("ro")), ["closed", "file"]);
    assert_eq!(names(&place.work().join("rw")), ["closed"]);
}

/// A limit on the size of files stands for a full disk.
#[test]
fn a_full_disk_leaves_the_old_file() {
    let place = Place::new();
    place.file("f", "old");
    let new = "n".repeat(100_000);
    let script = r#"trap '' XFSZ; ulimit -f 20; exec "$ETCH" tool write f --content -"#;
    let ran = place.sh(script).stdin(new).run();
    let said = format!("{}{}", ran.out(), ran.stderr);
    assert!(
        said.contains("cannot write f: cannot write the new content: file too large"),
        "{said}"
    );
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(fs::read_to_string(place.work().join("f")).unwrap(), "old");
    assert_eq!(names(&place.work()), ["f"]);
}

/// What a process of its own writes, in the test below.
const KILLED_PATH: &str = "ETCH_TEST_KILLED_PATH";
const KILLED_BYTES: usize = 16 << 20;

/// Does nothing unless the test below runs it in another process.
#[test]
fn a_writer_to_kill() {
    if let Some(path) = std::env::var_os(KILLED_PATH) {
        let content = vec![b'n'; KILLED_BYTES];
        atomic::write(Path::new(&path), &content, &Options::default()).unwrap();
    }
}

/// Each kill comes a little later after the temporary file is there.
#[test]
fn a_kill_at_any_moment_leaves_the_old_or_the_new_file() {
    let place = Place::new();
    let old = vec![b'o'; 1 << 20];
    let path = place.file("big", &old);
    let is_temp = |name: &String| name.starts_with(atomic::TEMP_PREFIX);
    let temps = || names(&place.work()).into_iter().filter(is_temp).count();
    let mut left_over = 0;
    for round in 0..20 {
        fs::write(&path, &old).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["write::a_writer_to_kill", "--exact"])
            .env(KILLED_PATH, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while temps() == left_over && child.try_wait().unwrap().is_none() {
            thread::yield_now();
        }
        thread::sleep(Duration::from_micros(round * 700));
        child.kill().unwrap();
        child.wait().unwrap();
        let got = fs::read(&path).unwrap();
        let is_new = got.len() == KILLED_BYTES && memchr::memchr(b'o', &got).is_none();
        assert!(got == old || is_new, "{} bytes, neither old nor new", got.len());
        left_over = temps();
        assert_eq!(names(&place.work()).len(), left_over + 1);
    }
    assert!(left_over > 0, "no kill came in the middle of a write");
    // What is left over goes with a later write in the folder, once it is old.
    for name in names(&place.work()).into_iter().filter(is_temp) {
        let file = fs::File::options().write(true).open(place.work().join(name)).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - Duration::from_secs(3_600)).unwrap();
    }
    place.etch(["tool", "write", "other", "--content", "x"]).run();
    assert_eq!(names(&place.work()), ["big", "other"]);
}

/// The same by the command, from its standard input, and what the tools say of what is left.
#[test]
fn a_killed_command_leaves_nothing_that_others_see() {
    let place = Place::new();
    let path = place.file("big", "old");
    let input = place.home.write("new", vec![b'n'; KILLED_BYTES]);
    let is_temp = |name: &String| name.starts_with(atomic::TEMP_PREFIX);
    let temps = || names(&place.work()).into_iter().filter(is_temp).count();
    for round in 0..4 {
        let before = temps();
        let mut child = Command::new(env!("CARGO_BIN_EXE_etch"))
            .args(["tool", "write", "big", "--content", "-"])
            .current_dir(place.work())
            .env("HOME", place.home.path())
            .stdin(fs::File::open(&input).unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while temps() == before && child.try_wait().unwrap().is_none() {
            thread::yield_now();
        }
        thread::sleep(Duration::from_micros(round * 1_500));
        child.kill().unwrap();
        child.wait().unwrap();
        let got = fs::read(&path).unwrap();
        let is_new = got.len() == KILLED_BYTES && memchr::memchr(b'o', &got).is_none();
        assert!(got == b"old" || is_new, "{} bytes, neither old nor new", got.len());
    }
    // The next write is not disturbed by them.
    place.etch(["tool", "write", "big", "--content", "next"]).run().exits(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "next");
}

//! `grep`, `find` and `ls`: what a model sees of a tree.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use etch::cancel::Reason;
use etch::model::ResultStatus;
use etch::tool::{Need, Overlap, Plan};
use serde_json::{Value, json};

use crate::support::command::Place;
use crate::support::tool::Tree;

/// A tree of many files in many folders with one matching line each.
fn wide(files: usize) -> Tree {
    let tree = Tree::new();
    for idx in 0..files {
        tree.file(&format!("d{:02}/f{idx:04}.txt", idx % 23), format!("a\nneedle {idx}\nb\n"));
    }
    tree
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn matching_lines_come_in_path_order_with_their_numbers() {
    let tree = Tree::new();
    tree.file("b.rs", "fn one() {}\nlet x = one();\n");
    tree.file("a/z.rs", "one\r\ntwo\r\n");
    tree.file("a.rs", "none\nlast one");
    tree.file("skip.png", b"one\0one");
    assert_eq!(
        tree.ok("grep", json!({"pattern": "one"})),
        "a/z.rs:1:one\na.rs:1:none\na.rs:2:last one\nb.rs:1:fn one() {}\nb.rs:2:let x = one();\n\
         (skipped 1 binary file)"
    );
    let grep = |arguments| tree.ok("grep", arguments);
    assert_eq!(
        grep(json!({"pattern": "one$", "regex": true, "glob": "*.rs", "path": "a"})),
        "a/z.rs:1:one"
    );
    assert_eq!(
        grep(json!({"pattern": "ONE(", "ignoreCase": true})),
        "b.rs:1:fn one() {}\nb.rs:2:let x = one();\n(skipped 1 binary file)"
    );
    assert_eq!(
        grep(json!({"pattern": "one", "paths": ["a.rs", "a"], "limit": "2"})),
        "a/z.rs:1:one\na.rs:1:none\n(at least 1 more match: narrow the search or raise limit)"
    );
    assert_eq!(
        grep(json!({"pattern": "one", "glob": "!*.rs"})),
        "(no matches)\n(skipped 1 binary file)"
    );
    assert_eq!(
        grep(json!({"pattern": "one", "glob": "*.go"})),
        "(no matches)\n(no file that the glob selects)"
    );
}

#[test]
fn neighbours_are_shown_once_in_groups() {
    let tree = Tree::new();
    let text: Vec<_> = (1..=400)
        .map(|n| if [41, 43, 339, 400].contains(&n) { "hit".to_owned() } else { format!("l{n}") })
        .collect();
    tree.file("f", text.join("\n"));
    tree.file("g", "hit\nx\ny\nz");
    let want = "f-39-l39\nf-40-l40\nf:41:hit\nf-42-l42\nf:43:hit\nf-44-l44\nf-45-l45\n--\n\
                f-337-l337\nf-338-l338\nf:339:hit\nf-340-l340\nf-341-l341\n--\n\
                f-398-l398\nf-399-l399\nf:400:hit\n--\ng:1:hit\ng-2-x\ng-3-y";
    assert_eq!(tree.ok("grep", json!({"pattern": "hit", "context": 2})), want);
    let two = tree.ok("grep", json!({"pattern": "hit", "context": 2, "limit": 2}));
    assert_eq!(
        two,
        "f-39-l39\nf-40-l40\nf:41:hit\nf-42-l42\nf:43:hit\nf-44-l44\nf-45-l45\n\
         (at least 2 more matches: narrow the search or raise limit)"
    );
}

#[test]
fn what_a_pattern_cannot_be_is_said() {
    let tree = Tree::new();
    tree.file("f", "f(x)\na|b\n");
    let error = |arguments| tree.error("grep", arguments);
    assert_eq!(
        error(json!({"pattern": "f(", "regex": true})),
        "the regular expression is wrong at character 2: unclosed group; to search for this text \
         as it is, leave out regex"
    );
    assert!(error(json!({"pattern": ""})).contains("find"));
    assert!(error(json!({"pattern": "a\nb"})).contains("line break"));
    assert!(error(json!({"pattern": "x", "glob": "!"})).contains("the glob is empty"));
    assert!(error(json!({"patern": "x"})).contains("'patern' is no argument"));
    let many: Vec<_> = (0..9).map(|idx| idx.to_string()).collect();
    assert!(error(json!({"pattern": "x", "paths": many})).contains("at most 8"));
    assert_eq!(tree.ok("grep", json!({"pattern": "f("})), "f:1:f(x)");
    assert_eq!(tree.ok("grep", json!({"pattern": "a|b"})), "f:2:a|b");
    assert_eq!(
        tree.ok("grep", json!({"pattern": "f.*x|zz"})),
        "(no matches)\n(searched as plain text; regex=true for an expression)"
    );
}

#[test]
fn a_search_that_has_enough_ends_with_the_same_result_each_time() {
    let tree = wide(3_000);
    for arguments in [
        json!({"pattern": "needle", "limit": 7}),
        json!({"pattern": "needle"}),
        json!({"pattern": "needle \\d*7", "regex": true, "context": 1, "limit": 20}),
    ] {
        let first = tree.ok("grep", arguments.clone());
        for _ in 0..5 {
            assert_eq!(tree.ok("grep", arguments.clone()), first);
        }
    }
    let seven = tree.ok("grep", json!({"pattern": "needle", "limit": 7}));
    assert_eq!(lines(&seven)[0], "d00/f0000.txt:2:needle 0");
    assert_eq!(lines(&seven)[6], "d00/f0138.txt:2:needle 138");
    assert_eq!(lines(&seven)[7..], ["(at least 1 more match: narrow the search or raise limit)"]);
    let first = tree.ok("find", json!({"query": "F0", "limit": 9}));
    assert_eq!(lines(&first)[0], "d00/f0000.txt");
    assert_eq!(
        lines(&first)[8..],
        ["d00/f0184.txt", "(at least 1 more match: narrow the search or raise limit)"]
    );
    for _ in 0..5 {
        assert_eq!(tree.ok("find", json!({"query": "F0", "limit": 9})), first);
    }
}

#[test]
fn one_noisy_file_does_not_hide_the_others() {
    let tree = Tree::new();
    tree.file("a/noisy", "hit\n".repeat(57));
    tree.file("b/quiet", "hit\n");
    tree.file("c/endless", "hit\n".repeat(5_000));
    let text = tree.ok("grep", json!({"pattern": "hit"}));
    let last = |count: usize| lines(&text)[count..].to_vec();
    assert_eq!(
        lines(&text)[19..22],
        ["a/noisy:20:hit", "a/noisy: 37 more matches", "b/quiet:1:hit"]
    );
    assert_eq!(last(42), ["c/endless: at least 1000 more matches"]);
    // A file that is named itself may use the whole limit.
    let text = tree.ok("grep", json!({"pattern": "hit", "path": "a/noisy"}));
    assert_eq!((lines(&text).len(), lines(&text)[56]), (57, "a/noisy:57:hit"));
    let text = tree.ok("grep", json!({"pattern": "hit", "path": "c/endless", "limit": 1}));
    assert_eq!(
        text,
        "c/endless:1:hit\n(at least 1000 more matches: narrow the search or raise limit)"
    );
}

#[test]
fn a_hit_in_a_giant_line_is_a_window_around_it() {
    let tree = Tree::new();
    let (before, after) = ("\u{e9}".repeat(1_000_000), "\u{e9}".repeat(500_000));
    tree.file("app.min.js", format!("first\n{before}needle{after}\nlast\n"));
    tree.file("small", "a needle\n");
    let text = tree.ok("grep", json!({"pattern": "needle", "context": 2}));
    let side = "\u{e9}".repeat(123);
    assert_eq!(
        text,
        format!(
            "app.min.js-1-first\napp.min.js:2:[from column 1999753] \u{e9}{side}needle{side} \
             [999754 bytes more]\napp.min.js-3-last\n--\nsmall:1:a needle"
        )
    );
    // The column is one that `read` takes.
    let read = tree.ok("read", json!({"path": "app.min.js", "offset": 2, "column": 1_999_753}));
    assert!(read.contains(&format!("\u{e9}{side}needle")), "{}", &read[..200]);
}

#[test]
fn results_are_bounded_in_bytes_and_what_is_left_is_counted() {
    let tree = Tree::new();
    for idx in 0..60 {
        tree.file(&format!("f{idx:02}"), format!("{}\n", "needle".repeat(80)).repeat(20));
    }
    let text = tree.ok("grep", json!({"pattern": "needle", "limit": 1_000}));
    assert!(text.len() <= 50 * 1024 + 200, "{}", text.len());
    let shown = lines(&text).len() as u64 - 1;
    let more =
        format!("(at least {} more matches: narrow the search or raise limit)", 1_020 - shown);
    assert_eq!(lines(&text).last(), Some(&more.as_str()));
    let folder = "n".repeat(200);
    for idx in 0..600 {
        tree.file(&format!("{folder}/{idx:03}"), "");
    }
    let text = tree.ok("find", json!({"path": folder}));
    assert!(text.len() <= 50 * 1024 + 200, "{}", text.len());
    assert!(
        lines(&text).last().unwrap().starts_with("(at least 252 more matches: "),
        "{}",
        lines(&text).len()
    );
}

#[test]
fn rules_of_git_hold_from_wherever_a_search_starts() {
    let tree = Tree::new();
    fs::create_dir(tree.path(".git")).unwrap();
    fs::write(tree.dir.path().join(".gitignore"), "note\n").unwrap();
    tree.file(".gitignore", "/pkg/gen/\n**/cache/*\n.*\n!.env.sample\n");
    tree.file("pkg/.gitignore", "*.tmp\n!keep.tmp\n");
    for name in [
        "pkg/note",
        "pkg/gen/note",
        "pkg/cache/note",
        "pkg/.env.sample",
        "pkg/.env",
        "pkg/a.tmp",
        "pkg/keep.tmp",
        "vendor/note",
        "bin/note",
    ] {
        tree.file(name, "x needle\n");
    }
    let want = ["pkg/.env.sample", "pkg/keep.tmp", "pkg/note"];
    let absolute = tree.path("pkg").display().to_string();
    for path in ["pkg", "./pkg/", "vendor/../pkg", &absolute] {
        let found = tree.ok("find", json!({"path": path}));
        let files: Vec<_> = lines(&found).into_iter().filter(|name| !name.ends_with('/')).collect();
        assert_eq!(files, want, "{path}");
        let grep = tree.ok("grep", json!({"path": path, "pattern": "needle"}));
        let hits: Vec<_> = want.iter().map(|name| format!("{name}:1:x needle")).collect();
        assert_eq!(lines(&grep), hits, "{path}");
    }
    let all = tree.ok("find", json!({"query": "note"}));
    assert_eq!(lines(&all), ["bin/note", "pkg/note", "vendor/note"]);
    let all = tree.ok("find", json!({"path": "pkg", "hidden": true, "ignored": true}));
    let everything = [
        "pkg/.env",
        "pkg/.env.sample",
        "pkg/.gitignore",
        "pkg/a.tmp",
        "pkg/cache/",
        "pkg/cache/note",
        "pkg/gen/",
        "pkg/gen/note",
        "pkg/keep.tmp",
        "pkg/note",
    ];
    assert_eq!(lines(&all), everything);
    // What is left out is said where nothing was found.
    assert_eq!(
        tree.ok("find", json!({"path": "pkg", "query": "a.t"})),
        "(no matches)\n(left out: 5 ignored (ignored=true))"
    );
    // A folder that is named itself is searched, ignored or not.
    assert_eq!(lines(&tree.ok("find", json!({"path": "pkg/gen"}))), ["pkg/gen/note"]);
}

#[test]
fn links_lead_nowhere_and_a_linked_root_is_its_target() {
    let tree = Tree::new();
    let outside = tree.dir.write("outside/secret", "needle");
    symlink(outside.parent().unwrap(), tree.path("ext")).unwrap();
    symlink(&outside, tree.path("file")).unwrap();
    symlink(".", tree.path("loop")).unwrap();
    tree.file("src/x", "needle\n");
    symlink(tree.path("src"), tree.path("l")).unwrap();
    assert_eq!(tree.ok("grep", json!({"pattern": "needle"})), "src/x:1:needle");
    assert_eq!(tree.ok("grep", json!({"pattern": "needle", "path": "l"})), "src/x:1:needle");
    assert_eq!(lines(&tree.ok("find", json!({}))), ["ext", "file", "l", "loop", "src/", "src/x"]);
    assert_eq!(lines(&tree.ok("ls", json!({}))), ["ext", "file", "l", "loop", "src/"]);
    assert_eq!(lines(&tree.ok("ls", json!({"path": "l"}))), ["x"]);
    for (tool, arguments) in [
        ("ls", json!({"path": "ext"})),
        ("ls", json!({"path": ".."})),
        ("find", json!({"path": "ext"})),
        ("grep", json!({"path": "ext", "pattern": "needle"})),
        ("grep", json!({"path": "file", "pattern": "needle"})),
        ("grep", json!({"path": "/etc/passwd", "pattern": "root"})),
    ] {
        let error = tree.error(tool, arguments);
        assert!(error.contains("outside the working directory"), "{error}");
    }
    let free = Tree::reading_outside();
    let secret = free.dir.write("outside/secret", "needle");
    let text = free.ok("grep", json!({"path": "../outside", "pattern": "needle"}));
    assert_eq!(text, format!("{}:1:needle", secret.display()));
}

#[test]
fn pipes_sockets_and_devices_are_passed_by() {
    let tree = Tree::new();
    let made = Command::new("mkfifo").arg(tree.path("p")).status().unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(tree.path("s")).unwrap();
    symlink("/dev/zero", tree.path("z")).unwrap();
    tree.file("text", "x\n");
    assert_eq!(tree.ok("grep", json!({"pattern": "x"})), "text:1:x");
    assert_eq!(lines(&tree.ok("find", json!({}))), ["p", "s", "text", "z"]);
    assert_eq!(
        tree.error("grep", json!({"pattern": "x", "path": "p"})),
        "p: not a regular file (pipe)"
    );
    assert_eq!(
        tree.ok("grep", json!({"pattern": "x", "paths": ["s", "text"]})),
        "text:1:x\n(not searched: s: not a regular file (socket))"
    );
}

#[test]
fn several_paths_in_one_text_are_several_paths() {
    let tree = Tree::new();
    tree.file("src/a", "x\n");
    tree.file("tests/b", "x\n");
    tree.file("with space/c", "x\n");
    let grep = |path: &str| tree.ok("grep", json!({"pattern": "x", "path": path}));
    assert_eq!(grep("src tests"), "src/a:1:x\ntests/b:1:x");
    assert_eq!(grep("src, tests"), "src/a:1:x\ntests/b:1:x");
    assert_eq!(grep("with space"), "with space/c:1:x");
    let list = json!({"pattern": "x", "path": ["src", "with space"]});
    assert_eq!(tree.ok("grep", list), "src/a:1:x\nwith space/c:1:x");
    assert!(
        tree.error("grep", json!({"pattern": "x", "path": "src nowhere"})).contains("src nowhere")
    );
    assert_eq!(lines(&tree.ok("find", json!({"path": "src tests"}))), ["src/a", "tests/b"]);
}

#[test]
fn an_unreadable_entry_is_a_notice() {
    let tree = Tree::new();
    tree.file("a/ok", "x\n");
    tree.file("b/locked", "x\n");
    fs::set_permissions(tree.path("b"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(tree.path("b")).is_ok() {
        // Nothing is unreadable for root: a path that is too long for the kernel is.
        fs::set_permissions(tree.path("b"), fs::Permissions::from_mode(0o755)).unwrap();
        deep(&tree);
        let text = tree.ok("find", json!({"query": "ok"}));
        assert_eq!(lines(&text)[0], "a/ok");
        assert!(text.contains("(skipped 1 folder below 64 levels)"), "{text}");
        return;
    }
    let text = tree.ok("grep", json!({"pattern": "x"}));
    let found = tree.ok("find", json!({}));
    fs::set_permissions(tree.path("b"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(text, "a/ok:1:x\n(could not read 1: b: permission denied)");
    assert_eq!(found, "a/\na/ok\nb/\n(could not read 1: b: permission denied)");
}

/// Seventy folders in one another.
fn deep(tree: &Tree) {
    let path = tree.path(&vec!["d"; 70].join("/"));
    fs::create_dir_all(path).unwrap();
}

#[test]
fn names_that_are_no_plain_text_are_listed_once_and_read_by_what_is_printed() {
    let tree = Tree::new();
    let names: [&[u8]; 10] = [
        b"a\xff",
        b"new\nline",
        "cafe\u{301}".as_bytes(),
        "it\u{2019}s.txt".as_bytes(),
        "shot 7.30\u{202f}PM.png".as_bytes(),
        b"shot 7.30 PM.png",
        b" lead",
        b"-rf",
        b"*[x]*",
        &[b'n'; 255],
    ];
    for name in names {
        fs::write(tree.path("").join(OsStr::from_bytes(name)), "needle\n").unwrap();
    }
    let listed = tree.ok("ls", json!({}));
    let found = tree.ok("find", json!({"query": "*"}));
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&listed).len(), names.len());
    assert_eq!(sorted(&listed), sorted(&found));
    for name in lines(&listed) {
        assert_eq!(tree.ok("read", json!({"path": name})), "1 | needle");
        assert_eq!(
            tree.ok("grep", json!({"path": name, "pattern": "needle"})),
            format!("{name}:1:needle")
        );
    }
    let find = |query: &str| tree.ok("find", json!({"query": query}));
    assert_eq!(lines(&find("*[x]*")), ["*[x]*", "it\u{2019}s.txt"]);
    assert_eq!(find("*.PNG").lines().count(), 2);
    assert_eq!(find("CAFE"), "cafe\u{301}");
}

#[test]
fn a_folder_is_listed_whatever_the_rules_say() {
    let tree = Tree::new();
    assert_eq!(tree.ok("ls", json!({})), "(empty directory)");
    tree.file(".gitignore", "*.log\n");
    tree.file("b.log", "");
    tree.file("B/x", "");
    tree.file("a.txt", "");
    tree.file(".git/config", "");
    tree.file(".etch/sessions/x", "");
    assert_eq!(
        tree.ok("ls", json!({"path": "."})),
        ".gitignore\na.txt\nB/\nb.log\n(skipped 2 internal entries)"
    );
    assert_eq!(
        tree.ok("ls", json!({"limit": 1})),
        ".gitignore\n(truncated 3 more entries)\n(skipped 2 internal entries)"
    );
    assert_eq!(tree.error("ls", json!({"path": "a.txt"})), "a.txt is not a directory");
    assert!(tree.error("ls", json!({"path": ".git"})).contains("refusing to read internal path"));
    assert!(tree.error("ls", json!({"path": "nowhere"})).contains("no such file or directory"));
    for idx in 0..1_500 {
        tree.file(&format!("many/{idx:04}"), "");
    }
    let many = tree.ok("ls", json!({"path": "many"}));
    assert_eq!(lines(&many)[499..], ["0499", "(truncated 1000 more entries)"]);
}

#[test]
fn searches_plan_what_they_read_and_run_beside_others() {
    let tree = Tree::new();
    tree.file("src/a", "");
    let reads = |paths: &[&str]| Plan {
        overlap: Overlap::ReadOnly,
        lane: None,
        needs: paths.iter().map(|path| Need::Read(tree.path(path))).collect(),
    };
    let plan = |tool: &str, arguments: Value| tree.plan(tool, arguments);
    let root = Plan { needs: vec![Need::Read(tree.workspace.root().to_owned())], ..reads(&[]) };
    assert_eq!(plan("ls", json!({})), Ok(root.clone()));
    assert_eq!(plan("find", json!({"path": ""})), Ok(root));
    assert_eq!(
        plan("grep", json!({"pattern": "x", "paths": ["src", "src/a"]})),
        Ok(reads(&["src", "src/a"]))
    );
}

#[test]
fn a_cancelled_search_is_interrupted_and_a_late_one_tells_what_it_has() {
    let tree = wide(50);
    tree.cancel.cancel(Reason::Interrupt);
    for (tool, arguments) in [("grep", json!({"pattern": "needle"})), ("find", json!({}))] {
        let output = tree.call(tool, &arguments.to_string());
        assert_eq!(output.status, ResultStatus::Interrupted, "{tool}");
    }
    let late = wide(50);
    late.cancel.cancel(Reason::Timeout);
    let text = late.ok("grep", json!({"pattern": "needle"}));
    assert!(text.contains("(stopped at the time limit: the rest was not searched)"), "{text}");
}

/// The prompt that every request carries: the base instructions and all tools.
#[test]
fn the_base_prompt_and_all_tools_stay_small() {
    let place = Place::new();
    let tools = place.etch(["tool", "--json"]).run().exits(0);
    let tools: Vec<Value> = serde_json::from_slice(&tools.stdout).unwrap();
    let schemas: usize = tools
        .iter()
        .map(|tool| {
            let (name, text) = (&tool["name"], &tool["description"]);
            let function =
                json!({"name": name, "description": text, "parameters": tool["parameters"]});
            json!({"type": "function", "function": function}).to_string().chars().count()
        })
        .sum();
    let base = etch::context::instructions::BASE.chars().count();
    assert!(base + schemas <= 4_500, "{base} + {schemas}");
}

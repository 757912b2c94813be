//! Whole turns as golden files: what a server sent, what a person has before, and everything that
//! came of it: the answer, the notices, the log, the next request, the files, the exit code.
//!
//! Each folder below `fixtures/turns` is one turn; its `README.md` says what lies in it. Every
//! turn is run twice, with answers that come whole and with answers that come byte by byte, and
//! must end in the same. `UPDATE_FIXTURES=1` writes what is wanted anew: read the difference as
//! code. `ETCH_TURN=part-of-a-name` runs only some.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::Value;

use crate::support::command::Place;
use crate::support::golden::{Golden, files_below};
use crate::support::server::{Reply, Server};

/// What runs of one turn must have in common.
fn usual(place: &Place, text: &str) -> String {
    let mut text = text.replace(&*place.home.path().to_string_lossy(), "~");
    for (pattern, by) in [
        (r#""time":"[^"]*""#, r#""time":"T""#),
        (r#""version":"[^"]*""#, r#""version":"V""#),
        (r#""([a-zA-Z]*Millis)":\d+"#, r#""$1":0"#),
        (r"duration: [0-9.]+m?s", "duration: 0ms"),
        (r"exit code (\d+), \d+ms", "exit code $1, 0ms"),
        (r"again in [0-9.]+ s", "again in a while"),
        // Counted from the text, which names folders of this machine.
        (
            r#""inputTokens":\d+,"outputTokens":(\d+),"totalTokens":\d+,"estimated""#,
            r#""inputTokens":0,"outputTokens":$1,"totalTokens":0,"estimated""#,
        ),
        (r"127\.0\.0\.1:\d+", "HOST"),
        (r"\b[0-9a-f]{8}\b", "SHORT-ID"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, by).into_owned();
    }
    let mut known: Vec<String> = Vec::new();
    let id = Regex::new("[0-9a-f]{32}").unwrap();
    let number = |found: &regex::Captures<'_>| {
        let at = known.iter().position(|id| id == &found[0]).unwrap_or_else(|| {
            known.push(found[0].to_owned());
            known.len() - 1
        });
        format!("id-{}", at + 1)
    };
    id.replace_all(&text, number).into_owned()
}

fn without_metrics(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains(r#""type":"model.metrics""#));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Calls that ran at once are shown as they end: here in the order of their text.
fn in_call_order(stderr: &str) -> String {
    let mut lines: Vec<&str> = stderr.lines().collect();
    lines.chunk_by_mut(|a, b| a.starts_with('•') && b.starts_with('•')).for_each(<[_]>::sort);
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// `response-1.sse`, a stream, or `response-1.http`, a whole answer with its head; in order.
fn replies(dir: &Path, bytewise: bool) -> Vec<Reply> {
    let mut replies = Vec::new();
    loop {
        let name = |ext: &str| dir.join(format!("response-{}.{ext}", replies.len() + 1));
        let reply = if let Ok(body) = fs::read(name("sse")) {
            Reply::sse(body)
        } else if let Ok(head) = fs::read(name("http")) {
            Reply::raw(head)
        } else {
            return replies;
        };
        replies.push(if bytewise { reply.bytewise() } else { reply });
    }
}

/// The conversation of a request, a line a message; the instructions are no part of it.
fn conversation(body: &Value) -> String {
    let messages = body["messages"].as_array().into_iter().flatten();
    let told = messages.filter(|message| message["role"] != "system");
    told.map(|message| format!("{message}\n")).collect()
}

fn copy(from: &Path, to: &Path) {
    for (name, bytes) in files_below(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Everything that came of one turn, by the name of its golden file.
fn run(dir: &Path, bytewise: bool) -> BTreeMap<String, Vec<u8>> {
    let place = Place::new();
    copy(&dir.join("workspace"), &place.work());
    let server = Server::start(replies(dir, bytewise));
    let args = fs::read_to_string(dir.join("args")).unwrap_or_default();
    let sessions = place.home.path().join("sessions");
    let ran = place
        .etch(["-p", "go", "--no-config"])
        .args(args.lines())
        .env("ETCH_PROVIDER", "openai")
        .env("ETCH_MODEL", "m")
        .env("ETCH_BASE_URL", server.base_url())
        .env("ETCH_SESSION_DIR", &sessions)
        .run();
    let mut got = BTreeMap::new();
    let mut add = |name: &str, text: &str| {
        got.insert(name.to_owned(), usual(&place, text).into_bytes());
    };
    add("exit", &format!("{}\n", ran.code.unwrap_or(-1)));
    add("stdout.txt", &without_metrics(ran.out()));
    add("stderr.txt", &in_call_order(&ran.stderr));
    let is_session = |name: &str| name.ends_with(".jsonl") && name != "index.jsonl";
    for (name, bytes) in files_below(&sessions).into_iter().filter(|(name, _)| is_session(name)) {
        assert!(!got.contains_key("session.jsonl"), "a second session: {name}");
        let text = without_metrics(&String::from_utf8(bytes).unwrap());
        got.insert("session.jsonl".to_owned(), usual(&place, &text).into_bytes());
    }
    let seen = server.seen();
    if let Some(last) = seen.get(1..).and_then(<[_]>::last) {
        let text = usual(&place, &conversation(&last.json()));
        got.insert("last-request.jsonl".to_owned(), text.into_bytes());
    }
    got.insert("requests".to_owned(), format!("{}\n", seen.len()).into_bytes());
    let before = files_below(&dir.join("workspace"));
    for (name, bytes) in files_below(&place.work()) {
        if before.get(&name) != Some(&bytes) {
            got.insert(format!("workspace/{name}"), bytes);
        }
    }
    got
}

#[test]
fn every_recorded_turn_ends_as_its_golden_files_say_however_its_answers_are_cut() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/turns");
    let golden = Golden::new(&root, "ETCH_TURN", 25);
    golden.check_folders(|dir| {
        let whole = run(dir, false);
        let bytewise = run(dir, true);
        let differs = whole.iter().find(|(name, bytes)| bytewise.get(*name) != Some(bytes));
        let note = differs.map(|(name, _)| {
            let text = String::from_utf8_lossy(&bytewise[name]).into_owned();
            format!("byte by byte {name} is\n{text}")
        });
        (whole, note)
    });
}

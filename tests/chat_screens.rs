//! One scripted conversation on terminals of several sizes: golden screens, and everything that
//! stands in the terminal in the end.
//!
//! A file of `fixtures/chat` begins with a line like `80x24, 40x10, 120x30`: the size at the start
//! and those that follow while an answer streams; `NO_COLOR` may stand behind. Below are the
//! screens. `UPDATE_FIXTURES=1` writes them anew; `ETCH_CHAT=part-of-a-name` plays only some.

use std::path::PathBuf;

use regex::Regex;
use serde_json::json;

use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::golden::Golden;
use crate::support::server::{Gate, Reply, Server};
use crate::support::talk::{Talk, coloured, settings, usual};

const ANSWER: [&str; 3] = [
    "# Done\n\nThe **greeting** is now `polite`, see [the guide](docs/guide.md).\n\n\
     - first point with enough words to need a second line on a narrow terminal\n\
     - second point\n  1. nested 日本語 (wide)\n  2. again, and a fami",
    "ly 👩‍💻 with a flag 🇯🇵\n\n| File | Lines | Note |\n|:-----|------:|------|\n\
     | `hello.txt` | 3 | changed by this run |\n| 日本.txt | 12 | as it was |\n\n```rust\nfn main",
    "() {\n    println!(\"hello\");\n}\n```\n\n> Quoted *words*.\n\nThat is all ❤\u{fe0f}.",
];

/// The conversation, and the gates of its streamed answer.
struct Script {
    place: Place,
    server: Server,
    gates: [Gate; 2],
}

fn script() -> Script {
    let place = Place::new();
    place.file("hello.txt", "one\nhello\nthree\n");
    place.file("docs/guide.md", "Say hello politely.\n");
    let gates = [Gate::new(), Gate::new()];
    place.sh("mkfifo go").run().exits(0);
    let look = Chat::new()
        .reasoning("I should **look** first: what is there, and what does it say?")
        .text("I look around.")
        .call(0, "c1", "read", r#"{"path":"hello.txt"}"#)
        .call(1, "c2", "grep", r#"{"pattern":"hello"}"#)
        .call(2, "c3", "bash", r#"{"command":"cat go"}"#);
    let edit = r#"{"path":"hello.txt","edits":[{"old":"hello","new":"good morning"}]}"#;
    let mut answer = Chat::new();
    let mut pauses = Vec::new();
    for part in ANSWER {
        for piece in part.split_inclusive(' ') {
            answer = answer.text(piece);
        }
        pauses.push(answer.clone().into_bytes().len());
    }
    let answer = answer.finish("stop").usage(1200, 80).done().reply();
    let count = json!({"command": "seq 1 40"}).to_string();
    let half = Chat::new().text("This one is never finished,");
    let server = Server::start([
        look.finish("tool_calls").usage(1000, 40).done().reply(),
        Reply::error(500, "internal", "something broke"),
        Chat::calls(&[("c4", "edit", edit)]),
        answer.wait_at(pauses[0], &gates[0]).wait_at(pauses[1], &gates[1]),
        Chat::calls(&[("c5", "bash", &count)]),
        Chat::answer("Counted."),
        half.reply().then_stall(),
    ]);
    Script { place, server, gates }
}

/// Plays the conversation; what was to be seen.
fn play(file: &str) -> String {
    let head = file.lines().next().unwrap();
    let is_plain = head.contains("NO_COLOR");
    let numbers: Vec<u16> =
        head.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    let sizes: Vec<(u16, u16)> = numbers.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    let Script { place, server, gates } = script();
    let etch = place.etch(["chat"]);
    let command = if is_plain { settings(etch, &server) } else { coloured(etch, &server) };
    let mut talk = Talk::spawn(command, sizes[0].0, sizes[0].1);
    let mut out = format!("{head}\n");
    let mut mark = |what: &str, shown: &str| {
        out.push_str(&format!("\n=== {what} ===\n{}\n", usual(shown)));
    };

    mark("at the start", &talk.sees("m · "));
    talk.keys("change the greeting\r");
    mark("a command runs", &talk.sees("bash cat go (running"));
    std::fs::write(place.work().join("go"), "it went\n").unwrap();
    mark("half of the answer", &talk.sees("a fami"));
    for (idx, gate) in gates.iter().enumerate() {
        if let Some((columns, rows)) = sizes.get(idx + 1) {
            let before = talk.written();
            talk.resize(*columns, *rows);
            talk.written_beyond(before);
        }
        gate.open();
        if idx == 0 {
            mark("more of it", &talk.sees("fn main"));
        }
    }
    talk.sees("Worked for");
    talk.keys("count\r");
    talk.sees("Counted.");
    talk.loses("Esc to cancel");
    talk.keys("/show 5\r");
    talk.sees("  40");
    talk.keys("/status\r");
    talk.sees("6, 1 repe");
    talk.keys("stop me\r");
    talk.sees("never finished,");
    talk.keys("\u{1b}");
    talk.sees("Cancelled");
    talk.loses("Esc to cancel");
    talk.keys("a draft");
    talk.sees("a draft");
    talk.keys("\u{15}\u{4}");
    let (status, output, rows) = talk.end();
    assert!(status.success(), "{output}");
    if is_plain {
        assert!(!has_colour(&output), "{output:?}");
    } else {
        assert_no_colour_left_on(&output);
    }
    mark("all of it, at the end", &rows.join("\n"));
    out
}

/// SGR sequences, without the reset that the end writes.
fn has_colour(output: &str) -> bool {
    Regex::new(r"\x1b\[[1-9][0-9;]*m").unwrap().is_match(output)
}

/// Every line ends as the terminal was before.
fn assert_no_colour_left_on(output: &str) {
    let colours = Regex::new(r"\x1b\[([0-9;]*)m").unwrap();
    let mut painted = 0;
    for line in output.split('\n') {
        if let Some(last) = colours.captures_iter(line).last() {
            painted += 1;
            assert!(matches!(&last[1], "" | "0"), "a colour goes on behind {line:?}");
        }
    }
    assert!(10 < painted, "there are colours");
}

#[test]
fn every_recorded_screen_is_what_the_terminal_shows() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/chat");
    Golden::new(&root, "ETCH_CHAT", 5).check_files(play);
}

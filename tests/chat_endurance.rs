//! What is hard on a chat: text whose characters are many, a session that grows long, a kill.

use serde_json::json;

use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::server::Server;
use crate::support::talk::{COLUMNS, ROWS, Talk, settings};

/// What a person sees as one.
const UNITS: [&str; 10] =
    ["❤\u{fe0f}", "👩\u{200d}💻", "🇯🇵", "👍🏽", "e\u{301}", "กำ", "क्षि", "日", "±", "🪁"];
/// What is not seen belongs to what stands before it.
const UNSEEN: [&str; 3] = ["\u{200b}", "\u{ad}", "\u{200d}"];
const LEFT: &str = "\u{1b}[D";
const BACKSPACE: &str = "\u{7f}";

#[test]
fn one_key_goes_over_and_takes_away_what_is_seen_as_one() {
    let place = Place::new();
    let server = Server::with(|_| Chat::answer("ok"));
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.sees("m · ");
    let mut wants = Vec::new();
    let mut say = |keys: String, want: String| {
        wants.push(want);
        talk.keys(&format!("{keys}\r"));
        server.wait_for(wants.len());
    };
    for unit in UNITS {
        say(format!("a{unit}b{LEFT}{BACKSPACE}x"), "axb".to_owned());
        say(format!("a {unit}{LEFT}x"), format!("a x{unit}"));
        say(format!("{unit}{LEFT}{BACKSPACE}x"), format!("x{unit}"));
    }
    for unseen in UNSEEN {
        say(format!("a{unseen}b{LEFT}{BACKSPACE}x"), "xb".to_owned());
    }
    // Two beside each other are two.
    say(format!("🧑\u{200d}🚒🪁{LEFT}x{BACKSPACE}{BACKSPACE}x"), "x🪁".to_owned());
    // What has no column, alone and in a crowd.
    say(format!("{}{BACKSPACE}y", "\u{301}\u{200d}\u{fe0f}\u{200b}".repeat(3)), String::new());
    let seen = server.seen();
    for (want, seen) in wants.iter().zip(&seen) {
        let body = seen.json();
        let said = &body["messages"].as_array().unwrap().last().unwrap()["content"];
        if want.is_empty() {
            assert!(said.as_str().unwrap().ends_with('y'), "{said:?}");
        } else {
            assert_eq!(said, want, "{said:?}");
        }
    }
}

/// Kilobytes of the program in memory.
fn resident(talk: &Talk) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", talk.pty.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().split(' ').next().unwrap().parse().unwrap()
}

/// Bytes that the program writes for some keys of a draft, which is taken away again.
fn bytes_for_keys(talk: &mut Talk) -> usize {
    let before = talk.written();
    for typed in ["q", "qz", "qzj", "qzjx"] {
        talk.keys(&typed[typed.len() - 1..]);
        talk.sees(&format!("› {typed}"));
    }
    let bytes = talk.written() - before;
    talk.keys("\u{15}");
    talk.loses("› qzjx");
    bytes
}

#[test]
fn a_long_session_costs_no_more_per_key_and_only_the_memory_of_its_text() {
    const TURNS: usize = 40;
    const LINES: usize = 400;
    let place = Place::new();
    let command = json!({"command": format!("seq -f 'a line of hidden output %g' {LINES}")});
    let command = command.to_string();
    let server = Server::with(move |seen| {
        let body = seen.json();
        let last = body["messages"].as_array().unwrap().last().unwrap()["role"].clone();
        let number = body["messages"].as_array().unwrap().len();
        match last.as_str() {
            Some("user") => Chat::calls(&[(&format!("c{number}"), "bash", &command)]),
            _ => Chat::answer(&format!("{}answer {number}", "words of it\n\n".repeat(200))),
        }
    });
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.sees("m · ");
    let mut marks = Vec::new();
    for turn in 1..=TURNS {
        talk.keys("go\r");
        server.wait_for(2 * turn);
        talk.sees(&format!("· {} requests", 2 * turn));
        talk.loses("Esc to cancel");
        if turn % 10 == 0 {
            marks.push((bytes_for_keys(&mut talk), resident(&talk)));
        }
    }
    println!("bytes for four keys and kilobytes in memory, every ten turns: {marks:?}");
    let (first, last) = (marks[0], marks[marks.len() - 1]);
    assert!(last.0 <= first.0 + first.0 / 4, "a key costs more: {marks:?}");
    let said = server.seen().last().unwrap().body.len() / 1024;
    let grown = last.1.saturating_sub(first.1);
    println!("the conversation: {said} kilobytes, grown by {grown}");
    assert!(grown < 8 * said, "memory: {marks:?}, said: {said}");
}

#[test]
fn after_a_kill_the_next_chat_leaves_a_terminal_that_can_be_used() {
    let place = Place::new();
    let half = Chat::new().text(&"half of an answer\n".repeat(50)).reply();
    let server = Server::start([half.then_stall(), Chat::answer("here")]);
    let script = "$ETCH; echo first $?; stty -a; $ETCH; echo second $?; stty -a; read -r line; \
        echo \"read <$line>\"";
    let mut talk = Talk::spawn(settings(place.sh(script), &server), COLUMNS, ROWS);
    talk.sees("m · ");
    talk.keys("go\r");
    talk.sees("half of");
    let kill = format!("pkill -KILL -P {} etch", talk.pty.pid());
    place.sh(&kill).run().exits(0);
    talk.sees("first 137");
    talk.sees("› ");
    talk.keys("again\r");
    talk.sees("here");
    talk.sees("Worked for");
    talk.keys("\u{15}\u{4}");
    talk.sees("second 0");
    talk.keys("typed\r");
    let (_, output, _) = talk.end();
    let (killed, left) = output.split_once("second 0").unwrap();
    let (killed, raw) = killed.split_once("first 137").unwrap();
    assert!(raw.contains("-icanon") && raw.contains("-echo"), "it was left raw: {raw}");
    for name in ["icanon", "echo", "isig", "icrnl", "opost", "iexten"] {
        assert!(left.split_whitespace().any(|word| word == name), "no {name} in {left}");
    }
    assert!(left.contains("read <typed>"), "{left}");
    assert_eq!(keyboard_levels(killed), [0, 1], "the kill left the keys as the chat had them");
    assert_eq!(keyboard_levels(&output).last(), Some(&0));
}

/// What a terminal with the kitty keyboard protocol has on its stack after this output.
fn keyboard_levels(output: &str) -> Vec<u8> {
    let mut levels = vec![0];
    for part in output.split("\u{1b}[") {
        let Some((sequence, _)) = part.split_once('u') else { continue };
        let number = |digits: &str| digits.parse().ok();
        if let Some(level) = sequence.strip_prefix('>').and_then(number) {
            levels.push(level);
        } else if sequence == "<" {
            levels.pop();
        } else if let Some(level) =
            sequence.strip_prefix('=').and_then(|set| set.strip_suffix(";1")).and_then(number)
        {
            *levels.last_mut().unwrap() = level;
        }
        if levels.is_empty() {
            levels.push(0);
        }
    }
    levels
}

//! Going back in a session and on from what was left: in the chat on a terminal, by lines, and as
//! other commands show it.

use std::fs;

use serde_json::json;

use crate::support::chat::Chat;
use crate::support::command::{Place, Ran};
use crate::support::server::{Seen, Server};
use crate::support::talk::{Talk, settings};

const POINTERS: &str = include_str!("../fixtures/sessions/pointer.jsonl");

/// A project with the session `pointer`; its lines.
fn place_with_session() -> (Place, Vec<&'static str>) {
    let place = Place::new();
    fs::create_dir(place.work().join(".git")).unwrap();
    place.file(".etch/sessions/pointer.jsonl", POINTERS);
    (place, POINTERS.lines().collect())
}

#[test]
fn a_session_is_shown_along_its_chain_and_says_where_something_was_left() {
    let (place, lines) = place_with_session();
    let shown = place.etch(["show", "pointer"]).run().exits(0);
    let out = shown.out();
    let edit = out.find("── result  edit ok").unwrap();
    let pointer =
        out.find("── fork  2026-07-01 09:16:00  what followed here, up to event p15, was left\n");
    let next = out.find("is it beta?").unwrap();
    assert!(edit < pointer.unwrap() && pointer.unwrap() < next, "{out}");
    assert!(!out.contains("gamma") && !out.contains("rewind"), "{out}");
    assert!(out.contains("3 prompts, 4 answers, 1 tool call"), "{out}");
    // As JSON: the same events, the pointer among them, byte for byte.
    let json = place.etch(["show", "pointer", "--json"]).run().exits(0);
    let chain: Vec<&str> = [0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17].map(|at| lines[at]).to_vec();
    assert_eq!(json.out(), format!("[\n{}\n]\n", chain.join(",\n")));
    let listed = place.etch(["sessions"]).run().exits(0);
    assert_eq!(listed.out(), "2026-07-01 09:01  pointer  what is in a.txt?\n");
}

/// What a request says after its instructions: role and text, or the names of its calls.
fn said(seen: &Seen) -> Vec<String> {
    let body = seen.json();
    let messages = body["messages"].as_array().unwrap().iter();
    let messages = messages.filter(|message| message["role"] != "system");
    messages
        .map(|message| {
            let role = message["role"].as_str().unwrap();
            match message["content"].as_str() {
                Some(text) if !text.is_empty() => format!("{role}: {text}"),
                _ => format!("{role} calls {}", message["tool_calls"][0]["function"]["name"]),
            }
        })
        .collect()
}

/// A chat over these lines.
fn chat(place: &Place, server: &Server, lines: &[&str]) -> Ran {
    settings(place.etch(["chat"]), server).stdin(lines.join("\n") + "\n").run()
}

/// Where each stands in the output, in this order.
#[track_caller]
fn in_order(out: &str, wanted: &[&str]) {
    let mut from = 0;
    for want in wanted {
        let at = out[from..].find(want);
        from += at.unwrap_or_else(|| panic!("no {want:?} behind {:?} in {out}", &out[..from]));
    }
}

#[test]
fn on_a_terminal_one_goes_back_before_a_prompt_and_on_from_what_was_left() {
    let place = Place::new();
    let write = json!({"path": "new.txt", "content": "x\n"}).to_string();
    let server = Server::start([
        Chat::answer("the first answer"),
        Chat::calls(&[("c1", "write", &write)]),
        Chat::answer("the second answer"),
        Chat::answer("the other answer"),
        Chat::answer("the third answer"),
    ]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.keys("one\r");
    talk.sees("the first answer");
    talk.keys("make new.txt\r");
    talk.sees("the second answer");
    talk.loses("Esc to cancel");
    // Left without a choice, nothing is changed.
    talk.keys("/rewind \r");
    let shown = talk.sees("back before:");
    in_order(&shown, &["back before:", "> make new.txt", "  one"]);
    talk.keys("\u{1b}");
    talk.loses("back before:");
    talk.keys("/rewind \r");
    talk.sees("back before:");
    talk.keys("new");
    talk.loses("  one");
    talk.keys("\r");
    let shown = talk.sees("› make new.txt");
    assert!(shown.contains("• back before 'make new.txt'; 1 prompt is left behind"), "{shown}");
    assert!(shown.contains("what was left behind changed new.txt"), "{shown}");
    assert!(place.work().join("new.txt").exists());
    talk.keys(", or rather do not\r");
    talk.sees("the other answer");
    talk.loses("Esc to cancel");
    talk.keys("/fork \r");
    let shown = talk.sees("on from the end of:");
    in_order(&shown, &["on from the end of:", "> make new.txt", "left ", "  one", "after this"]);
    talk.keys("\r");
    let shown = talk.sees("• on from the end of 'make new.txt'");
    in_order(
        &shown,
        &["• on from the end of 'make new.txt'", "> make new.txt", "the second answer"],
    );
    talk.keys("and now\r");
    talk.sees("the third answer");
    let seen = server.seen();
    assert_eq!(
        said(&seen[3]),
        ["user: one", "assistant: the first answer", "user: make new.txt, or rather do not"]
    );
    let last = said(&seen[4]);
    assert_eq!(last[..3], ["user: one", "assistant: the first answer", "user: make new.txt"]);
    assert_eq!(last[3], "assistant calls \"write\"");
    assert_eq!(last[5..], ["assistant: the second answer", "user: and now"]);
}

#[test]
fn by_lines_places_are_chosen_by_their_numbers() {
    let place = Place::new();
    let server = Server::start(["1st", "2nd", "3rd", "4th", "5th"].map(Chat::answer));
    let ran = chat(
        &place,
        &server,
        &[
            "/rewind",
            "one",
            "/fork",
            "two",
            "three",
            "/rewind",
            "/rewind 2",
            "other",
            "/fork",
            "/fork 1",
            "/rewind 9",
            "/rewind x",
            "last",
        ],
    );
    assert_eq!(ran.code, Some(0), "what cannot be gone to is no failed turn");
    in_order(
        ran.out(),
        &[
            "Error: there is no prompt to go back to yet",
            "1st",
            "Error: there is no other place to go on from yet",
            "3rd",
            "back before\n",
            "  1  three  ",
            "  2  two  ",
            "  3  one  ",
            "/rewind N goes back before the prompt N",
            "back before 'two'; 2 prompts are left behind, /fork 1 goes on from them again",
            "4th",
            "on from the end of\n",
            "  1  three  left ",
            "  2  one  after this, ",
            "/fork N goes on from the end of N",
            "on from the end of 'three'; 1 prompt is left behind",
            "> three",
            "3rd",
            "Error: /rewind takes 1 to 3 here: how many prompts to go back",
            "Error: it is /rewind, or /rewind N",
            "5th",
        ],
    );
    let seen = server.seen();
    assert_eq!(said(&seen[3]), ["user: one", "assistant: 1st", "user: other"]);
    assert_eq!(
        said(&seen[4]),
        [
            "user: one",
            "assistant: 1st",
            "user: two",
            "assistant: 2nd",
            "user: three",
            "assistant: 3rd",
            "user: last",
        ]
    );
    // The next one goes on where this one was.
    server.push(Chat::answer("6th"));
    let ran = settings(place.etch(["resume"]), &server).stdin("more\n").run().exits(0);
    in_order(ran.out(), &["4 prompts so far; the last:", "> last", "5th", "> more", "6th"]);
    assert_eq!(said(&server.seen()[5])[..7], said(&seen[4]));
}

#[test]
fn what_is_told_of_the_session_is_that_of_the_place() {
    let place = Place::new();
    place.file("a.txt", "one\n");
    place.file("b.txt", "one\n");
    let turn = |path: &str, command: &str| {
        let edit = json!({"path": path, "edits": [{"oldText": "one", "newText": "two"}]});
        let (read, edit) = (json!({"path": path}).to_string(), edit.to_string());
        let bash = json!({"command": command}).to_string();
        let name = |call: &str| format!("{call} {path}");
        let [c1, c2, c3] = ["c1", "c2", "c3"].map(name);
        let calls = [(&*c1, "read", &*read), (&*c2, "edit", &*edit), (&*c3, "bash", &*bash)];
        [Chat::calls(&calls), Chat::answer(&format!("changed {path}"))]
    };
    let server = Server::start(
        [turn("a.txt", "seq 1 50"), turn("b.txt", "seq 60 99")].into_iter().flatten(),
    );
    let ran = chat(&place, &server, &["one", "two", "/rewind 1", "/diff", "/show", "/copy"]);
    let out = ran.exits(0);
    let (_, after) = out.out().split_once("back before 'two'").unwrap();
    assert!(after.contains("changed b.txt"), "{after}");
    assert_eq!((after.matches("b.txt").count(), after.matches("a.txt").count()), (1, 1), "{after}");
    assert_eq!(fs::read_to_string(place.work().join("b.txt")).unwrap(), "two\n");
    assert!(after.contains("  37\n") && !after.contains("  77\n"), "of the first turn: {after}");
}

#[test]
fn what_was_read_in_a_part_that_is_left_was_not_read() {
    let place = Place::new();
    place.file("a.txt", "one\n");
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]});
    let server = Server::start([
        Chat::calls(&[("c1", "read", "{\"path\":\"a.txt\"}")]),
        Chat::answer("I have read it."),
        Chat::calls(&[("c2", "edit", &edit.to_string())]),
        Chat::answer("as you like"),
    ]);
    chat(&place, &server, &["read it", "/rewind 1", "change it"]).exits(0);
    let refused = said(&server.seen()[3]).pop().unwrap();
    assert!(refused.starts_with("tool: tool error:") && refused.contains("read"), "{refused}");
    assert_eq!(place.work().join("a.txt").metadata().unwrap().len(), 4);
}

#[test]
fn a_chat_that_is_killed_after_going_back_is_there_when_it_is_resumed() {
    let place = Place::new();
    let server = Server::start(["1st", "2nd", "3rd"].map(Chat::answer));
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.keys("one\r");
    talk.sees("1st");
    talk.keys("two\r");
    talk.sees("2nd");
    talk.loses("Esc to cancel");
    talk.keys("/rewind 1\r");
    talk.sees("› two");
    place.sh(&format!("kill -9 {}", talk.pty.pid())).run().exits(0);
    talk.pty.wait();
    settings(place.etch(["-p", "next", "--continue"]), &server).run().exits(0);
    assert_eq!(said(&server.seen()[2]), ["user: one", "assistant: 1st", "user: next"]);
}

#[test]
fn a_command_that_goes_back_waits_for_the_turn() {
    let place = Place::new();
    let gate = crate::support::server::Gate::new();
    let answer = Chat::new().text("a long ").text("answer").finish("stop").done();
    let server =
        Server::start([answer.reply().wait_at(200, &gate), Chat::answer("something else")]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.keys("go\r");
    talk.sees("Esc to cancel");
    server.wait_for(1);
    talk.keys("/rewind 1\r");
    talk.sees("waits: /rewind 1");
    gate.open();
    let shown = talk.sees("› go");
    in_order(&shown, &["a long answer", "back before 'go'; 1 prompt is left behind"]);
    talk.keys(" on\r");
    talk.sees("something else");
    assert_eq!(said(&server.seen()[1]), ["user: go on"]);
}

#[test]
fn a_copy_of_the_session_is_a_file_of_its_own_and_goes_back_too() {
    let place = Place::new();
    let server = Server::start(["1st", "2nd", "3rd"].map(Chat::answer));
    let ran = chat(&place, &server, &["one", "two", "/fork new", "/rewind 1", "other"]).exits(0);
    in_order(ran.out(), &["2 prompts so far", "back before 'two'", "3rd"]);
    assert_eq!(said(&server.seen()[2]), ["user: one", "assistant: 1st", "user: other"]);
    let listed = place.etch(["sessions"]).run().exits(0);
    assert_eq!(listed.out().lines().count(), 2, "{}", listed.out());
}

#[test]
fn a_session_that_is_not_kept_has_no_places() {
    let place = Place::new();
    let server = Server::start(["1st"].map(Chat::answer));
    let ran = settings(place.etch(["chat", "--no-session"]), &server)
        .stdin("one\n/rewind 1\n")
        .run()
        .exits(0);
    in_order(ran.out(), &["1st", "Error: no log is kept of this session"]);
}

//! What the model sees, as `etch context` shows it.

use serde_json::Value;

use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::server::Server;

fn context(place: &Place, args: &[&str]) -> String {
    let ran = place.etch([&["context"], args].concat()).run();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.out().to_owned()
}

fn sizes(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&context(place, &[&["--json"], args].concat())).unwrap()
}

#[test]
fn sizes_add_up_and_need_neither_session_nor_provider() {
    let place = Place::new();
    place.file("AGENTS.md", "Be brief.\n");
    let seen = sizes(&place, &["-c", "context.window_tokens=32768"]);
    let sum = |field: &str| {
        let pieces = seen["pieces"].as_array().unwrap().iter();
        pieces.map(|piece| piece[field].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(seen["bytes"], sum("bytes"));
    assert_eq!(seen["tokens"], sum("tokens"));
    assert_eq!(seen["promptMaxTokens"], 24_576);
    assert!(seen.get("sessionId").is_none(), "{seen}");
    let shown = context(&place, &[]);
    assert!(shown.contains("AGENTS.md") && shown.contains("not known"), "{shown}");
    let fewer = sizes(&place, &["--tools", "read"]);
    assert!(fewer["tokens"].as_u64() < seen["tokens"].as_u64());
}

/// What is dumped is what the server gets with the next prompt.
#[test]
fn the_dump_is_what_is_sent() {
    let place = Place::new();
    place.file("AGENTS.md", "Be brief, and say été.\n");
    let server = Server::start([
        Chat::calls(&[("c1", "ls", "{}")]),
        Chat::answer("all listed"),
        Chat::answer("bye"),
    ]);
    let base = server.base_url();
    let run = |prompt: &str, more: &[&str]| {
        let settings = ["--provider", "openai", "--model", "m", "--base-url", &base, "-p", prompt];
        let ran = place.etch([&settings[..], more].concat()).env("OPENAI_API_KEY", "k").run();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    run("what is here", &[]);
    let dump = context(&place, &["--dump"]);
    run("and now", &["--continue"]);
    let body = server.seen()[2].json();
    let messages = body["messages"].as_array().unwrap();
    // The instructions are one message of all layers, the rest is the conversation.
    let system = messages[0]["content"].as_str().unwrap();
    let layers = dump.split("\n===== Conversation Replay =====").next().unwrap();
    let texts: Vec<&str> = layers
        .split("\n===== ")
        .skip(1)
        .map(|part| part.split_once(" =====\n").unwrap().1.trim_end_matches('\n'))
        .collect();
    assert_eq!(texts.join("\n\n"), system);
    for message in &messages[1..messages.len() - 1] {
        let text = message["content"].as_str().unwrap_or_default();
        assert!(dump.contains(text), "{text}");
    }
    for tool in body["tools"].as_array().unwrap() {
        assert!(dump.contains(tool["function"]["description"].as_str().unwrap()));
    }
    // A file is never overwritten.
    let into = || place.etch(["context", "--dump", "seen.txt"]).run().code;
    assert_eq!((into(), into()), (Some(0), Some(2)));
    let full = std::fs::read_to_string(place.work().join("seen.txt")).unwrap();
    assert!(full.contains("and now") && full.contains("bye"), "{full}");
}

#[test]
fn a_status_is_what_a_session_took() {
    let place = Place::new();
    assert_eq!(place.etch(["-p", "hi", "--provider", "echo"]).run().code, Some(0));
    let status = place.etch(["status"]).run().out().to_owned();
    assert_eq!(status, place.etch(["show", "--stats"]).run().out());
    assert!(!status.is_empty());
}

//! One conversation over every protocol and transport: the log is the same but for the facts of
//! the transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::responses::Responses;
use crate::support::server::{Reply, Server, Ws};

/// The conversation's answers in the form of either protocol.
enum Said {
    Calls(&'static [(&'static str, &'static str, &'static str)]),
    Text(&'static str),
}

const SCRIPT: &[Said] = &[
    Said::Calls(&[("c1", "read", "{\"path\":\"a.txt\"}"), ("c2", "ls", "{}")]),
    Said::Calls(&[("c3", "write", "{\"path\":\"b.txt\",\"content\":\"b\"}")]),
    Said::Text("Done: é \u{1f980}."),
];

fn chat(at: usize) -> Reply {
    match SCRIPT[at] {
        Said::Calls(calls) => Chat::calls(calls),
        Said::Text(text) => Chat::answer(text),
    }
}

fn responses(at: usize) -> Responses {
    let mut answer = Responses::numbered(at as u64 + 1);
    match SCRIPT[at] {
        Said::Calls(calls) => {
            for (id, name, arguments) in calls {
                answer = answer.call(id, name, arguments);
            }
        }
        Said::Text(text) => answer = answer.message(text),
    }
    answer.usage(10, 0, 2, 0).completed()
}

fn server() -> Server {
    let posts = Arc::new(AtomicUsize::new(0));
    Server::with(move |seen| match (seen.method.as_str(), seen.path.as_str()) {
        ("GET", _) => Reply::websocket(Ws::each(|message| {
            responses(message.number).frames().iter().fold(Ws::new(), |ws, frame| ws.text(frame))
        })),
        (_, "/v1/chat/completions") => chat(posts.fetch_add(1, Ordering::SeqCst)),
        _ => responses(posts.fetch_add(1, Ordering::SeqCst)).reply(),
    })
}

/// The events without what is different in every run, and without the transport's facts.
fn log(args: &[&str]) -> Vec<Value> {
    let (place, server) = (Place::new(), server());
    place.file("a.txt", "one\n");
    let ran = place
        .etch(["-p", "do it", "--no-config", "--json", "--provider", "openai", "--model", "m"])
        .env("ETCH_BASE_URL", server.base_url())
        .args(args)
        .run()
        .exits(0);
    let mut events = Vec::new();
    for line in ran.out().lines() {
        let mut event: Value = serde_json::from_str(line).unwrap();
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        if matches!(kind.as_str(), "model.metrics" | "model.response" | "session.started") {
            continue;
        }
        for name in ["id", "parentId", "time", "sessionId", "durationMillis"] {
            event[name].take();
        }
        if kind == "message.tool" {
            event["data"]["durationMillis"].take();
        }
        events.push(event);
    }
    events
}

#[test]
fn one_conversation_has_one_log_whatever_carries_it() {
    let chat = log(&["--openai-api", "chat"]);
    let http = log(&["--openai-api", "responses"]);
    let socket = log(&["--openai-api", "responses", "--openai-transport", "websocket"]);
    assert_eq!(chat.last().unwrap()["answer"], json!("Done: é \u{1f980}."));
    assert_eq!(chat, http);
    assert_eq!(http, socket);
}

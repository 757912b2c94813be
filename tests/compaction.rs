//! Conversations that become too large: summaries, folding, refusals, and what a crash leaves.
//!
//! The server here counts as a strict one does: a request above its window is refused with the
//! number, whatever etch had estimated.

mod chat;
mod fold;
mod long;
mod manual;
mod trouble;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::chat::Chat;
use crate::support::command::{Place, Ran};
use crate::support::server::{Reply, Seen, Server};

/// The sections that a summary of ours has.
pub const SUMMARY: &str = "## Goal\nfinish the rounds\n## Next steps\n1. go on";

/// What a request holds of the conversation: text of messages and calls, without JSON.
fn texts(body: &Value) -> String {
    let mut all = String::new();
    for message in body["messages"].as_array().unwrap() {
        all.push_str(message["content"].as_str().unwrap_or_default());
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            all.push_str(call["function"]["arguments"].as_str().unwrap());
        }
    }
    all
}

/// Tokens as this server counts them, tools included.
pub fn count(body: &Value) -> usize {
    let tools = body.get("tools").map(Value::to_string).unwrap_or_default();
    (texts(body).len() + tools.len()).div_ceil(4)
}

pub fn is_summary_request(body: &Value) -> bool {
    texts(body).contains("<transcript>")
}

/// `400` as a server says that it takes no more than `window`.
pub fn too_large(window: usize, counted: usize) -> Reply {
    let message = format!(
        "This model's maximum context length is {window} tokens. However, your messages \
         resulted in {counted} tokens."
    );
    let error = serde_json::json!({"error": {"message": message, "type":
        "invalid_request_error", "code": "context_length_exceeded"}});
    Reply::json(400, &error)
}

/// What happened at the server.
#[derive(Default)]
pub struct Log {
    /// Of each request, in order: whether it asked for a summary, and its body.
    pub bodies: Mutex<Vec<(bool, Vec<u8>)>>,
    pub refused: AtomicUsize,
}

impl Log {
    pub fn summaries(&self) -> usize {
        self.bodies.lock().unwrap().iter().filter(|(summary, _)| *summary).count()
    }

    /// The bodies of the requests that went on with the conversation.
    pub fn rounds(&self) -> Vec<Vec<u8>> {
        let bodies = self.bodies.lock().unwrap();
        bodies.iter().filter(|(summary, _)| !summary).map(|(_, body)| body.clone()).collect()
    }
}

/// A server with a window. `round` answers request number N (from 0) of the conversation,
/// `summary` number N of the summaries.
pub fn server(
    window: usize,
    round: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static,
    summary: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static,
) -> (Server, Arc<Log>) {
    let log = Arc::new(Log::default());
    let (inner, rounds, summaries) = (Arc::clone(&log), AtomicUsize::new(0), AtomicUsize::new(0));
    let server = Server::with(move |seen: &Seen| {
        if seen.method != "POST" {
            return Reply::json(404, &serde_json::json!({"error": {"message": "not here"}}));
        }
        let body = seen.json();
        let is_summary = is_summary_request(&body);
        inner.bodies.lock().unwrap().push((is_summary, seen.body.clone()));
        let counted = count(&body);
        if window < counted {
            inner.refused.fetch_add(1, Ordering::Relaxed);
            return too_large(window, counted);
        }
        match is_summary {
            true => summary(summaries.fetch_add(1, Ordering::Relaxed), &body),
            false => round(rounds.fetch_add(1, Ordering::Relaxed), &body),
        }
    });
    (server, log)
}

pub fn summarised(_: usize, _: &Value) -> Reply {
    Chat::answer(SUMMARY)
}

/// A run of etch against the server, JSON lines out.
pub fn run(place: &Place, server: &Server, args: &[&str]) -> Ran {
    let base = server.base_url();
    let mut all = vec!["--provider", "openai", "--model", "m", "--base-url", &base, "--json"];
    all.extend_from_slice(args);
    place.etch(all).env("OPENAI_API_KEY", "k").run()
}

/// The events that a run printed.
pub fn events(ran: &Ran) -> Vec<Value> {
    ran.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

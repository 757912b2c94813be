//! The adapter alone: long streams from a loopback server, however they are cut into chunks.

use etch::cancel::Cancel;
use etch::model::{Finish, ModelEvent, Request};

use crate::measure::{command, median, row, used};
use crate::support::chat::Chat;
use crate::support::model::{model_at, user};
use crate::support::server::{Reply, Server};

/// In a process of its own: one call to this server, whose deltas are counted and dropped.
pub const CALL: &str = "ETCH_BENCH_CALL";

pub fn print() {
    if let Ok(base_url) = std::env::var(CALL) {
        return call(&base_url);
    }
    for deltas in [0, 10_000, 100_000] {
        let mut chat = Chat::new().text("word ");
        for _ in 0..deltas {
            chat = chat.text("word ");
        }
        let reply = chat.finish("stop").done().reply();
        if deltas > 0 {
            show(&format!("{deltas} deltas, a chunk each"), &reply.clone().chunk_per_event());
        }
        show(&format!("{deltas} deltas, one chunk"), &reply);
    }
}

fn show(what: &str, reply: &Reply) {
    let figures = median(5, || {
        let server = Server::start([reply.clone()]);
        let mut command = command(std::env::current_exe().unwrap());
        used(command.arg("stream").env(CALL, server.base_url()))
    });
    row(what, figures);
}

fn call(base_url: &str) {
    let model = model_at(base_url);
    let messages = [user("go")];
    let request = Request {
        model: "m",
        system: &[],
        messages: &messages,
        tools: &[],
        session_id: "s",
        reasoning_effort: None,
        reasoning_summary: None,
        max_output_tokens: None,
    };
    let mut bytes = 0;
    let mut sink = |event: ModelEvent| {
        if let ModelEvent::TextDelta(delta) = event {
            bytes += delta.len();
        }
    };
    assert_eq!(model.stream(&request, &Cancel::new(), &mut sink), Ok(Finish::Stop));
    assert!(bytes > 0);
}

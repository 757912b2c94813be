//! What the model calls of a session took: attempt by attempt in the log, in `run.result`, and in
//! `etch show --stats`.

use serde_json::{Value, json};

use crate::support::chat::Chat;
use crate::support::command::{Place, TestCommand};
use crate::support::responses::Responses;
use crate::support::server::{Reply, Server};

fn etch(place: &Place, server: &Server, args: &[&str]) -> TestCommand {
    place
        .etch(args)
        .arg("--no-config")
        .env("ETCH_PROVIDER", "openai")
        .env("ETCH_MODEL", "m")
        .env("ETCH_BASE_URL", server.base_url())
        .env("ETCH_SESSION_DIR", place.work().join("sessions"))
}

/// A refusal, a stream that is cut, and an answer.
fn troubled() -> Server {
    let cut = Chat::new().text("Hel").reply().then_cut();
    let done = Chat::new().text("Hello").finish("stop").usage(100, 5).done().reply();
    Server::start([Reply::error(500, "x", "boom"), cut, done])
}

/// Type and, of the facts of an attempt, the data, without what varies.
fn told(line: &Value) -> Value {
    let mut data = line["data"].clone();
    let kind = line["type"].as_str().unwrap();
    let is_fact = ["model.usage", "model.response", "model.metrics", "model.retry"].contains(&kind);
    if let Value::Object(fields) = &mut data {
        fields.retain(|name, _| {
            !name.ends_with("Millis") && !name.ends_with("Bytes") && name != "message"
        });
    }
    if is_fact { json!([kind, data]) } else { json!(kind) }
}

#[test]
fn every_attempt_has_its_own_events_and_all_count() {
    let place = Place::new();
    let server = troubled();
    let ran = etch(&place, &server, &["-p", "hi", "--json"]).run().exits(0);
    let lines: Vec<Value> =
        ran.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (result, events) = lines.split_last().unwrap();
    let response = json!(["model.response", {"providerResponseId": "chatcmpl-1", "model": "m"}]);
    let metrics = json!(["model.metrics",
        {"transport": "http", "requests": 1, "inputMessages": 1, "toolCount": 7}]);
    let retry = |attempt, mut more: Value| {
        more["attempt"] = json!(attempt);
        more["attemptsMax"] = json!(5);
        json!(["model.retry", more])
    };
    let want = json!([
        "session.started",
        "message.user",
        metrics,
        retry(1, json!({"kind": "server", "status": 500, "outputDiscarded": false})),
        response,
        metrics,
        retry(2, json!({"kind": "network", "outputDiscarded": true})),
        "message.assistant",
        ["model.usage", {"inputTokens": 100, "outputTokens": 5, "totalTokens": 105}],
        response,
        metrics,
    ]);
    assert_eq!(events.iter().map(told).collect::<Value>(), want);
    assert_eq!(result["usage"]["totalTokens"], 105);
    // Each attempt has sent one body, and counted it.
    let sent: Vec<_> = server.seen().iter().map(|seen| json!(seen.body.len())).collect();
    let counted = events.iter().filter(|line| line["type"] == "model.metrics");
    assert_eq!(counted.map(|line| line["data"]["requestBytes"].clone()).collect::<Vec<_>>(), sent);
}

#[test]
fn what_a_failed_attempt_took_is_in_the_sum_of_the_run() {
    let place = Place::new();
    let failed = Responses::new().event(&json!({"type": "response.failed", "response": {
        "id": "resp_1", "model": "m", "status": "failed", "output": [],
        "error": {"code": "server_error", "message": "boom"},
        "usage": {"input_tokens": 100, "output_tokens": 3, "total_tokens": 103},
    }}));
    let server = Server::start([failed.reply(), Responses::answer("Hi").reply()]);
    let args = ["-p", "hi", "--openai-api", "responses", "--json"];
    let ran = etch(&place, &server, &args).run().exits(0);
    let lines: Vec<Value> =
        ran.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let spent = lines.iter().filter(|line| line["type"] == "model.usage");
    let usage = |input, output| json!({"inputTokens": input, "outputTokens": output, "totalTokens": input + output});
    let want = [usage(100, 3), usage(10, 2)];
    assert_eq!(spent.map(|line| line["data"].clone()).collect::<Vec<_>>(), want);
    assert_eq!(lines.last().unwrap()["usage"], usage(110, 5));
}

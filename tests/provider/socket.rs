//! The Responses protocol over a WebSocket: one connection, only what is new, and what happens
//! when that does not work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use etch::cancel::Cancel;
use etch::host::Host;
use etch::model::{ErrorKind, Finish, Message, Metrics, Model, ModelEvent};
use etch::provider::ProviderSettings;
use serde_json::{Value, json};

use super::responses::said;
use crate::support::model::{Outcome, ask, ask_with, model, settings, user};
use crate::support::responses::{Responses, error_message};
use crate::support::server::{Reply, Seen, Server, Ws};

fn travelling(server: &Server, transport: &str) -> Box<dyn Model> {
    let mut settings: ProviderSettings = settings(&format!("{}/v1", server.url()));
    settings.api = "responses".to_owned();
    settings.transport = transport.to_owned();
    model(&settings, Host::fixed())
}

fn frames(responses: Responses) -> Ws {
    responses.frames().iter().fold(Ws::new(), |ws, frame| ws.text(frame))
}

fn calls(number: u64) -> Responses {
    let id = format!("call_{number}");
    let arguments = json!({"path": format!("file-{number}")}).to_string();
    Responses::numbered(number).reasoning("hm").call(&id, "ls", &arguments).completed()
}

fn answer(number: u64) -> Responses {
    Responses::numbered(number).message("done").completed()
}

fn metrics(outcome: &Outcome) -> Metrics {
    let found = outcome.events.iter().rev().find_map(|event| match event {
        ModelEvent::Metrics(metrics) => Some(metrics.clone()),
        _ => None,
    });
    found.expect("metrics")
}

fn notices(outcome: &Outcome) -> Vec<&str> {
    let notices = outcome.events.iter().filter_map(|event| match event {
        ModelEvent::Notice(text) => Some(text.as_str()),
        _ => None,
    });
    notices.collect()
}

/// What a turn of three calls and an answer is made of, whoever asks.
fn script(number: u64) -> Responses {
    if number.is_multiple_of(4) { answer(number) } else { calls(number) }
}

/// Three turns of four model calls; sizes of the requests as the metrics tell them.
fn three_turns(model: &dyn Model) -> Vec<Metrics> {
    let mut messages = Vec::new();
    let mut all = Vec::new();
    for turn in 0..3 {
        messages.push(user(&format!("turn {turn}: {}", "words ".repeat(200))));
        for _ in 0..4 {
            let outcome = ask(model, &messages);
            assert!(outcome.result.is_ok(), "{:?}", outcome.result);
            all.push(metrics(&outcome));
            messages.extend(said(&outcome));
        }
    }
    all
}

#[test]
fn twelve_calls_in_three_turns_use_one_connection_and_send_only_what_is_new() {
    let socket = Server::start([Reply::websocket(Ws::each(|message| {
        frames(script(message.number as u64 + 1))
    }))]);
    let count = AtomicU64::new(0);
    let http =
        Server::with(move |_: &Seen| script(count.fetch_add(1, Ordering::SeqCst) + 1).reply());
    let sent = three_turns(&*travelling(&socket, "websocket"));
    let full = three_turns(&*travelling(&http, "http"));
    let sum = |all: &[Metrics], field: fn(&Metrics) -> u64| all.iter().map(field).sum::<u64>();
    assert_eq!(sum(&sent, |m| m.web_socket_connections), 1);
    assert_eq!(sum(&sent, |m| m.web_socket_reuses), 11);
    assert_eq!(sum(&sent, |m| m.continuation_requests), 11);
    assert_eq!(sum(&sent, |m| m.continuation_fallbacks), 0);
    assert!(sent.iter().all(|m| m.transport == "websocket"));
    let bytes = |all: &[Metrics]| all.iter().map(|m| m.request_bytes).collect::<Vec<_>>();
    println!("websocket: {:?}, in all {}", bytes(&sent), sum(&sent, |m| m.request_bytes));
    println!("http:      {:?}, in all {}", bytes(&full), sum(&full, |m| m.request_bytes));
    // The same kind of call costs the same at the end of the conversation as at its beginning.
    let (early, late) = (sent[1].request_bytes, sent[10].request_bytes);
    assert!(late <= early + 8, "{early} {late}");
    assert!(full[10].request_bytes > full[1].request_bytes + 2000);
    let messages = socket.messages();
    assert_eq!(messages.len(), 12);
    assert!(messages.iter().all(|message| message.connection == 0));
    for (at, message) in messages.iter().enumerate() {
        let body = message.json();
        assert_eq!(body["type"], "response.create");
        assert_eq!(body.get("stream"), None);
        assert_eq!(body["instructions"], "be brief");
        let previous = (at > 0).then(|| json!(format!("resp_{at}")));
        assert_eq!(body.get("previous_response_id"), previous.as_ref());
        let items = body["input"].as_array().unwrap();
        assert_eq!(items.len(), 1, "{body}");
        let kind = if at % 4 == 0 { "message" } else { "function_call_output" };
        assert_eq!(items[0]["type"], kind);
    }
}

/// Two calls over one connection, the second one with the changed request.
fn second_call(
    change_messages: fn(&mut Vec<Message>),
    change: fn(&mut etch::model::Request<'_>),
) -> Value {
    let server = Server::start([Reply::websocket(Ws::each(|message| {
        frames(script(message.number as u64 + 1))
    }))]);
    let model = travelling(&server, "websocket");
    let mut messages = vec![user("go")];
    messages.extend(said(&ask(&*model, &messages)));
    change_messages(&mut messages);
    let outcome = ask_with(&*model, &messages, &Cancel::new(), &mut |_| {}, change);
    assert!(outcome.result.is_ok());
    assert_eq!(metrics(&outcome).web_socket_connections, 0);
    server.messages()[1].json()
}

#[test]
fn anything_that_has_changed_is_sent_with_the_whole_conversation() {
    let continued = |body: &Value| body.get("previous_response_id").is_some();
    assert!(continued(&second_call(|_| {}, |_| {})));
    let full = |body: Value| {
        assert!(!continued(&body), "{body}");
        assert_eq!(body["input"][0]["content"][0]["type"], "input_text", "{body}");
    };
    full(second_call(|_| {}, |request| request.model = "other"));
    full(second_call(|_| {}, |request| request.tools = &[]));
    full(second_call(|_| {}, |request| request.system = &[]));
    full(second_call(|_| {}, |request| request.reasoning_effort = Some("high")));
    full(second_call(|messages| messages[0] = user("something else"), |_| {}));
    full(second_call(|messages| messages.insert(0, user("before")), |_| {}));
    full(second_call(
        |messages| {
            for part in &mut messages[1].parts {
                if let etch::model::Part::ToolCall(call) = part {
                    call.arguments = "{\"path\":\"edited\"}".into();
                }
            }
        },
        |_| {},
    ));
}

#[test]
fn a_response_that_the_server_forgot_is_replaced_by_the_whole_on_the_same_connection() {
    let lost = error_message(400, "previous_response_not_found", "no such response", &[]);
    let ws = Ws::each(move |message| match message.number {
        0 => frames(calls(1)),
        1 => Ws::new().text(&lost),
        _ => frames(answer(3)),
    });
    let server = Server::start([Reply::websocket(ws)]);
    let model = travelling(&server, "auto");
    let mut messages = vec![user("go")];
    messages.extend(said(&ask(&*model, &messages)));
    let outcome = ask(&*model, &messages);
    assert_eq!(outcome.text(), "done");
    let metrics = metrics(&outcome);
    assert_eq!((metrics.web_socket_connections, metrics.requests), (0, 2));
    assert_eq!((metrics.continuation_fallbacks, metrics.continuation_fallback_status), (1, 400));
    assert_eq!(metrics.continuation_fallback_error, "no such response");
    assert!(outcome.retries().is_empty() && notices(&outcome).is_empty());
    let last = server.messages()[2].json();
    assert_eq!(last.get("previous_response_id"), None);
    assert_eq!(last["input"].as_array().unwrap().len(), 4);
}

#[test]
fn a_connection_that_ended_is_replaced_once_and_the_whole_is_sent() {
    let limit = error_message(400, "websocket_connection_limit_reached", "60 minutes", &[]);
    let first = || frames(calls(1));
    for end in [
        Ws::new().expect().then(first()).close(1001),
        Ws::new().expect().then(first()).expect().cut(),
        Ws::new().expect().then(first()).expect().text(&limit),
    ] {
        let again = Ws::new().expect().then(frames(answer(2)));
        let server = Server::start([Reply::websocket(end), Reply::websocket(again)]);
        let model = travelling(&server, "websocket");
        let mut messages = vec![user("go")];
        messages.extend(said(&ask(&*model, &messages)));
        let outcome = ask(&*model, &messages);
        assert_eq!((&outcome.result, outcome.text().as_str()), (&Ok(Finish::Stop), "done"));
        let metrics = metrics(&outcome);
        assert_eq!((metrics.web_socket_connections, metrics.continuation_fallbacks), (1, 1));
        assert!(!metrics.continuation_fallback_error.is_empty());
        assert!(outcome.retries().is_empty());
        let last = server.messages().last().unwrap().json();
        assert_eq!(last.get("previous_response_id"), None);
    }
}

/// A server whose upgrades are answered by `upgrade` and whose posts are answered well.
fn with_http(upgrade: impl Fn(usize) -> Reply + Send + Sync + 'static) -> (Server, Arc<AtomicU64>) {
    let upgrades = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&upgrades);
    let server = Server::with(move |seen| match seen.method.as_str() {
        "GET" => upgrade(counted.fetch_add(1, Ordering::SeqCst) as usize),
        _ => answer(9).reply(),
    });
    (server, upgrades)
}

#[test]
fn auto_goes_on_over_http_when_no_socket_works_and_says_so_once() {
    type Upgrade = fn(usize) -> Reply;
    let cases: [(Upgrade, u64); 7] = [
        (|_| Reply::error(426, "upgrade_required", "no WebSocket here"), 1),
        (|_| Reply::error(404, "not_found", "nothing here"), 1),
        // Who forbids an upgrade, as proxies do, may let a request through.
        (|_| Reply::error(403, "blocked", "not through here"), 1),
        (|_| Reply::error(200, "", "a page"), 1),
        (|_| Reply::raw(*b"SSH-2.0-x\r\n\r\n"), 2),
        (|_| Reply::websocket(Ws::new().expect().close(1008)), 1),
        (|_| Reply::websocket(Ws::new().expect().close(1012)), 2),
    ];
    for (upgrade, upgrades_max) in cases {
        let (server, upgrades) = with_http(upgrade);
        let model = travelling(&server, "auto");
        for round in 0..2 {
            let outcome = ask(&*model, &[user("go")]);
            assert_eq!(outcome.text(), "done");
            assert!(outcome.retries().is_empty());
            let said = notices(&outcome);
            assert_eq!(said.len(), usize::from(round == 0), "{said:?}");
            let metrics = metrics(&outcome);
            assert_eq!(metrics.transport, "http");
            assert_eq!(metrics.transport_fallbacks, u64::from(round == 0));
            assert_eq!(metrics.transport_fallback_error.is_empty(), round == 1);
        }
        let count = upgrades.load(Ordering::SeqCst);
        assert!((1..=upgrades_max).contains(&count), "{count}");
    }
}

#[test]
fn a_drop_before_the_answer_is_repaired_on_the_socket() {
    let (server, upgrades) = with_http(|number| {
        Reply::websocket(match number {
            0 => Ws::new().expect().cut(),
            _ => Ws::each(|_| frames(answer(1))),
        })
    });
    let model = travelling(&server, "auto");
    for _ in 0..2 {
        let outcome = ask(&*model, &[user("go")]);
        assert_eq!((outcome.text().as_str(), outcome.retries().len()), ("done", 0));
        assert_eq!(metrics(&outcome).transport, "websocket");
    }
    assert_eq!(upgrades.load(Ordering::SeqCst), 2);
}

#[test]
fn a_drop_in_the_middle_of_an_answer_is_a_repeated_attempt() {
    let (server, _) = with_http(|number| {
        Reply::websocket(match number {
            0 => {
                let half = Responses::numbered(1).message("half").frames();
                half[..5].iter().fold(Ws::new().expect(), |ws, frame| ws.text(frame)).cut()
            }
            _ => Ws::each(|_| frames(answer(2))),
        })
    });
    let outcome = ask(&*travelling(&server, "auto"), &[user("go")]);
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    assert_eq!(outcome.retries().len(), 1);
    assert_eq!(metrics(&outcome).transport, "websocket");
}

#[test]
fn what_a_lost_answer_had_said_is_void_when_http_takes_over() {
    let (server, upgrades) = with_http(|number| {
        let half = Responses::numbered(number as u64).message("half").frames();
        Reply::websocket(
            half[..5].iter().fold(Ws::new().expect(), |ws, frame| ws.text(frame)).cut(),
        )
    });
    let outcome = ask(&*travelling(&server, "auto"), &[user("go")]);
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    let retries = outcome.retries();
    assert_eq!((retries.len(), upgrades.load(Ordering::SeqCst)), (3, 3));
    assert!(retries.iter().all(|retry| retry.output_discarded));
    assert_eq!((metrics(&outcome).transport.as_str(), notices(&outcome).len()), ("http", 1));
    let is_retry = |event: &ModelEvent| matches!(event, ModelEvent::Retry(_));
    let last = outcome.events.iter().rposition(is_retry).unwrap();
    let is_text = |event: &&ModelEvent| matches!(event, ModelEvent::TextDelta(_));
    let after: Vec<_> = outcome.events[last..].iter().filter(is_text).collect();
    assert!(!after.is_empty());
    assert!(!format!("{after:?}").contains("half"), "{after:?}");
}

#[test]
fn a_socket_that_is_cut_whenever_an_answer_begins_is_left_after_some_attempts() {
    let (server, upgrades) = with_http(|_| {
        let begun = Responses::numbered(1).frames();
        Reply::websocket(begun.iter().fold(Ws::new().expect(), |ws, frame| ws.text(frame)).cut())
    });
    let model = travelling(&server, "auto");
    let outcome = ask(&*model, &[user("go")]);
    assert_eq!((outcome.text().as_str(), outcome.retries().len()), ("done", 3));
    assert_eq!(notices(&outcome).len(), 1);
    let why = &outcome.retries()[0].error.message;
    assert!(why.ends_with("without closing it (code 1006), after response.in_progress"), "{why}");
    assert_eq!(ask(&*model, &[user("go")]).text(), "done");
    assert_eq!(upgrades.load(Ordering::SeqCst), 3);
}

#[test]
fn errors_of_the_account_are_errors_on_a_socket_too() {
    let quota = error_message(429, "insufficient_quota", "pay first", &[]);
    let (server, _) = with_http(move |_| Reply::websocket(Ws::new().expect().text(&quota)));
    let outcome = ask(&*travelling(&server, "auto"), &[user("go")]);
    assert_eq!((outcome.error().kind, outcome.error().status), (ErrorKind::Quota, Some(429)));
    let (server, _) = with_http(|_| Reply::error(401, "invalid_api_key", "who are you?"));
    let outcome = ask(&*travelling(&server, "auto"), &[user("go")]);
    assert_eq!(outcome.error().kind, ErrorKind::Auth);
    let wait = error_message(429, "rate_limit_exceeded", "slow down", &[("retry-after-ms", "3")]);
    let (server, _) = with_http(move |number| {
        Reply::websocket(match number {
            0 => Ws::new().expect().text(&wait).then_each(|_| frames(answer(2))),
            _ => Ws::each(|_| frames(answer(2))),
        })
    });
    let outcome = ask(&*travelling(&server, "auto"), &[user("go")]);
    assert_eq!(outcome.text(), "done");
    assert_eq!(outcome.retries().len(), 1);
}

#[test]
fn an_error_in_the_middle_of_an_answer_joins_it_to_no_other() {
    for (status, code) in [(400, "unsupported_parameter"), (401, "token_expired")] {
        let error = error_message(status, code, "no include", &[]);
        let (server, _) = with_http(move |_| {
            let half = Responses::numbered(1).message("half").frames();
            let ws = half[..5].iter().fold(Ws::new().expect(), |ws, frame| ws.text(frame));
            Reply::websocket(ws.text(&error).then_each(|_| frames(answer(2))))
        });
        let outcome = ask(&*travelling(&server, "auto"), &[user("go")]);
        assert_eq!(outcome.error().status, Some(status));
        assert!(!outcome.text().contains("done"), "{}", outcome.text());
        assert_eq!((server.messages().len(), outcome.retries().len()), (1, 0));
    }
}

#[test]
fn a_key_that_is_not_taken_is_named_on_a_socket_too() {
    let refused = error_message(401, "invalid_api_key", "who are you?", &[]);
    let (server, _) = with_http(move |_| Reply::websocket(Ws::new().expect().text(&refused)));
    let outcome = ask(&*travelling(&server, "websocket"), &[user("go")]);
    assert_eq!(outcome.error().hint, "check the key from OPENAI_API_KEY");
}

#[test]
fn the_end_of_the_response_before_is_not_the_answer() {
    let late = json!({"type": "response.done", "response": {"id": "resp_1", "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "old"}]}]}});
    let ws = Ws::each(move |message| match message.number {
        0 => frames(calls(1)),
        _ => Ws::new().json(&late).then(frames(answer(2))),
    });
    let server = Server::start([Reply::websocket(ws)]);
    let model = travelling(&server, "websocket");
    let mut messages = vec![user("go")];
    messages.extend(said(&ask(&*model, &messages)));
    let outcome = ask(&*model, &messages);
    assert_eq!(outcome.text(), "done");
    assert_eq!(metrics(&outcome).continuation_requests, 1);
}

/// The windows of an account, some of the way through.
const LIMITS: &[(&str, &str)] = &[
    ("x-codex-primary-used-percent", "100"),
    ("x-codex-primary-window-minutes", "300"),
    ("x-codex-primary-reset-after-seconds", "7800"),
    ("x-codex-secondary-used-percent", "41.5"),
    ("x-codex-secondary-window-minutes", "10080"),
];
const LIMITS_SHOWN: &str = "5 h window: 100 % used, resets in 2 h 10 min; week: 42 % used";

#[test]
fn a_limit_that_is_hit_is_shown_with_its_windows() {
    let failed = || Responses::numbered(1).failed("usage_limit_reached", "used up");
    let refused = json!({"error": {"type": "usage_limit_reached", "message": "used up"}});
    let with_limits =
        |reply: Reply| LIMITS.iter().fold(reply, |reply, (name, value)| reply.header(name, value));
    let check = |transport: &str, reply: &(dyn Fn() -> Reply + Sync), hint: &str| {
        let server = Server::start([reply()]);
        let outcome = ask(&*travelling(&server, transport), &[user("go")]);
        let error = outcome.error();
        assert_eq!((error.kind, error.hint.as_str()), (ErrorKind::Quota, hint), "{transport}");
        assert_eq!(server.seen().len(), 1, "a plan that is used up is not asked again");
    };
    check("http", &|| with_limits(Reply::json(429, &refused)), LIMITS_SHOWN);
    check("http", &|| with_limits(failed().reply()), LIMITS_SHOWN);
    check("websocket", &|| with_limits(Reply::json(429, &refused)), LIMITS_SHOWN);
    let frame = error_message(429, "usage_limit_reached", "used up", LIMITS);
    check("websocket", &|| Reply::websocket(Ws::new().expect().text(&frame)), LIMITS_SHOWN);
    let event = json!({"type": "codex.rate_limits", "plan_type": "plus", "rate_limits":
        {"primary": {"used_percent": 100, "window_minutes": 300}}});
    let frames = || failed().frames();
    let told = || {
        let ws = Ws::new().expect().json(&event);
        Reply::websocket(frames().iter().fold(ws, |ws, frame| ws.text(frame)))
    };
    check("websocket", &told, "5 h window: 100 % used");
}

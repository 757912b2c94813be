//! Answers as servers send them, over a real socket.

use std::sync::Arc;
use std::time::Duration;

use etch::host::Host;
use etch::model::{ErrorKind, Finish, ModelEvent};
use etch::provider::{ProviderSettings, build};
use serde_json::json;

use crate::support::chat::Chat;
use crate::support::command::TempDir;
use crate::support::model::{ask, model, model_at, settings, user};
use crate::support::server::{Framing, Reply, Server};

const TEXT: &str = "a界🦀b";
const ARGUMENTS: &str = r#"{"path":"n.md","content":"naïve—界"}"#;

#[test]
fn characters_cut_by_network_reads_arrive_whole() {
    let text = Chat::new().text(TEXT).finish("stop").done();
    let call = Chat::new().call(0, "c1", "write", ARGUMENTS).finish("tool_calls").done();
    let bytes = text.clone().into_bytes();
    let crab = bytes.windows(4).position(|four| four == "🦀".as_bytes()).unwrap();
    let replies = (1..4)
        .map(|inside| text.clone().reply().cut_at(crab + inside))
        .chain([text.clone().reply().bytewise(), call.clone().reply().bytewise()])
        .chain([call.reply().framing(Framing::UntilClose).bytewise()]);
    let server = Server::start(replies);
    let model = model_at(&server.base_url());
    for _ in 0..4 {
        let outcome = ask(&*model, &[user("go")]);
        assert_eq!((outcome.text().as_str(), outcome.result), (TEXT, Ok(Finish::Stop)));
    }
    for _ in 0..2 {
        let outcome = ask(&*model, &[user("go")]);
        assert_eq!(outcome.calls()[0].arguments, ARGUMENTS);
        assert_eq!(outcome.result, Ok(Finish::ToolCalls));
    }
}

#[test]
fn bytes_that_are_no_text_are_an_error_and_never_replaced() {
    let broken =
        Chat::new().bytes(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\"}}]}\n\n");
    let server = Server::with(move |_| broken.clone().done().reply());
    let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
    assert_eq!(outcome.error().kind, ErrorKind::Protocol);
    assert!(outcome.error().message.contains("no UTF-8"), "{}", outcome.error());
    assert_eq!(outcome.text(), "");
    assert_eq!(server.seen().len(), 5);
}

#[test]
fn what_a_server_counted_of_an_answer_that_was_cut_is_told_and_nothing_else() {
    let counted = Chat::new().text("a").usage(90, 7).text("b").usage(90, 9);
    let zeros = Chat::new().text("a").usage(0, 0);
    let error = r#"{"error":{"message":"boom","code":500}}"#;
    for (reply, want) in [
        (counted.clone().reply().then_cut(), vec![(90, 9, false)]),
        (counted.data(error).reply(), vec![(90, 9, false)]),
        (zeros.reply().then_cut(), vec![]),
        (Chat::new().text("a").reply().then_cut(), vec![]),
        (Reply::error(500, "x", "boom"), vec![]),
    ] {
        let server = Server::start([reply, Reply::error(401, "x", "no key")]);
        let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
        assert_eq!(outcome.error().kind, ErrorKind::Auth);
        let usage = outcome.events.iter().filter_map(|event| match event {
            ModelEvent::Usage(usage) => Some((usage.input, usage.output, usage.estimated)),
            _ => None,
        });
        assert_eq!(usage.collect::<Vec<_>>(), want);
    }
}

#[test]
fn a_stream_that_holds_no_answer_is_a_failed_call() {
    let mention = "The model is busy right now.";
    for (body, want) in [
        (": a\n\n: b\n\n: c\n\n", "held no answer"),
        ("data: [DONE]\n\n", "held no answer"),
        (mention, mention),
    ] {
        let server = Server::with(move |_| Reply::sse(body));
        let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
        assert_eq!(outcome.error().kind, ErrorKind::Protocol);
        assert!(outcome.error().message.contains(want), "{}", outcome.error());
        assert!(!outcome.events.contains(&ModelEvent::TextStart));
        assert_eq!(server.seen().len(), 5, "{body}");
    }
}

#[test]
fn an_answer_whose_connection_just_closes_is_whole_when_its_end_was_seen() {
    let whole = Chat::new().text("Hi").finish("stop").done();
    let no_done = Chat::new().text("Hi").finish("stop");
    let server = Server::start([
        whole.clone().reply().then_cut(),
        whole.reply().then_reset(),
        no_done.clone().reply().then_cut(),
        no_done.reply().framing(Framing::UntilClose),
    ]);
    let model = model_at(&server.base_url());
    for _ in 0..4 {
        let outcome = ask(&*model, &[user("go")]);
        assert_eq!((outcome.text().as_str(), outcome.result), ("Hi", Ok(Finish::Stop)));
    }
}

#[test]
fn an_answer_that_is_cut_is_asked_for_again_and_said_to_be_void() {
    let half = Chat::new().text("Hel");
    let replies = [
        half.clone().reply().then_cut(),
        half.clone().reply(),
        half.clone().reply().then_half_close(),
        half.reply().framing(Framing::Length).then_reset(),
        Chat::answer("Hello"),
    ];
    let server = Server::start(replies);
    let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
    assert_eq!(outcome.result, Ok(Finish::Stop));
    assert_eq!(outcome.text(), "HelHelHelHelHello");
    let retries = outcome.retries();
    assert_eq!(retries.len(), 4);
    for retry in retries {
        assert!(retry.output_discarded, "{retry:?}");
        let text = &retry.error.message;
        assert!(
            text.contains("cut the answer off") || text.contains("before the answer was"),
            "{text}"
        );
    }
}

#[test]
fn one_connection_serves_many_calls() {
    let server = Server::with(|_| Chat::answer("Hi"));
    let model = model_at(&server.base_url());
    for _ in 0..5 {
        assert_eq!(ask(&*model, &[user("go")]).text(), "Hi");
    }
    assert_eq!((server.seen().len(), server.connections()), (5, 1));
}

#[test]
fn a_server_that_never_ends_its_body_costs_a_connection_and_no_answer() {
    let server =
        Server::with(|_| Chat::new().text("Hi").finish("stop").done().reply().then_stall());
    let model = model_at(&server.base_url());
    for _ in 0..3 {
        let outcome = ask(&*model, &[user("go")]);
        assert_eq!((outcome.text().as_str(), outcome.result), ("Hi", Ok(Finish::Stop)));
    }
    assert_eq!(server.connections(), 3);
}

#[test]
fn a_server_that_goes_on_without_saying_anything_does_not_hold_a_complete_answer_back() {
    let complete = || Chat::new().text("Hi").finish("stop").reply();
    let empty = Chat::new().delta(&json!({})).into_bytes();
    for noise in [b": ping\n\n".to_vec(), b"\n".to_vec(), empty] {
        let reply = complete().then_flood(noise);
        let server = Server::with(move |_| reply.clone());
        let mut settings = settings(&server.base_url());
        settings.timeouts.idle = Duration::from_millis(300);
        let outcome = ask(&*model(&settings, Host::fixed()), &[user("go")]);
        assert_eq!((outcome.text().as_str(), outcome.result), ("Hi", Ok(Finish::Stop)));
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn an_answer_in_one_document_is_read_whatever_it_is_called() {
    let body = r#"{"id":"r","choices":[{"message":{"role":"assistant","content":"Hi"},
        "finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let stream = Chat::new().text("Hi").finish("stop").done().into_bytes();
    let server = Server::start([
        Reply::new(200, "application/json", body),
        Reply::new(200, "text/event-stream", body).bytewise(),
        Reply::new(200, "text/plain", stream.clone()),
        Reply::new(200, "application/json", stream.clone()),
        Reply::new(200, "", stream).without_content_type(),
    ]);
    let model = model_at(&server.base_url());
    for _ in 0..5 {
        let outcome = ask(&*model, &[user("go")]);
        assert_eq!((outcome.text().as_str(), outcome.result), ("Hi", Ok(Finish::Stop)));
    }
}

#[test]
fn a_recording_takes_the_same_way_as_a_live_answer() {
    let dir = TempDir::new();
    let call = Chat::new().text("é").call(0, "c1", "read", "{\"path\":\"a\"}").finish("tool_calls");
    dir.write("response-1.sse", call.clone().done().into_bytes());
    dir.write("response-2.sse", Chat::new().text("done").finish("stop").into_bytes());
    let mut settings = ProviderSettings::new("replay", "m");
    settings.recording_dir = Some(dir.path().into());
    let recorded = build(&settings, Arc::new(Host::fixed())).unwrap();
    let server = Server::start([call.done().reply()]);
    let live = ask(&*model_at(&server.base_url()), &[user("go")]);
    let played = ask(&*recorded, &[user("go")]);
    let shown = |events: &[ModelEvent]| {
        let kept = events.iter().filter(|event| !matches!(event, ModelEvent::Metrics(_)));
        format!("{:?}", kept.collect::<Vec<_>>()).replace("\"openai\"", "\"replay\"")
    };
    assert_eq!(shown(&played.events), shown(&live.events));
    assert_eq!(ask(&*recorded, &[user("go")]).text(), "done");
    let spent = ask(&*recorded, &[user("go")]);
    assert_eq!(spent.error().message, "the recording has 2 responses; one more was asked for");
}

#[test]
fn an_end_without_content_is_the_servers_word_and_not_an_error_of_the_wire() {
    let server = Server::start([
        Chat::new().finish("stop").usage(5, 0).done().reply(),
        Chat::new().text("  \n").finish("stop").done().reply(),
        Chat::new().reasoning("hm").finish("stop").done().reply(),
        Chat::new().finish("content_filter").done().reply(),
    ]);
    let model = model_at(&server.base_url());
    let results: Vec<_> = (0..4).map(|_| ask(&*model, &[user("go")]).result).collect();
    let stop = Ok(Finish::Stop);
    assert_eq!(results, [stop.clone(), stop.clone(), stop, Ok(Finish::ContentFilter)]);
}

//! Failures: what is said, with which hint, and what is never said.

use std::time::Duration;

use etch::host::Host;
use etch::model::ErrorKind;
use etch::provider::local;
use etch::provider::openai::access::Access;
use etch::provider::retry::RetryPolicy;
use serde_json::json;

use crate::support::chat::Chat;
use crate::support::model::{ask, model, model_at, settings, user};
use crate::support::server::{Framing, Reply, Server};

#[test]
fn a_refused_key_names_its_source_and_is_never_shown() {
    let server = Server::with(|seen| {
        let sent = seen.header("authorization").unwrap_or_default().to_owned();
        Reply::error(401, "invalid_api_key", &format!("Incorrect key provided: {sent}"))
    });
    let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
    let error = outcome.error();
    assert_eq!((error.kind, error.status), (ErrorKind::Auth, Some(401)));
    assert_eq!(error.hint, "check the key from OPENAI_API_KEY");
    assert!(!format!("{outcome:?}").contains("ABCDEF"), "{outcome:?}");
    assert_eq!(server.seen().len(), 1);
    let mut without = settings(&server.base_url());
    without.access = Access::None;
    let outcome = ask(&*model(&without, Host::fixed()), &[user("go")]);
    assert!(outcome.error().hint.contains("no key is set"), "{}", outcome.error());
}

#[test]
fn a_key_does_not_leak_through_streams_and_pages_either() {
    for reply in [
        Chat::new().data(r#"{"error":{"message":"bad sk-test-ABCDEF"}}"#).reply(),
        Reply::new(502, "text/html", "<html><title>sk-test-ABCDEF</title></html>"),
        Reply::sse("your key is sk-test-ABCDEF"),
        Reply::new(302, "text/plain", "x").header("Location", "http://h/?key=sk-test-ABCDEF"),
    ] {
        let server = Server::with(move |_| reply.clone());
        let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
        assert!(outcome.error().message.contains("[redacted]"), "{}", outcome.error());
        assert!(!format!("{outcome:?}").contains("ABCDEF"), "{outcome:?}");
    }
}

#[test]
fn a_server_that_answers_a_plain_connection_with_tls_or_nothing_may_want_https() {
    // A fatal alert, "handshake failure", as TLS servers send it to plain text.
    for bytes in [&b"\x15\x03\x01\x00\x02\x02\x28"[..], b""] {
        let server = Server::with(move |_| Reply::raw(bytes));
        let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
        assert_eq!(outcome.error().hint, "if it speaks TLS, write https in its address");
    }
}

#[test]
fn nobody_listening_on_this_machine_fails_at_once_with_a_hint() {
    let server = Server::start([]);
    let (base, address) = (server.base_url(), server.address());
    drop(server);
    let outcome = ask(&*model_at(&base), &[user("go")]);
    let error = outcome.error();
    assert_eq!(error.kind, ErrorKind::Network);
    let want = format!("connection to {address} refused; is the server running?");
    assert_eq!(error.to_string(), want);
    assert_eq!(outcome.retries().len(), 0);
}

#[test]
fn the_classes_of_refusals_reach_the_caller() {
    for (status, code, message, kind, calls) in [
        (400, "context_length_exceeded", "too long", ErrorKind::ContextOverflow, 1),
        (400, "x", "prompt is too long: 9 tokens > 8 maximum", ErrorKind::ContextOverflow, 1),
        (429, "insufficient_quota", "pay", ErrorKind::Quota, 1),
        (429, "rate_limit_exceeded", "slow", ErrorKind::RateLimit, 5),
        (503, "x", "busy", ErrorKind::Overloaded, 5),
        (500, "x", "boom", ErrorKind::Server, 5),
        (500, "x", "Jinja Exception: roles must alternate", ErrorKind::InvalidRequest, 1),
        (404, "model_not_found", "the model 'm' does not exist", ErrorKind::InvalidRequest, 1),
    ] {
        let server = Server::with(move |_| Reply::error(status, code, message));
        let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
        assert_eq!(outcome.error().kind, kind, "{status} {message}");
        assert_eq!(outcome.error().status, Some(status));
        assert!(outcome.error().message.contains(message), "{}", outcome.error());
        assert_eq!(server.seen().len(), calls, "{status} {message}");
    }
}

#[test]
fn a_server_that_is_no_web_server_is_said_to_be_none() {
    for bytes in ["SSH-2.0-OpenSSH_9.2\r\n", "\0\u{1}\u{2}", ""] {
        let server = Server::with(move |_| Reply::raw(bytes));
        let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
        let text = outcome.error().to_string();
        assert!(text.contains(&server.address().to_string()), "{text}");
        assert!(!text.contains("://") && !text.contains("ureq"), "{text}");
    }
}

#[test]
fn hostile_servers_end_in_a_clear_error() {
    let junk = vec![b'x'; 64 << 10];
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    let half = "5\r\ndata:\r\nZZZ\r\n";
    for (reply, kind, want) in [
        (Reply::sse("data: ").then_flood(junk.clone()), ErrorKind::Protocol, "larger than 8 MiB"),
        (Reply::sse("{").then_flood(junk.clone()), ErrorKind::Protocol, "larger than 8 MiB"),
        (
            Reply::new(500, "text/plain", "boom").framing(Framing::Chunked).then_flood(junk),
            ErrorKind::Server,
            "boomxxx",
        ),
        (Reply::error(400, "x", "no").then_stall(), ErrorKind::InvalidRequest, ": no"),
        (Reply::error(400, "x", "no").then_reset(), ErrorKind::InvalidRequest, "HTTP 400"),
        (Reply::raw(format!("{chunked}{half}")), ErrorKind::Protocol, "HTTP server should"),
        (
            Reply::raw(format!("{head}X: {}\r\n\r\n", "y".repeat(1 << 20))),
            ErrorKind::Network,
            "before the answer was complete",
        ),
        (
            Reply::sse(b"\x1f\x8b\x08\0\0\0\0\0".to_vec()).header("Content-Encoding", "gzip"),
            ErrorKind::Protocol,
            "sent its answer compressed (gzip), which was not asked for",
        ),
        (Reply::raw("HTTP/1.1 200"), ErrorKind::Network, "before the answer was complete"),
        (Reply::raw(format!("{head}Content-Length: 99\r\n\r\n: a")), ErrorKind::Network, "before"),
    ] {
        let server = Server::with(move |_| reply.clone());
        let mut settings = settings(&server.base_url());
        settings.retry = RetryPolicy::never();
        settings.timeouts.idle = Duration::from_millis(500);
        let outcome = ask(&*model(&settings, Host::fixed()), &[user("go")]);
        let error = outcome.error();
        assert!(error.message.contains(want), "{want}: {error}");
        assert_eq!(error.kind, kind, "{error}");
    }
}

#[test]
fn an_answer_without_an_end_is_left_when_it_is_larger_than_any_model_writes() {
    let long = "x".repeat(64 << 10);
    let arguments = |text: &str| {
        let delta = json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]});
        Chat::new().delta(&delta)
    };
    let call = json!({"tool_calls": [{"function": {"name": "ls", "arguments": "{}"}}]});
    let objects: String = (0..200).map(|number| format!("{{\"path\":\"{number}\"}}")).collect();
    let head = || Chat::new().call(0, "c1", "ls", "");
    let bytes = "sent an answer of more than 8 MiB";
    let calls = "sent more than 128 tool calls in one answer";
    for (reply, want) in [
        (Chat::new().reply().then_flood(Chat::new().text(&long).into_bytes()), bytes),
        (Chat::new().reply().then_flood(Chat::new().text(&" \n".repeat(999)).into_bytes()), bytes),
        (Chat::new().reply().then_flood(Chat::new().reasoning(&long).into_bytes()), bytes),
        (head().reply().then_flood(arguments(&long).into_bytes()), bytes),
        (Chat::new().reply().then_flood(Chat::new().delta(&call).into_bytes()), calls),
        (head().bytes(&arguments(&objects).into_bytes()).finish("tool_calls").reply(), calls),
    ] {
        let server = Server::with(move |_| reply.clone());
        let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
        assert!(outcome.error().message.contains(want), "{want}: {}", outcome.error());
        assert_eq!((outcome.error().kind, server.seen().len()), (ErrorKind::Protocol, 1));
    }
}

#[test]
fn a_page_of_a_portal_is_no_answer() {
    let page = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>";
    let server = Server::with(move |_| Reply::new(200, "text/html", page));
    let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
    assert!(outcome.error().message.contains("a web page (Sign in)"), "{}", outcome.error());
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn local_servers_are_found_by_their_list_of_models() {
    let models = |ids: &[&str]| {
        let list: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
        Reply::json(200, &json!({"object": "list", "data": list}))
    };
    let one = Server::start([models(&["qwen", "other"]), models(&["qwen"])]);
    let empty = Server::start([models(&[])]);
    let other = Server::start([Reply::new(404, "text/plain", "no")]);
    let silent = Server::start([Reply::silence()]);
    let port = |server: &Server| server.address().port();
    let gone = {
        let server = Server::start([]);
        port(&server)
    };
    let (host, cancel) = (Host::fixed(), etch::cancel::Cancel::new());
    let all = [port(&silent), port(&other), port(&one), port(&empty), gone];
    let found = local::probe_ports(&host, &all, &cancel);
    let url = |server: &Server| format!("http://localhost:{}/v1", port(server));
    let models: Vec<_> =
        found.servers.iter().map(|s| (s.base_url.clone(), s.model.clone())).collect();
    assert_eq!(models, [(url(&one), Some("qwen".to_owned())), (url(&empty), None)]);
    assert_eq!(found.only(), None);
    assert!(local::none_to_use(&found).message.contains("several model servers"));
    let found = local::probe_ports(&host, &[port(&one), gone], &cancel);
    assert_eq!(found.only(), Some((url(&one).as_str(), "qwen")));
    assert_eq!(one.seen()[0].path, "/v1/models");
    let found = local::probe_ports(&host, &[gone], &cancel);
    assert!(local::none_to_use(&found).to_string().contains("no model server answers"));
}

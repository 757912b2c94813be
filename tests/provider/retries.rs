//! When it is tried again, after which wait, and what ends the trying.

use std::time::Duration;

use etch::cancel::{Cancel, Reason};
use etch::host::Host;
use etch::model::{ErrorKind, Finish, ModelEvent};
use etch::provider::retry::RetryPolicy;
use etch::wire::http::Timeouts;

use crate::support::chat::Chat;
use crate::support::model::{Outcome, ask, ask_with, model, model_at, settings, user};
use crate::support::server::{Gate, Reply, Server};

fn limited(retry_after: Option<&str>) -> Reply {
    let reply = Reply::error(429, "rate_limit_exceeded", "slow down");
    match retry_after {
        Some(value) => reply.header("Retry-After", value),
        None => reply,
    }
}

/// The wait that was announced and the gap between the two requests.
fn announced(reply: Reply) -> (u64, Duration) {
    let server = Server::start([reply, Chat::answer("Hi")]);
    let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
    assert_eq!(outcome.text(), "Hi");
    let seen = server.seen();
    (outcome.retries()[0].delay_millis, seen[1].at - seen[0].at)
}

#[test]
fn a_servers_wait_is_the_least_that_is_waited() {
    for (reply, millis) in [
        (limited(Some("0.2")), 200),
        (limited(Some("0.05")).header("retry-after-ms", "150"), 150),
        (Reply::error(503, "x", "busy").header("Retry-After", "0.1"), 100),
        (Reply::error(429, "rate_limit_exceeded", "Please try again in 120ms."), 120),
    ] {
        let (delay, gap) = announced(reply);
        assert_eq!(delay, millis);
        assert!(gap >= Duration::from_millis(millis), "{gap:?}");
    }
    // The fixed clock stands at 2026-01-01T00:00:00Z and moves a second with every reading.
    let (delay, gap) = announced(limited(Some("Thu, 01 Jan 2026 00:00:01 GMT")));
    assert_eq!(delay, 1000);
    assert!(gap >= Duration::from_secs(1), "{gap:?}");
}

#[test]
fn junk_in_place_of_a_wait_falls_back_to_our_own() {
    for junk in [None, Some("-5"), Some("soon"), Some("0"), Some("NaN")] {
        assert_eq!(announced(limited(junk)).0, 1, "{junk:?}");
    }
}

#[test]
fn a_wait_that_is_too_long_ends_the_call_and_names_the_time() {
    let server = Server::start([limited(Some("99999"))]);
    let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
    let text = outcome.error().to_string();
    assert!(text.contains("slow down") && text.contains("27 hours"), "{text}");
    assert_eq!(outcome.retries().len(), 0);
}

#[test]
fn attempts_are_counted_in_what_is_shown_and_each_has_its_metrics() {
    let server = Server::start([limited(None), Reply::error(500, "x", "boom"), Chat::answer("Hi")]);
    let outcome = ask(&*model_at(&server.base_url()), &[user("go")]);
    assert_eq!(outcome.result, Ok(Finish::Stop));
    let shown: Vec<_> = outcome
        .retries()
        .iter()
        .map(|r| (r.attempt, r.attempts_max, r.error.kind, r.output_discarded))
        .collect();
    let want = [(1, 5, ErrorKind::RateLimit, false), (2, 5, ErrorKind::Server, false)];
    assert_eq!(shown, want);
    let metrics = outcome.events.iter().filter_map(|event| match event {
        ModelEvent::Metrics(metrics) => Some(metrics.clone()),
        _ => None,
    });
    let each: Vec<_> = metrics.collect();
    let counts: Vec<_> = each.iter().map(|m| (m.requests, m.transport.as_str())).collect();
    assert_eq!(counts, [(1, "http"), (1, "http"), (1, "http")]);
    let metrics = &each[2];
    let body = server.seen()[2].body.len();
    assert_eq!(metrics.request_bytes, u64::try_from(body).unwrap());
    assert_eq!((metrics.input_messages, metrics.tool_count), (1, 3));
}

#[test]
fn the_wait_between_attempts_can_be_cancelled() {
    let server = Server::start([limited(Some("60"))]);
    let cancel = Cancel::new();
    let from_watch = cancel.clone();
    let outcome = ask_with(
        &*model_at(&server.base_url()),
        &[user("go")],
        &cancel,
        &mut |event| {
            if let ModelEvent::Retry(_) = event {
                from_watch.cancel(Reason::Interrupt);
            }
        },
        |_| {},
    );
    assert_eq!(outcome.error().kind, ErrorKind::Cancelled);
    assert_eq!(server.seen().len(), 1);
}

/// A call to a server that falls silent, with these timeouts, and two attempts.
fn silent(reply: &Reply, timeouts: Timeouts) -> (Outcome, usize) {
    let reply = reply.clone();
    let server = Server::with(move |_| reply.clone());
    let mut settings = settings(&server.base_url());
    settings.timeouts = timeouts;
    settings.retry = RetryPolicy { attempts_max: 2, ..settings.retry };
    let outcome = ask(&*model(&settings, Host::fixed()), &[user("go")]);
    let count = server.seen().len();
    (outcome, count)
}

#[test]
fn silence_ends_an_attempt_and_the_limit_names_itself() {
    let long = Duration::from_secs(20);
    let timeouts = Timeouts { connect: long, headers: long, idle: Duration::from_millis(200) };
    let (outcome, count) = silent(&Chat::new().text("Hel").reply().then_stall(), timeouts);
    let text = &outcome.error().message;
    assert!(text.contains("sent nothing for 0.2 s in the middle of an answer"), "{text}");
    assert!(text.contains("gave up after 2 attempts"), "{text}");
    assert_eq!((outcome.error().kind, count), (ErrorKind::Network, 2));
    assert!(outcome.retries()[0].output_discarded);

    let timeouts = Timeouts { connect: long, headers: Duration::from_millis(200), idle: long };
    let (outcome, count) = silent(&Reply::silence(), timeouts);
    let text = &outcome.error().message;
    assert!(text.contains("timed out after 0.2 s waiting for response headers from 127"), "{text}");
    assert_eq!((outcome.error().kind, count), (ErrorKind::Network, 2));
}

#[test]
fn silence_after_a_complete_answer_is_its_end() {
    let long = Duration::from_secs(20);
    let timeouts = Timeouts { connect: long, headers: long, idle: Duration::from_millis(200) };
    let reply = Chat::new().text("Hi").finish("stop").usage(1, 1).reply().then_stall();
    let (outcome, count) = silent(&reply, timeouts);
    assert_eq!((outcome.text().as_str(), outcome.result, count), ("Hi", Ok(Finish::Stop), 1));
}

#[test]
fn comments_are_signs_of_life() {
    // Each pause is shorter than the limit, all of them together are longer.
    let idle = Duration::from_secs(2);
    let comment = b": keep-alive\n\n";
    let gates: Vec<Gate> = (0..3).map(|_| Gate::new()).collect();
    let mut reply = Chat::new().bytes(&comment.repeat(4)).text("Hi").finish("stop").done().reply();
    for (idx, gate) in gates.iter().enumerate() {
        reply = reply.wait_at(comment.len() * (idx + 1), gate);
    }
    let server = Server::start([reply]);
    let mut settings = settings(&server.base_url());
    settings.timeouts.idle = idle;
    let pacer = std::thread::spawn(move || {
        for gate in gates {
            let _ = crossbeam_channel::after(Duration::from_millis(800)).recv();
            gate.open();
        }
    });
    let outcome = ask(&*model(&settings, Host::fixed()), &[user("go")]);
    assert_eq!((outcome.text().as_str(), outcome.retries().len()), ("Hi", 0));
    pacer.join().unwrap();
}

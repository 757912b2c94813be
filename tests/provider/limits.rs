//! A plan whose limit is hit: what a person is told of its windows, whatever carries the refusal.

use serde_json::{Value, json};

use super::requests_of;
use crate::support::command::Place;
use crate::support::issuer::{Issuer, now};
use crate::support::responses::{Responses, error_message};
use crate::support::server::{Reply, Ws};

/// 2 h 10 min, and half a minute for a busy machine.
const LEFT: i64 = 7830;

/// The same windows, some of the way through, as headers have them.
const HEADERS: &[(&str, &str)] = &[
    ("x-codex-primary-used-percent", "100"),
    ("x-codex-primary-window-minutes", "300"),
    ("x-codex-primary-reset-after-seconds", "7830"),
    ("x-codex-secondary-used-percent", "41.6"),
    ("x-codex-secondary-window-minutes", "10080"),
    ("x-codex-secondary-reset-after-seconds", "180030"),
];
const WINDOWS: &str =
    "5 h window: 100 % used, resets in 2 h 10 min; week: 42 % used, resets in 2 d 2 h";
const ONLY_WHEN: &str = "the limit resets in 2 h 10 min";

/// And as an event of a stream has them.
fn event() -> Value {
    json!({"type": "codex.rate_limits", "plan_type": "plus", "rate_limits": {
        "primary": {"used_percent": 100, "window_minutes": 300, "reset_at": now() + LEFT},
        "secondary": {"used_percent": 41.6, "window_minutes": 10_080,
            "reset_at": now() + 180_030}}})
}

fn with_headers(reply: Reply) -> Reply {
    HEADERS.iter().fold(reply, |reply, (name, value)| reply.header(name, value))
}

fn body(code: &str) -> Value {
    json!({"error": {"type": code, "message": "The usage limit has been reached",
        "plan_type": "plus", "resets_at": now() + LEFT}})
}

/// Runs a prompt with a sign-in; what was said, in one request.
#[track_caller]
fn refused(transport: &str, reply: Reply) -> String {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.store(&place.home.path().join(".etch/auth/openai.json"), 3600);
    issuer.state().answers.push_back(reply);
    let args = ["-p", "hi", "--model", "gpt-5", "--json-result", "--openai-transport", transport];
    let ran = issuer.etch(&place, &args).run().exits(1);
    let result: Value = serde_json::from_str(ran.out()).unwrap();
    assert_eq!(result["error"]["kind"], "quota", "{result}");
    assert_eq!(requests_of(&issuer.server), 1, "a plan that is used up is asked once");
    let hint = result["error"]["hint"].as_str().unwrap_or_default();
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    hint.to_owned()
}

#[test]
fn over_http_the_windows_are_shown_wherever_the_server_told_of_them() {
    let failed = |code: &str| Responses::new().failed(code, "used up");
    let flat = json!({"type": "error", "code": "usage_limit_reached", "message": "used up",
        "resets_in_seconds": LEFT});
    for (what, reply, want) in [
        ("headers", with_headers(Reply::json(429, &body("usage_limit_reached"))), WINDOWS),
        ("a body alone", Reply::json(429, &body("usage_limit_reached")), ONLY_WHEN),
        ("headers alone", with_headers(Reply::new(429, "text/plain", "too many")), WINDOWS),
        ("headers of a stream", with_headers(failed("usage_limit_reached").reply()), WINDOWS),
        ("a rate of a plan", with_headers(failed("rate_limit_exceeded").reply()), WINDOWS),
        ("an event", Responses::new().event(&event()).failed("x", "rate limit").reply(), WINDOWS),
        ("an error event", Responses::new().event(&flat).reply(), ONLY_WHEN),
    ] {
        assert_eq!(refused("http", reply), want, "{what}");
    }
}

#[test]
fn over_a_websocket_too() {
    let upgrade = || HEADERS.iter().fold(Ws::new(), |ws, (name, value)| ws.header(name, value));
    let frames = |ws: Ws, stream: Responses| {
        Reply::websocket(stream.frames().iter().fold(ws.expect(), |ws, frame| ws.text(frame)))
    };
    let failed = |code: &str| Responses::new().failed(code, "used up");
    let frame = |headers| error_message(429, "usage_limit_reached", "used up", headers);
    let mut nested = body("usage_limit_reached");
    nested["type"] = "error".into();
    let told = Responses::new().event(&event());
    for (what, reply, want) in [
        ("a refused upgrade", with_headers(Reply::json(429, &body("x"))), WINDOWS),
        ("headers of a frame", Reply::websocket(Ws::new().expect().text(&frame(HEADERS))), WINDOWS),
        ("headers of the upgrade", Reply::websocket(upgrade().expect().text(&frame(&[]))), WINDOWS),
        ("a frame without status", Reply::websocket(Ws::new().expect().json(&nested)), ONLY_WHEN),
        ("a failed response", frames(upgrade(), failed("usage_limit_reached")), WINDOWS),
        ("a rate of a plan", frames(upgrade(), failed("rate_limit_exceeded")), WINDOWS),
        ("an event", frames(Ws::new(), told.failed("usage_limit_reached", "no")), WINDOWS),
    ] {
        assert_eq!(refused("websocket", reply), want, "{what}");
    }
}

#[test]
fn a_rate_that_passes_soon_is_waited_for() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.store(&place.home.path().join(".etch/auth/openai.json"), 3600);
    let soon = Reply::error(429, "rate_limit_exceeded", "Please try again in 20ms.");
    issuer.state().answers.push_back(with_headers(soon));
    let ran = issuer.etch(&place, &["-p", "hi", "--model", "gpt-5"]).run().exits(0);
    assert_eq!(ran.out(), "Done.\n");
    assert!(ran.stderr.contains("attempt 1 of 5 failed"), "{}", ran.stderr);
    assert_eq!(requests_of(&issuer.server), 2);
}

//! `--print-request`: the request that is printed is the one that would be sent.

use std::path::Path;

use serde_json::Value;

use crate::support::chat::Chat;
use crate::support::command::{Place, Ran};
use crate::support::responses::Responses;
use crate::support::server::{Reply, Server, Ws};

const KEY: &str = "sk-never-shown";

fn server() -> Server {
    Server::with(|seen| match (seen.method.as_str(), seen.path.as_str()) {
        ("GET", _) => Reply::websocket(Ws::each(|message| {
            let answer = Responses::numbered(message.number as u64 + 1).message("ok").completed();
            answer.frames().iter().fold(Ws::new(), |ws, frame| ws.text(frame))
        })),
        (_, "/v1/chat/completions") => Chat::answer("ok"),
        _ => Responses::new().message("ok").completed().reply(),
    })
}

fn run(place: &Place, server: &Server, args: &[&str], stdin: &str) -> Ran {
    let fixed = ["--provider", "openai", "--model", "m", "--no-config"];
    place
        .etch(args)
        .args(fixed)
        .env("ETCH_BASE_URL", server.base_url())
        .env("ETCH_API_KEY", KEY)
        .stdin(stdin)
        .run()
}

/// Every file below the place, with its size.
fn files(dir: &Path) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        match metadata.is_dir() {
            true => all.extend(files(&entry.path())),
            false => all.push((entry.path().to_string_lossy().into_owned(), metadata.len())),
        }
    }
    all.sort();
    all
}

/// Without the session's own id, which is another one in every run.
fn known(mut body: Value) -> Value {
    body.as_object_mut().unwrap().remove("prompt_cache_key");
    body
}

/// What is printed for `args`, held against what the server then gets from them.
#[track_caller]
fn check(args: &[&str], stdin: &str) {
    let (place, server) = (Place::new(), server());
    place.file("notes.txt", "remember\n");
    place.file("AGENTS.md", "Use tabs.\n");
    run(&place, &server, &["-p", "before", "--session", "talk"], "").exits(0);
    let (posts, messages) = (server.seen().len(), server.messages().len());
    let before = files(place.home.path());

    let printed = run(&place, &server, &[args, &["--print-request"]].concat(), stdin).exits(0);
    let as_json = run(&place, &server, &[args, &["--print-request", "--json"]].concat(), stdin);
    assert_eq!(server.seen().len(), posts, "{args:?}: something was sent");
    assert_eq!(files(place.home.path()), before, "{args:?}: something was written");

    let (head, body) = printed.out().split_once("\n\n").unwrap();
    let object: Value = serde_json::from_str(as_json.exits(0).out()).unwrap();
    run(&place, &server, args, stdin).exits(0);
    let sent = match server.messages().get(messages) {
        Some(message) => message.text.clone(),
        None => String::from_utf8(server.seen()[posts].body.clone()).unwrap(),
    };
    let seen = &server.seen()[posts];
    assert!(head.starts_with(&format!("{} ", seen.method)), "{args:?}: {head}");
    assert!(head.lines().next().unwrap().ends_with(&seen.path), "{args:?}: {head}");
    for line in head.lines().skip(1) {
        let (name, value) = line.split_once(": ").unwrap();
        let sent = seen.header(&name.to_ascii_lowercase());
        match name {
            "Authorization" => assert_eq!(value, "Bearer [redacted]"),
            // The session's id.
            _ if sent.is_some_and(|sent| sent.len() == 32) => {}
            _ => assert_eq!(Some(value), sent, "{args:?}: {name}"),
        }
    }
    let parsed: Value = serde_json::from_str(body).unwrap();
    let wanted: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(known(parsed.clone()), known(wanted), "{args:?}");
    assert_eq!(body.trim_end().len(), sent.len(), "{args:?}: not the bytes that were sent");
    assert_eq!(known(object["body"].clone()), known(parsed), "{args:?}");
    assert_eq!(object["method"], seen.method.as_str());
    assert!(!printed.out().contains(KEY) && !object.to_string().contains(KEY), "{args:?}");
}

#[test]
fn what_is_printed_is_what_would_be_sent() {
    check(&["-p", "hello"], "");
    check(&["-p", "hello", "-f", "notes.txt"], "some input\n");
    check(&["-p", "again", "--session", "talk"], "");
    check(&["-p", "again", "--continue", "--fork", "--tools", "read,ls"], "");
    check(&["-p", "hello", "--openai-api", "responses", "--reasoning-effort", "low"], "");
    check(&["-p", "again", "--continue", "--openai-api", "responses"], "");
    let socket = ["--openai-api", "responses", "--openai-transport", "websocket"];
    check(&[&["-p", "hello"], &socket[..]].concat(), "");
    check(&[&["-p", "again", "--session", "talk"], &socket[..]].concat(), "");
}

#[test]
fn a_request_that_cannot_be_is_the_error_of_a_run() {
    let (place, server) = (Place::new(), server());
    for (args, code) in [
        (&["-p", "x", "--session", "./none.jsonl"][..], 9),
        (&["-p", "x", "-f", "none.txt"], 2),
        (&["-p", "x", "-c", "openai.nonsense=1"], 2),
    ] {
        let without = run(&place, &server, args, "").exits(code).stderr.clone();
        let with = run(&place, &server, &[args, &["--print-request"]].concat(), "").exits(code);
        let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        assert_eq!((with.out(), first(&with.stderr)), ("", first(&without)), "{args:?}");
    }
    let echo = place.etch(["-p", "x", "--provider", "echo", "--print-request"]).run().exits(2);
    assert!(echo.stderr.contains("sends no request anywhere"), "{}", echo.stderr);
    let both = place.etch(["-p", "x", "--print-request", "-o", "f"]).run().exits(2);
    assert!(both.stderr.contains("exclude each other"), "{}", both.stderr);
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_session_that_another_process_holds_can_be_looked_at() {
    let (place, server) = (Place::new(), server());
    run(&place, &server, &["-p", "before", "--session", "talk"], "").exits(0);
    server.push(Reply::silence());
    let held = place
        .etch(["-p", "wait", "--session", "talk", "--provider", "openai", "--model", "m"])
        .args(["--no-config"])
        .env("ETCH_BASE_URL", server.base_url())
        .spawn();
    server.wait_for(2);
    let printed =
        run(&place, &server, &["-p", "now", "--session", "talk", "--print-request"], "").exits(0);
    let body: Value = serde_json::from_str(printed.out().split_once("\n\n").unwrap().1).unwrap();
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["content"], "now");
    held.signal("TERM");
    held.wait();
}

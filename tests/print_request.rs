//! `--print-request`: the request that is printed is the one that would be sent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::chat::Chat;
use crate::support::command::{Place, Ran};
use crate::support::issuer::Issuer;
use crate::support::responses::Responses;
use crate::support::server::{Reply, Seen, Server, Ws};

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

/// Every folder and file below the place, with what the files hold.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
            all.insert(path, Vec::new());
        } else {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

/// The session that a body is of, if it says so.
fn session(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    body["prompt_cache_key"].as_str().unwrap_or_default().to_owned()
}

/// What the connection adds by itself, which is not shown.
fn is_of_connection(name: &str) -> bool {
    let names = ["host", "content-length", "connection", "upgrade"];
    names.contains(&name) || name.starts_with("sec-websocket-")
}

/// Holds what was printed against what was sent, the session's id included where it is one that
/// there was before.
#[track_caller]
fn compare(printed: &str, seen: &Seen, sent: &str, is_resumed: bool) {
    let (head, body) = printed.split_once("\n\n").unwrap();
    let (from, to) = (session(body), session(sent));
    let same = |text: &str| match is_resumed || from.is_empty() {
        true => text.to_owned(),
        false => text.replace(&from, &to),
    };
    assert_eq!(same(body), format!("{sent}\n"));
    let mut lines = head.lines();
    let (method, url) = lines.next().unwrap().split_once(' ').unwrap();
    assert_eq!(method, seen.method);
    assert!(url.ends_with(&seen.path), "{url}");
    let mut shown: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), same(value)))
        .collect();
    let others = seen.headers.iter().filter(|(name, _)| !is_of_connection(name));
    let mut wanted: Vec<(String, String)> = others
        .map(|(name, value)| match name.as_str() {
            "authorization" => (name.clone(), "Bearer [redacted]".to_owned()),
            "chatgpt-account-id" => (name.clone(), "[redacted]".to_owned()),
            _ => (name.clone(), value.clone()),
        })
        .collect();
    shown.sort();
    wanted.sort();
    assert_eq!(shown, wanted);
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

    run(&place, &server, args, stdin).exits(0);
    let seen = &server.seen()[posts];
    let sent = match server.messages().get(messages) {
        Some(message) => message.text.clone(),
        None => String::from_utf8(seen.body.clone()).unwrap(),
    };
    let is_resumed = args.iter().any(|arg| ["--session", "--continue"].contains(arg))
        && !args.contains(&"--fork");
    compare(printed.out(), seen, &sent, is_resumed);
    let object: Value = serde_json::from_str(as_json.exits(0).out()).unwrap();
    let body = object["body"].to_string();
    let wanted: Value =
        serde_json::from_str(&sent.replace(&session(&sent), &session(&body))).unwrap();
    assert_eq!(object["body"], wanted, "{args:?}");
    assert_eq!(object["method"], seen.method.as_str());
    assert!(object["url"].as_str().unwrap().ends_with(&seen.path), "{args:?}");
    assert_eq!(object["headers"]["Authorization"], "Bearer [redacted]");
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
fn a_stored_sign_in_is_neither_renewed_nor_shown() {
    let (place, issuer) = (Place::new(), Issuer::start());
    let path = place.home.path().join(".etch/auth/openai.json");
    issuer.store(&path, -5);
    let before = files(place.home.path());
    let etch = |args: &[&str]| {
        let fixed = ["-p", "hi", "--model", "gpt-5", "--no-config"];
        issuer.etch(&place, &[&fixed[..], args].concat()).run().exits(0)
    };
    let printed = etch(&["--print-request"]);
    let attached = etch(&["--print-request", "-f", path.to_str().unwrap()]);
    let json = etch(&["--print-request", "--json", "-f", path.to_str().unwrap()]);
    assert_eq!(issuer.server.seen().len(), 0, "something was sent");
    assert_eq!(files(place.home.path()), before, "something was written");
    assert!(attached.out().contains(r#"\"refresh_token\": \"[redacted]\""#), "{}", attached.out());
    serde_json::from_str::<Value>(json.out()).unwrap();
    for out in [&printed, &attached, &json] {
        for token in &issuer.state().issued {
            assert!(!out.out().contains(token) && !out.stderr.contains(token), "{}", out.out());
        }
    }
    etch(&[]);
    let seen = issuer.server.seen();
    let paths: Vec<&str> = seen.iter().map(|seen| seen.path.as_str()).collect();
    assert_eq!(paths, ["/oauth/token", "/backend-api/codex/responses"]);
    compare(printed.out(), &seen[1], std::str::from_utf8(&seen[1].body).unwrap(), false);
}

#[test]
fn keys_are_shown_nowhere() {
    let (place, server) = (Place::new(), server());
    let base_url = format!("{}?api-version=1&key=other-secret", server.base_url());
    let api = ["--openai-api", "responses", "--openai-transport", "websocket"];
    for more in [&[][..], &["--json"], &api] {
        let prompt = format!("why is {KEY} refused?");
        let args = [&["-p", &prompt, "--print-request", "--base-url", &base_url], more].concat();
        let printed = run(&place, &server, &args, "").exits(0);
        let out = printed.out();
        assert!(out.contains("?api-version=1&key=[redacted]"), "{out}");
        assert!(out.contains("why is [redacted] refused?"), "{out}");
        assert!(!out.contains(KEY) && !out.contains("other-secret"), "{out}");
    }
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_request_that_cannot_be_is_the_error_of_a_run() {
    let (place, server) = (Place::new(), server());
    for (args, code) in [
        (&["-p", "x", "--session", "./none.jsonl"][..], 9),
        (&["-p", "x", "--session", "abcdef"], 9),
        (&["-p", "x", "--session", "none", "--fork"], 9),
        (&["-p", "x", "--continue"], 9),
        (&["resume", "none", "-p", "x"], 9),
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

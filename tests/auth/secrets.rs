//! Tokens and keys are planted wherever they could leak from, and looked for everywhere else.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::file;
use crate::support::command::{Place, Ran};
use crate::support::issuer::Issuer;
use crate::support::responses::Responses;
use crate::support::server::{Reply, Server};

const KEY: &str = "sk-planted-ABCDEF";

/// Every file below, but for the sign-in itself.
fn files(dir: &Path, skip: &Path, all: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, skip, all);
        } else if path != skip {
            let bytes = fs::read(&path).unwrap();
            all.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
}

/// Fails when any secret stands in what was printed, kept or sent.
fn check(place: &Place, issuer: &Issuer, ran: &Ran) {
    let mut places = vec![
        ("stdout".to_owned(), ran.out().to_owned()),
        ("stderr".to_owned(), ran.stderr.clone()),
    ];
    files(place.home.path(), &file(place), &mut places);
    for seen in issuer.server.seen().iter().filter(|seen| seen.path.ends_with("/responses")) {
        places.push(("a request".to_owned(), String::from_utf8_lossy(&seen.body).into_owned()));
    }
    let mut secrets = issuer.state().issued.clone();
    secrets.push(KEY.to_owned());
    for (name, text) in places {
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{name} shows {secret}:\n{text}");
        }
    }
}

fn run(place: &Place, args: &[&str]) -> Ran {
    let command = place.etch(["-p", "hi", "--model", "m", "-v"]).args(args);
    command.env("OPENAI_API_KEY", KEY).env("CODEX_ACCESS_TOKEN", format!("{KEY}-token")).run()
}

#[test]
fn what_tools_print_reaches_neither_the_log_nor_the_model() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.store(&file(&place), 3600);
    place.file("notes.txt", format!("the key is {KEY}\n"));
    let command = "cat ~/.etch/auth/openai.json; env; echo \"$OPENAI_API_KEY\"; \
                   cat /proc/$PPID/environ | tr '\\0' '\\n'";
    let calls = Responses::calls(&[
        ("c1", "bash", &json!({"command": command}).to_string()),
        ("c2", "read", r#"{"path":"notes.txt"}"#),
        ("c3", "grep", r#"{"pattern":"key"}"#),
    ]);
    issuer.state().answers.push_back(calls.reply());
    let ran = run(&place, &["--json"]).exits(0);
    assert!(ran.out().contains("the key is [redacted]"), "{}", ran.out());
    assert!(ran.out().contains(r#"\"refresh_token\": \"[redacted]\""#), "{}", ran.out());
    fs::remove_file(place.work().join("notes.txt")).unwrap();
    check(&place, &issuer, &ran);
}

#[test]
fn a_token_that_a_tool_cut_is_hidden_too() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.store(&file(&place), 3600);
    let token = issuer.state().issued[2].clone();
    let shown = &token[..token.len() - 3];
    // A line is shown up to its 8192nd byte.
    place.file("long.txt", format!("{}{token}", "-".repeat(8192 - shown.len())));
    let calls = Responses::calls(&[("c1", "read", r#"{"path":"long.txt"}"#)]);
    issuer.state().answers.push_back(calls.reply());
    let ran = run(&place, &["--json"]).exits(0);
    assert!(ran.out().contains("--[redacted]"), "{}", ran.out());
    assert!(!ran.out().contains(&token[..token.len() / 2]), "{}", ran.out());
}

#[test]
fn a_stored_sign_in_stays_hidden_from_a_model_that_does_not_use_it() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.store(&file(&place), 3600);
    let calls =
        Responses::calls(&[("c1", "bash", r#"{"command":"cat ~/.etch/auth/openai.json"}"#)]);
    let replies = [calls.reply(), Responses::answer("Done.").reply()];
    let server = Server::start(replies);
    let ran =
        run(&place, &["--base-url", &server.base_url(), "--openai-api", "responses", "--json"]);
    let ran = ran.exits(0);
    assert!(ran.out().contains("[redacted]"), "{}", ran.out());
    let sent = String::from_utf8(server.seen()[1].body.clone()).unwrap();
    assert!(issuer.state().issued.iter().all(|token| !sent.contains(token)), "{sent}");
    check(&place, &issuer, &ran);
}

#[test]
fn errors_that_repeat_tokens_are_shown_without_them() {
    for mode in ["--json", "--json-result", "-v"] {
        let mode: &[&str] = if mode == "-v" { &[] } else { &[mode] };
        let (place, issuer) = (Place::new(), Issuer::start());
        issuer.store(&file(&place), 3600);
        let echo = {
            let state = issuer.state();
            format!("bad: {} {} {}", state.issued[0], state.issued[1], state.issued[2])
        };
        for reply in [
            Reply::error(400, "invalid_request", &echo),
            Reply::json(400, &json!({"detail": echo})),
            Reply::new(403, "text/html", format!("<html>{echo}</html>")),
            Responses::new().failed("server_error", &echo).reply(),
            Responses::new().error("invalid_prompt", &echo).reply(),
        ] {
            issuer.state().answers.push_back(reply);
            issuer
                .state()
                .answers
                .push_back(Responses::new().failed("invalid_prompt", &echo).reply());
            let ran = run(&place, mode);
            assert_ne!(ran.code, Some(0), "{} {}", ran.out(), ran.stderr);
            check(&place, &issuer, &ran);
            issuer.state().answers.clear();
        }
        // A backend that takes no token, and an issuer that gives none, both repeat them.
        issuer.state().accepted.clear();
        issuer.state().refresh = None;
        let ran = run(&place, mode).exits(3);
        check(&place, &issuer, &ran);
        let ran = place.etch(["auth", "status", "--json"]).run().exits(3);
        check(&place, &issuer, &ran);
    }
}

#[test]
fn configuration_mistakes_and_listings_show_no_key() {
    let (place, issuer) = (Place::new(), Issuer::start());
    issuer.store(&file(&place), 3600);
    place.home.write(".etch/config.toml", "[auth]\nissuer = 'http://user:sk-planted@h'\n");
    let ran = place.etch(["config", "check"]).run().exits(3);
    assert!(!ran.stderr.contains("sk-planted"), "{}", ran.stderr);
    place.home.write(".etch/config.toml", "");
    for args in [&["config", "show", "--effective", "--origin"][..], &["config", "show"]] {
        let ran = place.etch(args).args(["--api-key", KEY]).run().exits(0);
        check(&place, &issuer, &ran);
    }
    let ran = place.etch(["auth", "status"]).args(["--api-key", "sk-bad\nplanted"]).run().exits(2);
    assert!(!ran.stderr.contains("planted"), "{}", ran.stderr);
}

//! Runs of the real program in trouble: interrupted at every wait, cut off, given odd keys; and
//! how the session goes on after that.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::chat::Chat;
use crate::support::command::{Place, TestCommand};
use crate::support::golden::files_below;
use crate::support::pty::Pty;
use crate::support::server::{Reply, Seen, Server};

fn ask(place: &Place, server: &Server, args: &[&str]) -> TestCommand {
    place
        .etch(["-p", "go", "--no-config", "--stdin", "never"])
        .args(args)
        .env("ETCH_PROVIDER", "openai")
        .env("ETCH_MODEL", "m")
        .env("ETCH_BASE_URL", server.base_url())
        .env("ETCH_SESSION_DIR", sessions(place))
}

fn sessions(place: &Place) -> PathBuf {
    place.home.path().join("sessions")
}

/// Everything that was written into the folder of sessions.
fn logged(place: &Place) -> String {
    let files = files_below(&sessions(place)).into_values();
    files.map(|bytes| String::from_utf8(bytes).unwrap()).collect()
}

/// Roles and, of results, the ids of the calls.
fn roles(seen: &Seen) -> Vec<String> {
    let body = seen.json();
    let messages = body["messages"].as_array().unwrap().iter();
    let told = messages.filter(|message| message["role"] != "system").map(|message| {
        let of = message["tool_call_id"].as_str().unwrap_or_default();
        format!("{} {of}", message["role"].as_str().unwrap()).trim_end().to_owned()
    });
    told.collect()
}

/// Longer than what a busy machine needs, shorter than any wait that must be broken off.
const AT_ONCE: Duration = Duration::from_secs(10);

#[test]
fn an_interrupt_ends_a_run_whatever_it_waits_for_and_the_session_goes_on() {
    let slow = Reply::error(429, "rate_limit_exceeded", "slow").header("Retry-After", "50");
    for (what, reply, answered) in [
        ("headers", Reply::silence(), false),
        ("the rest of a body", Chat::new().text("Hel").reply().then_stall(), true),
        ("a silent stream", Chat::new().bytes(b": hello\n\n").reply().then_stall(), false),
        ("the next attempt", slow, false),
    ] {
        let place = Place::new();
        let server = Server::start([reply, Chat::answer("again")]);
        let mut running = ask(&place, &server, &["--json", "--deltas"]).spawn();
        server.wait_for(1);
        if what == "the next attempt" {
            running.wait_for_stderr("again in");
        }
        let start = Instant::now();
        running.signal("INT");
        let ran = running.wait().exits(130);
        assert!(start.elapsed() < AT_ONCE, "{what}: {:?}", start.elapsed());
        let result: Value = serde_json::from_str(ran.out().lines().last().unwrap()).unwrap();
        assert_eq!(
            (&result["stop"], &result["exit"]),
            (&json!("cancelled"), &json!(130)),
            "{what}"
        );
        let ran = ask(&place, &server, &["--continue"]).run().exits(0);
        assert_eq!((ran.out(), ran.stderr.as_str()), ("again\n", ""), "{what}");
        let asked = roles(&server.seen()[1]);
        // What was said of an answer that was broken off is not lost.
        let said = answered && asked.len() == 3;
        let want: &[&str] = if said { &["user", "assistant", "user"] } else { &["user", "user"] };
        assert_eq!(asked, want, "{what}");
    }
}

#[test]
fn after_an_interrupt_in_a_batch_every_call_has_exactly_one_result() {
    let place = Place::new();
    let calls = [
        ("c1", "bash", r#"{"command":"touch ready; sleep 60"}"#),
        ("c2", "read", r#"{"path":"ready"}"#),
        ("c3", "bash", r#"{"command":"touch never"}"#),
    ];
    let server = Server::start([Chat::calls(&calls), Chat::answer("I see."), Chat::answer("ok")]);
    let running = ask(&place, &server, &[]).spawn();
    running.wait_for_file(&place.work().join("ready"));
    running.signal("INT");
    running.wait().exits(130);
    let want = ["user", "assistant", "tool c1", "tool c2", "tool c3", "user"];
    for number in [1, 2] {
        ask(&place, &server, &["--continue"]).run().exits(0);
        let asked = roles(&server.seen()[number]);
        assert_eq!(asked[..want.len()], want, "request {number}");
    }
    assert!(!place.work().join("never").exists());
}

/// All at once: each of them waits between its attempts.
#[test]
fn an_answer_of_nothing_is_a_failed_call_and_leaves_no_message() {
    let wanted = [
        (": a\n\n: b\n\n: c\n\n", "held no answer"),
        ("data: [DONE]\n\n", "held no answer"),
        ("The model is busy right now.", "The model is busy right now."),
    ];
    let run = |body: &'static str, want: &str| {
        let place = Place::new();
        let server = Server::with(move |_| Reply::sse(body));
        let ran = ask(&place, &server, &[]).run().exits(1);
        assert_eq!(ran.out(), "");
        let mut end = ran.stderr.lines().filter(|line| line.contains("gave up after 5 attempts"));
        assert!(end.next().is_some_and(|line| line.contains(want)), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("again in").count(), 4, "{}", ran.stderr);
        assert_eq!(server.seen().len(), 5);
        let log = logged(&place);
        assert!(!log.contains("message.assistant") && log.contains("turn.stopped"), "{log}");
    };
    std::thread::scope(|scope| {
        for (body, want) in wanted {
            scope.spawn(move || run(body, want));
        }
    });
}

/// A server that wants its reasoning back beside every call, and one that never sent any.
#[test]
fn reasoning_beside_calls_goes_back_in_the_next_round_and_after_a_resume() {
    for field in ["reasoning_content", "reasoning", ""] {
        let place = Place::new();
        place.file("a", "first\n");
        let server = Server::with(move |seen| {
            let body = seen.json();
            let messages = body["messages"].as_array().unwrap();
            for message in messages.iter().filter(|message| message["tool_calls"].is_array()) {
                let sent = ["reasoning_content", "reasoning"].map(|name| message[name].as_str());
                let want = ["reasoning_content", "reasoning"]
                    .map(|name| (name == field).then_some("plan…"));
                if sent != want {
                    return Reply::error(400, "invalid_request", &format!("bad: {message}"));
                }
            }
            let results = messages.iter().filter(|message| message["role"] == "tool").count();
            let users = messages.iter().filter(|message| message["role"] == "user").count();
            if results < users {
                let thought = Chat::new();
                let thought = if field.is_empty() {
                    thought
                } else {
                    thought.delta(&json!({field: "pl"})).delta(&json!({field: "an…"}))
                };
                let call = thought.call(0, &format!("c{users}"), "read", r#"{"path":"a"}"#);
                return call.finish("tool_calls").done().reply();
            }
            Chat::answer("Done.")
        });
        for args in [&[][..], &["--continue"]] {
            let ran = ask(&place, &server, args).run().exits(0);
            assert_eq!(ran.out(), "Done.\n", "{field}: {}", ran.stderr);
        }
        assert_eq!(server.seen().len(), 4);
    }
}

#[test]
fn a_key_is_trimmed_or_refused_by_its_source_and_never_shown() {
    for key in ["sk-test-ABCDEF\n", "sk-test-ABCDEF\r\n", " sk-test-ABCDEF"] {
        let place = Place::new();
        let server = Server::start([Chat::answer("Hi")]);
        ask(&place, &server, &["--json"]).env("OPENAI_API_KEY", key).run().exits(0);
        assert_eq!(server.seen()[0].header("authorization"), Some("Bearer sk-test-ABCDEF"));
        assert!(!logged(&place).contains("ABCDEF"));
    }
    for key in ["sk-test\n-ABCDEF", "sk-té-ABCDEF", "sk-test\u{1}ABCDEF", "sk test ABCDEF"] {
        for args in [&[][..], &["--json"]] {
            let place = Place::new();
            let server = Server::start([]);
            let ran = ask(&place, &server, args).env("OPENAI_API_KEY", key).run().exits(3);
            assert!(ran.stderr.contains("OPENAI_API_KEY"), "{key:?}: {}", ran.stderr);
            assert_eq!(ran.stderr.lines().count(), 1, "{key:?}: {}", ran.stderr);
            let all = format!("{}{}{}", ran.out(), ran.stderr, logged(&place));
            assert!(!all.contains("ABCDEF"), "{key:?}: {all}");
            assert_eq!(server.connections(), 0, "{key:?}");
        }
    }
}

#[test]
fn what_the_model_and_its_tools_say_does_not_steer_a_terminal_or_a_log() {
    let place = Place::new();
    let nasty = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}";
    let command = json!({"command": format!("printf '%s' '{nasty}'")}).to_string();
    let first = Chat::new().text(nasty).call(0, "c1", "bash", &command);
    let server = Server::start([
        first.finish("tool_calls").done().reply(),
        Chat::new().text(&format!("say {nasty} done")).finish("stop").done().reply(),
    ]);
    let ran = ask(&place, &server, &[]).run().exits(0);
    assert!(!ran.stderr.contains(|c: char| c.is_control() && c != '\n'), "{:?}", ran.stderr);
    // On a terminal the session is shown without any of it, and without colours nothing is left.
    let mut show = Command::new(env!("CARGO_BIN_EXE_etch"));
    show.arg("show").current_dir(place.work()).env_clear().env("HOME", place.home.path());
    show.env("ETCH_SESSION_DIR", sessions(&place)).env("NO_COLOR", "1").env("TERM", "xterm");
    let (status, text) = Pty::spawn(show, 80, 24).wait();
    assert!(status.success() && text.contains("owned"), "{text:?}");
    let may_stand = |c: char| matches!(c, '\r' | '\n' | '\t') || !c.is_control();
    assert!(text.chars().all(may_stand) && !text.contains('\u{202e}'), "{text:?}");
    assert!(!logged(&place).contains('\u{1b}'));
}

/// As under some supervisors: a socket that nobody closes is no input.
#[test]
fn an_idle_socket_as_standard_input_does_not_hold_a_run_for_ever() {
    let place = Place::new();
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let ran = place
        .etch(["-p", "say hi", "--provider", "echo", "--no-session"])
        .stdin_as(OwnedFd::from(theirs))
        .run()
        .exits(0);
    assert_eq!(ran.out(), "say hi\n");
    assert!(ran.stderr.contains("going on without it"), "{}", ran.stderr);
    fs::remove_dir_all(place.work()).unwrap();
}

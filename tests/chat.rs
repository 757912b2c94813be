//! The chat as a person has it: the real program in a pseudo-terminal, what stands on the screen,
//! and how the terminal is left.

use serde_json::json;

use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::pty::Pty;
use crate::support::server::{Gate, Reply, Server};
use crate::support::talk::{COLUMNS, ROWS, Talk, screen, settings};

#[test]
fn a_first_conversation() {
    let place = Place::new();
    place.file("a.txt", "one\ntwo\n");
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "two", "newText": "three"}]});
    let server = Server::start([
        Chat::calls(&[("c1", "read", "{\"path\":\"a.txt\"}")]),
        Chat::new()
            .text("I change it.")
            .call(0, "c2", "edit", &edit.to_string())
            .finish("tool_calls")
            .done()
            .reply(),
        Chat::answer("Done: `a.txt` says **three**."),
    ]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    let shown = talk.sees("m · ");
    assert!(shown.contains('›'), "{shown}");
    talk.keys("change two to three\r");
    let shown = talk.sees("Worked for");
    for want in [
        "> change two to three",
        "• read a.txt",
        "• I change it.",
        "• edit a.txt",
        "- two",
        "+ three",
        "• Done: `a.txt` says **three**.",
        "2 tools",
    ] {
        assert!(shown.contains(want), "no {want:?} in\n{shown}");
    }
    let at = |text: &str| shown.find(text).unwrap();
    assert!(at("• read") < at("• I change it.") && at("• I change it.") < at("• edit"), "{shown}");
    assert_eq!(std::fs::read_to_string(place.work().join("a.txt")).unwrap(), "one\nthree\n");
    talk.keys("\u{4}");
    let (status, output) = talk.pty.wait();
    assert!(status.success());
    let shown = screen(output.as_bytes(), COLUMNS, 60);
    assert!(shown.contains("resume: etch resume "), "{shown}");
    assert!(!shown.contains('›'), "the live region is gone: {shown}");
}

#[test]
fn a_turn_is_stopped_by_escape_and_the_session_goes_on() {
    let (place, gate) = (Place::new(), Gate::new());
    let half = Chat::new().text("half of ").text("it");
    let server = Server::start([
        half.reply().wait_at(200, &gate).then_stall(),
        Chat::answer("the second answer"),
    ]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.keys("go\r");
    talk.sees("Esc to cancel");
    server.wait_for(1);
    talk.keys("\u{1b}");
    talk.sees("Cancelled");
    talk.loses("Esc to cancel");
    talk.keys("again\r");
    talk.sees("the second answer");
    let seen = server.seen();
    let messages = seen[1].json()["messages"].as_array().unwrap().len();
    assert!(messages >= 3, "both prompts are in one session: {}", seen[1].json());
    gate.open();
}

#[test]
fn a_failed_turn_ends_nothing() {
    let place = Place::new();
    let server =
        Server::start([Reply::error(400, "bad", "no such thing"), Chat::answer("better now")]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.keys("one\r");
    talk.sees("no such thing");
    talk.keys("two\r");
    talk.sees("better now");
}

#[test]
fn the_terminal_is_given_back_as_it_was() {
    for way in ["end", "twice", "TERM", "HUP"] {
        let place = Place::new();
        let server = Server::start([Chat::answer("hello")]);
        let mut talk = Talk::in_shell(&place, &server);
        talk.sees("m · ");
        talk.keys("hi\r");
        talk.sees("Worked for");
        let code = match way {
            "end" => {
                talk.keys("\u{4}");
                0
            }
            "twice" => {
                talk.keys("\u{3}\u{3}");
                0
            }
            signal => {
                let pids = format!("pkill -{signal} -P {} etch", talk.pty.pid());
                assert!(place.sh(&pids).run().code.is_some());
                if signal == "TERM" { 143 } else { 129 }
            }
        };
        let (_, output) = talk.pty.wait();
        let line = |name: &str| {
            let found = output.lines().find_map(|line| line.split_once(name).map(|(_, rest)| rest));
            found.unwrap_or_else(|| panic!("{way}: no {name} in {output}")).trim().to_owned()
        };
        assert_eq!(line("ended with "), code.to_string(), "{way}");
        assert_eq!(line("before "), line("after "), "{way}");
        let tail = &output[output.rfind("\u{1b}[?2004l").expect("bracketed paste is off again")..];
        assert!(tail.contains("\u{1b}[?25h"), "{way}: a cursor");
    }
}

#[test]
fn a_suspended_chat_ends_by_a_signal_and_leaves_the_terminal_alone() {
    let place = Place::new();
    let server = Server::start([]);
    // A shell with jobs, without a person: it goes on when the chat is stopped.
    let script = "set -m; before=$(stty -g); $ETCH; echo stopped; bg %1; kill %1; wait %1; \
        echo \"ended with $?\"; [ \"$before\" = \"$(stty -g)\" ] && echo all as it was";
    let shell = place.command("bash", ["-c", script]).env("ETCH", env!("CARGO_BIN_EXE_etch"));
    let mut talk = Talk::spawn(settings(shell, &server), COLUMNS, ROWS);
    talk.sees("m · ");
    talk.keys("a draft");
    talk.sees("a draft");
    talk.keys("\u{1a}");
    let (_, output) = talk.pty.wait();
    let (_, after) = output.split_once("stopped").expect("the shell goes on");
    assert!(after.contains("ended with 143"), "{after}");
    assert!(after.contains("all as it was"), "{after}");
    assert!(!after.contains("draft"), "{after}");
}

#[test]
fn escape_acts_while_an_answer_never_pauses() {
    let place = Place::new();
    let begin = Chat::new().text("words ");
    let flood = Chat::new().text("and more words\n\n").into_bytes();
    let server =
        Server::for_prompts([begin.reply().then_flood(flood), Chat::answer("the next one")]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.keys("go\r");
    talk.sees("and more words");
    talk.keys("\u{1b}");
    talk.sees("Cancelled");
    talk.keys("again\r");
    talk.sees("the next one");
}

#[test]
fn a_resumed_session_says_where_one_is() {
    let place = Place::new();
    let server = Server::start([Chat::answer("the answer of then"), Chat::answer("and of now")]);
    settings(place.etch(["-p", "the first question"]), &server).run().exits(0);
    let mut talk = Talk::start(&place, &server, &["resume"]);
    talk.sees("the first question");
    talk.keys("\r");
    let shown = talk.sees("the answer of then");
    assert!(shown.contains("1 prompt so far"), "{shown}");
    // The history is that of the session.
    talk.keys("\u{1b}[A");
    talk.sees("› the first question");
    talk.keys("\u{3}next\r");
    talk.sees("and of now");
    assert_eq!(server.seen()[1].json()["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn lines_of_a_pipe_are_turns_in_order() {
    let place = Place::new();
    let server = Server::start([
        Chat::answer("first answer"),
        Reply::error(400, "bad", "not this"),
        Chat::answer("third answer"),
    ]);
    let ran = settings(place.etch(["chat"]), &server).stdin("one\n\ntwo\n/tools\nthree\n").run();
    assert_eq!(server.seen().len(), 3);
    assert_eq!(
        server.seen()[2].json()["messages"].as_array().unwrap().last().unwrap()["content"],
        "three"
    );
    let out = ran.out();
    let at = |text: &str| out.find(text).unwrap_or_else(|| panic!("no {text:?} in {out}"));
    assert!(at("first answer") < at("not this") && at("not this") < at("grep"), "{out}");
    assert!(at("grep") < at("third answer"), "{out}");
    assert!(out.contains("resume: etch resume "), "{out}");
    assert_eq!(ran.code, Some(1), "a turn failed");
}

#[test]
fn a_closed_window_ends_everything() {
    for busy in ["idle", "stream", "tool"] {
        let (place, gate) = (Place::new(), Gate::new());
        let command = json!({"command": "echo $$ >pid; exec sleep 1000"}).to_string();
        let reply = match busy {
            "tool" => Chat::calls(&[("c1", "bash", &command)]),
            _ => Chat::new().text("half").reply().wait_at(100, &gate).then_stall(),
        };
        let server = Server::start([reply]);
        let mut talk = Talk::start(&place, &server, &["chat"]);
        talk.sees("m · ");
        let pid_file = place.work().join("pid");
        if busy != "idle" {
            talk.keys("go\r");
            server.wait_for(1);
        }
        if busy == "tool" {
            talk.sees("bash");
            wait_for(|| std::fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n')));
        }
        let status = talk.pty.close();
        assert_eq!(status.code(), Some(129), "{busy}");
        if let Ok(pid) = std::fs::read_to_string(&pid_file) {
            let stat = format!("/proc/{}/stat", pid.trim());
            // Ended, or on its way: nothing that runs.
            wait_for(|| std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
        }
        gate.open();
    }
}

fn wait_for(mut done: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !done() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "it never comes");
        std::thread::yield_now();
    }
}

#[test]
fn what_is_typed_survives_any_size_and_stays_where_it_is() {
    let (place, gate) = (Place::new(), Gate::new());
    let text = "words of an answer that goes on for a while. ".repeat(40);
    let answer = Chat::new().text(&text).text("The end.").finish("stop").done();
    let server = Server::start([answer.reply().wait_at(900, &gate)]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.keys("go\r");
    talk.sees("Esc to cancel");
    talk.keys("my draft");
    talk.sees("my draft");
    for step in 0..60_u16 {
        let (columns, rows) = match step % 4 {
            0 => (1, 1),
            1 => (200, 60),
            2 => (0, 0),
            _ => (3 + step, 1 + step / 2),
        };
        talk.pty.resize(columns, rows);
    }
    talk.pty.resize(COLUMNS, ROWS);
    gate.open();
    talk.keys("!");
    let shown = talk.sees("Worked for");
    assert!(shown.contains("› my draft!"), "{shown}");
    assert!(shown.contains("The end."), "{shown}");
}

#[test]
fn a_command_cannot_take_the_keys() {
    let place = Place::new();
    let command = "cat; read x </dev/tty; stty sane; touch began; sleep 0.2; echo over";
    let server = Server::start([
        Chat::calls(&[("c1", "bash", &json!({"command": command}).to_string())]),
        Chat::answer("It is over."),
    ]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.keys("go\r");
    server.wait_for(1);
    talk.keys("typed meanwhile");
    let shown = talk.sees("It is over.");
    let shown = if shown.contains("Worked for") { shown } else { talk.sees("Worked for") };
    assert!(shown.contains("› typed meanwhile"), "{shown}");
    talk.keys("\u{1b}[D\u{1b}[DX");
    talk.sees("› typed meanwhiXle");
}

#[test]
fn steering_reaches_the_running_turn() {
    let (place, gate) = (Place::new(), Gate::new());
    let server = Server::start([
        Chat::calls(&[("c1", "ls", "{}")]).wait_before(&gate),
        Chat::answer("I saw it."),
    ]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.keys("look\r");
    server.wait_for(1);
    talk.keys("only at text files\r");
    talk.sees("waits: only at text files");
    gate.open();
    let shown = talk.sees("I saw it.");
    assert!(!shown.contains("waits:"), "{shown}");
    let body = server.seen()[1].json();
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["role"], &last["content"]), (&json!("user"), &json!("only at text files")));
}

#[test]
fn a_plain_chat_draws_nothing_anew() {
    for (args, term) in [(&["chat", "--plain"][..], "xterm"), (&["chat"], "dumb")] {
        let place = Place::new();
        let server = Server::start([Chat::answer("the answer")]);
        let command = settings(place.etch(args), &server).env("TERM", term);
        let mut pty = Pty::spawn(command.into_command(), COLUMNS, ROWS);
        pty.wait_for("> ");
        pty.type_keys("hello\n");
        pty.wait_for("the answer");
        pty.wait_for("Worked for");
        pty.type_keys("\u{4}");
        let (status, output) = pty.wait();
        assert!(status.success());
        assert!(!output.contains('\u{1b}'), "{output:?}");
        assert!(output.contains("resume: etch resume "), "{output}");
    }
}

#[test]
fn the_draft_is_edited_elsewhere() {
    let place = Place::new();
    let editor = place.file("editor.sh", "#!/bin/sh\nprintf ' and more' >>\"$1\"\n");
    let server = Server::start([Chat::answer("ok")]);
    let command = settings(place.etch(["chat"]), &server);
    let command = command.env("EDITOR", format!("sh {}", editor.display()));
    let mut talk = Talk::spawn(command, COLUMNS, ROWS);
    talk.sees("m · ");
    talk.keys("some");
    talk.sees("› some");
    talk.keys("\u{18}\u{5}");
    talk.sees("› some and more");
    talk.keys("\r");
    talk.sees("> some and more");
}

#[test]
fn without_a_model_it_says_how_to_get_one() {
    let place = Place::new();
    let command = place.etch(["chat", "--provider", "openai"]).env("TERM", "xterm");
    let (status, output) = Pty::spawn(command.into_command(), COLUMNS, ROWS).wait();
    assert_eq!(status.code(), Some(3), "{output}");
    assert!(output.contains("OPENAI_API_KEY") || output.contains("--model"), "{output}");
}

#[test]
fn commands_answer_between_turns() {
    let place = Place::new();
    place.file("a.txt", "one\n");
    place.file(".etch/commands/review.md", "---\ndescription: look at it\n---\nReview $1 for $2.");
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]});
    let server = Server::start([
        Chat::calls(&[("c0", "read", "{\"path\":\"a.txt\"}")]),
        Chat::calls(&[("c1", "edit", &edit.to_string())]),
        Chat::answer("changed"),
        Chat::answer("reviewed"),
        Chat::answer("of the new session"),
    ]);
    let script = "\
change it
/diff
/context
/context dump d.txt
/tools
/model other
/review a.txt 'typos and such'
/effort nonsense
/new
hello
/status
/sessions
/copy
/tool read a.txt
/nonsense
!echo from the shell
/exit
never sent
";
    let ran = settings(place.etch(["chat"]), &server).stdin(script).run().exits(0);
    let mut rest = ran.out();
    for want in [
        "> change it",
        "- one",
        "changed",
        "- one", // of /diff
        "Instructions",
        "base prompt",
        "written to",
        "grep",
        "> Review a.txt for typos and such.",
        "reviewed",
        "nonsense",
        "a new session",
        "of the new session",
        "prompts",
        "other", // its model is still the one that was chosen
        "change it",
        "copied",
        "1 | two",
        "unknown command /nonsense",
        "from the shell",
    ] {
        let at =
            rest.find(want).unwrap_or_else(|| panic!("no {want:?} in {rest}\n\n{}", ran.out()));
        rest = &rest[at + want.len()..];
    }
    let models: Vec<_> = server.seen().iter().map(|seen| seen.json()["model"].clone()).collect();
    assert_eq!(models, ["m", "m", "m", "other", "other"]);
    let dump = std::fs::read_to_string(place.work().join("d.txt")).unwrap();
    assert!(dump.contains("===== Base Prompt =====") && dump.contains("change it"), "{dump}");
    assert_eq!(server.seen()[4].json()["messages"].as_array().unwrap().len(), 2, "a new session");
}

#[test]
fn a_tool_by_hand_is_stopped_and_leaves_the_keys_alone() {
    let place = Place::new();
    let server = Server::start([]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.sees("m · ");
    for line in ["/tool write x.txt --content -", "/tool write --args -"] {
        talk.keys(&format!("{line}\r"));
        talk.sees("would take the chat's own input");
        talk.keys("\u{c}");
        talk.loses("would take the chat's own input");
    }
    talk.keys("/tool bash 'touch began; sleep 600'\r");
    wait_for(|| place.work().join("began").exists());
    talk.sees("Esc to cancel");
    talk.keys("\u{1b}");
    talk.loses("Esc to cancel");
    talk.keys("\u{4}");
    let (status, output) = talk.pty.wait();
    assert_eq!(status.code(), Some(0), "{output}");
}

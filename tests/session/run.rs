//! The log as a person meets it: the real binary, killed, contested, and out of room.

use super::*;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::chat::Chat;
use crate::support::command::{Place, Ran, TestCommand};
use crate::support::server::{Gate, Reply, Server};

const SESSIONS: &str = "sessions";

fn settings(command: TestCommand, place: &Place, server: &Server) -> TestCommand {
    command
        .env("ETCH_PROVIDER", "openai")
        .env("ETCH_MODEL", "m")
        .env("ETCH_BASE_URL", server.base_url())
        .env("ETCH_SESSION_DIR", place.work().join(SESSIONS))
}

fn ask(place: &Place, server: &Server, args: &[&str]) -> TestCommand {
    settings(place.etch(["-p", "go"]).args(args), place, server)
}

/// The same where no file may grow beyond `kib`, as on a disk that is full.
fn ask_without_room(place: &Place, server: &Server, kib: u32, args: &[&str]) -> TestCommand {
    let script = format!("ulimit -f {}; exec \"$ETCH\" -p go \"$@\"", kib * 2);
    let command = place.command("sh", ["-c", &script, "sh"]).args(args);
    settings(command.env("ETCH", env!("CARGO_BIN_EXE_etch")), place, server)
}

fn bash(id: &str, command: &str) -> (String, String) {
    (id.to_owned(), json!({ "command": command }).to_string())
}

fn wants(calls: &[(String, String)]) -> Reply {
    let calls: Vec<_> =
        calls.iter().map(|(id, arguments)| (id.as_str(), "bash", arguments.as_str())).collect();
    Chat::calls(&calls)
}

fn session(place: &Place) -> PathBuf {
    lock::row_of_only(&place.work().join(SESSIONS))
}

fn result(ran: &Ran) -> Value {
    serde_json::from_str(ran.out().lines().last().unwrap()).unwrap()
}

/// The conversation of a request, a line a message.
fn asked(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter();
    let messages = messages.filter(|message| message["role"] != "system");
    messages
        .map(|message| {
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            let calls: String =
                calls.map(|call| format!("+{} ", call["id"].as_str().unwrap())).collect();
            let of =
                message["tool_call_id"].as_str().map(|id| format!("{id} ")).unwrap_or_default();
            let text = message["content"].as_str().unwrap_or_default();
            format!("{}: {of}{calls}{text}", message["role"].as_str().unwrap())
        })
        .collect()
}

fn is_alive(pid: &str) -> bool {
    // A zombie is dead; only its parent has not looked yet.
    fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.contains(") Z "))
}

#[track_caller]
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < limit, "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn an_answer_that_the_disk_has_no_room_for_is_still_given() {
    let long = "word ".repeat(2_000);
    for json in [false, true] {
        let place = Place::new();
        let server = Server::start([Chat::answer(&long), Chat::answer("And now?")]);
        let flags: &[&str] = if json { &["--json"] } else { &[] };
        let ran = ask_without_room(&place, &server, 4, flags).run().exits(9);
        assert!(ran.stderr.contains("etch: cannot write session "), "{}", ran.stderr);
        if json {
            let result = result(&ran);
            assert_eq!(result["answer"].as_str().unwrap().trim_end(), long.trim_end());
            assert_eq!((&result["exit"], &result["error"]["kind"]), (&json!(9), &json!("log")));
            let kinds = ran.out().lines().map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                line["type"].as_str().unwrap().to_owned()
            });
            // No line that is not in the log.
            let kinds: Vec<_> = kinds.collect();
            assert_eq!(kinds, ["session.started", "message.user", "run.result"]);
        } else {
            assert_eq!(ran.out().trim_end(), long.trim_end());
        }
        // With room again the session goes on.
        let ran = ask(&place, &server, &["--continue"]).run().exits(0);
        assert_eq!(ran.out(), "And now?\n");
        assert!(ran.stderr.contains("cut off"), "{}", ran.stderr);
        assert_eq!(asked(&server.seen()[1].json()), ["user: go", "user: go"]);
    }
}

#[test]
fn after_a_failed_write_no_tool_runs_any_more() {
    let many = "head -c 9000 /dev/zero | tr '\\0' x";
    // The result of the first call does not fit; then the answer itself, calls and all.
    let first = wants(&[bash("c1", &format!("touch one; {many}")), bash("c2", "touch two")]);
    let long =
        Chat::new().text(&"word ".repeat(2_000)).call(0, "c1", "bash", &bash("", "touch one").1);
    for (reply, one) in [(first, true), (long.finish("tool_calls").done().reply(), false)] {
        let place = Place::new();
        let server = Server::start([reply]);
        let ran = ask_without_room(&place, &server, 4, &["--json-result"]).run().exits(9);
        let result = result(&ran);
        assert_eq!(result["error"]["kind"], "log");
        let made = ["one", "two"].map(|name| place.work().join(name).exists());
        assert_eq!((made, server.seen().len()), ([one, false], 1));
    }
}

#[test]
fn a_place_that_cannot_be_written_is_said_before_anything_is_sent() {
    let place = Place::new();
    let file = place.file("file", "");
    let server = Server::start([Chat::answer("Hello."), Chat::answer("Hello.")]);
    let below = file.join("sessions");
    let ran = ask(&place, &server, &[]).env("ETCH_SESSION_DIR", &below).run().exits(9);
    assert!(ran.stderr.contains(&format!("cannot create {}", below.display())), "{}", ran.stderr);
    assert!(ran.stderr.contains("--no-session"), "{}", ran.stderr);
    // Nothing to go on with is promised.
    let ran = ask(&place, &server, &["--json-result", "-v"]).env("ETCH_SESSION_DIR", &below).run();
    assert_eq!(result(&ran)["sessionId"], Value::Null);
    assert!(!ran.stderr.contains("go on with"), "{}", ran.stderr);
    // A home that nothing can be written in, and no project.
    let bare = |args: &[&str]| {
        let command = place.etch(["-p", "go", "--provider", "openai", "--model", "m"]).args(args);
        command.env("HOME", "/proc/none").env("ETCH_BASE_URL", server.base_url())
    };
    let ran = bare(&[]).run().exits(9);
    assert!(ran.stderr.contains("/proc/none/.local/state/etch/sessions"), "{}", ran.stderr);
    assert_eq!(server.seen().len(), 0);
    bare(&["--no-session"]).run().is(0, "Hello.\n", "");
    assert_eq!(bare(&["--session-dir", "here"]).run().exits(0).out(), "Hello.\n");
}

#[test]
fn sessions_in_a_folder_whose_name_is_no_text_are_listed_and_continued() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let folder = place.work().join(std::ffi::OsStr::from_bytes(b"odd\xff name"));
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    let etch = |args: &[&str]| place.etch(args).dir(&folder).env("ETCH_PROVIDER", "echo").run();
    etch(&["-p", "one"]).is(0, "one\n", "");
    etch(&["-p", "--continue", "two"]).is(0, "two\n", "");
    let ran = etch(&["sessions", "--json"]).exits(0);
    let rows: Vec<Value> = serde_json::from_str(ran.out()).unwrap();
    assert_eq!((rows.len(), &rows[0]["title"]), (1, &json!("one")));
    let id = rows[0]["id"].as_str().unwrap();
    assert!(etch(&["show", id]).exits(0).out().contains("two"));
    assert!(folder.join(format!(".etch/sessions/{id}.jsonl")).exists());
}

#[test]
fn without_a_session_the_lines_are_printed_and_no_file_is_made() {
    let place = Place::new();
    let server = Server::start([wants(&[bash("c1", "echo hi")]), Chat::answer("Done.")]);
    let ran = ask(&place, &server, &["--no-session", "--json"]).run().exits(0);
    let lines: Vec<Value> =
        ran.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (result, events) = lines.split_last().unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let messages = ["message.user", "message.assistant", "message.tool", "message.assistant"];
    let of = |kind: &&&str| kind.starts_with("message.");
    assert_eq!(kinds.iter().filter(of).copied().collect::<Vec<_>>(), messages);
    assert_eq!(kinds[0], "session.started");
    for pair in events.windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"]);
    }
    assert_eq!((&result["stop"], result.get("sessionId")), (&json!("final"), None));
    for dir in [place.work(), place.home.path().join(".local")] {
        assert_eq!(fs::read_dir(dir).map_or(0, Iterator::count), 0);
    }
}

#[test]
fn of_two_that_continue_one_session_the_second_is_refused() {
    let place = Place::new();
    let gate = Gate::new();
    let held = Chat::answer("left").wait_before(&gate);
    let server = Server::start([Chat::answer("one"), held, Chat::answer("after")]);
    ask(&place, &server, &[]).run().exits(0);
    let both = [(); 2].map(|()| ask(&place, &server, &["--continue"]).spawn());
    let pids = both.each_ref().map(|running| running.pid());
    server.wait_for(2);
    // One of them holds the session and waits for the server. The other one need not be the second.
    let [one, two] = both;
    let ended = |pid: u32| !is_alive(&pid.to_string());
    wait_until("the end of one of them", || ended(pids[0]) || ended(pids[1]));
    let ((refused, holder), holding) =
        if ended(pids[0]) { ((one, pids[1]), two) } else { ((two, pids[0]), one) };
    let ran = refused.wait().exits(9);
    let want =
        format!("is in use by process {holder}; wait for it, or continue a copy with --fork");
    assert!(ran.stderr.contains(&want), "{}", ran.stderr);
    assert_eq!(ran.out(), "");
    gate.open();
    assert_eq!(holding.wait().exits(0).out(), "left\n");
    let (projection, replayed) = project(&session(&place));
    let want = ["user: go", "assistant: one", "user: go", "assistant: left"];
    assert_eq!((said(&projection), replayed.notices), (want.map(str::to_owned).to_vec(), vec![]));
    ask(&place, &server, &["--continue"]).run().exits(0);
}

#[test]
fn a_killed_holder_is_followed_at_once() {
    let place = Place::new();
    let server = Server::start([Reply::silence(), Chat::answer("again")]);
    let running = ask(&place, &server, &[]).spawn();
    server.wait_for(1);
    running.signal("KILL");
    assert_eq!(running.wait().signal, Some(9));
    let ran = ask(&place, &server, &["--continue"]).run().exits(0);
    assert_eq!((ran.out(), ran.stderr.as_str()), ("again\n", ""));
    assert_eq!(asked(&server.seen()[1].json()), ["user: go", "user: go"]);
}

#[test]
fn a_kill_during_a_tool_leaves_no_child_and_one_interrupted_result_a_call() {
    let place = Place::new();
    let sleeps = bash("c1", "echo $$ >pid.new; mv pid.new pid; sleep 60 & wait");
    let calls = [
        ("c1", "bash", sleeps.1.as_str()),
        ("c2", "read", r#"{"path":"pid"}"#),
        ("c3", "bash", r#"{"command":"touch never"}"#),
    ];
    let server = Server::start([Chat::calls(&calls), Chat::answer("I see.")]);
    let running = ask(&place, &server, &[]).spawn();
    running.wait_for_file(&place.work().join("pid"));
    running.signal("KILL");
    assert_eq!(running.wait().signal, Some(9));
    let pid = fs::read_to_string(place.work().join("pid")).unwrap();
    let group = || Command::new("pgrep").args(["-g", pid.trim()]).output().unwrap();
    wait_until("the end of the command", || group().stdout.is_empty());
    let ran = place.etch(["-p", "go on", "--continue"]);
    assert_eq!(settings(ran, &place, &server).run().exits(0).out(), "I see.\n");
    let gone = "tool error: interrupted before it finished; its effects are unknown";
    let want = [
        "user: go".to_owned(),
        "assistant: +c1 +c2 +c3 ".to_owned(),
        format!("tool: c1 {gone}"),
        format!("tool: c2 {gone}"),
        format!("tool: c3 {gone}"),
        "user: go on".to_owned(),
    ];
    assert_eq!(asked(&server.seen()[1].json()), want);
    assert!(!place.work().join("never").exists());
}

#[test]
fn whatever_was_shown_before_a_kill_is_in_the_log() {
    for rounds in 1..=10 {
        let place = Place::new();
        let call = |round| {
            let (id, arguments) = bash(&format!("c{round}"), &format!("echo {round}"));
            Chat::new().text(&format!("Round {round}.")).call(0, &id, "bash", &arguments)
        };
        let replies = (0..rounds).map(|round| call(round).finish("tool_calls").done().reply());
        let server = Server::start(replies.chain([Reply::silence()]));
        let running = ask(&place, &server, &["--json"]).spawn();
        let request = server.wait_for(rounds + 1)[rounds].json();
        running.signal("KILL");
        let ran = running.wait();
        assert_eq!(ran.signal, Some(9));
        let log = fs::read_to_string(session(&place)).unwrap();
        // The prompt is there before the model is asked, a call before it runs, its result
        // before the model gets it.
        assert_eq!(log, ran.out(), "{rounds} rounds");
        let (projection, _) = project(&session(&place));
        assert_eq!(projection.messages().len(), 1 + 2 * rounds);
        assert_eq!(asked(&request).len(), 1 + 2 * rounds);
    }
}

#[test]
fn another_model_in_a_resumed_session_is_an_event() {
    let place = Place::new();
    let server = Server::start((0..3).map(|_| Chat::answer("ok")));
    let kinds = |ran: &Ran| -> Vec<String> {
        let line = |line| serde_json::from_str::<Value>(line).unwrap();
        let kind =
            |line: Value| format!("{} {}", line["type"].as_str().unwrap(), line["data"]["model"]);
        ran.out().lines().map(line).map(kind).take(3).collect()
    };
    let none = "null";
    let first = ask(&place, &server, &["--json"]).run().exits(0);
    let same = ask(&place, &server, &["--json", "--continue"]).run().exits(0);
    let other = ask(&place, &server, &["--json", "--continue", "--model", "n"]).run().exits(0);
    assert_eq!(
        kinds(&first)[..2],
        [format!("session.started {none}"), format!("message.user {none}")]
    );
    assert_eq!(kinds(&same)[0], format!("message.user {none}"));
    assert_eq!(
        kinds(&other)[..2],
        ["model.changed \"n\"".to_owned(), format!("message.user {none}")]
    );
}

/// What etch asked of the system, in order: writes of log lines by their type, requests, started
/// commands, and syncs.
fn steps(trace: &str) -> Vec<String> {
    let step = |line: &str| {
        let log = line.contains(&format!("/{SESSIONS}/")) && line.contains(".jsonl>");
        let line = line.split_once(' ').map_or(line, |(_, call)| call.trim_start());
        if line.starts_with("fdatasync(") && log {
            Some("sync".to_owned())
        } else if line.starts_with("write(") && log && !line.contains("index.jsonl") {
            let kind = line.split("\\\"type\\\":\\\"").nth(1)?.split('\\').next()?;
            Some(kind.to_owned())
        } else if line.contains("\"POST /v1/") {
            Some("request".to_owned())
        } else if line.starts_with("execve(") && line.contains("\"-c\"") && line.contains(" = 0") {
            Some("command".to_owned())
        } else {
            None
        }
    };
    trace.lines().filter_map(step).filter(|step| !step.starts_with("model.")).collect()
}

/// The steps of a turn with one command; `None` where nothing can look at them.
fn traced(args: &[&str], stdin: &str) -> Option<Vec<String>> {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("no strace here: the order of system calls is not looked at");
        return None;
    }
    let place = Place::new();
    let answer = Chat::new().text("Done.").finish("stop").done().reply();
    let calls = Chat::new().call(0, "c1", "bash", r#"{"command":"true"}"#);
    let server = Server::start([calls.finish("tool_calls").done().reply(), answer]);
    let calls = "trace=write,sendto,execve,fdatasync,fsync";
    let trace = ["-f", "-y", "-s", "100", "-o", "trace", "-e", calls, env!("CARGO_BIN_EXE_etch")];
    let command = place.command("strace", trace).args(args);
    settings(command, &place, &server).stdin(stdin).run().exits(0);
    Some(steps(&fs::read_to_string(place.work().join("trace")).unwrap()))
}

const TURN: [&str; 6] =
    ["request", "message.assistant", "command", "message.tool", "request", "message.assistant"];

#[test]
fn every_step_is_in_the_log_before_the_next_one_and_the_turn_ends_on_the_disk() {
    if let Some(steps) = traced(&["-p", "go"], "") {
        assert_eq!(steps, [&["session.started", "message.user"], &TURN[..], &["sync"]].concat());
    }
}

#[test]
fn what_is_said_in_a_chat_is_on_the_disk_before_it_is_acted_on() {
    if let Some(steps) = traced(&["chat"], "go\n") {
        let said = ["session.started", "message.user", "sync"];
        assert_eq!(steps, [&said, &TURN[..], &["sync"]].concat());
    }
}

//! What a script may rely on: exit codes, the JSON lines, and streams that go away.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::chat::Chat;
use crate::support::command::{Place, Ran, TestCommand};
use crate::support::schema;
use crate::support::server::{Reply, Server};

fn ask(place: &Place, server: &Server, args: &[&str]) -> TestCommand {
    place
        .etch(["-p", "do it"])
        .env("ETCH_PROVIDER", "openai")
        .env("ETCH_MODEL", "m")
        .env("ETCH_BASE_URL", server.base_url())
        .arg("--no-config")
        .env("ETCH_SESSION_DIR", place.work().join("sessions"))
        .args(args)
}

fn last_line(ran: &Ran) -> Value {
    serde_json::from_str(ran.out().lines().last().unwrap()).unwrap()
}

fn printed_schema(place: &Place, what: &str) -> Value {
    let ran = place.etch(["schema", what]).run().exits(0);
    serde_json::from_str(ran.out()).unwrap()
}

/// The one session's file.
fn session_text(place: &Place) -> String {
    let dir = place.work().join("sessions");
    let is_session = |path: &Path| {
        path.extension().is_some_and(|ext| ext == "jsonl") && !path.ends_with("index.jsonl")
    };
    let mut paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    std::fs::read_to_string(paths.find(|path| is_session(path)).unwrap()).unwrap()
}

#[test]
fn json_lines_are_the_log_and_the_last_is_the_result() {
    let place = Place::new();
    place.file("a.txt", "one\n");
    let calls = Chat::new().call(0, "c1", "read", r#"{"path":"a.txt"}"#).finish("tool_calls");
    let done = Chat::new().reasoning("hm").text("Done.").finish("stop").usage(20, 5);
    let server = Server::start([calls.usage(10, 3).done().reply(), done.done().reply()]);
    let ran = ask(&place, &server, &["--json"]).run().exits(0);
    let (events, result) = ran.out().trim_end().rsplit_once('\n').unwrap();
    assert_eq!(format!("{events}\n"), session_text(&place));
    let event_schema = printed_schema(&place, "events");
    for line in events.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(schema::check(&event_schema, &line), Ok(()), "{line}");
    }
    let mut result: Value = serde_json::from_str(result).unwrap();
    assert_eq!(schema::check(&printed_schema(&place, "result"), &result), Ok(()));
    let id = result["sessionId"].take();
    result["durationMillis"].take();
    assert_eq!(
        result,
        json!({
            "type": "run.result", "stop": "final", "exit": 0, "answer": "Done.", "rounds": 2,
            "toolCalls": 1, "usage": {"inputTokens": 30, "outputTokens": 8, "totalTokens": 38},
            "durationMillis": null, "auth": "none", "sessionId": null, "changedFiles": [], "deniedCalls": [],
        })
    );
    assert_eq!(id.as_str().unwrap().len(), 32);
}

#[test]
fn a_run_without_an_answer_says_why_and_never_ends_with_0() {
    let read = |n: usize| Chat::calls(&[(&format!("c{n}"), "nosuch", "{}")]);
    let answer = |chat: Chat| chat.usage(3, 1).done().reply();
    type Case<'a> = (&'a str, Vec<Reply>, &'a [&'a str], u8, &'a str);
    let cases: Vec<Case<'_>> = vec![
        ("empty", vec![answer(Chat::new().text("").finish("stop"))], &[], 1, "error"),
        ("blank", vec![answer(Chat::new().text(" \n").finish("stop"))], &[], 1, "error"),
        ("reasoning", vec![answer(Chat::new().reasoning("hm").finish("stop"))], &[], 1, "error"),
        (
            "filter",
            vec![answer(Chat::new().text("So").finish("content_filter"))],
            &[],
            1,
            "refused",
        ),
        ("cut", vec![answer(Chat::new().text("So").finish("length"))], &[], 1, "truncated"),
        ("unknown tool", (0..5).map(read).collect(), &[], 5, "limit"),
        ("rounds", vec![read(0)], &["--max-tool-rounds", "1"], 5, "limit"),
    ];
    for (name, replies, args, exit, stop) in cases {
        for json in [false, true] {
            let place = Place::new();
            let server = Server::start(replies.clone());
            let flags: Vec<&str> =
                args.iter().copied().chain(json.then_some("--json-result")).collect();
            let ran = ask(&place, &server, &flags).run().exits(exit.into());
            if json {
                let result = last_line(&ran);
                assert_eq!(ran.out().lines().count(), 1, "{name}");
                assert_eq!(
                    (&result["stop"], &result["exit"]),
                    (&json!(stop), &json!(exit)),
                    "{name}"
                );
                assert!(result["usage"].is_object(), "{name}");
                assert!(!result["error"]["message"].as_str().unwrap().is_empty(), "{name}");
                assert_eq!(schema::check(&printed_schema(&place, "result"), &result), Ok(()));
            } else {
                assert!(
                    ran.stderr.lines().any(|line| line.starts_with("etch: ")),
                    "{name}: {}",
                    ran.stderr
                );
            }
        }
    }
}

#[test]
fn a_failure_before_the_turn_is_a_result_line_too() {
    let place = Place::new();
    let check = |args: &[&str], exit: u8| {
        let ran = place.etch(["-p", "x", "--json-result"]).args(args).run().exits(exit.into());
        let result = last_line(&ran);
        assert_eq!(result["exit"], exit, "{args:?}");
        assert_eq!(schema::check(&printed_schema(&place, "result"), &result), Ok(()), "{result}");
    };
    check(&[], 3);
    check(&["-f", "missing"], 2);
    check(&["--provider", "echo", "--session", "4f2a91c0aaaabbbb", "--fork"], 9);
    let nowhere = ["--provider", "openai", "--model", "m", "--base-url", "http://127.0.0.1:1/v1"];
    check(&nowhere, 8);
}

/// A run in which a tool sleeps; its pid is then in the file `pid`.
fn sleeping() -> Server {
    let command = r#"{"command":"echo $$ >pid.new; mv pid.new pid; exec sleep 60"}"#;
    Server::start([Chat::calls(&[("c1", "bash", command)]), Chat::answer("never")])
}

fn run_in_shell(place: &Place, server: &Server, script: &str) -> TestCommand {
    place
        .command("bash", ["-c", script])
        .env("ETCH", env!("CARGO_BIN_EXE_etch"))
        .env("ETCH_PROVIDER", "openai")
        .env("ETCH_MODEL", "m")
        .env("ETCH_BASE_URL", server.base_url())
        .env("ETCH_SESSION_DIR", place.work().join("sessions"))
        .env("ETCH_STDIN", "never")
}

fn is_alive(pid: &str) -> bool {
    // A zombie is dead; only its parent has not looked yet.
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_reader_that_goes_away_ends_the_run_and_its_tools() {
    let place = Place::new();
    let server = sleeping();
    // The reader leaves once the tool runs.
    let script = "$ETCH -p x --json | while [ ! -e pid ]; do sleep 0.01; done; \
                  echo ${PIPESTATUS[0]}";
    let ran = run_in_shell(&place, &server, script).run().exits(0);
    assert_eq!(ran.out(), "141\n", "{}", ran.stderr);
    assert!(!ran.stderr.contains("panick"), "{}", ran.stderr);
    let pid = std::fs::read_to_string(place.work().join("pid")).unwrap();
    assert!(!is_alive(&pid));
    let log = session_text(&place);
    assert!(log.contains("\"interrupted\"") && log.contains("turn.stopped"), "{log}");
}

#[test]
fn full_and_closed_streams_do_not_panic() {
    let place = Place::new();
    let check = |redirect: &str, exit: i32| {
        let script = format!("$ETCH -p hi --provider echo --no-session {redirect}");
        let ran = place.sh(&script).env("ETCH_STDIN", "never").run().exits(exit);
        assert!(!ran.stderr.contains("panick"), "{redirect}: {}", ran.stderr);
        ran
    };
    for flags in ["", "--json", "--json-result", "--stream"] {
        let full = check(&format!("{flags} >/dev/full"), 1);
        assert!(
            full.stderr.contains("cannot write to standard output"),
            "{flags}: {}",
            full.stderr
        );
        check(&format!("{flags} >&-"), 0);
        assert!(!check(&format!("{flags} 2>&-"), 0).stdout.is_empty());
        assert!(!check(&format!("{flags} 2>/dev/full"), 0).stdout.is_empty());
    }
}

#[test]
fn signals_close_the_session_and_keep_the_codes() {
    for (signal, exit) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let place = Place::new();
        let server = sleeping();
        let running = ask(&place, &server, &["--json"]).spawn();
        running.wait_for_file(&place.work().join("pid"));
        running.signal(signal);
        let ran = running.wait().exits(exit);
        let result = last_line(&ran);
        assert_eq!((&result["stop"], &result["exit"]), (&json!("cancelled"), &json!(exit)));
        let pid = std::fs::read_to_string(place.work().join("pid")).unwrap();
        assert!(!is_alive(&pid), "{signal}");
        assert!(session_text(&place).contains("\"interrupted\""), "{signal}");
    }
}

#[test]
fn a_run_whose_output_nobody_takes_ends_soon_after_it_is_told_to() {
    for (signal, exit) in [("TERM", 143), ("HUP", 129)] {
        let place = Place::new();
        let long = Chat::new().text(&"word ".repeat(20_000)).finish("stop").done();
        let server = Server::start([long.reply()]);
        // The pipe stays open, nobody reads, and the answer does not fit: its line is in the log
        // and can never be printed.
        let script = format!(
            "mkfifo out; exec 3<>out; $ETCH -p x --json >out & \
             until grep -qs 'word word' sessions/*.jsonl; do sleep 0.01; done; \
             kill -{signal} $!; wait $!; echo $?"
        );
        let ran = run_in_shell(&place, &server, &script).run().exits(0);
        assert_eq!(ran.out(), format!("{exit}\n"), "{}", ran.stderr);
    }
}

#[test]
fn a_tool_run_by_hand_whose_output_nobody_takes_ends_as_soon() {
    let place = Place::new();
    let server = Server::start([]);
    let flood = "yes | head -c 300000; yes | head -c 300000 >&2; touch flooded";
    let script = format!(
        "mkfifo out; exec 3<>out; $ETCH tool bash '{flood}' >out & \
         until [ -e flooded ]; do sleep 0.01; done; kill -TERM $!; wait $!; echo $?"
    );
    let ran = run_in_shell(&place, &server, &script).run().exits(0);
    assert_eq!(ran.out(), "143\n", "{}", ran.stderr);
}

#[test]
fn a_limit_on_the_size_of_files_is_a_full_disk_and_no_crash() {
    let place = Place::new();
    let server = Server::with(|_| Chat::answer("never"));
    let ran = run_in_shell(&place, &server, "ulimit -f 0; $ETCH -p x --json-result").run().exits(9);
    let result = last_line(&ran);
    assert_eq!((&result["stop"], &result["exit"]), (&json!("error"), &json!(9)));
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("File too large"), "{message}");
    // What etch starts dies of it as ever.
    let script = "ulimit -f 0; $ETCH tool bash 'cat /proc/self/status' | grep SigIgn";
    let ran = run_in_shell(&place, &server, script).run().exits(0);
    let ignored = u64::from_str_radix(ran.out().split_whitespace().last().unwrap(), 16).unwrap();
    assert_eq!(ignored & (1 << 24), 0, "{}", ran.out());
}

#[test]
fn the_time_limit_of_the_run_is_124() {
    let place = Place::new();
    let server = sleeping();
    let ran = ask(&place, &server, &["--json-result", "--timeout", "700ms"]).run().exits(124);
    assert_eq!(last_line(&ran)["stop"], "timeout");
}

/// Addresses of the network that a trace of system calls names, each once.
fn contacted(trace: &str) -> std::collections::BTreeSet<String> {
    let address = |call: &str| {
        let port = call.split("_port=htons(").nth(1)?.split(')').next()?;
        let host = call.split("inet_addr(\"").nth(1).or(call.split("AF_INET6, \"").nth(1))?;
        Some(format!("{}:{port}", host.split('"').next()?))
    };
    trace.lines().filter_map(address).collect()
}

#[test]
fn a_script_without_a_provider_is_told_how_to_get_one_and_nobody_is_contacted() {
    let place = Place::new();
    let trace = ["-f", "-s", "200", "-o", "trace", "-e", "trace=connect,sendto,sendmsg,sendmmsg"];
    let command = match std::process::Command::new("strace").arg("-V").output() {
        Ok(_) => place.command("strace", trace).args([env!("CARGO_BIN_EXE_etch"), "-p", "do it"]),
        Err(_) => place.etch(["-p", "do it"]),
    };
    let ran = command.run().exits(3);
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 5, "{}", ran.stderr);
    assert!(lines[1].contains("--provider local"), "{}", lines[1]);
    assert!(lines[2].contains("OPENAI_API_KEY"), "{}", lines[2]);
    assert!(lines[3].contains("etch auth login"), "{}", lines[3]);
    assert!(lines[4].contains("etch demo"), "{}", lines[4]);
    if let Ok(trace) = std::fs::read_to_string(place.work().join("trace")) {
        assert_eq!(contacted(&trace), [].into(), "{trace}");
    }
}

#[test]
fn nobody_but_the_endpoint_is_contacted_and_no_name_is_looked_up() {
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        eprintln!("no strace here: what is contacted is not looked at");
        return;
    }
    let place = Place::new();
    let calls = Chat::new().call(0, "c1", "bash", r#"{"command":"true"}"#).finish("tool_calls");
    let answer = Chat::new().text("Done.").finish("stop").done();
    let server = Server::start([calls.done().reply(), answer.reply()]);
    let trace = ["-f", "-s", "200", "-o", "trace", "-e", "trace=connect,sendto,sendmsg,sendmmsg"];
    place
        .command("strace", trace)
        .args([env!("CARGO_BIN_EXE_etch"), "-p", "do it", "--no-config", "--no-session"])
        .env("ETCH_PROVIDER", "openai")
        .env("ETCH_MODEL", "m")
        .env("ETCH_BASE_URL", server.base_url())
        .run()
        .exits(0);
    let trace = std::fs::read_to_string(place.work().join("trace")).unwrap();
    let endpoint = server.base_url();
    let endpoint = endpoint.trim_start_matches("http://").trim_end_matches("/v1");
    assert_eq!(contacted(&trace), [endpoint.to_owned()].into(), "{trace}");
}

#[test]
fn a_run_has_the_tools_of_the_list_and_no_others() {
    let place = Place::new();
    let check = |args: &[&str], variable: &str, offered: &[&str]| {
        let server = Server::start([
            Chat::calls(&[("c1", "bash", r#"{"command":"touch ran"}"#), ("c2", "frob", "{}")]),
            Chat::calls(&[("c3", "ls", "{}")]),
            Chat::answer("done"),
        ]);
        let command = ask(&place, &server, &["--json-result"]).args(args);
        let ran = command.env("ETCH_TOOLS", variable).run();
        let requests = server.seen();
        let tools = requests[0].json()["tools"].clone();
        let names: Vec<_> = tools.as_array().into_iter().flatten().collect();
        let names: Vec<_> =
            names.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, offered, "{args:?}");
        let result = last_line(&ran);
        let denied = |name: &&str| !offered.contains(name);
        let denied: Vec<_> = ["bash", "ls"].into_iter().filter(denied).collect();
        let denied: Vec<_> = denied
            .iter()
            .map(|name| {
                let reason = format!("the tool '{name}' is not among the tools of this run");
                json!({"name": name, "reason": reason})
            })
            .collect();
        assert_eq!(result["deniedCalls"], Value::from(denied), "{args:?}");
        assert_eq!(result["exit"], if offered.contains(&"ls") { 0 } else { 4 }, "{args:?}");
        assert!(!place.work().join("ran").exists(), "{args:?}");
    };
    check(&["--tools", "none"], "", &[]);
    check(&["--tools", "ls,read"], "", &["ls", "read"]);
    check(&["--tools=read"], "bash", &["read"]);
    check(&[], "grep, ls", &["grep", "ls"]);
    check(&["-c", "tools.allow=ls"], "", &["ls"]);
}

#[test]
fn a_tool_that_does_not_exist_is_said_before_anything_is_sent() {
    let place = Place::new();
    let server = Server::start([]);
    let there = "there are bash, edit, find, grep, ls, read, write";
    let ran = ask(&place, &server, &["--tools", "raed,bash"]).run();
    ran.is(2, "", "etch: --tools: there is no tool 'raed'; did you mean 'read'?\n");
    let ran = ask(&place, &server, &["--tools", "none,ls"]).run();
    ran.is(2, "", &format!("etch: --tools: there is no tool 'none'; {there}\n"));
    let ran = ask(&place, &server, &[]).env("ETCH_TOOLS", "shell").run();
    ran.is(2, "", &format!("etch: ETCH_TOOLS: there is no tool 'shell'; {there}\n"));
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn an_answer_file_that_cannot_be_written_is_said_first_and_a_failed_run_keeps_the_old_one() {
    let place = Place::new();
    let server = Server::start([]);
    place.file("old.md", "the old answer\n");
    place.file("folder/x", "");
    let check = |name: &str, why: &str| {
        let ran = ask(&place, &server, &["-o", name]).run();
        ran.is(2, "", &format!("etch: -o: cannot write to {name}: {why}\n"));
    };
    check("folder", "is a directory");
    check("nowhere/a.md", "no such file or directory");
    check("old.md/a.md", "not a directory");
    assert_eq!(server.seen().len(), 0);
    let server = Server::start([Reply::json(401, &json!({"error": {"message": "no"}}))]);
    ask(&place, &server, &["-o", "old.md"]).run().exits(3);
    assert_eq!(place.home.read("code/old.md"), "the old answer\n");
    let server = Server::start([Chat::answer("new")]);
    ask(&place, &server, &["-o", "old.md"]).run().exits(0);
    assert_eq!(place.home.read("code/old.md"), "new\n");
}

#[test]
fn a_name_that_no_session_can_have_is_said_with_the_reason() {
    let place = Place::new();
    let list = "run 'etch sessions' to list them";
    for (name, reason) in [
        ("cafe", "digits and a to f alone are the start of an id"),
        ("a/b", "a name has letters, digits, blanks and -_. only"),
        (&*"long".repeat(17), "a name has at most 64 bytes"),
    ] {
        let ran = place.etch(["-p", "hi", "--provider", "echo", "--session", name]).run();
        let want = format!(
            "etch: no session '{name}', and none can begin under that name: {reason}; {list}\n"
        );
        ran.is(9, "", &want);
    }
}

#[test]
fn words_about_a_failed_attempt_fit_what_was_shown() {
    let place = Place::new();
    let cut = || Chat::new().text("Hel").reply().then_cut();
    let check = |args: &[&str], void: bool| {
        let server = Server::start([cut(), Chat::answer("Hello")]);
        let ran = ask(&place, &server, args).run().exits(0);
        assert!(ran.stderr.contains("attempt 1 of"), "{}", ran.stderr);
        assert_eq!(
            ran.stderr.contains("(the text above is void)"),
            void,
            "{args:?} {}",
            ran.stderr
        );
    };
    check(&[], false);
    check(&["--stream"], true);
}

#[test]
fn a_call_that_the_server_left_in_the_text_is_said_to_be_one() {
    let place = Place::new();
    let call = "<tool_call>\n{\"name\": \"ls\", \"arguments\": {}}\n</tool_call>";
    let answer = |args: &[&str]| {
        let server = Server::start([Chat::answer(call)]);
        let ran = ask(&place, &server, args).run().exits(0);
        assert_eq!(ran.out(), format!("{call}\n"));
        ran.stderr.contains("tool call as text")
    };
    assert!(answer(&[]));
    assert!(!answer(&["--tools", "none"]));
    assert!(!answer(&["-q"]));
    // In pieces, behind blanks; and only at the beginning.
    for (pieces, want) in [
        (["\n ", "<tool", "_call>{}"], true),
        (["[TOOL_", "CALLS]", "[]"], true),
        (["Write ", "<tool_", "call>"], false),
        (["<tool", " call", ">"], false),
    ] {
        let said = pieces.iter().fold(Chat::new(), |chat, piece| chat.text(piece));
        let server = Server::start([said.finish("stop").done().reply()]);
        let ran = ask(&place, &server, &[]).run().exits(0);
        assert_eq!(ran.stderr.contains("tool call as text"), want, "{pieces:?}");
    }
}

#[test]
fn how_to_go_on_works_as_it_is_said() {
    let place = Place::new();
    place.file("other dir/x", "");
    let check = |args: &[&str], want: &str| {
        let ran = place.etch(["-p", "one", "-v", "--provider", "echo"]).args(args).run().exits(0);
        let (_, line) = ran.stderr.trim_end().split_once("go on with: ").unwrap();
        let (line, id) = (line.replace(" TEXT", ""), line.split(' ').rev().nth(1).unwrap());
        assert_eq!(line, want.replace("ID", id));
        let again = place.sh(&format!("\"$ETCH\"{} two", line.strip_prefix("etch").unwrap()));
        again.env("ETCH_PROVIDER", "echo").run().exits(0);
        let shown = place.etch(["sessions", "--json"]).args(&args[..args.len().min(4)]).run();
        let rows: Vec<Value> = serde_json::from_str(shown.exits(0).out()).unwrap();
        assert_eq!(rows.len(), 1);
    };
    check(&[], "etch -p --session ID");
    check(&["--session-dir", "kept here"], "etch -p --session-dir 'kept here' --session ID");
    check(
        &["-C", "other dir", "--session-dir", "s"],
        "etch -C 'other dir' -p --session-dir s --session ID",
    );
}

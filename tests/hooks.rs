//! Command hooks by the real program: what they get, what they change and refuse, and that
//! nothing passes when one is broken.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::chat::Chat;
use crate::support::command::{Place, Ran, TestCommand};
use crate::support::responses::Responses;
use crate::support::server::{Reply, Seen, Server, Ws};

/// Longer than a busy machine needs, shorter than any wait that must be broken off.
const AT_ONCE: Duration = Duration::from_secs(20);

/// Appends what it gets to a file, and says nothing.
const NOTE: &str = "cat >>$HOME/told";

/// A place whose own configuration has these hooks: event, matcher, command, seconds.
fn place(hooks: &[(&str, &str, &str, u64)]) -> Place {
    let place = Place::new();
    place.home.write(".etch/config.toml", config(hooks));
    place
}

fn config(hooks: &[(&str, &str, &str, u64)]) -> String {
    let row = |(event, matcher, command, seconds): &(&str, &str, &str, u64)| {
        assert!(!command.contains("'''"));
        format!(
            "[[hooks.{event}]]\nmatcher = '{matcher}'\ntimeout_seconds = {seconds}\n\
             command = '''{command}'''\n"
        )
    };
    hooks.iter().map(row).collect()
}

fn etch(place: &Place, server: &Server, args: &[&str]) -> TestCommand {
    place
        .etch(args)
        .env("ETCH_PROVIDER", "openai")
        .env("ETCH_MODEL", "m")
        .env("ETCH_BASE_URL", server.base_url())
        .env("ETCH_SESSION_DIR", sessions(place))
}

fn ask(place: &Place, server: &Server, args: &[&str]) -> TestCommand {
    etch(place, server, &["-p", "go", "--stdin", "never"]).args(args)
}

#[track_caller]
fn answers(command: TestCommand, want: &str) {
    assert_eq!(command.run().exits(0).out(), want);
}

fn sessions(place: &Place) -> PathBuf {
    place.home.path().join("sessions")
}

/// The events of the one session.
fn logged(place: &Place) -> Vec<Value> {
    let Ok(files) = fs::read_dir(sessions(place)) else { return Vec::new() };
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| {
        path.extension().is_some_and(|end| end == "jsonl") && !path.ends_with("index.jsonl")
    });
    let [path] = paths.as_slice() else { panic!("{paths:?}") };
    lines(&fs::read_to_string(path).unwrap())
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What [`NOTE`] wrote.
fn told(place: &Place) -> Vec<Value> {
    lines(&place.home.read("told"))
}

fn of_type<'v>(events: &'v [Value], kind: &str) -> Vec<&'v Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["data"]).collect()
}

/// `status: text` of each result in the log.
fn results(events: &[Value]) -> Vec<String> {
    let one = |data: &&Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text(&data["status"]), text(&data["content"][0]["text"]))
    };
    of_type(events, "message.tool").iter().map(one).collect()
}

/// The messages of a request without instructions: role and content.
fn said(seen: &Seen) -> Vec<String> {
    let body = seen.json();
    let messages = body["messages"].as_array().unwrap().iter();
    let told = messages.filter(|message| message["role"] != "system").map(|message| {
        let content = message["content"].as_str().unwrap_or_default();
        format!("{} {content}", message["role"].as_str().unwrap()).trim_end().to_owned()
    });
    told.collect()
}

fn touch(name: &str) -> (&str, &str, String) {
    (name, "bash", json!({"command": format!("touch {name}; echo did {name}")}).to_string())
}

fn calls(names: &[&str]) -> Reply {
    let calls: Vec<_> = names.iter().map(|name| touch(name)).collect();
    let calls: Vec<_> = calls.iter().map(|(id, name, args)| (*id, *name, args.as_str())).collect();
    Chat::calls(&calls)
}

#[test]
fn hooks_of_a_turn_run_in_their_order_with_what_they_are_promised() {
    let events = [
        "SessionStart",
        "UserPromptSubmit",
        "TurnStart",
        "TurnComplete",
        "ContextBuild",
        "PreToolUse",
        "PostToolUse",
        "PreCompact",
        "PostCompact",
    ];
    let hooks: Vec<_> = events.iter().map(|event| (*event, "", NOTE, 30)).collect();
    let place = place(&hooks);
    let server =
        Server::start([calls(&["one", "two"]), Chat::answer("Done."), Chat::answer("Again.")]);
    answers(ask(&place, &server, &[]), "Done.\n");
    let names = |told: &[Value]| -> Vec<String> {
        told.iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect()
    };
    let all = told(&place);
    assert_eq!(
        names(&all),
        [
            "UserPromptSubmit",
            "SessionStart",
            "TurnStart",
            "ContextBuild",
            "PreToolUse",
            "PreToolUse",
            "PostToolUse",
            "PostToolUse",
            "ContextBuild",
            "TurnComplete"
        ]
    );
    let cwd = place.work().canonicalize().unwrap();
    for line in &all {
        assert_eq!((&line["version"], &line["cwd"]), (&json!(1), &json!(cwd)), "{line}");
    }
    let log = logged(&place);
    let id = |kind: &str| log.iter().rfind(|event| event["type"] == kind).unwrap()["id"].clone();
    let (user, answer) = (id("message.user"), id("message.assistant"));
    let path = &all[1]["payload"]["sessionPath"];
    assert!(fs::exists(path.as_str().unwrap()).unwrap(), "{path}");
    let session = &all[1]["payload"]["sessionId"];
    let tool = |name| {
        let (id, tool, arguments) = touch(name);
        json!({"id": id, "name": tool, "arguments": arguments})
    };
    let results: Vec<_> = of_type(&log, "message.tool")
        .iter()
        .map(|data| data["content"][0]["text"].clone())
        .collect();
    let payloads: Vec<_> = all.iter().map(|line| line["payload"].clone()).collect();
    let want = [
        json!({"prompt": "go"}),
        json!({"sessionPath": path, "sessionId": session, "reason": "new"}),
        json!({"sessionPath": path, "sessionId": session, "userEventId": user, "prompt": "go"}),
    ];
    assert_eq!(payloads[..3], want);
    let want = [
        json!({"sessionPath": path, "tool": tool("one")}),
        json!({"sessionPath": path, "tool": tool("two")}),
        json!({"sessionPath": path, "tool": tool("one"), "output": results[0], "error": false}),
        json!({"sessionPath": path, "tool": tool("two"), "output": results[1], "error": false}),
    ];
    assert_eq!(payloads[4..8], want);
    let want = json!({
        "sessionPath": path,
        "sessionId": session,
        "userEventId": user,
        "assistantEventId": answer,
        "prompt": "go",
        "userPrompts": ["go"],
        "assistantText": "Done.",
        "toolCalls": 2,
    });
    assert_eq!(payloads[9], want);
    // What the model is to see, in the shape that hooks know.
    assert_eq!((&payloads[3]["round"], &payloads[8]["round"]), (&json!(0), &json!(1)));
    let shapes = payloads[8]["messages"].as_array().unwrap();
    assert_eq!(shapes[0]["role"], "system");
    let text = |text: &Value| json!([{"type": "text", "text": text}]);
    let want = [
        json!({"role": "user", "content": text(&json!("go"))}),
        json!({"role": "assistant", "content": [], "toolCalls": [tool("one"), tool("two")]}),
        json!({"role": "tool", "content": text(&results[0]), "toolCallId": "one", "name": "bash"}),
        json!({"role": "tool", "content": text(&results[1]), "toolCallId": "two", "name": "bash"}),
    ];
    assert_eq!(shapes[shapes.len() - 4..], want);
    // A turn later.
    fs::remove_file(place.home.path().join("told")).unwrap();
    answers(ask(&place, &server, &["--continue"]), "Again.\n");
    let all = told(&place);
    assert_eq!(
        names(&all),
        ["UserPromptSubmit", "SessionStart", "TurnStart", "ContextBuild", "TurnComplete"]
    );
    assert_eq!(all[0]["payload"], json!({"prompt": "go", "sessionPath": path}));
    assert_eq!(all[1]["payload"]["reason"], "resume");
    assert_eq!(all[4]["payload"]["toolCalls"], 0);
}

#[test]
fn a_prompt_is_rewritten_or_refused_before_anything_is_stored() {
    let polite = r#"sed -E 's/.*"prompt":"([^"]*)".*/{"prompt":"please \1"}/'"#;
    let place = place(&[
        ("UserPromptSubmit", "", polite, 30),
        (
            "UserPromptSubmit",
            "",
            r#"if grep -q secret; then echo '{"block":true,"reason":"no secrets"}'; fi"#,
            30,
        ),
        ("TurnComplete", "", NOTE, 30),
    ]);
    let server = Server::start([Chat::answer("Yes.")]);
    let config = place.home.path().join(".etch/config.toml");
    let why = format!("a hook blocked the prompt: no secrets ({}:5)", config.display());
    let ran = etch(&place, &server, &["-p", "the secret", "--stdin", "never"]).run().exits(4);
    assert_eq!(ran.out(), "");
    assert!(ran.stderr.contains(&why), "{}", ran.stderr);
    let json = ["-p", "the secret", "--stdin", "never", "--json"];
    let ran = etch(&place, &server, &json).run().exits(4);
    let [result] = &lines(ran.out())[..] else { panic!("{}", ran.out()) };
    assert_eq!((&result["stop"], &result["exit"]), (&json!("denied"), &json!(4)));
    assert_eq!(result["error"]["kind"], "denied");
    assert_eq!(result["error"]["message"], *why);
    assert_eq!((logged(&place), server.seen().len()), (Vec::new(), 0));
    answers(ask(&place, &server, &[]), "Yes.\n");
    assert_eq!(said(&server.seen()[0]), ["user please go"]);
    assert_eq!(of_type(&logged(&place), "message.user")[0]["content"][0]["text"], "please go");
    assert_eq!(told(&place)[0]["payload"]["prompt"], "please go");
    // A prompt that is refused in a session leaves that as it was.
    let before = logged(&place);
    let more = ["-p", "a secret", "--stdin", "never", "--continue"];
    etch(&place, &server, &more).run().exits(4);
    assert_eq!(logged(&place), before);
}

#[test]
fn a_call_is_rewritten_or_refused_before_any_of_its_batch_runs() {
    let other =
        r#"sed 's/.*/{"arguments":"{\\"command\\":\\"[ ! -e three ] \&\& echo rewritten\\"}"}/'"#;
    let first = r#"grep -q 'touch one' && echo '{"block":true,"reason":"not one"}'; exit 0"#;
    let second = format!("case $(cat) in *'touch two'*) echo | {other};; esac");
    let place = place(&[
        ("PreToolUse", "^bash$", first, 30),
        ("PreToolUse", "bash|edit", &second, 30),
        ("PreToolUse", "read", "exit 1", 30),
        ("PostToolUse", "", "cat >>$HOME/after", 30),
    ]);
    let server = Server::start([calls(&["one", "two", "three"]), Chat::answer("Done.")]);
    answers(ask(&place, &server, &[]), "Done.\n");
    let log = logged(&place);
    let config = place.home.path().join(".etch/config.toml");
    let denied = json!({
        "toolCallId": "one",
        "name": "bash",
        "reason": "not one",
        "hook": format!("{}:1", config.display()),
    });
    assert_eq!(of_type(&log, "tool.denied"), [&denied]);
    let asked = &of_type(&log, "message.assistant")[0]["content"];
    let rewritten = json!({"command": "[ ! -e three ] && echo rewritten"});
    assert_eq!(asked[1]["arguments"], rewritten);
    let results = results(&log);
    assert_eq!(results[0], "denied: tool blocked by hook: not one");
    assert!(results[1].contains("rewritten"), "{results:?}");
    assert!(results[2].contains("did three"), "{results:?}");
    let there = ["one", "two", "three"].map(|name| place.work().join(name).exists());
    assert_eq!(there, [false, false, true]);
    let sent = server.seen()[1].json();
    let messages = sent["messages"].as_array().unwrap();
    let call = &messages[messages.len() - 4]["tool_calls"][1]["function"]["arguments"];
    assert_eq!(call, &json!(rewritten.to_string()));
    assert_eq!(messages[messages.len() - 3]["content"], "tool blocked by hook: not one");
    // The refused one too is told of, as an error, and the others with what they really ran.
    let after = lines(&place.home.read("after"));
    let errors: Vec<_> = after.iter().map(|line| line["payload"]["error"].clone()).collect();
    assert_eq!(errors, [true, false, false]);
    assert_eq!(after[1]["payload"]["tool"]["arguments"], rewritten.to_string());
}

#[test]
fn a_run_whose_calls_were_all_refused_says_so() {
    let place = place(&[("PreToolUse", "", r#"echo '{"decision":"deny"}'"#, 30)]);
    let server = Server::start([calls(&["one"]), Chat::answer("I cannot.")]);
    let ran = ask(&place, &server, &["--json-result"]).run().exits(4);
    let result = &lines(ran.out())[0];
    assert_eq!(result["deniedCalls"], json!([{"name": "bash", "reason": "no reason was given"}]));
    assert_eq!(result["answer"], "I cannot.");
    assert!(said(&server.seen()[1])[2].ends_with("tool blocked by hook: no reason was given"));
}

/// All at once: some of them take a second.
#[test]
fn no_call_passes_a_guard_that_is_broken() {
    let fails = |command: &str, seconds: u64, fault: &str| {
        let place = place(&[("PreToolUse", "bash", command, seconds)]);
        let server = Server::start([calls(&["one", "two"]), Chat::answer("go on")]);
        let ran = ask(&place, &server, &["--json-result"]).run().exits(1);
        let result = &lines(ran.out())[0];
        let shown = format!("{command}: {result}");
        assert_eq!((&result["stop"], &result["exit"]), (&json!("error"), &json!(1)), "{shown}");
        assert_eq!(result["error"]["kind"], "hook", "{shown}");
        let message = result["error"]["message"].as_str().unwrap();
        let config = place.home.path().join(".etch/config.toml");
        let head = format!("{}:1: the PreToolUse hook '", config.display());
        assert!(message.starts_with(&head), "{shown}");
        assert!(message.contains(&format!("' failed: {fault}")), "{shown}");
        assert!(message.len() < 4_000, "{shown}");
        assert!(!place.work().join("one").exists() && !place.work().join("two").exists());
        assert_eq!(server.seen().len(), 1, "{shown}");
        let log = logged(&place);
        let not_run = "denied: tool error: not run: a hook that guards calls failed";
        assert_eq!(results(&log), [not_run, not_run], "{shown}");
        assert_eq!(of_type(&log, "turn.stopped")[0]["message"], message, "{shown}");
        // The session is whole: mended, it goes on.
        place.home.write(".etch/config.toml", "");
        answers(ask(&place, &server, &["--continue"]), "go on\n");
        assert_eq!(
            said(&server.seen()[1])[2],
            "tool tool error: not run: a hook that guards calls failed"
        );
    };
    let not_json = "its output is not one JSON object: ";
    std::thread::scope(|scope| {
        for (command, seconds, fault) in [
            ("echo denied; exit 1", 30, "exit code 1; it said: denied"),
            ("echo 'not today' >&2; exit 2", 30, "exit code 2; it said: not today"),
            (r#"echo '{"block":true}'; exit 1"#, 30, "exit code 1; it said: {\"block\":true}"),
            (r#"echo 'log line'; echo '{"block":true}'"#, 30, not_json),
            (r#"echo '{"block":tr'"#, 30, not_json),
            (r#"printf '{"block":true}{"block":false}'"#, 30, not_json),
            ("echo '[]'", 30, "its output is a list, not a JSON object"),
            (r#"echo '{"block":"yes"}'"#, 30, "'block' is text, not true or false"),
            (r#"echo '{"allow":false}'"#, 30, "unknown field 'allow'; PreToolUse takes "),
            ("kill -9 $$", 30, "it was ended by signal 9"),
            ("kill -SEGV $$", 30, "it was ended by signal 11"),
            ("/etc/passwd", 30, "exit code 126; it said: "),
            ("/nowhere/guard.sh", 30, "exit code 127; it said: "),
            ("sleep 60", 1, "timed out after 1 s"),
            ("trap '' TERM; sleep 60; sleep 60", 1, "timed out after 1 s"),
            ("sleep 60 & exit 0", 1, "timed out after 1 s; it had ended, but what it started"),
            ("head -c 50000000 /dev/zero", 30, "it wrote 47.7MB, and at most 16.0MB are read"),
        ] {
            scope.spawn(move || fails(command, seconds, fault));
        }
    });
}

#[test]
fn a_result_is_rewritten_or_withheld_and_never_passes_a_hook_that_failed() {
    let hide = r#"sed -E 's/.*/{"output":"[hidden]"}/'"#;
    let place = place(&[
        ("PostToolUse", "bash", hide, 30),
        ("PostToolUse", "bash", r#"grep -q hidden && echo '{"error":true}'"#, 30),
        ("PostToolUse", "ls", r#"echo '{"output":""}'"#, 30),
    ]);
    let (_, _, one) = touch("one");
    let replies = || {
        let list = [("one", "bash", one.as_str()), ("l", "ls", "{}"), ("r", "read", "{}")];
        Server::start([Chat::calls(&list), Chat::answer("Done.")])
    };
    let server = replies();
    answers(ask(&place, &server, &[]), "Done.\n");
    let got = results(&logged(&place));
    assert_eq!(got[..2], ["error: [hidden]", "ok: (no output)"]);
    assert!(got[2].starts_with("error: tool error: "), "{got:?}");
    assert!(!server.seen()[1].json().to_string().contains("exit code"));
    // A hook that fails: the call has run, its result goes nowhere, and the turn ends.
    let place = self::place(&[("PostToolUse", "bash", "exit 1", 30)]);
    let server = replies();
    let ran = ask(&place, &server, &["--json"]).run().exits(1);
    assert!(!ran.out().contains("duration: ") && place.work().join("one").exists());
    let got = results(&logged(&place));
    assert!(got[0].starts_with("error: tool error: a hook that sees results failed"), "{got:?}");
    assert_eq!(got[1..], vec!["interrupted: tool error: interrupted before it finished"; 2]);
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn the_conversation_is_rewritten_for_the_model_alone() {
    let add = r#"sed -E 's/.*"messages":(.*)\],"round".*/{"messages":\1,{"role":"user","content":"and be quick"}]}/'"#;
    let place = place(&[("ContextBuild", "", add, 30), ("ContextBuild", "", NOTE, 30)]);
    let server = Server::start([calls(&["one"]), Chat::answer("Done.")]);
    answers(ask(&place, &server, &[]), "Done.\n");
    let [first, second] = &server.seen()[..] else { panic!() };
    assert_eq!(said(first), ["user go", "user and be quick"]);
    let second = said(second);
    assert_eq!(
        (second.len(), second[0].as_str(), second[3].as_str()),
        (4, "user go", "user and be quick")
    );
    // The second hook saw it; the log did not.
    let seen = told(&place)[0]["payload"]["messages"].as_array().unwrap().last().cloned();
    assert_eq!(seen, Some(json!({"role": "user", "content": "and be quick"})));
    assert!(!logged(&place).iter().any(|event| event.to_string().contains("be quick")));
}

#[test]
fn a_printed_request_says_that_hooks_may_change_it() {
    let place = place(&[("ContextBuild", "", "touch $HOME/ran", 30)]);
    let ran = ask(&place, &Server::start([]), &["--print-request"]).run().exits(0);
    assert!(ran.stderr.contains("hooks do not run here"), "{}", ran.stderr);
    assert!(!place.home.path().join("ran").exists());
}

#[test]
fn a_conversation_that_no_model_takes_is_not_sent() {
    for (command, fault) in [
        (r#"echo '{"messages":[]}'"#, "'messages' is empty"),
        (
            r#"echo '{"messages":[{"role":"tool","toolCallId":"x","content":"y"}]}'"#,
            "messages[0] is a result of 'x', which is no call right before it",
        ),
        (
            r#"echo '{"messages":[{"role":"user","content":"y"},{"role":"assistant","content":"z"}]}'"#,
            "the last of 'messages' must be of the user or a tool",
        ),
    ] {
        let place = place(&[("ContextBuild", "", command, 30)]);
        let server = Server::start([]);
        let ran = ask(&place, &server, &[]).run().exits(1);
        let want = format!("the ContextBuild hook '{}", &command[..20]);
        assert!(ran.stderr.contains(&want), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("failed: {fault}; it said: ")), "{}", ran.stderr);
        assert_eq!(server.seen().len(), 0);
    }
}

/// The socket of a session only sends what is new when what came before is what was sent.
#[test]
fn a_continued_response_never_misses_what_a_hook_changed() {
    let add = r#"sed -E 's/.*"messages":(.*)\],"round":([0-9]).*/{"messages":\1,{"role":"user","content":"round \2"}]}/'"#;
    for (command, continues) in [(add, false), (NOTE, true)] {
        let place = place(&[("ContextBuild", "", command, 30)]);
        let server = Server::with(|_| {
            Reply::websocket(Ws::each(|message| {
                let answer = Responses::numbered(message.number as u64 + 1);
                let answer = match message.number {
                    0 => answer.call("c1", "ls", "{}"),
                    _ => answer.message("Done."),
                };
                let frames = answer.usage(10, 0, 2, 0).completed().frames();
                frames.iter().fold(Ws::new(), |ws, frame| ws.text(frame))
            }))
        });
        let args = ["--openai-api", "responses", "--openai-transport", "websocket"];
        answers(ask(&place, &server, &args), "Done.\n");
        let messages = server.messages();
        let second = messages[1].json();
        assert_eq!(second["previous_response_id"].is_string(), continues, "{second}");
        let input = second["input"].to_string();
        assert_eq!(input.contains("round 1"), !continues, "{input}");
        assert!(input.contains("function_call_output"), "{input}");
        // Whole, it holds the prompt again.
        assert_eq!(input.contains("\"go\""), !continues, "{input}");
    }
}

#[test]
fn hooks_get_no_key_and_their_words_show_none() {
    let place = place(&[
        ("TurnStart", "", "env >$HOME/env", 30),
        ("TurnComplete", "", "echo key sk-ABCDEFGH >&2; exit 1", 30),
        ("PostToolUse", "", r#"echo '{"output":"the key is sk-ABCDEFGH"}'"#, 30),
    ]);
    let server = Server::start([Chat::calls(&[("a", "ls", "{}")]), Chat::answer("Done.")]);
    let run = ask(&place, &server, &[]).env("OPENAI_API_KEY", "sk-ABCDEFGH");
    let ran = run.env("ETCH_API_KEY", "sk-ABCDEFGH").env("OTHER", "kept").run().exits(1);
    // The answer was given: it is not lost with the hook behind it.
    assert_eq!(ran.out(), "Done.\n");
    assert!(ran.stderr.contains("exit code 1; it said: key [redacted]"), "{}", ran.stderr);
    assert_eq!(results(&logged(&place)), ["ok: the key is [redacted]"]);
    let env = place.home.read("env");
    assert!(env.contains("OTHER=kept") && env.contains("ETCH_PARENT_SESSION="), "{env}");
    assert!(!env.contains("sk-") && !env.contains("ETCH_MODEL"), "{env}");
}

#[test]
fn a_large_prompt_that_no_hook_reads_holds_nothing_up() {
    let place = place(&[
        ("UserPromptSubmit", "", "exit 0", 30),
        ("TurnStart", "", "[ $(wc -c) -gt 1000000 ] && exec sleep 60 <&-", 1),
    ]);
    let server = Server::for_prompts([]);
    let begun = Instant::now();
    let run = etch(&place, &server, &["-p", "-"]).stdin("x".repeat(1024 * 1024));
    let ran = run.run().exits(1);
    assert!(ran.stderr.contains("failed: timed out after 1 s"), "{}", ran.stderr);
    assert!(begun.elapsed() < AT_ONCE);
    let place = self::place(&[("UserPromptSubmit", "", "sleep 60", 1)]);
    let run = etch(&place, &server, &["-p", "-"]).stdin("x".repeat(1024 * 1024));
    let ran = run.run().exits(1);
    assert!(ran.stderr.contains("failed: timed out after 1 s"), "{}", ran.stderr);
    assert!(begun.elapsed() < AT_ONCE);
}

#[test]
fn an_interrupt_ends_a_hook_and_all_that_it_started() {
    for event in [
        "UserPromptSubmit",
        "TurnStart",
        "ContextBuild",
        "PreToolUse",
        "PostToolUse",
        "TurnComplete",
    ] {
        let wait = "sleep 61 & echo $! >$HOME/pid.new; mv $HOME/pid.new $HOME/pid; wait";
        let place = place(&[(event, "", wait, 60)]);
        let server = Server::start([calls(&["one"]), Chat::answer("Done.")]);
        let running = ask(&place, &server, &[]).spawn();
        running.wait_for_file(&place.home.path().join("pid"));
        let begun = Instant::now();
        running.signal("INT");
        running.wait().exits(130);
        assert!(begun.elapsed() < AT_ONCE, "{event}");
        let child = format!("/proc/{}/cmdline", place.home.read("pid").trim());
        let line = fs::read_to_string(child).unwrap_or_default();
        assert!(!line.contains("sleep"), "{event}: {line}");
        assert_eq!(
            place.work().join("one").exists(),
            matches!(event, "PostToolUse" | "TurnComplete")
        );
        let got = results(&logged(&place));
        let interrupted = "interrupted: tool error: interrupted before it finished";
        match event {
            "PreToolUse" | "PostToolUse" => assert_eq!(got, [interrupted], "{event}"),
            "TurnComplete" => assert_eq!(got.len(), 1),
            _ => assert_eq!(got, Vec::<String>::new(), "{event}"),
        }
    }
}

#[test]
fn a_project_that_is_not_trusted_runs_no_hook() {
    let place = place(&[("TurnStart", "", "echo mine >>$HOME/ran", 30)]);
    let theirs = [
        ("SessionStart", "", "echo theirs >>$HOME/ran", 30),
        ("TurnStart", "", "echo theirs >>$HOME/ran", 30),
        ("PreToolUse", "", "exit 1", 30),
    ];
    place.file(".etch/config.toml", config(&theirs));
    let server = Server::with(|_| Chat::answer("Hi."));
    let run = |args: &[&str]| -> Ran { ask(&place, &server, args).run().exits(0) };
    let ran = run(&[]);
    assert!(ran.stderr.contains("is not trusted; ignored: [[hooks]] (3)"), "{}", ran.stderr);
    assert_eq!(place.home.read("ran"), "mine\n");
    run(&["--trust"]);
    assert_eq!(place.home.read("ran"), "mine\ntheirs\nmine\ntheirs\n");
    place.etch(["trust"]).run().exits(0);
    run(&[]);
    assert_eq!(place.home.read("ran").matches("theirs").count(), 4);
    // One byte later it is a stranger's again.
    place.file(".etch/config.toml", format!("{}\n", config(&theirs)));
    let ran = run(&[]);
    assert!(
        ran.stderr.contains("changed since it was trusted; ignored: [[hooks]] (3)"),
        "{}",
        ran.stderr
    );
    assert_eq!(place.home.read("ran").matches("theirs").count(), 4);
}

#[test]
fn what_a_hook_refuses_or_breaks_does_not_end_a_chat() {
    let place = place(&[
        (
            "UserPromptSubmit",
            "",
            r#"grep -q 'bad' && echo '{"block":true,"reason":"mind your words"}'; exit 0"#,
            30,
        ),
        ("TurnStart", "", "if grep -q broken; then exit 9; fi", 30),
    ]);
    let server = Server::start([Chat::answer("Hello.")]);
    let run = etch(&place, &server, &["chat"]).stdin("something bad\nbroken\nhi\n");
    // Of a script, a turn that failed is remembered.
    let ran = run.run().exits(1);
    let shown = ran.out();
    assert!(shown.contains("• a hook blocked the prompt: mind your words"), "{shown}");
    assert!(shown.contains("failed: exit code 9"), "{shown}");
    assert!(shown.contains("• Hello."), "{shown}");
    assert_eq!(said(&server.seen()[0]), ["user broken", "user hi"]);
}

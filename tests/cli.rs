//! The command line as a person meets it: the real binary, whole outputs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::command::{Place, words};
use crate::support::schema;

const COMMANDS: &[&str] = &[
    "resume",
    "sessions",
    "show",
    "tool",
    "config",
    "trust",
    "auth",
    "demo",
    "explain",
    "schema",
    "completion",
    "man",
    "help",
    "version",
];

#[test]
fn wrong_usage_is_one_line_and_exit_2() {
    let place = Place::new();
    let check = |line: &str, want: &str| {
        place.etch(words(line)).run().is(2, "", &format!("etch: {want}\n"));
    };
    check("shwo", "unknown command 'shwo'; did you mean 'show'?");
    check("run it", "unknown command 'run'; to run a prompt: etch -p \"TEXT\"");
    check(
        "xyzzy",
        "unknown command 'xyzzy'; 'etch help' lists the commands; to run a prompt: etch -p \"TEXT\"",
    );
    check("-p hi --modle gpt", "unknown flag '--modle'; did you mean '--model'?");
    check("-p hi --xyzzy", "unknown flag '--xyzzy'; 'etch help run' lists them");
    check("-p hi -Z", "unknown flag '-Z'; 'etch help run' lists them");
    check(
        "sessions --effective",
        "'--effective' is no flag of 'etch sessions'; it belongs to 'etch config'",
    );
    check("-p hi --dry-run", "'--dry-run' is no flag of a prompt; it belongs to 'etch tool'");
    check("-p hi --model", "'--model' needs a value: --model NAME");
    check("-p hi --json=yes", "'--json' takes no value, but 'yes' is given");
    check("-p hi --model a --model b", "'--model' is given twice; keep one");
    check("-p hi --json --json-result", "'--json' and '--json-result' exclude each other");
    check("-p hi --session x --continue", "'--session' and '--continue' exclude each other");
    check("-p hi --fork", "'--fork' needs a session: give --session ID or --continue, too");
    check("-p hi --deltas", "'--deltas' adds to --json: give both");
    check(
        "-p hi --provider ollama",
        "'--provider' is echo, replay, openai or local, not 'ollama'; any server that speaks OpenAI's protocol is openai with its --base-url",
    );
    check("-p hi --color blue", "'--color' is auto, always or never, not 'blue'");
    check(
        "-p hi --reasoning-effort hihg",
        "'--reasoning-effort' is none, minimal, low, medium, high, xhigh or max, not 'hihg'; did you mean 'high'?",
    );
    check("-p hi --timeout soon", "'--timeout' is a time such as 90, 90s, 10m or 1h, not 'soon'");
    check("-p hi --timeout 0", "'--timeout' is a time such as 90, 90s, 10m or 1h, not '0'");
    check(
        "-p hi --max-tool-rounds 0",
        "--max-tool-rounds: wanted a whole number from 1 to 100000, found 0",
    );
    check("-p hi -vqv", "'--quiet' and '--verbose' exclude each other");
    check("-p hi -q=1", "unexpected argument for option '-q': \"1\"");
    check(
        "-p hi -c model",
        "-c 'model': write it as key=value, for example -c session.max_tool_rounds=8",
    );
    check(
        "-p hi there you",
        "unexpected argument 'there'; put the whole prompt in quotes after -p",
    );
    check(
        "-p --stdin never",
        "'--stdin never' leaves no prompt to read: give one with -p \"TEXT\"",
    );
    check("--json", "no prompt: give one with -p \"TEXT\", or a command ('etch help' lists them)");
    check("config", "'etch config' needs check, show or schema");
    check("config shwo", "'etch config shwo' does not exist; use check, show or schema");
    check("config check --effective", "'--effective' belongs to 'etch config show'");
    check("auth", "'etch auth' needs login, status, logout or import");
    check("auth login x", "'PATH' belongs to 'etch auth import'");
    check("auth status --browser", "'--browser' belongs to 'etch auth login'");
    check("schema", "'etch schema' needs events, result or config");
    check("completion tcsh", "'etch completion tcsh' does not exist; use bash, zsh or fish");
    check("explain 77", "exit code '77' is none of etch's own; 'etch explain' lists etch's codes");
    check(
        "explain 139",
        "exit code '139' is a program that signal 11 ended; 'etch explain' lists etch's codes",
    );
    check("help shwo", "no help on 'shwo'; did you mean 'show'?");
    check(
        "-C nowhere sessions",
        "cannot work in 'nowhere': No such file or directory (os error 2)",
    );
    place.etch(["-p", ""]).run().is(
        2,
        "",
        "etch: the prompt is empty: give one with -p \"TEXT\"\n",
    );
}

#[test]
fn variables_are_checked_as_flags_are() {
    let place = Place::new();
    let check = |name: &str, value: &str, want: &str| {
        let ran = place.etch(["-p", "hi"]).env(name, value).run();
        ran.is(2, "", &format!("etch: {want}\n"));
    };
    check("ETCH_JSON", "perhaps", "'ETCH_JSON' is 1 or 0, not 'perhaps'");
    check("ETCH_STDIN", "maybe", "'ETCH_STDIN' is auto, always or never, not 'maybe'");
    check("ETCH_TIMEOUT", "5x", "'ETCH_TIMEOUT' is a time such as 90, 90s, 10m or 1h, not '5x'");
    let wanted = "wanted a whole number from 1 to 100000, found";
    check("ETCH_MAX_TOOL_ROUNDS", "0", &format!("ETCH_MAX_TOOL_ROUNDS: {wanted} 0"));
    check("ETCH_SET", "model", "'ETCH_SET' is KEY=VALUE, not 'model'");
    check(
        "ETCH_DIRECTORY",
        "nowhere",
        "cannot work in 'nowhere': No such file or directory (os error 2)",
    );
}

#[test]
fn the_version_is_printed_by_every_spelling() {
    let place = Place::new();
    let want = format!("etch {}\n", env!("CARGO_PKG_VERSION"));
    for line in ["--version", "-V", "version", "version --color=never"] {
        if line.contains("color") {
            place.etch(words(line)).run().exits(2);
        } else {
            place.etch(words(line)).run().is(0, &want, "");
        }
    }
    let ran = place.etch(words("--version --json")).run().exits(0);
    let value: serde_json::Value = serde_json::from_str(ran.out()).unwrap();
    assert_eq!(value["name"], "etch");
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    assert!(value["target"].as_str().unwrap().contains("linux"), "{value}");
}

#[test]
fn help_is_reached_by_every_spelling_and_names_every_command() {
    let place = Place::new();
    let overview = place.etch(["help"]).run().exits(0).out().to_owned();
    for args in [&[][..], &["--help"], &["-h"]] {
        place.etch(args).run().is(0, &overview, "");
    }
    for name in COMMANDS {
        assert!(overview.contains(&format!("\n  {name} ")), "{name}");
        let help = place.etch(["help", name]).run().exits(0).out().to_owned();
        assert!(help.starts_with(&format!("etch {name}: ")), "{help}");
        place.etch([name, "--help"]).run().is(0, &help, "");
    }
    let run = place.etch(["help", "run"]).run().exits(0).out().to_owned();
    place.etch(["-p", "x", "--help"]).run().is(0, &run, "");
    for line in overview.lines().chain(run.lines()) {
        assert!(line.chars().count() <= 80, "too wide: {line}");
    }
}

#[test]
fn the_manual_page_has_every_flag_and_no_unknown_request() {
    let place = Place::new();
    let page = place.etch(["man"]).run().exits(0).out().to_owned();
    let known = [".TH", ".SH", ".SS", ".TP", ".PP", ".br", ".nf", ".fi"];
    for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
        let request = line.split(' ').next().unwrap();
        assert!(known.contains(&request), "{line}");
    }
    let help = place.etch(["help", "run"]).run().exits(0).out().to_owned();
    let flags = help.split_whitespace().filter(|word| word.starts_with("--"));
    for flag in flags.map(|flag| flag.trim_end_matches([':', ',', '.', ';'])) {
        let roff = flag.replace('-', "\\-");
        assert!(page.contains(&roff), "{flag} is not in the manual page");
    }
}

#[test]
fn the_bash_completion_completes() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = place.etch(["completion", shell]).run().exits(0).out().to_owned();
        place.home.write(&format!("code/etch.{shell}"), text);
    }
    place.command("bash", ["-n", "etch.bash"]).run().is(0, "", "");
    let check = |typed: &str, want: &str| {
        let script = format!(
            "source ./etch.bash; COMP_WORDS=({typed} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             [ -z \"$LAST\" ] || COMP_WORDS[COMP_CWORD]=$LAST; _etch; echo \"${{COMPREPLY[*]}}\""
        );
        let (typed_words, last) = typed.rsplit_once('|').unwrap_or((typed, ""));
        let script = script.replace(typed, typed_words);
        place.command("bash", ["-c", &script]).env("LAST", last).run().is(
            0,
            &format!("{want}\n"),
            "",
        );
    };
    check("etch|se", "sessions");
    check("etch -p hi|--mod", "--model");
    check("etch -p hi --reasoning-effort|h", "high");
    check("etch config|sh", "show");
    check("etch tool|re", "read");
    check("etch show|--f", "--full");
}

#[test]
fn every_exit_code_is_explained() {
    let place = Place::new();
    let list = place.etch(["explain"]).run().exits(0).out().to_owned();
    let codes: Vec<u8> = list.lines().map(|line| line[..3].trim().parse().unwrap()).collect();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 70, 124, 129, 130, 141, 143]);
    for code in codes {
        let text = place.etch(["explain", &code.to_string()]).run().exits(0).out().to_owned();
        assert!(text.starts_with(&format!("{code} (")) && text.lines().count() >= 3, "{text}");
    }
    place.etch(["explain", "limit"]).run().is(
        0,
        "5 (limit): a limit ended the run: tool rounds, tokens, cost, or the same call\n\
         five times with the same result\n\
         stop: limit\n\
         \n\
         The session is whole: 'etch -p --continue \"go on\"' continues it with a fresh\n\
         budget. Raise the limit with --max-tool-rounds where the task is that long.\n",
        "",
    );
}

/// The lines of a session in which everything happens.
fn session_lines() -> Vec<Value> {
    let mut lines: Vec<Value> = Vec::new();
    let mut add = |kind: &str, data: Value| {
        let count = lines.len();
        let mut line = json!({
            "type": kind, "id": format!("e{count}"),
            "time": format!("2026-01-01T00:00:{count:02}Z"), "data": data,
        });
        if count > 0 {
            line["parentId"] = json!(format!("e{}", count - 1));
        }
        lines.push(line);
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    add("session.started", json!({"cwd": "/work", "version": "0.1.0"}));
    add("message.user", json!({"role": "user", "content": text("make it \u{1b}[31mred")}));
    add(
        "model.retry",
        json!({"attempt": 1, "attemptsMax": 5, "delayMillis": 500,
        "kind": "overloaded", "message": "try later", "outputDiscarded": false}),
    );
    add("model.reasoning", json!({"reasoning": "think\n", "provider": "openai", "model": "m"}));
    add(
        "message.assistant",
        json!({"role": "assistant", "provider": "openai", "model": "m",
        "finish": "tool_calls", "content": [{"type": "text", "text": "Looking."},
            {"type": "tool_call", "id": "c1", "name": "read", "arguments": {"path": "a"}},
            {"type": "tool_call", "id": "c2", "name": "bash", "arguments": {"command": "x"}}]}),
    );
    add(
        "model.usage",
        json!({"inputTokens": 100, "cachedInputTokens": 40, "outputTokens": 20,
        "totalTokens": 120}),
    );
    let long: String = (1..=30).map(|n| format!("{n} | line\n")).collect();
    add(
        "message.tool",
        json!({"role": "tool", "content": text(&long), "toolCallId": "c1",
        "name": "read", "status": "ok", "durationMillis": 3}),
    );
    add("tool.denied", json!({"toolCallId": "c2", "name": "bash", "reason": "not allowed"}));
    add(
        "message.tool",
        json!({"role": "tool", "content": text("tool error: denied"),
        "toolCallId": "c2", "name": "bash", "status": "denied", "durationMillis": 0}),
    );
    add("future.event", json!({"shape": [1, 2]}));
    add(
        "turn.stopped",
        json!({"stop": "error", "kind": "server", "message": "HTTP 500",
        "partial": "It beg"}),
    );
    lines
}

const SESSION_ID: &str = "4f2a91c0aaaabbbbccccddddeeeeffff";

/// A project with that session; its lines as they stand in the file.
fn place_with_session() -> (Place, Vec<String>) {
    let place = Place::new();
    std::fs::create_dir(place.work().join(".git")).unwrap();
    let lines: Vec<String> = session_lines().iter().map(Value::to_string).collect();
    place.file(&format!(".etch/sessions/{SESSION_ID}.jsonl"), lines.join("\n") + "\n");
    (place, lines)
}

#[test]
fn sessions_are_listed_as_text_and_as_json() {
    let place = Place::new();
    place.etch(["sessions"]).run().is(0, "no sessions\n", "");
    place.etch(["sessions", "--json"]).run().is(0, "[]\n", "");
    let (place, _) = place_with_session();
    // Titles keep no control character.
    place.etch(["sessions"]).run().is(0, "2026-01-01 00:00  4f2a91c0  make it [31mred\n", "");
    let ran = place.etch(["sessions", "--json"]).run().exits(0);
    let rows: Value = serde_json::from_str(ran.out()).unwrap();
    assert_eq!(rows[0]["id"], SESSION_ID);
    assert_eq!(rows.as_array().unwrap().len(), 1);
    // From below the project's root, from elsewhere by the folder's name, and by the variable.
    std::fs::create_dir(place.work().join("sub")).unwrap();
    let line = "2026-01-01 00:00  4f2a91c0  make it [31mred\n";
    place.etch(["sessions"]).dir("sub").run().is(0, line, "");
    place.etch(["-C", "sub", "sessions"]).run().is(0, line, "");
    place.etch(["sessions", "--session-dir", "../.etch/sessions"]).dir("sub").run().is(0, line, "");
    let variable = place
        .etch(["sessions"])
        .dir("/")
        .env("ETCH_SESSION_DIR", place.work().join(".etch/sessions"));
    variable.run().is(0, line, "");
}

#[test]
fn a_session_is_shown_in_the_order_in_which_it_happened() {
    let (place, _) = place_with_session();
    let numbered: String = (1..=20).map(|n| format!("{n} | line\n")).collect();
    let want = format!(
        "session {SESSION_ID}\n\
         started 2026-01-01 00:00:00 in /work\n\
         \n── user  2026-01-01 00:00:01\nmake it \u{1b}[31mred\n\
         \n── retry  1 of 5 in 500 ms\noverloaded: try later\n\
         \n── reasoning\nthink\n\
         \n── assistant  openai/m\nLooking.\n→ read {{\"path\":\"a\"}}\n→ bash {{\"command\":\"x\"}}\n\
         \n── result  read ok, 3 ms\n{numbered}(10 more lines; --full shows all)\n\
         \n── denied  bash\nnot allowed\n\
         \n── result  bash denied, 0 ms\ntool error: denied\n\
         \n── future.event\n{{\"data\":{{\"shape\":[1,2]}},\"id\":\"e9\",\"parentId\":\"e8\",\
         \"time\":\"2026-01-01T00:00:09Z\",\"type\":\"future.event\"}}\n\
         \n── stopped  error\nHTTP 500\n(the answer had begun:)\nIt beg\n\
         \n── total  1 prompt, 1 answer, 2 tool calls, 100 tokens in (40 cached), 20 out\n"
    );
    place.etch(["show", "4f2a"]).run().is(0, &want, "");
    place.etch(["show"]).run().is(0, &want, "");
    let full = place.etch(["show", "4f2a", "--full"]).run().exits(0);
    assert!(full.out().contains("30 | line\n\n── denied"), "{}", full.out());
    let missing = "etch: no session 'beef'; run 'etch sessions' to list them\n";
    place.etch(["show", "beef"]).run().is(9, "", missing);
}

#[test]
fn shown_json_is_the_log_line_by_line() {
    let (place, lines) = place_with_session();
    let want = format!("[\n{}\n]\n", lines.join(",\n"));
    place.etch(["show", "4f2a", "--json"]).run().is(0, &want, "");
}

#[test]
fn the_event_schema_fits_a_log_and_knows_every_event() {
    let (place, _) = place_with_session();
    let schema = place.etch(["schema", "events"]).run().exits(0);
    let schema: Value = serde_json::from_str(schema.out()).unwrap();
    for line in session_lines() {
        assert_eq!(schema::check(&schema, &line), Ok(()), "{line}");
        if line["type"] != "future.event" {
            let broken = json!({"type": line["type"], "id": "x", "time": "t", "data": {"role": 1}});
            assert!(schema::check(&schema, &broken).is_err() || line["type"] == "model.metrics");
        }
    }
    let source = include_str!("../src/session/event.rs");
    let written = source.split(" => \"").skip(1).filter_map(|rest| rest.split('"').next());
    let written: BTreeSet<_> = written.filter(|kind| kind.contains('.')).collect();
    let described = schema["anyOf"].as_array().unwrap().iter();
    let described: BTreeSet<_> =
        described.filter_map(|one| one["properties"]["type"]["const"].as_str()).collect();
    let missing: Vec<_> = written.difference(&described).collect();
    assert!(written.len() > 10 && missing.is_empty(), "{missing:?}");
}

#[test]
fn a_tool_runs_by_hand_without_any_setup() {
    let place = Place::new();
    place.file("a.txt", "one\ntwo\n");
    let tool = |line: &str| place.etch(words(&format!("tool {line}"))).run();
    tool("read a.txt").is(0, "1 | one\n2 | two\n", "");
    tool("read a.txt --json").is(
        0,
        "{\"changed\":[],\"status\":\"ok\",\"text\":\"1 | one\\n2 | two\"}\n",
        "",
    );
    tool("read --args {\"path\":\"a.txt\",\"limit\":1,\"offset\":2}").is(0, "2 | two\n", "");
    let ran = tool("read missing.txt").exits(1);
    assert!(
        ran.stdout.is_empty() && ran.stderr.starts_with("etch: missing.txt: "),
        "{}",
        ran.stderr
    );
    tool("raed a.txt").is(2, "", "etch: unknown tool 'raed'; did you mean 'read'?\n");
    tool("read").is(2, "", "etch: 'etch tool read' needs PATH\n");
    // Damaged configuration does not stand in the way of a tool.
    place.file(".etch/config.toml", "nonsense");
    tool("read a.txt").is(0, "1 | one\n2 | two\n", "");
}

#[test]
fn a_reader_that_went_away_ends_text_quietly() {
    let (place, _) = place_with_session();
    for command in
        ["help", "man", "explain", "completion bash", "sessions", "show", "schema events"]
    {
        let script = format!("set -o pipefail; $ETCH {command} | true");
        place
            .command("bash", ["-c", &script])
            .env("ETCH", env!("CARGO_BIN_EXE_etch"))
            .run()
            .is(0, "", "");
        let script = format!("set -o pipefail; $ETCH {command} | head -n 1 >/dev/null");
        place
            .command("bash", ["-c", &script])
            .env("ETCH", env!("CARGO_BIN_EXE_etch"))
            .run()
            .is(0, "", "");
    }
}

#[test]
fn a_full_disk_is_an_error_and_closed_streams_are_not() {
    let (place, _) = place_with_session();
    let full = "etch: cannot write to standard output: No space left on device (os error 28)\n";
    for command in ["help", "sessions", "show", "show --json", "--version", "schema result"] {
        place.sh(&format!("$ETCH {command} >/dev/full")).run().is(1, "", full);
        place.sh(&format!("$ETCH {command} >&-")).run().is(0, "", "");
        let closed = place.sh(&format!("$ETCH {command} 2>&-")).run().exits(0);
        assert!(!closed.stdout.is_empty());
    }
    // Nowhere to say it: the code still does.
    place.sh("$ETCH sohw 2>/dev/full").run().is(2, "", "");
    place.sh("$ETCH sohw >&- 2>&-").run().is(2, "", "");
}

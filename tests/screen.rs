//! What a person sees of a run on a terminal, and what never reaches it.

use std::num::NonZero;
use std::os::unix::process::ExitStatusExt;

use crate::support::chat::Chat;
use crate::support::command::{Place, TestCommand};
use crate::support::pty::Pty;
use crate::support::server::{Gate, Reply, Server};

/// Taller than everything that is shown: nothing scrolls away.
const ROWS_TALL: u16 = 300;

fn etch(place: &Place, server: &Server, args: &[&str]) -> TestCommand {
    settings(place.etch(["-p", "do it"]).args(args), server)
}

fn settings(command: TestCommand, server: &Server) -> TestCommand {
    command
        .env("ETCH_PROVIDER", "openai")
        .env("ETCH_MODEL", "m")
        .env("ETCH_BASE_URL", server.base_url())
        .env("ETCH_STDIN", "never")
        .env("TERM", "xterm-256color")
}

/// Runs to the end on a terminal: exit code and everything that was written to it.
fn run(command: TestCommand, columns: u16, rows: u16) -> (i32, String) {
    let (status, output) = Pty::spawn(command.into_command(), columns, rows).wait();
    (status.code().unwrap_or_else(|| 1000 + status.signal().unwrap_or(0)), output)
}

/// The lines that stand on a terminal in the end.
fn screen(output: &str, columns: u16, rows: u16) -> Vec<String> {
    let size = |n| NonZero::new(n).unwrap();
    let mut terminal = vt100::Parser::new(size(rows), size(columns), 0);
    terminal.process(output.as_bytes());
    let text = terminal.screen().contents();
    text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// What is left of the output without colours, line ends and the erasing of the status line.
fn unpainted(output: &str) -> String {
    let mut out = String::new();
    let mut parts = output.split("\x1b[");
    out.push_str(parts.next().unwrap());
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(part.len());
        match part[end..].chars().next() {
            Some('m') => out.push_str(&part[end + 1..]),
            Some('K') if end == 0 => out.push_str(&part[1..]),
            _ => panic!("a sequence that is not etch's: {part:?}"),
        }
    }
    out
}

/// Nothing but colours and the status line acts on the terminal.
#[track_caller]
fn assert_harmless(output: &str) {
    let text = unpainted(output).replace("\r\n", "\n");
    // The status line begins with a return, and only at the start of a line.
    for line in text.split('\n') {
        let drawn: Vec<_> = line.split('\r').collect();
        for part in &drawn[1..] {
            assert!(part.is_empty() || part.starts_with("• ") || drawn[0].is_empty(), "{line:?}");
        }
    }
    let acts = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\r' | '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(acts), "{text:?}");
}

const ANSWER: &str = "# Done\n\nThe **greeting** is now `polite`, see [the guide](docs/guide.md).\n\n\
    - first point with enough words to need a second line on a narrow terminal\n\
    - second point\n  1. nested\n  2. again\n\n\
    | File | Lines | Note |\n|:-----|------:|------|\n\
    | `hello.txt` | 3 | changed by this run |\n| other | 12 | as it was |\n\n\
    ```rust\nfn main() {\n    println!(\"hello\");\n}\n```\n\n> Quoted *words*.";

/// A run with reasoning, a read, an edit and an answer with everything in it.
fn whole_run() -> (Place, Server) {
    let place = Place::new();
    place.file("hello.txt", "one\nhello\nthree\n");
    let read = Chat::new()
        .reasoning("I should **look** first.")
        .text("I'll read the file.")
        .call(0, "c1", "read", r#"{"path":"hello.txt"}"#)
        .finish("tool_calls");
    let edit = r#"{"path":"hello.txt","edits":[{"old":"hello","new":"good morning"}]}"#;
    let mut answer = Chat::new();
    for piece in ANSWER.as_bytes().chunks(7) {
        answer = answer.text(std::str::from_utf8(piece).unwrap());
    }
    let server = Server::start([
        read.done().reply(),
        Chat::calls(&[("c2", "edit", edit)]),
        answer.finish("stop").done().reply(),
    ]);
    (place, server)
}

/// What looks alike on a wide and on a narrow terminal: the calls, up to the heading.
const CALLS: &str = "\
• read hello.txt (3 lines)
• edit hello.txt (+1 -1)
  1 1   one
  2   - hello
    2 + good morning
  3 3   three

Done
";

/// The same, from the second point of the list to the end.
const LIST_TO_QUOTE: &str = "\
• second point
  1. nested
  2. again

File      │ Lines │ Note
──────────┼───────┼────────────────────
hello.txt │     3 │ changed by this run
other     │    12 │ as it was

```rust
fn main() {
    println!(\"hello\");
}
```

│ Quoted words.";

#[test]
fn a_run_is_laid_out_on_a_wide_terminal() {
    let (place, server) = whole_run();
    let (code, output) = run(etch(&place, &server, &["--no-session"]), 80, 24);
    assert_eq!(code, 0, "{output}");
    assert_harmless(&output);
    let want = format!(
        "\
I should look first.

I'll read the file.

{CALLS}
The greeting is now polite, see the guide (docs/guide.md).

• first point with enough words to need a second line on a narrow terminal
{LIST_TO_QUOTE}"
    );
    assert_eq!(screen(&output, 80, ROWS_TALL).join("\n"), want);
    // What scrolled away does not change what is below.
    let lines: Vec<&str> = want.lines().collect();
    let bottom = screen(&output, 80, 24);
    assert_eq!(bottom, lines[lines.len() - bottom.len()..]);
    assert_eq!(bottom.len(), 23);
}

#[test]
fn a_run_is_laid_out_on_a_narrow_terminal() {
    let (place, server) = whole_run();
    let (code, output) = run(etch(&place, &server, &["--no-session"]), 40, 10);
    assert_eq!(code, 0, "{output}");
    assert_harmless(&output);
    let want = format!(
        "\
I should look first.

I'll read the file.

{CALLS}
The greeting is now polite, see the
guide (docs/guide.md).

• first point with enough words to need
  a second line on a narrow terminal
{LIST_TO_QUOTE}"
    );
    assert_eq!(screen(&output, 40, ROWS_TALL).join("\n"), want);
    let lines: Vec<&str> = want.lines().collect();
    let bottom = screen(&output, 40, 10);
    assert_eq!(bottom, lines[lines.len() - bottom.len()..]);
}

#[test]
fn without_colours_there_are_none_and_a_dumb_terminal_gets_plain_lines() {
    let colours = |args: &[&str], vars: &[(&str, &str)]| {
        let (place, server) = whole_run();
        let mut command = etch(&place, &server, args);
        for (name, value) in vars {
            command = command.env(name, value);
        }
        let (code, output) = run(command, 80, 24);
        assert_eq!(code, 0, "{output}");
        output
    };
    assert!(colours(&[], &[]).contains("\x1b[1;4mDone\x1b[0m"));
    for output in [
        colours(&[], &[("NO_COLOR", "1")]),
        colours(&["--color", "never"], &[]),
        colours(&[], &[("CLICOLOR", "0")]),
    ] {
        assert!(!output.replace("\x1b[K", "").contains('\x1b'), "{output:?}");
        let shown = screen(&output, 80, ROWS_TALL).join("\n");
        assert!(shown.contains("# Done\n\nThe **greeting** is now `polite`"), "{shown}");
    }
    let dumb = colours(&[], &[("TERM", "dumb")]);
    assert!(!dumb.replace("\r\n", "\n").contains(['\x1b', '\r']), "{dumb:?}");
    assert!(colours(&["--color", "always"], &[("TERM", "dumb")]).contains("\x1b[1;4mDone"));
}

/// What a terminal would obey, in many ways.
const HOSTILE: &str = "a\x1b]52;c;ZWNobyBoaQ==\x07b\x1b]0;title\x1b\\c\x1b[2J\x1b[Hd\re\x08f\x07g\u{9b}31mh\
    \u{9d}0;t\u{9c}i\u{202e}j\u{2066}k\x1bPq\x1b\\l\x1b[?1049hm\x7fn\x0eo";

#[test]
fn nothing_that_a_model_or_tool_says_acts_on_the_terminal() {
    let place = Place::new();
    let json = |text: &str| serde_json::to_string(text).unwrap();
    let write = format!("{{\"path\":{},\"content\":{}}}", json("x\x1b[2J.txt"), json(HOSTILE));
    let bash =
        format!("{{\"command\":{}}}", json("printf 'x\\033]0;t\\007\\rover\\033[2Jy' # \x1b[5m"));
    let edit = r#"{"path":"new.txt","content":"\u001b[2J\u009b31m\n"}"#;
    let calls = Chat::new()
        .reasoning(HOSTILE)
        .text(HOSTILE)
        .text(&format!(
            "\n```\n{HOSTILE}\n```\n| {HOSTILE} |\n|---|\n[{HOSTILE}](http://{HOSTILE})\n"
        ))
        .call(0, "c1", "write", &write)
        .call(1, "c2", "bash", &bash)
        .call(2, "c3", "write", edit)
        .call(3, "c4", "no\x1b[2Jtool", &format!("{{\"q\":{}}}", json(HOSTILE)))
        .finish("tool_calls");
    let server = Server::start([
        calls.done().reply(),
        Reply::error(400, "bad", &format!("the server says {HOSTILE}")),
    ]);
    let prompt = format!("title {HOSTILE}");
    let command = |args: &[&str]| {
        settings(place.etch(args), &server).env("ETCH_SESSION_DIR", place.work().join("sessions"))
    };
    let (code, output) = run(command(&["-p", &prompt, "-v"]), 80, 24);
    assert_ne!(code, 0);
    assert_harmless(&output);
    for shown in
        ["^[]52;c;", "\\u{9b}31m", "\\u{202e}j", "no^[[2Jtool", "the server says a^[]52;c;"]
    {
        assert!(output.contains(shown), "no {shown:?} in {output}");
    }
    // A session as no etch writes it.
    let started = format!(
        "{{\"type\":\"session.started\",\"id\":\"01H0\",\"parentId\":null,\
         \"time\":\"2026-05-01T10:00:00Z\",\"data\":{{\"cwd\":{0},\"name\":{0},\"title\":{0},\
         \"sessionId\":{0}}}}}\n\
         {{\"type\":{0},\"id\":\"01H1\",\"parentId\":\"01H0\",\
         \"time\":\"2026-05-01T10:00:01Z\",\"data\":{{\"content\":{0}}}}}\n",
        json(HOSTILE)
    );
    place.file("sessions/feedbeef.jsonl", started);
    place.file("x", HOSTILE);
    for (args, want) in [
        (&["sessions"][..], "title a"),
        (&["show"], "title a^[]52"),
        (&["show", "--full"], "title a^[]52"),
        (&["show", "feedbeef"], "a^[]52"),
        (&["tool", "read", "x"], "a^[]52"),
    ] {
        let (code, output) = run(command(args), 80, 24);
        assert_eq!(code, 0, "{output}");
        assert!(output.contains(want), "{output}");
        assert_harmless(&output);
    }
    let (code, output) = run(command(&["show", "no\x1b[2Jsuch"]), 80, 24);
    assert_ne!(code, 0);
    assert_harmless(&output);
}

#[test]
fn each_stream_is_treated_by_what_it_is() {
    let redirected = |redirect: &str| {
        let (place, server) = whole_run();
        let script = format!("$ETCH -p 'do it' --no-session {redirect}");
        let (code, output) = run(settings(place.sh(&script), &server), 80, 24);
        assert_eq!(code, 0, "{output}");
        assert_harmless(&output);
        let file = std::fs::read_to_string(place.work().join("file")).unwrap();
        (screen(&output, 80, ROWS_TALL).join("\n"), file)
    };
    // The bare answer in a pipe; the rest on the terminal, without an answer's space.
    let (shown, file) = redirected(">file");
    assert_eq!(file, format!("{ANSWER}\n"));
    let want = "I should look first.\n\n• read hello.txt (3 lines)\n• edit hello.txt (+1 -1)\n  \
        1 1   one\n  2   - hello\n    2 + good morning\n  3 3   three";
    assert_eq!(shown, want);
    // Messages in a file are plain and not laid out; the answer is on the terminal.
    let (shown, file) = redirected("2>file");
    assert!(
        shown.starts_with("I'll read the file.\n\nDone\n\nThe greeting is now polite"),
        "{shown}"
    );
    assert_eq!(file, "• read hello.txt (3 lines)\n• edit hello.txt (+1 -1)\n");
}

#[test]
fn the_status_line_is_gone_when_the_run_is() {
    let place = Place::new();
    let gate = Gate::new();
    let server = Server::start([Chat::answer("Slow answer.").wait_before(&gate)]);
    let mut terminal = Pty::spawn(etch(&place, &server, &["--no-session"]).into_command(), 80, 24);
    let seen = terminal.wait_for("working");
    assert!(screen(&seen, 80, 24)[0].starts_with("• working "), "{seen:?}");
    gate.open();
    let (status, output) = terminal.wait();
    assert!(status.success());
    assert_eq!(screen(&output, 80, 24), ["Slow answer."]);
}

#[test]
fn an_interrupt_leaves_a_clean_line() {
    let place = Place::new();
    let command = r#"{"command":"echo begun >begun; exec sleep 60"}"#;
    let server = Server::start([Chat::calls(&[("c1", "bash", command)]), Chat::answer("never")]);
    let mut terminal = Pty::spawn(etch(&place, &server, &["--no-session"]).into_command(), 80, 24);
    terminal.wait_for("running tools");
    terminal.type_keys("\u{3}");
    let (status, output) = terminal.wait();
    assert_eq!(status.code(), Some(130), "{output}");
    let shown = screen(&output, 80, 24).join("\n");
    assert!(!shown.contains("running tools"), "{shown}");
    assert!(shown.contains("• bash echo begun >begun; exec sl"), "{shown}");
    assert_harmless(&output);
}

#[test]
fn an_answer_appears_as_it_arrives_and_nothing_moves() {
    let place = Place::new();
    let gate = Gate::new();
    let body = Chat::new()
        .text("First words of **an")
        .text(" answer** that")
        .text(" goes on")
        .finish("stop")
        .done()
        .into_bytes();
    let text = String::from_utf8_lossy(&body);
    let second = text[..text.find(" goes on").unwrap()].rfind("data: ").unwrap();
    let server = Server::start([Reply::sse(body.clone()).wait_at(second, &gate)]);
    let mut terminal = Pty::spawn(etch(&place, &server, &["--no-session"]).into_command(), 80, 24);
    let seen = terminal.wait_for("\x1b[1manswer");
    assert_eq!(screen(&seen, 80, 24), ["First words of an answer"]);
    gate.open();
    let (_, output) = terminal.wait();
    assert_eq!(screen(&output, 80, 24), ["First words of an answer that goes on"]);
}

#[test]
fn the_width_of_the_moment_counts() {
    let (place, server) = whole_run();
    let command = etch(&place, &server, &["--no-session"]).env("COLUMNS", "30");
    let (_, output) = run(command, 80, 24);
    assert!(screen(&output, 80, ROWS_TALL).iter().all(|line| line.chars().count() <= 30));
}

#[test]
fn json_on_a_terminal_holds_nothing_that_it_obeys() {
    let place = Place::new();
    let evil = "a\u{9b}31m\u{202e}b\u{9d}0;t\u{9c}";
    let server = Server::start([Chat::answer(evil)]);
    let dir = place.work().join("sessions");
    let here = |command: TestCommand| settings(command, &server).env("ETCH_SESSION_DIR", &dir);
    for args in [
        vec!["-p", evil, "--json", "--deltas", "--session", "odd"],
        vec!["show", "odd", "--json"],
        vec!["sessions", "--json"],
        vec!["tool", "bash", "--json", "printf '\\302\\23331m\\342\\200\\256'"],
    ] {
        let (code, output) = run(here(place.etch(&args)), 80, 24);
        let obeyed = |c: char| (c.is_control() && !"\r\n".contains(c)) || c == '\u{202e}';
        let json = output.lines().filter(|line| line.starts_with(['{', ','])).collect::<String>();
        assert!(code == 0 && !json.is_empty() && !json.contains(obeyed), "{args:?}: {output:?}");
    }
}

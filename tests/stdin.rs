//! Standard input and attached files of a prompt: whole, never in the way, never waited for in vain.
//!
//! The provider `echo` answers with the message that it was sent, so the answer shows what was
//! attached.

use std::io::Write;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::command::{Place, TestCommand};

fn echo(place: &Place, args: &[&str]) -> TestCommand {
    place.etch(args).arg("--provider=echo").arg("--no-session").arg("--quiet")
}

fn attached(text: &str) -> String {
    format!("use it\n\n--- attached: standard input ---\n{text}--- end of standard input ---\n")
}

#[test]
fn what_is_piped_in_is_attached_or_is_the_prompt() {
    let place = Place::new();
    let with = |input: &str| echo(&place, &["-p", "use it"]).stdin(input).run();
    with("data\n").is(0, &attached("data\n"), "");
    with("no end").is(0, &attached("no end\n"), "");
    with("").is(0, "use it\n", "");
    for args in [&["-p"][..], &["-p", "-"], &["-p", "--color=never"]] {
        echo(&place, args).stdin("say hi\n").run().is(0, "say hi\n", "");
    }
    echo(&place, &["-p", "--color", "never", "late text"]).run().is(0, "late text\n", "");
    let never = echo(&place, &["-p", "use it", "--stdin", "never"]).stdin("data");
    never.run().is(0, "use it\n", "");
    let none = "etch: no prompt on standard input: give one with -p \"TEXT\"\n";
    for input in ["", " \n"] {
        echo(&place, &["-p"]).stdin(input).run().is(2, "", none);
    }
    echo(&place, &["-p"]).run().is(2, "", none);
}

#[test]
fn every_kind_of_standard_input_is_all_right() {
    let place = Place::new();
    let file = place.file("input.txt", "from a file\n");
    let file = std::fs::File::open(file).unwrap();
    echo(&place, &["-p", "use it"]).stdin_as(file).run().is(0, &attached("from a file\n"), "");
    echo(&place, &["-p", "use it"]).stdin_as(Stdio::null()).run().is(0, "use it\n", "");
    let (ours, theirs) = UnixStream::pair().unwrap();
    (&ours).write_all(b"from a socket\n").unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    let socket = echo(&place, &["-p", "use it"]).stdin_as(OwnedFd::from(theirs));
    socket.run().is(0, &attached("from a socket\n"), "");
    let closed = "$ETCH -p 'use it' --provider echo --no-session -q <&-";
    place.sh(closed).run().is(0, "use it\n", "");
    let folder = "$ETCH -p 'use it' --provider echo --no-session -q <.";
    let ran = place.sh(folder).run().exits(2);
    assert!(ran.stderr.contains("cannot read standard input: "), "{}", ran.stderr);
}

#[test]
fn large_input_is_cut_with_a_word_and_a_large_prompt_is_refused() {
    let place = Place::new();
    let lines: String = (0..700_000).map(|n| format!("{n}\n")).collect();
    assert!(lines.len() > 4_500_000);
    let ran = place
        .etch(["-p", "use it", "--provider=echo", "--no-session"])
        .stdin(lines.clone())
        .run()
        .exits(0);
    let answer = ran.out();
    assert!(answer.starts_with("use it\n\n--- attached: standard input ---\n[standard input has "));
    assert!(answer.contains("\n0\n1\n2\n") && answer.contains("\n699998\n699999\n---"));
    assert!(answer.contains("of standard input left out here …]"));
    assert!(answer.len() < 257 * 1024, "{}", answer.len());
    assert!(ran.stderr.contains("(the limit is 256"), "{}", ran.stderr);
    let ran = echo(&place, &["-p"]).stdin(lines).run().exits(2);
    assert!(ran.stderr.contains("the prompt on standard input is longer than"), "{}", ran.stderr);
}

#[test]
fn bytes_that_are_no_text_are_marked_or_refused() {
    let place = Place::new();
    let latin = b"Gr\xf6\xdfe\n".to_vec();
    let ran = place.etch(["-p", "use it", "--provider=echo", "--no-session"]).stdin(latin).run();
    let ran = ran.exits(0);
    assert!(ran.out().contains("\nGr\u{fffd}\u{fffd}e\n---"), "{}", ran.out());
    assert!(ran.stderr.contains("standard input is not all UTF-8: 2 places"), "{}", ran.stderr);
    let binary = echo(&place, &["-p", "use it"]).stdin(b"\x7fELF\0\0\0".to_vec());
    let refused =
        "etch: standard input is binary: convert it to text first, or give --stdin never\n";
    binary.run().is(2, "", refused);
}

/// A pipe whose other end this process, an ancestor of etch, holds open.
fn on_open_pipe(
    place: &Place,
    args: &[&str],
) -> (crate::support::command::Running, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let command = place.etch(args).arg("--provider=echo").arg("--no-session");
    (command.stdin_as(OwnedFd::from(reader)).spawn(), writer)
}

#[test]
fn a_silent_pipe_is_announced_and_given_up() {
    let place = Place::new();
    let started = Instant::now();
    let (mut running, _writer) = on_open_pipe(&place, &["-p", "use it"]);
    running.wait_for_stderr("standard input is open and silent: going on without it in 9 s");
    assert!(started.elapsed() >= Duration::from_secs(1));
    let ran = running.wait().exits(0);
    assert_eq!(ran.out(), "use it\n");
    assert!(started.elapsed() >= Duration::from_secs(10));
    let said = "nothing came on standard input for 10 s: going on without it";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn slow_input_is_whole_and_a_wait_can_be_cancelled() {
    let place = Place::new();
    let (mut running, mut writer) = on_open_pipe(&place, &["-p", "use it"]);
    running.wait_for_stderr("standard input is open and silent");
    writer.write_all(b"at ").unwrap();
    writer.write_all(b"last\n").unwrap();
    drop(writer);
    assert_eq!(running.wait().exits(0).out(), attached("at last\n"));
    let (mut running, _writer) = on_open_pipe(&place, &["-p", "use it", "--json"]);
    running.wait_for_stderr("standard input is open and silent");
    running.signal("INT");
    let ran = running.wait().exits(130);
    let result: Value = serde_json::from_str(ran.out().lines().last().unwrap()).unwrap();
    assert_eq!((&result["type"], &result["exit"]), (&"run.result".into(), &130.into()));
}

#[test]
fn a_program_of_the_pipeline_is_waited_for() {
    let place = Place::new();
    // Silent for longer than the first notice, then data.
    let script = "{ sleep 1.5; echo late; } | $ETCH -p 'use it' --provider echo --no-session";
    let ran = place.sh(script).run().exits(0);
    assert_eq!(ran.out(), attached("late\n"));
    assert!(ran.stderr.contains("waiting for standard input from s"), "{}", ran.stderr);
    assert!(ran.stderr.contains("at most 10 minutes"), "{}", ran.stderr);
}

#[test]
fn files_are_attached_by_name_and_wrong_ones_are_refused_first() {
    let place = Place::new();
    place.file("a.txt", "one\n");
    place.file("b.txt", "two");
    place.file("large.txt", "x".repeat(300 * 1024));
    place.file("image.png", b"\x89PNG\r\n\x1a\n\0\0\0");
    let want = "use it\n\n--- attached: standard input ---\nin\n--- end of standard input ---\n\n\
                --- attached: file a.txt ---\none\n--- end of file a.txt ---\n\n\
                --- attached: file b.txt ---\ntwo\n--- end of file b.txt ---\n";
    echo(&place, &["-p", "use it", "-f", "a.txt", "-fb.txt"]).stdin("in\n").run().is(0, want, "");
    let refused = |file: &str, message: &str| {
        let ran = echo(&place, &["-p", "use it", "-f", file]).run().exits(2);
        assert!(ran.stdout.is_empty() && ran.stderr.contains(message), "{}", ran.stderr);
    };
    refused("missing.txt", "cannot read 'missing.txt': No such file or directory");
    refused(".", "cannot read '.': ");
    refused("large.txt", "'large.txt' is larger than 256");
    refused("image.png", "'image.png' is binary");
    refused("-", "'-f -': what is piped in is attached without it");
    let script = "$ETCH -p 'use it' -f <(echo made) --provider echo --no-session -q </dev/null";
    let bash = place.command("bash", ["-c", script]).env("ETCH", env!("CARGO_BIN_EXE_etch"));
    let ran = bash.run().exits(0);
    assert!(ran.out().contains("---\nmade\n---"), "{}", ran.out());
}

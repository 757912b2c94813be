//! Commands as a person types them, and what they print: golden files that read like a terminal.
//!
//! Each `fixtures/transcripts/NAME.txt` holds lines that begin with `$ `, run one after the other
//! by `sh` in one fresh directory where `etch` is the program, and below each what it printed
//! (both outputs), with `[exit N]` where it did not end with 0. Lines before the first command are
//! a comment. `UPDATE_FIXTURES=1` writes the output anew; `ETCH_TRANSCRIPT=part-of-a-name` runs
//! only some.

use std::path::PathBuf;

use regex::Regex;

use crate::support::command::Place;
use crate::support::golden::Golden;

/// What differs from run to run, in one form.
fn usual(place: &Place, text: &str) -> String {
    let mut text = text.replace(&*place.home.path().to_string_lossy(), "~");
    for (pattern, by) in [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "TIME"),
        (r"\d{4}-\d\d-\d\d", "DATE"),
        (r"\(\d+ bytes at line", "(some bytes at line"),
        (r"duration: [0-9.]+m?s", "duration: 0ms"),
        ("[0-9a-f]{32}", "ID"),
        (r"\b[0-9a-f]{8}\b", "SHORTID"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, by).into_owned();
    }
    text
}

fn run(transcript: &str) -> String {
    let place = Place::new();
    let mut out = String::new();
    let mut lines = transcript.lines().peekable();
    while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
        out.push_str(&format!("{line}\n"));
    }
    for line in lines.filter(|line| line.starts_with("$ ")) {
        let script = format!("etch() {{ \"$ETCH\" \"$@\"; }}\nexec 2>&1\n{}", &line[2..]);
        let ran = place.sh(&script).env("ETCH_STDIN", "never").run();
        out.push_str(&format!("{line}\n{}", usual(&place, ran.out())));
        if !out.ends_with('\n') {
            out.push_str("⏎\n");
        }
        if ran.code != Some(0) {
            out.push_str(&format!("[exit {}]\n", ran.code.unwrap_or(-1)));
        }
    }
    out
}

#[test]
fn every_recorded_transcript_is_what_its_commands_print() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/transcripts");
    Golden::new(&root, "ETCH_TRANSCRIPT", 8).check_files(run);
}

//! A chat as a person has it: the real program in a pseudo-terminal, and what an emulator makes
//! of all that it writes.

use std::num::NonZero;

use regex::Regex;

use crate::support::command::{Place, TestCommand};
use crate::support::pty::Pty;
use crate::support::server::Server;

pub const COLUMNS: u16 = 80;
pub const ROWS: u16 = 24;
/// Rows that an emulator keeps of what scrolled away.
const SCROLLBACK: usize = 10_000;

/// A chat in a terminal.
pub struct Talk {
    pub pty: Pty,
    terminal: vt100::Parser,
    /// Bytes of the output that the emulator has had.
    emulated: usize,
}

/// A program that talks to `server`, on a terminal whose rows stay as they are when it is resized.
pub fn settings(command: TestCommand, server: &Server) -> TestCommand {
    coloured(command, server).env("NO_COLOR", "1")
}

/// The same in colours.
pub fn coloured(command: TestCommand, server: &Server) -> TestCommand {
    command
        .env("ETCH_PROVIDER", "openai")
        .env("ETCH_MODEL", "m")
        .env("ETCH_BASE_URL", server.base_url())
        .env("TERM", "xterm-256color")
        .env("XTERM_VERSION", "XTerm(1)")
}

impl Talk {
    pub fn start(place: &Place, server: &Server, args: &[&str]) -> Talk {
        Talk::spawn(settings(place.etch(args), server), COLUMNS, ROWS)
    }

    /// The program within a shell that says how the terminal is before and after.
    pub fn in_shell(place: &Place, server: &Server) -> Talk {
        let script =
            "echo \"before $(stty -g)\"; $ETCH; echo \"ended with $?\"; echo \"after $(stty -g)\"";
        Talk::spawn(settings(place.sh(script), server), COLUMNS, ROWS)
    }

    pub fn spawn(command: TestCommand, columns: u16, rows: u16) -> Talk {
        let pty = Pty::spawn(command.into_command(), columns, rows);
        Talk { pty, terminal: emulator(columns, rows), emulated: 0 }
    }

    pub fn keys(&mut self, keys: &str) {
        self.pty.type_keys(keys);
    }

    /// Another size of the terminal: first the rows that stand there, then the program is told.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.terminal.set_size(number(rows), number(columns));
        self.pty.resize(columns, rows);
    }

    /// Waits until the screen shows `text`, and returns the screen.
    #[track_caller]
    pub fn sees(&mut self, text: &str) -> String {
        self.sees_when(text, |shown| shown.contains(text))
    }

    /// Waits until `text` is no longer on the screen.
    #[track_caller]
    pub fn loses(&mut self, text: &str) -> String {
        self.sees_when(text, |shown| !shown.contains(text))
    }

    /// Waits until the screen is as `done` wants it.
    #[track_caller]
    pub fn sees_when(&mut self, what: &str, done: impl Fn(&str) -> bool) -> String {
        let mut shown = String::new();
        let (terminal, emulated) = (&mut self.terminal, &mut self.emulated);
        self.pty.wait_until(what, |seen| {
            terminal.process(&seen[*emulated..]);
            *emulated = seen.len();
            shown = visible(terminal);
            is_whole(seen) && done(&shown)
        });
        shown
    }

    /// Waits until the program has written more than that; it is on the screen.
    #[track_caller]
    pub fn written_beyond(&mut self, bytes: usize) {
        self.pty.wait_until("more", |seen| bytes < seen.len());
        self.sees("");
    }

    /// How many bytes the program has written so far, as far as they were read.
    pub fn written(&self) -> usize {
        self.emulated
    }

    /// The program's end: what it wrote, and all rows of the terminal.
    pub fn end(mut self) -> (std::process::ExitStatus, String, Vec<String>) {
        let (status, output) = self.pty.wait();
        self.terminal.process(&output.as_bytes()[self.emulated..]);
        (status, output, all_rows(&mut self.terminal))
    }
}

fn number(n: u16) -> NonZero<u16> {
    NonZero::new(n).unwrap()
}

fn emulator(columns: u16, rows: u16) -> vt100::Parser {
    vt100::Parser::new(number(rows), number(columns), SCROLLBACK)
}

/// No drawing is going on that the terminal is to show at once.
fn is_whole(output: &[u8]) -> bool {
    let last = |mark: &[u8]| output.windows(mark.len()).rposition(|window| window == mark);
    last(b"\x1b[?2026h") <= last(b"\x1b[?2026l")
}

fn visible(terminal: &vt100::Parser) -> String {
    let text = terminal.screen().contents();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// What scrolled away, and below it what is on the screen.
fn all_rows(terminal: &mut vt100::Parser) -> Vec<String> {
    let (rows, columns) = terminal.screen().size();
    let away = terminal.screen().scrollback_len();
    let mut all = Vec::new();
    let mut offset = away;
    loop {
        terminal.screen_mut().set_scrollback(offset);
        let page: Vec<String> = terminal.screen().rows(0, columns.get()).collect();
        if offset == 0 {
            all.extend(page);
            break;
        }
        let step = offset.min(usize::from(rows.get()));
        all.extend(page.into_iter().take(step));
        offset -= step;
    }
    let mut all: Vec<String> = all.iter().map(|row| row.trim_end().to_owned()).collect();
    while all.last().is_some_and(String::is_empty) {
        all.pop();
    }
    all
}

/// The screen of this size after all of the output.
pub fn screen(output: &[u8], columns: u16, rows: u16) -> String {
    let mut terminal = emulator(columns, rows);
    terminal.process(output);
    visible(&terminal)
}

/// What differs from run to run, in one form.
pub fn usual(rows: &str) -> String {
    let mut text = rows.to_owned();
    for (pattern, by) in [
        // The line under a turn may be wrapped anywhere.
        (r"(?m)^(• Worked for [^\n]*)\n  (\S[^\n]*)", "$1 $2"),
        (r"(?m)^(• Worked for [^\n]*)\n  (\S[^\n]*)", "$1 $2"),
        (r"[0-9.]+[KM]?B (up|down)", "SIZE $1"),
        (r"\b\d+(ms|s)\b", "TIME"),
        (r"running TIME", "running"),
        (r"again in [0-9.]+ s", "again in TIME"),
        (r"127\.0\.0\.1:\d+", "HOST"),
        (r"(?m)^(  (id|file) +)[^ ]+(\n[^ ]+)*$", "${1}VALUE"),
        (r"(?m)^(  (started|age|server|bytes|sent|received) +).+", "${1}VALUE"),
        (r"(?m)^session: [0-9a-f\n]+$", "session: ID"),
        (r"\b[0-9a-f]{8}\b", "SHORTID"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, by).into_owned();
    }
    text
}

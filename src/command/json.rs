//! JSON lines on stdout: the log's own lines as they are appended, live deltas when asked for.

use std::io::{self, Write};

use serde::Serialize;

use crate::agent::{Event, Observer};
use crate::cancel::{Cancel, Reason};
use crate::model::ModelEvent;
use crate::text;

/// Writes a run's events as JSON lines. When stdout goes away the run is cancelled.
pub struct JsonLines<W: Write> {
    out: W,
    /// Print log lines as they come (`--json`), or nothing (`--json-result`).
    pub lines: bool,
    pub deltas: bool,
    /// Whether a terminal would obey what stands in the lines.
    pub on_terminal: bool,
    cancel: Cancel,
    error: Option<io::ErrorKind>,
}

/// A piece of an answer that is not complete yet; never part of the log.
#[derive(Serialize)]
struct Delta<'a> {
    r#type: &'static str,
    kind: &'static str,
    text: &'a str,
}

impl<W: Write> JsonLines<W> {
    pub fn new(out: W, lines: bool, deltas: bool, cancel: &Cancel) -> JsonLines<W> {
        let cancel = cancel.clone();
        JsonLines { out, lines, deltas, on_terminal: false, cancel, error: None }
    }

    /// Writes one line; false when the reader is gone.
    pub fn line(&mut self, line: &str) -> bool {
        if self.error.is_some() {
            return false;
        }
        let line = match self.on_terminal {
            true => text::visible_json(line),
            false => line.into(),
        };
        let written = self
            .out
            .write_all(line.as_bytes())
            .and_then(|()| self.out.write_all(b"\n"))
            .and_then(|()| self.out.flush());
        if let Err(error) = written {
            self.error = Some(error.kind());
            self.cancel.cancel(Reason::OutputGone);
        }
        self.error.is_none()
    }

    /// Why nothing more is written.
    pub fn error(&self) -> Option<io::ErrorKind> {
        self.error
    }

    fn delta(&mut self, kind: &'static str, text: &str) {
        if !self.deltas {
            return;
        }
        let delta = Delta { r#type: "model.delta", kind, text };
        if let Ok(line) = serde_json::to_string(&delta) {
            self.line(&line);
        }
    }
}

impl<W: Write> Observer for JsonLines<W> {
    fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Logged { line } if self.lines => {
                self.line(line);
            }
            Event::Model(ModelEvent::TextDelta(text)) => self.delta("text", text),
            Event::Model(ModelEvent::ReasoningDelta(text)) => self.delta("reasoning", text),
            Event::Logged { .. }
            | Event::Model(_)
            | Event::RoundStarted { .. }
            | Event::ToolStarted { .. }
            | Event::ToolFinished { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionEnded(_)
            | Event::Notice(_) => {}
        }
    }
}

/// Two observers of one turn.
pub struct Both<'a>(pub &'a mut dyn Observer, pub &'a mut dyn Observer);

impl Observer for Both<'_> {
    fn observe(&mut self, event: Event<'_>) {
        self.0.observe(event);
        self.1.observe(event);
    }
}

//! Standard output and standard error of commands that print text.
//!
//! A reader that went away ends a text filter quietly with 0 (`etch show | head`); every other
//! failure to write (a full disk) is an error with a message. Nothing here panics: a standard
//! stream that is closed or broken only loses its text.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use super::exit;
use crate::text;

const BUFFER_BYTES: usize = 64 * 1024;

/// Buffered standard output that remembers its first failure.
pub struct Out {
    inner: BufWriter<StdoutLock<'static>>,
    error: Option<io::Error>,
}

impl Out {
    pub fn stdout() -> Out {
        let inner = BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock());
        Out { inner, error: None }
    }

    /// Writes text as it is. False when writing failed, now or before: a caller with much to
    /// print may stop.
    pub fn text(&mut self, text: &str) -> bool {
        self.bytes(text.as_bytes())
    }

    /// Writes what others wrote: as it is, but with its control characters visible on a terminal.
    pub fn foreign(&mut self, text: &str) -> bool {
        match io::stdout().is_terminal() {
            true => self.text(&text::visible(text)),
            false => self.text(text),
        }
    }

    /// Writes JSON that holds what others wrote: on a terminal without a character that it obeys.
    pub fn json(&mut self, json: &str) -> bool {
        match io::stdout().is_terminal() {
            true => self.text(&text::visible_json(json)),
            false => self.text(json),
        }
    }

    /// Writes text and a line end.
    pub fn line(&mut self, text: &str) -> bool {
        self.bytes(text.as_bytes()) && self.bytes(b"\n")
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> bool {
        if self.error.is_none() {
            self.error = self.inner.write_all(bytes).err();
        }
        self.error.is_none()
    }

    /// Flushes; `code` unless writing failed: then 0 when the reader went away, else 1 after a
    /// message on standard error.
    pub fn finish(mut self, code: u8) -> u8 {
        let error = match self.error.take() {
            None => self.inner.flush().err(),
            some => some,
        };
        // What is left of the buffer cannot be written: dropping it must not try again.
        let (_, _) = self.inner.into_parts();
        match error {
            None => code,
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => code,
            Some(error) => {
                say(&format!("cannot write to standard output: {error}"));
                exit::FAILED
            }
        }
    }
}

/// One line on standard error, `etch: ` before it. A broken standard error loses it silently.
/// On a terminal no control character of a name or an answer in it has an effect.
pub fn say(message: &str) {
    let shown = if io::stderr().is_terminal() { text::visible(message) } else { message.into() };
    let line = format!("etch: {shown}\n");
    // Nobody is left to tell when this fails.
    let _ = io::stderr().write_all(line.as_bytes());
}

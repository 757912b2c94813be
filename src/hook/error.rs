//! Why a hook did not do its part: what people read names the hook, its place and its own words.

use std::fmt;

use super::HookEvent;
use crate::cancel::Reason;
use crate::text;

/// How much of a hook's own words a message holds.
const SAID_BYTES_MAX: usize = 2 * 1024;
/// A command line is cut to this in a message.
const COMMAND_BYTES_MAX: usize = 120;

#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// The run ended while the hook did its work.
    Cancelled(Reason),
    Failed(Failed),
}

/// A hook that failed. What it guards must not happen.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    pub event: HookEvent,
    /// The line of the configuration.
    pub place: String,
    pub command: String,
    /// What was wrong.
    pub fault: String,
    /// What it wrote itself, as text; may be empty, may hold secrets.
    pub said: String,
}

impl Failed {
    /// The message, with the hook's own words as `redact` leaves them.
    pub fn message(&self, redact: &dyn Fn(&str) -> String) -> String {
        let Failed { event, place, command, fault, said } = self;
        let command = one_line(command, COMMAND_BYTES_MAX);
        let message = format!("{place}: the {} hook '{command}' failed: {fault}", event.name());
        let message = redact(&message);
        match said.trim() {
            "" => message,
            said => {
                let said = redact(said);
                format!("{message}; it said: {}", text::head_tail(&said, SAID_BYTES_MAX))
            }
        }
    }
}

/// Text of a file or a program on one line, cut.
pub fn one_line(line: &str, bytes_max: usize) -> String {
    let shown = text::visible_line(line.trim());
    match shown.len() <= bytes_max {
        true => shown.into_owned(),
        false => format!("{}…", text::floor_char(&shown, bytes_max)),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Cancelled(reason) => crate::cancel::Cancelled(*reason).fmt(f),
            Error::Failed(failed) => f.write_str(&failed.message(&str::to_owned)),
        }
    }
}

impl std::error::Error for Error {}

//! The terminal while the chat has it: raw, with bracketed paste, and given back as it was found
//! on every way out that this process can see, a panic included.

use std::io;
use std::os::fd::AsFd;

use crossbeam_channel::Receiver;

use super::live::Size;
use super::output::{Output, PATIENCE};
use crate::sys::{self, Settings};

/// Bracketed paste; keys told apart where the terminal speaks the kitty protocol. A level of it
/// that a program left behind when it was killed is taken down first: it would come back below.
const ENTER: &str = "\x1b[?2004h\x1b[=0;1u\x1b[>1u";
/// The same where nobody has left in between, whatever was done to it meanwhile.
const ENTER_AGAIN: &str = "\x1b[?2004h\x1b[=1;1u";
/// All of that off, plain attributes, a cursor.
const LEAVE: &str = "\x1b[<u\x1b[?2004l\x1b[0m\x1b[?25h";

/// The size where there is none to ask for.
const SIZE_DEFAULT: Size = Size { columns: 80, rows: 24 };

pub struct Terminal {
    found: Settings,
    is_raw: bool,
    /// What goes before all that is written next.
    head: &'static str,
    output: Output,
}

impl Terminal {
    /// Remembers how the terminal is; [`Terminal::enter`] changes it.
    pub fn open() -> io::Result<Terminal> {
        let found = sys::settings(io::stdin().as_fd())?;
        Ok(Terminal { found, is_raw: false, head: "", output: Output::start()? })
    }

    /// How many bytes were typed before it was raw.
    pub fn enter(&mut self) -> io::Result<usize> {
        sys::set_raw(io::stdin().as_fd(), &self.found)?;
        let ahead = match self.is_raw {
            true => 0,
            false => sys::typed_ahead(io::stdin().as_fd()),
        };
        let is_again = std::mem::replace(&mut self.is_raw, true) && self.head != ENTER;
        self.head = if is_again { ENTER_AGAIN } else { ENTER };
        Ok(ahead)
    }

    /// Whether the terminal has not taken all yet that was written.
    pub fn is_busy(&self) -> bool {
        self.output.is_busy()
    }

    /// All bytes, at once; not while it [is busy](Terminal::is_busy). Fails when the terminal is
    /// gone.
    pub fn write(&mut self, mut bytes: Vec<u8>) -> io::Result<()> {
        let head = std::mem::take(&mut self.head);
        bytes.splice(..0, head.bytes());
        self.output.give(bytes)
    }

    /// Tells, for [`Terminal::is_written`], when the terminal has taken all.
    pub fn written(&self) -> &Receiver<io::Result<()>> {
        self.output.written()
    }

    pub fn is_written(&mut self, end: io::Result<()>) -> io::Result<()> {
        self.output.is_written(end)
    }

    /// Gives it back, with `last` on it. Whoever takes it next may do with it what they want.
    pub fn leave(&mut self, last: &[u8]) {
        if std::mem::take(&mut self.is_raw) {
            self.head = "";
            // A terminal that is gone cannot be told anything.
            self.output.end(&[last, LEAVE.as_bytes()].concat(), PATIENCE);
            let _ = sys::restore(io::stdin().as_fd(), &self.found.sane());
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave(b"");
    }
}

/// The size now; a terminal that does not know its own has the usual one.
pub fn size() -> Size {
    match sys::terminal_size(io::stdout().as_fd()) {
        Some((columns, rows)) => Size { columns: columns.into(), rows: rows.into() },
        None => SIZE_DEFAULT,
    }
}

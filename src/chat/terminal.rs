//! The terminal while the chat has it: raw, with bracketed paste, and given back as it was found
//! on every way out that this process can see, a panic included.

use std::io::{self, Write};
use std::os::fd::AsFd;

use super::live::Size;
use crate::sys::{self, Settings};

/// Bracketed paste; keys told apart where the terminal speaks the kitty protocol.
const ENTER: &str = "\x1b[?2004h\x1b[>1u";
/// All of that off, plain attributes, a cursor.
const LEAVE: &str = "\x1b[<u\x1b[?2004l\x1b[0m\x1b[?25h";

/// The size where there is none to ask for.
const SIZE_DEFAULT: Size = Size { columns: 80, rows: 24 };

pub struct Terminal {
    found: Settings,
    is_raw: bool,
}

impl Terminal {
    /// Remembers how the terminal is; [`Terminal::enter`] changes it.
    pub fn open() -> io::Result<Terminal> {
        let found = sys::settings(io::stdin().as_fd())?;
        Ok(Terminal { found, is_raw: false })
    }

    /// How many bytes were typed before it was raw.
    pub fn enter(&mut self) -> io::Result<usize> {
        sys::set_raw(io::stdin().as_fd(), &self.found)?;
        let ahead = if self.is_raw { 0 } else { sys::typed_ahead(io::stdin().as_fd()) };
        self.is_raw = true;
        write(ENTER.as_bytes())?;
        Ok(ahead)
    }

    /// Gives it back. Whoever takes it next may do with it what they want.
    pub fn leave(&mut self) {
        if std::mem::take(&mut self.is_raw) {
            // A terminal that is gone cannot be told anything.
            let _ = write(LEAVE.as_bytes());
            let _ = sys::restore(io::stdin().as_fd(), &self.found.sane());
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// All bytes, at once.
pub fn write(bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// The size now; a terminal that does not know its own has the usual one.
pub fn size() -> Size {
    match sys::terminal_size(io::stdout().as_fd()) {
        Some((columns, rows)) => Size { columns: columns.into(), rows: rows.into() },
        None => SIZE_DEFAULT,
    }
}

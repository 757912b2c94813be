//! What is written to the terminal, by a thread that waits until there is room.
//!
//! A terminal whose reader stands still (a stopped `ssh`, a pane that is held) takes no more bytes,
//! for as long as that lasts. So nobody else waits in a write: bytes are given to the thread one
//! piece at a time, and whoever gives them waits for the end of the piece together with all else.
//! Where the system opens the terminal once more the thread can be told to give up; where it does
//! not, standard output itself is written to, and the thread may outlive its owner.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, after, bounded, select};

use crate::sys::{self, Interest, PollFd};

/// So long the last bytes wait for somebody who reads when a signal asks for the end.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// Of the last bytes as many have room when what was before them is dropped: less than a terminal
/// holds back.
const LAST_BYTES_MAX: usize = 2048;

pub struct Output {
    pieces: Sender<Vec<u8>>,
    written: Receiver<io::Result<()>>,
    /// A piece was given, and its end not yet taken from `written`.
    is_under_way: bool,
    /// With a descriptor of its own the thread ends when it is woken.
    own: Option<Own>,
}

struct Own {
    terminal: File,
    wake: PipeWriter,
    thread: JoinHandle<()>,
}

impl Output {
    pub fn start() -> io::Result<Output> {
        let (pieces, todo) = bounded(1);
        let (done, written) = bounded(1);
        let name = thread::Builder::new().name("screen".to_owned());
        let own = match sys::open_again(io::stdout().as_fd()) {
            Ok(terminal) => {
                let (woken, wake) = io::pipe()?;
                let mut out = terminal.try_clone()?;
                let write = move |bytes: &[u8]| write_all(&mut out, bytes, Some(&woken));
                let thread = name.spawn(move || work(&todo, &done, write))?;
                Some(Own { terminal, wake, thread })
            }
            Err(_) => {
                let mut out = io::stdout();
                let write = move |bytes: &[u8]| {
                    write_all(&mut out, bytes, None).and_then(|()| io::stdout().flush())
                };
                drop(name.spawn(move || work(&todo, &done, write))?);
                None
            }
        };
        Ok(Output { pieces, written, is_under_way: false, own })
    }

    /// Whether the last piece is not written yet.
    pub fn is_busy(&self) -> bool {
        self.is_under_way && self.written.is_empty()
    }

    /// Gives a piece on its way; what comes is for [`Output::is_written`]. Nothing is under way
    /// when this is called. Fails when the terminal is gone.
    pub fn give(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.is_under_way {
            self.is_written(self.written.recv().unwrap_or_else(|_| Err(gone())))?;
        }
        self.is_under_way = true;
        self.pieces.send(bytes).map_err(|_| gone())
    }

    /// Tells the end of a piece, once for each.
    pub fn written(&self) -> &Receiver<io::Result<()>> {
        &self.written
    }

    /// The end of a piece, as [`Output::written`] told it.
    pub fn is_written(&mut self, end: io::Result<()>) -> io::Result<()> {
        self.is_under_way = false;
        end
    }

    /// Writes the last bytes within `patience`. If nobody reads by then, what the terminal holds
    /// back is dropped to make room for them.
    pub fn end(&mut self, bytes: &[u8], patience: Duration) {
        let over = after(patience);
        let mut last = Some(bytes.to_vec());
        loop {
            if !self.is_under_way {
                let Some(bytes) = last.take() else { return };
                if self.give(bytes).is_err() || !self.is_under_way {
                    return;
                }
            }
            select! {
                recv(self.written) -> end => match end {
                    Ok(Ok(())) => self.is_under_way = false,
                    Ok(Err(_)) | Err(_) => return,
                },
                recv(over) -> _ => return self.end_anyway(bytes),
            }
        }
    }

    fn end_anyway(&mut self, bytes: &[u8]) {
        let Some(Own { mut terminal, wake, thread }) = self.own.take() else { return };
        drop(wake);
        drop(thread.join());
        if sys::drop_output(io::stdin().as_fd()).is_ok() {
            // Whatever sequence was cut ends first.
            let _ = terminal.write_all(&[b"\x1b\\\x1b[?2026l\r\n", last_lines(bytes)].concat());
        }
    }
}

/// As many lines as have room in a terminal that nobody reads.
fn last_lines(bytes: &[u8]) -> &[u8] {
    let Some(cut) = bytes.len().checked_sub(LAST_BYTES_MAX) else { return bytes };
    let end = bytes[cut..].iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    &bytes[cut + end..]
}

fn gone() -> io::Error {
    io::Error::from(io::ErrorKind::BrokenPipe)
}

fn work(
    todo: &Receiver<Vec<u8>>,
    done: &Sender<io::Result<()>>,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) {
    for bytes in todo {
        let end = write(&bytes);
        // After a failure the terminal is gone, or nobody wants the rest.
        let is_over = end.is_err();
        if done.send(end).is_err() || is_over {
            return;
        }
    }
}

/// Fails with `Interrupted` when it was woken before all was written.
fn write_all(out: &mut impl WriteTo, bytes: &[u8], woken: Option<&PipeReader>) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match out.write(rest) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Standard output, too, may be set by whoever shares it.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let woken = woken.map(AsFd::as_fd);
                let mut fds = [
                    PollFd::new(Some(out.as_fd()), Interest::Write),
                    PollFd::new(woken, Interest::End),
                ];
                sys::poll(&mut fds, None)?;
                if fds[1].is_ready() {
                    return Err(io::Error::from(io::ErrorKind::Interrupted));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

trait WriteTo: Write + AsFd {}
impl<T: Write + AsFd> WriteTo for T {}

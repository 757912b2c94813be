//! The thread that reads the terminal: bytes as they come, until it is stopped.
//!
//! It owns standard input as long as it runs. Whoever gives the terminal to another program stops
//! it first: then no byte is taken that is not meant for the chat.

use std::io::{self, PipeWriter, Read};
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use crate::cancel::Never;
use crate::sys::{self, Interest, PollFd};

const READ_BYTES: usize = 64 * 1024;

/// What the terminal gave.
#[derive(Debug)]
pub enum Typed {
    Bytes(Vec<u8>),
    /// The terminal is gone.
    Closed,
}

pub struct Reader {
    /// Closed: the thread ends.
    wake: PipeWriter,
    /// Closes when it has.
    ended: Receiver<Never>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// What is read goes to `typed`; a full channel makes the thread wait. What was typed before
    /// the terminal was raw has another Enter in it: that of the first `ahead` bytes is put right.
    pub fn start(typed: Sender<Typed>, ahead: usize) -> io::Result<Reader> {
        let (woken, wake) = io::pipe()?;
        let (end, ended) = bounded(0);
        let work = move || {
            read(&woken, &typed, ahead);
            drop(end);
        };
        let thread = thread::Builder::new().name("keys".to_owned()).spawn(work)?;
        Ok(Reader { wake, ended, thread })
    }

    /// Ends the thread; bytes that nobody has read stay in the terminal. Gives back what was read
    /// and not taken from the other end of the channel, which is `typed`.
    pub fn stop(self, typed: &Receiver<Typed>) -> Vec<Typed> {
        drop(self.wake);
        let mut left = Vec::new();
        loop {
            select! {
                recv(typed) -> typed => left.extend(typed),
                recv(self.ended) -> _ => break,
            }
        }
        drop(self.thread.join());
        left.extend(typed.try_iter());
        left
    }
}

fn read(woken: &io::PipeReader, typed: &Sender<Typed>, mut ahead: usize) {
    let stdin = io::stdin();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let mut fds = [
            PollFd::new(Some(stdin.as_fd()), Interest::Read),
            PollFd::new(Some(woken.as_fd()), Interest::Read),
        ];
        match sys::poll(&mut fds, None) {
            Ok(_) if fds[1].is_ready() => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return drop(typed.send(Typed::Closed)),
        }
        let got = match stdin.lock().read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => return drop(typed.send(Typed::Closed)),
            Ok(got) => got,
        };
        let early = ahead.min(got);
        ahead -= early;
        for byte in &mut buffer[..early] {
            if *byte == b'\n' {
                *byte = b'\r';
            }
        }
        if typed.send(Typed::Bytes(buffer[..got].to_vec())).is_err() {
            return;
        }
    }
}

//! Notices that the reader of standard output went away while nothing is being written.
//!
//! A write tells by itself (`etch -p … | head`), but a run may write nothing for minutes while a
//! tool works for nobody. Only pipes are watched: a terminal that goes away sends a signal.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::thread;

use crate::cancel::{Cancel, Reason};
use crate::sys::{self, Interest, PollFd};

/// Ends its thread when dropped.
pub struct Watch {
    _waker: PipeWriter,
}

/// Cancels the run when the reader of a piped standard output is gone. `None` when there is no
/// pipe, or no thread for it: then the next write tells.
pub fn watch(cancel: &Cancel) -> Option<Watch> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned().ok()?);
    if !stdout.metadata().ok()?.file_type().is_fifo() {
        return None;
    }
    let (woken, waker) = io::pipe().ok()?;
    let cancel = cancel.clone();
    let thread = thread::Builder::new().name("reader".to_owned()).stack_size(64 * 1024);
    thread.spawn(move || wait(&stdout, &woken, &cancel)).ok()?;
    Some(Watch { _waker: waker })
}

/// A pipe without readers reports an error to its writer.
fn wait(stdout: &File, woken: &PipeReader, cancel: &Cancel) {
    loop {
        let mut fds = [
            PollFd::new(Some(stdout.as_fd()), Interest::End),
            PollFd::new(Some(woken.as_fd()), Interest::Read),
        ];
        if sys::poll(&mut fds, None).is_err() || fds[1].is_ready() {
            return;
        }
        if fds[0].is_ready() {
            return cancel.cancel(Reason::OutputGone);
        }
    }
}

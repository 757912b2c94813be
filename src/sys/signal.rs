//! SIGINT, SIGTERM and SIGHUP, and what a terminal tells, as values on a channel.
//!
//! The handler writes one byte into a pipe; a thread named `signals` reads it and sends. A
//! handler, not a blocked mask: it works whatever threads exist, and a program that is started
//! gets the default back by itself.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, IntoRawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::sys::{check, fd};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C at the terminal, or sent from outside.
    Interrupt,
    Terminate,
    /// SIGHUP: the terminal went away.
    Hangup,
    /// SIGWINCH: the terminal has another size.
    Resized,
    /// SIGCONT: the process had been stopped.
    Continued,
}

impl Signal {
    fn from_number(number: i32) -> Option<Signal> {
        match number {
            libc::SIGINT => Some(Signal::Interrupt),
            libc::SIGTERM => Some(Signal::Terminate),
            libc::SIGHUP => Some(Signal::Hangup),
            libc::SIGWINCH => Some(Signal::Resized),
            libc::SIGCONT => Some(Signal::Continued),
            _ => None,
        }
    }
}

/// Signals that wait for a receiver; more wait in the pipe, so that none that ends the process is
/// lost behind those of a window that is dragged.
const WAITING_MAX: usize = 16;

/// The write end of the pipe; -1 before [`signals`] was called. Never closed.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// From now on these signals arrive here instead of ending the process. SIGHUP that was ignored
/// at the start (`nohup`) stays ignored.
///
/// Fails with `AlreadyExists` on a second call: there is one stream per process.
pub fn signals() -> io::Result<Receiver<Signal>> {
    let (reader, writer) = io::pipe()?;
    // A handler must never block, even when nobody reads.
    fd::set_nonblocking(writer.as_fd(), true)?;
    let raw = writer.into_raw_fd();
    if PIPE.compare_exchange(-1, raw, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        // SAFETY: `raw` was released above and nobody else knows it.
        unsafe { libc::close(raw) };
        return Err(io::Error::from(io::ErrorKind::AlreadyExists));
    }
    let (sender, receiver) = bounded(WAITING_MAX);
    // The stack of a thread that only reads bytes may be small.
    let thread = std::thread::Builder::new().name("signals".to_owned()).stack_size(64 * 1024);
    thread.spawn(move || forward(reader, &sender))?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        if signal != libc::SIGHUP || !is_ignored(signal)? {
            install(signal, on_signal)?;
        }
    }
    Ok(receiver)
}

/// From now on [`Signal::Resized`] and [`Signal::Continued`] arrive among [`signals`], too.
pub fn watch_terminal() -> io::Result<()> {
    [libc::SIGWINCH, libc::SIGCONT].into_iter().try_for_each(|signal| install(signal, on_signal))
}

/// A write over the limit on file sizes (`ulimit -f`) fails like one on a full disk, instead of
/// ending the process. Programs that are started get the default back by themselves.
pub fn survive_file_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    // Where it fails the limit does what it does by default.
    if let Ok(false) = is_ignored(libc::SIGXFSZ) {
        let _ = install(libc::SIGXFSZ, nothing);
    }
}

/// Makes this process deaf to the signals that ask a program to end.
pub fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: ignoring runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

fn forward(mut reader: PipeReader, sender: &Sender<Signal>) {
    let mut byte = [0];
    while let Ok(1) = reader.read(&mut byte) {
        if let Some(signal) = Signal::from_number(i32::from(byte[0])) {
            let _ = sender.send(signal);
        }
    }
}

fn is_ignored(signal: i32) -> io::Result<bool> {
    // SAFETY: a zeroed action is valid memory for the call to write.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        check(libc::sigaction(signal, std::ptr::null(), &raw mut action))?;
        Ok(action.sa_sigaction == libc::SIG_IGN)
    }
}

fn install(signal: i32, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: the action is complete (an empty mask, a handler of the declared kind), and the
    // handler does only what a handler may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        // Interrupted calls go on: whoever must stop is woken by the cancellation.
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        check(libc::sigaction(signal, &raw const action, std::ptr::null_mut())).map(|_| ())
    }
}

extern "C" fn on_signal(signal: libc::c_int) {
    let byte = u8::try_from(signal).unwrap_or(0);
    // SAFETY: `write` is allowed in a handler, the byte is live, and errno is put back for the
    // code that was interrupted.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(PIPE.load(Ordering::Relaxed), std::ptr::from_ref(&byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn signals_arrive_in_order_and_the_stream_is_one() {
        let receiver = signals().unwrap();
        assert_eq!(signals().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let cases = [
            (libc::SIGINT, Signal::Interrupt),
            (libc::SIGTERM, Signal::Terminate),
            (libc::SIGHUP, Signal::Hangup),
            (libc::SIGINT, Signal::Interrupt),
        ];
        let nohup = is_ignored(libc::SIGHUP).unwrap();
        for (number, signal) in cases {
            if number == libc::SIGHUP && nohup {
                continue;
            }
            crate::sys::kill(std::process::id(), number).unwrap();
            assert_eq!(receiver.recv_timeout(Duration::from_secs(10)), Ok(signal));
        }
        watch_terminal().unwrap();
        let resizes = 10 * WAITING_MAX;
        for _ in 0..resizes {
            crate::sys::kill(std::process::id(), libc::SIGWINCH).unwrap();
        }
        crate::sys::kill(std::process::id(), libc::SIGTERM).unwrap();
        let got = std::iter::from_fn(|| receiver.recv_timeout(Duration::from_secs(10)).ok());
        let before = got.take_while(|signal| *signal != Signal::Terminate).count();
        assert!((1..=resizes).contains(&before), "{before}");
        for number in [libc::SIGWINCH, libc::SIGCONT] {
            // SAFETY: gives the default back.
            unsafe { libc::signal(number, libc::SIG_DFL) };
        }
        for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            if !is_ignored(number).unwrap() {
                // SAFETY: gives the default back, so that Ctrl-C still ends the tests.
                unsafe { libc::signal(number, libc::SIG_DFL) };
            }
        }
    }
}

//! What ends a run from outside: signals, and the time limit of the whole run.

use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, after, bounded, never, select};

use super::exit;
use crate::agent::Stop;
use crate::cancel::{Cancel, Never, Reason};
use crate::sys::{self, Signal};

/// A second Ctrl-C within this time does not wait for a proper end.
const AGAIN_WITHIN: Duration = Duration::from_secs(2);

/// A proper end writes, and whoever should read that (a terminal that is stopped, a program that
/// hangs) may never do it. After SIGTERM and SIGHUP the process is gone after this time anyway.
const END_WITHIN: Duration = Duration::from_secs(5);

/// From now on a signal cancels `cancel`; a second SIGINT within two seconds ends the process at
/// once, and so does [`END_WITHIN`] after SIGTERM or SIGHUP. Where signals cannot be watched they do
/// what they do by default.
pub fn watch(cancel: &Cancel) {
    let Ok(signals) = sys::signals() else { return };
    let cancel = cancel.clone();
    let work = move || forward(&signals, &cancel);
    // Lives as long as the process does: it waits for signals, and nothing waits for it.
    drop(thread::Builder::new().name("interrupt".to_owned()).stack_size(64 * 1024).spawn(work));
}

fn forward(signals: &Receiver<Signal>, cancel: &Cancel) {
    let Ok(mut signal) = signals.recv() else { return };
    let mut end = never();
    let mut is_ending = false;
    cancel.cancel(reason(signal));
    loop {
        // Whoever sends SIGINT can send it again.
        if signal != Signal::Interrupt && !std::mem::replace(&mut is_ending, true) {
            end = after(END_WITHIN);
        }
        let window = after(AGAIN_WITHIN);
        signal = select! {
            recv(signals) -> next => match next {
                // Tool children die with this process: their guard sees its pipe close.
                Ok(Signal::Interrupt) if window.is_empty() => {
                    std::process::exit(i32::from(exit::INTERRUPT));
                }
                Ok(next) => next,
                Err(_) => return,
            },
            recv(end) -> _ => {
                let reason = cancel.reason().unwrap_or(Reason::Terminate);
                std::process::exit(i32::from(Stop::Cancelled(reason).exit_code()));
            }
        };
    }
}

fn reason(signal: Signal) -> Reason {
    match signal {
        Signal::Interrupt => Reason::Interrupt,
        Signal::Terminate => Reason::Terminate,
        Signal::Hangup => Reason::Hangup,
        // Of a terminal's own; nobody asked for them here.
        Signal::Resized | Signal::Continued => Reason::User,
    }
}

/// The time limit of a run; dropping it lifts the limit.
pub struct Deadline {
    _lift: Sender<Never>,
}

impl Deadline {
    pub fn start(limit: Duration, cancel: &Cancel) -> Deadline {
        let (lift, lifted) = bounded(0);
        let cancel = cancel.clone();
        let work = move || {
            if let Err(crossbeam_channel::RecvTimeoutError::Timeout) = lifted.recv_timeout(limit) {
                cancel.cancel(Reason::Timeout);
            }
        };
        drop(thread::Builder::new().name("deadline".to_owned()).stack_size(64 * 1024).spawn(work));
        Deadline { _lift: lift }
    }
}

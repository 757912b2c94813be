//! What ends a run from outside: signals, and the time limit of the whole run.

use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::exit;
use crate::cancel::{Cancel, Never, Reason};
use crate::sys::{self, Signal};

/// A second Ctrl-C within this time does not wait for a proper end.
const AGAIN_WITHIN: Duration = Duration::from_secs(2);

/// From now on a signal cancels `cancel`; a second SIGINT within two seconds ends the process at
/// once. Where signals cannot be watched they do what they do by default.
pub fn watch(cancel: &Cancel) {
    let Ok(signals) = sys::signals() else { return };
    let cancel = cancel.clone();
    let work = move || forward(&signals, &cancel);
    // Lives as long as the process does: it waits for signals, and nothing waits for it.
    drop(thread::Builder::new().name("interrupt".to_owned()).stack_size(64 * 1024).spawn(work));
}

fn forward(signals: &Receiver<Signal>, cancel: &Cancel) {
    while let Ok(signal) = signals.recv() {
        cancel.cancel(match signal {
            Signal::Interrupt => Reason::Interrupt,
            Signal::Terminate => Reason::Terminate,
            Signal::Hangup => Reason::Hangup,
        });
        while let Ok(next) = signals.recv_timeout(AGAIN_WITHIN) {
            if next == Signal::Interrupt {
                // Tool children die with this process: their guard sees its pipe close.
                std::process::exit(i32::from(exit::INTERRUPT));
            }
        }
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

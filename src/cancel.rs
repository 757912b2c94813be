//! Cancellation: one token that closes a channel and runs closers.
//!
//! A token is cancelled at most once and for one reason. Cancelling wakes every `select!` on
//! [`Cancel::channel`] and runs every registered closer (shut a socket down, kill a process
//! group), so that a call blocked in another thread returns at once. A child token is cancelled
//! with its parent, never the other way round.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, after, bounded, select};

/// Why a token was cancelled. The first reason stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// SIGINT: Ctrl-C at the terminal, or sent from outside.
    Interrupt = 1,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal went away.
    Hangup,
    /// A time limit was reached: the whole run's or, on the token of one tool call, that call's.
    Timeout,
    /// The person asked for the turn to stop (a key, not a signal).
    User,
    /// The reader of standard output went away.
    OutputGone,
}

impl Reason {
    const ALL: [Reason; 6] = [
        Reason::Interrupt,
        Reason::Terminate,
        Reason::Hangup,
        Reason::Timeout,
        Reason::User,
        Reason::OutputGone,
    ];

    fn from_u8(value: u8) -> Option<Reason> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == value)
    }
}

/// A wait ended because its token was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled(pub Reason);

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Reason::Interrupt => "interrupted",
            Reason::Terminate => "terminated",
            Reason::Hangup => "hung up",
            Reason::Timeout => "the time limit was reached",
            Reason::User => "cancelled",
            Reason::OutputGone => "the reader of the output went away",
        })
    }
}

/// Nothing is ever sent on a cancel channel: it only closes.
pub enum Never {}

/// What it gives back may be the last of a token whose end needs the slot: it is dropped when
/// the slot is free again.
type Action = Box<dyn FnOnce() -> Option<Cancel> + Send>;
/// Locked while the action runs, so that dropping the guard waits for it.
type Slot = Arc<Mutex<Option<Action>>>;

/// Does `work` on another thread, for no longer than `limit`; `None` when it took longer or `cancel`
/// came first. `work` must end soon after its own token is cancelled: it is waited for.
pub fn within<T: Send>(
    limit: Duration,
    cancel: &Cancel,
    work: impl FnOnce(&Cancel) -> T + Send,
) -> Option<T> {
    let until = cancel.child();
    let (sender, receiver) = bounded(1);
    std::thread::scope(|scope| {
        scope.spawn(|| drop(sender.send(work(&until))));
        let done = select! {
            recv(receiver) -> done => done.ok(),
            recv(after(limit)) -> _ => None,
            recv(cancel.channel()) -> _ => None,
        };
        until.cancel(Reason::Timeout);
        done
    })
}

/// A cancellation token; clones share one state.
#[derive(Clone)]
pub struct Cancel {
    inner: Arc<Inner>,
}

struct Inner {
    reason: AtomicU8,
    gate: Receiver<Never>,
    state: Mutex<State>,
}

struct State {
    /// Dropped by the cancellation: that closes `gate`.
    sender: Option<Sender<Never>>,
    closers: Vec<Slot>,
    /// Keeps a child registered with its parent for as long as the child lives.
    parent: Option<Closer>,
}

/// Unregisters its closer when dropped; afterwards the closer does not run any more, and a run
/// that had begun has ended.
#[must_use = "dropping the guard unregisters the closer"]
pub struct Closer {
    slot: Slot,
}

impl Drop for Closer {
    fn drop(&mut self) {
        lock(&self.slot).take();
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    /// A fresh token that nothing has cancelled.
    pub fn new() -> Cancel {
        let (sender, gate) = bounded(0);
        let state = State { sender: Some(sender), closers: Vec::new(), parent: None };
        Cancel {
            inner: Arc::new(Inner { reason: AtomicU8::new(0), gate, state: Mutex::new(state) }),
        }
    }

    /// A token that is cancelled with this one, and can be cancelled alone.
    pub fn child(&self) -> Cancel {
        let child = Cancel::new();
        let (parent, weak) = (self.clone(), Arc::downgrade(&child.inner));
        let source = Arc::downgrade(&parent.inner);
        let closer = self.register(Box::new(move || {
            let child = Cancel { inner: weak.upgrade()? };
            let source = source.upgrade().map(|inner| Cancel { inner });
            let reason = source.and_then(|source| source.reason()).unwrap_or(Reason::User);
            child.cancel(reason);
            // Its owner may have let it go meanwhile.
            Some(child)
        }));
        lock(&child.inner.state).parent = Some(closer);
        child
    }

    /// Cancels: closes the channel and runs the closers on this thread. Later calls do nothing.
    pub fn cancel(&self, reason: Reason) {
        let closers = {
            let mut state = lock(&self.inner.state);
            if state.sender.is_none() {
                return;
            }
            self.inner.reason.store(reason as u8, Ordering::Release);
            state.sender = None;
            std::mem::take(&mut state.closers)
        };
        closers.iter().for_each(run);
    }

    /// Why this token was cancelled, if it was.
    pub fn reason(&self) -> Option<Reason> {
        Reason::from_u8(self.inner.reason.load(Ordering::Acquire))
    }

    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// For use between units of work.
    pub fn check(&self) -> Result<(), Cancelled> {
        self.reason().map_or(Ok(()), |reason| Err(Cancelled(reason)))
    }

    /// Closed by the cancellation: `recv` on it returns an error from then on. For `select!`.
    pub fn channel(&self) -> &Receiver<Never> {
        &self.inner.gate
    }

    /// Registers `action` to run once on cancellation, at once when it already happened. The
    /// action must not block and must not drop its own guard.
    pub fn on_cancel(&self, action: impl FnOnce() + Send + 'static) -> Closer {
        self.register(Box::new(move || {
            action();
            None
        }))
    }

    fn register(&self, action: Action) -> Closer {
        let slot: Slot = Arc::new(Mutex::new(Some(action)));
        let waiting = {
            let mut state = lock(&self.inner.state);
            let open = state.sender.is_some();
            if open {
                // Slots of dropped guards are empty and held by nobody else.
                state.closers.retain(|slot| Arc::strong_count(slot) > 1);
                state.closers.push(Arc::clone(&slot));
            }
            open
        };
        if !waiting {
            run(&slot);
        }
        Closer { slot }
    }
}

/// Runs the action of a slot, unless its guard is gone.
fn run(slot: &Slot) {
    let mut held = lock(slot);
    let left = held.take().and_then(|action| action());
    drop(held);
    drop(left);
}

/// A poisoned lock only means that a closer panicked; the data is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_child_may_be_let_go_while_it_is_being_cancelled() {
        let (done, waiting) = bounded::<()>(1);
        std::thread::spawn(move || {
            let parent = Cancel::new();
            let child = parent.child();
            let owned = Mutex::new(Some(child.clone()));
            // The last owner lets go in the middle of the cancellation.
            let _closer = child.on_cancel(move || drop(lock(&owned).take()));
            drop(child);
            parent.cancel(Reason::User);
            let _ = done.send(());
        });
        let patience = std::time::Duration::from_secs(20);
        assert_eq!(waiting.recv_timeout(patience), Ok(()), "the cancellation never ends");
    }

    #[test]
    fn cancelling_wakes_runs_closers_once_and_keeps_the_first_reason() {
        let cancel = Cancel::new();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let _closer = cancel.on_cancel(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(cancel.check(), Ok(()));
        let waiter = {
            let cancel = cancel.clone();
            std::thread::spawn(move || cancel.channel().recv().is_err())
        };
        cancel.cancel(Reason::Timeout);
        cancel.cancel(Reason::User);
        assert!(waiter.join().unwrap());
        assert_eq!(cancel.check(), Err(Cancelled(Reason::Timeout)));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_dropped_guard_never_runs_and_a_late_one_runs_at_once() {
        let cancel = Cancel::new();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        drop(cancel.on_cancel(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        }));
        cancel.cancel(Reason::User);
        assert_eq!(count.load(Ordering::SeqCst), 0);
        let counted = Arc::clone(&count);
        let _late = cancel.on_cancel(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_child_follows_its_parent_and_not_the_reverse() {
        let parent = Cancel::new();
        let (first, second) = (parent.child(), parent.child());
        first.cancel(Reason::User);
        assert!(!parent.is_cancelled() && !second.is_cancelled());
        parent.cancel(Reason::Interrupt);
        assert_eq!(second.reason(), Some(Reason::Interrupt));
        assert_eq!(first.reason(), Some(Reason::User));
    }

    #[test]
    fn many_short_guards_leave_nothing_behind() {
        let cancel = Cancel::new();
        for _ in 0..1000 {
            drop(cancel.on_cancel(|| {}));
        }
        assert!(lock(&cancel.inner.state).closers.len() <= 2);
    }
}

//! A connection of a session between its requests: what its server remembers, and who holds it.
//!
//! A connection that no request uses is held for a bounded time by a thread that ends with it.

use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::request::Input;
use crate::provider::openai::auth::limits::Limits;
use crate::wire::websocket::WebSocket;

/// An unused connection is closed after this.
const IDLE_MAX: Duration = Duration::from_secs(300);

/// A connection and what its server remembers.
pub struct Link {
    pub socket: WebSocket,
    pub session_id: String,
    /// On the host's clock.
    pub opened: Duration,
    pub served: bool,
    pub previous: Option<Previous>,
    /// Of the last response that ended here.
    pub ended_id: String,
    /// What the server told of the account's limits last.
    pub limits: Option<Limits>,
    /// When it was true, on the host's clock.
    pub limits_at: Duration,
}

impl Link {
    pub fn told(&mut self, limits: Option<Limits>) {
        if let Some(limits) = limits {
            self.limits = Some(limits.or(self.limits.take()));
        }
    }

    /// Brings what is known of the limits up to date.
    pub fn age_limits(&mut self, now: Duration) {
        let passed = now.saturating_sub(std::mem::replace(&mut self.limits_at, now));
        self.limits = self.limits.take().map(|limits| limits.aged(passed.as_secs()));
    }
}

/// The last request and its answer.
pub struct Previous {
    pub response_id: String,
    pub head: String,
    pub input: Input,
    pub answered: Input,
}

/// Holds an idle connection until it is asked for, or until its time is over.
#[derive(Default)]
pub struct Keeper(Mutex<Option<Kept>>);

struct Kept {
    ask: Option<Sender<()>>,
    link: Receiver<Link>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub fn park(&self, link: Link) {
        let (ask, asked) = bounded::<()>(1);
        let (give, taken) = bounded(1);
        let hold = move || match asked.recv_timeout(IDLE_MAX) {
            Ok(()) => drop(give.send(link)),
            Err(_) => link.socket.close(),
        };
        // Without a thread the connection is closed, and the next call opens another.
        let thread = std::thread::Builder::new().name("etch-socket".to_owned()).spawn(hold);
        if let Ok(thread) = thread {
            let kept = Kept { ask: Some(ask), link: taken, thread: Some(thread) };
            let before = self.lock().replace(kept);
            drop(before);
        }
    }

    pub fn take(&self) -> Option<Link> {
        let kept = self.lock().take()?;
        kept.ask.as_ref()?.send(()).ok()?;
        kept.link.recv().ok()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kept {
    /// The thread ends at once: it is told by the closed channel.
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

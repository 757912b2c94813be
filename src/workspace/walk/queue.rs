//! The jobs of a walk: last in, first out, so that little is open at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::sys::dir::Dir;
use crate::workspace::ignore::layers::Layers;
use crate::workspace::walk::folder::Names;

pub(super) enum Job {
    Folder {
        /// Absolute.
        path: Vec<u8>,
        /// Where the part below the root starts.
        relative_at: usize,
        /// 0 for a root.
        depth: usize,
        layers: Layers,
    },
    /// More files of a folder than one job should have.
    Files { folder: Arc<OpenFolder>, names: Names },
}

/// A folder whose files are still to be visited.
pub(super) struct OpenFolder {
    pub dir: Dir,
    /// Absolute, with a slash at the end.
    pub prefix: Vec<u8>,
    pub relative_at: usize,
}

pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    /// Length of the stack, to be looked at without the lock.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    /// Jobs taken and not finished: each may still bring new ones.
    running: usize,
    idle: usize,
    closed: bool,
}

impl Queue {
    pub fn new() -> Queue {
        Queue {
            state: Mutex::new(State::default()),
            wake: Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Jobs that nobody has taken.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The last of the jobs is taken first.
    pub fn push(&self, jobs: impl IntoIterator<Item = Job>) {
        let mut state = self.lock();
        let before = state.jobs.len();
        state.jobs.extend(jobs);
        let wake = state.idle.min(state.jobs.len() - before);
        self.waiting.store(state.jobs.len(), Ordering::Relaxed);
        drop(state);
        for _ in 0..wake {
            self.wake.notify_one();
        }
    }

    /// The next job, and says that the job taken before is finished. `None` when all is done.
    /// Waits only while another thread runs a job.
    pub fn next(&self, finished: bool) -> Option<Job> {
        let mut state = self.lock();
        state.running -= usize::from(finished);
        loop {
            if state.closed {
                return None;
            }
            if let Some(job) = state.jobs.pop() {
                state.running += 1;
                self.waiting.store(state.jobs.len(), Ordering::Relaxed);
                return Some(job);
            }
            if state.running == 0 {
                drop(state);
                self.close();
                return None;
            }
            state.idle += 1;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Ends the walk for all threads.
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_all();
    }

    /// Held for a push or a pop only, never across work.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Keeping only the first results in path order, and telling a walk what it may leave out.
//!
//! Once enough results are known, whatever lies behind the last of them cannot count any more.
//! That bound only moves forward in the order, so a stale copy of it is safe: it lets too much
//! through, never too little.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicUsize, Ordering as Atomic};
use std::sync::{Mutex, PoisonError};

use crate::workspace::walk::order;

/// The path behind which nothing counts, shared by all threads; unset at first.
#[derive(Default)]
pub struct Bound {
    /// Changes; 0: not set yet.
    version: AtomicUsize,
    path: Mutex<Vec<u8>>,
}

/// One thread's copy of a [`Bound`].
#[derive(Default)]
pub struct BoundCopy {
    version: usize,
    path: Vec<u8>,
}

impl Bound {
    /// Moves the bound to `path` if that is nearer to the start.
    pub fn lower(&self, path: &[u8]) {
        let mut current = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.version.load(Atomic::Relaxed);
        if version == 0 || order(path, &current) == Ordering::Less {
            current.clear();
            current.extend_from_slice(path);
            self.version.store(version + 1, Atomic::Release);
        }
    }

    /// Whether a result at or below `path` would still count.
    pub fn admits(&self, copy: &mut BoundCopy, path: &[u8]) -> bool {
        let version = self.version.load(Atomic::Acquire);
        if version == 0 {
            return true;
        }
        if version != copy.version {
            let current = self.path.lock().unwrap_or_else(PoisonError::into_inner);
            copy.version = self.version.load(Atomic::Relaxed);
            copy.path.clone_from(&current);
        }
        order(path, &copy.path) == Ordering::Less
    }

    /// The bound, once it is set.
    pub fn get(&self) -> Option<Vec<u8>> {
        let current = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        (self.version.load(Atomic::Relaxed) > 0).then(|| current.clone())
    }
}

//! What the model has seen of the working tree in this run.
//!
//! A file counts as read when any part of it was shown, or when etch itself wrote it; what is
//! remembered is its state at that moment. Nothing is kept between runs: a resumed session
//! starts with nothing read. Several read-only calls may note at once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::workspace::identity::Stamp;

/// How a file's state now relates to what the model saw of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    Never,
    Same,
    Changed,
}

/// The states in which files were last seen, by resolved path.
#[derive(Debug, Default)]
pub struct Reads {
    /// Held for a look-up or an insertion only, never across input or output.
    stamps: Mutex<HashMap<PathBuf, Stamp>>,
}

impl Reads {
    /// Remembers the state that `path` was read or written in; the latest counts.
    pub fn note(&self, path: &Path, stamp: Stamp) {
        self.lock().insert(path.to_owned(), stamp);
    }

    /// Compares the state that `path` is in now with the one that was seen.
    pub fn compare(&self, path: &Path, now: Stamp) -> Seen {
        match self.lock().get(path) {
            None => Seen::Never,
            Some(then) if *then == now => Seen::Same,
            Some(_) => Seen::Changed,
        }
    }

    /// Nothing counts as seen any more.
    pub fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Stamp>> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_state_counts_and_only_for_its_path() {
        let reads = Reads::default();
        let (path, other) = (Path::new("/w/a"), Path::new("/w/b"));
        let [old, new] = [1, 2].map(|hash| Stamp::Content { len: 1, hash });
        assert_eq!(reads.compare(path, old), Seen::Never);
        reads.note(path, old);
        assert_eq!(reads.compare(path, old), Seen::Same);
        assert_eq!(reads.compare(path, new), Seen::Changed);
        assert_eq!(reads.compare(other, old), Seen::Never);
        reads.note(path, new);
        assert_eq!(reads.compare(path, new), Seen::Same);
        assert_eq!(reads.compare(path, old), Seen::Changed);
        reads.forget();
        assert_eq!(reads.compare(path, new), Seen::Never);
    }
}

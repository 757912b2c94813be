//! What a draft was: changes that can be taken back, newest first.
//!
//! Characters typed in a row go back word by word, deletions and recalls in a row go back as one.
//! The oldest changes are forgotten when all of them together grow too large.

use std::collections::VecDeque;

/// Text that the changes hold together at most; the newest is kept whatever its size.
const BYTES_MAX: usize = 8 * 1024 * 1024;
const CHANGES_MAX: usize = 10_000;

/// What made a change; of these, some join with the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Type,
    Delete,
    /// The whole draft exchanged for one of the history.
    Recall,
    Other,
}

/// One exchange of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub at: usize,
    pub removed: String,
    pub inserted: String,
    /// Where the cursor stood before.
    pub cursor: usize,
    pub kind: Kind,
}

#[derive(Debug, Default)]
pub(super) struct Undo {
    changes: VecDeque<Change>,
    /// Of all texts of `changes`.
    bytes: usize,
    /// The next change stands for itself: the cursor was moved.
    is_sealed: bool,
}

impl Undo {
    pub fn record(&mut self, change: Change) {
        self.bytes += change.removed.len() + change.inserted.len();
        let is_sealed = std::mem::take(&mut self.is_sealed);
        match self.changes.back_mut() {
            Some(last) if !is_sealed && joins(last, &change) => {
                let dropped = join(last, change);
                self.bytes -= dropped;
            }
            _ => self.changes.push_back(change),
        }
        while 1 < self.changes.len() && (BYTES_MAX < self.bytes || CHANGES_MAX < self.changes.len())
        {
            self.forget_oldest();
        }
    }

    /// The newest change, to be taken back now.
    pub fn pop(&mut self) -> Option<Change> {
        self.is_sealed = true;
        let change = self.changes.pop_back()?;
        self.bytes -= change.removed.len() + change.inserted.len();
        Some(change)
    }

    pub fn seal(&mut self) {
        self.is_sealed = true;
    }

    fn forget_oldest(&mut self) {
        if let Some(change) = self.changes.pop_front() {
            self.bytes -= change.removed.len() + change.inserted.len();
        }
    }
}

fn joins(last: &Change, next: &Change) -> bool {
    if last.kind != next.kind {
        return false;
    }
    match next.kind {
        Kind::Type => {
            let starts_word = last.inserted.ends_with(char::is_whitespace)
                && !next.inserted.starts_with(char::is_whitespace);
            next.removed.is_empty() && last.at + last.inserted.len() == next.at && !starts_word
        }
        Kind::Delete => {
            let behind = next.at == last.at;
            let before = next.at + next.removed.len() == last.at;
            last.inserted.is_empty() && next.inserted.is_empty() && (behind || before)
        }
        Kind::Recall => true,
        Kind::Other => false,
    }
}

/// Makes one change of two that join; returns the bytes that neither needs any more.
fn join(last: &mut Change, next: Change) -> usize {
    match next.kind {
        Kind::Delete if next.at == last.at => last.removed.push_str(&next.removed),
        Kind::Delete => {
            last.at = next.at;
            last.removed.insert_str(0, &next.removed);
        }
        Kind::Recall => {
            let dropped = next.removed.len() + last.inserted.len();
            last.inserted = next.inserted;
            return dropped;
        }
        Kind::Type | Kind::Other => last.inserted.push_str(&next.inserted),
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: Kind, at: usize, removed: &str, inserted: &str) -> Change {
        let cursor = at + removed.len();
        Change { at, removed: removed.to_owned(), inserted: inserted.to_owned(), cursor, kind }
    }

    #[test]
    fn what_was_typed_goes_back_word_by_word() {
        let mut undo = Undo::default();
        for (at, c) in "ab  cd".char_indices() {
            undo.record(change(Kind::Type, at, "", &c.to_string()));
        }
        assert_eq!(undo.pop(), Some(change(Kind::Type, 4, "", "cd")));
        assert_eq!(undo.pop(), Some(change(Kind::Type, 0, "", "ab  ")));
        assert_eq!(undo.pop(), None);
        assert_eq!(undo.bytes, 0);
    }

    #[test]
    fn a_move_a_gap_and_another_kind_start_anew() {
        let mut undo = Undo::default();
        undo.record(change(Kind::Type, 0, "", "a"));
        undo.record(change(Kind::Type, 0, "", "b"));
        undo.seal();
        undo.record(change(Kind::Type, 1, "", "c"));
        undo.record(change(Kind::Delete, 2, "x", ""));
        undo.record(change(Kind::Delete, 1, "y", ""));
        undo.record(change(Kind::Delete, 1, "z", ""));
        let both = Change { cursor: 3, ..change(Kind::Delete, 1, "yxz", "") };
        assert_eq!(undo.pop(), Some(both));
        let starts: Vec<_> = std::iter::from_fn(|| undo.pop()).map(|c| c.inserted).collect();
        assert_eq!(starts, ["c", "b", "a"]);
    }

    #[test]
    fn recalls_in_a_row_lead_back_to_the_draft() {
        let mut undo = Undo::default();
        undo.record(change(Kind::Recall, 0, "draft", "third"));
        undo.record(change(Kind::Recall, 0, "third", "second"));
        undo.record(change(Kind::Recall, 0, "second", "first"));
        assert_eq!(undo.bytes, "draft".len() + "first".len());
        assert_eq!(undo.pop(), Some(change(Kind::Recall, 0, "draft", "first")));
        assert_eq!((undo.pop(), undo.bytes), (None, 0));
    }

    #[test]
    fn the_oldest_are_forgotten_and_the_newest_never() {
        let mut undo = Undo::default();
        let large = "x".repeat(BYTES_MAX / 2);
        for at in 0..3 {
            undo.record(change(Kind::Other, at, "", &large));
        }
        assert_eq!(undo.changes.len(), 2);
        undo.record(change(Kind::Other, 9, &large, &(large.clone() + &large)));
        assert_eq!(undo.changes.len(), 1);
        let mut undo = Undo::default();
        for at in 0..CHANGES_MAX + 5 {
            undo.record(change(Kind::Other, at, "", "x"));
        }
        assert_eq!((undo.changes.len(), undo.bytes), (CHANGES_MAX, CHANGES_MAX));
    }
}

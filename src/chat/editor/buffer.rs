//! The draft and the cursor in it; every change can be taken back.
//!
//! The cursor always stands between two clusters. A change may join what stands on its two sides
//! into one cluster; the cursor then moves behind that.

use std::ops::Range;

use crate::chat::editor::undo::{Change, Kind, Undo};
use crate::text;

#[derive(Debug, Default)]
pub(super) struct Buffer {
    text: String,
    cursor: usize,
    undo: Undo,
}

impl Buffer {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Moves the cursor to a place between clusters.
    pub fn move_to(&mut self, at: usize) {
        if at != self.cursor {
            self.cursor = at;
            self.undo.seal();
        }
    }

    /// Exchanges a range, whose ends are character boundaries; the cursor ends up behind what is
    /// new. Whether anything changed.
    pub fn replace(&mut self, range: Range<usize>, with: &str, kind: Kind) -> bool {
        if range.is_empty() && with.is_empty() {
            return false;
        }
        let change = Change {
            at: range.start,
            removed: self.text[range.clone()].to_owned(),
            inserted: with.to_owned(),
            cursor: self.cursor,
            kind,
        };
        self.text.replace_range(range.clone(), with);
        self.cursor = text::ceil_cluster(&self.text, range.start + with.len());
        self.undo.record(change);
        true
    }

    /// Takes the newest change back; where the text changed from and what change it was, if there
    /// was one.
    pub fn undo(&mut self) -> Option<(usize, Kind)> {
        let change = self.undo.pop()?;
        self.text.replace_range(change.at..change.at + change.inserted.len(), &change.removed);
        self.cursor = change.cursor;
        Some((change.at, change.kind))
    }

    /// Empties it for good: nothing is left to be taken back.
    pub fn clear(&mut self) {
        *self = Buffer::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_stays_between_clusters_when_a_change_joins_them() {
        let mut buffer = Buffer::default();
        buffer.replace(0..0, "ax\u{301}b", Kind::Other);
        buffer.replace(0..0, "\u{301}", Kind::Type);
        assert_eq!(buffer.cursor(), 2);
        // Without the letters between them, the base takes the mark.
        buffer.replace(2..4, "e", Kind::Other);
        assert_eq!((buffer.text(), buffer.cursor()), ("\u{301}e\u{301}b", 5));
        buffer.move_to(2);
        buffer.undo();
        buffer.undo();
        buffer.undo();
        assert_eq!((buffer.text(), buffer.cursor()), ("", 0));
        assert_eq!(buffer.undo(), None);
    }
}

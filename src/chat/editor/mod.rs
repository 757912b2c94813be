//! The editor of the prompt: key presses in, a draft and painted rows out.
//!
//! Pure: it knows no terminal and no clock. The cursor moves by what a reader takes for one
//! character. Large pastes are folded: one sign in the draft, the whole text when it is sent.
//! A key press costs what it changes and what is shown of it, not the size of the draft.
//!
//! Keys that are not the editor's (Enter, Tab, Escape, Ctrl-C and others that send, complete or
//! leave) are given back untouched: [`Editor::press`] says so.

mod action;
mod buffer;
mod chips;
mod history;
mod motion;
mod rows;
mod undo;
mod view;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::ops::Range;

use crate::chat::key::{Key, Press};
use crate::render::style::Style;
use action::Action;
use buffer::Buffer;
use chips::{Chips, clean};
pub use history::History;
use motion::Motion;
use rows::{Draft, Rows};
use undo::Kind;
pub use view::View;

/// More rows than any screen has.
const ROWS_MAX: usize = 10_000;

/// A draft that is being written.
#[derive(Debug, Default)]
pub struct Editor {
    buffer: Buffer,
    chips: Chips,
    history: History,
    /// What was killed last.
    killed: String,
    last: Last,
    rows: RefCell<Rows>,
    /// Where the rows of the last view began.
    top: Cell<usize>,
}

/// What the last key press was, as far as the next one depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Other,
    Kill,
    /// A move by rows that aims at this column.
    Row {
        goal: usize,
    },
    /// A prompt was recalled and nothing was done to it since.
    Recall,
}

impl Editor {
    /// Handles a key; `false` if it is none of the editor's, or leads nowhere at all (Ctrl-D in
    /// an empty draft, Up and Down where there is no row and no prompt).
    pub fn press(&mut self, press: Press) -> bool {
        let Some(action) = Action::of(press) else { return false };
        let is_end_of_input = press.key != Key::Delete && action == Action::Delete(Motion::Right);
        if is_end_of_input && self.is_empty() {
            return false;
        }
        let last = std::mem::take(&mut self.last);
        match action {
            Action::Insert(c) => {
                let mut utf8 = [0; 4];
                self.put(&clean(c.encode_utf8(&mut utf8)), Kind::Type);
            }
            Action::Move(motion) => self.buffer.move_to(self.target(motion)),
            Action::Up => return self.up(last),
            Action::Down => return self.down(last),
            Action::Delete(motion) => {
                self.delete(motion, Kind::Delete);
            }
            Action::Kill(motion) => self.kill(motion, last),
            Action::Yank => {
                let killed = self.killed.clone();
                self.put(&killed, Kind::Other);
            }
            Action::Undo => {
                self.undo();
            }
        }
        true
    }

    /// Puts pasted text at the cursor; a large one is folded.
    pub fn paste(&mut self, text: &str) {
        let shown = self.chips.fold(clean(text)).into_owned();
        self.put(&shown, Kind::Other);
    }

    /// Puts text at the cursor as it is.
    pub fn insert(&mut self, text: &str) {
        self.put(&clean(text), Kind::Other);
    }

    /// The draft, with what was folded in full.
    pub fn text(&self) -> String {
        self.chips.expand(self.buffer.text())
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    /// The draft as [`Editor::text`] says it, which goes into the history; then it is empty and
    /// nothing can be undone.
    pub fn take(&mut self) -> String {
        let text = self.text();
        self.history.push(&text);
        self.killed = self.chips.expand(&self.killed);
        self.chips.clear();
        self.buffer.clear();
        self.rows.get_mut().changed(0);
        self.last = Last::Other;
        text
    }

    /// Makes this text the draft, with the cursor at its end; can be undone. A walk through the
    /// history ends.
    pub fn set(&mut self, text: &str) {
        self.history.rewind();
        self.replace(0..self.buffer.text().len(), &clean(text), Kind::Other);
    }

    /// Takes the last change back, if there is one.
    pub fn undo(&mut self) -> bool {
        self.last = Last::Other;
        let Some((at, kind)) = self.buffer.undo() else { return false };
        self.rows.get_mut().changed(at);
        if kind == Kind::Recall {
            self.history.rewind();
        }
        true
    }

    /// What stands before the cursor, a folded paste as one sign that means nothing outside.
    pub fn before_cursor(&self) -> &str {
        &self.buffer.text()[..self.buffer.cursor()]
    }

    /// Exchanges the last bytes before the cursor, as many as there are if `bytes` are more.
    pub fn replace_before_cursor(&mut self, bytes: usize, with: &str) {
        let end = self.buffer.cursor();
        let mut start = end.saturating_sub(bytes);
        while !self.buffer.text().is_char_boundary(start) {
            start -= 1;
        }
        self.replace(start..end, &clean(with), Kind::Other);
    }

    pub fn history(&mut self) -> &mut History {
        &mut self.history
    }

    /// At most `rows_max` rows (at least one) no wider than `columns`, the cursor's among them.
    /// The painted `prompt` stands before the first row of the draft.
    pub fn view(&self, columns: usize, rows_max: usize, prompt: &str, style: Style) -> View {
        let rows_max = rows_max.clamp(1, ROWS_MAX);
        let canvas = view::Canvas { columns, rows_max, prompt, style };
        let mut top = self.top.get();
        let rows = &mut self.rows.borrow_mut();
        let view = view::view(self.draft(), self.buffer.cursor(), rows, &mut top, &canvas);
        self.top.set(top);
        view
    }

    fn draft(&self) -> Draft<'_> {
        Draft { text: self.buffer.text(), chips: &self.chips }
    }

    fn target(&self, motion: Motion) -> usize {
        motion.target(self.buffer.text(), self.buffer.cursor())
    }

    fn put(&mut self, text: &str, kind: Kind) {
        let at = self.buffer.cursor();
        self.replace(at..at, text, kind);
    }

    /// The only way in which the draft changes, but for undoing.
    fn replace(&mut self, range: Range<usize>, with: &str, kind: Kind) {
        self.last = Last::Other;
        let at = range.start;
        if self.buffer.replace(range, with, kind) {
            self.rows.get_mut().changed(at);
        }
    }

    /// Deletes from the cursor to where a movement leads, and returns that text.
    fn delete(&mut self, motion: Motion, kind: Kind) -> String {
        let (cursor, target) = (self.buffer.cursor(), self.target(motion));
        let range = cursor.min(target)..cursor.max(target);
        let deleted = self.buffer.text()[range.clone()].to_owned();
        self.replace(range, "", kind);
        deleted
    }

    /// Kills in a row are put back as one text.
    fn kill(&mut self, motion: Motion, last: Last) {
        let is_before = self.target(motion) < self.buffer.cursor();
        let deleted = self.delete(motion, Kind::Other);
        if !deleted.is_empty() {
            match (last == Last::Kill, is_before) {
                (true, true) => self.killed.insert_str(0, &deleted),
                (true, false) => self.killed.push_str(&deleted),
                (false, _) => self.killed = deleted,
            }
        }
        self.last = Last::Kill;
    }

    fn up(&mut self, last: Last) -> bool {
        let row = self.cursor_row();
        if last == Last::Recall || row == 0 {
            let earlier = self.history.up(self.buffer.text());
            return self.recall(earlier, last);
        }
        self.move_to_row(row - 1, last)
    }

    fn down(&mut self, last: Last) -> bool {
        let row = self.cursor_row();
        if last != Last::Recall && self.move_to_row(row + 1, last) {
            return true;
        }
        let later = self.history.down(self.buffer.text());
        self.recall(later, last)
    }

    fn recall(&mut self, prompt: Option<String>, last: Last) -> bool {
        let Some(prompt) = prompt else {
            self.last = last;
            return false;
        };
        self.replace(0..self.buffer.text().len(), &prompt, Kind::Recall);
        self.last = Last::Recall;
        true
    }

    fn cursor_row(&self) -> usize {
        self.rows.borrow_mut().row_of(self.draft(), self.buffer.cursor())
    }

    /// Moves to another row, as near to the column where the first of such moves began as it
    /// goes; `false` if there is no such row.
    fn move_to_row(&mut self, row: usize, last: Last) -> bool {
        let (draft, cursor) = (self.draft(), self.buffer.cursor());
        let (at, goal) = {
            let rows = &mut *self.rows.borrow_mut();
            let Some(range) = rows.range(draft, row) else { return false };
            let goal = match last {
                Last::Row { goal } => goal,
                Last::Other | Last::Kill | Last::Recall => {
                    let here = rows.row_of(draft, cursor);
                    let start = rows.range(draft, here).map_or(cursor, |range| range.start);
                    rows.column_of(draft, start, cursor)
                }
            };
            (rows.at_column(draft, range, goal), goal)
        };
        self.buffer.move_to(at);
        self.last = Last::Row { goal };
        true
    }
}

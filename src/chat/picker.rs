//! A list that is filtered by typing: sessions to resume, models, places to go back to.
//!
//! Pure: items in, key presses in, rows out. It holds a key for each item, which is what the
//! caller gets back; what it means is the caller's.

use std::cell::Cell;

use crate::chat::editor::View;
use crate::chat::key::{Key, Mods, Press};
use crate::chat::list::{self, Entry};
use crate::render::style::Style;
use crate::text;

/// Rows that a page has until the first drawing says it.
const PAGE_ROWS_DEFAULT: usize = 10;
const FILTER_BYTES_MAX: usize = 256;

/// One thing to pick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What is given back when it is picked.
    pub key: String,
    pub text: String,
    pub detail: String,
}

/// What a key press led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Picked {
    /// Nothing yet.
    Open,
    /// The item with this key.
    Item(String),
    /// Nothing, for good.
    Closed,
}

#[derive(Debug)]
pub struct Picker {
    title: String,
    items: Vec<Item>,
    /// What the filter is held against, in lower case; one for each item.
    searched: Vec<String>,
    filter: String,
    /// Indices of the items that the filter lets through, in order.
    shown: Vec<usize>,
    /// Index into `shown`; 0 if that is empty.
    chosen: usize,
    page_rows: Cell<usize>,
}

impl Picker {
    /// All items are shown, the first is chosen.
    pub fn new(title: impl Into<String>, items: Vec<Item>) -> Picker {
        let searched = |item: &Item| format!("{} {} {}", item.text, item.detail, item.key);
        Picker {
            title: title.into(),
            searched: items.iter().map(|item| searched(item).to_lowercase()).collect(),
            shown: (0..items.len()).collect(),
            items,
            filter: String::new(),
            chosen: 0,
            page_rows: Cell::new(PAGE_ROWS_DEFAULT),
        }
    }

    /// Chooses the item with this key, if it is shown.
    pub fn choose(&mut self, key: &str) {
        let has_key = |&idx: &usize| self.items[idx].key == key;
        self.chosen = self.shown.iter().position(has_key).unwrap_or(self.chosen);
    }

    /// Keys without a meaning here change nothing.
    pub fn press(&mut self, press: Press) -> Picked {
        let ctrl = press.mods.has(Mods::CTRL);
        let page_rows = self.page_rows.get();
        match press.key {
            Key::Enter => return self.picked(),
            Key::Escape => return Picked::Closed,
            Key::Char('c' | 'd' | 'g') if ctrl => return Picked::Closed,
            Key::Char('p') if ctrl => self.move_by(-1),
            Key::Char('n') if ctrl => self.move_by(1),
            Key::Char('u' | 'w') if ctrl => self.set_filter(String::new()),
            Key::Char('h') if ctrl => self.shorten(),
            Key::Char(c) if !ctrl && !press.mods.has(Mods::ALT) => self.type_char(c),
            Key::Backspace => self.shorten(),
            Key::Up => self.move_by(-1),
            Key::Down => self.move_by(1),
            Key::Tab if press.mods.has(Mods::SHIFT) => self.move_by(-1),
            Key::Tab => self.move_by(1),
            Key::PageUp => self.move_to(self.chosen.saturating_sub(page_rows)),
            Key::PageDown => self.move_to(self.chosen + page_rows),
            Key::Home => self.move_to(0),
            Key::End => self.move_to(usize::MAX),
            Key::Char(_) | Key::Delete | Key::Left | Key::Right | Key::Insert | Key::F(_) => {}
        }
        Picked::Open
    }

    /// Adds the first line of pasted text to the filter.
    pub fn paste(&mut self, text: &str) {
        for c in text.lines().next().unwrap_or_default().chars() {
            self.type_char(c);
        }
    }

    /// The title with the filter, where the cursor is, then the items.
    pub fn view(&self, columns: usize, rows_max: usize, style: Style) -> View {
        let columns = columns.max(1);
        let size = (columns, rows_max.saturating_sub(1));
        let (head, cursor) = self.head(columns, style);
        let mut rows = vec![head];
        if self.shown.is_empty() && 0 < size.1 {
            let why = if self.items.is_empty() { "  nothing to pick" } else { "  no match" };
            rows.push(style.dim(&text::truncate_width(why, columns)));
        }
        let entry = |at: usize| {
            let item = &self.items[self.shown[at]];
            Entry { text: &item.text, detail: &item.detail }
        };
        rows.extend(list::rows(self.shown.len(), self.chosen, entry, size, style));
        self.page_rows.set((rows.len() - 1).saturating_sub(1).max(1));
        View { rows, cursor: (0, cursor) }
    }

    /// The first row, and the column behind the filter. The end of a long filter is shown.
    fn head(&self, columns: usize, style: Style) -> (String, usize) {
        let title = format!("{}: ", text::visible_line(&self.title));
        let title = if text::width(&title) <= columns / 2 { title } else { String::new() };
        let room = columns - text::width(&title) - 1;
        let mut filter = self.filter.as_str();
        while room < text::width(filter) {
            filter = &filter[text::clusters(filter).next().map_or(0, str::len)..];
        }
        let cursor = text::width(&title) + text::width(filter);
        (format!("{}{filter}", style.bold(&title)), cursor)
    }

    fn picked(&self) -> Picked {
        match self.shown.get(self.chosen) {
            Some(&idx) => Picked::Item(self.items[idx].key.clone()),
            None => Picked::Open,
        }
    }

    fn type_char(&mut self, c: char) {
        let shown = text::visible_line(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8();
        if shown && self.filter.len() < FILTER_BYTES_MAX {
            self.set_filter(format!("{}{c}", self.filter));
        }
    }

    fn shorten(&mut self) {
        let last = text::last_cluster(&self.filter).map_or(0, str::len);
        self.set_filter(self.filter[..self.filter.len() - last].to_owned());
    }

    /// Each word of the filter must be found; the item that was chosen stays so if it can.
    fn set_filter(&mut self, filter: String) {
        let chosen = self.shown.get(self.chosen).copied();
        let lower = filter.to_lowercase();
        let words: Vec<_> = lower.split_whitespace().collect();
        let passes = |&idx: &usize| words.iter().all(|word| self.searched[idx].contains(word));
        self.shown = (0..self.items.len()).filter(passes).collect();
        self.chosen = chosen.and_then(|idx| self.shown.binary_search(&idx).ok()).unwrap_or(0);
        self.filter = filter;
    }

    /// Past an end it goes on at the other.
    fn move_by(&mut self, by: isize) {
        let count = self.shown.len().max(1);
        self.chosen = (self.chosen + count).saturating_add_signed(by) % count;
    }

    fn move_to(&mut self, to: usize) {
        self.chosen = to.min(self.shown.len().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker() -> Picker {
        let rows = [
            ("s1", "fix the parser", "2 hours ago"),
            ("s2", "Write Docs", "yesterday"),
            ("s3", "fix 界面 tests", "3 days ago"),
            ("s4", "release", "last week"),
        ];
        let item = |(key, text, detail): (&str, &str, &str)| Item {
            key: key.to_owned(),
            text: text.to_owned(),
            detail: detail.to_owned(),
        };
        Picker::new("Resume", rows.map(item).to_vec())
    }

    fn press(picker: &mut Picker, key: Key, mods: Mods) -> Picked {
        picker.press(Press { key, mods })
    }

    fn type_text(picker: &mut Picker, text: &str) {
        for c in text.chars() {
            assert_eq!(press(picker, Key::Char(c), Mods::NONE), Picked::Open);
        }
    }

    fn picked(picker: &mut Picker) -> String {
        match press(picker, Key::Enter, Mods::NONE) {
            Picked::Item(key) => key,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn typing_filters_by_words_in_any_order_and_case() {
        let table = [
            ("", "s1"),
            ("docs", "s2"),
            ("FIX", "s1"),
            ("tests fix", "s3"),
            ("fix ago 3", "s3"),
            ("界", "s3"),
            ("s4", "s4"),
            ("nothing", "Open"),
        ];
        for (filter, want) in table {
            let mut picker = picker();
            type_text(&mut picker, filter);
            assert_eq!(picked(&mut picker), want, "{filter:?}");
        }
        let mut picker = picker();
        picker.paste("wri\nrest");
        assert_eq!(picked(&mut picker), "s2");
        picker.paste("\x1b\t\u{202e}");
        assert_eq!(picked(&mut picker), "s2");
    }

    #[test]
    fn keys_move_the_choice() {
        let table: &[(&[(Key, Mods)], &str)] = &[
            (&[(Key::Down, Mods::NONE)], "s2"),
            (&[(Key::Up, Mods::NONE)], "s4"),
            (&[(Key::Char('n'), Mods::CTRL), (Key::Tab, Mods::NONE)], "s3"),
            (&[(Key::End, Mods::NONE), (Key::Down, Mods::NONE)], "s1"),
            (&[(Key::End, Mods::NONE), (Key::Tab, Mods::SHIFT)], "s3"),
            (&[(Key::PageDown, Mods::NONE)], "s3"),
            (&[(Key::PageDown, Mods::NONE), (Key::PageDown, Mods::NONE)], "s4"),
            (&[(Key::End, Mods::NONE), (Key::PageUp, Mods::NONE)], "s2"),
            (&[(Key::End, Mods::NONE), (Key::Home, Mods::NONE)], "s1"),
            (&[(Key::Left, Mods::NONE), (Key::Char('x'), Mods::ALT)], "s1"),
        ];
        for (keys, want) in table {
            let mut picker = picker();
            picker.view(40, 4, Style::plain());
            for (key, mods) in *keys {
                press(&mut picker, *key, *mods);
            }
            assert_eq!(picked(&mut picker), *want, "{keys:?}");
        }
    }

    #[test]
    fn the_choice_stays_while_the_filter_lets_it_through() {
        let mut picker = picker();
        type_text(&mut picker, "fi");
        press(&mut picker, Key::Down, Mods::NONE);
        type_text(&mut picker, "x");
        assert_eq!(picked(&mut picker), "s3");
        press(&mut picker, Key::Backspace, Mods::NONE);
        assert_eq!(picked(&mut picker), "s3");
        press(&mut picker, Key::Char('u'), Mods::CTRL);
        assert_eq!(picked(&mut picker), "s3");
        picker.choose("s4");
        assert_eq!(picked(&mut picker), "s4");
        picker.choose("none");
        assert_eq!(picked(&mut picker), "s4");
    }

    #[test]
    fn it_is_left_without_a_choice() {
        for (key, mods) in [(Key::Escape, Mods::NONE), (Key::Char('c'), Mods::CTRL)] {
            assert_eq!(press(&mut picker(), key, mods), Picked::Closed);
        }
    }

    #[test]
    fn it_shows_the_filter_and_what_passes() {
        let mut picker = picker();
        type_text(&mut picker, "fix");
        let view = picker.view(40, 5, Style::plain());
        let want = ["Resume: fix", "> fix the parser  2 hours ago", "  fix 界面 tests  3 days ago"];
        assert_eq!((view.rows, view.cursor), (want.map(str::to_owned).to_vec(), (0, 11)));
        type_text(&mut picker, " zz");
        assert_eq!(picker.view(40, 5, Style::plain()).rows, ["Resume: fix zz", "  no match"]);
        let empty = Picker::new("Resume", Vec::new());
        assert_eq!(empty.view(40, 5, Style::plain()).rows, ["Resume: ", "  nothing to pick"]);
        // The end of a filter that does not fit.
        assert_eq!(picker.view(6, 1, Style::plain()).rows, ["ix zz"]);
        assert_eq!(picker.view(6, 1, Style::plain()).cursor, (0, 5));
        for columns in 0..20 {
            let view = picker.view(columns, 3, Style::coloured());
            let columns = columns.max(1);
            assert!(view.cursor.1 < columns);
            let painted = view.rows.iter().map(|row| crate::render::style::painted_width(row));
            assert!(painted.max() <= Some(columns), "{view:?}");
        }
    }
}

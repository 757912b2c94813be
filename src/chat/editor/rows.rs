//! The draft as rows of the screen: where each begins, and what a cluster looks like in it.
//!
//! Lines are broken after blanks and beside wide characters, words that are longer than a row
//! anywhere between clusters. The last column is kept free for the cursor; only one blank may
//! stand in it. Rows are laid out when they are asked for and remembered until the text before
//! them changes, so that a key press in a large draft costs what is on the screen.

use std::borrow::Cow;
use std::ops::Range;

use crate::chat::editor::chips::Chips;
use crate::text;

/// Columns between two tab stops.
const TAB_COLUMNS: usize = 4;
/// Taken for the width until the first drawing says it.
const COLUMNS_DEFAULT: usize = 80;
/// Signs without width that terminals do not agree on; beside others they are not written.
const UNSEEN: [char; 4] = ['\u{ad}', '\u{200b}', '\u{2060}', '\u{feff}'];

/// What is laid out.
#[derive(Clone, Copy)]
pub(super) struct Draft<'a> {
    pub text: &'a str,
    pub chips: &'a Chips,
}

#[derive(Debug)]
pub(super) struct Rows {
    /// At least 1.
    columns: usize,
    /// Where the rows known so far begin; the first is 0.
    starts: Vec<usize>,
    /// `starts` are all there are.
    is_whole: bool,
}

/// A cluster on the screen.
pub(super) struct Cell<'a> {
    pub text: Cow<'a, str>,
    pub columns: usize,
    /// It shows something else than itself: a folded paste, a control character.
    pub is_stand_in: bool,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows { columns: COLUMNS_DEFAULT, starts: vec![0], is_whole: false }
    }
}

impl Rows {
    pub fn set_columns(&mut self, columns: usize) {
        let columns = columns.max(1);
        if columns != self.columns {
            *self = Rows { columns, ..Rows::default() };
        }
    }

    /// The columns that text may take in a row.
    pub fn text_columns(&self) -> usize {
        (self.columns - 1).max(1)
    }

    /// The text is another one from `at` on.
    pub fn changed(&mut self, at: usize) {
        // Where a row begins hangs on its own text and that of the row before.
        let known = self.starts.partition_point(|start| *start <= at).saturating_sub(2);
        self.starts.truncate(known.max(1));
        self.is_whole = false;
    }

    /// The row (from 0) that shows what stands at `at`.
    pub fn row_of(&mut self, draft: Draft<'_>, at: usize) -> usize {
        while !self.is_whole && self.last_start() <= at {
            self.lay_out_next(draft);
        }
        self.starts.partition_point(|start| *start <= at) - 1
    }

    /// The text of a row with its line end; `None` behind the last.
    pub fn range(&mut self, draft: Draft<'_>, row: usize) -> Option<Range<usize>> {
        while !self.is_whole && self.starts.len() <= row + 1 {
            self.lay_out_next(draft);
        }
        let start = *self.starts.get(row)?;
        Some(start..self.starts.get(row + 1).copied().unwrap_or(draft.text.len()))
    }

    /// The column in which `at` stands within its row, which starts at `start`.
    pub fn column_of(&self, draft: Draft<'_>, start: usize, at: usize) -> usize {
        let mut column = 0;
        for cluster in text::clusters(&draft.text[start..at]) {
            column += self.columns_of(draft, cluster, column);
        }
        column.min(self.columns - 1)
    }

    /// The place within a row that stands nearest before a column, or in it.
    pub fn at_column(&self, draft: Draft<'_>, row: Range<usize>, goal: usize) -> usize {
        let is_last = row.end == draft.text.len();
        let mut at = row.start;
        let mut column = 0;
        for cluster in text::clusters(&draft.text[row.clone()]) {
            column += self.columns_of(draft, cluster, column);
            // The place behind a broken row's last cluster is shown in the next row.
            let is_over = !is_last && at + cluster.len() == row.end;
            if goal < column || is_over || cluster == "\n" {
                break;
            }
            at += cluster.len();
        }
        at
    }

    /// As [`cell`] says, quickly for what most text is made of.
    fn columns_of(&self, draft: Draft<'_>, cluster: &str, column: usize) -> usize {
        match cluster.as_bytes() {
            [b' '..=b'~'] => 1,
            _ => cell(cluster, column, self.text_columns(), draft.chips).columns,
        }
    }

    fn last_start(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    fn lay_out_next(&mut self, draft: Draft<'_>) {
        match self.next_start(draft, self.last_start()) {
            Some(start) => self.starts.push(start),
            None => self.is_whole = true,
        }
    }

    /// Where the row behind the one that begins at `start` begins.
    fn next_start(&self, draft: Draft<'_>, start: usize) -> Option<usize> {
        let columns_max = self.text_columns();
        let (mut at, mut column) = (start, 0);
        // The last place where the row may end, and whether the cluster before is such a place.
        let mut split = start;
        let mut splits_behind = false;
        for cluster in text::clusters(&draft.text[start..]) {
            if cluster == "\n" {
                return Some(at + 1);
            }
            let is_blank = matches!(cluster, " " | "\t");
            let columns = self.columns_of(draft, cluster, column);
            let is_wide = !is_blank && 2 <= columns;
            if splits_behind || is_wide {
                split = at;
            }
            let hangs = cluster == " " && column == columns_max && columns_max < self.columns;
            if columns_max < column + columns && !hangs {
                return Some(if is_blank || split == start { at } else { split });
            }
            splits_behind = is_blank || is_wide;
            column += columns;
            at += cluster.len();
        }
        None
    }
}

/// How a cluster is shown in a column: tabs as blanks, folded pastes as their labels, marks that
/// have nothing to stand on by their codes. Takes no more than `columns_max`, and at least one column unless
/// it is a line end.
pub(super) fn cell<'a>(
    cluster: &'a str,
    column: usize,
    columns_max: usize,
    chips: &'a Chips,
) -> Cell<'a> {
    let mut chars = cluster.chars();
    let Some(first) = chars.next() else { return plain(cluster, 0) };
    match first {
        '\n' => return plain("", 0),
        '\t' => {
            let stop = TAB_COLUMNS - column % TAB_COLUMNS;
            let room = columns_max.saturating_sub(column);
            let columns = stop.min(if room == 0 { columns_max } else { room });
            return plain(&"    "[..columns], columns);
        }
        ' '..='~' if cluster.len() == 1 => return plain(cluster, 1),
        _ => {}
    }
    let (text, is_stand_in) = match chips.label(first) {
        Some(label) => {
            (Cow::Owned(format!("{label}{}", seen(&text::visible(chars.as_str())))), true)
        }
        None if is_mark(first) => (Cow::Owned(cluster.escape_unicode().to_string()), true),
        None => {
            let shown = text::visible(cluster);
            let is_changed = matches!(shown, Cow::Owned(_));
            let shown = if chars.as_str().is_empty() { shown } else { Cow::Owned(seen(&shown)) };
            (shown, is_changed)
        }
    };
    let text = match text {
        Cow::Borrowed(text) => text::truncate_width(text, columns_max),
        Cow::Owned(text) => Cow::Owned(text::truncate_width(&text, columns_max).into_owned()),
    };
    Cell { columns: text::width(&text), text, is_stand_in }
}

fn plain(text: &str, columns: usize) -> Cell<'_> {
    Cell { text: Cow::Borrowed(text), columns, is_stand_in: false }
}

/// Whether a cluster that starts with this would join with the blank before it.
fn is_mark(first: char) -> bool {
    let mut utf8 = [b' '; 5];
    let length = first.encode_utf8(&mut utf8[1..]).len();
    std::str::from_utf8(&utf8[..=length]).is_ok_and(|pair| text::clusters(pair).count() == 1)
}

/// Without what is not seen, and without a joiner that would take in the next cluster.
fn seen(text: &str) -> String {
    let mut text = text.replace(UNSEEN, "");
    text.truncate(text.trim_end_matches('\u{200d}').len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str, columns: usize) -> Vec<String> {
        let chips = Chips::default();
        let draft = Draft { text, chips: &chips };
        let mut rows = Rows::default();
        rows.set_columns(columns);
        let ranges = (0..).map_while(|row| rows.range(draft, row));
        ranges.map(|range| text[range].to_owned()).collect()
    }

    #[test]
    fn lines_are_broken_where_a_reader_would_break_them() {
        let table: &[(&str, usize, &[&str])] = &[
            ("", 10, &[""]),
            ("a\nb\n", 10, &["a\n", "b\n", ""]),
            ("hello world", 12, &["hello world"]),
            ("hello world", 11, &["hello ", "world"]),
            ("hello world", 6, &["hello ", "world"]),
            ("hello  world", 6, &["hello ", " ", "world"]),
            ("one two three", 9, &["one two ", "three"]),
            ("abcdefgh", 5, &["abcd", "efgh"]),
            ("a bcdefgh", 5, &["a ", "bcde", "fgh"]),
            ("界面界面", 6, &["界面", "界面"]),
            ("a b界面界", 7, &["a b界", "面界"]),
            ("\tx", 10, &["\tx"]),
            ("abc\t\tx", 6, &["abc\t\t", "x"]),
            ("e\u{301}e\u{301}e\u{301}", 3, &["e\u{301}e\u{301}", "e\u{301}"]),
            ("界", 1, &["界"]),
            ("ab", 1, &["a", "b"]),
            ("a b", 1, &["a", " ", "b"]),
            ("a b", 2, &["a ", "b"]),
        ];
        for (text, columns, want) in table {
            assert_eq!(layout(text, *columns), *want, "{text:?} in {columns}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_shown_by_its_code() {
        let mut chips = Chips::default();
        let sign = chips.fold("x\n".repeat(12).into()).into_owned();
        let table = [
            ("a", 0, "a"),
            ("界", 0, "界"),
            ("\t", 0, "    "),
            ("\t", 3, " "),
            ("\t", 8, "  "),
            ("\x1b", 0, "^["),
            ("\u{85}", 0, "\\u{85}"),
            ("\u{301}", 0, "\\u{301}"),
            ("\u{200b}", 0, "\\u{200b}"),
            ("\u{ad}", 0, "\\u{ad}"),
            ("a\u{ad}", 0, "a"),
            ("👩\u{200d}\u{200b}", 0, "👩"),
            ("\u{93f}", 0, "\\u{93f}"),
            ("a\u{200b}", 0, "a"),
            ("a\u{202e}", 0, "a\\u{202e}"),
            ("❤\u{fe0f}", 0, "❤\u{fe0f}"),
            (&sign, 0, "[pasted 1…"),
            (&format!("{sign}\u{301}"), 0, "[pasted 1…"),
        ];
        for (cluster, column, want) in table {
            let cell = cell(cluster, column, 10, &chips);
            assert_eq!(cell.text, want, "{cluster:?}");
            assert_eq!(cell.columns, text::width(want), "{cluster:?}");
        }
        assert_eq!(cell("界", 0, 1, &chips).text, "…");
    }

    #[test]
    fn a_column_is_found_again_in_other_rows() {
        let chips = Chips::default();
        let text = "abcd\n界界x\n\n\tz";
        let draft = Draft { text, chips: &chips };
        let mut rows = Rows::default();
        let mut at = |row, goal| {
            let range = rows.range(draft, row).unwrap();
            rows.at_column(draft, range, goal)
        };
        assert_eq!([at(0, 0), at(0, 3), at(0, 4), at(0, 9)], [0, 3, 4, 4]);
        assert_eq!([at(1, 1), at(1, 2), at(1, 3), at(1, 9)], [5, 8, 8, 12]);
        assert_eq!([at(2, 0), at(2, 5)], [13, 13]);
        assert_eq!([at(3, 3), at(3, 4), at(3, 5)], [14, 15, 16]);
    }

    /// Work is counted by how many rows are known, which nothing but layout adds to.
    #[test]
    fn a_change_costs_the_rows_that_are_asked_for() {
        let chips = Chips::default();
        let mut text = "word ".repeat(200_000);
        let mut rows = Rows::default();
        let end = rows.row_of(Draft { text: &text, chips: &chips }, text.len());
        assert_eq!(end + 1, rows.starts.len());
        let at = 5 * 100_000;
        text.insert(at, 'x');
        rows.changed(at);
        let known = rows.starts.len();
        assert!(end / 2 - 3 <= known && known <= end / 2 + 3, "{known} of {end}");
        rows.row_of(Draft { text: &text, chips: &chips }, at + 1);
        assert!(rows.starts.len() <= known + 4);
    }
}

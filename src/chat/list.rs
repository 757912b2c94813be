//! A list to choose from, as rows: one entry each, the chosen one marked, the others around it.

use crate::render::style::{Attrs, Style};
use crate::text;

/// What stands before an entry: the chosen one is also told apart without colours.
const CHOSEN: &str = "> ";
const OTHER: &str = "  ";
/// Columns between the texts and their details.
const GAP_COLUMNS: usize = 2;
/// Columns in which a detail says anything.
const DETAIL_COLUMNS_MIN: usize = 8;

/// One entry: what it is, and more about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    pub text: &'a str,
    pub detail: &'a str,
}

/// At most `rows_max` painted rows of `count` entries, the chosen one among them. `entry` is asked
/// for what is shown alone. Where not all fit, the last row says where the list stands.
pub fn rows<'a>(
    count: usize,
    chosen: usize,
    entry: impl Fn(usize) -> Entry<'a>,
    (columns, rows_max): (usize, usize),
    style: Style,
) -> Vec<String> {
    let is_cut = rows_max < count;
    let shown = if is_cut && 2 < rows_max { rows_max - 1 } else { rows_max.min(count) };
    // The chosen one in the middle, as far as both ends allow it.
    let first = chosen.saturating_sub(shown / 2).min(count - shown);
    let entries: Vec<_> = (first..first + shown).map(entry).collect();
    let widest = entries.iter().map(|entry| text::width(&text::visible_line(entry.text))).max();
    let text_columns = widest.unwrap_or(0).min(columns.saturating_sub(OTHER.len()));
    let paint = |(idx, entry)| row(entry, first + idx == chosen, (text_columns, columns), style);
    let mut rows: Vec<_> = entries.into_iter().enumerate().map(paint).collect();
    if shown < rows_max && is_cut {
        let place = format!("{OTHER}{} of {count}", chosen + 1);
        rows.push(style.dim(&text::truncate_width(&place, columns)));
    }
    rows
}

fn row(
    entry: Entry<'_>,
    is_chosen: bool,
    (text_columns, columns): (usize, usize),
    style: Style,
) -> String {
    let mark = if is_chosen { CHOSEN } else { OTHER };
    let shown = text::visible_line(entry.text);
    let shown = text::truncate_width(&shown, columns.saturating_sub(mark.len()));
    let attrs = if is_chosen { Attrs::BOLD } else { Attrs::NONE };
    let mut row = style.paint(attrs, &text::truncate_width(&format!("{mark}{shown}"), columns));

    let detail_at = mark.len() + text_columns.max(text::width(&shown)) + GAP_COLUMNS;
    let room = columns.saturating_sub(detail_at);
    if !entry.detail.is_empty() && DETAIL_COLUMNS_MIN <= room {
        let blanks = detail_at - mark.len() - text::width(&shown);
        row.extend(std::iter::repeat_n(' ', blanks));
        row.push_str(&style.dim(&text::truncate_width(&text::visible_line(entry.detail), room)));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::style::painted_width;

    const ENTRIES: [(&str, &str); 5] = [
        ("one", "the first"),
        ("second", "the 界面"),
        ("\x1b[31mthree", ""),
        ("four", "a\nb"),
        ("five", "last"),
    ];

    fn entry(idx: usize) -> Entry<'static> {
        Entry { text: ENTRIES[idx].0, detail: ENTRIES[idx].1 }
    }

    #[track_caller]
    fn check(count: usize, chosen: usize, size: (usize, usize), want: &[&str]) {
        assert_eq!(rows(count, chosen, entry, size, Style::plain()), want);
    }

    #[test]
    fn entries_stand_in_columns_around_the_chosen_one() {
        check(0, 0, (20, 4), &[]);
        check(1, 0, (20, 4), &["> one  the first"]);
        check(
            5,
            1,
            (24, 5),
            &[
                "  one          the first",
                "> second       the 界面",
                "  ^[[31mthree",
                "  four         a\\nb",
                "  five         last",
            ],
        );
        check(5, 0, (40, 3), &["> one     the first", "  second  the 界面", "  1 of 5"]);
        check(5, 4, (40, 3), &["  four  a\\nb", "> five  last", "  5 of 5"]);
        check(5, 3, (40, 2), &["  ^[[31mthree", "> four         a\\nb"]);
        check(5, 3, (40, 1), &["> four  a\\nb"]);
        check(5, 3, (40, 0), &[]);
        // Too narrow for details, then for the texts.
        check(2, 1, (14, 3), &["  one", "> second"]);
        check(2, 1, (6, 3), &["  one", "> sec…"]);
        check(2, 1, (1, 3), &["…", "…"]);
    }

    #[test]
    fn paint_marks_and_never_widens() {
        let painted = rows(2, 0, entry, (40, 9), Style::coloured());
        assert_eq!(painted[0], "\x1b[1m> one\x1b[0m     \x1b[2mthe first\x1b[0m");
        for columns in 0..40 {
            for rows_max in 0..7 {
                for chosen in 0..5 {
                    let rows = rows(5, chosen, entry, (columns, rows_max), Style::coloured());
                    assert!(rows.len() <= rows_max);
                    assert!(rows.iter().all(|row| painted_width(row) <= columns), "{rows:?}");
                    let marked = rows.iter().filter(|row| row.contains("> ")).count();
                    assert!(columns < 3 || rows_max == 0 || marked == 1, "{rows:?}");
                }
            }
        }
    }
}

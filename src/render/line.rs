//! Single lines of somebody else's text: made harmless, laid out, cut or wrapped.

use super::style::painted_width;
use crate::text;

/// Columns between two tab stops.
const TAB_COLUMNS: usize = 4;

/// A line no wider than `columns`, with blanks for tabs and nothing that acts on a terminal; a
/// cut is marked.
pub fn fit(line: &str, columns: usize) -> String {
    let shown = expand_tabs(&text::visible(line));
    text::truncate_width(&shown, columns).into_owned()
}

/// Every line of `text` in rows no wider than `columns`, broken at blanks and beside wide
/// characters where there are any; indents stay. Nothing in them acts on a terminal.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        wrap_line(&expand_tabs(&text::visible(line)), columns, &mut rows);
    }
    rows
}

fn wrap_line(line: &str, columns: usize, rows: &mut Vec<String>) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let (mut start, mut at, mut width) = (0, 0, 0);
    // Where the row may end, and the columns up to there.
    let mut last_break = None;
    for cluster in text::clusters(line) {
        let columns_of = text::cluster_width(cluster);
        if columns_of == 2 && start < at && indent < at {
            last_break = Some((at, width));
        }
        if columns < width + columns_of && start < at && cluster != " " {
            let (end, before) = last_break.take().unwrap_or((at, width));
            rows.push(line[start..end].trim_end_matches(' ').to_owned());
            (start, width) = (end, width - before);
        }
        at += cluster.len();
        width += columns_of;
        if (cluster == " " || columns_of == 2) && indent < at {
            last_break = Some((at, width));
        }
    }
    rows.push(line[start..].trim_end_matches(' ').to_owned());
}

/// A painted line in rows no wider than `columns`, as a terminal wraps it; each row turns its
/// paint off. A character that fits nowhere becomes `…`.
pub fn fold(painted: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    if painted_width(painted) <= columns {
        return vec![painted.to_owned()];
    }
    let mut rows = Vec::new();
    let (mut row, mut width) = (String::new(), 0);
    // The paint that the text has, and whether the row has it on.
    let (mut paint, mut is_on) = (String::new(), false);
    let mut parts = painted.split("\x1b[");
    let first = parts.next().map(|text| (None, text));
    for (codes, text) in first.into_iter().chain(parts.map(split_codes)) {
        match codes {
            None => {}
            Some("0") => {
                end_paint(&mut row, &mut is_on);
                paint.clear();
            }
            Some(codes) => {
                end_paint(&mut row, &mut is_on);
                paint.push_str(&format!("\x1b[{codes}m"));
            }
        }
        for cluster in text::clusters(text) {
            let cluster = if columns < text::cluster_width(cluster) { "…" } else { cluster };
            let more = text::cluster_width(cluster);
            if columns < width + more {
                end_paint(&mut row, &mut is_on);
                rows.push(std::mem::take(&mut row));
                width = 0;
            }
            if !is_on && !paint.is_empty() {
                row.push_str(&paint);
                is_on = true;
            }
            row.push_str(cluster);
            width += more;
        }
    }
    end_paint(&mut row, &mut is_on);
    rows.push(row);
    rows
}

fn split_codes(part: &str) -> (Option<&str>, &str) {
    part.split_once('m').map_or((None, part), |(codes, text)| (Some(codes), text))
}

fn end_paint(row: &mut String, is_on: &mut bool) {
    if std::mem::take(is_on) {
        row.push_str("\x1b[0m");
    }
}

/// Blanks for tabs, up to the next stop; the text may be painted.
pub fn expand_tabs(text: &str) -> String {
    let mut parts = text.split('\t');
    let mut out = parts.next().unwrap_or_default().to_owned();
    let mut columns = painted_width(&out);
    for part in parts {
        let blanks = TAB_COLUMNS - columns % TAB_COLUMNS;
        out.extend(std::iter::repeat_n(' ', blanks));
        out.push_str(part);
        columns += blanks + painted_width(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_and_cannot_act() {
        let table = [
            ("plain", 80, "plain"),
            ("a\tbc\td", 80, "a   bc  d"),
            ("界\tx", 80, "界  x"),
            ("\x1b[31mred\r", 80, "^[[31mred^M"),
            ("a\tbcdef", 6, "a   b…"),
            ("界界", 3, "界…"),
            ("abc", 0, ""),
        ];
        for (line, columns, want) in table {
            assert_eq!(fit(line, columns), want, "{line:?}");
        }
    }

    #[test]
    fn words_wrap_and_indents_stay() {
        let table: [(&str, usize, &[&str]); 10] = [
            ("          x", 4, &["", "x"]),
            ("", 10, &[""]),
            ("one two three", 20, &["one two three"]),
            ("one two three", 8, &["one two", "three"]),
            ("one two three", 7, &["one two", "three"]),
            ("    fn main() {\r\n}", 10, &["    fn", "main() {", "}"]),
            ("abcdefghij", 4, &["abcd", "efgh", "ij"]),
            ("ab 界面界面", 7, &["ab 界面", "界面"]),
            ("界a", 1, &["界", "a"]),
            ("a\tb\x1b[2J", 20, &["a   b^[[2J"]),
        ];
        for (text, columns, want) in table {
            assert_eq!(wrap(text, columns), want, "{text:?} in {columns}");
        }
    }

    #[test]
    fn folded_rows_carry_their_paint() {
        let line = "a\x1b[1;31mbcd\x1b[0mef\x1b[2m\x1b[1m界x\x1b[0m";
        let want = [
            "a\x1b[1;31mb\x1b[0m",
            "\x1b[1;31mcd\x1b[0m",
            "ef",
            "\x1b[2m\x1b[1m界\x1b[0m",
            "\x1b[2m\x1b[1mx\x1b[0m",
        ];
        assert_eq!(fold(line, 2), want);
        assert_eq!(fold("界a", 1), ["…", "a"]);
        assert_eq!(fold("界", 0), ["…"]);
        assert_eq!(fold("plain", 5), ["plain"]);
    }
}

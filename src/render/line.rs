//! Single lines of somebody else's text: made harmless, laid out, cut.

use crate::text;

/// Columns between two tab stops.
const TAB_COLUMNS: usize = 4;

/// A line no wider than `columns`, with blanks for tabs and nothing that acts on a terminal; a
/// cut is marked.
pub fn fit(line: &str, columns: usize) -> String {
    let shown = expand_tabs(&text::visible(line));
    text::truncate_width(&shown, columns).into_owned()
}

fn expand_tabs(text: &str) -> String {
    let mut parts = text.split('\t');
    let mut out = parts.next().unwrap_or_default().to_owned();
    let mut columns = text::width(&out);
    for part in parts {
        let blanks = TAB_COLUMNS - columns % TAB_COLUMNS;
        out.extend(std::iter::repeat_n(' ', blanks));
        out.push_str(part);
        columns += blanks + text::width(part);
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
}

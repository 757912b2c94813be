//! A painted line taken apart into what a terminal keeps of it.

use std::rc::Rc;

use crate::text;

/// One character as a reader takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell<'a> {
    pub text: &'a str,
    pub columns: usize,
    /// The sequences that turn its paint on; empty for none.
    pub paint: Rc<str>,
}

#[derive(Debug)]
pub struct Line<'a> {
    pub cells: Vec<Cell<'a>>,
    pub columns: usize,
    /// Terminals disagree about its width: some count the characters of an emoji one by one.
    pub is_disputed: bool,
}

impl<'a> Line<'a> {
    /// Control characters other than those of paint are left out, and so are blanks at the end: when
    /// a terminal wraps its rows again, some count them and some do not.
    pub fn parse(painted: &'a str) -> Line<'a> {
        let mut line = Line { cells: Vec::new(), columns: 0, is_disputed: false };
        let mut parts = painted.split("\x1b[");
        let mut paint: Rc<str> = Rc::from("");
        line.push(parts.next().unwrap_or_default(), &paint);
        for part in parts {
            let Some((codes, text)) = part.split_once('m') else { continue };
            paint = match codes {
                "" | "0" => Rc::from(""),
                codes => Rc::from(format!("{paint}\x1b[{codes}m")),
            };
            line.push(text, &paint);
        }
        let is_blank = |cell: &Cell<'_>| cell.text == " " && cell.paint.is_empty();
        while line.cells.pop_if(|cell| is_blank(cell)).is_some() {
            line.columns -= 1;
        }
        line
    }

    fn push(&mut self, text: &'a str, paint: &Rc<str>) {
        for text in text::clusters(text) {
            if text.starts_with(char::is_control) {
                continue;
            }
            let columns = text::cluster_width(text);
            self.columns += columns;
            self.is_disputed |= columns != width_by_characters(text);
            self.cells.push(Cell { text, columns, paint: Rc::clone(paint) });
        }
    }

    /// How many cells at the start are the same in both lines, and their columns.
    pub fn common_start(&self, other: &Line<'_>) -> (usize, usize) {
        let same = self.cells.iter().zip(&other.cells).take_while(|(a, b)| a == b);
        same.fold((0, 0), |(cells, columns), (cell, _)| (cells + 1, columns + cell.columns))
    }

    /// How many cells at the end are the same in both lines.
    pub fn common_end(&self, other: &Line<'_>) -> usize {
        let pairs = self.cells.iter().rev().zip(other.cells.iter().rev());
        pairs.take_while(|(a, b)| a == b).count()
    }

    /// The rows below its first that it goes on to in a terminal of `columns`, up to the cell that
    /// begins behind `offset` columns of it: how far down a cursor that was there is now.
    pub fn rows_down_to(&self, offset: usize, columns: usize) -> usize {
        let (mut rows, mut column, mut passed) = (0, 0, 0);
        for cell in &self.cells {
            if columns < column + cell.columns {
                rows += 1;
                column = 0;
            }
            if offset <= passed {
                return rows;
            }
            column += cell.columns;
            passed += cell.columns;
        }
        // Behind the last column a cursor waits in the row, and blanks may not count.
        rows
    }

    /// The rows that it takes in a terminal of `columns`.
    pub fn rows(&self, columns: usize) -> usize {
        1 + self.rows_down_to(self.columns, columns)
    }
}

fn width_by_characters(cluster: &str) -> usize {
    let mut bytes = [0; 4];
    cluster.chars().map(|c| text::cluster_width(c.encode_utf8(&mut bytes))).sum()
}

/// Cells as a terminal gets them; no paint is left on behind them.
pub fn write_cells(out: &mut Vec<u8>, cells: &[Cell<'_>]) {
    let mut paint = "";
    for cell in cells {
        if paint != &*cell.paint {
            if !paint.is_empty() {
                out.extend_from_slice(b"\x1b[m");
            }
            out.extend_from_slice(cell.paint.as_bytes());
            paint = &cell.paint;
        }
        out.extend_from_slice(cell.text.as_bytes());
    }
    if !paint.is_empty() {
        out.extend_from_slice(b"\x1b[m");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_as_it_was_painted() {
        let table = [
            ("", "", 0),
            ("plain", "plain", 5),
            ("a\x1b[31mb\x1b[0mc", "a\x1b[31mb\x1b[mc", 3),
            ("\x1b[2m\x1b[1ma \x1b[0m\x1b[2mb\x1b[0m", "\x1b[2m\x1b[1ma \x1b[m\x1b[2mb\x1b[m", 3),
            ("\x1b[1ma\x1b[0m\x1b[1mb\x1b[0m", "\x1b[1mab\x1b[m", 2),
            ("\x1b[1mopen", "\x1b[1mopen\x1b[m", 4),
            ("  界e\u{301}  ", "  界e\u{301}", 5),
            ("a \x1b[1m \x1b[0m \x1b[1m\x1b[0m", "a \x1b[1m \x1b[m", 3),
            ("a\n\r\t\u{7}\u{9b}b\x1b", "ab", 2),
            ("a\x1b[", "a", 1),
        ];
        for (painted, want, columns) in table {
            let line = Line::parse(painted);
            let mut out = Vec::new();
            write_cells(&mut out, &line.cells);
            assert_eq!((&*String::from_utf8_lossy(&out), line.columns), (want, columns));
        }
    }

    #[test]
    fn terminals_disagree_about_joined_characters_alone() {
        for agreed in ["", "plain", "界面", "e\u{301}", "🦀", "🇩🇪", "ก\u{e33}", "각"] {
            assert!(!Line::parse(agreed).is_disputed, "{agreed}");
        }
        for disputed in ["❤\u{fe0f}", "👩\u{200d}💻", "👍🏽", "x\x1b[1m1\u{fe0f}\u{20e3}\x1b[0m"]
        {
            assert!(Line::parse(disputed).is_disputed, "{disputed}");
        }
    }

    #[test]
    fn a_line_that_a_terminal_wraps_again_takes_these_rows() {
        let table = [
            ("", 1, 1),
            ("abcd", 4, 1),
            ("abcde", 4, 2),
            ("abcdefgh", 4, 2),
            ("界界界", 3, 3),
            ("a界界", 4, 2),
            ("a界b", 4, 1),
        ];
        for (text, columns, rows) in table {
            assert_eq!(Line::parse(text).rows(columns), rows, "{text} in {columns}");
        }
        let line = Line::parse("ab界cdefg");
        let down = |offset| line.rows_down_to(offset, 3);
        assert_eq!([0, 1, 2, 4, 5, 6, 8, 9, 30].map(down), [0, 0, 1, 1, 2, 2, 3, 3, 3]);
    }
}

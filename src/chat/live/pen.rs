//! Writes into the rows of the live region, and knows where the cursor is.
//!
//! Rows are counted from the region's first one. Where that stands on the screen is not known, so
//! that every move is relative: up and down within rows that exist, and `\n` for a row that does
//! not exist yet, which goes down or scrolls, as the terminal finds right.

use super::line::{Cell, Line, write_cells};

#[derive(Debug)]
pub struct Pen {
    out: Vec<u8>,
    columns: usize,
    row: usize,
    /// `None` behind the last column: a terminal waits there with its move to the next row, and
    /// only moves to a stated column mean the same everywhere.
    column: Option<usize>,
    /// How many rows there are; one at least.
    rows: usize,
    /// Whether rows were added, so that what stands where on the screen may be another.
    has_grown: bool,
    rows_written: usize,
}

impl Pen {
    pub fn new(columns: usize, rows: usize, (row, column): (usize, usize)) -> Pen {
        let column = Some(column);
        Pen { out: Vec::new(), columns, row, column, rows, has_grown: false, rows_written: 0 }
    }

    pub fn has_grown(&self) -> bool {
        self.has_grown
    }

    pub fn rows_written(&self) -> usize {
        self.rows_written
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Goes there; rows up to it are made where they are missing.
    pub fn move_to(&mut self, row: usize, column: usize) {
        if self.rows <= row {
            let last = self.rows - 1;
            if self.row < last {
                self.out.extend_from_slice(csi(last - self.row, 'B').as_bytes());
            }
            for _ in last..row {
                self.out.extend_from_slice(b"\r\n");
            }
            (self.row, self.column, self.rows, self.has_grown) = (row, Some(0), row + 1, true);
        }
        self.travel_to(row, column);
    }

    fn travel_to(&mut self, row: usize, column: usize) {
        self.out.extend_from_slice(self.way_to(row, column).as_bytes());
        (self.row, self.column) = (row, Some(column));
    }

    /// The shortest sequences that lead to a row that exists.
    pub fn way_to(&self, row: usize, column: usize) -> String {
        let mut way = match row.cmp(&self.row) {
            std::cmp::Ordering::Less => csi(self.row - row, 'A'),
            std::cmp::Ordering::Equal => String::new(),
            std::cmp::Ordering::Greater => csi(row - self.row, 'B'),
        };
        match self.column {
            Some(at) if at == column => {}
            _ if column == 0 => way.push('\r'),
            Some(at) if at < column && column - at < 10 => way.push_str(&csi(column - at, 'C')),
            Some(at) if column < at && at - column < 4 => {
                way.extend(std::iter::repeat_n('\x08', at - column));
            }
            _ => way.push_str(&csi(column + 1, 'G')),
        }
        way
    }

    /// Makes a row show `new` where it shows `old`.
    pub fn rewrite(&mut self, row: usize, old: &Line<'_>, new: &Line<'_>) {
        if old.is_disputed || new.is_disputed {
            self.move_to(row, 0);
            self.out.extend_from_slice(b"\x1b[K");
            return self.write_clipped(new);
        }
        let (start, column) = old.common_start(new);
        if start == old.cells.len() && start == new.cells.len() {
            return;
        }
        let same_end = match old.columns == new.columns {
            true => old.common_end(new).min(new.cells.len().min(old.cells.len()) - start),
            false => 0,
        };
        self.move_to(row, column);
        self.write(&new.cells[start..new.cells.len() - same_end]);
        if new.columns < old.columns {
            self.out.extend_from_slice(b"\x1b[K");
        }
    }

    fn write(&mut self, cells: &[Cell<'_>]) {
        write_cells(&mut self.out, cells);
        let written: usize = cells.iter().map(|cell| cell.columns).sum();
        let column = self.column.map(|column| column + written);
        self.column = column.filter(|&column| column < self.columns);
        self.rows_written += 1;
    }

    /// A row that may be too wide for this terminal: its end is lost rather than wrapped.
    fn write_clipped(&mut self, line: &Line<'_>) {
        if !line.is_disputed {
            return self.write(&line.cells);
        }
        self.out.extend_from_slice(b"\x1b[?7l");
        self.write(&line.cells);
        self.out.extend_from_slice(b"\x1b[?7h");
        self.column = None;
    }

    /// Writes a line into the blank row that the cursor is in and, where it is too wide, into those
    /// below, which must be blank, too; all of them count as one.
    pub fn write_wrapped(&mut self, line: &Line<'_>) {
        self.write(&line.cells);
        self.column = None;
    }

    /// Blanks a row and all below it, which then do not exist.
    pub fn erase_from(&mut self, row: usize) {
        self.move_to(row, 0);
        self.out.extend_from_slice(b"\x1b[J");
        self.rows = row + 1;
    }

    /// Makes room for `count` blank rows at `row`, a row that exists; the last rows of all move
    /// down.
    pub fn insert_rows(&mut self, row: usize, count: usize) {
        self.move_to(self.rows - 1 + count, 0);
        self.move_to(row, 0);
        self.out.extend_from_slice(csi(count, 'L').as_bytes());
    }

    /// Takes rows out; those below move up.
    pub fn delete_rows(&mut self, row: usize, count: usize) {
        self.move_to(row, 0);
        self.out.extend_from_slice(csi(count, 'M').as_bytes());
        self.rows = (self.rows - count).max(1);
    }
}

/// A control sequence with a count.
pub fn csi(count: usize, last: char) -> String {
    match count {
        1 => format!("\x1b[{last}"),
        _ => format!("\x1b[{count}{last}"),
    }
}

//! Tables, fitted to the width: cells wrap, and where even that is too narrow each row becomes
//! a list of its fields.
//!
//! A table is written when it ends, for its widths depend on all rows. One that is very long is
//! laid out by its first rows; the others are written as they come.

use super::inline::Inline;
use super::wrap::Wrap;
use crate::render::style::{Attrs, Style, painted_width};

/// Rows and bytes that are waited for.
const ROWS_MAX: usize = 200;
const BYTES_MAX: usize = 64 * 1024;
/// Narrower than this no cell can be read.
const CELL_COLUMNS_MIN: usize = 5;
/// Words up to this width are kept whole where possible.
const WORD_COLUMNS_MAX: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Centre,
    Right,
}

#[derive(Debug, Clone)]
pub(super) struct Table {
    aligns: Vec<Align>,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    bytes: usize,
    /// Known once rows were written.
    layout: Option<Layout>,
}

#[derive(Debug, Clone)]
enum Layout {
    /// The columns of each cell, and whether rows stand apart because some take several lines.
    Grid { columns: Vec<usize>, has_rules: bool },
    /// One field a line.
    Records,
}

impl Table {
    /// A table with this header; `None` unless `line` is the row of dashes that belongs to it.
    pub fn begin(header: &str, line: &str) -> Option<Table> {
        let aligns: Option<Vec<Align>> = cells(line).iter().map(|cell| align(cell)).collect();
        let (aligns, header) = (aligns?, cells(header));
        if aligns.len() != header.len() {
            return None;
        }
        Some(Table { aligns, header, rows: Vec::new(), bytes: 0, layout: None })
    }

    pub fn push(&mut self, row: &str, wrap: &mut Wrap) {
        let mut cells = cells(row);
        // What is too much is shown all the same.
        if let Some(more) = cells.get(self.header.len()..).filter(|more| !more.is_empty()) {
            let last =
                [&cells[self.header.len() - 1..self.header.len()], more].concat().join(" | ");
            cells.truncate(self.header.len() - 1);
            cells.push(last);
        }
        cells.resize(self.header.len(), String::new());
        self.bytes += row.len();
        if self.layout.is_some() {
            return self.write_row(&cells, false, wrap);
        }
        self.rows.push(cells);
        if ROWS_MAX < self.rows.len() || BYTES_MAX < self.bytes {
            self.write(wrap);
        }
    }

    /// Writes what waits.
    pub fn write(&mut self, wrap: &mut Wrap) {
        if self.layout.is_some() {
            return;
        }
        let layout = self.layout(wrap);
        let header = self.header.clone();
        let is_grid = matches!(layout, Layout::Grid { .. });
        self.layout = Some(layout);
        if is_grid || self.rows.is_empty() {
            self.write_header(&header, wrap);
        }
        for (idx, row) in std::mem::take(&mut self.rows).iter().enumerate() {
            self.write_row(row, idx == 0, wrap);
        }
    }

    fn layout(&self, wrap: &Wrap) -> Layout {
        let count = self.header.len();
        let room = wrap.room().saturating_sub(3 * (count - 1));
        if room < CELL_COLUMNS_MIN * count {
            let natural = self.widths(wrap.style);
            if room < natural.iter().map(|(widest, _)| widest).sum() {
                return Layout::Records;
            }
        }
        let widths = self.widths(wrap.style);
        let columns = fit(&widths, room);
        let has_rules = columns.iter().zip(&widths).any(|(columns, (widest, _))| columns < widest);
        Layout::Grid { columns, has_rules }
    }

    /// For each column its widest cell and its widest word.
    fn widths(&self, style: Style) -> Vec<(usize, usize)> {
        let mut widths = vec![(1, 1); self.header.len()];
        for row in std::iter::once(&self.header).chain(&self.rows) {
            for (cell, (widest, word)) in row.iter().zip(&mut widths) {
                for line in lines(cell, usize::MAX / 2, Attrs::NONE, style) {
                    *widest = (*widest).max(painted_width(&line));
                    let longest = line.split(' ').map(painted_width).max().unwrap_or(0);
                    *word = (*word).max(longest.min(WORD_COLUMNS_MAX));
                }
            }
        }
        widths
    }

    fn write_header(&self, header: &[String], wrap: &mut Wrap) {
        if matches!(self.layout, Some(Layout::Records)) {
            let names = header.iter().filter(|name| !name.is_empty());
            return names.for_each(|name| {
                Inline::all(name, wrap.style, Attrs::BOLD, wrap);
                wrap.end_line();
            });
        }
        self.write_cells(header, Attrs::BOLD, wrap);
        self.write_rule(true, wrap);
    }

    fn write_row(&self, row: &[String], is_first: bool, wrap: &mut Wrap) {
        match &self.layout {
            Some(Layout::Grid { has_rules, .. }) => {
                if *has_rules && !is_first {
                    self.write_rule(false, wrap);
                }
                self.write_cells(row, Attrs::NONE, wrap);
            }
            _ => {
                if !is_first {
                    wrap.empty_line();
                }
                self.write_record(row, wrap);
            }
        }
    }

    /// `Header: cell`, one a line.
    fn write_record(&self, row: &[String], wrap: &mut Wrap) {
        let style = wrap.style;
        for (name, cell) in self.header.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
            Inline::all(name, style, Attrs::BOLD, wrap);
            Inline::all(": ", style, Attrs::BOLD, wrap);
            Inline::all(cell, style, Attrs::NONE, wrap);
            wrap.end_line();
        }
    }

    fn write_cells(&self, row: &[String], attrs: Attrs, wrap: &mut Wrap) {
        let style = wrap.style;
        let Some(Layout::Grid { columns, .. }) = &self.layout else {
            return self.write_record(row, wrap);
        };
        let cells: Vec<_> = row
            .iter()
            .zip(columns)
            .map(|(cell, &columns)| lines(cell, columns, attrs, style))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let bar = if style.is_coloured() { style.dim(" │ ") } else { " | ".to_owned() };
        for line_idx in 0..height {
            let mut line = String::new();
            for (idx, (cell, &columns)) in cells.iter().zip(columns).enumerate() {
                if 0 < idx {
                    line.push_str(&bar);
                }
                let text = cell.get(line_idx).map_or("", String::as_str);
                let blanks = columns.saturating_sub(painted_width(text));
                let before = match self.aligns[idx] {
                    Align::Left => 0,
                    Align::Centre => blanks / 2,
                    Align::Right => blanks,
                };
                line.push_str(&" ".repeat(before));
                line.push_str(text);
                if idx + 1 < cells.len() {
                    line.push_str(&" ".repeat(blanks - before));
                }
            }
            wrap.painted_line(line.trim_end_matches(' '));
        }
    }

    /// Below the header, or between rows.
    fn write_rule(&self, is_strong: bool, wrap: &mut Wrap) {
        let Some(Layout::Grid { columns, .. }) = &self.layout else { return };
        let is_coloured = wrap.style.is_coloured();
        let (dash, cross) = match (is_coloured, is_strong) {
            (true, true) => ("─", "─┼─"),
            (true, false) => ("┈", "┈┼┈"),
            (false, true) => ("-", "-|-"),
            (false, false) => (".", ".|."),
        };
        let parts: Vec<_> = columns.iter().map(|&columns| dash.repeat(columns)).collect();
        let line = wrap.style.dim(&parts.join(cross));
        wrap.painted_line(&line);
    }
}

/// The lines of a cell, painted.
fn lines(cell: &str, columns: usize, attrs: Attrs, style: Style) -> Vec<String> {
    let mut wrap = Wrap::new(columns, style);
    wrap.cuts_addresses = true;
    Inline::all(cell, style, attrs, &mut wrap);
    wrap.end_line_if_open();
    wrap.take().lines().map(str::to_owned).collect()
}

/// Shares the room among columns: the widest give first, and no word is cut while there is room
/// for all words.
fn fit(widths: &[(usize, usize)], room: usize) -> Vec<usize> {
    let capped = |cap: usize, keeps_words: bool| -> Vec<usize> {
        let column = |&(widest, word): &(usize, usize)| {
            widest.min(if keeps_words { cap.max(word) } else { cap.max(1) })
        };
        widths.iter().map(column).collect()
    };
    let fits = |columns: &Vec<usize>| columns.iter().sum::<usize>() <= room;
    let keeps_words = fits(&capped(0, true));
    // Each column narrower than the cap keeps its width.
    let widest = widths.iter().map(|(widest, _)| *widest).max().unwrap_or(0).min(room);
    let cap = (1..=widest).rev().find(|&cap| fits(&capped(cap, keeps_words))).unwrap_or(1);
    let mut columns = capped(cap, keeps_words);
    // The rest of the division goes to those that want more.
    let mut left = room.saturating_sub(columns.iter().sum());
    for (column, (widest, _)) in columns.iter_mut().zip(widths) {
        if 0 < left && *column < *widest {
            *column += 1;
            left -= 1;
        }
    }
    columns
}

/// The cells of a row; `\|` is a sign inside of a cell.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut chars = row.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, cells.last_mut()) {
            ('\\', Some(cell)) if chars.peek() == Some(&'|') => {
                chars.next();
                cell.push('|');
            }
            ('\\', Some(cell)) => {
                cell.push(c);
                cell.extend(chars.next());
            }
            ('|', _) if chars.peek().is_none() => {}
            ('|', _) => cells.push(String::new()),
            (c, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn align(cell: &str) -> Option<Align> {
    let dashes = cell.trim_matches(':');
    let is_dashes = !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-');
    is_dashes.then_some(match (cell.starts_with(':'), cell.ends_with(':')) {
        (true, true) => Align::Centre,
        (false, true) => Align::Right,
        _ => Align::Left,
    })
}

//! The live region: the rows at the end of the terminal that are drawn again, below lines that are
//! written once and never touched again.
//!
//! Pure: lines and a frame go in, bytes for the terminal come out. Where on the screen the region
//! stands is neither known nor asked for, so it works behind whatever a shell has printed, and the
//! lines above it belong to the terminal's own scrollback. A draw writes as little as it can: equal
//! rows at both ends stay, others are shifted by the terminal where their number changed, and of a
//! row only what differs is written. What takes more than a row or two is shown at once, on
//! terminals that can.

mod line;
mod pen;

use crate::render::line::fold;
use crate::render::style::painted_width;

use line::Line;
use pen::{Pen, csi};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

/// What the region shows: painted lines no wider than the terminal, and the cursor's row and
/// column in them. Of one that is higher than the screen the rows around the cursor are shown; a
/// row that is too wide is cut.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    pub rows: Vec<String>,
    pub cursor: (usize, usize),
}

/// What stands in the terminal.
#[derive(Debug)]
enum Ground {
    /// The cursor is somewhere, and nothing around it is the region's.
    Foreign,
    /// The rows as drawn, one at least, with nothing below, and the cursor in one of them. The
    /// size may have changed since when it `is_stale`.
    Region { rows: Vec<String>, cursor: (usize, usize), is_stale: bool },
}

#[derive(Debug)]
pub struct Live {
    size: Size,
    reflows: bool,
    ground: Ground,
    /// The place in the region that the terminal has saved (ESC 7).
    saved: Option<(usize, usize)>,
}

impl Live {
    /// `reflows`: whether the terminal wraps its rows again when its width changes.
    pub fn new(size: Size, reflows: bool) -> Live {
        Live { size: at_least_one(size), reflows, ground: Ground::Foreign, saved: None }
    }

    /// The terminal has this size now. The next draw takes the region off as it stands by then.
    pub fn resize(&mut self, size: Size) {
        let size = at_least_one(size);
        if size == self.size {
            return;
        }
        self.size = size;
        self.saved = None;
        if let Ground::Region { is_stale, .. } = &mut self.ground {
            *is_stale = true;
        }
    }

    /// Somebody else wrote to the terminal: the next draw begins in a row of its own, at the
    /// cursor or below, and touches nothing above.
    pub fn forget(&mut self) {
        self.ground = Ground::Foreign;
        self.saved = None;
    }

    /// Erases the region and leaves the cursor where it began.
    pub fn take_off(&mut self, out: &mut Vec<u8>) {
        self.saved = None;
        let Ground::Region { rows, cursor, .. } = &self.ground else { return };
        self.erase(rows, *cursor, out);
        let rows = vec![String::new()];
        self.ground = Ground::Region { rows, cursor: (0, 0), is_stale: false };
    }

    /// Writes the finished lines above the region, and the region anew.
    pub fn draw(&mut self, finished: &[String], frame: Frame, out: &mut Vec<u8>) {
        let (rows, cursor) = self.fitted(frame);
        let mut before = Vec::new();
        let (old, start) = self.take_ground(&mut before);
        let mut pen = Pen::new(self.size.columns, old.len(), start);
        self.write(&mut pen, &old, finished, &rows);

        let target = (finished.len() + cursor.0, cursor.1);
        if pen.has_grown() {
            self.saved = None;
        }
        let mut way = pen.way_to(target.0, target.1);
        let mut save = "";
        let is_return = target == start && !pen.has_grown();
        if 2 < way.len() && self.saved == Some(target) {
            way = "\x1b8".to_owned();
        } else if 4 <= way.len() && is_return {
            // Two bytes more now, and two in all for each return from now on.
            (save, way) = ("\x1b7", "\x1b8".to_owned());
            self.saved = Some(target);
        }
        // Of a write as small as two rows a terminal shows no half.
        let is_large = 2 < pen.rows_written() || !before.is_empty();
        let (open, close) = match is_large {
            true => ("\x1b[?2026h\x1b[?25l", "\x1b[?25h\x1b[?2026l"),
            false => ("", ""),
        };
        let body = pen.into_bytes();
        let parts = [open.as_bytes(), &before, save.as_bytes(), &body, way.as_bytes()];
        parts.iter().for_each(|part| out.extend_from_slice(part));
        out.extend_from_slice(close.as_bytes());

        let below =
            |(row, column): (usize, usize)| Some((row.checked_sub(finished.len())?, column));
        self.saved = self.saved.and_then(below);
        self.ground = Ground::Region { rows, cursor, is_stale: false };
    }

    /// Turns the rows `old` into the finished lines and, below them, `rows`.
    fn write(&self, pen: &mut Pen, old: &[String], finished: &[String], rows: &[String]) {
        let new: Vec<&str> = finished.iter().chain(rows).map(String::as_str).collect();
        let pairs = old.iter().zip(&new);
        let start = pairs.take_while(|(old, new)| old == *new).count();
        let shorter = old.len().min(new.len()) - start;
        let pairs = old.iter().rev().zip(new.iter().rev()).take(shorter);
        let mut end = pairs.take_while(|(old, new)| old == *new).count();
        // A region of one blank row is none whose rows could move.
        if matches!(old, [row] if row.is_empty()) {
            end = 0;
        }

        let lines: Vec<Line<'_>> =
            new[start..new.len() - end].iter().map(|row| Line::parse(row)).collect();
        // Lines of which the rows are not known push down whatever is below.
        let count = finished.len().saturating_sub(start).min(lines.len());
        let is_free = |line: &Line<'_>| line.is_disputed || self.size.columns < line.columns;
        if lines[..count].iter().any(is_free) {
            return self.write_below(pen, start, count, &new[start..]);
        }

        // Making room scrolls: the row that it is made at must stay on the screen.
        let room_at = old.len() - end;
        if old.len() < new.len() && self.size.rows + room_at < new.len() {
            end = 0;
        }
        let (old_end, new_end) = (old.len() - end, new.len() - end);
        for row in start..new_end.min(old_end) {
            pen.rewrite(row, &Line::parse(&old[row]), &Line::parse(new[row]));
        }
        if new_end < old_end {
            pen.delete_rows(new_end, old_end - new_end);
        }
        if old_end < new_end {
            if 0 < end {
                pen.insert_rows(old_end, new_end - old_end);
            }
            for (row, line) in (old_end..).zip(&new[old_end..new_end]) {
                if end == 0 {
                    pen.move_to(row, 0);
                }
                pen.rewrite(row, &Line::parse(""), &Line::parse(line));
            }
        }
    }

    /// Writes all lines anew from row `start` on; the first `count` of them wrap as they like.
    fn write_below(&self, pen: &mut Pen, start: usize, count: usize, lines: &[&str]) {
        pen.erase_from(start);
        for (idx, line) in lines.iter().enumerate() {
            let line = Line::parse(line);
            pen.move_to(start + idx, 0);
            match idx < count {
                true => pen.write_wrapped(&line),
                false => pen.rewrite(start + idx, &Line::parse(""), &line),
            }
        }
    }

    /// The rows that stand there now and the cursor in them; where no region of this size does,
    /// makes one of a blank row.
    fn take_ground(&mut self, out: &mut Vec<u8>) -> (Vec<String>, (usize, usize)) {
        match std::mem::replace(&mut self.ground, Ground::Foreign) {
            Ground::Region { rows, cursor, is_stale: false } => return (rows, cursor),
            Ground::Region { rows, cursor, is_stale: true } => self.erase(&rows, cursor, out),
            Ground::Foreign => {
                // As many blanks as there are columns end in the next row, unless they began in
                // the first column: then they end behind the last one, still in this row.
                out.extend(std::iter::repeat_n(b' ', self.size.columns));
                out.extend_from_slice(b"\r\x1b[J");
            }
        }
        (vec![String::new()], (0, 0))
    }

    fn erase(&self, rows: &[String], cursor: (usize, usize), out: &mut Vec<u8>) {
        if cursor == (0, 0) && matches!(rows, [row] if row.is_empty()) {
            return;
        }
        let up = self.rows_above(rows, cursor);
        if 0 < up {
            out.extend_from_slice(csi(up, 'A').as_bytes());
        }
        out.extend_from_slice(b"\r\x1b[J");
    }

    /// How many rows of the region there are above the cursor. Too few leaves some of it behind,
    /// too many would erase what is not of the region: where terminals differ the fewer count.
    fn rows_above(&self, rows: &[String], (row, column): (usize, usize)) -> usize {
        if !self.reflows {
            return row;
        }
        let columns = self.size.columns;
        let above: usize = rows[..row].iter().map(|row| Line::parse(row).rows(columns)).sum();
        above + Line::parse(&rows[row]).rows_down_to(column, columns)
    }

    fn fitted(&self, frame: Frame) -> (Vec<String>, (usize, usize)) {
        let Frame { mut rows, cursor: (row, column) } = frame;
        if rows.is_empty() {
            rows.push(String::new());
        }
        let row = row.min(rows.len() - 1);
        let first = rows.len().saturating_sub(self.size.rows).min(row);
        rows.truncate(first + self.size.rows);
        rows.drain(..first);
        for row in &mut rows {
            if self.size.columns < painted_width(row) {
                *row = fold(row, self.size.columns).swap_remove(0);
            }
        }
        (rows, (row - first, column.min(self.size.columns - 1)))
    }
}

fn at_least_one(size: Size) -> Size {
    Size { columns: size.columns.max(1), rows: size.rows.max(1) }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    /// What a terminal has in a row: runs of text with their attributes, without what is blank
    /// at the end.
    type Row = Vec<(String, Look)>;
    type Look = (vt100::Color, bool, bool, bool, bool);

    const NO_LOOK: Look = (vt100::Color::Default, false, false, false, false);

    fn emulator(size: Size) -> vt100::Parser {
        let number = |count: usize| NonZeroU16::new(u16::try_from(count).unwrap()).unwrap();
        vt100::Parser::new(number(size.rows), number(size.columns), 100_000)
    }

    fn row(screen: &vt100::Screen, row: u16) -> Row {
        let (_, columns) = screen.size();
        let mut runs: Row = Vec::new();
        for cell in (0..columns.get()).filter_map(|column| screen.cell(row, column)) {
            let shown = if cell.has_contents() { cell.contents() } else { " " };
            if cell.is_wide_continuation() {
                continue;
            }
            let look = (cell.fgcolor(), cell.bold(), cell.dim(), cell.italic(), cell.underline());
            match runs.last_mut().filter(|(_, last)| *last == look) {
                Some((text, _)) => text.push_str(shown),
                None => runs.push((shown.to_owned(), look)),
            }
        }
        if let Some((text, _)) = runs.last_mut().filter(|(_, look)| *look == NO_LOOK) {
            text.truncate(text.trim_end_matches(' ').len());
            if text.is_empty() {
                runs.pop();
            }
        }
        runs
    }

    fn text_of(row: &Row) -> String {
        row.iter().map(|(text, _)| text.as_str()).collect()
    }

    /// The rows of the scrollback and, from the returned place on, of the screen; with each
    /// whether it goes on in the next one. Without the first `skipped` ones, all of the scrollback.
    fn rows_of(parser: &mut vt100::Parser, skipped: usize) -> (Vec<(Row, bool)>, usize) {
        let screen = parser.screen_mut();
        screen.set_scrollback(usize::MAX);
        let above = screen.scrollback();
        let height = screen.size().0.get();
        let mut rows = Vec::new();
        assert!(skipped <= above);
        let mut first = skipped;
        while first < above {
            screen.set_scrollback(above - first);
            let count = usize::from(height).min(above - first);
            let range = 0..u16::try_from(count).unwrap();
            rows.extend(range.map(|idx| (row(screen, idx), screen.row_wrapped(idx))));
            first += count;
        }
        screen.set_scrollback(0);
        rows.extend((0..height).map(|idx| (row(screen, idx), screen.row_wrapped(idx))));
        (rows, above)
    }

    fn trimmed(mut rows: Vec<Row>) -> Vec<Row> {
        while rows.last().is_some_and(Vec::is_empty) {
            rows.pop();
        }
        rows
    }

    struct Random {
        seed: u64,
        words: &'static [&'static str],
    }

    const WORDS: [&str; 12] =
        ["a", "bc", "word", " ", "  ", "longer", "0", "-", "界", "面x", "e\u{301}", "\u{1f980}"];
    const ASCII_WORDS: [&str; 5] = ["a", "bc", "word", " ", "longer"];

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.seed ^= self.seed << 13;
            self.seed ^= self.seed >> 7;
            self.seed ^= self.seed << 17;
            (self.seed % bound.max(1) as u64) as usize
        }

        fn pick<T: Copy>(&mut self, items: &[T]) -> T {
            items[self.below(items.len())]
        }

        /// A painted line of about so many columns.
        fn line(&mut self, columns: usize) -> String {
            const PAINTS: [&str; 6] = ["1", "2", "31", "1;4;36", "3", "2"];
            let mut line = String::new();
            while painted_width(&line) < columns {
                let word = self.pick(self.words);
                match self.below(5) {
                    0 => line.push_str(&format!("\x1b[{}m{word}\x1b[0m", self.pick(&PAINTS))),
                    _ => line.push_str(word),
                }
            }
            line
        }

        /// One that fits, often exactly.
        fn row(&mut self, columns: usize) -> String {
            let wanted = match self.below(4) {
                0 => columns,
                1 => 0,
                _ => self.below(columns + 1),
            };
            let line = self.line(wanted);
            if painted_width(&line) <= columns { line } else { "x".repeat(wanted) }
        }
    }

    /// A terminal, the region in it, and what must be visible.
    struct Bench {
        parser: vt100::Parser,
        size: Size,
        reflows: bool,
        live: Live,
        /// The rows above the region, and what the region shows.
        above: Vec<Row>,
        region: Vec<String>,
        seed: u64,
        is_resized: bool,
    }

    impl Bench {
        fn new(size: Size, reflows: bool, seed: u64) -> Bench {
            Bench {
                parser: emulator(size),
                size,
                reflows,
                live: Live::new(size, reflows),
                above: Vec::new(),
                region: Vec::new(),
                seed,
                is_resized: false,
            }
        }

        /// Somebody else prints; the region begins below, or beside nothing.
        fn print(&mut self, text: &str) {
            let mut bytes = Vec::new();
            self.live.take_off(&mut bytes);
            self.parser.process(&bytes);
            self.parser.process(text.as_bytes());
            self.live.forget();
            let (rows, top) = rows_of(&mut self.parser, 0);
            let (row, column) = self.parser.screen().cursor_position();
            let begun = top + usize::from(row) + usize::from(0 < column);
            self.above = rows.into_iter().map(|row| row.0).collect();
            self.above.resize(begun, Vec::new());
        }

        /// What a fresh terminal has after these lines, without blanks at their ends.
        fn plain(&self, lines: &[String]) -> Vec<Row> {
            let mut parser = emulator(self.size);
            for line in lines {
                parser.process(line.trim_end_matches(' ').as_bytes());
                parser.process(b"\r\n");
            }
            let (rows, top) = rows_of(&mut parser, 0);
            let end = top + usize::from(parser.screen().cursor_position().0);
            rows.into_iter().map(|row| row.0).take(end).collect()
        }

        fn draw(&mut self, finished: &[String], frame: &Frame) -> usize {
            if std::mem::take(&mut self.is_resized) {
                self.find_above();
            }
            let mut bytes = Vec::new();
            self.live.draw(finished, frame.clone(), &mut bytes);
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            self.parser.process(&bytes);
            let above = self.above.len();
            let finished_rows = self.plain(finished);
            self.above.extend(finished_rows);
            let first = frame.rows.len().saturating_sub(self.size.rows).min(frame.cursor.0);
            let last = frame.rows.len().min(first + self.size.rows);
            self.region = frame.rows[first..last].to_vec();
            // What has left the screen before cannot change any more.
            let skipped = above.saturating_sub(2 * self.size.rows + 2);
            let mut want = self.above[skipped..].to_vec();
            want.extend(self.plain(&self.region));
            let (rows, top) = rows_of(&mut self.parser, skipped);
            let rows = rows.into_iter().map(|row| row.0).collect();
            let context = format!("seed {}, {:?}, wrote {shown:?}", self.seed, self.size);
            let (rows, want) = (trimmed(rows), trimmed(want));
            let differing = rows.iter().zip(&want).position(|(row, want)| row != want);
            if let Some(idx) = differing.or((rows.len() != want.len()).then_some(rows.len())) {
                let near = |rows: &[Row]| {
                    let last = rows.len().min(idx + 4);
                    rows[idx.saturating_sub(1).min(last)..last]
                        .iter()
                        .map(text_of)
                        .collect::<Vec<_>>()
                };
                let (rows, want) = (near(&rows), near(&want));
                panic!(
                    "{context}: row {idx} of those from {skipped} on, {above} \
                     above: {rows:?} instead of {want:?}"
                );
            }
            let (row, column) = self.parser.screen().cursor_position();
            let cursor = (top + usize::from(row), usize::from(column));
            let want = (self.above.len() + frame.cursor.0 - first, frame.cursor.1);
            assert_eq!(cursor, want, "{context}");
            assert!(!self.parser.screen().hide_cursor(), "{context}");
            bytes.len()
        }

        /// After a resize: what stands above the region's first row, or above the screen, stays.
        fn find_above(&mut self) {
            let (rows, top) = rows_of(&mut self.parser, 0);
            let kept = self.above.len().max(top);
            let now: Vec<Row> = rows.into_iter().map(|row| row.0).take(kept).collect();
            for (row, before) in now.iter().zip(&self.above) {
                // A row is cut where it is too wide, unless it is in the scrollback.
                let (before_text, text) = (text_of(before), text_of(row));
                let is_same = before_text.starts_with(text.trim_end())
                    || text.starts_with(before_text.trim_end());
                assert!(is_same, "seed {}: {before:?} {row:?}", self.seed);
            }
            self.above = now;
        }

        /// Whether the region's first row was begun by the region: not when a row of it that was
        /// wrapped is half above the screen, where nothing can take it off.
        fn stands_alone(&mut self) -> bool {
            let (rows, _) = rows_of(&mut self.parser, 0);
            self.above.is_empty() || !rows[self.above.len() - 1].1
        }

        fn resize(&mut self, size: Size) {
            // In one row the emulator forgets which rows go on in the next.
            if size == self.size || (self.reflows && size.rows == 1) {
                return;
            }
            let number = |count: usize| NonZeroU16::new(u16::try_from(count).unwrap()).unwrap();
            if self.reflows {
                self.reflow(size);
            } else {
                self.parser.set_size(number(size.rows), number(size.columns));
            }
            self.size = size;
            self.is_resized = true;
            self.live.resize(size);
        }

        /// Wraps every line again, which must be ASCII, and keeps the cursor on its character.
        fn reflow(&mut self, size: Size) {
            let (rows, top) = rows_of(&mut self.parser, 0);
            let (row, column) = self.parser.screen().cursor_position();
            let cursor = top + usize::from(row);
            let mut lines: Vec<String> = vec![String::new()];
            let (mut cursor_line, mut offset, mut above_lines) = (0, 0, 0);
            for (idx, (row, wraps)) in rows.iter().enumerate() {
                let line = lines.last_mut().unwrap();
                if idx == cursor {
                    offset = line.len() + usize::from(column);
                }
                line.push_str(&text_of(row));
                if *wraps {
                    let missing = self.size.columns - text_of(row).len();
                    line.push_str(&" ".repeat(missing));
                } else {
                    lines.push(String::new());
                }
                if idx <= cursor {
                    cursor_line = lines.len() - 1 - usize::from(!*wraps);
                }
                if idx + 1 == self.above.len() {
                    above_lines = lines.len() - 1;
                }
            }
            let rows_in = |lines: &[String]| -> usize {
                lines.iter().map(|line| line.len().div_ceil(size.columns).max(1)).sum()
            };
            // Behind the last column a cursor waits in the row.
            let offset = offset.min(lines[cursor_line].len());
            let is_waiting = 0 < offset
                && offset == lines[cursor_line].len()
                && offset.is_multiple_of(size.columns);
            let down = (offset / size.columns).saturating_sub(usize::from(is_waiting));
            let column = if is_waiting { size.columns - 1 } else { offset % size.columns };
            let cursor = rows_in(&lines[..cursor_line]) + down;
            // Rows below it are lost where it would leave the screen.
            while cursor_line + 1 < lines.len()
                && (lines.last().is_some_and(String::is_empty)
                    || cursor + size.rows < rows_in(&lines))
            {
                lines.pop();
            }
            if cursor_line + 1 == lines.len() {
                lines[cursor_line].truncate((down + size.rows) * size.columns);
            }
            self.parser = emulator(size);
            self.parser.process(lines.join("\r\n").as_bytes());
            let (rows, top) = rows_of(&mut self.parser, 0);
            let row = (cursor + 1).saturating_sub(top).max(1);
            self.parser.process(format!("\x1b[{row};{}H", column + 1).as_bytes());
            let above = rows_in(&lines[..above_lines]);
            self.above = rows.into_iter().map(|row| row.0).take(above).collect();
        }
    }

    const SIZES: [(usize, usize); 12] = [
        (1, 1),
        (1, 5),
        (2, 2),
        (5, 1),
        (3, 3),
        (10, 4),
        (20, 6),
        (40, 10),
        (80, 24),
        (7, 30),
        (200, 50),
        (80, 3),
    ];

    fn frame_of(random: &mut Random, before: &Frame, size: Size) -> Frame {
        let mut rows = before.rows.clone();
        let height_max = size.rows + usize::from(random.below(10) == 0) * 3;
        match random.below(8) {
            0 => {
                let height = random.below(height_max + 1);
                rows = (0..height).map(|_| random.row(size.columns)).collect();
            }
            1 | 2 if !rows.is_empty() => {
                // A row grows, as text that streams.
                let at = random.below(rows.len());
                let left = size.columns.saturating_sub(painted_width(&rows[at]));
                let more = random.row(left);
                rows[at].push_str(&more);
            }
            3 if !rows.is_empty() => {
                let at = random.below(rows.len());
                rows[at] = random.row(size.columns);
            }
            4 | 5 if rows.len() < height_max => {
                let at = random.below(rows.len() + 1);
                rows.insert(at, random.row(size.columns));
            }
            6 if !rows.is_empty() => {
                let at = random.below(rows.len());
                rows.remove(at);
            }
            _ => {}
        }
        rows.truncate(height_max);
        let row = random.below(rows.len());
        let column = rows.get(row).map_or(0, |row| random.below(painted_width(row) + 1));
        let cursor = match random.below(3) {
            0 => (row, column.min(size.columns - 1)),
            _ => (
                before.cursor.0.min(rows.len().saturating_sub(1)),
                before.cursor.1.min(size.columns - 1),
            ),
        };
        Frame { rows, cursor }
    }

    fn finished_of(
        random: &mut Random,
        before: &Frame,
        frame: &mut Frame,
        size: Size,
    ) -> Vec<String> {
        match random.below(5) {
            // The region's first rows are finished as they stand.
            0 | 1 => {
                let count = random.below(before.rows.len() + 1).min(3);
                let finished = before.rows[..count].to_vec();
                if random.below(2) == 0 && frame.rows.starts_with(&finished) {
                    frame.rows.drain(..count);
                    frame.cursor.0 = frame.cursor.0.saturating_sub(count);
                }
                finished
            }
            2 => {
                let count = random.below(4);
                (0..count).map(|_| random.row(size.columns)).collect()
            }
            3 => {
                let count = random.below(3 + size.rows);
                (0..count)
                    .map(|_| {
                        let wanted = random.below(size.columns * 3);
                        random.line(wanted)
                    })
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Resizes {
        Never,
        Cut,
        Reflow,
    }

    /// Returns how many times the terminal was looked at.
    fn play(seed: u64, mut size: Size, resizes: Resizes) -> usize {
        let reflows = resizes == Resizes::Reflow;
        let words: &[&str] = if reflows { &ASCII_WORDS } else { &WORDS };
        let mut random = Random { seed, words };
        let mut bench = Bench::new(size, reflows, seed);
        // A line that was begun by others and the region's first row are one line to a terminal
        // that wraps again.
        match random.below(4) {
            0 => bench.print(""),
            1 | 3 if reflows => bench.print(""),
            1 => bench.print("$ etch"),
            2 => bench.print(&"line\r\n".repeat(random.below(2 * size.rows))),
            _ => bench.print(&"x".repeat(size.columns)),
        }
        let mut frame = Frame::default();
        let draws = if resizes == Resizes::Never { 24 } else { 12 };
        for count in 0..draws {
            let before = frame.clone();
            frame = frame_of(&mut random, &before, size);
            let finished = finished_of(&mut random, &before, &mut frame, size);
            bench.draw(&finished, &frame);
            assert_eq!(bench.draw(&[], &frame), 0, "seed {seed}: a draw of the same");
            if random.below(12) == 0 {
                let begun = if reflows { "" } else { "out" };
                bench.print(random.pick(&["", begun, "some\r\noutput\r\n"]));
            } else if resizes != Resizes::Never && random.below(3) == 0 {
                for _ in 0..=random.below(2) {
                    if reflows && !bench.stands_alone() {
                        return count;
                    }
                    let (columns, rows) = random.pick(&SIZES);
                    bench.resize(Size { columns, rows });
                }
                size = bench.size;
                let fit = |row: &mut String| *row = fold(row, size.columns).swap_remove(0);
                frame.rows.iter_mut().for_each(fit);
                frame.cursor.1 = frame.cursor.1.min(size.columns - 1);
            }
        }
        draws
    }

    /// Plays in every size, more often where it takes little time.
    fn play_all(resizes: Resizes, games_max: usize) -> usize {
        let mut count = 0;
        for (columns, rows) in SIZES {
            for seed in 1..=(1000 / (columns * rows)).clamp(1, games_max) as u64 {
                count += play(seed * 0x9e37_79b9, Size { columns, rows }, resizes);
            }
        }
        count
    }

    #[test]
    fn the_terminal_shows_the_finished_lines_and_the_frame() {
        assert_eq!(play_all(Resizes::Never, 12) % 24, 0);
    }

    #[test]
    fn a_resize_leaves_the_lines_above_alone() {
        assert_eq!(play_all(Resizes::Cut, 3) % 12, 0);
    }

    #[test]
    fn a_resize_that_wraps_again_takes_the_whole_region_off() {
        let count = play_all(Resizes::Reflow, 3);
        assert!(200 < count, "{count}");
    }

    const SMALL: Size = Size { columns: 20, rows: 6 };

    /// Finished lines, the frame's rows, its cursor.
    type Draw<'a> = (&'a [&'a str], &'a [&'a str], (usize, usize));

    /// The bytes of the last of these draws.
    #[track_caller]
    fn check_bytes(draws: &[Draw<'_>], want: &str) {
        let (mut live, mut out) = (Live::new(SMALL, true), Vec::new());
        for (finished, rows, cursor) in draws {
            out.clear();
            let strings = |rows: &[&str]| rows.iter().map(|&row| row.to_owned()).collect();
            let finished: Vec<String> = strings(finished);
            live.draw(&finished, Frame { rows: strings(rows), cursor: *cursor }, &mut out);
        }
        assert_eq!(String::from_utf8_lossy(&out), want);
    }

    #[test]
    fn a_draw_writes_what_differs() {
        let first: Draw<'_> = (&[], &["one", "", "> x", "foot"], (2, 3));
        let blank = " ".repeat(20);
        let opened = format!(
            "\x1b[?2026h\x1b[?25l{blank}\r\x1b[Jone\r\n\r\n> x\r\nfoot\x1b[A\x08\x1b[?25h\x1b[?2026l"
        );
        check_bytes(&[first], &opened);
        // A key.
        check_bytes(&[first, (&[], &["one", "", "> xy", "foot"], (2, 4))], "y");
        check_bytes(&[first, (&[], &["one", "", "> ", "foot"], (2, 2))], "\x08\x08\x1b[K\x1b[C");
        check_bytes(&[first, (&[], &["one", "", "> x", "foot"], (2, 0))], "\r");
        // Text that streams: the place of the cursor is saved once.
        let grown: Draw<'_> = (&[], &["one two", "", "> x", "foot"], (2, 3));
        check_bytes(&[first, grown], "\x1b7\x1b[2A two\x1b8");
        let more: Draw<'_> = (&[], &["one two 3", "", "> x", "foot"], (2, 3));
        check_bytes(&[first, grown, more], "\x1b[2A\x1b[4C 3\x1b8");
        // A digit in the middle of a line.
        check_bytes(
            &[(&[], &["run (1 s)", ">"], (1, 1)), (&[], &["run (2 s)", ">"], (1, 1))],
            "\x1b7\x1b[A\x1b[4C2\x1b8",
        );
        // A finished line that stands there costs nothing, and none that is new costs the others.
        check_bytes(&[first, (&["one"], &["", "> x", "foot"], (1, 3))], "");
        check_bytes(
            &[first, (&["one", "two"], &["", "> x", "foot"], (1, 3))],
            "\x1b[B\r\n\x1b[3A\x1b[Ltwo\x1b[2B",
        );
        // Rows that go.
        check_bytes(&[first, (&[], &["one", "> x", "foot"], (1, 3))], "\x1b[A\r\x1b[M\x1b[3C");
        // Emoji that terminals count differently are written anew as a whole.
        check_bytes(
            &[first, (&[], &["one ❤\u{fe0f}", "", "> x", "foot"], (2, 3))],
            "\x1b7\x1b[2A\r\x1b[K\x1b[?7lone ❤\u{fe0f}\x1b[?7h\x1b8",
        );
    }

    #[test]
    fn the_region_is_taken_off_where_it_stands() {
        let mut live = Live::new(SMALL, true);
        let mut out = Vec::new();
        live.take_off(&mut out);
        assert_eq!(out, b"");
        let rows = vec!["x".repeat(20), "> abc".into(), "foot".into()];
        live.draw(&[], Frame { rows, cursor: (1, 5) }, &mut out);
        live.resize(Size { columns: 10, rows: 6 });
        out.clear();
        live.take_off(&mut out);
        live.take_off(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), "\x1b[2A\r\x1b[J");
        // What follows begins there.
        out.clear();
        live.draw(&["bye".into()], Frame::default(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), "bye\r\n");
    }

    /// Bytes written for each byte of an answer that streams at 20 frames a second, and by drawing
    /// the region whole each time.
    fn cost(tokens_per_second: usize) -> (f64, f64) {
        const TOKENS: [&str; 9] =
            ["The", " quick", " bro", "wn", " fox", " jumps", " over", " it", "."];
        let size = Size { columns: 80, rows: 24 };
        let mut live = Live::new(size, true);
        let (mut row, mut streamed, mut written, mut whole) = (String::new(), 0, 0, 0);
        let mut tokens = TOKENS.iter().cycle();
        for frame in 0..20 * 60 {
            for token in tokens.by_ref().take(tokens_per_second / 20) {
                row.push_str(token);
                streamed += token.len();
            }
            let mut finished = crate::render::line::wrap(&row, size.columns);
            row = finished.pop().unwrap();
            let working = format!("• Responding ({} s · Esc to cancel)", frame / 20);
            let below = ["", &working, "", "> ", "model · ~/src"];
            let mut rows = vec![row.clone()];
            rows.extend(below.map(str::to_owned));
            whole += rows.iter().chain(&finished).map(|row| row.len() + 5).sum::<usize>();
            let mut out = Vec::new();
            live.draw(&finished, Frame { rows, cursor: (4, 2) }, &mut out);
            // The first draw is the region's own cost.
            written += if frame == 0 { 0 } else { out.len() };
        }
        let per_byte = |bytes: usize| bytes as f64 / streamed as f64;
        (per_byte(written), per_byte(whole))
    }

    #[test]
    fn a_stream_costs_little_more_than_its_text() {
        for (tokens_per_second, bytes_max) in [(40, 3.0), (100, 2.0), (400, 1.5)] {
            let (written, whole) = cost(tokens_per_second);
            println!(
                "{tokens_per_second} tokens a second: {written:.2} bytes written for each byte of \
                 text, {whole:.2} by drawing the region whole"
            );
            assert!(written <= bytes_max, "{written:.2} at {tokens_per_second} tokens a second");
        }
    }
}

//! Searching one file of any size: matching lines with their neighbours, in bounded memory.
//!
//! Whole pieces of the file are searched; lines are looked at only around a match. A long line is
//! shown as a window around its match. Only as many matches are kept as are wanted; a bounded
//! number of further ones is counted.

use std::io::{self, Read};

use crate::cancel::Cancel;
use crate::text;
use crate::tool::grep::pattern::Pattern;

/// Most files end within the first piece.
const PIECE_BYTES: usize = 64 * 1024;
/// So much of a file is looked at before anything is said of it.
const HEAD_BYTES: usize = 8 * 1024;
const PIECE_BYTES_MAX: usize = 1024 * 1024;
/// A longer line is taken in pieces.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A longer line is not shown whole.
const SHOWN_BYTES_MAX: usize = 500;
/// Matching lines of one file that are counted beyond those wanted.
pub const COUNT_MORE_MAX: u64 = 1_000;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What is wanted of a file.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub pattern: &'a Pattern,
    /// Lines before and after each match.
    pub context: usize,
    pub hits_max: u64,
}

#[derive(Debug, PartialEq)]
pub struct Row {
    /// From 1.
    pub number: u64,
    pub is_hit: bool,
    /// Without its line end.
    pub text: String,
}

#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// Ascending, each line once.
    pub rows: Vec<Row>,
    /// Matching lines, the kept ones included.
    pub count: u64,
    /// Counting was given up.
    pub is_count_open: bool,
}

#[derive(Debug, PartialEq)]
pub enum Outcome {
    Text(Found),
    /// A NUL stands near its start.
    Binary,
}

/// The memory for searching; one for many files.
pub struct Searcher {
    buffer: Vec<u8>,
}

impl Default for Searcher {
    fn default() -> Searcher {
        Searcher { buffer: vec![0; PIECE_BYTES] }
    }
}

impl Searcher {
    pub fn search(
        &mut self,
        mut file: impl Read,
        ask: Ask<'_>,
        cancel: &Cancel,
    ) -> io::Result<Outcome> {
        let mut filled = 0;
        let mut scan: Option<Scan<'_>> = None;
        loop {
            let got = read_some(&mut file, &mut self.buffer[filled..])?;
            filled += got;
            let ended = got == 0;
            let scan = match &mut scan {
                Some(scan) => scan,
                None if !ended && filled < HEAD_BYTES.min(self.buffer.len()) => continue,
                None if text::looks_binary(&self.buffer[..filled]) => return Ok(Outcome::Binary),
                None => {
                    if self.buffer[..filled].starts_with(BOM) {
                        self.buffer.copy_within(BOM.len()..filled, 0);
                        filled -= BOM.len();
                    }
                    scan.insert(Scan::new(ask))
                }
            };
            let bytes = &self.buffer[..filled];
            let end = match memchr::memrchr(b'\n', &bytes[scan.searched..]) {
                _ if ended || filled >= LINE_BYTES_MAX => filled,
                Some(at) => scan.searched + at + 1,
                None => scan.searched,
            };
            if scan.search(&bytes[..end]) || ended || cancel.is_cancelled() {
                return Ok(Outcome::Text(std::mem::take(&mut scan.found)));
            }
            if filled == self.buffer.len() {
                let keep = scan.forget(&self.buffer[..end]);
                self.buffer.copy_within(keep..filled, 0);
                filled -= keep;
                if filled > self.buffer.len() / 2 || self.buffer.len() < PIECE_BYTES_MAX {
                    self.buffer.resize(self.buffer.len() * 2, 0);
                }
            }
        }
    }

    /// Gives memory back that one file with long lines took.
    pub fn shrink(&mut self) {
        if self.buffer.len() > PIECE_BYTES_MAX {
            self.buffer.truncate(PIECE_BYTES_MAX);
            self.buffer.shrink_to_fit();
        }
    }
}

fn read_some(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Where a search stands. Offsets count from the start of the buffer.
struct Scan<'a> {
    ask: Ask<'a>,
    found: Found,
    /// Everything before is searched; the start of a line.
    searched: usize,
    /// Line feeds before this offset are counted in `line`.
    counted: usize,
    /// The number of the line at `counted`.
    line: u64,
    /// Lines before this offset are shown, or will not be.
    shown: usize,
    /// The number of the line at `shown` while `after` is not 0.
    shown_line: u64,
    /// Lines that are still to be shown after the last match.
    after: usize,
}

impl<'a> Scan<'a> {
    fn new(ask: Ask<'a>) -> Scan<'a> {
        Scan {
            ask,
            found: Found::default(),
            searched: 0,
            counted: 0,
            line: 1,
            shown: 0,
            shown_line: 1,
            after: 0,
        }
    }

    /// Searches the whole lines up to the end of `bytes`; true when enough is known.
    fn search(&mut self, bytes: &[u8]) -> bool {
        while self.searched < bytes.len() {
            let Some((start, end)) = self.ask.pattern.find_at(bytes, self.searched) else { break };
            if start == bytes.len() && bytes.ends_with(b"\n") {
                // Behind the last line feed there is no line.
                break;
            }
            let line_start = memchr::memrchr(b'\n', &bytes[self.searched..start])
                .map_or(self.searched, |at| self.searched + at + 1);
            let line_end = memchr::memchr(b'\n', &bytes[end..]).map_or(bytes.len(), |at| end + at);
            self.found.count += 1;
            if self.found.count <= self.ask.hits_max {
                self.hit(bytes, (line_start, line_end), (start, end));
            } else {
                // The next match is not shown, not even as a neighbour.
                self.show_after(bytes, line_start);
                self.after = 0;
                if self.found.count >= self.ask.hits_max.saturating_add(COUNT_MORE_MAX) {
                    self.found.is_count_open = true;
                    return true;
                }
            }
            self.searched = (line_end + 1).min(bytes.len());
        }
        self.searched = bytes.len();
        self.show_after(bytes, bytes.len());
        false
    }

    fn hit(&mut self, bytes: &[u8], line: (usize, usize), found: (usize, usize)) {
        self.show_after(bytes, line.0);
        self.count_to(bytes, line.0);
        let mut start = line.0;
        let mut before = 0;
        while before < self.ask.context && start > self.shown {
            start = memchr::memrchr(b'\n', &bytes[self.shown..start - 1])
                .map_or(self.shown, |at| self.shown + at + 1);
            before += 1;
        }
        self.shown = start;
        for left in (1..=before as u64).rev() {
            let end =
                memchr::memchr(b'\n', &bytes[self.shown..]).map_or(line.0, |at| self.shown + at);
            self.push(self.line - left, &bytes[self.shown..end], None);
            self.shown = end + 1;
        }
        let within = (found.0 - line.0, found.1 - line.0);
        self.push(self.line, &bytes[line.0..line.1], Some(within));
        self.shown = (line.1 + 1).min(bytes.len());
        self.shown_line = self.line + 1;
        self.after = self.ask.context;
    }

    /// Shows what is still due after the last match, up to an offset.
    fn show_after(&mut self, bytes: &[u8], limit: usize) {
        while self.after > 0 && self.shown < limit {
            let end = memchr::memchr(b'\n', &bytes[self.shown..limit])
                .map_or(limit, |at| self.shown + at);
            self.push(self.shown_line, &bytes[self.shown..end], None);
            self.shown = (end + 1).min(limit);
            self.shown_line += 1;
            self.after -= 1;
        }
    }

    fn push(&mut self, number: u64, line: &[u8], hit: Option<(usize, usize)>) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = window(line, hit.unwrap_or_default());
        self.found.rows.push(Row { number, is_hit: hit.is_some(), text });
    }

    fn count_to(&mut self, bytes: &[u8], offset: usize) {
        self.line += memchr::memchr_iter(b'\n', &bytes[self.counted..offset]).count() as u64;
        self.counted = offset;
    }

    /// Makes room: returns how many bytes at the start are not needed any more.
    fn forget(&mut self, bytes: &[u8]) -> usize {
        let mut keep = self.searched;
        for _ in 0..self.ask.context {
            if keep <= self.shown {
                break;
            }
            keep = memchr::memrchr(b'\n', &bytes[self.shown..keep - 1])
                .map_or(self.shown, |at| self.shown + at + 1);
        }
        if self.searched - keep > LINE_BYTES_MAX / 2 {
            keep = self.searched;
        }
        if self.counted < keep {
            self.count_to(bytes, keep);
        }
        self.searched -= keep;
        self.counted -= keep;
        self.shown = self.shown.saturating_sub(keep);
        keep
    }
}

/// A line, or of a long one the part around its match with marks for what is not shown. The
/// column is what `read` takes.
fn window(line: &[u8], found: (usize, usize)) -> String {
    if line.len() <= SHOWN_BYTES_MAX {
        return text::decode_lossy(line).into_owned();
    }
    let length = (found.1 - found.0).min(SHOWN_BYTES_MAX);
    let start = found.0.saturating_sub((SHOWN_BYTES_MAX - length) / 2);
    let start = start.min(line.len() - SHOWN_BYTES_MAX);
    let start = char_start(line, start);
    let end = char_start(line, start + SHOWN_BYTES_MAX).max(start);
    let mut out = String::new();
    if start > 0 {
        out.push_str(&format!("[from column {}] ", start + 1));
    }
    out.push_str(&text::decode_lossy(&line[start..end]));
    if end < line.len() {
        out.push_str(&format!(" [{} more]", text::plural((line.len() - end) as u64, "byte")));
    }
    out
}

/// The start of the character at an offset; of bytes that are no UTF-8, the offset.
fn char_start(line: &[u8], at: usize) -> usize {
    let is_inside = |at: usize| line.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let back = (0..4).take_while(|back| *back <= at && is_inside(at - back)).count();
    if back < 4 && back <= at { at - back } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that gives at most so many bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let got = self.0.len().min(self.1).min(buffer.len());
            let (now, later) = self.0.split_at(got);
            buffer[..got].copy_from_slice(now);
            self.0 = later;
            Ok(got)
        }
    }

    fn search(bytes: &[u8], step: usize, pattern: &str, context: usize, hits_max: u64) -> Found {
        let pattern = Pattern::new(pattern, true, false).unwrap();
        let ask = Ask { pattern: &pattern, context, hits_max };
        let mut searcher = Searcher { buffer: vec![0; 16] };
        match searcher.search(Slow(bytes, step), ask, &Cancel::new()).unwrap() {
            Outcome::Text(found) => found,
            Outcome::Binary => panic!("binary"),
        }
    }

    /// `3:text` for a match, `4-text` for a neighbour.
    fn rows(found: &Found) -> Vec<String> {
        let mark = |row: &Row| if row.is_hit { ':' } else { '-' };
        found.rows.iter().map(|row| format!("{}{}{}", row.number, mark(row), row.text)).collect()
    }

    #[track_caller]
    fn check(text: &str, pattern: &str, context: usize, hits_max: u64, want: &[&str]) {
        for step in [1, 2, 3, 7, 64, 4096] {
            let found = search(text.as_bytes(), step, pattern, context, hits_max);
            assert_eq!(rows(&found), want, "step {step}");
        }
    }

    #[test]
    fn matches_have_their_neighbours_once_each() {
        let text = "one\ntwo\nhit a\nfour\nhit b\nsix\nseven\neight\nhit c";
        check(text, "hit", 0, 9, &["3:hit a", "5:hit b", "9:hit c"]);
        check(
            text,
            "hit",
            1,
            9,
            &["2-two", "3:hit a", "4-four", "5:hit b", "6-six", "8-eight", "9:hit c"],
        );
        check(text, "hit", 2, 1, &["1-one", "2-two", "3:hit a", "4-four"]);
        check(
            text,
            "hit c",
            5,
            1,
            &["4-four", "5-hit b", "6-six", "7-seven", "8-eight", "9:hit c"],
        );
        check("hit\n", "hit", 2, 9, &["1:hit"]);
        check("\n\nhit\n\n\n", "hit", 1, 9, &["2-", "3:hit", "4-"]);
        check("a\nb\n", "x*", 0, 9, &["1:a", "2:b"]);
        check("", "x*", 0, 9, &[]);
        check("\u{feff}hit\r\nend\r\n", "^hit$|end$", 0, 9, &["1:hit", "2:end"]);
    }

    /// Against a search line by line, in pieces of every size.
    #[test]
    fn any_piece_size_finds_what_a_search_by_lines_finds() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let lines: Vec<String> = (0..random(30))
                .map(|_| ["x", "", "hit", "long line with a hit in it", "no"][random(5) as usize])
                .map(str::to_owned)
                .collect();
            let mut text = lines.join("\n");
            if random(2) == 0 && !text.is_empty() {
                text.push('\n');
            }
            let (context, hits_max) = (random(4) as usize, 1 + random(5));
            let by_lines: Vec<_> = text.lines().collect();
            let hits: Vec<_> =
                (0..by_lines.len()).filter(|&idx| by_lines[idx].contains("hit")).collect();
            let kept: Vec<_> = hits.iter().copied().take(hits_max as usize).collect();
            let next = hits.get(hits_max as usize).copied().unwrap_or(usize::MAX);
            let want: Vec<_> = (0..by_lines.len())
                .filter(|&idx| idx < next && kept.iter().any(|hit| hit.abs_diff(idx) <= context))
                .map(|idx| {
                    let mark = if kept.contains(&idx) { ':' } else { '-' };
                    format!("{}{mark}{}", idx + 1, by_lines[idx])
                })
                .collect();
            for step in [1, 5, 17, 4096] {
                let found = search(text.as_bytes(), step, "hit", context, hits_max);
                assert_eq!(rows(&found), want, "{text:?} {context} {hits_max}");
                assert_eq!((found.count, found.is_count_open), (hits.len() as u64, false));
            }
        }
    }

    #[test]
    fn counting_ends_a_thousand_matches_after_the_last_kept_one() {
        let found = search("hit\n".repeat(5_000).as_bytes(), 4096, "hit", 0, 3);
        assert_eq!((found.rows.len(), found.count, found.is_count_open), (3, 1_003, true));
    }

    #[test]
    fn a_long_line_is_a_window_around_its_match() {
        let line = format!("{}needle{}\n", "\u{e9}".repeat(50_000), "\u{e9}".repeat(60_000));
        let found = search(line.as_bytes(), 4096, "needle", 0, 9);
        let side = "\u{e9}".repeat(123);
        assert_eq!(
            rows(&found),
            [format!("1:[from column 99753] {side}\u{e9}needle{side} [119754 bytes more]")]
        );
        assert_eq!(window(&[b'a'; 501], (0, 1)), format!("{} [1 byte more]", "a".repeat(500)));
        assert_eq!(
            window(&[b'a'; 501], (501, 501)),
            format!("[from column 2] {}", "a".repeat(500))
        );
        assert_eq!(window(&[0xbf; 600], (300, 301)).matches("\\xbf").count(), 500);
    }
}

//! A window of lines out of a stream of bytes, in bounded memory.
//!
//! [`Scan`] is fed chunks and keeps only the lines that were asked for; everything before them is
//! counted, not kept. Any way of cutting the same bytes into chunks yields the same window. It
//! does no input or output and does not know where the bytes come from.

use crate::text;
use crate::workspace::encoding;

/// As much of one line as is shown when the line alone is over the limit.
pub const PIECE_BYTES_MAX: usize = 8 * 1024;

/// Which lines are wanted. Lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ask {
    pub offset: u64,
    pub lines_max: u64,
    /// The byte of the first line at which to begin.
    pub column: u64,
    /// Bound on the shown text, `prefix_bytes` and a line break for every line included.
    pub bytes_max: usize,
    pub prefix_bytes: usize,
}

/// Why the window ends where it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// Nothing follows.
    File,
    Lines,
    Bytes,
    /// The first line is over the limit by itself: bytes `from..to` of it are shown.
    Cut {
        from: u64,
        to: u64,
        line_bytes: u64,
    },
    /// The first line ends before the column; it has so many bytes.
    ColumnBeyond {
        line_bytes: u64,
    },
}

/// The first shown byte that is not UTF-8, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BadBytes {
    pub count: u64,
    pub line: u64,
    pub byte: u8,
    pub guess: &'static str,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub first_line: u64,
    /// Without line ends; bytes that are not UTF-8 are marked.
    pub lines: Vec<String>,
    pub end: End,
    /// Lines in the whole input; known only when all of it was fed.
    pub lines_total: Option<u64>,
    pub bad: Option<BadBytes>,
}

/// The state between chunks.
pub struct Scan {
    ask: Ask,
    /// Line ends seen.
    ends: u64,
    /// Bytes since the last line end.
    line_bytes: u64,
    /// The wanted part of the line that is being read.
    kept: Vec<u8>,
    lines: Vec<String>,
    /// Bytes of `ask.bytes_max` that `lines` takes.
    spent: usize,
    end: Option<End>,
    /// Something follows the window.
    more: bool,
    bad: Option<BadBytes>,
}

impl Scan {
    pub fn new(ask: Ask) -> Scan {
        Scan {
            ask,
            ends: 0,
            line_bytes: 0,
            kept: Vec::new(),
            lines: Vec::new(),
            spent: 0,
            end: None,
            more: false,
            bad: None,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = match self.end {
                Some(_) => {
                    self.more = true;
                    self.count(bytes);
                    &[]
                }
                None if self.ends + 1 < self.ask.offset => self.skip(bytes),
                None => self.collect(bytes),
            };
        }
    }

    /// Whether more bytes could change only the total number of lines.
    pub fn is_done(&self) -> bool {
        self.end.is_some() && self.more
    }

    /// Ends the input when `is_whole`, else stops before its end.
    pub fn finish(mut self, is_whole: bool) -> Window {
        if self.end.is_none() && self.line_bytes > 0 && self.ask.offset <= self.ends + 1 {
            self.end_line(false);
        }
        let end = match self.end {
            Some(End::Lines) if !self.more => End::File,
            Some(end) => end,
            None => End::File,
        };
        Window {
            first_line: self.ask.offset,
            lines: self.lines,
            end,
            lines_total: is_whole.then_some(self.ends + u64::from(self.line_bytes > 0)),
            bad: self.bad,
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.ends += memchr::memchr_iter(b'\n', bytes).count() as u64;
        match memchr::memrchr(b'\n', bytes) {
            Some(last) => self.line_bytes = (bytes.len() - last - 1) as u64,
            None => self.line_bytes += bytes.len() as u64,
        }
    }

    /// Goes to the first wanted line, or through all of `bytes`; returns what is left.
    fn skip<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let missing = self.ask.offset - 1 - self.ends;
        // Counting is several times faster than visiting each line end.
        if (memchr::memchr_iter(b'\n', bytes).count() as u64) < missing {
            self.count(bytes);
            return &[];
        }
        let nth = usize::try_from(missing - 1).unwrap_or(usize::MAX);
        let Some(last) = memchr::memchr_iter(b'\n', bytes).nth(nth) else { return &[] };
        self.ends += missing;
        self.line_bytes = 0;
        &bytes[last + 1..]
    }

    /// Takes one line or the part of it that is there; returns what is left.
    fn collect<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let line_end = memchr::memchr(b'\n', bytes);
        let part = &bytes[..line_end.unwrap_or(bytes.len())];
        let whole = self.line_bytes + part.len() as u64;
        if !self.lines.is_empty() && (self.ask.bytes_max - self.spent) as u64 <= whole {
            // No need to find its end: it does not fit, and another one stands already.
            self.end = Some(End::Bytes);
            return bytes;
        }
        self.keep(part);
        self.line_bytes = whole;
        match line_end {
            Some(at) => {
                self.end_line(true);
                self.ends += 1;
                self.line_bytes = 0;
                &bytes[at + 1..]
            }
            None => &[],
        }
    }

    /// Bytes of the present line that are not wanted: only the first line has a column.
    fn skipped(&self) -> u64 {
        if self.lines.is_empty() { self.ask.column.saturating_sub(1) } else { 0 }
    }

    /// Keeps of the next part of a line what may be shown.
    fn keep(&mut self, part: &[u8]) {
        let start = self.skipped().saturating_sub(self.line_bytes);
        let part = part.get(usize::try_from(start).unwrap_or(usize::MAX)..).unwrap_or_default();
        // One more than the limit, so that a line over it is seen to be.
        let room = (self.ask.bytes_max + 1).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
    }

    /// Shows the line that was kept, or ends the window.
    fn end_line(&mut self, has_end: bool) {
        let mut line = std::mem::take(&mut self.kept);
        let number = self.ask.offset + self.lines.len() as u64;
        let skipped = self.skipped();
        if skipped > 0 && self.line_bytes <= skipped {
            self.end = Some(End::ColumnBeyond { line_bytes: self.line_bytes });
            return;
        }
        let is_whole = line.len() as u64 + skipped == self.line_bytes;
        if is_whole && has_end && line.last() == Some(&b'\r') {
            line.pop();
        }
        let mark = "\u{feff}".as_bytes();
        let is_marked = number == 1 && skipped == 0 && line.starts_with(mark);
        let line = &line[if is_marked { mark.len() } else { 0 }..];
        let shown = text::decode_lossy(line);
        let cost = self.ask.prefix_bytes + shown.len() + 1;
        if is_whole && self.spent + cost <= self.ask.bytes_max {
            self.spent += cost;
            self.note_bad(line, number);
            self.lines.push(shown.into_owned());
            if self.lines.len() as u64 == self.ask.lines_max {
                self.end = Some(End::Lines);
            }
        } else if self.lines.is_empty() {
            let room = self.ask.bytes_max.saturating_sub(self.ask.prefix_bytes + 1);
            let piece = piece(line, room.min(PIECE_BYTES_MAX));
            let from = skipped + if is_marked { mark.len() as u64 } else { 0 };
            let to = from + piece.len() as u64;
            self.note_bad(piece, number);
            self.lines.push(text::decode_lossy(piece).into_owned());
            self.end = Some(End::Cut { from, to, line_bytes: self.line_bytes });
        } else {
            self.end = Some(End::Bytes);
        }
    }

    fn note_bad(&mut self, line: &[u8], number: u64) {
        if std::str::from_utf8(line).is_ok() {
            return;
        }
        for chunk in line.utf8_chunks() {
            let Some(&byte) = chunk.invalid().first() else { continue };
            let bad = self.bad.get_or_insert_with(|| BadBytes {
                count: 0,
                line: number,
                byte,
                guess: encoding::guess(line),
            });
            bad.count += chunk.invalid().len() as u64;
        }
    }
}

/// The start of `line` that fits into `bytes_max`, marks included, and cuts no character.
fn piece(line: &[u8], bytes_max: usize) -> &[u8] {
    let mut end = 0;
    let mut shown = 0;
    for chunk in line.utf8_chunks() {
        let valid = text::floor_char(chunk.valid(), bytes_max - shown);
        shown += valid.len();
        end += valid.len();
        if valid.len() < chunk.valid().len() {
            break;
        }
        // A bad byte is shown as four.
        let bad = chunk.invalid().len().min((bytes_max - shown) / 4);
        shown += bad * 4;
        end += bad;
        if bad < chunk.invalid().len() {
            break;
        }
    }
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(offset: u64, lines_max: u64, bytes_max: usize) -> Ask {
        Ask { offset, lines_max, column: 1, bytes_max, prefix_bytes: 0 }
    }

    fn window(pieces: &[&[u8]], ask: Ask) -> Window {
        let mut scan = Scan::new(ask);
        pieces.iter().for_each(|piece| scan.push(piece));
        scan.finish(true)
    }

    /// Every cut of the input into two chunks, and one chunk per byte.
    #[track_caller]
    fn check(input: &[u8], ask: Ask, lines: &[&str], end: End, total: u64) {
        let compare = |pieces: &[&[u8]]| {
            let got = window(pieces, ask);
            let shown: Vec<_> = got.lines.iter().map(String::as_str).collect();
            assert_eq!(
                (&shown[..], got.end, got.lines_total),
                (lines, end, Some(total)),
                "{pieces:?}"
            );
        };
        (0..=input.len()).for_each(|cut| compare(&[&input[..cut], &input[cut..]]));
        compare(&input.chunks(1).collect::<Vec<_>>());
    }

    #[test]
    fn lines_are_counted_without_a_phantom() {
        check(b"", ask(1, 9, 99), &[], End::File, 0);
        check(b"\n", ask(1, 9, 99), &[""], End::File, 1);
        check(b"a", ask(1, 9, 99), &["a"], End::File, 1);
        check(b"a\n", ask(1, 9, 99), &["a"], End::File, 1);
        check(b"a\n\n", ask(1, 9, 99), &["a", ""], End::File, 2);
        check(b"a\r\nb\rc\r\nd\r", ask(1, 9, 99), &["a", "b\rc", "d\r"], End::File, 3);
        check("\u{feff}a\n\u{feff}b".as_bytes(), ask(1, 9, 99), &["a", "\u{feff}b"], End::File, 2);
    }

    #[test]
    fn windows_start_and_stop_where_they_should() {
        let five = b"one\ntwo\nthree\nfour\nfive";
        check(five, ask(2, 2, 99), &["two", "three"], End::Lines, 5);
        check(five, ask(4, 2, 99), &["four", "five"], End::File, 5);
        check(five, ask(5, 1, 99), &["five"], End::File, 5);
        check(five, ask(6, 1, 99), &[], End::File, 5);
        check(five, ask(99, 1, 99), &[], End::File, 5);
        check(b"a\nb\n", ask(2, 1, 99), &["b"], End::File, 2);
        check(b"a\nb\n", ask(3, 1, 99), &[], End::File, 2);
        // The limit in bytes counts a line break for every line.
        check(five, ask(1, 9, 8), &["one", "two"], End::Bytes, 5);
        check(five, ask(1, 9, 7), &["one"], End::Bytes, 5);
        check(b"one\ntwo", ask(1, 9, 8), &["one", "two"], End::File, 2);
        check(b"one\ntwo", ask(1, 9, 7), &["one"], End::Bytes, 2);
        check(b"one\ntwo\n", ask(1, 2, 8), &["one", "two"], End::File, 2);
        let prefixed = Ask { prefix_bytes: 4, ..ask(1, 9, 16) };
        check(five, prefixed, &["one", "two"], End::Bytes, 5);
    }

    #[test]
    fn a_line_over_the_limit_is_shown_in_pieces_that_join() {
        let line = "ab\u{754c}\u{e9}cd\u{1f980}".repeat(20);
        let input = format!("x\n{line}\nend\n");
        let mut column = 1;
        let mut joined = String::new();
        loop {
            let got = window(&[input.as_bytes()], Ask { column, ..ask(2, 5, 33) });
            assert_eq!(got.lines_total, Some(3));
            joined.push_str(&got.lines[0]);
            let End::Cut { from, to, line_bytes } = got.end else {
                assert_eq!((got.end, &got.lines[1..]), (End::File, &["end".to_owned()][..]));
                break;
            };
            assert_eq!((from + 1, line_bytes), (column, line.len() as u64));
            assert!(got.lines[0].len() <= 32 && column <= to, "{got:?}");
            column = to + 1;
        }
        assert_eq!(joined, line);
        let cut = |from, to| End::Cut { from, to, line_bytes: 8 };
        check(b"abcdefgh\nx\n", ask(1, 9, 5), &["abcd"], cut(0, 4), 2);
        let later = Ask { column: 4, ..ask(1, 9, 5) };
        check(b"abcdefgh\nx\n", later, &["defg"], cut(3, 7), 2);
        let beyond = Ask { column: 9, ..ask(1, 9, 99) };
        check(b"abcdefgh\nx\n", beyond, &[], End::ColumnBeyond { line_bytes: 8 }, 2);
        let last = Ask { column: 8, ..ask(1, 9, 99) };
        check(b"abcdefgh\nx\n", last, &["h", "x"], End::File, 2);
    }

    #[test]
    fn bytes_that_are_not_text_are_marked_and_counted() {
        let got = window(&[b"n = 7\n# gar\xe7on\n\xff\xfe\n"], ask(1, 9, 99));
        assert_eq!(got.lines, ["n = 7", "# gar\\xe7on", "\\xff\\xfe"]);
        let guess = "perhaps Latin-1 or Windows-1252";
        assert_eq!(got.bad, Some(BadBytes { count: 3, line: 2, byte: 0xe7, guess }));
        // Marks count towards the limit, and a piece is cut between them.
        let cut = End::Cut { from: 0, to: 2, line_bytes: 9 };
        check(&[0xff; 9], ask(1, 9, 11), &["\\xff\\xff"], cut, 1);
    }

    #[test]
    fn a_scan_that_stops_early_knows_no_total() {
        let mut scan = Scan::new(ask(1, 1, 99));
        scan.push(b"a\n");
        assert!(!scan.is_done(), "whether anything follows is not known");
        scan.push(b"b");
        assert!(scan.is_done());
        let got = scan.finish(false);
        assert_eq!((got.end, got.lines_total), (End::Lines, None));
    }
}

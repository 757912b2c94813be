//! The lines of a file of any size through one buffer, each with its number.
//!
//! Memory is bounded by the longest line, and that by [`LINE_BYTES_MAX`]; a longer one is passed
//! over without being held.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The longest line that is written or read.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// One gulp from the file.
const CHUNK_BYTES: usize = 256 * 1024;

pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// What is read and not yet given out is `buffer[start..end]`.
    start: usize,
    end: usize,
    number: u64,
    line_bytes_max: usize,
}

/// A line without its newline.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// From 1.
    pub number: u64,
    /// `None` when it is longer than [`LINE_BYTES_MAX`].
    pub bytes: Option<&'a [u8]>,
    pub length: u64,
    /// False for a last line that no newline ends.
    pub ended: bool,
}

/// Opens a file to read. A pipe or a device is refused: it may never end.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    check_regular(path)?;
    File::open(path)
}

/// Refuses what is no regular file without opening it: that alone may block.
pub(super) fn check_regular(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path)?.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

impl<R: Read> Lines<R> {
    pub fn new(source: R) -> Lines<R> {
        Lines::with_limit(source, LINE_BYTES_MAX)
    }

    fn with_limit(source: R, line_bytes_max: usize) -> Lines<R> {
        let buffer = vec![0; CHUNK_BYTES];
        Lines { source, buffer, start: 0, end: 0, number: 0, line_bytes_max }
    }

    /// The next line, `None` at the end of the file.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = self.start;
        loop {
            if let Some(offset) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let (start, end) = (self.start, searched + offset);
                self.start = end + 1;
                return Ok(Some(self.line(start, end, true)));
            }
            if self.end - self.start > self.line_bytes_max {
                return self.pass_over().map(Some);
            }
            searched = self.end - self.start;
            let got = self.fill()?;
            if got == 0 {
                let (start, end) = (self.start, self.end);
                self.start = end;
                return Ok((start < end).then(|| self.line(start, end, false)));
            }
        }
    }

    fn line(&mut self, start: usize, end: usize, ended: bool) -> Line<'_> {
        self.number += 1;
        let bytes = &self.buffer[start..end];
        Line { number: self.number, bytes: Some(bytes), length: bytes.len() as u64, ended }
    }

    /// Moves what is left to the front and reads behind it.
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < CHUNK_BYTES / 2 {
            let size = (self.buffer.len() * 2).min(self.line_bytes_max + 2 * CHUNK_BYTES);
            self.buffer.resize(size, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(got) => {
                    self.end += got;
                    return Ok(got);
                }
            }
        }
    }

    fn pass_over(&mut self) -> io::Result<Line<'_>> {
        let mut length = 0;
        let mut ended = false;
        loop {
            let held = &self.buffer[self.start..self.end];
            if let Some(offset) = memchr::memchr(b'\n', held) {
                length += offset;
                self.start += offset + 1;
                ended = true;
                break;
            }
            length += held.len();
            self.start = self.end;
            if self.fill()? == 0 {
                break;
            }
        }
        self.buffer.truncate(self.end.max(CHUNK_BYTES));
        self.buffer.shrink_to_fit();
        self.number += 1;
        Ok(Line { number: self.number, bytes: None, length: length as u64, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives out at most `step` bytes a read.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    type Seen = (u64, Option<Vec<u8>>, u64, bool);

    fn all(bytes: &[u8], step: usize, line_bytes_max: usize) -> Vec<Seen> {
        let mut lines = Lines::with_limit(Slow(bytes, step), line_bytes_max);
        let mut out = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            out.push((line.number, line.bytes.map(<[u8]>::to_vec), line.length, line.ended));
        }
        out
    }

    #[test]
    fn lines_are_whole_however_the_file_is_read() {
        let text = b"one\n\ntwo and more\nlast";
        let want = vec![
            (1, Some(b"one".to_vec()), 3, true),
            (2, Some(Vec::new()), 0, true),
            (3, Some(b"two and more".to_vec()), 12, true),
            (4, Some(b"last".to_vec()), 4, false),
        ];
        for step in 1..=text.len() {
            assert_eq!(all(text, step, LINE_BYTES_MAX), want, "in steps of {step}");
        }
        assert_eq!(all(b"", 1, 9), vec![]);
        assert_eq!(all(b"\n", 1, 9), vec![(1, Some(Vec::new()), 0, true)]);
    }

    #[test]
    fn a_line_over_the_limit_is_passed_over_and_the_next_one_read() {
        const MAX: usize = 3 * CHUNK_BYTES;
        for length in [MAX - 1, MAX, MAX + 2 * CHUNK_BYTES, 9 * CHUNK_BYTES] {
            let line = vec![b'x'; length];
            let text = [b"a\n", &line[..], b"\nb\n"].concat();
            let held = (length <= MAX).then_some(line);
            let long = (2, held, length as u64, true);
            let b = (3, Some(b"b".to_vec()), 1, true);
            for step in [CHUNK_BYTES / 3, usize::MAX] {
                let want = [(1, Some(b"a".to_vec()), 1, true), long.clone(), b.clone()];
                assert!(all(&text, step, MAX) == want, "{length} in steps of {step}");
                let cut = all(&text[..text.len() - 3], step, MAX).pop().unwrap();
                assert!(cut == (2, long.1.clone(), length as u64, false), "{length}");
            }
        }
    }
}

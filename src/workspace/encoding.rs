//! Which files are text: one answer for every tool that shows or changes text.
//!
//! The answer depends on the first [`HEAD_BYTES`] of a file alone, so that a tool that streams
//! and a tool that holds the whole file agree. Text is UTF-8, with or without a byte order mark;
//! single bytes that are not UTF-8 are allowed as long as the rest is clearly text. Nothing is
//! ever converted.

use std::fmt;

/// As much as git looks at.
pub const HEAD_BYTES: usize = 8 * 1024;

/// Above this share of bytes that no text has, a file is not text (what Perl's `-T` uses).
const ODD_PERCENT_MAX: usize = 30;

/// Why a file is not taken for text; displays as `binary (a NUL byte at offset 7)` or similar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotText {
    /// UTF-16 or UTF-32: its name and how that shows.
    Wide { name: &'static str, sign: &'static str },
    /// A known format, by its first bytes.
    Format(&'static str),
    /// The offset of the first NUL.
    Nul(usize),
    /// Mostly bytes that are neither UTF-8 nor plain characters; the first one of them.
    Odd { byte: u8, offset: usize, guess: &'static str },
}

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotText::Wide { name, sign } => write!(f, "{name} text ({sign})"),
            NotText::Format(name) => write!(f, "binary ({name})"),
            NotText::Nul(offset) => write!(f, "binary (a NUL byte at offset {offset})"),
            NotText::Odd { byte, offset, .. } if byte.is_ascii() => {
                write!(f, "binary (the control character 0x{byte:02x} at offset {offset})")
            }
            NotText::Odd { byte, offset, guess } => {
                write!(f, "not UTF-8 (byte 0x{byte:02x} at offset {offset}; {guess})")
            }
        }
    }
}

impl NotText {
    /// What can be done about it with a shell.
    pub fn advice(&self) -> &'static str {
        match self {
            NotText::Format(_) | NotText::Nul(_) => "inspect it with a tool for its format",
            NotText::Odd { byte, .. } if byte.is_ascii() => "inspect it with a tool for its format",
            NotText::Wide { .. } | NotText::Odd { .. } => {
                "convert a copy to UTF-8 with iconv to work on it"
            }
        }
    }
}

/// First bytes of formats that may have no NUL where we look, or whose name helps.
const FORMATS: &[(&[u8], &str)] = &[
    (b"%PDF-", "PDF document"),
    (b"\x89PNG\r\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"PK\x03\x04", "ZIP archive or a format made of one"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "ELF program or library"),
    (b"SQLite format 3", "SQLite database"),
    (b"\0asm", "WebAssembly module"),
];

/// Says whether a file that begins with `head` is text. `head` is the whole file or at least
/// [`HEAD_BYTES`] of it; more changes nothing.
pub fn judge(head: &[u8]) -> Result<(), NotText> {
    let is_cut = HEAD_BYTES <= head.len();
    let head = &head[..head.len().min(HEAD_BYTES)];
    if let Some((name, sign)) = wide(head) {
        return Err(NotText::Wide { name, sign });
    }
    if let Some((magic, name)) = FORMATS.iter().find(|(magic, _)| head.starts_with(magic)) {
        // Short magic of printable letters also begins ordinary words.
        let is_plain = magic.iter().all(u8::is_ascii_graphic) && std::str::from_utf8(head).is_ok();
        if !is_plain || magic.starts_with(b"%PDF") {
            return Err(NotText::Format(name));
        }
    }
    if let Some(offset) = memchr::memchr(0, head) {
        return Err(NotText::Nul(offset));
    }
    let odd = odd_bytes(head, is_cut);
    match odd.first {
        Some((offset, byte)) if ODD_PERCENT_MAX * head.len() < odd.count * 100 => {
            Err(NotText::Odd { byte, offset, guess: odd.guess() })
        }
        _ => Ok(()),
    }
}

/// A guess at the encoding of bytes that are not UTF-8, from the first bad run in `bytes`.
pub fn guess(bytes: &[u8]) -> &'static str {
    odd_bytes(bytes, true).guess()
}

fn wide(head: &[u8]) -> Option<(&'static str, &'static str)> {
    const MARK: &str = "byte order mark at offset 0";
    const ZEROS: &str = "a NUL in every second byte";
    match head {
        [0xff, 0xfe, 0, 0, ..] => return Some(("UTF-32LE", MARK)),
        [0, 0, 0xfe, 0xff, ..] => return Some(("UTF-32BE", MARK)),
        [0xff, 0xfe, ..] => return Some(("UTF-16LE", MARK)),
        [0xfe, 0xff, ..] => return Some(("UTF-16BE", MARK)),
        _ => {}
    }
    // Without a mark: mostly ASCII, so that one byte of nearly every pair is NUL.
    let (pairs, _) = head.as_chunks::<2>();
    let most = pairs.len() - pairs.len() / 5;
    let is_zero = |idx: usize| {
        let zeros = pairs.iter().filter(|pair| pair[idx] == 0 && pair[1 - idx] != 0);
        most <= zeros.count()
    };
    match pairs.len() {
        0..4 => None,
        _ if is_zero(1) => Some(("UTF-16LE", ZEROS)),
        _ if is_zero(0) => Some(("UTF-16BE", ZEROS)),
        _ => None,
    }
}

struct Odd {
    count: usize,
    first: Option<(usize, u8)>,
    /// Runs of bytes above ASCII around what is not UTF-8: of one byte, and longer.
    single_runs: usize,
    long_runs: usize,
}

impl Odd {
    fn guess(&self) -> &'static str {
        match self.first {
            Some((_, byte)) if byte.is_ascii() => "control characters",
            _ if self.single_runs < self.long_runs => {
                "perhaps GBK, Shift-JIS or another encoding of several bytes"
            }
            _ => "perhaps Latin-1 or Windows-1252",
        }
    }
}

/// Counts the bytes that text does not have: not UTF-8, or control characters that are not in
/// use. An unfinished character at the end of a cut head is none.
fn odd_bytes(head: &[u8], is_cut: bool) -> Odd {
    let mut odd = Odd { count: 0, first: None, single_runs: 0, long_runs: 0 };
    let mut offset = 0;
    let mut run = 0;
    for chunk in head.utf8_chunks() {
        let valid = chunk.valid().as_bytes();
        for (idx, &byte) in valid.iter().enumerate() {
            if matches!(byte, 0..=7 | 14..=26 | 28..=31 | 127) {
                odd.count += 1;
                odd.first.get_or_insert((offset + idx, byte));
            }
        }
        if !valid.is_empty() {
            odd.end_run(std::mem::take(&mut run));
        }
        offset += valid.len();
        let invalid = chunk.invalid();
        let at_end = offset + invalid.len() == head.len();
        let unfinished = is_cut && at_end && invalid.first().is_some_and(|&byte| 0xc2 <= byte);
        if let (Some(&byte), false) = (invalid.first(), unfinished) {
            odd.count += invalid.len();
            odd.first.get_or_insert((offset, byte));
            run += invalid.len();
        }
        offset += invalid.len();
    }
    odd.end_run(run);
    odd
}

impl Odd {
    fn end_run(&mut self, run: usize) {
        match run {
            0 => {}
            1 => self.single_runs += 1,
            _ => self.long_runs += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &[u8], want: &str) {
        let got = judge(head).map_or_else(|reason| reason.to_string(), |()| "text".to_owned());
        assert_eq!(got, want, "{:?}", String::from_utf8_lossy(&head[..head.len().min(40)]));
    }

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn text_is_told_from_what_is_not() {
        check(b"", "text");
        check(b"fn main() {}\n", "text");
        check("\u{feff}mit BOM, Z\u{fc}rich \u{754c}\u{1f980}\r\n".as_bytes(), "text");
        check("really \u{fffd} in it".as_bytes(), "text");
        check(b"\x1b[31mred\x1b[0m\x0c\x08 log\r\n", "text");
        check(b"n = 7\n# gar\xe7on\n", "text");
        check(b"PK is a word\nGIF87 too, BZhou\n", "text");
        check(
            b"n = 7\n\xb2\xe2\xca\xd4",
            "not UTF-8 (byte 0xb2 at offset 6; perhaps GBK, \
            Shift-JIS or another encoding of several bytes)",
        );
        check(b"\xe9", "not UTF-8 (byte 0xe9 at offset 0; perhaps Latin-1 or Windows-1252)");
        check(b"\x01\x02\x03ab", "binary (the control character 0x01 at offset 0)");
        check(b"\0", "binary (a NUL byte at offset 0)");
        check(b"abc\0def", "binary (a NUL byte at offset 3)");
        check(b"%PDF-1.7\nplain", "binary (PDF document)");
        check(b"\x89PNG\r\n\x1a\n\0\0", "binary (PNG image)");
        check(b"\x7fELF\x02\x01\x01\0", "binary (ELF program or library)");
        let marked = utf16("\u{feff}n = 7\n", u16::to_le_bytes);
        check(&marked, "UTF-16LE text (byte order mark at offset 0)");
        let marked = utf16("\u{feff}n = 7\n", u16::to_be_bytes);
        check(&marked, "UTF-16BE text (byte order mark at offset 0)");
        check(&utf16("n = 7\n", u16::to_le_bytes), "UTF-16LE text (a NUL in every second byte)");
        check(&utf16("n = 7\n", u16::to_be_bytes), "UTF-16BE text (a NUL in every second byte)");
        check(b"\xff\xfe\0\0n\0\0\0", "UTF-32LE text (byte order mark at offset 0)");
    }

    #[test]
    fn only_the_head_decides_and_a_cut_character_does_not_count() {
        let mut bytes = vec![b'a'; HEAD_BYTES];
        bytes.push(0);
        check(&bytes, "text");
        // Every alignment of a text of three-byte characters at the cut.
        for shift in 0..3 {
            let text = "a".repeat(shift) + &"\u{754c}".repeat(HEAD_BYTES / 2);
            check(text.as_bytes(), "text");
            check(&text.as_bytes()[..HEAD_BYTES], "text");
        }
        // But a small file that ends in the middle of a character has a bad byte.
        check(
            b"\xe7\x95",
            "not UTF-8 (byte 0xe7 at offset 0; perhaps GBK, \
            Shift-JIS or another encoding of several bytes)",
        );
    }
}

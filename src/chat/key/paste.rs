//! A bracketed paste while it comes in.

use super::PASTE_BYTES_MAX;

const END: &[u8] = b"\x1b[201~";

/// Holds at most [`PASTE_BYTES_MAX`]; what comes beyond is counted and dropped.
#[derive(Debug, Default)]
pub struct Paste {
    bytes: Vec<u8>,
    /// How much of [`END`] came, which is not in `bytes`.
    matched: usize,
    cut_bytes: usize,
}

impl Paste {
    /// Takes bytes from the front of `rest`, which is not empty, and gives back the others.
    pub fn take<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        if self.matched == 0 {
            let plain = memchr::memchr(END[0], rest).unwrap_or(rest.len());
            self.keep(&rest[..plain]);
            self.matched = usize::from(plain < rest.len());
            return &rest[plain + self.matched..];
        }
        if rest.first() == END.get(self.matched) {
            self.matched += 1;
            return &rest[1..];
        }
        let matched = std::mem::take(&mut self.matched);
        self.keep(&END[..matched]);
        rest
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = PASTE_BYTES_MAX - self.bytes.len();
        let (kept, cut) = bytes.split_at(room.min(bytes.len()));
        self.bytes.extend_from_slice(kept);
        self.cut_bytes += cut.len();
    }

    pub fn is_ended(&self) -> bool {
        self.matched == END.len()
    }

    /// What may be the start of the end.
    pub fn end_so_far(&self) -> &'static [u8] {
        &END[..self.matched]
    }

    pub fn cut_bytes(&self) -> usize {
        self.cut_bytes
    }

    /// The text, with `\n` for every kind of line end, and without other control characters than
    /// tabs and without what is no UTF-8.
    pub fn into_text(self) -> String {
        let mut text = String::with_capacity(self.bytes.len());
        let mut after_cr = false;
        for chunk in self.bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                let behind_cr = std::mem::replace(&mut after_cr, c == '\r');
                match c {
                    '\n' if behind_cr => {}
                    '\r' => text.push('\n'),
                    '\n' | '\t' => text.push(c),
                    c if c.is_control() => {}
                    c => text.push(c),
                }
            }
        }
        text
    }
}

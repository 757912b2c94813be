//! Server-sent events: bytes in, events out.
//!
//! Knows lines and fields, nothing of JSON or of any vendor's end mark. Any way of cutting the
//! same bytes into [`Decoder::push`] calls yields the same events: a line is decoded only when it
//! is whole, so a cut inside a character does no harm. Takes LF, CRLF and lone CR, a byte order
//! mark, comments, several `data:` lines, and an end without the last blank line. One event may
//! hold [`EVENT_BYTES_MAX`] bytes.

use std::fmt;

use memchr::memchr2;

/// Bound on one event: its unfinished line and its data.
pub const EVENT_BYTES_MAX: usize = 8 << 20;

/// One event. An event without any data is not given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event:` field; empty when there was none.
    pub name: &'a str,
    /// The `data:` lines, joined by LF.
    pub data: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseError {
    TooLarge { bytes_max: usize },
    InvalidUtf8,
}

impl fmt::Display for SseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SseError::TooLarge { bytes_max } => {
                write!(f, "one event of the stream is larger than {} MiB", bytes_max >> 20)
            }
            SseError::InvalidUtf8 => f.write_str("the stream holds bytes that are no UTF-8"),
        }
    }
}

/// An incremental decoder; plain data, it never waits.
pub struct Decoder {
    /// The unfinished line.
    line: Vec<u8>,
    /// The last byte was CR: an LF that follows belongs to it.
    after_cr: bool,
    /// No line has ended yet: a byte order mark may lead.
    first_line: bool,
    name: String,
    /// `None`: no data field since the last blank line.
    data: Option<String>,
    bytes_max: usize,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::with_limit(EVENT_BYTES_MAX)
    }
}

impl Decoder {
    pub fn with_limit(bytes_max: usize) -> Decoder {
        Decoder {
            line: Vec::new(),
            after_cr: false,
            first_line: true,
            name: String::new(),
            data: None,
            bytes_max,
        }
    }

    /// Takes the next bytes and hands every event that they complete to `sink`. An error, the
    /// sink's own included, ends the stream: the decoder must not be used after it.
    pub fn push<E: From<SseError>>(
        &mut self,
        bytes: &[u8],
        sink: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.hold(rest)?;
                return Ok(());
            };
            let (head, tail) = (&rest[..end], &rest[end + 1..]);
            self.after_cr = rest[end] == b'\r';
            rest = tail;
            if self.line.is_empty() {
                self.check_size(head.len())?;
                if self.whole_event(head, tail, sink)? {
                    continue;
                }
                self.end_line(head, sink)?;
            } else {
                self.hold(head)?;
                let line = std::mem::take(&mut self.line);
                self.end_line(&line, sink)?;
                self.line = line; // keeps its capacity
                self.line.clear();
            }
        }
        Ok(())
    }

    /// The end of the stream: an unfinished event is given out as if its blank line had come.
    pub fn finish<E: From<SseError>>(
        &mut self,
        sink: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.end_line(&line, sink)?;
        }
        self.dispatch(sink)
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        self.check_size(self.line.len() + bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// The usual event, one data line and a blank line, given out without a copy. `tail` follows
    /// the line's end. False: this is no such event, and nothing was done.
    fn whole_event<E: From<SseError>>(
        &mut self,
        line: &[u8],
        tail: &[u8],
        sink: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let blank_follows = match tail {
            [b'\n', b'\n' | b'\r', ..] if self.after_cr => true,
            [b'\n', ..] => !self.after_cr,
            [b'\r', ..] => true,
            _ => false,
        };
        if !blank_follows || self.data.is_some() || self.first_line {
            return Ok(false);
        }
        let Some(value) = line.strip_prefix(b"data:") else { return Ok(false) };
        let data = utf8(value.strip_prefix(b" ").unwrap_or(value))?;
        sink(Event { name: &self.name, data })?;
        self.name.clear();
        // The blank line that follows finds no data and gives out nothing.
        Ok(true)
    }

    /// Of every line, whole or not: the bound too is the same for every way of cutting.
    fn check_size(&self, line_bytes: usize) -> Result<(), SseError> {
        let held = self.data.as_ref().map_or(0, String::len);
        if held + line_bytes > self.bytes_max {
            return Err(SseError::TooLarge { bytes_max: self.bytes_max });
        }
        Ok(())
    }

    fn end_line<E: From<SseError>>(
        &mut self,
        line: &[u8],
        sink: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut line = line;
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(sink);
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return Ok(()), // a comment
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.add_data(value)?,
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // Some servers name the field itself so.
            b"error" => {
                self.name = "error".to_owned();
                self.add_data(value)?;
            }
            _ => {} // `id`, `retry` and what else there may be
        }
        Ok(())
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), SseError> {
        let value = utf8(value)?;
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
        Ok(())
    }

    fn dispatch<E: From<SseError>>(
        &mut self,
        sink: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = std::mem::take(&mut self.name);
        match self.data.take() {
            Some(data) => sink(Event { name: &name, data: &data }),
            None => Ok(()),
        }
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, SseError> {
    std::str::from_utf8(bytes).map_err(|_| SseError::InvalidUtf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = Vec<(String, String)>;

    fn decode(pieces: &[&[u8]], bytes_max: usize) -> Result<Pairs, SseError> {
        let mut events = Pairs::new();
        let mut decoder = Decoder::with_limit(bytes_max);
        let mut sink = |event: Event<'_>| {
            events.push((event.name.to_owned(), event.data.to_owned()));
            Ok::<(), SseError>(())
        };
        for piece in pieces {
            decoder.push(piece, &mut sink)?;
        }
        decoder.finish(&mut sink)?;
        Ok(events)
    }

    /// Every cut into two pieces, and byte by byte.
    #[track_caller]
    fn check(stream: &[u8], want: &[(&str, &str)]) {
        let want: Pairs = want.iter().map(|(n, d)| ((*n).into(), (*d).into())).collect();
        for cut in 0..=stream.len() {
            let (one, two) = stream.split_at(cut);
            assert_eq!(decode(&[one, two], 1 << 20), Ok(want.clone()), "cut at byte {cut}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(decode(&bytes, 1 << 20), Ok(want), "byte by byte");
    }

    #[test]
    fn every_line_end_and_every_cut_yields_the_same_events() {
        for end in ["\n", "\r\n", "\r"] {
            let text = "\u{feff}: hello\n\ndata: a界🦀b\n\ndata:x\ndata\ndata:  y\n\n\
                        event: error\nid: 7\nretry: 1\ndata: {}\n\n\n\n: ping\n\nevent: lost\n\n\
                        data: last";
            let stream = text.replace('\n', end);
            check(
                stream.as_bytes(),
                &[("", "a界🦀b"), ("", "x\n\n y"), ("error", "{}"), ("", "last")],
            );
        }
    }

    #[test]
    fn mixed_line_ends_and_odd_fields_are_read() {
        check(b"data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", &[("", "a"), ("", "b"), ("", "c")]);
        check(b"error: {\"a\":1}\n\n", &[("error", "{\"a\":1}")]);
        check(b"data: a\n", &[("", "a")]);
        check(b"data:\n\n", &[("", "")]);
        check(b": only\n\n: comments\n", &[]);
        check(b"", &[]);
        check(b"data: [DONE]\r\n\r\n", &[("", "[DONE]")]);
        check(b"event: a\ndata: 1\n\ndata: 2\n\n", &[("a", "1"), ("", "2")]);
    }

    #[test]
    fn bytes_that_are_no_utf8_are_an_error_in_data_and_nowhere_else() {
        for cut in 0..12 {
            let (one, two) = b"data: a\xffb\n\n".split_at(cut.min(10));
            assert_eq!(decode(&[one, two], 1 << 20), Err(SseError::InvalidUtf8));
        }
        check(b": \xff\n\ndata: a\n\n", &[("", "a")]);
    }

    #[test]
    fn an_endless_line_or_event_is_refused() {
        let too_large = Err(SseError::TooLarge { bytes_max: 64 });
        assert_eq!(decode(&[&[b'x'; 40], &[b'x'; 40]], 64), too_large);
        let lines = "data: 0123456789\n".repeat(10);
        assert_eq!(decode(&[lines.as_bytes()], 64), too_large);
        let whole = format!("\ndata: {}\n\n", "x".repeat(80));
        assert_eq!(decode(&[whole.as_bytes()], 64), too_large);
        // Of what is no data too, and whether or not it comes in one piece.
        let comment = format!(": {}\n", "x".repeat(80));
        assert_eq!(decode(&[comment.as_bytes()], 64), too_large);
        let text = SseError::TooLarge { bytes_max: EVENT_BYTES_MAX }.to_string();
        assert_eq!(text, "one event of the stream is larger than 8 MiB");
    }

    #[test]
    fn all_short_streams_of_a_nasty_vocabulary_ignore_cuts() {
        let words: [&[u8]; 8] =
            [b"\n", b"\r", b"\r\n", b"data:", b" a", b":", b"event:e", "é".as_bytes()];
        for number in 0..8_usize.pow(5) {
            let mut stream = Vec::new();
            for place in 0..5 {
                stream.extend_from_slice(words[number / 8_usize.pow(place) % 8]);
            }
            let whole = decode(&[&stream], 1 << 20);
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            assert_eq!(whole, decode(&bytes, 1 << 20), "{:?}", String::from_utf8_lossy(&stream));
        }
    }
}

//! Splits the text of a paragraph into tokens, as it comes.
//!
//! A token is given when no more text can change it; until then [`scan`] asks for more. How far
//! it looks is bounded for every kind, and the bound counts from the token's start, so that the
//! tokens do not depend on how the text was cut.

use super::entity;
use crate::text::floor_char;

/// Bytes of a code span; a backtick whose partner is further away is a backtick.
const CODE_BYTES_MAX: usize = 1000;
const LINK_TEXT_BYTES_MAX: usize = 300;
const ADDRESS_BYTES_MAX: usize = 2000;
const TAG_BYTES_MAX: usize = 200;
/// Marks in a row that may mean something.
const RUN_MAX: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// As it stands.
    Text(&'a str),
    Char(char),
    LineEnd,
    /// With its backticks, and their number.
    Code(&'a str, usize),
    Marks(Marks),
    Link {
        text: &'a str,
        address: &'a str,
    },
    Address(&'a str),
}

/// A run of emphasis marks and what it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks {
    pub mark: char,
    pub count: usize,
    pub opens: bool,
    pub closes: bool,
}

/// The first token of `text` and its bytes; `None` when more text could change it. `before` is
/// the character before `text`.
pub(super) fn scan(text: &str, before: char, is_end: bool) -> Option<(usize, Token<'_>)> {
    let scanner = Scanner { text, before, is_end };
    match text.as_bytes().first()? {
        b'\n' => Some((1, Token::LineEnd)),
        b'\\' => scanner.escape(),
        b'&' => scanner.entity(),
        b'`' => scanner.code(),
        b'*' | b'_' | b'~' => scanner.marks(),
        b'[' => scanner.link(0),
        b'!' => scanner.image(),
        b'<' => scanner.angle(),
        b'h' if !before.is_alphanumeric() => scanner.address(),
        _ => scanner.plain(),
    }
}

struct Scanner<'a> {
    text: &'a str,
    before: char,
    is_end: bool,
}

type Scanned<'a> = Option<(usize, Token<'a>)>;

impl<'a> Scanner<'a> {
    fn literal(&self, len: usize) -> Scanned<'a> {
        Some((len, Token::Text(&self.text[..len])))
    }

    /// At most so many bytes, and whether nothing of them is still to come.
    fn window(&self, bytes_max: usize) -> (&'a str, bool) {
        let window = floor_char(self.text, bytes_max);
        (window, self.is_end || window.len() < self.text.len() || window.len() == bytes_max)
    }

    fn plain(&self) -> Scanned<'a> {
        let bytes = self.text.as_bytes();
        let first = self.text.chars().next().map_or(1, char::len_utf8);
        let is_stop = |at: usize| match bytes[at] {
            b'\n' | b'\\' | b'&' | b'`' | b'*' | b'_' | b'~' | b'[' | b'!' | b'<' => true,
            // A word may begin here that is an address.
            b'h' => !bytes[at - 1].is_ascii_alphanumeric(),
            _ => false,
        };
        self.literal((first..bytes.len()).find(|&at| is_stop(at)).unwrap_or(bytes.len()))
    }

    fn escape(&self) -> Scanned<'a> {
        match self.text[1..].chars().next() {
            Some('\n') => Some((2, Token::LineEnd)),
            Some(c) if c.is_ascii_punctuation() => Some((2, Token::Char(c))),
            None if !self.is_end => None,
            _ => self.literal(1),
        }
    }

    fn entity(&self) -> Scanned<'a> {
        let (window, is_whole) = self.window(entity::ENTITY_BYTES_MAX);
        let name = &window[1..];
        match name.find(|c: char| !c.is_ascii_alphanumeric() && c != '#') {
            Some(end) if name[end..].starts_with(';') => match entity::decode(&name[..end]) {
                Some(c) => Some((end + 2, Token::Char(c))),
                None => self.literal(1),
            },
            None if !is_whole => None,
            _ => self.literal(1),
        }
    }

    fn code(&self) -> Scanned<'a> {
        let (window, is_whole) = self.window(CODE_BYTES_MAX);
        let run = run_length(window, '`');
        let mut at = run;
        while let Some(offset) = window[at..].find('`') {
            at += offset;
            let length = run_length(&window[at..], '`');
            let is_last = at + length == window.len();
            at += length;
            if length == run && (!is_last || self.is_end || is_whole) {
                return Some((at, Token::Code(&self.text[..at], run)));
            }
        }
        if is_whole { self.literal(run) } else { None }
    }

    fn marks(&self) -> Scanned<'a> {
        let (window, _) = self.window(RUN_MAX);
        let mark = self.text.chars().next()?;
        let count = run_length(window, mark);
        if count == RUN_MAX {
            return self.literal(count);
        }
        let after = match self.text[count..].chars().next() {
            None if !self.is_end => return None,
            after => after.unwrap_or(' '),
        };
        let (before, after) = (Side::of(self.before), Side::of(after));
        // Wide text has no blanks around words: there punctuation stands as one.
        let left = !after.is_blank
            && (!after.is_sign || before.is_blank || before.is_sign || before.is_wide);
        let right = !before.is_blank
            && (!before.is_sign || after.is_blank || after.is_sign || after.is_wide);
        let (opens, closes) = match mark {
            '_' => (left && (!right || before.is_sign), right && (!left || after.is_sign)),
            '~' => (left && count == 2, right && count == 2),
            _ => (left, right),
        };
        Some((count, Token::Marks(Marks { mark, count, opens, closes })))
    }

    fn image(&self) -> Scanned<'a> {
        match self.text.as_bytes().get(1) {
            Some(b'[') => self.link(1),
            None if !self.is_end => None,
            _ => self.literal(1),
        }
    }

    /// `[text](address "title")`, or an image, which has one sign before it.
    fn link(&self, signs: usize) -> Scanned<'a> {
        let (window, is_whole) = self.window(signs + LINK_TEXT_BYTES_MAX);
        let Some(end) = closing(&window[signs..], b'[', b']') else {
            return if is_whole { self.literal(signs + 1) } else { None };
        };
        let text = &window[signs + 1..signs + end];
        let behind = signs + end + 1;
        match self.text.as_bytes().get(behind) {
            Some(b'(') => {}
            None if !self.is_end => return None,
            _ => return self.literal(signs + 1),
        }
        let rest = &self.text[behind..];
        let window = floor_char(rest, ADDRESS_BYTES_MAX);
        let line = &window[..window.find('\n').unwrap_or(window.len())];
        let is_whole = self.is_end || line.len() < rest.len() || rest.len() == ADDRESS_BYTES_MAX;
        let Some(end) = closing(line, b'(', b')') else {
            return if is_whole { self.literal(signs + 1) } else { None };
        };
        let address = target(&line[1..end]);
        Some((behind + end + 1, Token::Link { text, address }))
    }

    /// `<https://…>` or a tag of HTML, which is text.
    fn angle(&self) -> Scanned<'a> {
        match self.text[1..].chars().next() {
            Some(c) if c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?') => {}
            None if !self.is_end => return None,
            _ => return self.literal(1),
        }
        let (window, is_whole) = self.window(TAG_BYTES_MAX);
        let inner = match window.find(['>', '\n']) {
            Some(end) if window[end..].starts_with('>') => &window[1..end],
            None if !is_whole => return None,
            _ => return self.literal(1),
        };
        let is_mail = || inner.contains('@') && !inner.contains(['=', '"', '/']);
        if !inner.contains([' ', '<']) && (inner.contains("://") || is_mail()) {
            return Some((inner.len() + 2, Token::Address(inner)));
        }
        self.literal(inner.len() + 2)
    }

    /// An address without brackets, up to a blank; signs at its end belong to the sentence.
    fn address(&self) -> Scanned<'a> {
        const SCHEMES: [&str; 2] = ["http://", "https://"];
        let is_open = |scheme: &&str| scheme.starts_with(self.text) && !self.is_end;
        if !SCHEMES.iter().any(|scheme| self.text.starts_with(scheme)) {
            return if SCHEMES.iter().any(is_open) { None } else { self.plain() };
        }
        let (window, is_whole) = self.window(ADDRESS_BYTES_MAX);
        let is_stop = |c: char| c.is_whitespace() || "<>`|\\\"。，、）！？；".contains(c);
        let end = match window.find(is_stop) {
            None if !is_whole => return None,
            end => end.unwrap_or(window.len()),
        };
        let mut address = &window[..end];
        while let Some(last) = address.chars().last() {
            let is_unpaired = |open, close: char| {
                last == close && address.matches(open).count() < address.matches(close).count()
            };
            if !"?!.,:;*_~'".contains(last) && !is_unpaired('(', ')') && !is_unpaired('[', ']') {
                break;
            }
            address = &address[..address.len() - last.len_utf8()];
        }
        if address.len() < SCHEMES[0].len() + 1 {
            return self.plain();
        }
        Some((address.len(), Token::Address(address)))
    }
}

fn run_length(text: &str, mark: char) -> usize {
    text.chars().take_while(|c| *c == mark).count() * mark.len_utf8()
}

/// Where the bracket that `text` begins with is closed.
fn closing(text: &str, open: u8, close: u8) -> Option<usize> {
    let mut depth = 0usize;
    let mut escaped = false;
    // Most brackets are closed nowhere near: one quick look saves the walk.
    memchr::memchr(close, text.as_bytes())?;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            _ if byte == open => depth += 1,
            _ if byte == close => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The address of a link without its title and brackets.
fn target(inside: &str) -> &str {
    let inside = inside.trim();
    if let Some(rest) = inside.strip_prefix('<') {
        return rest.split('>').next().unwrap_or(rest);
    }
    match inside.find([' ', '\t']) {
        Some(end) if inside[end..].trim_start().starts_with(['"', '\'', '(']) => &inside[..end],
        _ => inside,
    }
}

/// What kind of character stands on one side of a run of marks.
#[derive(Clone, Copy)]
struct Side {
    is_blank: bool,
    is_sign: bool,
    is_wide: bool,
}

impl Side {
    fn of(c: char) -> Side {
        let is_blank = c.is_whitespace();
        let is_sign =
            if c.is_ascii() { c.is_ascii_punctuation() } else { !is_blank && !c.is_alphanumeric() };
        Side { is_blank, is_sign, is_wide: ('\u{2e80}'..'\u{e000}').contains(&c) }
    }
}

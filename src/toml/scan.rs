//! A cursor over the text: white space, comments, strings, bare words, and places.

use crate::text;
use crate::toml::value::{Error, Position};

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// The last place that was asked for, and its byte: the next one is counted from here.
    mark: Position,
    mark_at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0, mark: Position { line: 1, column: 1 }, mark_at: 0 }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Where the cursor stands. Places are asked for in the order of the text, so that all
    /// together cost one pass.
    pub(super) fn here(&mut self) -> Position {
        let passed = &self.text[self.mark_at..self.at];
        let lines = memchr::memchr_iter(b'\n', passed.as_bytes()).count();
        let last_line = passed.rsplit('\n').next().unwrap_or("");
        if 0 < lines {
            self.mark = Position { line: self.mark.line + lines, column: 1 };
        }
        self.mark.column += last_line.chars().count();
        self.mark_at = self.at;
        self.mark
    }

    pub(super) fn error<T>(&mut self, message: impl Into<String>) -> Result<T, Error> {
        let at = self.here();
        Err(Error { at, message: message.into() })
    }

    /// Only over bytes that are known to be whole characters.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    pub(super) fn eat(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    pub(super) fn skip_blanks(&mut self) {
        let blanks = self.rest().bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
        self.at += blanks.count();
    }

    /// LF or CRLF.
    pub(super) fn eat_line_end(&mut self) -> bool {
        self.eat("\n") || self.eat("\r\n")
    }

    /// The comment up to its line end, if one starts here.
    pub(super) fn skip_comment(&mut self) -> Result<(), Error> {
        if self.peek() != Some(b'#') {
            return Ok(());
        }
        let bytes = self.rest().as_bytes();
        let end = bytes.iter().position(|&byte| is_forbidden(byte)).unwrap_or(bytes.len());
        self.at += end;
        match self.rest().as_bytes() {
            [] | [b'\n', ..] | [b'\r', b'\n', ..] => Ok(()),
            _ => self.control_character("a comment"),
        }
    }

    /// Blanks, comments and line ends.
    pub(super) fn skip_lines(&mut self) -> Result<(), Error> {
        loop {
            self.skip_blanks();
            self.skip_comment()?;
            if !self.eat_line_end() {
                return Ok(());
            }
        }
    }

    /// The letters, digits, `_` and `-` of a bare key.
    pub(super) fn bare_key(&mut self) -> &'a str {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        self.take_while(is_part)
    }

    /// What stands up to the next sign that ends a value without quotes.
    pub(super) fn bare_value(&mut self) -> &'a str {
        let ends = |byte: &u8| {
            matches!(byte, b'#' | b',' | b'[' | b']' | b'{' | b'}' | b'=' | b'"' | b'\'')
                || byte.is_ascii_whitespace()
                || byte.is_ascii_control()
        };
        self.take_while(|byte| !ends(byte))
    }

    fn take_while(&mut self, is_part: impl Fn(&u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.as_bytes().iter().take_while(|byte| is_part(byte)).count();
        self.at += length;
        &rest[..length]
    }

    /// A string of any of the four kinds; the cursor stands on its quote.
    pub(super) fn string(&mut self) -> Result<String, Error> {
        let start = self.here();
        for (quotes, is_literal) in [("\"\"\"", false), ("'''", true)] {
            if self.eat(quotes) {
                self.eat_line_end();
                return self.string_rest(start, quotes, is_literal);
            }
        }
        match self.eat("'") {
            true => self.string_rest(start, "'", true),
            false => {
                self.advance(1);
                self.string_rest(start, "\"", false)
            }
        }
    }

    /// Behind the opening quotes.
    fn string_rest(
        &mut self,
        start: Position,
        quotes: &str,
        is_literal: bool,
    ) -> Result<String, Error> {
        let is_multiline = quotes.len() == 3;
        let quote = quotes.as_bytes()[0];
        let mut out = String::new();
        loop {
            let is_plain =
                |&byte: &u8| byte != quote && !is_forbidden(byte) && (is_literal || byte != b'\\');
            out.push_str(self.take_while(is_plain));
            match self.peek() {
                Some(byte) if byte == quote => {
                    if let Some(inner) = self.closing(quotes) {
                        out.push_str(inner);
                        return Ok(out);
                    }
                    out.push(char::from(quote));
                    self.at += 1;
                }
                Some(b'\\') if !is_literal => self.escape(is_multiline, &mut out)?,
                Some(b'\n') if is_multiline => {
                    out.push('\n');
                    self.at += 1;
                }
                Some(b'\r') if is_multiline && self.rest().starts_with("\r\n") => {
                    out.push_str("\r\n");
                    self.at += 2;
                }
                Some(b'\n') | None => return Err(unclosed(start, quotes)),
                Some(b'\r') if self.rest().starts_with("\r\n") => {
                    return Err(unclosed(start, quotes));
                }
                Some(_) => return self.control_character("a string"),
            }
        }
    }

    /// The end of the string, if it is here. Up to two quotes may stand before three closing
    /// ones and belong to the text: they are returned.
    fn closing(&mut self, quotes: &str) -> Option<&'a str> {
        let rest = self.rest();
        let run = rest.bytes().take_while(|&byte| byte == quotes.as_bytes()[0]).take(5).count();
        let inner = match quotes.len() {
            1 => 0,
            _ => run.checked_sub(3)?,
        };
        self.at += inner + quotes.len();
        Some(&rest[..inner])
    }

    /// One escape; the cursor stands on the backslash.
    fn escape(&mut self, is_multiline: bool, out: &mut String) -> Result<(), Error> {
        let after = &self.rest()[1..];
        let digits = match after.as_bytes().first() {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            Some(&byte) if simple_escape(byte).is_some() => {
                out.extend(simple_escape(byte));
                self.at += 2;
                return Ok(());
            }
            Some(b' ' | b'\t' | b'\r' | b'\n') if is_multiline => return self.line_join(),
            _ => return self.bad_escape(after.chars().next()),
        };
        let kind = &after[..1];
        let code = after.get(1..=digits).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(code) = code else {
            return self.error(format!(
                "the escape '\\{kind}' needs {digits} hex digits; {BACKSLASH_HINT}"
            ));
        };
        match u32::from_str_radix(code, 16).ok().and_then(char::from_u32) {
            Some(c) => out.push(c),
            None => return self.error(format!("'\\{kind}{code}' is no Unicode character")),
        }
        self.at += 2 + digits;
        Ok(())
    }

    /// A backslash at the end of a line swallows all white space up to the next character.
    fn line_join(&mut self) -> Result<(), Error> {
        let blanks = self.rest()[1..].bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
        let end = 1 + blanks.count();
        if !self.rest()[end..].starts_with('\n') && !self.rest()[end..].starts_with("\r\n") {
            return self.bad_escape(Some(' '));
        }
        self.at += end;
        loop {
            self.skip_blanks();
            if !self.eat_line_end() {
                return Ok(());
            }
        }
    }

    fn bad_escape<T>(&mut self, c: Option<char>) -> Result<T, Error> {
        match c {
            None | Some('\n' | '\r') => self
                .error(format!("a backslash may not end a line of this string; {BACKSLASH_HINT}")),
            Some(c) => {
                let shown = match c {
                    '\t' => "<tab>".into(),
                    _ => text::visible(c.encode_utf8(&mut [0; 4])).into_owned(),
                };
                self.error(format!("'\\{shown}' is no escape; {BACKSLASH_HINT}"))
            }
        }
    }

    fn control_character<T>(&mut self, place: &str) -> Result<T, Error> {
        let c = self.rest().chars().next().unwrap_or(' ');
        if c == '\r' {
            return self.error(format!(
                "a carriage return without a line feed stands in {place}; end lines with LF or CRLF"
            ));
        }
        self.error(format!(
            "control character U+{:04X} in {place}; {}",
            u32::from(c),
            match place {
                "a string" => format!("write it as \\u{:04x} in double quotes", u32::from(c)),
                _ => "remove it".to_owned(),
            }
        ))
    }
}

const BACKSLASH_HINT: &str = "write \\\\ for a backslash, or put the text in 'single quotes'";

fn simple_escape(byte: u8) -> Option<char> {
    Some(match byte {
        b'b' => '\x08',
        b't' => '\t',
        b'n' => '\n',
        b'f' => '\x0c',
        b'r' => '\r',
        b'e' => '\x1b',
        b'"' => '"',
        b'\\' => '\\',
        _ => return None,
    })
}

/// Control characters may not stand in comments and strings, but for the tab.
fn is_forbidden(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

fn unclosed(start: Position, quotes: &str) -> Error {
    let more = match quotes.len() {
        3 => "",
        _ => " on its line; text of several lines stands between ''' or \"\"\"",
    };
    Error {
        at: start,
        message: format!("the string that starts here has no closing {quotes}{more}"),
    }
}

//! Control characters: taken out for the model, made visible for a terminal.

use std::borrow::Cow;

/// What a byte may start.
fn is_suspect(byte: u8) -> bool {
    // C2 leads to the C1 controls, E2 to the bidi overrides.
    (byte < b' ' && byte != b'\n' && byte != b'\t') || matches!(byte, 0x7f | 0xc2 | 0xe2)
}

/// Index of the first suspect byte. Looks at whole blocks first, which compiles to vector code.
fn find_suspect(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 64;
    let mut start = 0;
    for block in bytes.chunks(BLOCK) {
        if block.iter().fold(false, |any, &byte| any | is_suspect(byte)) {
            let at = block.iter().position(|&byte| is_suspect(byte));
            return at.map(|at| start + at);
        }
        start += block.len();
    }
    None
}

/// Bidi overrides and isolates: they make text read as something else than it is.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text that is safe to write to a terminal: every control character but `\n` and `\t` as
/// `^[`, `\u{9b}` or alike, and the bidi overrides and isolates as `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_bidi(c);
    replace(text, is_unsafe, push_visible)
}

/// JSON text that is safe to write to a terminal, and means the same: what JSON lets stand as it
/// is although a terminal obeys it (the C1 controls, the bidi overrides) becomes an escape.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    // Below the blank only white space between tokens can stand, which must stay.
    let is_unsafe = |c: char| (c.is_control() && c >= ' ') || is_bidi(c);
    replace(json, is_unsafe, |out, c| out.push_str(&format!("\\u{:04x}", u32::from(c))))
}

fn replace(
    text: &str,
    is_unsafe: impl Fn(char) -> bool,
    push: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    let mut out = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(offset) = find_suspect(&text.as_bytes()[at..]) {
        at += offset;
        // A suspect byte is never a continuation byte, so this is a boundary.
        let Some(c) = text[at..].chars().next() else { break };
        if is_unsafe(c) {
            out.push_str(&text[kept..at]);
            push(&mut out, c);
            kept = at + c.len_utf8();
        }
        at += c.len_utf8();
    }
    if kept == 0 && out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// [`visible`] on one line: `\n` and `\t` too are shown as two signs each.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    if !text.contains(['\n', '\t']) {
        return visible(text);
    }
    Cow::Owned(visible(text).replace('\n', "\\n").replace('\t', "\\t"))
}

fn push_visible(out: &mut String, c: char) {
    match c {
        '\0'..='\x1f' => {
            out.push('^');
            out.push((c as u8 + b'@') as char);
        }
        '\x7f' => out.push_str("^?"),
        _ => out.extend(c.escape_unicode()),
    }
}

/// The output of a program as text for the model: no escape sequences, no control characters
/// but `\n` and `\t`, and lines that were redrawn (`\r`, backspace, erase) in their last state.
///
/// `\r\n` is a plain line end. A sequence that is cut at the end is dropped.
pub fn strip_ansi(text: &str) -> Cow<'_, str> {
    let Some(first) = find_suspect(text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut screen = Screen { done: String::with_capacity(text.len()), ..Screen::default() };
    // The line of the first suspect may be redrawn: it has to go through the screen as a whole.
    let start = memchr::memrchr(b'\n', &text.as_bytes()[..first]).map_or(0, |at| at + 1);
    screen.done.push_str(&text[..start]);
    screen.line_start = start;
    let mut scanner = Scanner { text, at: start };
    while scanner.at < text.len() {
        scanner.step(&mut screen);
    }
    screen.end_line();
    match screen.done == text {
        true => Cow::Borrowed(text),
        false => Cow::Owned(screen.done),
    }
}

/// The line that is being drawn, above it the finished ones.
#[derive(Default)]
struct Screen {
    done: String,
    /// Cells as written, in the order of columns; one character is one cell.
    line: Vec<char>,
    /// Where the next character goes while the line is in `line`; `None`: the line is plain
    /// so far and goes straight to `done`.
    cursor: Option<usize>,
    /// Where the line starts in `done` while it is plain.
    line_start: usize,
}

impl Screen {
    fn write(&mut self, text: &str) {
        let Some(mut cursor) = self.cursor else { return self.done.push_str(text) };
        for c in text.chars() {
            match self.line.get_mut(cursor) {
                Some(cell) => *cell = c,
                None => self.line.push(c),
            }
            cursor += 1;
        }
        self.cursor = Some(cursor);
    }

    fn newline(&mut self) {
        self.end_line();
        self.done.push('\n');
        self.line_start = self.done.len();
    }

    fn end_line(&mut self) {
        if self.cursor.take().is_some() {
            self.done.extend(self.line.drain(..));
        }
    }

    /// Lifts the plain line into cells, because something will move in it.
    fn cells(&mut self) -> usize {
        *self.cursor.get_or_insert_with(|| {
            self.line.extend(self.done[self.line_start..].chars());
            self.done.truncate(self.line_start);
            self.line.len()
        })
    }

    fn move_to(&mut self, column: impl Fn(usize) -> usize) {
        self.cursor = Some(column(self.cells()));
    }

    /// `CSI K`: the line from the cursor on, or all of it; then the next text starts it anew,
    /// without the blanks that a terminal would show before.
    fn erase(&mut self, what: &str) {
        let cursor = self.cells();
        match what {
            "" | "0" => self.line.truncate(cursor),
            "1" if cursor < self.line.len() => {}
            "1" | "2" => {
                self.line.clear();
                self.cursor = Some(0);
            }
            _ => {}
        }
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &[u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn step(&mut self, screen: &mut Screen) {
        let is_stop = |&byte: &u8| is_suspect(byte) || byte == b'\n';
        let plain = self.rest().iter().position(is_stop).unwrap_or(self.rest().len());
        screen.write(&self.text[self.at..self.at + plain]);
        self.at += plain;
        let Some(c) = self.text[self.at..].chars().next() else { return };
        self.at += c.len_utf8();
        match c {
            '\n' => screen.newline(),
            '\r' => {
                self.skip_while(|byte| byte == b'\r');
                // Any number of returns before the line feed is a plain line end.
                if self.rest().first() != Some(&b'\n') {
                    screen.move_to(|_| 0);
                }
            }
            '\x08' => screen.move_to(|cursor| cursor.saturating_sub(1)),
            '\x1b' => self.escape(screen),
            '\u{9b}' => self.control_sequence(screen),
            '\u{90}' => self.string(true),
            '\u{98}' | '\u{9d}'..='\u{9f}' => self.string(false),
            c if c.is_control() => {}
            c => screen.write(c.encode_utf8(&mut [0; 4])),
        }
    }

    /// Behind an ESC.
    fn escape(&mut self, screen: &mut Screen) {
        match self.rest().first() {
            Some(b'[') => {
                self.at += 1;
                self.control_sequence(screen);
            }
            Some(&kind @ (b']' | b'P' | b'X' | b'^' | b'_')) => {
                self.at += 1;
                self.string(kind == b'P');
            }
            _ => {
                self.skip_while(|byte| (b' '..=b'/').contains(&byte));
                self.skip_if(|byte| (b'0'..=b'~').contains(&byte));
            }
        }
    }

    /// Behind a CSI.
    fn control_sequence(&mut self, screen: &mut Screen) {
        let start = self.at;
        self.skip_while(|byte| (b'0'..=b'?').contains(&byte));
        let params = start..self.at;
        self.skip_while(|byte| (b' '..=b'/').contains(&byte));
        let is_plain = self.at == params.end;
        let last = self.rest().first().copied();
        self.skip_if(|byte| (b'@'..=b'~').contains(&byte));
        match (last, &self.text[params]) {
            (Some(b'K'), what) if is_plain => screen.erase(what),
            (Some(b'G'), "" | "0" | "1") if is_plain => screen.move_to(|_| 0),
            _ => {}
        }
    }

    /// Behind the start of a title, link, image or other string: up to its end. A string that
    /// has no end takes the rest of its line only, so that broken output is not lost whole;
    /// only a device string (images) may hold line ends.
    fn string(&mut self, is_device: bool) {
        let bytes = self.rest();
        let mut line_end = None;
        for (at, &byte) in bytes.iter().enumerate() {
            // The next sequence ends the search: each byte is looked at once for each string.
            let next = bytes.get(at + 1).copied().unwrap_or(0);
            let end = match (byte, next) {
                (b'\n', _) if is_device => {
                    line_end.get_or_insert(at);
                    continue;
                }
                (0x1b, b'\\') | (0xc2, 0x9c) => at + 2,
                (0x07, _) if !is_device => at + 1,
                (0x18 | 0x1a, _) => at + 1,
                (b'\n' | 0x1b, _) | (0xc2, 0x90 | 0x98 | 0x9b | 0x9d..=0x9f) => {
                    line_end.unwrap_or(at)
                }
                _ => continue,
            };
            self.at += end;
            return;
        }
        self.at += line_end.unwrap_or(bytes.len());
    }

    fn skip_while(&mut self, is_part: impl Fn(u8) -> bool) {
        self.at += self.rest().iter().take_while(|&&byte| is_part(byte)).count();
    }

    fn skip_if(&mut self, is_part: impl Fn(u8) -> bool) {
        self.at += usize::from(self.rest().first().is_some_and(|&byte| is_part(byte)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_on_a_terminal_means_the_same_and_holds_nothing_that_it_obeys() {
        let json = "{\"a\u{9b}\":\r\n[\"\u{7f}é\u{202e}\\u001b\", \"\u{85}界\"]}";
        let want = "{\"a\\u009b\":\r\n[\"\\u007fé\\u202e\\u001b\", \"\\u0085界\"]}";
        assert_eq!(visible_json(json), want);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(json), value(want));
        assert!(matches!(visible_json("{\"a\": \"é界\\n\"}"), Cow::Borrowed(_)));
    }

    #[test]
    fn programs_output_reaches_the_model_as_text() {
        let table = [
            ("", ""),
            ("plain\ttext\n界🦀 “quoted” · é\n", "plain\ttext\n界🦀 “quoted” · é\n"),
            // Colours, titles, links, character sets, device strings, images.
            ("\x1b[31mred\x1b[0m\x1b]0;t\x07", "red"),
            ("\x1b[1;38;5;12mx\x1b[m \x1b[?25l\x1b[2J\x1b[10;5Hy", "x y"),
            ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\ end", "link end"),
            ("\x1b(B\x1b7\x1b=a\x1bcb", "ab"),
            ("a\x1bPq#0\n#1~~\x1b\\b", "ab"),
            ("a\x1b_Gf=100;AAAA\x1b\\b\x1b^x\x1b\\c\x1bXy\x1b\\d", "abcd"),
            // The same with one-character introducers.
            ("\u{9b}31mred\u{9b}0m \u{9d}0;t\u{9c}x\u{90}q\u{9c}y", "red xy"),
            // Other controls.
            ("a\0b\x07c\x0bd\x0ce\x7ff\u{85}g", "abcdefg"),
            // Cut or broken sequences.
            ("a\x1b", "a"),
            ("a\x1b[", "a"),
            ("a\x1b[31", "a"),
            ("a\x1b(", "a"),
            ("a\x1b]0;title", "a"),
            ("a\x1b]0;title\nnext\n\x1b[1mbold", "a\nnext\nbold"),
            ("a\x1bPq never ends\nnext\n\x1b[1mbold", "a\nnext\nbold"),
            ("a\x1b[31\nb", "a\nb"),
            ("a\x1b[3界", "a界"),
            ("a\x1b\x1b[1mb", "ab"),
            ("a\x1b]0;x\x18b", "ab"),
        ];
        for (text, want) in table {
            assert_eq!(strip_ansi(text), want, "{text:?}");
        }
    }

    #[test]
    fn redrawn_lines_are_left_in_their_last_state() {
        let table = [
            ("a\r b\r c\n", " c\n"),
            ("one\r\ntwo\r\r\nthree\r\n", "one\ntwo\nthree\n"),
            ("10%\r20%\r100%\nok\n", "100%\nok\n"),
            ("10%\r20%\r", "20%"),
            ("long text\rshort", "shorttext"),
            ("long text\r\x1b[Kshort", "short"),
            ("long text\x1b[2K\rnew\n", "new\n"),
            ("long text\x1b[1Gnew\x1b[0K\n", "new\n"),
            ("say \x1b[32mold\x1b[0m\rSAY", "SAY old"),
            ("kept\nN\x08NA\x08A\n", "kept\nNA\n"),
            ("\x08\x08a", "a"),
            ("abc\x08\x08\x1b[K\n", "a\n"),
            ("界面\ré", "é面"),
            ("a\n\rb", "a\nb"),
        ];
        for (text, want) in table {
            assert_eq!(strip_ansi(text), want, "{text:?}");
        }
    }

    #[test]
    fn what_goes_to_a_terminal_shows_its_controls() {
        let table = [
            ("", ""),
            ("plain\ttext\n界🦀 “quoted” · é", "plain\ttext\n界🦀 “quoted” · é"),
            ("\x1b[31mred", "^[[31mred"),
            ("a\0b\rc\x7f", "a^@b^Mc^?"),
            ("\u{85}\u{9b}31m", "\\u{85}\\u{9b}31m"),
            ("a\u{202e}b\u{2066}c\u{2069}", "a\\u{202e}b\\u{2066}c\\u{2069}"),
            ("\u{202a}", "\\u{202a}"),
            // Neighbours of the bidi controls are common text.
            (
                "\u{2029}\u{202f}\u{2065}\u{206a}\u{200d}",
                "\u{2029}\u{202f}\u{2065}\u{206a}\u{200d}",
            ),
        ];
        for (text, want) in table {
            assert_eq!(visible(text), want, "{text:?}");
            assert_eq!(matches!(visible(text), Cow::Borrowed(_)), text == want, "{text:?}");
        }
    }

    #[test]
    fn one_line_stays_one_line() {
        assert_eq!(visible_line("a\tb\r\nc\x1b"), "a\\tb^M\\nc^[");
        assert!(matches!(visible_line("plain é"), Cow::Borrowed(_)));
    }

    /// All texts of up to `length_max` of these pieces.
    fn sequences(pieces: &[&str], length_max: usize, check: &mut dyn FnMut(&str)) {
        fn grow(pieces: &[&str], left: usize, text: &mut String, check: &mut dyn FnMut(&str)) {
            check(text);
            if 0 < left {
                for piece in pieces {
                    let length = text.len();
                    text.push_str(piece);
                    grow(pieces, left - 1, text, check);
                    text.truncate(length);
                }
            }
        }
        grow(pieces, length_max, &mut String::new(), check);
    }

    #[test]
    fn no_sequence_of_pieces_leaves_a_control_character() {
        let pieces = [
            "\x1b", "[", "]", "P", "\\", "0", "m", "K", "\r", "\n", "\x08", "\x07", "\u{9b}",
            "\u{9c}", "\u{90}", "界", "\u{202e}", "(",
        ];
        sequences(&pieces, 4, &mut |text| {
            let stripped = strip_ansi(text);
            let is_left = |c: char| c.is_control() && c != '\n';
            assert!(!stripped.contains(is_left), "{text:?} -> {stripped:?}");
            assert_eq!(strip_ansi(&stripped), stripped, "{text:?}");
            let ends = |text: &str| text.matches('\n').count();
            assert!(text.contains('P') || text.contains('\u{90}') || ends(text) == ends(&stripped));
            let shown = visible(text);
            assert!(!shown.contains(is_left) && !shown.contains(is_bidi), "{text:?} -> {shown:?}");
            assert_eq!(visible(&shown), shown);
        });
    }

    #[test]
    fn suspects_are_found_at_every_place() {
        for length in 0..200 {
            for at in 0..length {
                let mut bytes = vec![b'a'; length];
                bytes[at] = 0x1b;
                assert_eq!(find_suspect(&bytes), Some(at));
            }
            assert_eq!(find_suspect(&vec![b'\t'; length]), None);
        }
    }

    #[test]
    fn hostile_output_takes_linear_work() {
        // Each would take minutes if some piece made the scan start again.
        for piece in [
            "\r",
            "\x1bP",
            "\u{90}",
            "\u{90}\n",
            "\u{9d}\u{9c}",
            "\x1b]",
            "\x1b]\n",
            "\x08",
            "x\x1b[1K",
            "x\x1b[2K",
            "x\r\x1b[K",
            "\x1b[",
            "\x1b",
            "x\r",
        ] {
            let text = "y".repeat(300_000) + &piece.repeat(300_000);
            assert!(strip_ansi(&text).len() <= text.len());
        }
    }
}

//! Text as a tolerant reader sees it: without blanks, case, and the differences of look-alikes.
//!
//! Nothing is ever changed by this: it finds the place that a model probably meant, and says what
//! differs there. Bytes that are not UTF-8 stand for themselves.

use crate::workspace::lookalike;

/// What can differ between two texts that read alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    LineEnds,
    LineBreaks,
    Indentation,
    TrailingBlanks,
    Spacing,
    Quotes,
    Dashes,
    Case,
    Lookalikes,
    Invisible,
}

impl Difference {
    pub fn name(self) -> &'static str {
        match self {
            Difference::LineEnds => "line endings",
            Difference::LineBreaks => "line breaks or empty lines",
            Difference::Indentation => "indentation",
            Difference::TrailingBlanks => "trailing whitespace",
            Difference::Spacing => "whitespace within a line",
            Difference::Quotes => "quotes",
            Difference::Dashes => "dashes",
            Difference::Case => "upper and lower case",
            Difference::Lookalikes => "characters that look alike",
            Difference::Invisible => "invisible characters",
        }
    }
}

/// A text without blanks, folded, and where its lines are.
pub struct Skeleton {
    pub bytes: Vec<u8>,
    /// For each line its start in `bytes` and in the text.
    lines: Vec<(usize, usize)>,
}

impl Skeleton {
    pub fn of(text: &[u8]) -> Skeleton {
        let mut skeleton = Skeleton { bytes: Vec::with_capacity(text.len()), lines: vec![(0, 0)] };
        let mut walk = Walk { text, at: 0 };
        while walk.at < text.len() {
            let (unit, start) = (walk.next(), walk.at);
            match unit {
                Unit::Blank if text[start - 1] == b'\n' => {
                    skeleton.lines.push((skeleton.bytes.len(), start));
                }
                Unit::Blank | Unit::Invisible => {}
                Unit::Glyph(folded) => skeleton.bytes.extend_from_slice(folded.as_bytes()),
            }
        }
        skeleton
    }

    pub fn lines_count(&self) -> usize {
        self.lines.len()
    }

    /// The folded line, from 0.
    pub fn line(&self, line_idx: usize) -> &[u8] {
        let end = self.lines.get(line_idx + 1).map_or(self.bytes.len(), |next| next.0);
        &self.bytes[self.lines[line_idx].0..end]
    }

    /// Whether a line begins or the text ends at this offset in `bytes`.
    pub fn is_line_end(&self, at: usize) -> bool {
        at == self.bytes.len() || self.lines.binary_search_by_key(&at, |line| line.0).is_ok()
    }

    /// Where in `text`, which this was made of, a part of `bytes` stands.
    pub fn place(&self, text: &[u8], start: usize, len: usize) -> (usize, usize) {
        let line_idx = self.lines.partition_point(|line| line.0 <= start) - 1;
        let (mut seen, at) = self.lines[line_idx];
        let mut walk = Walk { text, at };
        let mut begin = None;
        while walk.at < text.len() && seen < start + len {
            let before = walk.at;
            if let Unit::Glyph(folded) = walk.next() {
                if start <= seen {
                    begin.get_or_insert(before);
                }
                seen += folded.as_bytes().len();
            }
        }
        (begin.unwrap_or(walk.at), walk.at)
    }
}

/// A place where two texts that read alike differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point<'a> {
    /// Offset in the first text.
    pub at: usize,
    pub first: &'a [u8],
    pub second: &'a [u8],
}

/// What differs between two texts with equal skeletons, and the first place. Blanks at the end
/// of either are left out.
pub fn compare<'a>(first: &'a [u8], second: &'a [u8]) -> (Vec<Difference>, Option<Point<'a>>) {
    let mut found = Vec::new();
    let mut point = None;
    let (mut one, mut other) = (Walk { text: first, at: 0 }, Walk { text: second, at: 0 });
    loop {
        let starts_text = one.at == 0;
        let at = one.at;
        let blanks = (one.blanks(), other.blanks());
        if one.is_at_end() || other.is_at_end() {
            break;
        }
        if blanks.0 != blanks.1 {
            found.extend(blank_differences(blanks.0, blanks.1, starts_text));
            point.get_or_insert(Point { at, first: blanks.0, second: blanks.1 });
        }
        let at = one.at;
        let Some((a, b)) = glyphs(&mut one, &mut other) else { break };
        if a != b {
            found.push(glyph_difference(a, b));
            point.get_or_insert(Point { at, first: a, second: b });
        }
    }
    found.sort_unstable();
    found.dedup();
    (found, point)
}

/// The next glyphs of both that fold to the same length: `…` is three dots.
fn glyphs<'a>(one: &mut Walk<'a>, other: &mut Walk<'a>) -> Option<(&'a [u8], &'a [u8])> {
    let starts = (one.at, other.at);
    let mut lengths = (one.glyph()?, other.glyph()?);
    while lengths.0 != lengths.1 {
        if lengths.0 < lengths.1 {
            lengths.0 += one.glyph()?;
        } else {
            lengths.1 += other.glyph()?;
        }
    }
    Some((&one.text[starts.0..one.at], &other.text[starts.1..other.at]))
}

fn glyph_difference(a: &[u8], b: &[u8]) -> Difference {
    let texts = (std::str::from_utf8(a), std::str::from_utf8(b));
    let (Ok(a), Ok(b)) = texts else { return Difference::Lookalikes };
    match a.chars().next().map(fold) {
        Some(folded) if folded.as_bytes() == b"'" => Difference::Quotes,
        Some(folded) if folded.as_bytes() == b"-" => Difference::Dashes,
        _ if a.to_lowercase() == b.to_lowercase() => Difference::Case,
        _ => Difference::Lookalikes,
    }
}

fn blank_differences(a: &[u8], b: &[u8], starts_text: bool) -> Vec<Difference> {
    let mut found = Vec::new();
    let visible = |blanks: &[u8]| -> Vec<u8> {
        let mut walk = Walk { text: blanks, at: 0 };
        let mut out = Vec::new();
        while walk.at < blanks.len() {
            let before = walk.at;
            if let Unit::Blank = walk.next() {
                out.extend_from_slice(&blanks[before..walk.at]);
            }
        }
        out
    };
    let (a_visible, b_visible) = (visible(a), visible(b));
    if a_visible.len() + b_visible.len() < a.len() + b.len() {
        found.push(Difference::Invisible);
    }
    let returns = |blanks: &[u8]| blanks.iter().filter(|&&byte| byte == b'\r').count();
    if returns(&a_visible) != returns(&b_visible) {
        found.push(Difference::LineEnds);
    }
    let lines = |blanks: &[u8]| -> Vec<Vec<u8>> {
        let without = blanks.iter().copied().filter(|&byte| byte != b'\r').collect::<Vec<_>>();
        without.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
    };
    let (a_lines, b_lines) = (lines(&a_visible), lines(&b_visible));
    if a_lines.len() != b_lines.len() {
        found.push(Difference::LineBreaks);
    }
    let (a_last, b_last) = (a_lines.last(), b_lines.last());
    match a_lines.len().max(b_lines.len()) {
        1 if a_last != b_last && starts_text => found.push(Difference::Indentation),
        1 if a_last != b_last => found.push(Difference::Spacing),
        1 => {}
        _ => {
            if a_last != b_last && a_lines.len() == b_lines.len() {
                found.push(Difference::Indentation);
            }
            if a_lines.len() == b_lines.len()
                && a_lines[..a_lines.len() - 1] != b_lines[..b_lines.len() - 1]
            {
                found.push(Difference::TrailingBlanks);
            }
        }
    }
    found
}

enum Unit {
    /// White space of any kind.
    Blank,
    /// Takes no room on the screen.
    Invisible,
    Glyph(Folded),
}

/// Goes through a text character by character.
struct Walk<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// The next unit; only when not at the end.
    fn next(&mut self) -> Unit {
        let (c, width) = first_char(&self.text[self.at..]);
        let byte = self.text[self.at];
        self.at += width;
        match c {
            None => Unit::Glyph(Folded::of(&[byte])),
            Some('\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}') => Unit::Invisible,
            Some(c) if c.is_whitespace() => Unit::Blank,
            Some(c) => Unit::Glyph(fold(c)),
        }
    }

    /// All blank and invisible characters up to the next glyph.
    fn blanks(&mut self) -> &'a [u8] {
        let start = self.at;
        while !self.is_at_end() {
            let before = self.at;
            if let Unit::Glyph(_) = self.next() {
                self.at = before;
                break;
            }
        }
        &self.text[start..self.at]
    }

    /// Takes one glyph; the length of its folded form.
    fn glyph(&mut self) -> Option<usize> {
        if self.is_at_end() {
            return None;
        }
        match self.next() {
            Unit::Glyph(folded) => Some(folded.as_bytes().len()),
            Unit::Blank | Unit::Invisible => None,
        }
    }
}

/// The first character and its length in bytes; a byte that begins none counts as one.
fn first_char(text: &[u8]) -> (Option<char>, usize) {
    let width = match text[0] {
        0..=0x7f => return (Some(char::from(text[0])), 1),
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return (None, 1),
    };
    match text.get(..width).and_then(|bytes| std::str::from_utf8(bytes).ok()) {
        Some(one) => (one.chars().next(), width),
        None => (None, 1),
    }
}

/// What a character folds to: at most eight bytes.
struct Folded {
    bytes: [u8; 8],
    len: usize,
}

impl Folded {
    fn of(text: &[u8]) -> Folded {
        let len = text.len().min(8);
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&text[..len]);
        Folded { bytes, len }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn fold(c: char) -> Folded {
    let fixed: &[u8] = match c {
        '"' | '\'' | '`' | '\u{b4}' | '\u{ab}' | '\u{bb}' => b"'",
        '\u{2018}'..='\u{201f}' | '\u{2032}' | '\u{2033}' | '\u{2039}' | '\u{203a}' => b"'",
        '\u{2bc}' | '\u{ff07}' | '\u{ff02}' => b"'",
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{ff0d}' => b"-",
        '\u{2026}' => b"...",
        '\u{fb00}' => b"ff",
        '\u{fb01}' => b"fi",
        '\u{fb02}' => b"fl",
        '\u{fb03}' => b"ffi",
        '\u{fb04}' => b"ffl",
        c if c.is_ascii() => return Folded::of(&[c.to_ascii_lowercase() as u8]),
        // Full-width forms of ASCII.
        '\u{ff01}'..='\u{ff5e}' => {
            let ascii = u32::from(c) - 0xfee0;
            return fold(char::from_u32(ascii).unwrap_or(c));
        }
        _ => {
            let mut lower = String::new();
            lower.extend(c.to_lowercase());
            // Composed letters stand there; other scripts need no search in its table.
            let has_accent = matches!(c, '\u{c0}'..='\u{1eff}' | '\u{3040}'..='\u{30ff}');
            let lower = if has_accent { lookalike::fold(&lower) } else { lower };
            return Folded::of(lower.as_bytes());
        }
    };
    Folded::of(fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(first: &str, second: &str, want: &[Difference]) {
        let skeletons = (Skeleton::of(first.as_bytes()), Skeleton::of(second.as_bytes()));
        assert_eq!(skeletons.0.bytes, skeletons.1.bytes, "{first:?} {second:?}");
        assert_eq!(compare(first.as_bytes(), second.as_bytes()).0, want, "{first:?} {second:?}");
        assert_eq!(compare(second.as_bytes(), first.as_bytes()).0, want, "{second:?} {first:?}");
    }

    #[test]
    fn each_kind_of_difference_is_named() {
        use Difference::*;
        check("a b", "a b", &[]);
        check("a\n\tb", "a\n    b", &[Indentation]);
        check("  a", "a", &[Indentation]);
        check("a \nb", "a\nb", &[TrailingBlanks]);
        check("a \n\tb", "a\n b", &[Indentation, TrailingBlanks]);
        check("a  b", "a b", &[Spacing]);
        check("a\u{a0}b", "a b", &[Spacing]);
        check("f( x )", "f(x)", &[Spacing]);
        check("a\r\nb", "a\nb", &[LineEnds]);
        check("a\r\n\tb", "a\n    b", &[LineEnds, Indentation]);
        check("a\n\nb", "a\nb", &[LineBreaks]);
        check("a\nb", "a b", &[LineBreaks]);
        check("send('k')", "send(\u{2018}k\u{2019})", &[Quotes]);
        check("say \"x\"", "say 'x'", &[Quotes]);
        check("a \u{2013} b", "a - b", &[Dashes]);
        check("wait\u{2026}!", "wait...!", &[Lookalikes]);
        check("\u{fb02}ow", "flow", &[Lookalikes]);
        check("caf\u{e9}", "cafe\u{301}", &[Lookalikes]);
        check("Foo", "foo", &[Case]);
        check("\u{c4}rger", "\u{e4}rger", &[Case]);
        check("a\u{200b} b", "a b", &[Invisible]);
        check("x = 'a'  ;\n\ty", "X = \"a\" ;\n  y", &[Indentation, Spacing, Quotes, Case]);
    }

    #[test]
    fn the_first_place_is_told_and_places_lead_back() {
        let (text, old) = (b"x\n\n\tif (A) {\r\n\t\tb\n", b"if (a) {\n  b");
        let (skeleton, wanted) = (Skeleton::of(text), Skeleton::of(old));
        let start = memchr::memmem::find(&skeleton.bytes, &wanted.bytes).unwrap();
        let (start, end) = skeleton.place(text, start, wanted.bytes.len());
        assert_eq!(&text[start..end], b"if (A) {\r\n\t\tb");
        let (found, point) = compare(&text[start..end], old);
        use Difference::*;
        assert_eq!(found, [LineEnds, Indentation, Case]);
        assert_eq!(point, Some(Point { at: 4, first: b"A", second: b"a" }));
        assert_eq!(skeleton.lines_count(), 5);
        assert_eq!(skeleton.line(2), b"if(a){");
        assert_eq!(skeleton.line(4), b"");
    }

    #[test]
    fn bytes_that_are_not_text_stand_for_themselves() {
        assert_eq!(Skeleton::of(b"a\xff \xe7\x95 b").bytes, b"a\xff\xe7\x95b");
    }
}

//! Where edits apply: from the wanted replacements to disjoint byte ranges of the original.
//!
//! Everything is literal and on bytes. The one tolerance is for line ends, because a model never
//! sees them: a line break in an old text without any carriage return matches LF and CRLF, and
//! the line breaks of the new text take the form that the file has at that place. An old text
//! that contains a carriage return is taken at its word, and so is its new text.

use std::borrow::Cow;

use memchr::memmem;

/// As many matches are listed by line.
pub const LINES_SHOWN_MAX: usize = 50;

/// One wanted replacement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted<'a> {
    pub old: &'a str,
    pub new: &'a str,
    /// Replaces every match instead of the only one.
    pub all: bool,
}

/// A range of the original and what takes its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Region<'a> {
    pub start: usize,
    pub end: usize,
    pub new: Cow<'a, [u8]>,
    /// The edit that it belongs to, from 0.
    pub edit_idx: usize,
}

/// Why the edits cannot be applied; edits are counted from 0, lines from 1.
#[derive(Debug, Clone, PartialEq)]
pub enum Misfit {
    Empty {
        edit_idx: usize,
    },
    Blank {
        edit_idx: usize,
    },
    NotFound {
        edit_idx: usize,
    },
    /// The lines of the first matches, and how many more there are.
    Ambiguous {
        edit_idx: usize,
        lines: Vec<u64>,
        more: u64,
    },
    Overlap {
        first_idx: usize,
        second_idx: usize,
        line: u64,
    },
}

/// Finds the regions of all edits in the original, in order and disjoint.
pub fn locate<'a>(original: &[u8], edits: &[Wanted<'a>]) -> Result<Vec<Region<'a>>, Misfit> {
    let mut haystack = Haystack { original, view: None };
    let mut regions = Vec::new();
    for (edit_idx, edit) in edits.iter().enumerate() {
        if edit.old.is_empty() {
            return Err(Misfit::Empty { edit_idx });
        }
        if edit.old.trim().is_empty() {
            return Err(Misfit::Blank { edit_idx });
        }
        let repeat = if edit.all { Repeat::Apart } else { Repeat::Overlapping };
        let found = haystack.find(edit.old, repeat);
        if found.is_empty() {
            return Err(Misfit::NotFound { edit_idx });
        }
        if !edit.all && found.len() > 1 {
            let starts = found.iter().map(|range| range.0).take(LINES_SHOWN_MAX);
            let lines = line_numbers(original, starts);
            let more = (found.len() - lines.len()) as u64;
            return Err(Misfit::Ambiguous { edit_idx, lines, more });
        }
        let region = |(start, end)| {
            let new = adapted(original, start, edit);
            Region { start, end, new, edit_idx }
        };
        regions.extend(found.into_iter().map(region));
    }
    regions.sort_by_key(|region| (region.start, region.end));
    for pair in regions.windows(2) {
        if pair[1].start < pair[0].end {
            let [one, other] = [pair[0].edit_idx, pair[1].edit_idx];
            let (first_idx, second_idx) = (one.min(other), one.max(other));
            let line = line_numbers(original, std::iter::once(pair[1].start))[0];
            return Err(Misfit::Overlap { first_idx, second_idx, line });
        }
    }
    Ok(regions)
}

/// The original with every region replaced; everything else byte for byte.
pub fn splice(original: &[u8], regions: &[Region<'_>]) -> Vec<u8> {
    let added: usize = regions.iter().map(|region| region.new.len()).sum();
    let mut out = Vec::with_capacity(original.len() + added);
    let mut done = 0;
    for region in regions {
        out.extend_from_slice(&original[done..region.start]);
        out.extend_from_slice(&region.new);
        done = region.end;
    }
    out.extend_from_slice(&original[done..]);
    out
}

/// Line numbers of ascending offsets.
pub fn line_numbers(original: &[u8], offsets: impl Iterator<Item = usize>) -> Vec<u64> {
    let (mut line, mut counted) = (1, 0);
    let number = |offset: usize| {
        line += memchr::memchr_iter(b'\n', &original[counted..offset]).count() as u64;
        counted = offset;
        line
    };
    offsets.map(number).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Repeat {
    /// Matches that share no byte, from the front.
    Apart,
    /// At least two when there are two that may share bytes: `aa` stands twice in `aaa`.
    Overlapping,
}

struct Haystack<'a> {
    original: &'a [u8],
    view: Option<LfView>,
}

impl Haystack<'_> {
    /// Ranges of the original, ascending.
    fn find(&mut self, old: &str, repeat: Repeat) -> Vec<(usize, usize)> {
        let (old, original) = (old.as_bytes(), self.original);
        let is_exact = old.contains(&b'\r') || !old.contains(&b'\n');
        if is_exact || memmem::find(original, b"\r\n").is_none() {
            return matches(original, old, repeat);
        }
        let view = self.view.get_or_insert_with(|| LfView::of(original));
        let found = matches(&view.bytes, old, repeat);
        found.into_iter().map(|(start, end)| (view.original(start), view.original(end))).collect()
    }
}

fn matches(haystack: &[u8], needle: &[u8], repeat: Repeat) -> Vec<(usize, usize)> {
    let finder = memmem::Finder::new(needle);
    let found = finder.find_iter(haystack).map(|start| (start, start + needle.len()));
    let mut found: Vec<_> = found.collect();
    if repeat == Repeat::Overlapping
        && let [(start, _)] = found[..]
        && let Some(next) = finder.find(&haystack[start + 1..])
    {
        let next = start + 1 + next;
        found.push((next, next + needle.len()));
    }
    found
}

/// The original with CRLF as LF, and the way back.
struct LfView {
    bytes: Vec<u8>,
    /// Offsets in `bytes` of the line feeds that lost their carriage return, ascending.
    shortened: Vec<usize>,
}

impl LfView {
    fn of(original: &[u8]) -> LfView {
        let mut view = LfView { bytes: Vec::with_capacity(original.len()), shortened: Vec::new() };
        let mut done = 0;
        for at in memmem::find_iter(original, b"\r\n") {
            view.bytes.extend_from_slice(&original[done..at]);
            view.shortened.push(view.bytes.len());
            done = at + 1;
        }
        view.bytes.extend_from_slice(&original[done..]);
        view
    }

    /// The offset in the original; that of a shortened line feed is its carriage return's.
    fn original(&self, offset: usize) -> usize {
        offset + self.shortened.partition_point(|&at| at < offset)
    }
}

/// The new text with the line ends of the place where it goes.
fn adapted<'a>(original: &[u8], start: usize, edit: &Wanted<'a>) -> Cow<'a, [u8]> {
    let new = edit.new.as_bytes();
    let is_literal = edit.old.contains('\r') || !edit.new.contains('\n');
    if is_literal || !is_crlf_at(original, start) {
        return Cow::Borrowed(new);
    }
    let mut out = Vec::with_capacity(new.len() + new.len() / 16);
    let mut last = 0;
    for &byte in new {
        if byte == b'\n' && last != b'\r' {
            out.push(b'\r');
        }
        out.push(byte);
        last = byte;
    }
    Cow::Owned(out)
}

/// Whether the line at `offset` ends in CRLF; the last line is like the one before it.
fn is_crlf_at(original: &[u8], offset: usize) -> bool {
    let end = memchr::memchr(b'\n', &original[offset..]).map(|at| offset + at);
    let end = end.or_else(|| memchr::memrchr(b'\n', &original[..offset]));
    end.is_some_and(|end| end > 0 && original[end - 1] == b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one<'a>(old: &'a str, new: &'a str) -> Wanted<'a> {
        Wanted { old, new, all: false }
    }

    fn apply(original: &[u8], edits: &[Wanted<'_>]) -> Result<Vec<u8>, Misfit> {
        locate(original, edits).map(|regions| splice(original, &regions))
    }

    #[track_caller]
    fn check(original: &[u8], edits: &[Wanted<'_>], want: &[u8]) {
        let got = apply(original, edits).unwrap();
        assert_eq!(got.escape_ascii().to_string(), want.escape_ascii().to_string());
    }

    #[track_caller]
    fn refuse(original: &[u8], edits: &[Wanted<'_>], want: Misfit) {
        assert_eq!(apply(original, edits), Err(want));
    }

    #[test]
    fn everything_is_literal() {
        for new in ["$&", "$$", "$1 ${0} $name", "\\1 \\n \\\\", "%s {} {0}", ""] {
            let want = format!("a {new} b");
            check(b"a PLACE b", &[one("PLACE", new)], want.as_bytes());
            let twice = format!("{new},{new}");
            check(b"P,P", &[Wanted { all: true, ..one("P", new) }], twice.as_bytes());
        }
        check(b"aXXbc a.*(b)[c]$", &[one("a.*(b)[c]$", "x")], b"aXXbc x");
    }

    #[test]
    fn bytes_outside_the_region_stay() {
        check(b"n = 7\n# gar\xe7on\n", &[one("n = 7", "n = 8")], b"n = 8\n# gar\xe7on\n");
        check(b"\xef\xbb\xbfn = 7", &[one("n = 7", "n = 8")], b"\xef\xbb\xbfn = 8");
        check(b"a\rb\r\nc\n\xff", &[one("c", "d")], b"a\rb\r\nd\n\xff");
        check("\u{fffd} n".as_bytes(), &[one("n", "m")], "\u{fffd} m".as_bytes());
    }

    #[test]
    fn line_breaks_take_the_form_of_the_place() {
        let edits = [one("b\nc", "x\ny\nz")];
        check(b"a\nb\nc\nd", &edits, b"a\nx\ny\nz\nd");
        check(b"a\r\nb\r\nc\r\nd", &edits, b"a\r\nx\r\ny\r\nz\r\nd");
        // Mixed: the span only, and by the first line of it.
        check(b"a\nb\r\nc\nd\r\n", &edits, b"a\nx\r\ny\r\nz\nd\r\n");
        check(b"a\r\nb\nc\r\nd", &edits, b"a\r\nx\ny\nz\r\nd");
        // Without a break in the old text: by the line that it stands on, the last like the
        // one before.
        check(b"a\r\nb\r\n", &[one("b", "x\ny")], b"a\r\nx\r\ny\r\n");
        check(b"a\r\nb", &[one("b", "x\ny\n")], b"a\r\nx\r\ny\r\n");
        check(b"b", &[one("b", "x\ny\n")], b"x\ny\n");
        // Breaks at the edges of the old text.
        check(b"a\r\nb\r\n", &[one("\nb\n", "\n")], b"a\r\n");
        check(b"a\r\nb\r\n", &[one("a\n", "")], b"b\r\n");
        // With a carriage return in it, it is taken at its word.
        check(b"a\r\nb\r\n", &[one("a\r\nb", "a\nb")], b"a\nb\r\n");
        check(b"a\r\nb\r\n", &[one("b", "x\r\ny\n")], b"a\r\nx\r\ny\r\n\r\n");
        refuse(b"a\nb", &[one("a\r\nb", "x")], Misfit::NotFound { edit_idx: 0 });
    }

    #[test]
    fn exactly_one_match_or_every_line() {
        let ambiguous =
            |lines: &[u64], more| Misfit::Ambiguous { edit_idx: 0, lines: lines.to_vec(), more };
        refuse(b"x\nb\nx\n\nx", &[one("x", "y")], ambiguous(&[1, 3, 5], 0));
        refuse(b"aaa", &[one("aa", "b")], ambiguous(&[1, 1], 0));
        // One match by LF and one by CRLF are two.
        refuse(b"a\nb\n;a\r\nb\n", &[one("a\nb", "x")], ambiguous(&[1, 3], 0));
        let many = "x\n".repeat(80);
        let lines: Vec<u64> = (1..=50).collect();
        refuse(many.as_bytes(), &[one("x", "y")], ambiguous(&lines, 30));
        check(b"aaaa a", &[Wanted { all: true, ..one("aa", "b") }], b"bb a");
        refuse(b"abc", &[one("b", "x"), one("", "y")], Misfit::Empty { edit_idx: 1 });
        refuse(b"a\n", &[one("\n", "x")], Misfit::Blank { edit_idx: 0 });
        refuse(b"abc", &[one("b", "x"), one("d", "y")], Misfit::NotFound { edit_idx: 1 });
    }

    #[test]
    fn edits_are_located_in_the_original_and_may_touch_but_not_overlap() {
        check(b"abcd", &[one("cd", "ab"), one("ab", "cd")], b"cdab");
        check(b"a b", &[one("a", "b"), one("b", "a")], b"b a");
        let overlap = |first_idx, second_idx, line| Misfit::Overlap { first_idx, second_idx, line };
        refuse(b"x\nabcd", &[one("bcd", "x"), one("abc", "y")], overlap(0, 1, 2));
        refuse(b"abcd", &[one("x", ""), one("a", "")], Misfit::NotFound { edit_idx: 0 });
        refuse(b"a b", &[one("b", "1"), one("a", "2"), one("b", "1")], overlap(0, 2, 1));
    }

    /// All short texts over an alphabet of trouble: the result is that of a naive replacement.
    #[test]
    fn any_unique_match_is_replaced_as_a_naive_splice_does() {
        let alphabet = [&b"a"[..], b"b", b"\n", b"\r\n", b"\r", b"\xff", "é".as_bytes()];
        let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..4 {
            let until = texts.len();
            for idx in from..until {
                let longer = alphabet.iter().map(|piece| [&texts[idx][..], piece].concat());
                texts.extend(longer.collect::<Vec<_>>());
            }
            from = until;
        }
        let olds = ["a", "ab", "a\nb", "aé", "a\n", "\na", "b\r\na", "a\r"];
        let mut applied = 0;
        for text in &texts {
            for old in olds {
                let want = naive_matches(text, old.as_bytes());
                match apply(text, &[one(old, "N")]) {
                    Ok(got) => {
                        let [(start, end)] = want[..] else { panic!("{text:?} {old:?} {want:?}") };
                        assert_eq!(got, [&text[..start], b"N", &text[end..]].concat());
                        applied += 1;
                    }
                    Err(Misfit::NotFound { .. }) => assert!(want.is_empty(), "{text:?} {old:?}"),
                    Err(Misfit::Ambiguous { .. }) => assert!(want.len() > 1, "{text:?} {old:?}"),
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
        assert!(applied > 1_000, "only {applied} matches");
    }

    /// Tries every start; a line feed of `old` may have a carriage return before it.
    fn naive_matches(text: &[u8], old: &[u8]) -> Vec<(usize, usize)> {
        let is_tolerant = !old.contains(&b'\r');
        let match_at = |start: usize| {
            let mut at = start;
            for &byte in old {
                if is_tolerant && byte == b'\n' && text[at..].starts_with(b"\r\n") {
                    at += 1;
                }
                if text.get(at) != Some(&byte) {
                    return None;
                }
                at += 1;
            }
            Some((start, at))
        };
        let mut found: Vec<_> = (0..text.len()).filter_map(match_at).collect();
        // A match that begins with the carriage return also begins after it.
        found.dedup_by(|next, previous| next.1 == previous.1);
        found
    }
}

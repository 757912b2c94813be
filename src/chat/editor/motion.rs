//! Where a movement leads: a text and a place in it in, a place out.
//!
//! Every place given is the start or the end of a cluster, and so is every result. Nothing looks
//! further than the movement goes.

use crate::chat::editor::chips::is_sign;
use crate::text;

/// A movement of the cursor, or the reach of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Motion {
    /// One cluster.
    Left,
    Right,
    /// To the start of a word of letters and digits; a folded paste is a word.
    WordLeft,
    /// To the end of one.
    WordRight,
    /// To the last start of anything that is not blank.
    BlankLeft,
    LineStart,
    LineEnd,
    /// As [`Motion::LineStart`], and over the line end when already there.
    RestLeft,
    RestRight,
    Start,
    End,
}

impl Motion {
    pub fn target(self, text: &str, at: usize) -> usize {
        match self {
            Motion::Left => left(text, at),
            Motion::Right => right(text, at),
            Motion::WordLeft => word_left(text, at),
            Motion::WordRight => word_right(text, at),
            Motion::BlankLeft => skip_left(text, skip_left(text, at, is_blank), |c| !is_blank(c)),
            Motion::LineStart => line_start(text, at),
            Motion::LineEnd => line_end(text, at),
            Motion::RestLeft if line_start(text, at) == at => left(text, at),
            Motion::RestLeft => line_start(text, at),
            Motion::RestRight if line_end(text, at) == at => right(text, at),
            Motion::RestRight => line_end(text, at),
            Motion::Start => 0,
            Motion::End => text.len(),
        }
    }
}

fn left(text: &str, at: usize) -> usize {
    at - text::last_cluster(&text[..at]).map_or(0, str::len)
}

fn right(text: &str, at: usize) -> usize {
    at + text::clusters(&text[at..]).next().map_or(0, str::len)
}

fn line_start(text: &str, at: usize) -> usize {
    memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |end| end + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |length| at + length)
}

fn word_left(text: &str, at: usize) -> usize {
    let end = skip_left(text, at, |c| !is_word(c));
    match text[..end].ends_with(is_sign) {
        true => left(text, end),
        false => skip_left(text, end, |c| is_word(c) && !is_sign(c)),
    }
}

fn word_right(text: &str, at: usize) -> usize {
    let start = skip_right(text, at, |c| !is_word(c));
    match text[start..].starts_with(is_sign) {
        true => right(text, start),
        false => skip_right(text, start, |c| is_word(c) && !is_sign(c)),
    }
}

/// Back over clusters that start with such a character.
fn skip_left(text: &str, mut at: usize, is_passed: impl Fn(char) -> bool) -> usize {
    while let Some(cluster) = text::last_cluster(&text[..at])
        && cluster.starts_with(&is_passed)
    {
        at -= cluster.len();
    }
    at
}

fn skip_right(text: &str, at: usize, is_passed: impl Fn(char) -> bool) -> usize {
    let passed = text::clusters(&text[at..]).take_while(|cluster| cluster.starts_with(&is_passed));
    at + passed.map(str::len).sum::<usize>()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || is_sign(c)
}

fn is_blank(c: char) -> bool {
    c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` is the cursor before and after.
    #[track_caller]
    fn check(motion: Motion, from: &str, want: &str) {
        let at = from.find('|').unwrap();
        let text = from.replacen('|', "", 1);
        let mut shown = text.clone();
        shown.insert(motion.target(&text, at), '|');
        assert_eq!(shown, want, "{motion:?}");
    }

    #[test]
    fn movements_lead_where_a_reader_expects() {
        use Motion::*;
        let table = [
            (Left, "a|b", "|ab"),
            (Left, "|ab", "|ab"),
            (Left, "ab\n|c", "ab|\nc"),
            (Left, "x👩\u{200d}💻|y", "x|👩\u{200d}💻y"),
            (Left, "🇩🇪🇫🇷|", "🇩🇪|🇫🇷"),
            (Right, "|e\u{301}x", "e\u{301}|x"),
            (Right, "ab|", "ab|"),
            (WordLeft, "one two, |", "one |two, "),
            (WordLeft, "one t|wo", "one |two"),
            (WordLeft, "snake_case|", "|snake_case"),
            (WordLeft, "a.b(|", "a.|b("),
            (WordLeft, "\n\n |x", "|\n\n x"),
            (WordLeft, "né\u{301}e 界界|", "né\u{301}e |界界"),
            (WordRight, "|one two", "one| two"),
            (WordRight, "one| two", "one two|"),
            (WordRight, "one|, -- \ntwo.", "one, -- \ntwo|."),
            (WordRight, "one| ", "one |"),
            (WordLeft, "ab\u{fdd0}cd|", "ab\u{fdd0}|cd"),
            (WordLeft, "ab\u{fdd0}|cd", "ab|\u{fdd0}cd"),
            (WordRight, "ab|\u{fdd0}cd", "ab\u{fdd0}|cd"),
            (WordRight, "|ab\u{fdd0}cd", "ab|\u{fdd0}cd"),
            (BlankLeft, "ls ./a-b/c.d |", "ls |./a-b/c.d "),
            (BlankLeft, "one\n  |two", "|one\n  two"),
            (LineStart, "one\ntw|o", "one\n|two"),
            (LineStart, "one\n|two", "one\n|two"),
            (LineStart, "on|e", "|one"),
            (LineEnd, "o|ne\ntwo", "one|\ntwo"),
            (LineEnd, "one\nt|wo", "one\ntwo|"),
            (RestLeft, "one\ntw|o", "one\n|two"),
            (RestLeft, "one\n|two", "one|\ntwo"),
            (RestRight, "o|ne\ntwo", "one|\ntwo"),
            (RestRight, "one|\ntwo", "one\n|two"),
            (RestRight, "one|", "one|"),
            (Start, "a\nb|c", "|a\nbc"),
            (End, "a|\nbc", "a\nbc|"),
        ];
        for (motion, from, want) in table {
            check(motion, from, want);
        }
    }
}

//! How many tokens a model would make of a text, without the vocabulary of any.
//!
//! One pass over the bytes, by runs of one class: letters by case and length, digits, signs,
//! blanks, and for other scripts what their characters cost in the mean. The prices were fitted to
//! the mean of six public tokenizers; `fixtures/tokens` holds texts with their counts, and every
//! kind of text there is met within 15 %. It is the same for every model, and for the same text.

/// What one token costs.
const TOKEN: u64 = 100;

/// A word's first letters, up to [`WORD_BYTES`]; each letter behind them.
const WORD: u64 = 91;
const WORD_BYTES: usize = 7;
const WORD_MORE: u64 = 34;
/// Letters that go on in a name like `goOn` or `a4b`, and capitals alone.
const PART: u64 = 120;
const CAPITALS: u64 = 62;
const CAPITALS_MORE: u64 = 31;
/// Letters behind an accented one.
const LETTER_AFTER_ACCENT: u64 = 14;
/// Each letter of a word behind its fourth, where most words are of another language than English.
const FOREIGN: u64 = 10;

const DIGITS: u64 = 91;
const DIGIT: u64 = 19;
const BLANK_BEFORE_DIGIT: u64 = 116;

/// One sign: before a letter it often joins it.
const SIGN: u64 = 113;
const SIGN_AFTER_BLANK: u64 = 104;
const SIGN_BEFORE_LETTER: u64 = 44;
const SIGN_BETWEEN: u64 = 96;
/// Several signs; and those behind the third, as long as they change and when they repeat.
const SIGNS: u64 = 111;
const SIGN_OTHER: u64 = 32;
const SIGN_AGAIN: u64 = 6;

/// A line's end joins signs before it.
const LINE_END: u64 = 128;
const BLANKS: u64 = 78;
const BLANK: u64 = 1;

/// Unbroken letters and digits without sense (base64, hexadecimal): from this length, when what
/// they are changes so often.
const NOISE_BYTES_MIN: usize = 24;
const NOISE_CHANGE_EVERY: usize = 4;
const NOISE: u64 = 70;

/// An estimate of the tokens of a text: 0 for no text, and never 0 for a text that says something.
///
/// Within 15 % of the mean of public tokenizers for English, code, data, logs and the widespread
/// languages; a text of a few words is less certain. Linear, some hundred megabytes a second.
pub fn estimate_tokens(text: &str) -> usize {
    let mut reader = Reader { bytes: text.as_bytes(), ..Reader::default() };
    while let Some(&byte) = reader.bytes.get(reader.at) {
        match CLASSES[usize::from(byte)] {
            Class::Lower | Class::Upper | Class::Digit => reader.word(),
            Class::Sign => reader.signs(),
            Class::Blank => reader.blanks(),
            Class::LineEnd => reader.line_ends(),
            Class::High => reader.high(),
        }
    }
    usize::try_from(reader.finish()).unwrap_or(usize::MAX)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Class {
    Lower,
    Upper,
    Digit,
    Sign,
    Blank,
    #[default]
    LineEnd,
    /// Of a character that is not ASCII.
    High,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Sign; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b' ' | b'\t' => Class::Blank,
            b'\n' | b'\r' => Class::LineEnd,
            0x80.. => Class::High,
            _ => Class::Sign,
        };
        byte += 1;
    }
    classes
};

/// A script of characters that are not ASCII: what a run of them costs, and each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Script {
    start: u64,
    each: u64,
    /// Its letters go on in a word; otherwise it is as a sign.
    letters: bool,
}

const fn script(start: u64, each: u64) -> Script {
    Script { start, each, letters: true }
}

const fn mark(each: u64) -> Script {
    Script { start: 0, each, letters: false }
}

const ACCENTED: Script = script(85, 66);
/// Letters with two accents, of Vietnamese, where syllables are short.
const ACCENTED_TWICE: Script = script(0, 1);
const SYMBOL: Script = mark(82);
const WIDE_SIGN: Script = mark(70);
const EMOJI: Script = mark(300);

/// The script of the character that begins with these bytes, and its length in bytes.
fn script_of(first: u8, second: u8) -> (Script, usize) {
    match (first, second) {
        (..=0xc2, _) => (SYMBOL, 2),
        (0xc3..=0xc9, _) => (ACCENTED, 2),
        // Phonetic letters, and marks that combine.
        (0xca..=0xcd, _) => (script(0, 150), 2),
        // Greek; Cyrillic, and its letters outside the Russian alphabet; Hebrew; Arabic.
        (0xce..=0xcf, _) => (script(128, 43), 2),
        (0xd0, _) | (0xd1, ..=0x8f) => (script(160, 9), 2),
        (0xd1..=0xd3, _) => (script(160, 185), 2),
        (0xd4..=0xd7, _) => (script(0, 75), 2),
        (0xd8..=0xdf, _) => (script(0, 50), 2),
        // Scripts of India; Thai and Lao; others.
        (0xe0, ..=0xb7) => (script(0, 76), 3),
        (0xe0, _) => (script(0, 56), 3),
        (0xe1, 0xb8..=0xbb) => (ACCENTED_TWICE, 3),
        (0xe1, _) => (script(0, 150), 3),
        (0xe2, _) | (0xee, _) => (SYMBOL, 3),
        // Signs of East Asia; kana; Chinese characters; Hangul.
        (0xe3, ..=0x80) | (0xef, _) => (WIDE_SIGN, 3),
        (0xe3, ..=0x83) => (script(0, 68), 3),
        (0xe3..=0xe9, _) => (script(0, 86), 3),
        (0xea..=0xed, _) => (script(0, 81), 3),
        (0xf0.., _) => (EMOJI, 4),
    }
}

/// Where the reading stands.
#[derive(Default)]
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// What stands before `at`; a line's end at the start.
    before: Class,
    /// Of the character before, when that is not ASCII.
    script: Option<Script>,
    cost: u64,
    letters: u64,
    accents: u64,
    /// Letters of words behind the fourth.
    long: u64,
}

impl Reader<'_> {
    #[inline]
    fn class(&self, at: usize) -> Option<Class> {
        self.bytes.get(at).map(|byte| CLASSES[usize::from(*byte)])
    }

    /// The end of the run of `class` from `at` on.
    #[inline]
    fn end_of(&self, at: usize, class: Class) -> usize {
        let mut end = at;
        while self.class(end) == Some(class) {
            end += 1;
        }
        end
    }

    /// Letters and digits without a break.
    fn word(&mut self) {
        let (start, cost_before) = (self.at, self.cost);
        let mut changes = 0;
        while let Some(class) = self.class(self.at) {
            match class {
                Class::Lower | Class::Upper => self.letters(),
                Class::Digit => self.digits(),
                _ => break,
            }
            changes += 1;
        }
        let len = self.at - start;
        if NOISE_BYTES_MIN <= len && len <= changes * NOISE_CHANGE_EVERY {
            self.cost = self.cost.max(cost_before + NOISE * len as u64);
        }
    }

    /// Letters of one case, or capitals and the small ones behind them.
    fn letters(&mut self) {
        let start = self.at;
        let capitals_end = self.end_of(start, Class::Upper);
        let end = self.end_of(capitals_end, Class::Lower);
        let len = end - start;
        self.cost += match self.before {
            Class::High => LETTER_AFTER_ACCENT * len as u64,
            _ if capitals_end == end && len >= 2 => CAPITALS + CAPITALS_MORE * (len as u64 - 2),
            Class::Lower | Class::Upper | Class::Digit => PART,
            _ => {
                self.long += len.saturating_sub(4) as u64;
                WORD + WORD_MORE * len.saturating_sub(WORD_BYTES) as u64
            }
        };
        self.letters += len as u64;
        self.pass(end, Class::Lower);
    }

    fn digits(&mut self) {
        let end = self.end_of(self.at, Class::Digit);
        let len = (end - self.at) as u64;
        self.cost += DIGIT * len + DIGITS * len.div_ceil(3);
        if self.before == Class::Blank {
            self.cost += BLANK_BEFORE_DIGIT;
        }
        self.pass(end, Class::Digit);
    }

    fn signs(&mut self) {
        let end = self.end_of(self.at, Class::Sign);
        let signs = &self.bytes[self.at..end];
        let blank_before = self.before == Class::Blank;
        let letter_behind = matches!(self.class(end), Some(Class::Lower | Class::Upper));
        self.cost += match (signs.len(), blank_before, letter_behind) {
            (1, false, false) => SIGN,
            (1, true, false) => SIGN_AFTER_BLANK,
            (1, false, true) => SIGN_BEFORE_LETTER,
            (1, true, true) => SIGN_BETWEEN,
            (2 | 3, ..) => SIGNS,
            (len, ..) => {
                let changes = signs.windows(2).filter(|pair| pair[0] != pair[1]).count();
                let others = changes.saturating_sub(2);
                let again = (len - 3).saturating_sub(others);
                SIGNS + SIGN_OTHER * others as u64 + SIGN_AGAIN * again as u64
            }
        };
        self.pass(end, Class::Sign);
    }

    /// One blank belongs to the word behind it.
    fn blanks(&mut self) {
        let end = self.end_of(self.at, Class::Blank);
        let len = (end - self.at) as u64;
        if len > 1 || self.bytes[self.at] == b'\t' {
            self.cost += BLANKS + BLANK * len;
        }
        self.pass(end, Class::Blank);
    }

    fn line_ends(&mut self) {
        let end = self.end_of(self.at, Class::LineEnd);
        if self.before != Class::Sign {
            self.cost += LINE_END;
        }
        self.pass(end, Class::LineEnd);
    }

    /// One character that is not ASCII.
    fn high(&mut self) {
        let (first, second) = (self.bytes[self.at], self.bytes.get(self.at + 1).copied());
        let (script, len) = script_of(first, second.unwrap_or_default());
        let goes_on = self.before == Class::High
            && self.script.is_some_and(|before| before.start == script.start);
        self.cost += script.each + if goes_on { 0 } else { script.start };
        self.accents += u64::from(script == ACCENTED || script == ACCENTED_TWICE);
        self.script = Some(script);
        let end = (self.at + len).min(self.bytes.len());
        self.pass(end, if script.letters { Class::High } else { Class::Sign });
    }

    fn pass(&mut self, end: usize, class: Class) {
        (self.at, self.before) = (end, class);
    }

    /// The whole cost in tokens. Accents tell that the plain words beside them are foreign too:
    /// from three in a thousand letters on, wholly from ten.
    fn finish(self) -> u64 {
        let per_mille = self.accents * 1000 / (self.letters + self.accents).max(1);
        let share = per_mille.saturating_sub(3).min(7);
        (self.cost + FOREIGN * self.long * share / 7).div_ceil(TOKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_estimated_by_runs_of_one_class() {
        let table = [
            ("", 0),
            (" ", 0),
            ("a", 1),
            ("word", 1),
            ("two words", 2),
            ("getFileName", 4),
            ("snake_case_name", 4),
            ("MAX", 1),
            ("foo(bar, 12);", 7),
            ("1234567", 5),
            ("    x = 1", 6),
            ("==========", 2),
            ("\n\n\n", 2),
            ("界面很好", 4),
            ("こんにちは", 4),
            ("안녕", 2),
            ("привет", 3),
            ("é", 2),
            ("🦀", 3),
        ];
        for (text, want) in table {
            assert_eq!(estimate_tokens(text), want, "{text:?}");
        }
    }

    #[test]
    fn noise_costs_more_than_words_and_repetition_less() {
        let noise = "d8a1f3b07c5e92".repeat(20);
        let words = "somewhat plain ".repeat(20);
        assert!(estimate_tokens(&noise) > 2 * noise.len() / 4);
        assert!(estimate_tokens(&words) < words.len() / 4);
        assert!(estimate_tokens(&"-".repeat(280)) < 25);
    }

    #[test]
    fn any_text_has_an_estimate_and_more_text_no_smaller_one() {
        let pieces =
            ["a", "B", "7", " ", "\n", "-", "é", "界", "한", "🦀", "ế", "\u{301}", "\u{0}"];
        for at in 0..pieces.len().pow(3) {
            let pick = |nth: u32| pieces[at / pieces.len().pow(nth) % pieces.len()];
            let (a, b, c) = (pick(0), pick(1), pick(2));
            let whole = estimate_tokens(&[a, b, c].concat());
            // A sign before a letter costs less than one at the end.
            assert!(whole + 1 >= estimate_tokens(&[a, b].concat()), "{a:?} {b:?} {c:?}");
            assert!(whole <= 3 * 4, "{a:?} {b:?} {c:?}: {whole}");
        }
    }
}

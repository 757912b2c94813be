//! Large pastes: one sign in the draft, a label on the screen, and the whole text when it is sent.
//!
//! A sign is one of the 32 code points that Unicode sets aside for use inside a program. They
//! never come in from outside (see [`clean`]), so a sign always means the paste it was given for.

use std::borrow::Cow;

use crate::text::{human_bytes, plural};

/// A paste of more lines than this is folded.
const LINES_MAX: usize = 10;
/// A paste of more bytes than this is folded.
const BYTES_MAX: usize = 2000;

const FIRST: char = '\u{fdd0}';
const LAST: char = '\u{fdef}';
/// Pastes that one draft can fold; more stand in it as they are.
const CHIPS_MAX: usize = LAST as usize - FIRST as usize + 1;

/// The folded pastes of one draft.
#[derive(Debug, Default)]
pub(super) struct Chips {
    chips: Vec<Chip>,
}

#[derive(Debug)]
struct Chip {
    text: String,
    label: String,
}

impl Chips {
    /// What stands in the draft for pasted text: a sign for a large one, else the text itself.
    pub fn fold<'a>(&mut self, text: Cow<'a, str>) -> Cow<'a, str> {
        if !is_large(&text) {
            return text;
        }
        let known = self.chips.iter().position(|chip| chip.text == text);
        let idx = known.unwrap_or(self.chips.len());
        let Some(sign) = sign(idx) else { return text };
        if known.is_none() {
            self.chips.push(Chip { label: label(&text), text: text.into_owned() });
        }
        Cow::Owned(sign.to_string())
    }

    /// What is shown for a character, if it is a sign.
    pub fn label(&self, c: char) -> Option<&str> {
        self.get(c).map(|chip| chip.label.as_str())
    }

    /// The draft with each sign replaced by what it stands for.
    pub fn expand(&self, draft: &str) -> String {
        let mut out = String::with_capacity(draft.len());
        let mut kept = 0;
        for (at, part) in draft.match_indices(is_sign) {
            out.push_str(&draft[kept..at]);
            let chip = part.chars().next().and_then(|c| self.get(c));
            out.push_str(chip.map_or("", |chip| &chip.text));
            kept = at + part.len();
        }
        out.push_str(&draft[kept..]);
        out
    }

    pub fn clear(&mut self) {
        self.chips.clear();
    }

    fn get(&self, c: char) -> Option<&Chip> {
        let idx = u32::from(c).checked_sub(u32::from(FIRST))?;
        self.chips.get(usize::try_from(idx).ok()?)
    }
}

pub(super) fn is_sign(c: char) -> bool {
    (FIRST..=LAST).contains(&c)
}

/// Text from outside as a draft holds it: lines end with `\n` alone, and nothing in it is taken
/// for a sign.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') && !text.contains(is_sign) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    Cow::Owned(text.replace(is_sign, "\u{fffd}"))
}

fn sign(idx: usize) -> Option<char> {
    let code = u32::from(FIRST) + u32::try_from(idx).ok()?;
    char::from_u32(code).filter(|_| idx < CHIPS_MAX)
}

fn is_large(text: &str) -> bool {
    BYTES_MAX < text.len() || LINES_MAX < text.lines().count()
}

fn label(text: &str) -> String {
    match text.lines().count() as u64 {
        0..=1 => format!("[pasted {}]", human_bytes(text.len() as u64)),
        lines => format!("[pasted {}]", plural(lines, "line")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_pastes_are_folded() {
        let table = [
            ("short".to_owned(), None),
            ("x\n".repeat(10), None),
            ("x\n".repeat(11), Some("[pasted 11 lines]")),
            ("x\n".repeat(10) + "x", Some("[pasted 11 lines]")),
            ("x".repeat(2000), None),
            ("x".repeat(2001), Some("[pasted 2.0KB]")),
            ("é\n".repeat(120), Some("[pasted 120 lines]")),
        ];
        for (text, want) in table {
            let mut chips = Chips::default();
            let folded = chips.fold(Cow::Borrowed(&text)).into_owned();
            let label = folded.chars().next().and_then(|c| chips.label(c));
            assert_eq!(label, want, "{} bytes", text.len());
            assert_eq!(chips.expand(&format!("a{folded}b")), format!("a{text}b"));
        }
    }

    #[test]
    fn every_sign_means_its_own_paste_and_what_has_none_left_stands_as_it_is() {
        let mut chips = Chips::default();
        let texts: Vec<String> = (0..CHIPS_MAX + 2).map(|n| format!("{n}\n").repeat(20)).collect();
        let draft: String = texts.iter().map(|text| chips.fold(text.into())).collect();
        assert_eq!(draft.chars().filter(|c| is_sign(*c)).count(), CHIPS_MAX);
        assert_eq!(chips.expand(&draft), texts.concat());
        // The same once more needs no sign of its own.
        assert_eq!(chips.fold((&texts[3]).into()), draft.chars().nth(3).unwrap().to_string());
        chips.clear();
        assert_eq!(chips.expand(&draft[..3]), "");
    }

    #[test]
    fn nothing_from_outside_is_taken_for_a_sign() {
        assert_eq!(clean("a\u{fdd0}b\u{fdef}c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(clean("a\r\nb\rc\n"), "a\nb\nc\n");
        assert!(matches!(clean("界\n\t"), Cow::Borrowed(_)));
    }
}

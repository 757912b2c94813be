//! A credential that never prints itself.

use std::fmt;

/// A key, or another text that must not show up anywhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Below this, replacing a key in texts would hit ordinary words.
const REDACT_BYTES_MIN: usize = 6;
/// Below this, so would replacing a piece of one.
const PIECE_BYTES_MIN: usize = 12;
const MARK: &str = "[redacted]";

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself: for the one header that carries it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Without the blanks and line ends that files and variables put around a key; the error
    /// says what is wrong with it, and never shows it.
    pub fn checked(&self) -> Result<Secret, &'static str> {
        let key = self.0.trim();
        if key.is_empty() {
            return Err("is empty");
        }
        if key.contains(['\n', '\r']) {
            return Err("has a line break in the middle");
        }
        if !key.is_ascii() {
            return Err("has a character that is no ASCII");
        }
        if key.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
            return Err("has a blank or a control character in the middle");
        }
        Ok(Secret(key.to_owned()))
    }

    /// `text` with every occurrence of this secret replaced.
    pub fn redact(&self, text: &str) -> String {
        let key = self.0.trim();
        if key.len() < REDACT_BYTES_MIN { text.to_owned() } else { text.replace(key, MARK) }
    }

    /// `text` without this secret's first or last half, where somebody cut it there.
    fn redact_halves(&self, text: &str) -> String {
        let key = self.0.trim();
        let half = key.len().div_ceil(2).max(PIECE_BYTES_MIN);
        if key.len() <= half || !key.is_ascii() {
            return text.to_owned();
        }
        without_tails(&without_heads(text, key.split_at(half)), key.split_at(key.len() - half))
    }
}

/// `text` without any of the secrets, and without what a cut left of one, if it is half of it or
/// more. Tokens of one kind begin alike: halves are looked for when no whole one is left.
pub fn redact_all<'s>(secrets: impl Iterator<Item = &'s Secret> + Clone, text: &str) -> String {
    let text = secrets.clone().fold(text.to_owned(), |text, secret| secret.redact(&text));
    secrets.fold(text, |text, secret| secret.redact_halves(&text))
}

/// Replaces every `head`, with as much of `more` as follows it.
fn without_heads(text: &str, (head, more): (&str, &str)) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(head) {
        out.push_str(&rest[..at]);
        out.push_str(MARK);
        let behind = &rest[at + head.len()..];
        rest = &behind[count_same(behind.bytes(), more.bytes())..];
    }
    out + rest
}

/// Replaces every `tail`, with as much of `more` as stands before it.
fn without_tails(text: &str, (more, tail): (&str, &str)) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(tail) {
        let before = &rest[..at];
        out.push_str(&before[..at - count_same(before.bytes().rev(), more.bytes().rev())]);
        out.push_str(MARK);
        rest = &rest[at + tail.len()..];
    }
    out + rest
}

fn count_same(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_prints_nothing_and_removes_itself_from_texts() {
        let secret = Secret::new("sk-test-ABCDEF\n");
        assert_eq!(format!("{secret} {secret:?}"), "[redacted] [redacted]");
        assert_eq!(secret.redact("bad key sk-test-ABCDEF!"), "bad key [redacted]!");
        assert_eq!(Secret::new("a").redact("a banana"), "a banana");
    }

    #[test]
    fn a_half_that_a_cut_left_is_removed_too() {
        let key = "rt_0123456789ABCDEFGHIJKLMNOPQRS";
        let other = Secret::new(format!("{}other-token-of-one-kind", &key[..18]));
        let secrets = [other.clone(), Secret::new(key)];
        let redact = |text: &str| redact_all(secrets.iter(), text);
        assert_eq!(redact(&format!("{key} {}", other.reveal())), "[redacted] [redacted]");
        for cut in 16..key.len() {
            let (head, tail) = (&key[..cut], &key[key.len() - cut..]);
            assert_eq!(redact(&format!("a {head}… é{tail} {key}")), {
                "a [redacted]… é[redacted] [redacted]"
            });
        }
        // Less than a half is nobody's, and what is like it may be something else.
        let less = format!("{}… {}", &key[..15], &key[17..]);
        assert_eq!(redact(&less), less);
        let short = [Secret::new("sk-ABCDEF")];
        assert_eq!(redact_all(short.iter(), "sk-ABC ABCDEF"), "sk-ABC ABCDEF");
    }

    #[test]
    fn line_ends_around_a_key_are_dropped_and_others_are_refused() {
        for text in ["sk-ABC", "sk-ABC\n", "sk-ABC\r\n", " sk-ABC "] {
            assert_eq!(Secret::new(text).checked(), Ok(Secret::new("sk-ABC")), "{text:?}");
        }
        for (text, why) in [
            ("", "is empty"),
            (" \n", "is empty"),
            ("sk\nABC", "has a line break in the middle"),
            ("sk-ÄBC", "has a character that is no ASCII"),
            ("sk ABC", "has a blank or a control character in the middle"),
        ] {
            assert_eq!(Secret::new(text).checked(), Err(why), "{text:?}");
        }
    }
}

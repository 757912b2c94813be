//! A credential that never prints itself.

use std::fmt;

/// A key, or another text that must not show up anywhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Below this, replacing a key in texts would hit ordinary words.
const REDACT_BYTES_MIN: usize = 6;

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
        if key.len() < REDACT_BYTES_MIN { text.to_owned() } else { text.replace(key, "[redacted]") }
    }
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

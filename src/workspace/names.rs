//! File names as text on one line, and back.
//!
//! A plain name is printed as it is. A name that would not survive a line of text (bytes that are
//! no UTF-8, control characters, invisible or unusual spaces, a space at either end, a leading
//! quote) is printed in double quotes with escapes: `"new\nline"`, `"a\xff"`, `" lead"`. Each
//! component is quoted by itself, so `dir/` before a printed name is a printed path.
//!
//! The form is canonical: exactly one text stands for a name, and a text in quotes is read as an
//! escaped name only if it is that text. So no name can be mistaken for the printed form of another.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path on one line, `/` between its components.
pub fn shown(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) if text.bytes().all(is_plain_byte) => text.to_owned(),
        _ => {
            let parts: Vec<_> = bytes
                .split(|byte| *byte == b'/')
                .map(|p| shown_name(OsStr::from_bytes(p)))
                .collect();
            parts.join("/")
        }
    }
}

/// One name on one line.
pub fn shown_name(name: &OsStr) -> String {
    let bytes = name.as_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) if !needs_quotes(text) => text.to_owned(),
        _ => quoted(bytes),
    }
}

/// The path that a text means: printed components are unescaped, everything else is literal.
pub fn parse(text: &str) -> PathBuf {
    if !text.contains('"') {
        return PathBuf::from(text);
    }
    let mut path = OsString::new();
    for (idx, part) in text.split('/').enumerate() {
        if idx > 0 {
            path.push("/");
        }
        path.push(unquoted(part).unwrap_or_else(|| part.into()));
    }
    path.into()
}

/// Bytes that never need quotes, wherever they stand.
fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'"'
}

fn needs_quotes(text: &str) -> bool {
    let ends = |edge: Option<char>| edge.is_some_and(char::is_whitespace);
    text.starts_with('"')
        || ends(text.chars().next())
        || ends(text.chars().next_back())
        || text.chars().any(|c| c != ' ' && is_hidden(c))
}

/// Characters that a reader does not see or takes for a plain space: they would be lost when the
/// name is written again.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffd}' | '\u{e0000}'..='\u{e007f}')
}

fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                ' ' => out.push(' '),
                c if is_hidden(c) => {
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

/// The name that a text in quotes stands for; `None` when it is not the printed form of any name.
fn unquoted(text: &str) -> Option<OsString> {
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::new();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '\\' {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let escape = rest.chars().next()?;
        rest = &rest[escape.len_utf8()..];
        match escape {
            '"' | '\\' => bytes.push(escape as u8),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'x' => {
                bytes.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
                rest = &rest[2..];
            }
            'u' => {
                let (hex, after) = rest.strip_prefix('{')?.split_once('}')?;
                let c = char::from_u32(u32::from_str_radix(hex, 16).ok()?)?;
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
            }
            _ => return None,
        }
    }
    let name = OsString::from_vec(bytes);
    (shown_name(&name) == text && !name.as_bytes().contains(&b'/')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &[u8], want: &str) {
        let name = OsStr::from_bytes(name);
        assert_eq!(shown_name(name), want);
        assert_eq!(parse(want), Path::new(name));
    }

    #[test]
    fn names_are_printed_on_one_line_and_read_back() {
        check(b"plain.rs", "plain.rs");
        check(b"-rf", "-rf");
        check(b"*[x]*", "*[x]*");
        check(b"it's a \"name\"", "it's a \"name\"");
        check(b"back\\slash", "back\\slash");
        check("it\u{2019}s.txt".as_bytes(), "it\u{2019}s.txt");
        check("cafe\u{301}".as_bytes(), "cafe\u{301}");
        check(b"a\xff", r#""a\xff""#);
        check(b"new\nline", r#""new\nline""#);
        check(b" lead", r#"" lead""#);
        check(b"trail ", r#""trail ""#);
        check(b"\"q\"", r#""\"q\"""#);
        check(b"\x1b[31m\\", r#""\u{1b}[31m\\""#);
        check("7.30\u{202f}PM.png".as_bytes(), r#""7.30\u{202f}PM.png""#);
        check("\u{fffd}".as_bytes(), r#""\u{fffd}""#);
        check(&[b'n'; 255], &"n".repeat(255));
    }

    #[test]
    fn only_the_canonical_form_is_read_as_quoted() {
        for literal in [r#""a""#, r#""a\n"#, r#""\x41""#, r#""\u{41}""#, r#""\q""#, r#"""#] {
            assert_eq!(parse(literal), Path::new(literal), "{literal}");
        }
    }

    #[test]
    fn components_are_quoted_one_by_one() {
        let path = Path::new(OsStr::from_bytes(b"dir/new\nline/ x/plain"));
        assert_eq!(shown(path), r#"dir/"new\nline"/" x"/plain"#);
        assert_eq!(parse(&shown(path)), path);
        assert_eq!(shown(Path::new("/abs/a b")), "/abs/a b");
    }

    /// Every name of up to four pieces of a nasty vocabulary comes back, and no two print alike.
    #[test]
    fn any_name_round_trips() {
        let words: [&[u8]; 11] =
            [b"a", b" ", b"\"", b"\\", b"\n", b"\xff", b"\xc3", b"\xa9", b"x41", b"{7f}", b"u"];
        let mut names: Vec<Vec<u8>> = vec![Vec::new()];
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..4 {
            names = names.iter().flat_map(|n| words.iter().map(|w| [n, *w].concat())).collect();
            for name in &names {
                let text = shown_name(OsStr::from_bytes(name));
                assert!(!text.contains('\n'));
                assert_eq!(parse(&text).as_os_str().as_bytes(), name, "{text}");
                if let Some(other) = seen.insert(text, name.clone()) {
                    assert_eq!(&other, name);
                }
            }
        }
    }
}

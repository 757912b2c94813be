//! Bytes that may not be text: telling, showing and naming them.

use std::borrow::Cow;

/// How far a binary file is looked at: what git and grep look at.
const SNIFF_BYTES: usize = 8 * 1024;

/// True when a NUL stands in the first 8 KiB.
pub fn looks_binary(bytes: &[u8]) -> bool {
    memchr::memchr(0, &bytes[..bytes.len().min(SNIFF_BYTES)]).is_some()
}

/// The text, with each byte that is not UTF-8 written as `\xNN`. For reading, not for undoing:
/// text that already holds such a mark stays as it is.
pub fn decode_lossy(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|&byte| push_hex(&mut out, byte));
    }
    Cow::Owned(out)
}

/// A file name on one line: `\n`, `\r`, `\t`, `\\` and `\xNN` for what cannot be shown.
/// [`unescape_name`] gives the bytes back.
pub fn escape_name(name: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(name)
        && !text.chars().any(|c| c == '\\' || c.is_control())
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(name.len() + 8);
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if c.is_control() => {
                    c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_hex(&mut out, byte));
                }
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_hex(&mut out, byte));
    }
    Cow::Owned(out)
}

/// The bytes that [`escape_name`] was given; `None` for text that it never writes.
pub fn unescape_name(text: &str) -> Option<Cow<'_, [u8]>> {
    if !text.contains('\\') {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (&kind, after) = rest.split_first()?;
        rest = after;
        match kind {
            b'\\' => out.push(b'\\'),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'x' => {
                let digits = rest.get(..2).filter(|d| d.iter().all(u8::is_ascii_hexdigit))?;
                let digits = std::str::from_utf8(digits).ok()?;
                out.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &rest[2..];
            }
            _ => return None,
        }
    }
    Some(Cow::Owned(out))
}

fn push_hex(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push_str("\\x");
    out.push(DIGITS[usize::from(byte >> 4)] as char);
    out.push(DIGITS[usize::from(byte & 15)] as char);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_bytes_are_marked_and_good_text_is_borrowed() {
        let table: &[(&[u8], &str)] = &[
            (b"", ""),
            ("界🦀".as_bytes(), "界🦀"),
            (b"ok\xff\xfe\n", "ok\\xff\\xfe\n"),
            // A character that is cut at the end of the output.
            (b"a\xe7\x95", "a\\xe7\\x95"),
            (b"# gar\xe7on", "# gar\\xe7on"),
            (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
            ("really \u{fffd}".as_bytes(), "really \u{fffd}"),
        ];
        for (bytes, want) in table {
            assert_eq!(decode_lossy(bytes), *want);
        }
        assert!(matches!(decode_lossy(b"plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn a_nul_near_the_start_means_binary() {
        assert!(looks_binary(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"));
        assert!(!looks_binary("naïve \u{1b}[31m".as_bytes()));
        assert!(!looks_binary(b""));
        let mut late = vec![b'a'; SNIFF_BYTES];
        late.push(0);
        assert!(!looks_binary(&late));
        late[SNIFF_BYTES - 1] = 0;
        assert!(looks_binary(&late));
    }

    #[test]
    fn every_name_has_one_reversible_line() {
        let table: &[(&[u8], &str)] = &[
            (b"plain.txt", "plain.txt"),
            (b"a\xff", "a\\xff"),
            (b"new\nline", "new\\nline"),
            (b"tab\there\r", "tab\\there\\r"),
            (b"back\\slash", "back\\\\slash"),
            (b"\\xff", "\\\\xff"),
            ("cafe\u{301} it’s".as_bytes(), "cafe\u{301} it’s"),
            (b" lead", " lead"),
            (b"esc\x1b[31m\x7f", "esc\\x1b[31m\\x7f"),
            ("\u{9b}".as_bytes(), "\\xc2\\x9b"),
        ];
        for (name, want) in table {
            assert_eq!(escape_name(name), *want);
            assert_eq!(unescape_name(want).as_deref(), Some(*name));
        }
        for bad in ["\\", "\\q", "\\x", "\\x1", "\\xg0", "\\x+1"] {
            assert_eq!(unescape_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn escaping_names_undoes_for_all_short_names() {
        let alphabet = [b'a', b'\\', b'x', b'n', b'0', b'\n', 0xc2, 0x9b, 0xff];
        let mut names: Vec<Vec<u8>> = vec![Vec::new()];
        for length in 0..4 {
            for name in names.clone() {
                if name.len() == length {
                    names.extend(alphabet.iter().map(|&byte| [&name[..], &[byte]].concat()));
                }
            }
        }
        for name in names {
            let shown = escape_name(&name);
            assert!(!shown.contains('\n'));
            assert_eq!(unescape_name(&shown).as_deref(), Some(&name[..]), "{shown}");
        }
    }
}

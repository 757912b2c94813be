//! Forms and queries: percent encoding both ways.

use std::fmt::Write;

/// `a=b&c=d`, as `application/x-www-form-urlencoded` and as a query.
pub fn encode(fields: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in fields {
        if !out.is_empty() {
            out.push('&');
        }
        escape(&mut out, name);
        out.push('=');
        escape(&mut out, value);
    }
    out
}

fn escape(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
}

/// The value of a field of a query, decoded; the first of several.
pub fn field(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (unescape(key) == name).then(|| unescape(value))
    })
}

fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |idx: usize| char::from(*bytes.get(idx)?).to_digit(16);
        let (byte, used) = match bytes[at] {
            b'+' => (b' ', 1),
            b'%' => match (hex(at + 1), hex(at + 2)) {
                (Some(high), Some(low)) => ((high * 16 + low) as u8, 3),
                _ => (b'%', 1),
            },
            other => (other, 1),
        };
        out.push(byte);
        at += used;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were() {
        let text = "a+b/c d%&=é~\n";
        let form = encode(&[("code", text), ("b", "")]);
        assert_eq!(form, "code=a%2Bb%2Fc%20d%25%26%3D%C3%A9~%0A&b=");
        assert_eq!(field(&form, "code").as_deref(), Some(text));
        assert_eq!(field(&form, "b").as_deref(), Some(""));
        assert_eq!(field(&form, "c"), None);
        for (query, want) in [("a=%", "%"), ("a=%4", "%4"), ("a=%zz+x", "%zz x"), ("a", "")] {
            assert_eq!(field(query, "a").as_deref(), Some(want), "{query}");
        }
    }
}

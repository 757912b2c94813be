//! Halves of surrogate pairs in JSON, as servers leave them that cut text between UTF-16 units.
//!
//! Such an escape stands for no character, so that no strict reader takes the JSON that holds
//! it. In the text of an answer it becomes U+FFFD. In a call's arguments, which are JSON
//! themselves, it stays an escape: the other half comes with the next delta.

use serde_json::Value;

/// Where halves are kept while the JSON is read: private characters that no server sends.
const KEPT_FIRST: u32 = 0x0010_F800;
const HALVES: std::ops::Range<u32> = 0xD800..0xE000;

/// The value of JSON text whose only fault are such halves; `None` without any, or with others.
pub fn read(json: &str) -> Option<Value> {
    let mut value = serde_json::from_str(&kept(json)?).ok()?;
    settle(&mut value, false);
    Some(value)
}

/// The text with its halves replaced by characters; `None` when it has none.
fn kept(json: &str) -> Option<String> {
    let mut out = String::with_capacity(json.len());
    let (mut rest, mut found) = (json, false);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let bytes = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => 12,
            (Some(half), _) if HALVES.contains(&half) => {
                found = true;
                out.extend(char::from_u32(KEPT_FIRST + (half - HALVES.start)));
                rest = &rest[6..];
                continue;
            }
            _ => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..bytes]);
        rest = &rest[bytes..];
    }
    out.push_str(rest);
    found.then_some(out)
}

/// The UTF-16 unit of an escape `\uHHHH` at the beginning, `H` a hexadecimal digit.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hex { u32::from_str_radix(digits, 16).ok() } else { None }
}

fn settle(value: &mut Value, in_arguments: bool) {
    let half = |c: char| {
        let half = u32::from(c).checked_sub(KEPT_FIRST)? + HALVES.start;
        HALVES.contains(&half).then_some(half)
    };
    match value {
        Value::String(text) if text.chars().any(|c| half(c).is_some()) => {
            let mut settled = String::with_capacity(text.len());
            for c in text.chars() {
                match half(c) {
                    None => settled.push(c),
                    Some(half) if in_arguments => settled.push_str(&format!("\\u{half:04x}")),
                    Some(_) => settled.push('\u{fffd}'),
                }
            }
            *text = settled;
        }
        Value::Array(list) => list.iter_mut().for_each(|item| settle(item, in_arguments)),
        Value::Object(map) => {
            for (key, item) in map {
                settle(item, key == "arguments");
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn halves_become_replacements_in_text_and_stay_escapes_in_arguments() {
        let read = |json: &str| super::read(json);
        assert_eq!(read(r#"{"a":"x\ud83dy"}"#), Some(json!({"a": "x\u{fffd}y"})));
        assert_eq!(
            read(r#"["\ude00","\uD83D\ud83d\uDE00"]"#),
            Some(json!(["\u{fffd}", "\u{fffd}😀"]))
        );
        assert_eq!(
            read(r#"{"arguments":"{\"a\":\"\ud83d"}"#),
            Some(json!({"arguments": "{\"a\":\"\\ud83d"}))
        );
        // An escaped backslash is no escape, and what follows it is text.
        assert_eq!(read(r#"["\\ud83d","\ud83d"]"#), Some(json!(["\\ud83d", "\u{fffd}"])));
    }

    #[test]
    fn what_has_no_halves_or_other_faults_is_left_to_others() {
        for json in [
            "",
            "{}",
            r#""\ud83d\ude00""#,
            r#""\\ud83d""#,
            r#"["\ud83d""#,
            r#""\u12""#,
            "\\",
            "\\é",
        ] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}

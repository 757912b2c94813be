//! Values without quotes: booleans, numbers, and what people write in their place.

use crate::text;
use crate::toml::value::Data;

/// The value that a bare word is, or why it is none and what to write instead.
pub(super) fn parse_word(word: &str) -> Result<Data, String> {
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    match word {
        "true" => Ok(Data::Bool(true)),
        "false" => Ok(Data::Bool(false)),
        _ if is_like_date(word) => Err(format!(
            "{} is a date or a time, and dates are not supported; write the value as a \"string\"",
            quoted(word)
        )),
        _ if matches!(unsigned, "inf" | "nan") => parse_float(word),
        _ if unsigned.starts_with(|c: char| c.is_ascii_digit()) => parse_number(word, unsigned),
        _ => Err(explain(word)),
    }
}

/// Text from the file inside a message: short, and harmless on a terminal.
pub(super) fn quoted(word: &str) -> String {
    let shown = text::visible_line(text::floor_char(word, 200));
    format!("'{}'", text::truncate_width(&shown, 40))
}

fn explain(word: &str) -> String {
    let shown = quoted(word);
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => format!("{shown} is no value; write true"),
        "false" | "no" | "off" => format!("{shown} is no value; write false"),
        "null" | "nil" | "none" | "undefined" => {
            format!("{shown} is no value in TOML; leave the key out instead")
        }
        _ if word.starts_with(['“', '”', '„', '‘', '’', '«', '»']) => {
            format!("{shown} starts with a typographic quote; use the plain \" or '")
        }
        _ if word.starts_with(['.', '+', '-']) => {
            format!("{shown} is no number; write it like 0.5, or put text in \"quotes\"")
        }
        _ => format!("{shown} is no value; put text in \"quotes\""),
    }
}

/// `1979-05-27…` or `07:32…`.
fn is_like_date(word: &str) -> bool {
    let starts_like = |shape: &[u8]| {
        shape.len() <= word.len()
            && shape.iter().zip(word.bytes()).all(|(&sign, byte)| match sign {
                b'0' => byte.is_ascii_digit(),
                sign => byte == sign,
            })
    };
    starts_like(b"0000-0") || starts_like(b"00:0")
}

fn parse_number(word: &str, unsigned: &str) -> Result<Data, String> {
    let bad = |hint: &str| Err(format!("{} is no number; {hint}", quoted(word)));
    let too_large = |_| format!("{} does not fit into 64 bits", quoted(word));
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        let Some(digits) = word.strip_prefix(prefix) else { continue };
        return match without_underscores(digits, |c| c.is_digit(radix)) {
            Some(digits) => i64::from_str_radix(&digits, radix).map(Data::Int).map_err(too_large),
            None => bad(&format!("'{prefix}' is followed by digits of base {radix}")),
        };
    }
    match without_underscores(unsigned, |c| c.is_ascii_digit()) {
        Some(digits) if 1 < digits.len() && digits.starts_with('0') => {
            bad("a number does not start with 0; put it in \"quotes\" if it is text")
        }
        Some(digits) => {
            let sign = if word.starts_with('-') { "-" } else { "" };
            format!("{sign}{digits}").parse().map(Data::Int).map_err(too_large)
        }
        None => parse_float(word),
    }
}

/// `digits [. digits] [e [sign] digits]`.
fn parse_float(word: &str) -> Result<Data, String> {
    let bad = || format!("{} is no number; put it in \"quotes\" if it is text", quoted(word));
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    let digits = |text: &str| without_underscores(text, |c| c.is_ascii_digit());
    let is_well_formed = || {
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let exponent = exponent.map(|text| text.strip_prefix(['+', '-']).unwrap_or(text));
        digits(whole).is_some_and(|whole| whole == "0" || !whole.starts_with('0'))
            && fraction.is_none_or(|text| digits(text).is_some())
            && exponent.is_none_or(|text| digits(text).is_some())
    };
    if !matches!(unsigned, "inf" | "nan") && !is_well_formed() {
        return Err(bad());
    }
    word.replace('_', "").parse().map(Data::Float).map_err(|_| bad())
}

/// Digits and nothing else; underscores only between two of them.
fn without_underscores(text: &str, is_digit: impl Fn(char) -> bool) -> Option<String> {
    let mut parts = text.split('_');
    parts.all(|part| !part.is_empty() && part.chars().all(&is_digit)).then(|| text.replace('_', ""))
}

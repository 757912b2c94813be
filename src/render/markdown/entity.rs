//! Character references: `&amp;`, `&#39;`, `&#x2014;`.

/// Bytes of the longest reference, from `&` to `;`.
pub(super) const ENTITY_BYTES_MAX: usize = 12;

/// The character that a name or number stands for; without `&` and `;`. A character that a
/// terminal would act on is not given: its reference stays what it is.
pub(super) fn decode(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        return NAMES.iter().find(|(known, _)| *known == name).map(|(_, c)| *c);
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) if !hex.starts_with('+') => u32::from_str_radix(hex, 16),
        Some(_) => return None,
        None if number.starts_with('+') => return None,
        None => number.parse(),
    };
    let c = char::from_u32(code.ok()?)?;
    let is_safe =
        !c.is_control() && crate::text::visible(c.encode_utf8(&mut [0; 4])) == *c.to_string();
    is_safe.then_some(c)
}

#[rustfmt::skip]
const NAMES: &[(&str, char)] = &[
    ("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\''), ("nbsp", '\u{a0}'),
    ("copy", '©'), ("reg", '®'), ("trade", '™'), ("hellip", '…'), ("mdash", '—'), ("ndash", '–'),
    ("lsquo", '‘'), ("rsquo", '’'), ("ldquo", '“'), ("rdquo", '”'), ("laquo", '«'),
    ("raquo", '»'), ("bull", '•'), ("middot", '·'), ("times", '×'), ("divide", '÷'),
    ("deg", '°'), ("plusmn", '±'), ("micro", 'µ'), ("frac12", '½'), ("frac14", '¼'),
    ("frac34", '¾'), ("sup2", '²'), ("sup3", '³'), ("larr", '←'), ("uarr", '↑'), ("rarr", '→'),
    ("darr", '↓'), ("harr", '↔'), ("lArr", '⇐'), ("rArr", '⇒'), ("hArr", '⇔'), ("le", '≤'),
    ("ge", '≥'), ("ne", '≠'), ("asymp", '≈'), ("equiv", '≡'), ("infin", '∞'), ("sum", '∑'),
    ("radic", '√'), ("minus", '−'), ("check", '✓'), ("cross", '✗'), ("para", '¶'), ("sect", '§'),
    ("dagger", '†'), ("euro", '€'), ("pound", '£'), ("yen", '¥'), ("cent", '¢'), ("iexcl", '¡'),
    ("iquest", '¿'), ("szlig", 'ß'), ("auml", 'ä'), ("ouml", 'ö'), ("uuml", 'ü'), ("Auml", 'Ä'),
    ("Ouml", 'Ö'), ("Uuml", 'Ü'), ("eacute", 'é'), ("egrave", 'è'), ("agrave", 'à'),
    ("ccedil", 'ç'), ("ntilde", 'ñ'), ("alpha", 'α'), ("beta", 'β'), ("gamma", 'γ'),
    ("delta", 'δ'), ("lambda", 'λ'), ("mu", 'μ'), ("pi", 'π'), ("sigma", 'σ'), ("omega", 'ω'),
    ("lbrace", '{'), ("rbrace", '}'), ("lbrack", '['), ("rbrack", ']'), ("ast", '*'),
    ("lowbar", '_'), ("vert", '|'), ("num", '#'), ("tab", ' '), ("grave", '`'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stand_for_characters_unless_those_act_on_a_terminal() {
        let table = [
            ("amp", Some('&')),
            ("#39", Some('\'')),
            ("#x2014", Some('—')),
            ("#X41", Some('A')),
            ("nope", None),
            ("#27", None),
            ("#x9b", None),
            ("#x202e", None),
            ("#10", None),
            ("#xd800", None),
            ("#+65", None),
            ("#x+41", None),
            ("#99999999999", None),
            ("#", None),
            ("", None),
        ];
        for (name, want) in table {
            assert_eq!(decode(name), want, "{name}");
        }
    }
}

//! Which key a whole sequence means.

use super::{Key, Mods, Press};

/// `ESC [ params last`; `None` for what is no key that went down.
pub fn control(params: &[u8], last: u8) -> Option<Press> {
    let params = Params::parse(params)?;
    if params.is_release() {
        return None;
    }
    let mods = params.mods()?;
    let key = match last {
        b'u' => return unicode(&params, mods),
        b'~' if params.first() == 27 => return character(params.get(2, 0)?, None, mods),
        b'~' => numbered(params.first())?,
        // As rxvt says what was held.
        b'^' | b'$' | b'@' => {
            let held = match last {
                b'^' => Mods::CTRL,
                b'$' => Mods::SHIFT,
                _ => Mods::CTRL.with(Mods::SHIFT),
            };
            return Some(Press { key: numbered(params.first())?, mods: held });
        }
        b'a'..=b'd' if params.is_empty() => {
            return Some(Press { key: lettered(last.to_ascii_uppercase())?, mods: Mods::SHIFT });
        }
        b'Z' => return Some(Press { key: Key::Tab, mods: mods.with(Mods::SHIFT) }),
        // The place of a cursor is told by the same letter as F3.
        _ if 1 < params.first() => return None,
        _ => lettered(last)?,
    };
    Some(Press { key, mods })
}

/// `ESC O params last`.
pub fn single(params: &[u8], last: u8) -> Option<Press> {
    let held = std::str::from_utf8(params).ok()?;
    let mods = if held.is_empty() { Mods::NONE } else { mods(held.parse().ok()?)? };
    let key = match last {
        b'a'..=b'd' => {
            let key = lettered(last.to_ascii_uppercase())?;
            return Some(Press { key, mods: mods.with(Mods::CTRL) });
        }
        b'I' => Key::Tab,
        b'M' => Key::Enter,
        b'X' => Key::Char('='),
        b' ' => Key::Char(' '),
        // The keypad sends what is on its keys, moved up by 64.
        b'j'..=b'y' => Key::Char(char::from(last - 64)),
        _ => lettered(last)?,
    };
    Some(Press { key, mods })
}

fn lettered(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'F' => Key::End,
        b'H' => Key::Home,
        b'P'..=b'S' => Key::F(last - b'P' + 1),
        _ => return None,
    })
}

fn numbered(number: u32) -> Option<Key> {
    let function = |first: u32, below: u32| u8::try_from(number - below + first).ok().map(Key::F);
    match number {
        1 | 7 => Some(Key::Home),
        2 => Some(Key::Insert),
        3 => Some(Key::Delete),
        4 | 8 => Some(Key::End),
        5 => Some(Key::PageUp),
        6 => Some(Key::PageDown),
        11..=15 => function(1, 11),
        17..=21 => function(6, 17),
        23..=26 => function(11, 23),
        28 | 29 => function(15, 28),
        31..=34 => function(17, 31),
        _ => None,
    }
}

/// `ESC [ code : shifted ; mods : event ; text u`, the kitty keyboard protocol.
fn unicode(params: &Params, mods: Mods) -> Option<Press> {
    let key = match params.first() {
        57376..=57398 => Key::F(u8::try_from(params.first() - 57376 + 13).ok()?),
        code @ 57399..=57408 => Key::Char(char::from_digit(code - 57399, 10)?),
        57409 => Key::Char('.'),
        57410 => Key::Char('/'),
        57411 => Key::Char('*'),
        57412 => Key::Char('-'),
        57413 => Key::Char('+'),
        57414 => Key::Enter,
        57415 => Key::Char('='),
        57416 => Key::Char(','),
        57417 => Key::Left,
        57418 => Key::Right,
        57419 => Key::Up,
        57420 => Key::Down,
        57421 => Key::PageUp,
        57422 => Key::PageDown,
        57423 => Key::Home,
        57424 => Key::End,
        57425 => Key::Insert,
        57426 => Key::Delete,
        // The private area holds keys without a meaning here: locks, media, modifiers alone.
        57344..=63743 => return None,
        code => return character(code, params.get(0, 1).and_then(char::from_u32), mods),
    };
    Some(Press { key, mods })
}

/// A key by the character that it sends without, and with, Shift.
fn character(code: u32, shifted: Option<char>, mods: Mods) -> Option<Press> {
    let c = match code {
        9 => return Some(Press { key: Key::Tab, mods }),
        13 => return Some(Press { key: Key::Enter, mods }),
        27 => return Some(Press { key: Key::Escape, mods }),
        8 | 127 => return Some(Press { key: Key::Backspace, mods }),
        code => char::from_u32(code).filter(|c| !c.is_control())?,
    };
    // Everywhere else these are one key.
    match c {
        '[' if mods == Mods::CTRL => return Some(Press::plain(Key::Escape)),
        'i' if mods == Mods::CTRL => return Some(Press::plain(Key::Tab)),
        'm' if mods == Mods::CTRL => return Some(Press::plain(Key::Enter)),
        _ => {}
    }
    if mods.has(Mods::CTRL) && c.is_alphabetic() {
        return Some(Press { key: Key::Char(single_case(c, char::to_lowercase)), mods });
    }
    if !mods.has(Mods::SHIFT) {
        return Some(Press { key: Key::Char(c), mods });
    }
    // Shift is in the character, as where it is sent as text.
    let typed = match shifted {
        Some(shifted) => shifted,
        None if c.is_alphabetic() => single_case(c, char::to_uppercase),
        // What a layout makes of this key is not known.
        None => return Some(Press { key: Key::Char(c), mods }),
    };
    Some(Press { key: Key::Char(typed), mods: mods.without(Mods::SHIFT) })
}

/// Another case where that is one character, too.
fn single_case<I: Iterator<Item = char>>(c: char, convert: impl Fn(char) -> I) -> char {
    let mut converted = convert(c);
    match (converted.next(), converted.next()) {
        (Some(single), None) => single,
        _ => c,
    }
}

/// What xterm and kitty call the modifiers, plus one. `None` with Super or Hyper: such a press
/// is meant for somebody else.
fn mods(held: u32) -> Option<Mods> {
    let bits = held.saturating_sub(1);
    let pairs = [(1, Mods::SHIFT), (2, Mods::ALT), (4, Mods::CTRL), (32, Mods::ALT)];
    let held = pairs.iter().filter(|(bit, _)| bits & bit != 0);
    (bits & (8 | 16) == 0).then(|| held.fold(Mods::NONE, |all, (_, one)| all.with(*one)))
}

/// Numbers between `;`, each with parts between `:`. What is left out is `None`.
struct Params(Vec<Vec<Option<u32>>>);

impl Params {
    /// `None` for bytes that no key has there.
    fn parse(bytes: &[u8]) -> Option<Params> {
        let number = |digits: &[u8]| match digits {
            [] => Some(None),
            digits if !digits.iter().all(u8::is_ascii_digit) => None,
            digits => std::str::from_utf8(digits).ok()?.parse().ok().map(Some),
        };
        let parts = |field: &[u8]| field.split(|&byte| byte == b':').map(number).collect();
        bytes.split(|&byte| byte == b';').map(parts).collect::<Option<_>>().map(Params)
    }

    fn get(&self, field_idx: usize, part_idx: usize) -> Option<u32> {
        *self.0.get(field_idx)?.get(part_idx)?
    }

    fn first(&self) -> u32 {
        self.get(0, 0).unwrap_or(1)
    }

    fn is_empty(&self) -> bool {
        self.0.len() == 1 && self.get(0, 0).is_none()
    }

    fn mods(&self) -> Option<Mods> {
        mods(self.get(1, 0).unwrap_or(1))
    }

    fn is_release(&self) -> bool {
        self.get(1, 1) == Some(3)
    }
}

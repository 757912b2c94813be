//! Keys out of the bytes that a terminal sends.
//!
//! Any way of cutting the same bytes into [`KeyDecoder::push`] calls yields the same input. What
//! is understood: UTF-8, C0 controls, an ESC before a key as Alt, the sequences of xterm, rxvt and
//! the Linux console, xterm's modifyOtherKeys, the kitty keyboard protocol, bracketed paste. What
//! is not a key (replies of the terminal, reports of focus and mouse, sequences nobody knows) is
//! swallowed whole, and the bytes behind it are keys again.
//!
//! The decoder holds no timer. Whether an ESC is a key or the start of one is decided by
//! [`KeyDecoder::idle`], which the caller calls when nothing
//! came for [`KeyDecoder::wait`].

mod paste;
mod sequence;

use std::time::Duration;

use paste::Paste;

/// How long an ESC may be the start of a sequence: long enough for one that a network cut in two,
/// too short to be noticed.
const ESCAPE_WAIT: Duration = Duration::from_millis(50);

/// How long a paste may stand still: what is behind the gap would be typed, its line ends too.
const PASTE_WAIT: Duration = Duration::from_secs(3);

/// What one paste may hold; see [`KeyDecoder::take_cut_bytes`].
pub const PASTE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Parameters beyond these belong to no key; they are swallowed unread.
const PARAMS_BYTES_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character as typed. With Ctrl a letter is lower case, and Shift stands beside it.
    Char(char),
    Enter,
    Tab,
    Backspace,
    Delete,
    Escape,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Insert,
    F(u8),
}

/// The modifiers that were held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mods(u8);

impl Mods {
    pub const NONE: Mods = Mods(0);
    pub const SHIFT: Mods = Mods(1);
    pub const ALT: Mods = Mods(1 << 1);
    pub const CTRL: Mods = Mods(1 << 2);

    /// Whether all of `other` were held.
    pub const fn has(self, other: Mods) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub const fn with(self, other: Mods) -> Mods {
        Mods(self.0 | other.0)
    }

    #[must_use]
    pub const fn without(self, other: Mods) -> Mods {
        Mods(self.0 & !other.0)
    }
}

/// One key going down, or repeating.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Press {
    pub key: Key,
    pub mods: Mods,
}

impl Press {
    pub const fn plain(key: Key) -> Press {
        Press { key, mods: Mods::NONE }
    }

    pub const fn ctrl(c: char) -> Press {
        Press { key: Key::Char(c), mods: Mods::CTRL }
    }

    pub const fn alt(c: char) -> Press {
        Press { key: Key::Char(c), mods: Mods::ALT }
    }

    #[must_use]
    const fn with(self, mods: Mods) -> Press {
        Press { key: self.key, mods: self.mods.with(mods) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Press(Press),
    /// Pasted text: line ends are `\n`, and no other control character but `\t` is in it.
    Paste(String),
    /// Something came that is no key.
    Ignored,
}

/// What the bytes so far are the start of. `alt`: an ESC stood before.
#[derive(Debug)]
enum State {
    Ground,
    /// Up to three bytes of a character.
    Character {
        bytes: Vec<u8>,
        alt: bool,
    },
    Escape {
        alt: bool,
    },
    /// Behind `ESC [`: the bytes before the final one.
    Control {
        params: Vec<u8>,
        alt: bool,
    },
    /// Behind `ESC [ [`, as the Linux console begins a function key.
    Console {
        alt: bool,
    },
    /// Behind `ESC O`: digits, if any.
    Single {
        params: Vec<u8>,
        alt: bool,
    },
    /// Behind `ESC ]` and the like, up to BEL or `ESC \`; `start` is the character after ESC.
    Text {
        start: char,
        is_empty: bool,
    },
    /// An ESC inside of such a text.
    TextEscape,
    /// Three bytes say where a mouse was, in the oldest form.
    Mouse {
        left: usize,
    },
}

#[derive(Debug)]
pub struct KeyDecoder {
    state: State,
    /// The paste that goes on; the state is [`State::Ground`] then.
    paste: Option<Paste>,
    cut_bytes: usize,
}

impl Default for KeyDecoder {
    fn default() -> KeyDecoder {
        KeyDecoder::new()
    }
}

impl KeyDecoder {
    pub fn new() -> KeyDecoder {
        KeyDecoder { state: State::Ground, paste: None, cut_bytes: 0 }
    }

    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Input>) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            match &mut self.paste {
                None => {
                    self.step(byte, out);
                    rest = after;
                }
                Some(paste) => {
                    rest = paste.take(rest);
                    if paste.is_ended() {
                        self.end_paste(out);
                    }
                }
            }
        }
    }

    /// Whether [`KeyDecoder::idle`] would make a difference. A character that came in part is no
    /// reason: its rest comes.
    pub fn is_pending(&self) -> bool {
        self.wait().is_some()
    }

    /// How long nothing must have come for [`KeyDecoder::idle`] to be called; `None`: it need not
    /// be called.
    pub fn wait(&self) -> Option<Duration> {
        match self.state {
            _ if self.paste.is_some() => Some(PASTE_WAIT),
            State::Ground | State::Character { .. } => None,
            _ => Some(ESCAPE_WAIT),
        }
    }

    /// Bytes of pastes that were dropped for [`PASTE_BYTES_MAX`] since this was asked last.
    pub fn take_cut_bytes(&mut self) -> usize {
        std::mem::take(&mut self.cut_bytes)
    }

    /// Nothing came for a while: what has begun will not go on. A lone ESC is the key, a sequence
    /// that only just began was typed with Alt, any other is given up, and a paste has ended.
    pub fn idle(&mut self, out: &mut Vec<Input>) {
        if let Some(paste) = &self.paste {
            // The rest of an end that is late is no text that was typed.
            self.state = match paste.end_so_far() {
                b"" => State::Ground,
                b"\x1b" => State::Escape { alt: false },
                end => State::Control { params: end[2..].to_vec(), alt: false },
            };
            return self.end_paste(out);
        }
        match std::mem::replace(&mut self.state, State::Ground) {
            State::Ground => {}
            State::Character { bytes, alt } => self.state = State::Character { bytes, alt },
            State::Escape { alt } => {
                let escape = Input::Press(Press::plain(Key::Escape));
                out.extend(std::iter::repeat_n(escape, 1 + usize::from(alt)));
            }
            State::Control { params, alt } if params.is_empty() => push_begun('[', alt, out),
            State::Single { params, alt } if params.is_empty() => push_begun('O', alt, out),
            State::Text { start, is_empty: true } => push_begun(start, false, out),
            State::Control { .. }
            | State::Console { .. }
            | State::Single { .. }
            | State::Text { .. }
            | State::Mouse { .. } => out.push(Input::Ignored),
            State::TextEscape => {
                out.extend([Input::Ignored, Input::Press(Press::plain(Key::Escape))]);
            }
        }
    }

    fn end_paste(&mut self, out: &mut Vec<Input>) {
        if let Some(paste) = self.paste.take() {
            self.cut_bytes += paste.cut_bytes();
            out.push(Input::Paste(paste.into_text()));
        }
    }

    fn step(&mut self, byte: u8, out: &mut Vec<Input>) {
        match std::mem::replace(&mut self.state, State::Ground) {
            State::Ground => self.begin(byte, false, out),
            State::Character { bytes, alt } => self.character(bytes, byte, alt, out),
            State::Escape { alt } => self.behind_escape(byte, alt, out),
            State::Control { params, alt } => self.control(params, byte, alt, out),
            State::Console { alt } => match byte {
                b'A'..=b'E' => {
                    let press = Press::plain(Key::F(byte - b'A' + 1));
                    out.push(Input::Press(with_alt(press, alt)));
                }
                _ => self.abort(byte, out),
            },
            State::Single { params, alt } => self.single(params, byte, alt, out),
            State::Text { start, .. } => match byte {
                0x1b => self.state = State::TextEscape,
                // BEL ends these, CAN and SUB any sequence.
                0x07 | 0x18 | 0x1a => out.push(Input::Ignored),
                _ => self.state = State::Text { start, is_empty: false },
            },
            State::TextEscape => match byte {
                b'\\' => out.push(Input::Ignored),
                _ => {
                    out.push(Input::Ignored);
                    self.behind_escape(byte, false, out);
                }
            },
            State::Mouse { left: 1 } => out.push(Input::Ignored),
            State::Mouse { left } => self.state = State::Mouse { left: left - 1 },
        }
    }

    /// A byte where a key begins.
    fn begin(&mut self, byte: u8, alt: bool, out: &mut Vec<Input>) {
        match byte {
            0x1b => self.state = State::Escape { alt: false },
            0x00..=0x1f | 0x7f => out.push(Input::Press(with_alt(c0(byte), alt))),
            b' '..=b'~' => push_char(char::from(byte), alt, out),
            _ => self.character(Vec::new(), byte, alt, out),
        }
    }

    fn character(&mut self, mut bytes: Vec<u8>, byte: u8, alt: bool, out: &mut Vec<Input>) {
        bytes.push(byte);
        match std::str::from_utf8(&bytes) {
            Ok(text) => text.chars().for_each(|c| push_char(c, alt, out)),
            Err(error) => match error.error_len() {
                None => self.state = State::Character { bytes, alt },
                // The last byte is none of this character's: it begins something.
                Some(length) if length < bytes.len() => {
                    out.push(Input::Ignored);
                    self.begin(byte, false, out);
                }
                Some(_) => out.push(Input::Ignored),
            },
        }
    }

    fn behind_escape(&mut self, byte: u8, alt: bool, out: &mut Vec<Input>) {
        match byte {
            0x1b if alt => {
                out.push(Input::Press(Press::plain(Key::Escape)));
                self.state = State::Escape { alt };
            }
            0x1b => self.state = State::Escape { alt: true },
            b'[' => self.state = State::Control { params: Vec::new(), alt },
            b'O' => self.state = State::Single { params: Vec::new(), alt },
            b']' | b'P' | b'X' | b'^' | b'_' if !alt => {
                self.state = State::Text { start: char::from(byte), is_empty: true };
            }
            _ => {
                if alt {
                    out.push(Input::Press(Press::plain(Key::Escape)));
                }
                self.begin(byte, true, out);
            }
        }
    }

    fn control(&mut self, mut params: Vec<u8>, byte: u8, alt: bool, out: &mut Vec<Input>) {
        // rxvt ends a key that Shift was held with by what elsewhere never ends a sequence.
        let is_rxvt_shift =
            byte == b'$' && !params.is_empty() && params.iter().all(u8::is_ascii_digit);
        match byte {
            b'[' if params.is_empty() => self.state = State::Console { alt },
            b'M' if params.is_empty() => self.state = State::Mouse { left: 3 },
            b'~' if params == b"200" => {
                self.paste = Some(Paste::default());
            }
            b' '..=b'?' if !is_rxvt_shift => {
                if params.len() < PARAMS_BYTES_MAX {
                    params.push(byte);
                }
                self.state = State::Control { params, alt };
            }
            b'$' | b'@'..=b'~' => {
                // Those that were cut are no key's.
                let press = match params.len() {
                    PARAMS_BYTES_MAX.. => None,
                    _ => sequence::control(&params, byte),
                };
                out.push(press.map_or(Input::Ignored, |press| Input::Press(with_alt(press, alt))));
            }
            _ => self.abort(byte, out),
        }
    }

    fn single(&mut self, mut params: Vec<u8>, byte: u8, alt: bool, out: &mut Vec<Input>) {
        match byte {
            b'0'..=b'9' if params.len() < 3 => {
                params.push(byte);
                self.state = State::Single { params, alt };
            }
            b' '..=b'~' => {
                let press = sequence::single(&params, byte);
                out.push(press.map_or(Input::Ignored, |press| Input::Press(with_alt(press, alt))));
            }
            _ => self.abort(byte, out),
        }
    }

    /// A sequence was broken off by a byte that begins something else.
    fn abort(&mut self, byte: u8, out: &mut Vec<Input>) {
        out.push(Input::Ignored);
        match byte {
            0x18 | 0x1a => {}
            _ => self.begin(byte, false, out),
        }
    }
}

fn with_alt(press: Press, alt: bool) -> Press {
    if alt { press.with(Mods::ALT) } else { press }
}

fn push_char(c: char, alt: bool, out: &mut Vec<Input>) {
    out.push(match c.is_control() {
        true => Input::Ignored,
        false => Input::Press(with_alt(Press::plain(Key::Char(c)), alt)),
    });
}

/// A sequence that did not go on behind its first character: that was typed with Alt, and behind
/// a second ESC the first was a key.
fn push_begun(start: char, behind_escape: bool, out: &mut Vec<Input>) {
    if behind_escape {
        out.push(Input::Press(Press::plain(Key::Escape)));
    }
    out.push(Input::Press(Press::alt(start)));
}

/// The key of a control character; there is one byte for several of them.
fn c0(byte: u8) -> Press {
    match byte {
        0x00 => Press::ctrl(' '),
        b'\t' => Press::plain(Key::Tab),
        b'\r' => Press::plain(Key::Enter),
        0x1b => Press::plain(Key::Escape),
        0x7f => Press::plain(Key::Backspace),
        0x01..=0x1a => Press::ctrl(char::from(byte | 0x60)),
        _ => Press::ctrl(char::from(byte | 0x40)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIFT: Mods = Mods::SHIFT;
    const ALT: Mods = Mods::ALT;
    const CTRL: Mods = Mods::CTRL;

    fn decode(pieces: &[&[u8]]) -> (Vec<Input>, KeyDecoder) {
        let (mut decoder, mut out) = (KeyDecoder::new(), Vec::new());
        pieces.iter().for_each(|piece| decoder.push(piece, &mut out));
        (out, decoder)
    }

    /// However the bytes are cut they mean `want`, and nothing is left over.
    #[track_caller]
    fn check(bytes: &[u8], want: &[Input]) {
        let shown = String::from_utf8_lossy(bytes);
        let is_whole = |(out, decoder): (Vec<Input>, KeyDecoder), cut: &str| {
            assert_eq!(out, want, "{shown:?} {cut}");
            assert!(!decoder.is_pending(), "{shown:?} {cut}");
        };
        is_whole(decode(&bytes.chunks(1).collect::<Vec<_>>()), "byte by byte");
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                is_whole(decode(&pieces), &format!("cut at {first} and {second}"));
            }
        }
    }

    /// [`check`] for bytes that are one key, alone and between letters.
    #[track_caller]
    fn check_key(bytes: &str, key: Key, mods: Mods) {
        let press = |c| Input::Press(Press::plain(Key::Char(c)));
        let want = Input::Press(Press { key, mods });
        check(bytes.as_bytes(), std::slice::from_ref(&want));
        check(
            format!("a{bytes}{bytes}z").as_bytes(),
            &[press('a'), want.clone(), want, press('z')],
        );
    }

    #[track_caller]
    fn check_idle(bytes: &[u8], want: &[Input]) {
        let (mut out, mut decoder) = decode(&[bytes]);
        assert!(decoder.is_pending(), "{bytes:?}");
        decoder.idle(&mut out);
        assert_eq!(out, want, "{bytes:?}");
        assert!(!decoder.is_pending(), "{bytes:?}");
        let before = out.len();
        decoder.push(b"a", &mut out);
        assert_eq!(out[before..], [Input::Press(Press::plain(Key::Char('a')))], "{bytes:?}");
    }

    fn escape() -> Input {
        Input::Press(Press::plain(Key::Escape))
    }

    fn alt(c: char) -> Input {
        Input::Press(Press::alt(c))
    }

    #[test]
    fn characters_and_controls() {
        for c in ['a', 'Z', ' ', '~', 'é', '界', '🦀', '\u{301}', '\u{fffd}'] {
            check_key(&c.to_string(), Key::Char(c), Mods::NONE);
            check_key(&format!("\x1b{c}"), Key::Char(c), ALT);
        }
        let table = [
            ('\r', Key::Enter, Mods::NONE),
            ('\t', Key::Tab, Mods::NONE),
            ('\x7f', Key::Backspace, Mods::NONE),
            ('\n', Key::Char('j'), CTRL),
            ('\x08', Key::Char('h'), CTRL),
            ('\0', Key::Char(' '), CTRL),
            ('\x01', Key::Char('a'), CTRL),
            ('\x1a', Key::Char('z'), CTRL),
            ('\x1c', Key::Char('\\'), CTRL),
            ('\x1d', Key::Char(']'), CTRL),
            ('\x1e', Key::Char('^'), CTRL),
            ('\x1f', Key::Char('_'), CTRL),
        ];
        for (c, key, mods) in table {
            check_key(&c.to_string(), key, mods);
            check_key(&format!("\x1b{c}"), key, mods.with(ALT));
        }
    }

    #[test]
    fn keys_of_xterm_rxvt_and_the_console() {
        let table: &[(&str, Key, Mods)] = &[
            ("[A", Key::Up, Mods::NONE),
            ("[B", Key::Down, Mods::NONE),
            ("[C", Key::Right, Mods::NONE),
            ("[D", Key::Left, Mods::NONE),
            ("[H", Key::Home, Mods::NONE),
            ("[F", Key::End, Mods::NONE),
            ("[1~", Key::Home, Mods::NONE),
            ("[2~", Key::Insert, Mods::NONE),
            ("[3~", Key::Delete, Mods::NONE),
            ("[4~", Key::End, Mods::NONE),
            ("[5~", Key::PageUp, Mods::NONE),
            ("[6~", Key::PageDown, Mods::NONE),
            ("[7~", Key::Home, Mods::NONE),
            ("[8~", Key::End, Mods::NONE),
            ("[Z", Key::Tab, SHIFT),
            ("[11~", Key::F(1), Mods::NONE),
            ("[15~", Key::F(5), Mods::NONE),
            ("[17~", Key::F(6), Mods::NONE),
            ("[21~", Key::F(10), Mods::NONE),
            ("[24~", Key::F(12), Mods::NONE),
            ("[29~", Key::F(16), Mods::NONE),
            ("[34~", Key::F(20), Mods::NONE),
            ("[P", Key::F(1), Mods::NONE),
            ("[1;5R", Key::F(3), CTRL),
            ("[1;2A", Key::Up, SHIFT),
            ("[1;3B", Key::Down, ALT),
            ("[1;5C", Key::Right, CTRL),
            ("[1;6D", Key::Left, CTRL.with(SHIFT)),
            ("[1;8H", Key::Home, CTRL.with(SHIFT).with(ALT)),
            ("[3;5~", Key::Delete, CTRL),
            ("[15;2~", Key::F(5), SHIFT),
            ("[27;5;9~", Key::Tab, CTRL),
            ("[27;2;13~", Key::Enter, SHIFT),
            ("[27;5;13~", Key::Enter, CTRL),
            ("[27;5;46~", Key::Char('.'), CTRL),
            ("[27;6;65~", Key::Char('a'), CTRL.with(SHIFT)),
            ("[27;6;95~", Key::Char('_'), CTRL.with(SHIFT)),
            ("[27;3;127~", Key::Backspace, ALT),
            ("[a", Key::Up, SHIFT),
            ("[d", Key::Left, SHIFT),
            ("[3^", Key::Delete, CTRL),
            ("[3$", Key::Delete, SHIFT),
            ("[23@", Key::F(11), CTRL.with(SHIFT)),
            ("OA", Key::Up, Mods::NONE),
            ("OH", Key::Home, Mods::NONE),
            ("OF", Key::End, Mods::NONE),
            ("OP", Key::F(1), Mods::NONE),
            ("OS", Key::F(4), Mods::NONE),
            ("O5P", Key::F(1), CTRL),
            ("Oc", Key::Right, CTRL),
            ("OM", Key::Enter, Mods::NONE),
            ("Oj", Key::Char('*'), Mods::NONE),
            ("Op", Key::Char('0'), Mods::NONE),
            ("Oy", Key::Char('9'), Mods::NONE),
            ("[[A", Key::F(1), Mods::NONE),
            ("[[E", Key::F(5), Mods::NONE),
        ];
        for (bytes, key, mods) in table {
            check_key(&format!("\x1b{bytes}"), *key, *mods);
            check_key(&format!("\x1b\x1b{bytes}"), *key, mods.with(ALT));
        }
    }

    #[test]
    fn keys_of_the_kitty_protocol() {
        let table: &[(&str, Key, Mods)] = &[
            ("27u", Key::Escape, Mods::NONE),
            ("27;1:1u", Key::Escape, Mods::NONE),
            ("27;1:2u", Key::Escape, Mods::NONE),
            ("13;2u", Key::Enter, SHIFT),
            ("13;3u", Key::Enter, ALT),
            ("9;5u", Key::Tab, CTRL),
            ("9;2u", Key::Tab, SHIFT),
            ("127;3u", Key::Backspace, ALT),
            ("97u", Key::Char('a'), Mods::NONE),
            ("97;2u", Key::Char('A'), Mods::NONE),
            ("49:33;2u", Key::Char('!'), Mods::NONE),
            ("49;2u", Key::Char('1'), SHIFT),
            ("97;3u", Key::Char('a'), ALT),
            ("97;4u", Key::Char('A'), ALT),
            ("97;33u", Key::Char('a'), ALT),
            ("99;5u", Key::Char('c'), CTRL),
            ("99::99;5u", Key::Char('c'), CTRL),
            ("99;69u", Key::Char('c'), CTRL),
            ("99;133:1u", Key::Char('c'), CTRL),
            ("97:65;6u", Key::Char('a'), CTRL.with(SHIFT)),
            ("45:95;6u", Key::Char('_'), CTRL),
            ("45;6u", Key::Char('-'), CTRL.with(SHIFT)),
            ("55;5u", Key::Char('7'), CTRL),
            ("32;5u", Key::Char(' '), CTRL),
            ("91;5u", Key::Escape, Mods::NONE),
            ("105;5u", Key::Tab, Mods::NONE),
            ("109;5u", Key::Enter, Mods::NONE),
            ("223;2u", Key::Char('ß'), Mods::NONE),
            ("57399u", Key::Char('0'), Mods::NONE),
            ("57408u", Key::Char('9'), Mods::NONE),
            ("57414;5u", Key::Enter, CTRL),
            ("57417;5u", Key::Left, CTRL),
            ("57376u", Key::F(13), Mods::NONE),
            ("1;1:1A", Key::Up, Mods::NONE),
            ("1;5:2D", Key::Left, CTRL),
            ("3;1:2~", Key::Delete, Mods::NONE),
            ("97;;97u", Key::Char('a'), Mods::NONE),
        ];
        for (bytes, key, mods) in table {
            check_key(&format!("\x1b[{bytes}"), *key, *mods);
        }
        // Releases, Super and Hyper, modifiers alone, locks, media keys, and no key at all.
        let ignored = [
            "97;1:3u",
            "27;1:3u",
            "1;1:3A",
            "3;5:3~",
            "99;9u",
            "99;17u",
            "1;9A",
            "57441;2u",
            "57358u",
            "57428u",
            "57460u",
            "u",
            "0u",
            "1114112u",
            "55296u",
            "4294967296u",
            "1:u",
            "97;x",
            "99;5:99999999999u",
            "13;4294967295u",
        ];
        for bytes in ignored {
            check(format!("\x1b[{bytes}").as_bytes(), &[Input::Ignored]);
        }
    }

    #[test]
    fn what_is_no_key_is_swallowed_whole() {
        let table: &[&[u8]] = &[
            b"\x1b[?1;2c",
            b"\x1b[>41;354;0c",
            b"\x1b[?2026;2$y",
            b"\x1b[?5u",
            b"\x1b[24;80R",
            b"\x1b[8;24;80t",
            b"\x1b[0n",
            b"\x1b[I",
            b"\x1b[O",
            b"\x1b[E",
            b"\x1b[M !!",
            b"\x1b[M\xff\x1b[",
            b"\x1b[<0;10;20M",
            b"\x1b[<0;10;20m",
            b"\x1b[201~",
            b"\x1b[99~",
            b"\x1b[ q",
            b"\x1bOz",
            b"\x1bO9999",
            b"\x1b]11;rgb:ffff/0000/8080\x1b\\",
            b"\x1b]11;rgb:ffff/0000/8080\x07",
            b"\x1b]52;c;\xe7\x95\x8c[A\r\x07",
            b"\x1bP1$r0m\x1b\\",
            b"\x1bP>|term(1.2)\x1b\\",
            b"\x1b_Gi=1;OK\x1b\\",
            b"\x1b^x\x1b\\",
            b"\x1bXx\x1b\\",
            b"\x1b[12\x18",
            b"\x1b]0;x\x1a",
            b"\xff",
            b"\xc2\x9b",
        ];
        for bytes in table {
            check(bytes, &[Input::Ignored]);
        }
        // However long: nothing is kept of it.
        let long = format!("\x1b[{}A", "1;".repeat(100_000));
        let (out, decoder) = decode(&[long.as_bytes()]);
        assert_eq!((out, decoder.is_pending()), (vec![Input::Ignored], false));
    }

    #[test]
    fn a_sequence_that_breaks_off_costs_nothing_behind_it() {
        let press = |c| Input::Press(Press::plain(Key::Char(c)));
        let up = || Input::Press(Press::plain(Key::Up));
        check(b"\x1b[1;\x1b[A", &[Input::Ignored, up()]);
        check(b"\x1b[1\x03", &[Input::Ignored, Input::Press(Press::ctrl('c'))]);
        check("\x1b[1é".as_bytes(), &[Input::Ignored, press('é')]);
        check(b"\x1b[[Z", &[Input::Ignored, press('Z')]);
        check(b"\x1bO\x1b[A", &[Input::Ignored, up()]);
        check(b"\x1b]0;title\x1b[A", &[Input::Ignored, up()]);
        check(b"\xe7\x95a", &[Input::Ignored, press('a')]);
        check(b"\xe7\x1b[A", &[Input::Ignored, up()]);
        check(b"\xf0\x80a", &[Input::Ignored, Input::Ignored, press('a')]);
        check("\u{e7}\x1b\x1b\x1bx".as_bytes(), &[press('ç'), escape(), escape(), alt('x')]);
    }

    #[test]
    fn silence_decides_what_has_begun() {
        check_idle(b"\x1b", &[escape()]);
        check_idle(b"\x1b\x1b", &[escape(), escape()]);
        check_idle(b"\x1b[", &[alt('[')]);
        check_idle(b"\x1b\x1b[", &[escape(), alt('[')]);
        check_idle(b"\x1bO", &[alt('O')]);
        for c in [']', 'P', 'X', '^', '_'] {
            check_idle(format!("\x1b{c}").as_bytes(), &[alt(c)]);
        }
        for cut in ["\x1b[1", "\x1b[1;5", "\x1b[[", "\x1bO5", "\x1b]0;title", "\x1b[M!"] {
            check_idle(cut.as_bytes(), &[Input::Ignored]);
        }
        check_idle(b"\x1b]0;title\x1b", &[Input::Ignored, escape()]);
        // A character goes on whenever its rest comes.
        let (mut out, mut decoder) = decode(&[&"é".as_bytes()[..1]]);
        assert!(!decoder.is_pending());
        decoder.idle(&mut out);
        decoder.push(&"é".as_bytes()[1..], &mut out);
        assert_eq!(out, [Input::Press(Press::plain(Key::Char('é')))]);
    }

    /// The text of one paste, however it is cut.
    #[track_caller]
    fn check_paste(inner: &[u8], want: &str) {
        check(&[b"\x1b[200~", inner, b"\x1b[201~"].concat(), &[Input::Paste(want.to_owned())]);
    }

    #[test]
    fn pasted_text_is_text() {
        check_paste(b"", "");
        check_paste(b"one\r\ntwo\rthree\nfour\r\r\nfive\n\r", "one\ntwo\nthree\nfour\n\nfive\n\n");
        check_paste("\t界 e\u{301}".as_bytes(), "\t界 e\u{301}");
        check_paste(b"a\0b\x03c\x7fd\xc2\x9be\x08", "abcde");
        check_paste(b"bad \xff\xe7\x95 bytes\xf0", "bad  bytes");
        check_paste(b"\x1b[31mred\x1b]0;x\x07\x1b", "[31mred]0;x");
        check_paste(b"\x1b[200~ again", "[200~ again");
        check_paste(b"\x1b[201\x1b\x1b[20\x1b[2 almost", "[201[20[2 almost");
        // A text with the end in it cannot be told from one that ends there.
        let key = |c| Input::Press(Press::plain(Key::Char(c)));
        check(
            b"\x1b[200~a\x1b[201~b\x1b[201~",
            &[Input::Paste("a".into()), key('b'), Input::Ignored],
        );
    }

    #[test]
    fn a_paste_without_an_end_ends_by_silence() {
        let paste = |text: &str| Input::Paste(text.into());
        check_idle(b"\x1b[200~", &[paste("")]);
        check_idle(b"\x1b[200~one\rtwo", &[paste("one\ntwo")]);
        // What comes of the end after that is no text.
        for cut in 1..PASTE_END.len() {
            let (mut out, mut decoder) = decode(&[b"\x1b[200~text", &PASTE_END[..cut]]);
            assert_eq!(decoder.wait(), Some(PASTE_WAIT));
            decoder.idle(&mut out);
            assert_eq!(decoder.wait(), Some(ESCAPE_WAIT));
            decoder.push(&PASTE_END[cut..], &mut out);
            decoder.push(b"a", &mut out);
            let key = Input::Press(Press::plain(Key::Char('a')));
            assert_eq!(out, [paste("text"), Input::Ignored, key], "cut at {cut}");
        }
    }

    const PASTE_END: &[u8] = b"\x1b[201~";

    #[test]
    fn a_paste_is_bounded_and_tells_what_it_lost() {
        let long = [b"\x1b[200~", &vec![b'x'; PASTE_BYTES_MAX - 1][..], "éé".as_bytes()].concat();
        let (mut out, mut decoder) = decode(&[&long, PASTE_END, b"a"]);
        let key = Input::Press(Press::plain(Key::Char('a')));
        assert_eq!(out.pop(), Some(key));
        // The character in the middle of which it ends is not in the text.
        assert_eq!(out, [Input::Paste("x".repeat(PASTE_BYTES_MAX - 1))]);
        assert_eq!((decoder.take_cut_bytes(), decoder.take_cut_bytes()), (3, 0));
    }

    /// After any bytes, silence brings the decoder back: a line typed then comes out whole.
    fn check_resync(bytes: &[u8]) {
        let (mut out, mut decoder) = decode(&[bytes]);
        for _ in 0..2 {
            if decoder.is_pending() {
                decoder.idle(&mut out);
            }
        }
        assert!(!decoder.is_pending(), "{bytes:?}");
        let before = out.len();
        decoder.push(b"ok\r", &mut out);
        let typed = [Key::Char('o'), Key::Char('k'), Key::Enter];
        let typed = typed.map(|key| Input::Press(Press::plain(key)));
        assert!(out[before..].ends_with(&typed), "{bytes:?}: {out:?}");
        let (bytewise, _) = decode(&bytes.chunks(1).collect::<Vec<_>>());
        assert!(out.starts_with(&bytewise), "{bytes:?}: {out:?} {bytewise:?}");
    }

    #[test]
    fn any_short_bytes_are_survived() {
        for first in 0..=255 {
            for second in 0..=255 {
                check_resync(&[first, second]);
                check_resync(&[0x1b, first, second]);
                check_resync(&[0x1b, b'[', first, second]);
            }
        }
        let alphabet = b"\x1b[O]P\\;:?<$ 0127~uAMZ\x07\x18\x03\r\x7f\xc3\xa9\xe7\xf0\x80\xff";
        let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
        for _ in 0..3 {
            let grown = |text: &Vec<u8>| {
                let text = text.clone();
                alphabet.iter().map(move |&byte| [&text[..], &[byte]].concat())
            };
            texts = texts.iter().flat_map(grown).collect();
            texts.iter().for_each(|text| check_resync(text));
            texts.iter().for_each(|text| check_resync(&[b"\x1b[200~", &text[..]].concat()));
        }
    }

    #[test]
    fn any_pieces_in_any_order_mean_the_same_however_they_are_cut() {
        let pieces: [&[u8]; 16] = [
            b"a",
            b"\x1b",
            b"\x1b[A",
            b"\x1b[1;5",
            b"\x1b[200~",
            b"\x1b[201~",
            b"\x1b[2",
            b"\x1bO",
            b"\x1b]0;",
            b"\x07",
            b"\x1b\\",
            b"\xe7\x95",
            b"\x8c",
            b"\r",
            b"[",
            b"97;5u",
        ];
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below as u64) as usize
        };
        for round in 0..20_000 {
            let bytes: Vec<u8> =
                (0..1 + random(8)).flat_map(|_| pieces[random(pieces.len())].to_vec()).collect();
            let (whole, at_end) = decode(&[&bytes]);
            let mut cut = Vec::new();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(1 + random(rest.len()));
                cut.push(piece);
                rest = after;
            }
            let (cut, cut_at_end) = decode(&cut);
            assert_eq!(cut, whole, "round {round}: {bytes:?}");
            assert_eq!(cut_at_end.is_pending(), at_end.is_pending(), "round {round}: {bytes:?}");
            check_resync(&bytes);
        }
    }
}

//! Which key does what.

use crate::chat::editor::motion::Motion;
use crate::chat::key::{Key, Mods, Press};

/// What a key press asks of the editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Insert(char),
    Move(Motion),
    /// To the row above, then to the prompt before.
    Up,
    Down,
    Delete(Motion),
    /// A deletion that can be put back by [`Action::Yank`].
    Kill(Motion),
    Yank,
    Undo,
}

impl Action {
    /// `None` for keys that are not the editor's.
    pub fn of(press: Press) -> Option<Action> {
        let Press { key, mods } = press;
        let (ctrl, alt) = (mods.has(Mods::CTRL), mods.has(Mods::ALT));
        let by_word = ctrl || alt;
        let action = match key {
            Key::Char(_) if ctrl && alt => return None,
            Key::Char(c) if ctrl => return control(c, mods),
            Key::Char(c) if alt => return meta(c),
            Key::Char(c) if c.is_control() => return None,
            Key::Char(c) => Action::Insert(c),
            Key::Enter if mods == Mods::NONE => return None,
            Key::Enter => Action::Insert('\n'),
            Key::Backspace if by_word => Action::Kill(Motion::WordLeft),
            Key::Backspace => Action::Delete(Motion::Left),
            Key::Delete if by_word => Action::Kill(Motion::WordRight),
            Key::Delete => Action::Delete(Motion::Right),
            Key::Left if by_word => Action::Move(Motion::WordLeft),
            Key::Left => Action::Move(Motion::Left),
            Key::Right if by_word => Action::Move(Motion::WordRight),
            Key::Right => Action::Move(Motion::Right),
            Key::Home if ctrl => Action::Move(Motion::Start),
            Key::Home => Action::Move(Motion::LineStart),
            Key::End if ctrl => Action::Move(Motion::End),
            Key::End => Action::Move(Motion::LineEnd),
            Key::Up if !by_word => Action::Up,
            Key::Down if !by_word => Action::Down,
            Key::Up
            | Key::Down
            | Key::Tab
            | Key::Escape
            | Key::PageUp
            | Key::PageDown
            | Key::Insert
            | Key::F(_) => return None,
        };
        Some(action)
    }
}

fn control(c: char, mods: Mods) -> Option<Action> {
    let action = match c.to_ascii_lowercase() {
        'a' => Action::Move(Motion::LineStart),
        'b' => Action::Move(Motion::Left),
        'd' => Action::Delete(Motion::Right),
        'e' => Action::Move(Motion::LineEnd),
        'f' => Action::Move(Motion::Right),
        'h' => Action::Delete(Motion::Left),
        'j' => Action::Insert('\n'),
        'k' => Action::Kill(Motion::RestRight),
        'n' => Action::Down,
        'p' => Action::Up,
        'u' => Action::Kill(Motion::RestLeft),
        'w' => Action::Kill(Motion::BlankLeft),
        'y' => Action::Yank,
        // One byte for all of these, where the terminal does not tell them apart.
        '_' | '7' | '/' => Action::Undo,
        '-' if mods.has(Mods::SHIFT) => Action::Undo,
        _ => return None,
    };
    Some(action)
}

fn meta(c: char) -> Option<Action> {
    let action = match c.to_ascii_lowercase() {
        'b' => Action::Move(Motion::WordLeft),
        'd' => Action::Kill(Motion::WordRight),
        'f' => Action::Move(Motion::WordRight),
        '<' => Action::Move(Motion::Start),
        '>' => Action::Move(Motion::End),
        _ => return None,
    };
    Some(action)
}

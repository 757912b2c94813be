//! Completion of what stands before the cursor: `/command` names and `@path` mentions.
//!
//! After each key that changed the draft, [`Completion::open`] says what there is to complete;
//! while it is open it is asked about keys first. Paths come from a list of the working tree that
//! is read once ([`Paths::read`]) and searched in memory.
//!
//! A command is a word at the very start of the draft. A mention is an `@` at the start of a
//! word; a path with blanks stands in double quotes: `@"two words.txt"`. Names that a line of
//! text does not carry unchanged (control characters, double quotes, no UTF-8) are not offered.

mod paths;

pub use paths::Paths;

use crate::chat::key::{Key, Mods, Press};
use crate::chat::list::{self, Entry};
use crate::render::style::Style;
use crate::text;

/// Candidates that are offered.
const CANDIDATES_MAX: usize = 100;
/// How far before the cursor a mention may begin.
const TOKEN_BYTES_MAX: usize = 4096;

/// An open list of candidates, one of them chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Not empty.
    candidates: Vec<Candidate>,
    chosen: usize,
    /// Bytes before the cursor that a candidate takes the place of.
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    /// What is shown.
    text: String,
    detail: String,
    /// What takes the place of what was typed.
    with: String,
    /// It says no more than what was typed already.
    is_typed: bool,
}

/// What a key press led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completed {
    /// The key is none of the list's.
    Ignored,
    /// Another candidate is chosen.
    Moved,
    /// Exchange that many bytes before the cursor for this; the list is done.
    Take { bytes: usize, with: String },
    /// The list is done.
    Closed,
}

impl Completion {
    /// What completes the text before the cursor; `None` if there is nothing to complete or
    /// nothing that does. `commands` are names without their `/`, with what they do.
    pub fn open(before: &str, commands: &[Entry<'_>], paths: &Paths) -> Option<Completion> {
        let (typed, candidates) = match Token::of(before)? {
            Token::Command(typed) => (typed, command_candidates(&typed[1..], commands)),
            Token::Path { typed, path } => (typed, path_candidates(typed, path, paths)),
        };
        let bytes = typed.len();
        (!candidates.is_empty()).then_some(Completion { candidates, chosen: 0, bytes })
    }

    /// Whether a path is being typed: [`Completion::open`] would look for it.
    pub fn is_of_path(before: &str) -> bool {
        matches!(Token::of(before), Some(Token::Path { .. }))
    }

    /// Tab, Shift-Tab and the arrows choose, Enter takes, Escape closes. A single candidate is
    /// taken by Tab too; Enter is not the list's when the candidate is what was typed.
    pub fn press(&mut self, press: Press) -> Completed {
        let ctrl = press.mods.has(Mods::CTRL);
        match press.key {
            Key::Escape => return Completed::Closed,
            Key::Enter if press.mods == Mods::NONE => return self.entered(),
            Key::Tab if press.mods.has(Mods::SHIFT) => self.move_back(),
            Key::Tab if self.candidates.len() == 1 => return self.taken(),
            Key::Tab | Key::Down => self.move_on(),
            Key::Up => self.move_back(),
            Key::Char('n') if ctrl => self.move_on(),
            Key::Char('p') if ctrl => self.move_back(),
            _ => return Completed::Ignored,
        }
        Completed::Moved
    }

    /// At most `rows_max` painted rows.
    pub fn view(&self, columns: usize, rows_max: usize, style: Style) -> Vec<String> {
        let entry = |idx: usize| {
            let candidate = &self.candidates[idx];
            Entry { text: &candidate.text, detail: &candidate.detail }
        };
        list::rows(self.candidates.len(), self.chosen, entry, (columns, rows_max), style)
    }

    fn entered(&self) -> Completed {
        match self.candidates[self.chosen].is_typed {
            true => Completed::Ignored,
            false => self.taken(),
        }
    }

    fn taken(&self) -> Completed {
        Completed::Take { bytes: self.bytes, with: self.candidates[self.chosen].with.clone() }
    }

    fn move_on(&mut self) {
        self.chosen = (self.chosen + 1) % self.candidates.len();
    }

    fn move_back(&mut self) {
        self.chosen = self.chosen.checked_sub(1).unwrap_or(self.candidates.len() - 1);
    }
}

/// What is being typed at the end of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// With its `/`.
    Command(&'a str),
    Path {
        /// From the `@` on.
        typed: &'a str,
        path: &'a str,
    },
}

impl<'a> Token<'a> {
    fn of(before: &'a str) -> Option<Token<'a>> {
        let near = text::ceil_char(before, TOKEN_BYTES_MAX);
        if near.len() == before.len()
            && before.starts_with('/')
            && !before.contains(char::is_whitespace)
        {
            return Some(Token::Command(before));
        }
        let line = &near[near.rfind('\n').map_or(0, |end| end + 1)..];
        let line_at = before.len() - line.len();
        line.rmatch_indices('@').find_map(|(at, _)| {
            let starts_word = |c: char| c.is_whitespace() || "([{,;:=\"'`".contains(c);
            let is_start = before[..line_at + at].chars().next_back().is_none_or(starts_word);
            let typed = &line[at..];
            let path = match typed[1..].strip_prefix('"') {
                Some(quoted) => (!quoted.contains('"')).then_some(quoted),
                None => (!typed.contains(char::is_whitespace)).then_some(&typed[1..]),
            };
            Some(Token::Path { typed, path: path.filter(|_| is_start)? })
        })
    }
}

/// Names that start with what was typed, then those that contain it, each in the given order.
fn command_candidates(typed: &str, commands: &[Entry<'_>]) -> Vec<Candidate> {
    let candidate = |command: &Entry<'_>| Candidate {
        text: format!("/{}", command.text),
        detail: command.detail.to_owned(),
        with: format!("/{} ", command.text),
        is_typed: command.text == typed,
    };
    let starts = commands.iter().filter(|command| command.text.starts_with(typed));
    let contains = commands
        .iter()
        .filter(|command| !command.text.starts_with(typed) && command.text.contains(typed));
    starts.chain(contains).take(CANDIDATES_MAX).map(candidate).collect()
}

fn path_candidates(typed: &str, path: &str, paths: &Paths) -> Vec<Candidate> {
    let is_quoted = typed.starts_with("@\"");
    let candidate = |found: &str| {
        let quote = if is_quoted || found.contains(char::is_whitespace) { "\"" } else { "" };
        // A folder is left open: what is in it comes next.
        let end = if found.ends_with('/') { String::new() } else { format!("{quote} ") };
        Candidate {
            text: found.to_owned(),
            detail: String::new(),
            with: format!("@{quote}{found}{end}"),
            is_typed: found == path,
        }
    };
    paths.search(path, CANDIDATES_MAX).into_iter().map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMANDS: [Entry<'static>; 5] = [
        Entry { text: "help", detail: "what there is" },
        Entry { text: "model", detail: "another model" },
        Entry { text: "compact", detail: "shorten the context" },
        Entry { text: "context", detail: "what the model sees" },
        Entry { text: "new", detail: "a new session" },
    ];

    fn paths() -> Paths {
        Paths::of(["README.md", "docs/", "docs/two words.md", "src/", "src/main.rs", "my dir/"])
    }

    fn open(before: &str) -> Option<Completion> {
        Completion::open(before, &COMMANDS, &paths())
    }

    fn texts(before: &str) -> Vec<String> {
        let candidates = open(before).map_or_else(Vec::new, |completion| completion.candidates);
        candidates.into_iter().map(|candidate| candidate.text).collect()
    }

    #[test]
    fn commands_complete_at_the_start_of_a_draft() {
        let table: &[(&str, &[&str])] = &[
            ("/", &["/help", "/model", "/compact", "/context", "/new"]),
            ("/co", &["/compact", "/context"]),
            ("/e", &["/help", "/model", "/context", "/new"]),
            ("/n", &["/new", "/context"]),
            ("/help", &["/help"]),
            ("/help ", &[]),
            ("/x", &["/context"]),
            ("/zz", &[]),
            ("say /he", &[]),
            ("\n/he", &[]),
            ("", &[]),
        ];
        for (before, want) in table {
            assert_eq!(texts(before), *want, "{before:?}");
        }
    }

    #[test]
    fn paths_complete_behind_an_at_sign_that_starts_a_word() {
        let table: &[(&str, &[&str])] = &[
            ("see @ma", &["src/main.rs"]),
            ("see (@src/", &["src/", "src/main.rs"]),
            ("@RE", &["README.md"]),
            ("x\n@./doc", &["docs/", "docs/two words.md"]),
            ("@\"docs/two w", &["docs/two words.md"]),
            ("@docs/two w", &[]),
            ("@\"my dir/\" ", &[]),
            ("me@src", &[]),
            ("@src/main.rs and", &[]),
            ("@@src", &[]),
            ("@none", &[]),
        ];
        for (before, want) in table {
            assert_eq!(texts(before), *want, "{before:?}");
        }
        // What lies too far back or in another line is none.
        assert_eq!(texts(&format!("@\"{}", "x ".repeat(5000))), [""; 0]);
        assert_eq!(texts("@\"src\nmain"), [""; 0]);
    }

    #[track_caller]
    fn check(before: &str, keys: &[Key], want: &str) {
        let mut completion = open(before).unwrap();
        let (last, moves) = keys.split_last().unwrap();
        for key in moves {
            let press = Press { key: *key, mods: Mods::NONE };
            assert_eq!(completion.press(press), Completed::Moved);
        }
        let draft = match completion.press(Press { key: *last, mods: Mods::NONE }) {
            Completed::Take { bytes, with } => {
                format!("{}{with}", &before[..before.len() - bytes])
            }
            other => format!("{other:?}"),
        };
        assert_eq!(draft, want, "{before:?} {keys:?}");
    }

    #[test]
    fn keys_choose_take_and_close() {
        check("/co", &[Key::Enter], "/compact ");
        check("/co", &[Key::Tab, Key::Enter], "/context ");
        check("/co", &[Key::Down, Key::Down, Key::Enter], "/compact ");
        check("/co", &[Key::Up, Key::Enter], "/context ");
        check("/co", &[Key::Escape], "Closed");
        check("/co", &[Key::Char('m')], "Ignored");
        check("/co", &[Key::Left], "Ignored");
        check("/mo", &[Key::Tab], "/model ");
        check("/model", &[Key::Enter], "Ignored");
        check("/model", &[Key::Tab], "/model ");
        check("see @ma", &[Key::Tab], "see @src/main.rs ");
        check("see @sr", &[Key::Enter], "see @src/");
        check("@src/", &[Key::Enter], "Ignored");
        check("@two", &[Key::Enter], "@\"docs/two words.md\" ");
        check("@my", &[Key::Enter], "@\"my dir/");
        check("@\"REA", &[Key::Enter], "@\"README.md\" ");
        let mut completion = open("/co").unwrap();
        let back = Press { key: Key::Tab, mods: Mods::SHIFT };
        assert_eq!(completion.press(back), Completed::Moved);
        assert_eq!(completion.chosen, 1);
        let newline = Press { key: Key::Enter, mods: Mods::ALT };
        assert_eq!(completion.press(newline), Completed::Ignored);
    }

    #[test]
    fn candidates_are_rows() {
        let mut completion = open("/co").unwrap();
        completion.press(Press { key: Key::Down, mods: Mods::NONE });
        assert_eq!(
            completion.view(40, 5, Style::plain()),
            ["  /compact  shorten the context", "> /context  what the model sees"]
        );
    }
}

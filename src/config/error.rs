//! What is wrong with a setting: one line that names place, key, wanted, found and what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::text;
use crate::toml::Position;

/// Where a wrong setting stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Line and column count from 1; a column counts characters. Line 0: the file as a whole.
    File { path: PathBuf, line: usize, column: usize },
    /// A variable's name.
    Environment(String),
    /// As typed, without the value: `--model`, `-c session.dir`.
    Flag(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub place: Place,
    /// Key, wanted, found, hint.
    pub message: String,
}

impl Error {
    /// A wrong command line (exit 2) rather than a wrong configuration (exit 3). A variable is a
    /// flag in another spelling.
    pub fn is_usage(&self) -> bool {
        matches!(self.place, Place::Flag(_) | Place::Environment(_))
    }
}

impl fmt::Display for Error {
    /// One line without control characters, whatever a file's names and texts contain.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.place {
            Place::File { path, line: 0, .. } => path.display().to_string(),
            Place::File { path, line, column } => format!("{}:{line}:{column}", path.display()),
            Place::Environment(name) | Place::Flag(name) => name.clone(),
        };
        let line = format!("{place}: {}", self.message);
        f.write_str(&text::visible(&line).replace('\n', "\\n"))
    }
}

impl std::error::Error for Error {}

pub(crate) fn place(path: &Path, at: Position) -> Place {
    Place::File { path: path.to_owned(), line: at.line, column: at.column }
}

/// The name that `word` most likely means, if one is close: at most two edits, or one in short
/// words. Ties go to the first.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let edits_max = if word.chars().count() <= 4 { 1 } else { 2 };
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        let edits = distance(word, name);
        if edits <= edits_max && best.is_none_or(|(least, _)| edits < least) {
            best = Some((edits, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_found_and_a_far_one_is_not() {
        let names = ["model", "name", "max_tool_rounds", "dir"];
        let check =
            |word: &str, want: Option<&str>| assert_eq!(nearest(word, names), want, "{word}");
        check("modle", Some("model"));
        check("mdl", None);
        check("nmae", Some("name"));
        check("max_tools_rounds", Some("max_tool_rounds"));
        check("di", Some("dir"));
        check("", None);
        check("temperature", None);
        check("größe", None);
    }
}

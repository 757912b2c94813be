//! Earlier prompts: walked up and down with the draft kept, and searched.
//!
//! While it is walked, every place keeps what was made of it: a change to an earlier prompt is
//! there again when the walk comes by, until something is sent. The prompts themselves stay.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::chat::editor::chips::clean;

const ENTRIES_MAX: usize = 1000;
/// Text of all entries together at most; the newest is kept whatever its size.
const BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, Default)]
pub struct History {
    /// Oldest first; none empty, none equal to the one before.
    entries: VecDeque<String>,
    bytes: usize,
    /// Where the walk is: the index of an entry; `None` at the draft.
    place: Option<usize>,
    /// What was left at each place, the draft under the index behind the last entry.
    left: BTreeMap<usize, String>,
}

impl History {
    /// Adds prompts of before, oldest first.
    pub fn seed<S: AsRef<str>>(&mut self, prompts: impl IntoIterator<Item = S>) {
        for prompt in prompts {
            self.push(prompt.as_ref());
        }
    }

    /// These prompts, oldest first, stand last; they are not there twice.
    pub fn put_last<S: AsRef<str>>(&mut self, prompts: &[S]) {
        self.rewind();
        let again: HashSet<_> = prompts.iter().map(|prompt| clean(prompt.as_ref())).collect();
        self.entries.retain(|entry| !again.contains(entry.as_str()));
        self.bytes = self.entries.iter().map(String::len).sum();
        self.seed(prompts);
    }

    /// Adds what was sent; the walk ends. Blank text and what was sent just before is not added.
    pub fn push(&mut self, prompt: &str) {
        self.rewind();
        let prompt = clean(prompt);
        if prompt.trim().is_empty() || self.entries.back().is_some_and(|last| *last == prompt) {
            return;
        }
        self.bytes += prompt.len();
        self.entries.push_back(prompt.into_owned());
        while 1 < self.entries.len() && (ENTRIES_MAX < self.entries.len() || BYTES_MAX < self.bytes)
        {
            self.bytes -= self.entries.pop_front().map_or(0, |oldest| oldest.len());
        }
    }

    /// Ends the walk: the next [`History::up`] begins at the newest entry.
    pub fn rewind(&mut self) {
        self.place = None;
        self.left.clear();
    }

    /// The prompt before; `shown` is what stands there now and is kept.
    pub fn up(&mut self, shown: &str) -> Option<String> {
        let place = self.place.unwrap_or(self.entries.len());
        self.walk(shown, place.checked_sub(1)?)
    }

    /// The prompt after, at last the draft.
    pub fn down(&mut self, shown: &str) -> Option<String> {
        let place = self.place?;
        self.walk(shown, place + 1)
    }

    /// The newest entry before the index `before` that contains `needle`, with its index. Letter
    /// case counts only if the needle has capital letters.
    pub fn search(&self, needle: &str, before: usize) -> Option<(usize, &str)> {
        let is_exact = needle.chars().any(char::is_uppercase);
        let has = |entry: &str| match is_exact {
            true => entry.contains(needle),
            false => entry.to_lowercase().contains(needle),
        };
        let entries = self.entries.iter().enumerate().rev();
        let mut found = entries.filter(|(idx, entry)| *idx < before && has(entry));
        found.next().map(|(idx, entry)| (idx, entry.as_str()))
    }

    fn walk(&mut self, shown: &str, to: usize) -> Option<String> {
        let from = self.place.unwrap_or(self.entries.len());
        let text = self.left.get(&to).or_else(|| self.entries.get(to))?.clone();
        if self.entries.get(from).is_none_or(|entry| entry != shown) {
            self.left.insert(from, shown.to_owned());
        } else {
            self.left.remove(&from);
        }
        self.place = Some(to).filter(|to| *to < self.entries.len());
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeded(prompts: &[&str]) -> History {
        let mut history = History::default();
        history.seed(prompts);
        history
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn prompts_of_another_place_stand_last_and_once() {
        let mut history = History::default();
        history.seed(["one", "two", "/help", "three"]);
        history.put_last(&["one", "two"]);
        let mut found = Vec::new();
        while let Some(text) = history.up("draft") {
            found.push(text);
        }
        assert_eq!(found, ["two", "one", "three", "/help"]);
        history.put_last::<&str>(&[]);
        assert_eq!(history.up("").as_deref(), Some("two"));
    }

    #[test]
    fn the_draft_is_kept_while_the_prompts_are_walked() {
        let mut history = seeded(&["one", "two"]);
        assert_eq!(history.down("draft"), None);
        assert_eq!(history.up("draft"), some("two"));
        assert_eq!(history.up("two"), some("one"));
        assert_eq!(history.up("one"), None);
        assert_eq!(history.down("one"), some("two"));
        assert_eq!(history.down("two"), some("draft"));
        assert_eq!(history.down("draft"), None);
        assert_eq!(history.up(""), some("two"));
        assert_eq!(history.down("two"), some(""));
        assert_eq!(seeded(&[]).up("draft"), None);
    }

    #[test]
    fn a_changed_prompt_is_there_again_until_something_is_sent() {
        let mut history = seeded(&["one", "two"]);
        assert_eq!(history.up("draft"), some("two"));
        assert_eq!(history.up("two!"), some("one"));
        assert_eq!(history.down("one"), some("two!"));
        assert_eq!(history.down("two!"), some("draft"));
        history.push("three");
        assert_eq!(history.up(""), some("three"));
        assert_eq!(history.up("three"), some("two"));
        assert_eq!(history.up("two"), some("one"));
    }

    #[test]
    fn blank_and_repeated_prompts_are_not_added() {
        let mut history = seeded(&["one", "", " \n", "one", "two", "one"]);
        let walked: Vec<_> = std::iter::from_fn(|| history.up("x")).collect();
        assert_eq!(walked, ["one", "two", "one"]);
    }

    #[test]
    fn the_newest_match_comes_first() {
        let history = seeded(&["fix Foo", "run tests", "fix bar\nand foo"]);
        let table = [
            ("fix", usize::MAX, Some(2)),
            ("fix", 2, Some(0)),
            ("fix", 0, None),
            ("foo", 2, Some(0)),
            ("Foo", usize::MAX, Some(0)),
            ("FOO", usize::MAX, None),
            ("and", usize::MAX, Some(2)),
            ("", usize::MAX, Some(2)),
            ("none", usize::MAX, None),
        ];
        for (needle, before, want) in table {
            let found = history.search(needle, before).map(|(idx, _)| idx);
            assert_eq!(found, want, "{needle:?} before {before}");
        }
        assert_eq!(history.search("run", 9), Some((1, "run tests")));
    }

    #[test]
    fn the_oldest_make_room() {
        let mut history = History::default();
        history.seed((0..ENTRIES_MAX + 7).map(|n| format!("prompt {n}")));
        assert_eq!(history.entries.len(), ENTRIES_MAX);
        assert_eq!(history.entries[0], "prompt 7");
        history.push(&"x".repeat(2 * BYTES_MAX));
        assert_eq!(history.entries.len(), 1);
        history.push("small");
        assert_eq!((history.entries.len(), history.bytes), (1, 5));
    }
}

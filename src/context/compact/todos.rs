//! Open items of the newest list of tasks, in Markdown: what a summary must not lose.

use crate::model::{Message, Role};

const TODOS_MAX: usize = 50;

/// The items without a tick of the last list that was written, in `messages` or else in the summary
/// before them.
pub fn open_todos(messages: &[Message], before: Option<&str>) -> Vec<String> {
    let of_message = |message: &Message| {
        let text = message.joined_text();
        has_list(&text).then(|| open(&text))
    };
    let answers = messages.iter().rev().filter(|message| message.role == Role::Assistant);
    let mut todos =
        answers.filter_map(of_message).next().or_else(|| before.map(open)).unwrap_or_default();
    todos.truncate(TODOS_MAX);
    todos
}

fn has_list(text: &str) -> bool {
    text.lines().any(|line| item(line).is_some())
}

fn open(text: &str) -> Vec<String> {
    let items = text.lines().filter_map(item);
    items.filter(|(done, _)| !done).map(|(_, words)| words.to_owned()).collect()
}

/// Whether an item is ticked, and its words.
fn item(line: &str) -> Option<(bool, &str)> {
    let line = line.trim_start();
    let rest = line.strip_prefix("- [").or_else(|| line.strip_prefix("* ["))?;
    let (tick, words) = rest.split_once("] ")?;
    let done = match tick {
        " " | "" => false,
        "x" | "X" => true,
        _ => return None,
    };
    let words = words.trim();
    (!words.is_empty()).then_some((done, words))
}

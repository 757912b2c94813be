//! Compaction as data: where a conversation may be cut, what is asked of the model, what is kept
//! word for word, and what stands in the conversation afterwards. Pure; `agent` runs it.

mod cut;
mod files;
mod prompt;
mod todos;

pub use cut::{Keep, cut};
pub use files::{Files, paths};
pub use prompt::{Piece, request};
pub use todos::open_todos;

use crate::model::{Message, Part, Role};
use crate::session::Summary;
use crate::text;

/// Before the text of a summary, in a system message of its own.
pub const SUMMARY_PREFIX: &str =
    "Summary of the earlier conversation, which is not repeated here:\n";

/// A person's words are kept up to this size.
const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// What a compaction left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The summary with its lists.
    pub text: String,
    /// The person's last words, where what follows does not begin with words of theirs.
    pub request: Option<String>,
    pub files: Files,
}

impl Checkpoint {
    pub fn of(summary: &Summary<'_>) -> Checkpoint {
        let list = |names: &Option<Vec<crate::session::Text<'_>>>| {
            names.iter().flatten().map(ToString::to_string).collect::<Vec<_>>()
        };
        Checkpoint {
            text: summary.summary.to_string(),
            request: summary.request.as_ref().map(ToString::to_string),
            files: Files::from_lists(list(&summary.read_files), list(&summary.modified_files)),
        }
    }

    /// What stands first in the conversation; `next` is the role of what follows.
    pub fn messages(&self, next: Option<Role>) -> Vec<Message> {
        let text = format!("{SUMMARY_PREFIX}{}", self.text);
        let mut head = vec![Message::text(Role::System, text)];
        if let Some(request) = &self.request
            && next != Some(Role::User)
        {
            head.push(Message::text(Role::User, request.clone()));
        }
        head
    }
}

/// How many messages at the beginning are no conversation but the checkpoint before it.
pub fn head_len(messages: &[Message], checkpoint: Option<&Checkpoint>) -> usize {
    let Some(checkpoint) = checkpoint else { return 0 };
    let is_summary = messages.first().is_some_and(|first| first.role == Role::System);
    let has_request = is_summary
        && messages.get(1).is_some_and(|second| {
            second.role == Role::User
                && checkpoint.request.as_deref() == Some(second.joined_text().as_str())
        });
    usize::from(is_summary) + usize::from(has_request)
}

/// The person's last words before the message at `at`, where that one is not theirs.
pub fn request_before(messages: &[Message], at: usize) -> Option<String> {
    if messages.get(at).is_none_or(|next| next.role == Role::User) {
        return None;
    }
    let last = messages[..at].iter().rev().find(|message| message.role == Role::User)?;
    let texts = last.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let all = texts.collect::<Vec<_>>().join("\n\n");
    Some(text::head_tail(&all, REQUEST_BYTES_MAX).into_owned())
}

/// The text of a finished summary: what the model wrote, then the lists that are kept without it.
pub fn finished(written: &str, todos: &[String], files: &Files) -> String {
    let mut text = files::without_lists(written).trim().to_owned();
    let missing: Vec<&String> = todos.iter().filter(|todo| !text.contains(todo.as_str())).collect();
    if !missing.is_empty() {
        text.push_str("\n\n## Open todos");
        missing.iter().for_each(|todo| text.push_str(&format!("\n- [ ] {todo}")));
    }
    text.push_str(&files.section());
    text
}

#[cfg(test)]
mod tests;

//! A session's row from the head of its file.

use std::io::Read;
use std::path::Path;

use super::data::Data;
use super::lines::open_file;
use super::read::{self, Event};
use super::store::Row;
use crate::host::Timestamp;
use crate::text;

/// As much of a file as is read for its row: the first prompt is near the beginning.
const HEAD_BYTES: u64 = 64 * 1024;

/// The longest title, in bytes.
const TITLE_BYTES_MAX: usize = 60;

/// `None` when the file cannot be read or does not begin like a session.
pub(super) fn row_of(path: &Path) -> Option<Row> {
    let mut bytes = Vec::new();
    let file = open_file(path).ok()?;
    let modified = file.metadata().ok()?.modified().ok();
    file.take(HEAD_BYTES).read_to_end(&mut bytes).ok()?;
    let row = Row {
        id: path.file_stem()?.to_str()?.to_owned(),
        path: path.to_path_buf(),
        created_at: String::new(),
        cwd: String::new(),
        title: String::new(),
        name: None,
        parent_session_id: None,
    };
    let mut head = Head { row, any: false, done: false };
    for line in bytes.split(|byte| *byte == b'\n') {
        match read::parse(line) {
            Ok(event) => head.event(event),
            Err(_) => match begun_prompt(line) {
                // The first prompt may be longer than the head.
                Some(prompt) => head.prompt(&prompt),
                None => read::parse_glued(line, &mut |found| {
                    if let Ok(event) = found {
                        head.event(event);
                    }
                }),
            },
        }
        if head.done {
            break;
        }
    }
    let Head { mut row, any, .. } = head;
    if row.title.is_empty() {
        row.title = title_of("");
    }
    if row.created_at.is_empty() {
        row.created_at = Timestamp::from(modified?).to_rfc3339();
    }
    any.then_some(row)
}

/// A row in the making.
struct Head {
    row: Row,
    /// There was an event.
    any: bool,
    /// Nothing more is looked for.
    done: bool,
}

impl Head {
    fn event(&mut self, event: Event<'_>) {
        self.any = true;
        if self.row.created_at.is_empty() {
            self.row.created_at = event.time.into_owned();
        }
        match event.data {
            Data::SessionStarted(started) => {
                self.row.cwd = started.cwd.0.into_owned();
                self.row.name = started.name.map(|name| name.0.into_owned());
                self.row.parent_session_id = started.parent_session_id.map(|id| id.0.into_owned());
            }
            Data::User(message) => self.prompt(&message.content.text()),
            _ => {}
        }
    }

    fn prompt(&mut self, text: &str) {
        self.any = true;
        if !self.done {
            self.row.title = title_of(text);
        }
        self.done = true;
    }
}

/// The beginning of the text of a `message.user` line whose end is not there.
fn begun_prompt(line: &[u8]) -> Option<String> {
    if !line.starts_with(b"{\"type\":\"message.user\"") {
        return None;
    }
    let key = b"\"text\":\"";
    let start = memchr::memmem::find(line, key)? + key.len();
    let text = &line[start..line.len().min(start + 16 * TITLE_BYTES_MAX)];
    // A cut in the middle of a character or an escape costs at most a surrogate pair of escapes.
    (0..=text.len().min(12)).find_map(|cut| {
        let text = std::str::from_utf8(&text[..text.len() - cut]).ok()?;
        serde_json::from_str(&format!("\"{text}\"")).ok()
    })
}

/// How the heading of each text begins that was attached to a prompt, on a line of its own.
pub const ATTACHED: &str = "--- attached: ";

/// What a session is called in the list: its first prompt on one line, cut to 60 bytes. What was
/// attached to the prompt says little about it.
pub fn title_of(prompt: &str) -> String {
    let attached = prompt.match_indices(ATTACHED).find(|(at, _)| prompt[..*at].ends_with("\n\n"));
    let typed = attached.map_or(prompt, |(at, _)| &prompt[..at]);
    let mut title = String::new();
    for word in typed.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
        if title.len() > TITLE_BYTES_MAX {
            title.truncate(text::floor_char(&title, TITLE_BYTES_MAX - 3).trim_end().len());
            title.push_str("...");
            break;
        }
    }
    if title.is_empty() { "untitled".to_owned() } else { title }
}

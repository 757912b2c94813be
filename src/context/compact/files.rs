//! Which files were read and changed, told from the calls: no model is trusted with a list.

use serde::Deserialize;

use crate::model::{Message, Part, ResultStatus};

/// More are not listed: the latest stay.
const FILES_MAX: usize = 100;

/// In the order in which they were last used; no file is in both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    pub read: Vec<String>,
    pub modified: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Paths {
    path: Option<String>,
    files: Vec<One>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct One {
    path: Option<String>,
}

impl Files {
    /// As a summary lists them.
    pub fn from_lists(read: Vec<String>, modified: Vec<String>) -> Files {
        Files { read, modified }
    }

    /// Adds those of the calls in `messages` that did what they were asked to.
    pub fn add(&mut self, messages: &[Message]) {
        for (at, message) in messages.iter().enumerate() {
            for call in message.calls() {
                let behind = messages[at + 1..].iter();
                let results = behind.take_while(|next| next.role == crate::model::Role::Tool);
                let worked = results.flat_map(|next| &next.parts).any(|part| {
                    matches!(part, Part::ToolResult(result)
                        if result.call_id == call.id && result.status == ResultStatus::Ok)
                });
                if worked {
                    self.add_call(&call.name, &call.arguments);
                }
            }
        }
        for list in [&mut self.read, &mut self.modified] {
            list.drain(..list.len().saturating_sub(FILES_MAX));
        }
    }

    fn add_call(&mut self, tool: &str, arguments: &str) {
        let modifies = match tool {
            "read" => false,
            "write" | "edit" => true,
            _ => return,
        };
        for path in paths(arguments) {
            let was_modified = self.modified.contains(&path);
            self.read.retain(|known| *known != path);
            self.modified.retain(|known| *known != path);
            let list = match modifies || was_modified {
                true => &mut self.modified,
                false => &mut self.read,
            };
            list.push(path);
        }
    }

    /// As it ends a summary; empty when there are none.
    pub fn section(&self) -> String {
        let mut section = String::new();
        for (title, list) in [("Read", &self.read), ("Modified", &self.modified)] {
            if list.is_empty() {
                continue;
            }
            if section.is_empty() {
                section.push_str(HEADING);
            }
            section.push_str(&format!("\n### {title}"));
            list.iter().for_each(|path| section.push_str(&format!("\n- {path}")));
        }
        section
    }
}

const HEADING: &str = "\n\n## Files";

/// The paths that a call of a file tool names.
pub fn paths(arguments: &str) -> Vec<String> {
    let Ok(named) = serde_json::from_str::<Paths>(arguments) else { return Vec::new() };
    let several = named.files.into_iter().filter_map(|one| one.path);
    let mut all: Vec<String> = several.collect();
    if all.is_empty() {
        all.extend(named.path);
    }
    for path in &mut all {
        if let Some(rest) = path.strip_prefix("./") {
            *path = rest.trim_start_matches('/').to_owned();
        }
    }
    // Each would be a line of its own.
    all.retain(|path| !path.is_empty() && !path.contains('\n'));
    all
}

/// A summary without the section that [`Files::section`] made, or that a model copied.
pub fn without_lists(text: &str) -> &str {
    let at = text.rfind("\n## Files").filter(|at| {
        let rest = &text[at + 1..];
        rest.lines().skip(1).all(|line| {
            let line = line.trim();
            line.is_empty() || line.starts_with("### ") || line.starts_with("- ")
        })
    });
    at.map_or(text, |at| &text[..at])
}

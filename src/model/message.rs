//! Messages and their ordered parts.

use serde_json::value::RawValue;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// One message of a conversation: a role and its parts in the order in which they were said.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    pub parts: Vec<Part>,
}

impl Message {
    pub fn text(role: Role, text: impl Into<String>) -> Message {
        Message { role, parts: vec![Part::Text(text.into())] }
    }

    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// All text parts, joined without a separator.
    pub fn joined_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(String),
    /// `data` is base64 without line breaks.
    Image {
        media_type: String,
        data: String,
    },
    Reasoning(Reasoning),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    Opaque(Opaque),
}

/// Reasoning text that a server showed. It is no part of the answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reasoning {
    pub text: String,
    /// The wire field that brought it, to send it back under the same name; empty when unknown.
    pub field: String,
    /// Provider and model it came from: no other one gets it back.
    pub provider: String,
    pub model: String,
}

/// A call that a model asked for.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// Never empty, unique in its session.
    pub id: String,
    pub name: String,
    /// The arguments exactly as the model wrote them; may be no valid JSON. Empty means `{}`.
    pub arguments: String,
    /// Provider-native fields of the call to send back as they are (one JSON object).
    pub extra: Option<Box<RawValue>>,
}

impl PartialEq for ToolCall {
    fn eq(&self, other: &ToolCall) -> bool {
        let extra = |call: &ToolCall| call.extra.as_ref().map(|raw| raw.get().to_owned());
        (&self.id, &self.name, &self.arguments, extra(self))
            == (&other.id, &other.name, &other.arguments, extra(other))
    }
}

/// How a tool call ended. Whatever it was, the model gets a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    #[default]
    Ok,
    /// The tool failed, its arguments were wrong, or there is no such tool.
    Error,
    /// A rule, a hook or the person refused the call; it did not run.
    Denied,
    /// The turn was cancelled, or etch died, before the call had finished.
    Interrupted,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    pub call_id: String,
    pub name: String,
    pub text: String,
    pub status: ResultStatus,
}

/// Provider-native state, kept byte for byte. Only the adapter that made it reads it; every
/// other one drops it.
#[derive(Debug, Clone)]
pub struct Opaque {
    pub provider: String,
    pub model: String,
    pub item: Box<RawValue>,
    /// How many parts of its message, texts and calls, stand before it.
    pub at: usize,
}

impl PartialEq for Opaque {
    fn eq(&self, other: &Opaque) -> bool {
        (&self.provider, &self.model, self.item.get())
            == (&other.provider, &other.model, other.item.get())
    }
}

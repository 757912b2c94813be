//! Event types as they are written: the `data` of a log line and its `type`.
//!
//! Writing is typed and owned here; reading (borrowed, lenient, other writers' logs included) is
//! in `read`. Field names are part of the public contract of `docs/log.md`.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{Metrics, ResultStatus, Usage};

/// One ordered part of a message's `content`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    Text {
        text: String,
    },
    ToolCall {
        id: String,
        name: String,
        /// The arguments as a JSON object, byte for byte, when the model wrote a valid object
        /// on one line; otherwise its text as a JSON string.
        arguments: Box<RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        extra: Option<Box<RawValue>>,
    },
}

/// The typed payload of one event. The serde form is the line's `data`; [`EventData::kind`] is
/// its `type`.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum EventData {
    /// First line of every session.
    SessionStarted {
        cwd: String,
        /// The version of etch that wrote it.
        version: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// `--fork`: the session this one continues, by absolute path and last inherited event.
        #[serde(skip_serializing_if = "Option::is_none")]
        fork_session_path: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        fork_event_id: Option<String>,
    },
    /// `role` is always `user`.
    MessageUser {
        role: &'static str,
        content: Vec<ContentPart>,
    },
    /// `role` is always `assistant`; `finish` as in [`crate::model::Finish`].
    MessageAssistant {
        role: &'static str,
        content: Vec<ContentPart>,
        provider: String,
        model: String,
        finish: &'static str,
    },
    /// `role` is always `tool`.
    MessageTool {
        role: &'static str,
        content: Vec<ContentPart>,
        tool_call_id: String,
        name: String,
        status: ResultStatus,
        /// Files that the call changed, relative to the working directory.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
        duration_millis: u64,
    },
    /// Text for people, before the assistant message it explains.
    ModelReasoning {
        reasoning: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        field: String,
        provider: String,
        model: String,
    },
    /// Opaque provider state: `item` byte for byte.
    ModelProviderItem {
        provider: String,
        model: String,
        item: Box<RawValue>,
    },
    ModelUsage(Usage),
    ModelResponse {
        provider_response_id: String,
        model: String,
    },
    ModelMetrics(Metrics),
    /// An attempt failed and is repeated.
    ModelRetry {
        attempt: u32,
        attempts_max: u32,
        delay_millis: u64,
        kind: &'static str,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        output_discarded: bool,
    },
    /// The turn ended without a final answer. `stop` as in `run.result`; `partial` is what the
    /// model had said of an answer that did not end.
    TurnStopped {
        stop: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<&'static str>,
        message: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        partial: String,
    },
    /// Provider or model differ from what the session used before.
    ModelChanged {
        provider: String,
        model: String,
    },
    /// A call was refused before it ran; its result for the model follows as `message.tool`.
    ToolDenied {
        tool_call_id: String,
        name: String,
        reason: String,
    },
    /// A torn last line was found and closed; `fragment_bytes` long, it stays in the file.
    LogRepaired {
        line: u64,
        fragment_bytes: u64,
    },
}

impl EventData {
    /// The line's `type`.
    pub fn kind(&self) -> &'static str {
        match self {
            EventData::SessionStarted { .. } => "session.started",
            EventData::MessageUser { .. } => "message.user",
            EventData::MessageAssistant { .. } => "message.assistant",
            EventData::MessageTool { .. } => "message.tool",
            EventData::ModelReasoning { .. } => "model.reasoning",
            EventData::ModelProviderItem { .. } => "model.provider_item",
            EventData::ModelUsage(_) => "model.usage",
            EventData::ModelResponse { .. } => "model.response",
            EventData::ModelMetrics(_) => "model.metrics",
            EventData::ModelRetry { .. } => "model.retry",
            EventData::TurnStopped { .. } => "turn.stopped",
            EventData::ModelChanged { .. } => "model.changed",
            EventData::ToolDenied { .. } => "tool.denied",
            EventData::LogRepaired { .. } => "log.repaired",
        }
    }
}

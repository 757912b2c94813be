//! Event types as they are written: the `data` of a log line and its `type`.
//!
//! Writing is typed and owned here; reading (borrowed, lenient, other writers' logs included) is
//! in `read`. Field names are part of the public contract of `docs/log.md`.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{
    Finish, Metrics, Opaque, Part, Reasoning, ResultStatus, ToolCall, ToolResult, Usage,
};

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
        /// on one line that nests at most 64 deep; otherwise its text as a JSON string.
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
    /// Opaque provider state, byte for byte: `item` when it stands on one line and nests at most
    /// 64 deep, else `itemText`, its text as a JSON string.
    ModelProviderItem {
        provider: String,
        model: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        item: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        item_text: Option<String>,
        /// How many texts and calls of the message that follows stand before it.
        #[serde(skip_serializing_if = "is_first")]
        at: usize,
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
        /// The hook that refused it: `FILE:LINE` of the configuration.
        #[serde(skip_serializing_if = "Option::is_none")]
        hook: Option<String>,
    },
    /// The conversation before `first_kept_event_id` is replaced by `summary` for the model; all of
    /// it when there is none.
    ContextSummary(Box<NewSummary>),
    /// Results that the model sees a line in place of from here on.
    ContextFolded {
        results: Vec<Fold>,
        tokens_before: u64,
        tokens_after: u64,
    },
    /// A compaction came to nothing: the conversation is as it was.
    CompactionFailed {
        trigger: &'static str,
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metrics: Option<Metrics>,
    },
    /// The server named how much its model takes, in tokens.
    ModelWindow {
        provider: String,
        model: String,
        context_tokens: u64,
    },
    /// A torn last line was found and closed; `fragment_bytes` long, it stays in the file.
    LogRepaired {
        line: u64,
        fragment_bytes: u64,
    },
    /// The session goes on from an earlier event; see [`super::Log::go_to`], which alone writes it.
    SessionPointer {
        reason: Way,
        target_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        from_id: Option<String>,
    },
}

/// In which way a session goes on from another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Back, to say something else.
    Rewind,
    /// To go on from there as well.
    Fork,
}

/// What a compaction writes. Sizes are estimates of the whole prompt: instructions, conversation
/// and tools.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSummary {
    /// As the model gets it, lists of files included.
    pub summary: String,
    pub range_start_id: String,
    pub range_end_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_kept_event_id: Option<String>,
    /// The person's last words before the range's end, where what is kept does not begin with
    /// words of theirs: the model gets them behind the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Who wrote it; empty when a hook did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    pub trigger: &'static str,
    /// What the summary was asked to look at.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    pub tokens_before: u64,
    pub tokens_after: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_files: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modified_files: Vec<String>,
    /// Of all attempts at writing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
}

/// A result that is folded: its event, and the line that stands for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fold {
    pub event_id: String,
    pub stub: String,
}

fn is_first(at: &usize) -> bool {
    *at == 0
}

impl ContentPart {
    pub fn text(text: impl Into<String>) -> ContentPart {
        ContentPart::Text { text: text.into() }
    }
}

impl From<&ToolCall> for ContentPart {
    fn from(call: &ToolCall) -> ContentPart {
        ContentPart::ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: raw_arguments(&call.arguments),
            extra: call.extra.clone(),
        }
    }
}

/// Deeper JSON does not become a part of a line: many readers refuse a line that nests as deeply
/// as a model, or a hostile server, can.
const NESTING_MAX: usize = 64;

/// Whether JSON text may stand in a line as it is.
fn fits_a_line(json: &str) -> bool {
    !json.contains(['\n', '\r']) && nesting(json) <= NESTING_MAX
}

/// How deeply valid JSON text nests.
fn nesting(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The text as it is when it is one JSON object that fits a line, else as a JSON string.
fn raw_arguments(text: &str) -> Box<RawValue> {
    if text.starts_with('{')
        && text.ends_with('}')
        && fits_a_line(text)
        && let Ok(raw) = RawValue::from_string(text.to_owned())
    {
        return raw;
    }
    // A string is always JSON.
    serde_json::value::to_raw_value(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

impl EventData {
    pub fn user(text: impl Into<String>) -> EventData {
        EventData::MessageUser { role: "user", content: vec![ContentPart::text(text)] }
    }

    /// The answer's text and calls in their order; other parts have events of their own.
    pub fn assistant(parts: &[Part], provider: &str, model: &str, finish: Finish) -> EventData {
        let content = parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(ContentPart::text(text)),
            Part::ToolCall(call) => Some(ContentPart::from(call)),
            Part::Image { .. } | Part::Reasoning(_) | Part::ToolResult(_) | Part::Opaque(_) => None,
        });
        EventData::MessageAssistant {
            role: "assistant",
            content: content.collect(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            finish: finish.as_str(),
        }
    }

    pub fn tool(result: &ToolResult, changed: &[String], duration_millis: u64) -> EventData {
        EventData::MessageTool {
            role: "tool",
            content: vec![ContentPart::text(&result.text)],
            tool_call_id: result.call_id.clone(),
            name: result.name.clone(),
            status: result.status,
            changed: changed.to_vec(),
            duration_millis,
        }
    }

    pub fn reasoning(reasoning: &Reasoning) -> EventData {
        EventData::ModelReasoning {
            reasoning: reasoning.text.clone(),
            field: reasoning.field.clone(),
            provider: reasoning.provider.clone(),
            model: reasoning.model.clone(),
        }
    }

    pub fn provider_item(opaque: &Opaque) -> EventData {
        let fits = fits_a_line(opaque.item.get());
        EventData::ModelProviderItem {
            provider: opaque.provider.clone(),
            model: opaque.model.clone(),
            item: fits.then(|| opaque.item.clone()),
            item_text: (!fits).then(|| opaque.item.get().to_owned()),
            at: opaque.at,
        }
    }

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
            EventData::ContextSummary(_) => "context.summary",
            EventData::ContextFolded { .. } => "context.folded",
            EventData::CompactionFailed { .. } => "context.compaction_failed",
            EventData::ModelWindow { .. } => "model.window",
            EventData::LogRepaired { .. } => "log.repaired",
            EventData::SessionPointer { .. } => "session.pointer",
        }
    }
}

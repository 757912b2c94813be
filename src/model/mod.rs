//! What a model is, whoever serves it: messages, requests, stream events, errors, the trait.
//!
//! Nothing here knows a vendor, a wire format or a terminal. An adapter turns a [`Request`] into
//! its own wire form and its own stream into [`ModelEvent`]s.

mod error;
mod message;
mod window;

pub use error::{ErrorKind, ModelError};
pub use message::{Message, Opaque, Part, Reasoning, ResultStatus, Role, ToolCall, ToolResult};
pub use window::{Window, WindowSource};

use std::fmt;
use std::time::Duration;

use crate::cancel::Cancel;
use serde::{Deserialize, Serialize};

/// What a tool looks like to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// `[A-Za-z0-9_-]{1,64}`, unique in a request.
    pub name: String,
    pub description: String,
    /// A JSON Schema of type `object`, as compact JSON text; byte-stable between runs.
    pub parameters: String,
}

/// One model call. The conversation is complete: an adapter keeps no state between calls that
/// changes what is sent.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub model: &'a str,
    /// Instructions, in order; they come before the conversation and stay byte-stable.
    pub system: &'a [Message],
    /// The conversation in order. Every tool call has its result.
    pub messages: &'a [Message],
    /// Sorted by name. Empty: no tools are offered.
    pub tools: &'a [ToolSpec],
    /// Stable for a session; for cache affinity where a protocol has a field for it.
    pub session_id: &'a str,
    pub reasoning_effort: Option<&'a str>,
    /// What to tell of the reasoning, where a protocol has a field for it.
    pub reasoning_summary: Option<&'a str>,
    /// Upper bound of the answer, in tokens; `None` leaves it to the server.
    pub max_output_tokens: Option<u64>,
}

/// Token counts of one model call as the server reported them.
///
/// `input` includes `cached_input`; `output` includes `reasoning_output`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    #[serde(rename = "inputTokens")]
    pub input: u64,
    #[serde(rename = "cachedInputTokens", skip_serializing_if = "is_zero")]
    pub cached_input: u64,
    #[serde(rename = "outputTokens")]
    pub output: u64,
    #[serde(rename = "reasoningOutputTokens", skip_serializing_if = "is_zero")]
    pub reasoning_output: u64,
    #[serde(rename = "totalTokens")]
    pub total: u64,
    /// US dollars, where the server names a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The server reported nothing: these are estimates from the text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// Adds another call's counts, for totals.
    pub fn add(&mut self, other: &Usage) {
        self.input = self.input.saturating_add(other.input);
        self.cached_input = self.cached_input.saturating_add(other.cached_input);
        self.output = self.output.saturating_add(other.output);
        self.reasoning_output = self.reasoning_output.saturating_add(other.reasoning_output);
        self.total = self.total.saturating_add(other.total);
        if let Some(cost) = other.cost {
            *self.cost.get_or_insert(0.0) += cost;
        }
        self.estimated |= other.estimated;
    }

    /// What was added to an earlier total.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            input: self.input.saturating_sub(earlier.input),
            cached_input: self.cached_input.saturating_sub(earlier.cached_input),
            output: self.output.saturating_sub(earlier.output),
            reasoning_output: self.reasoning_output.saturating_sub(earlier.reasoning_output),
            total: self.total.saturating_sub(earlier.total),
            cost: self.cost.map(|cost| cost - earlier.cost.unwrap_or(0.0)),
            estimated: self.estimated && !earlier.estimated,
        }
    }
}

/// Facts of one model call on the wire. Zero means "none" and is not written to the log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metrics {
    /// `http`, `websocket`, `replay` or `echo`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub transport: String,
    /// Requests sent in this attempt: more than one where a refusal or a fallback was answered at
    /// once by another request.
    #[serde(skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// WebSocket connections that were opened.
    #[serde(skip_serializing_if = "is_zero")]
    pub web_socket_connections: u64,
    /// Requests that went over a connection which had served another one.
    #[serde(skip_serializing_if = "is_zero")]
    pub web_socket_reuses: u64,
    /// Requests that sent only what was new since the previous response.
    #[serde(skip_serializing_if = "is_zero")]
    pub continuation_requests: u64,
    /// Continuations that were refused or lost, and sent again in full.
    #[serde(skip_serializing_if = "is_zero")]
    pub continuation_fallbacks: u64,
    /// The HTTP status of the last lost continuation, where it had one.
    #[serde(skip_serializing_if = "is_zero")]
    pub continuation_fallback_status: u64,
    /// Why the last continuation was lost.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub continuation_fallback_error: String,
    /// Changes of the transport, from WebSocket to HTTP.
    #[serde(skip_serializing_if = "is_zero")]
    pub transport_fallbacks: u64,
    /// Why the transport was changed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub transport_fallback_error: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub request_bytes: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub response_bytes: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub input_messages: u64,
    /// Of a continuation: how many of the messages were sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub delta_messages: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub tool_count: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub instruction_bytes: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub input_bytes: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub tool_bytes: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub time_to_headers_millis: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub time_to_first_event_millis: u64,
    /// Stream events of a kind that the adapter does not know.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown_events: u64,
}

impl Metrics {
    /// Adds what can be counted of another attempt or call; the rest is then the other's.
    pub fn add(&mut self, other: &Metrics) {
        let before = std::mem::replace(self, other.clone());
        self.requests = self.requests.saturating_add(before.requests);
        self.web_socket_connections =
            self.web_socket_connections.saturating_add(before.web_socket_connections);
        self.web_socket_reuses = self.web_socket_reuses.saturating_add(before.web_socket_reuses);
        self.continuation_requests =
            self.continuation_requests.saturating_add(before.continuation_requests);
        self.continuation_fallbacks =
            self.continuation_fallbacks.saturating_add(before.continuation_fallbacks);
        self.transport_fallbacks =
            self.transport_fallbacks.saturating_add(before.transport_fallbacks);
        self.request_bytes = self.request_bytes.saturating_add(before.request_bytes);
        self.response_bytes = self.response_bytes.saturating_add(before.response_bytes);
        self.unknown_events = self.unknown_events.saturating_add(before.unknown_events);
        if other.continuation_fallbacks == 0 {
            self.continuation_fallback_status = before.continuation_fallback_status;
            self.continuation_fallback_error = before.continuation_fallback_error;
        }
        if other.transport_fallbacks == 0 {
            self.transport_fallback_error = before.transport_fallback_error;
        }
    }

    /// Only what [`Metrics::add`] counts: all that a sum of several calls can tell.
    pub fn counts(&self) -> Metrics {
        Metrics {
            requests: self.requests,
            web_socket_connections: self.web_socket_connections,
            web_socket_reuses: self.web_socket_reuses,
            continuation_requests: self.continuation_requests,
            continuation_fallbacks: self.continuation_fallbacks,
            transport_fallbacks: self.transport_fallbacks,
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            unknown_events: self.unknown_events,
            ..Metrics::default()
        }
    }
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// Why a stream ended normally. A call's presence beats what the server says: an adapter reports
/// [`Finish::ToolCalls`] exactly when it assembled calls and the answer was not cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    Stop,
    ToolCalls,
    /// The output limit cut the answer: nothing in it may be run.
    Length,
    /// The model declined to answer.
    Refusal,
    /// A content filter withheld the answer.
    ContentFilter,
}

impl Finish {
    pub fn as_str(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::ToolCalls => "tool_calls",
            Finish::Length => "length",
            Finish::Refusal => "refusal",
            Finish::ContentFilter => "content_filter",
        }
    }
}

/// A failed attempt that is about to be repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    pub attempts_max: u32,
    pub delay_millis: u64,
    pub error: ModelError,
    /// Deltas of the failed attempt were already given out: whoever showed them must say that
    /// they are void. What was assembled from them is dropped.
    pub output_discarded: bool,
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Retry { attempt, attempts_max, error, .. } = self;
        let delay = Duration::from_millis(self.delay_millis).as_secs_f64();
        let message = &error.message;
        write!(f, "attempt {attempt} of {attempts_max} failed: {message}; again in {delay:.1} s")
    }
}

/// One event of a model stream, in the order of the answer.
///
/// `*Start` and `*End` come in pairs around their deltas; text, reasoning and calls may follow
/// each other in any order and any number. After [`ModelEvent::Retry`] the answer begins anew.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    TextStart,
    TextDelta(String),
    /// The text of the open run is this, whatever its deltas said.
    TextIs(String),
    TextEnd,
    ReasoningStart,
    ReasoningDelta(String),
    /// The whole reasoning text with what an adapter needs to send it back.
    ReasoningEnd(Reasoning),
    /// `index` counts the calls of this answer from 0, in order of first appearance.
    ToolCallStart {
        index: usize,
        name: String,
    },
    ToolCallDelta {
        index: usize,
        arguments: String,
    },
    /// The whole call, when nothing can be added to it any more; it runs when the stream has
    /// ended.
    ToolCallEnd {
        index: usize,
        call: ToolCall,
    },
    Usage(Usage),
    /// The server's own id of this response, and the model that it says answered.
    Response {
        id: String,
        model: String,
    },
    /// Provider-native state to send back byte for byte.
    ProviderItem(Opaque),
    Metrics(Metrics),
    Retry(Retry),
    /// Something that the person should know (the server ignored a setting, a proxy is used).
    Notice(String),
}

/// A request as it would be sent, for people. Credentials are replaced by `[redacted]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// `POST`, or `GET` for the upgrade to a WebSocket, whose first message is the body.
    pub method: &'static str,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// A model that answers requests.
///
/// `stream` blocks until the answer is complete, calling `sink` on the calling thread, and ends
/// with exactly one finish or one error whatever the server did. When `cancel` closes it returns
/// [`ErrorKind::Cancelled`] within 50 ms and leaves no thread behind beyond its stated bounds.
pub trait Model: Send + Sync {
    /// The provider's configured name, as in `provider.name`.
    fn provider(&self) -> &str;

    /// Where requests go, for messages: a URL, or empty.
    fn endpoint(&self) -> &str {
        ""
    }

    /// How much `model` takes in, by the server's own word or by a table; `None` where nobody
    /// knows. May ask the server: that takes no longer than 2 s, ends with `cancel`, and what
    /// fails is not known.
    fn window(&self, _model: &str, _cancel: &Cancel) -> Option<Window> {
        None
    }

    /// As [`Model::window`], as far as it is known by now: nobody is asked.
    fn known_window(&self, _model: &str) -> Option<Window> {
        None
    }

    /// What [`Model::stream`] would send first; `None` where nothing goes over a wire.
    fn preview(&self, _request: &Request<'_>) -> Option<Preview> {
        None
    }

    fn stream(
        &self,
        request: &Request<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError>;
}

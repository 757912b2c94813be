//! What the chunks of an answer add up to: text, reasoning, calls, usage, and how it ended.
//!
//! Keeps no more of the answer than must be given back whole at its end: the reasoning in
//! progress and the calls.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::host::Host;
use crate::model::{
    ErrorKind, Finish, Message, ModelError, ModelEvent, Opaque, Reasoning, Request, ToolCall, Usage,
};
use crate::provider::classify;
use crate::provider::openai::calls::{Assembled, Assembly, CALLS_MAX};
use crate::provider::openai::chunk::{Choice, Chunk, Delta, text, tolerate};
use crate::provider::openai::reader::{Assemble, Origin};
use crate::provider::openai::think::{self, Piece, Splitter};
use crate::provider::openai::usage::Counter;
use crate::text::floor_char;
use crate::wire::sse::Event;

/// Bound on everything that one answer says: some ten times what any model can write.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Bytes of an unreadable chunk that its error shows.
const EXCERPT_BYTES: usize = 300;

/// How a call begins that a server left in the text.
const CALL_SIGNS: &[&str] = &["<tool_call>", "<function=", "<function_call>", "[TOOL_CALLS]"];
/// At least as long as each of them.
const CALL_SIGN_BYTES_MAX: usize = 16;
const CALL_IN_WORDS: &str = "the answer is a tool call as text: the server did not read it as one; \
    turn on its tool-call parser (vLLM: --enable-auto-tool-choice; llama.cpp: --jinja), or try \
    another model";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Open {
    Nothing,
    Text,
    Reasoning,
}

pub struct Answer<'r> {
    request: &'r Request<'r>,
    origin: Origin<'r>,
    /// The run of deltas in progress.
    open: Open,
    splitter: Splitter,
    reasoning: Reasoning,
    reasoning_last: String,
    details: Vec<Value>,
    calls: Assembly<'r>,
    usage: Counter,
    has_response: bool,
    finish_reason: String,
    refused: bool,
    has_text: bool,
    /// How the text begins, without blanks; as much as a sign of a call has.
    text_head: String,
    output_bytes: usize,
    /// Text and reasoning as they came.
    taken_bytes: usize,
    has_begun: bool,
    /// The end mark was read, or the one document was whole.
    done: bool,
    /// Chunks that hold nothing known.
    unknown_events: u64,
}

impl<'r> Answer<'r> {
    pub fn new(request: &'r Request<'r>, origin: Origin<'r>) -> Answer<'r> {
        Answer {
            request,
            origin,
            open: Open::Nothing,
            splitter: Splitter::default(),
            reasoning: Reasoning::default(),
            reasoning_last: String::new(),
            details: Vec::new(),
            calls: Assembly::new(request.tools),
            usage: Counter::default(),
            has_response: false,
            finish_reason: String::new(),
            refused: false,
            has_text: false,
            text_head: String::new(),
            output_bytes: 0,
            taken_bytes: 0,
            has_begun: false,
            done: false,
            unknown_events: 0,
        }
    }

    fn error(&self, what: &str) -> ModelError {
        ModelError::new(ErrorKind::Protocol, format!("{} {what}", self.origin.authority))
    }

    fn unreadable(&self, data: &str) -> ModelError {
        let excerpt = classify::excerpt(data, EXCERPT_BYTES);
        self.error(&format!("sent a chunk that is no JSON object: {excerpt}"))
    }

    fn chunk(
        &mut self,
        chunk: &Chunk<'_>,
        data: &str,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), ModelError> {
        let choice = chunk.choices.as_ref().and_then(|choices| choices.first());
        let bare = chunk.choices.is_none() && chunk.usage.is_none() && chunk.x_groq.is_none();
        if chunk.error.is_some_and(|error| is_truthy(error.get()))
            || text(&chunk.object) == "error"
            || (bare && (chunk.message.is_some() || chunk.detail.is_some()))
        {
            return Err(classify::in_stream(data, self.origin.authority));
        }
        let groq = chunk.x_groq.as_ref().and_then(|groq| groq.usage);
        let inner = choice.and_then(|choice| choice.usage);
        for usage in [chunk.usage, groq, inner].into_iter().flatten() {
            self.usage.take(usage);
        }
        if let Some(cached) = chunk.timings.as_ref().and_then(|timings| timings.cache_n) {
            self.usage.cached_by_timings = cached;
        }
        if !self.has_response && !text(&chunk.id).is_empty() {
            self.has_response = true;
            let (id, model) = (text(&chunk.id).to_owned(), text(&chunk.model).to_owned());
            sink(ModelEvent::Response { id, model });
        }
        match choice {
            Some(choice) => self.choice(choice, sink),
            None if bare => self.unknown_events += 1,
            None => {}
        }
        self.check_bounds()
    }

    /// A model that never ends, or a server that means harm, is left behind.
    fn check_bounds(&self) -> Result<(), ModelError> {
        let bytes = self.said_bytes();
        let what = if bytes > ANSWER_BYTES_MAX {
            format!("sent an answer of more than {} MiB", ANSWER_BYTES_MAX >> 20)
        } else if self.calls.len() > CALLS_MAX {
            format!("sent more than {CALLS_MAX} tool calls in one answer")
        } else {
            return Ok(());
        };
        Err(self.error(&what).not_retryable())
    }

    fn choice(&mut self, choice: &Choice<'_>, sink: &mut dyn FnMut(ModelEvent)) {
        self.has_begun = true;
        // After the first finish reason only usage matters.
        if !self.finish_reason.is_empty() {
            return;
        }
        for delta in [&choice.delta, &choice.message].into_iter().flatten() {
            self.delta(delta, sink);
        }
        text(&choice.finish_reason).clone_into(&mut self.finish_reason);
    }

    fn delta(&mut self, delta: &Delta<'_>, sink: &mut dyn FnMut(ModelEvent)) {
        // Several of these may hold the same text: the first one counts.
        for (field, value) in [
            ("reasoning_content", &delta.reasoning_content),
            ("reasoning", &delta.reasoning),
            ("reasoning_text", &delta.reasoning_text),
        ] {
            let piece = text(value);
            if !piece.is_empty() {
                self.taken_bytes += piece.len();
                self.reasoning_field(field, piece, sink);
                break;
            }
        }
        for detail in delta.reasoning_details.iter().flatten() {
            self.taken_bytes += detail.get().len();
            merge_detail(&mut self.details, detail);
        }
        let content = text(&delta.content);
        self.taken_bytes += content.len();
        if !content.is_empty() {
            if self.splitter.is_text() {
                self.text_delta(content, sink);
            } else {
                self.split(|splitter, pieces| splitter.push(content, pieces), sink);
            }
        }
        let refusal = text(&delta.refusal);
        self.taken_bytes += refusal.len();
        if !refusal.is_empty() {
            self.refused = true;
            self.text_delta(refusal, sink);
        }
        for call in delta.tool_calls.iter().flatten() {
            self.close(sink);
            self.calls.push(call, sink);
        }
        if let Some(function) = &delta.function_call {
            let (name, arguments) = (text(&function.name), text(&function.arguments));
            if !name.is_empty() || !arguments.is_empty() {
                self.close(sink);
                self.calls.push_legacy(name, arguments, sink);
            }
        }
    }

    fn split(
        &mut self,
        step: impl FnOnce(&mut Splitter, &mut Vec<Piece>),
        sink: &mut dyn FnMut(ModelEvent),
    ) {
        let mut pieces = Vec::new();
        step(&mut self.splitter, &mut pieces);
        for piece in pieces {
            match piece {
                Piece::Text(piece) => self.text_delta(&piece, sink),
                Piece::Reasoning(piece) => self.reasoning_delta(think::FIELD, &piece, sink),
            }
        }
    }

    fn text_delta(&mut self, piece: &str, sink: &mut dyn FnMut(ModelEvent)) {
        if self.open != Open::Text {
            self.close(sink);
            self.open = Open::Text;
            sink(ModelEvent::TextStart);
        }
        if self.text_head.len() < CALL_SIGN_BYTES_MAX {
            let begun = if self.has_text { piece } else { piece.trim_start() };
            self.text_head.push_str(floor_char(begun, CALL_SIGN_BYTES_MAX));
        }
        self.has_text = self.has_text || !piece.trim().is_empty();
        self.output_bytes += piece.len();
        sink(ModelEvent::TextDelta(piece.to_owned()));
    }

    /// Reasoning that has a field of its own: then a tag in the text is text.
    fn reasoning_field(
        &mut self,
        field: &'static str,
        piece: &str,
        sink: &mut dyn FnMut(ModelEvent),
    ) {
        if !self.splitter.is_text() {
            self.split(Splitter::finish, sink);
            self.splitter = Splitter::off();
        }
        if self.origin.repeats_reasoning {
            if piece == self.reasoning_last {
                return;
            }
            piece.clone_into(&mut self.reasoning_last);
        }
        self.reasoning_delta(field, piece, sink);
    }

    fn reasoning_delta(
        &mut self,
        field: &'static str,
        piece: &str,
        sink: &mut dyn FnMut(ModelEvent),
    ) {
        if self.open != Open::Reasoning {
            self.close(sink);
            self.open = Open::Reasoning;
            field.clone_into(&mut self.reasoning.field);
            sink(ModelEvent::ReasoningStart);
        }
        self.output_bytes += piece.len();
        self.reasoning.text.push_str(piece);
        sink(ModelEvent::ReasoningDelta(piece.to_owned()));
    }

    fn close(&mut self, sink: &mut dyn FnMut(ModelEvent)) {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => {}
            Open::Text => sink(ModelEvent::TextEnd),
            Open::Reasoning => {
                let mut reasoning = std::mem::take(&mut self.reasoning);
                self.origin.provider.clone_into(&mut reasoning.provider);
                self.request.model.clone_into(&mut reasoning.model);
                sink(ModelEvent::ReasoningEnd(reasoning));
            }
        }
    }

    /// Whether the text is what a model writes for a call when its server does not look for calls.
    /// It stays the answer: what a person wanted may look like that as well.
    fn is_call_in_words(&self) -> bool {
        CALL_SIGNS.iter().any(|sign| self.text_head.starts_with(sign))
    }

    /// How the answer ended. That calls were sent says more than the reason that came with them.
    fn end(&self) -> Result<Finish, ModelError> {
        let has_calls = !self.calls.is_empty();
        let has_content = self.has_text || has_calls;
        let normal = if has_calls {
            Finish::ToolCalls
        } else if self.refused {
            Finish::Refusal
        } else {
            Finish::Stop
        };
        match self.finish_reason.as_str() {
            "" if !self.done => Err(self.error("cut the answer off: its stream ended early")),
            "" if has_content => Ok(normal),
            "" => Err(self.error("sent a stream that held no answer")),
            "length" | "max_tokens" => Ok(Finish::Length),
            "content_filter" | "sensitive" => Ok(Finish::ContentFilter),
            "refusal" => Ok(Finish::Refusal),
            "error" | "network_error" | "insufficient_system_resource" | "abort" => {
                let what =
                    format!("gave up on the answer (finish reason '{}')", self.finish_reason);
                Err(ModelError { kind: ErrorKind::Server, ..self.error(&what) })
            }
            "model_context_window_exceeded" => Err(ModelError {
                kind: ErrorKind::ContextOverflow,
                ..self.error("says that the conversation does not fit the model's context window")
            }
            .not_retryable()),
            "stop" | "end" | "eos" | "stop_sequence" | "end_turn" => Ok(normal),
            "tool_calls" | "function_call" | "tool_use" if !has_content => {
                Err(self.error("announced tool calls and sent none"))
            }
            _ if has_content => Ok(normal),
            other => Err(self.error(&format!("ended the answer with '{other}' and no content"))),
        }
    }

    /// Gives out every call whole, under an id that is unique in the conversation.
    fn give_calls(&self, calls: Vec<Assembled>, host: &Host, sink: &mut dyn FnMut(ModelEvent)) {
        let mut given: Vec<String> = Vec::new();
        for (index, call) in calls.into_iter().enumerate() {
            let Assembled { mut id, name, arguments, extra, is_new } = call;
            if is_new {
                sink(ModelEvent::ToolCallStart { index, name: name.clone() });
                sink(ModelEvent::ToolCallDelta { index, arguments: arguments.clone() });
            }
            let in_history = |id: &str| {
                let has = |message: &Message| message.calls().any(|call| call.id == id);
                self.request.messages.iter().any(has)
            };
            while id.is_empty() || given.contains(&id) || in_history(&id) {
                id = format!("call_{}", host.new_id());
            }
            given.push(id.clone());
            sink(ModelEvent::ToolCallEnd { index, call: ToolCall { id, name, arguments, extra } });
        }
    }
}

impl Assemble for Answer<'_> {
    fn authority(&self) -> &str {
        self.origin.authority
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_complete(&self) -> bool {
        self.done || !self.finish_reason.is_empty()
    }

    fn said_bytes(&self) -> usize {
        self.taken_bytes + self.calls.held_bytes()
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn end_of_document(&mut self) {
        self.done = true;
    }

    fn event(
        &mut self,
        event: Event<'_>,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), ModelError> {
        let data = event.data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data.starts_with("[DONE]") {
            self.done = true;
            return Ok(());
        }
        if event.name == "error" {
            return Err(classify::in_stream(data, self.origin.authority));
        }
        if let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) {
            return self.chunk(&chunk, data, sink);
        }
        let usual = tolerate(data).ok_or_else(|| self.unreadable(data))?;
        match serde_json::from_str::<Chunk<'_>>(&usual) {
            Ok(chunk) => self.chunk(&chunk, data, sink),
            Err(_) => Err(self.unreadable(data)),
        }
    }

    fn unknown_events(&self) -> u64 {
        self.unknown_events
    }

    fn reported(&self) -> Option<Usage> {
        self.usage.has_any().then(|| self.usage.total(self.request, self.output_bytes))
    }

    fn finish(
        mut self,
        host: &Host,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        self.split(Splitter::finish, sink);
        let finish = self.end()?;
        self.close(sink);
        let calls = std::mem::replace(&mut self.calls, Assembly::new(&[])).finish(sink);
        if calls.len() > CALLS_MAX {
            let what = format!("sent more than {CALLS_MAX} tool calls in one answer");
            return Err(self.error(&what).not_retryable());
        }
        if calls.iter().any(|call| call.name.is_empty()) {
            return Err(self.error("sent a tool call without a name"));
        }
        let bytes = calls.iter().map(|call| call.name.len() + call.arguments.len());
        self.output_bytes += bytes.sum::<usize>();
        if calls.is_empty() && !self.request.tools.is_empty() && self.is_call_in_words() {
            sink(ModelEvent::Notice(CALL_IN_WORDS.to_owned()));
        }
        self.give_calls(calls, host, sink);
        if !self.details.is_empty() {
            let mut item = Map::new();
            item.insert("reasoning_details".into(), std::mem::take(&mut self.details).into());
            if let Ok(item) = RawValue::from_string(Value::Object(item).to_string()) {
                let (provider, model) = (self.origin.provider.into(), self.request.model.into());
                sink(ModelEvent::ProviderItem(Opaque { provider, model, item, at: 0 }));
            }
        }
        sink(ModelEvent::Usage(self.usage.total(self.request, self.output_bytes)));
        Ok(finish)
    }
}

/// `null`, `""`, `{}`, `[]`, `false` and `0` are no error.
pub fn is_truthy(json: &str) -> bool {
    let compact: String = json.split_ascii_whitespace().collect();
    !matches!(compact.as_str(), "null" | "\"\"" | "{}" | "[]" | "false" | "0")
}

/// Joins the pieces of a streamed detail: text to text and summary to summary while they follow
/// each other; everything else stands alone.
fn merge_detail(details: &mut Vec<Value>, raw: &RawValue) {
    let Ok(Value::Object(detail)) = serde_json::from_str(raw.get()) else { return };
    let field = match detail.get("type").and_then(Value::as_str) {
        Some("reasoning.text") => "text",
        Some("reasoning.summary") => "summary",
        _ => return details.push(Value::Object(detail)),
    };
    let continues = details.last().is_some_and(|last| {
        last.get("type") == detail.get("type") && last.get("index") == detail.get("index")
    });
    let Some(Value::Object(last)) = details.last_mut().filter(|_| continues) else {
        return details.push(Value::Object(detail));
    };
    if let Some(piece) = detail.get(field).and_then(Value::as_str) {
        match last.get_mut(field) {
            Some(Value::String(known)) => known.push_str(piece),
            _ => drop(last.insert(field.into(), piece.into())),
        }
    }
    for (name, value) in detail {
        let known = last.get(&name).is_some_and(|v| !v.is_null() && v.as_str() != Some(""));
        if !known {
            last.insert(name, value);
        }
    }
}

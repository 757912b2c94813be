//! What the events of a Responses stream add up to.
//!
//! An item's last form (`response.output_item.done`) is the truth for it; deltas only feed the
//! screen. Reasoning items are given out as they came, byte for byte, where they hold what a
//! later request needs.

use serde_json::json;
use serde_json::value::RawValue;

use crate::host::Host;
use crate::model::{
    ErrorKind, Finish, Message, ModelError, ModelEvent, Opaque, Reasoning, Request, ToolCall, Usage,
};
use crate::provider::classify;
use crate::provider::openai::answer::{ANSWER_BYTES_MAX, is_truthy};
use crate::provider::openai::auth::limits::Limits;
use crate::provider::openai::calls::CALLS_MAX;
use crate::provider::openai::chunk::{Text, text};
use crate::provider::openai::reader::{Assemble, Origin};
use crate::provider::openai::responses::event::{
    EventWire, ItemWire, PartWire, ResponseWire, UsageWire, tolerate,
};
use crate::provider::openai::usage;
use crate::wire::sse::Event;

/// Events of tools that the vendor runs itself, and others that say nothing of the answer.
const IGNORED: &[&str] = &[
    "response.queued",
    "response.in_progress",
    "response.content_part.",
    "response.output_text.annotation.",
    "response.metadata",
    "response.web_search_call.",
    "response.file_search_call.",
    "response.image_generation_call.",
    "response.code_interpreter_call.",
    "response.mcp_",
    "codex.",
    "keepalive",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
    Call,
    /// Kept for its place only.
    Other,
}

impl Kind {
    fn of(wire: &ItemWire<'_>) -> Kind {
        match text(&wire.r#type) {
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            "function_call" | "custom_tool_call" => Kind::Call,
            _ => Kind::Other,
        }
    }
}

/// One output item as far as it has come.
#[derive(Debug)]
struct Item {
    /// As the server numbers it; made up where it does not.
    output_index: i64,
    id: String,
    kind: Kind,
    call_id: String,
    name: String,
    /// Text, reasoning or arguments so far.
    held: String,
    /// Of reasoning: how much of it was given out as a whole run.
    given_bytes: usize,
    /// Of reasoning: the summary paragraph that the last delta belonged to.
    paragraph: i64,
    has_refusal: bool,
    is_done: bool,
    /// Of a call: its number, once it was announced.
    call: Option<usize>,
    /// Of a reasoning item without what makes it worth keeping: its place and last form.
    waiting: Option<(usize, String)>,
}

pub struct Answer<'r> {
    request: &'r Request<'r>,
    origin: Origin<'r>,
    owner: String,
    items: Vec<Item>,
    /// The item whose run of deltas is open.
    open: Option<usize>,
    /// Ids of the calls given out.
    ids: Vec<String>,
    calls: usize,
    has_nameless_call: bool,
    /// Parts of the message given out so far: runs of text and calls.
    parts: usize,
    usage: Option<UsageWire>,
    finish: Option<Finish>,
    has_response: bool,
    taken_bytes: usize,
    output_bytes: usize,
    last_event: String,
    has_begun: bool,
    done: bool,
    limits: Option<Limits>,
    unknown_events: u64,
}

impl<'r> Answer<'r> {
    pub fn new(request: &'r Request<'r>, origin: Origin<'r>) -> Answer<'r> {
        Answer {
            request,
            origin,
            owner: super::owner(origin.provider, origin.authority),
            items: Vec::new(),
            open: None,
            ids: Vec::new(),
            calls: 0,
            has_nameless_call: false,
            parts: 0,
            usage: None,
            finish: None,
            has_response: false,
            taken_bytes: 0,
            output_bytes: 0,
            last_event: String::new(),
            has_begun: false,
            done: false,
            limits: None,
            unknown_events: 0,
        }
    }

    fn error(&self, what: &str) -> ModelError {
        ModelError::new(ErrorKind::Protocol, format!("{} {what}", self.origin.authority))
    }

    fn take(
        &mut self,
        wire: &EventWire<'_>,
        data: &str,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), ModelError> {
        let kind = text(&wire.r#type);
        match kind {
            "response.created" | "response.in_progress" => self.created(wire, sink),
            "response.output_item.added" => {
                let mended = wire.item.and_then(|raw| mended::<ItemWire<'_>>(raw.get()));
                let raw = mended.as_deref().or(wire.item.map(RawValue::get));
                if let Some(item) = raw.and_then(read::<ItemWire<'_>>)
                    && !self.is_again(&item, wire.output_index)
                {
                    let at = self.begin(&item, wire.output_index);
                    self.announce(at, sink);
                }
            }
            "response.output_item.done" => {
                if let Some(raw) = wire.item {
                    self.item_done(raw.get(), wire.output_index, sink);
                }
            }
            "response.output_text.delta" => self.text_delta(wire, false, sink),
            "response.refusal.delta" => self.text_delta(wire, true, sink),
            "response.output_text.done" | "response.refusal.done" => self.text_done(wire, sink),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.reasoning_delta(wire, sink);
            }
            "response.reasoning_summary_part.added" | "response.reasoning_summary_part.done" => {}
            "response.reasoning_summary_text.done" | "response.reasoning_text.done" => {}
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.arguments_delta(wire, sink);
            }
            "response.function_call_arguments.done" | "response.custom_tool_call_input.done" => {
                let last = [&wire.arguments, &wire.input].into_iter().find(|field| field.is_some());
                if let (Some(last), Some(at)) = (last, self.find(wire, Kind::Call)) {
                    text(last).clone_into(&mut self.items[at].held);
                }
            }
            "response.completed" | "response.done" | "response.incomplete" | "response.failed" => {
                let response = wire.response.map_or("{}", |raw| raw.get());
                return self.ended(response, kind, sink);
            }
            "error" => return Err(self.reported(data)),
            "" if text(&wire.object) == "response" => {
                return self.ended(data, "response", sink);
            }
            "" if [wire.error, wire.detail].iter().flatten().any(|it| is_truthy(it.get())) => {
                return Err(self.reported(data));
            }
            "codex.rate_limits" => {
                let told = read(data).and_then(|value| Limits::from_json(&value));
                self.limits = told.or(self.limits.take());
            }
            other if IGNORED.iter().any(|start| other.starts_with(start)) => {}
            _ => self.unknown_events += 1,
        }
        Ok(())
    }

    /// An error that the stream holds.
    fn reported(&mut self, data: &str) -> ModelError {
        if let Some(limits) = Limits::from_error(data) {
            self.limits = Some(limits.or(self.limits.take()));
        }
        classify::in_stream(data, self.origin.authority)
    }

    fn created(&mut self, wire: &EventWire<'_>, sink: &mut dyn FnMut(ModelEvent)) {
        let response = wire.response.and_then(|raw| read::<ResponseWire<'_>>(raw.get()));
        if let Some(response) = response {
            self.named(&response, sink);
        }
    }

    /// Tells of the response's id once.
    fn named(&mut self, response: &ResponseWire<'_>, sink: &mut dyn FnMut(ModelEvent)) {
        let id = text(&response.id);
        if !id.is_empty() && !std::mem::replace(&mut self.has_response, true) {
            let model = text(&response.model).to_owned();
            sink(ModelEvent::Response { id: id.to_owned(), model });
        }
    }

    /// The place of an item in `items`; a new one where it was not seen yet.
    fn begin(&mut self, wire: &ItemWire<'_>, output_index: Option<i64>) -> usize {
        self.has_begun = true;
        let kind = Kind::of(wire);
        let id = text(&wire.id);
        let same = |item: &Item| {
            item.kind == kind
                && !item.is_done
                && match output_index {
                    Some(index) => item.output_index == index,
                    None => id.is_empty() || item.id.is_empty() || item.id == id,
                }
        };
        let at = self.items.iter().rposition(same).unwrap_or_else(|| {
            let last = self.items.iter().map(|item| item.output_index).max();
            let next = last.map_or(0, |last| last.saturating_add(1));
            self.items.push(Item {
                output_index: output_index.unwrap_or(next),
                id: String::new(),
                kind,
                call_id: String::new(),
                name: String::new(),
                held: String::new(),
                given_bytes: 0,
                paragraph: 0,
                has_refusal: false,
                is_done: false,
                call: None,
                waiting: None,
            });
            self.items.len() - 1
        });
        let item = &mut self.items[at];
        for (field, value) in [
            (&mut item.id, id),
            (&mut item.call_id, text(&wire.call_id)),
            (&mut item.name, text(&wire.name)),
        ] {
            if !value.is_empty() {
                value.clone_into(field);
            }
        }
        at
    }

    /// The open item of that kind that a delta belongs to.
    fn find(&self, wire: &EventWire<'_>, kind: Kind) -> Option<usize> {
        let id = text(&wire.item_id);
        let fits = |item: &Item| {
            item.kind == kind
                && match wire.output_index {
                    Some(index) => item.output_index == index,
                    None => id.is_empty() || item.id.is_empty() || item.id == id,
                }
        };
        self.items.iter().rposition(|item| fits(item) && !item.is_done)
    }

    /// As [`Answer::find`], for servers that send deltas without an item; `None` for what comes
    /// behind the last form of its item.
    fn find_or_begin(&mut self, wire: &EventWire<'_>, kind: Kind) -> Option<usize> {
        let id = text(&wire.item_id);
        if let Some(at) = self.find(wire, kind) {
            return Some(at);
        }
        if self.is_over(id, kind, wire.output_index) {
            return None;
        }
        let name = match kind {
            Kind::Message => "message",
            Kind::Reasoning => "reasoning",
            Kind::Call | Kind::Other => "function_call",
        };
        let json = json!({"type": name, "id": id}).to_string();
        let item = read::<ItemWire<'_>>(&json).unwrap_or_default();
        Some(self.begin(&item, wire.output_index))
    }

    /// Whether the item that both its id and its place name has had its last form.
    fn is_over(&self, id: &str, kind: Kind, output_index: Option<i64>) -> bool {
        let is_it = |item: &Item| {
            item.kind == kind && item.id == id && Some(item.output_index) == output_index
        };
        !id.is_empty() && self.items.iter().rfind(|item| is_it(item)).is_some_and(|it| it.is_done)
    }

    /// Says that a call begins, once its name is known.
    fn announce(&mut self, at: usize, sink: &mut dyn FnMut(ModelEvent)) {
        let index = self.calls;
        let item = &mut self.items[at];
        if item.kind != Kind::Call || item.call.is_some() || item.name.is_empty() {
            return;
        }
        item.call = Some(index);
        let name = item.name.clone();
        self.calls += 1;
        self.close(sink);
        sink(ModelEvent::ToolCallStart { index, name });
    }

    fn text_delta(
        &mut self,
        wire: &EventWire<'_>,
        refusal: bool,
        sink: &mut dyn FnMut(ModelEvent),
    ) {
        let piece = text(&wire.delta);
        if piece.is_empty() {
            return;
        }
        let Some(at) = self.find_or_begin(wire, Kind::Message) else { return };
        self.items[at].has_refusal |= refusal;
        self.run(at, sink);
        self.say(at, piece, sink);
    }

    /// Text of which no delta came.
    fn text_done(&mut self, wire: &EventWire<'_>, sink: &mut dyn FnMut(ModelEvent)) {
        let whole = wire.text.and_then(|raw| read::<Text<'_>>(raw.get()));
        let last = [text(&whole), text(&wire.refusal)].concat();
        let is_message = |item: &Item| item.kind == Kind::Message;
        if self.find(wire, Kind::Message).is_none() && self.items.iter().any(is_message) {
            return;
        }
        let Some(at) = self.find_or_begin(wire, Kind::Message) else { return };
        self.items[at].has_refusal |= !text(&wire.refusal).is_empty();
        if self.items[at].held.is_empty() && !last.is_empty() {
            self.run(at, sink);
            self.say(at, &last, sink);
        }
    }

    fn say(&mut self, at: usize, piece: &str, sink: &mut dyn FnMut(ModelEvent)) {
        self.count(piece.len());
        self.items[at].held.push_str(piece);
        sink(match self.items[at].kind {
            Kind::Reasoning => ModelEvent::ReasoningDelta(piece.to_owned()),
            _ => ModelEvent::TextDelta(piece.to_owned()),
        });
    }

    fn count(&mut self, bytes: usize) {
        self.taken_bytes += bytes;
        self.output_bytes += bytes;
    }

    fn reasoning_delta(&mut self, wire: &EventWire<'_>, sink: &mut dyn FnMut(ModelEvent)) {
        let piece = text(&wire.delta);
        if piece.is_empty() {
            return;
        }
        let Some(at) = self.find_or_begin(wire, Kind::Reasoning) else { return };
        self.run(at, sink);
        let paragraph = wire.summary_index.unwrap_or(0);
        let item = &mut self.items[at];
        if item.paragraph != paragraph && !item.held.is_empty() {
            item.paragraph = paragraph;
            self.say(at, "\n\n", sink);
        }
        self.say(at, piece, sink);
    }

    fn arguments_delta(&mut self, wire: &EventWire<'_>, sink: &mut dyn FnMut(ModelEvent)) {
        let piece = text(&wire.delta);
        let Some(at) = self.find_or_begin(wire, Kind::Call) else { return };
        self.count(piece.len());
        let item = &mut self.items[at];
        item.held.push_str(piece);
        if let Some(index) = item.call {
            sink(ModelEvent::ToolCallDelta { index, arguments: piece.to_owned() });
        }
    }

    /// Opens the run of an item's deltas.
    fn run(&mut self, at: usize, sink: &mut dyn FnMut(ModelEvent)) {
        if self.open == Some(at) {
            return;
        }
        self.close(sink);
        self.open = Some(at);
        match self.items[at].kind {
            Kind::Reasoning => sink(ModelEvent::ReasoningStart),
            _ => {
                self.parts += 1;
                sink(ModelEvent::TextStart);
            }
        }
    }

    /// Ends the open run.
    fn close(&mut self, sink: &mut dyn FnMut(ModelEvent)) {
        let Some(at) = self.open.take() else { return };
        match self.items[at].kind {
            Kind::Reasoning => {
                let Item { held, given_bytes, .. } = &mut self.items[at];
                // A run that was broken by another item's goes on where it was.
                let text = held.get(*given_bytes..).unwrap_or_default().to_owned();
                *given_bytes = held.len();
                sink(ModelEvent::ReasoningEnd(Reasoning {
                    text,
                    field: String::new(),
                    provider: self.origin.provider.to_owned(),
                    model: self.request.model.to_owned(),
                }));
            }
            _ => sink(ModelEvent::TextEnd),
        }
    }

    /// An item in its last form.
    fn item_done(
        &mut self,
        raw: &str,
        output_index: Option<i64>,
        sink: &mut dyn FnMut(ModelEvent),
    ) {
        let mended = mended::<ItemWire<'_>>(raw);
        let raw = mended.as_deref().unwrap_or(raw);
        let Some(wire) = read::<ItemWire<'_>>(raw) else {
            self.unknown_events += 1;
            return;
        };
        if self.is_again(&wire, output_index) {
            return;
        }
        let at = self.begin(&wire, output_index);
        match self.items[at].kind {
            Kind::Message => self.message_done(at, &wire, sink),
            Kind::Reasoning => self.reasoning_done(at, &wire, raw, sink),
            Kind::Call => {
                let last = [&wire.arguments, &wire.input].into_iter().find(|field| field.is_some());
                self.call_done(at, last.map(text), sink);
            }
            Kind::Other => {}
        }
        self.items[at].is_done = true;
    }

    /// Whether this item has been done before: what it said then has been given out.
    fn is_again(&self, wire: &ItemWire<'_>, output_index: Option<i64>) -> bool {
        let id = text(&wire.id);
        let is_it = |at: usize| self.items[at].id == id;
        // One id and one place for several calls are those of servers that do not count.
        let is_call = |item: &Item| item.call_id == text(&wire.call_id);
        !id.is_empty()
            && (self.same(wire).any(is_it)
                || (self.is_over(id, Kind::of(wire), output_index)
                    && self.items.iter().any(|item| item.id == id && is_call(item))))
    }

    /// Items that are done and say the same as this one.
    fn same(&self, wire: &ItemWire<'_>) -> impl Iterator<Item = usize> {
        let kind = Kind::of(wire);
        let (last, call_id) = (last_text(kind, wire), text(&wire.call_id));
        let same = move |item: &Item| {
            item.is_done && item.kind == kind && item.call_id == call_id && item.held == last
        };
        (0..self.items.len()).filter(move |at| same(&self.items[*at]))
    }

    fn message_done(&mut self, at: usize, wire: &ItemWire<'_>, sink: &mut dyn FnMut(ModelEvent)) {
        let parts = wire.content.as_deref().unwrap_or_default();
        self.items[at].has_refusal |= parts.iter().any(|part| !text(&part.refusal).is_empty());
        let last = last_text(Kind::Message, wire);
        let phase = text(&wire.phase);
        let place = if self.items[at].held.is_empty() { self.parts } else { self.parts - 1 };
        self.settle_run(at, &last, sink);
        if !phase.is_empty() && !self.items[at].held.is_empty() {
            // The text goes back from the message; its phase must go with it.
            let item = json!({"type": "message", "phase": phase}).to_string();
            self.keep(place, item, sink);
        }
    }

    /// Ends an item's run with its last text: one that had no delta is given out whole, one that
    /// differs from its deltas is corrected.
    fn settle_run(&mut self, at: usize, last: &str, sink: &mut dyn FnMut(ModelEvent)) {
        if self.items[at].held.is_empty() && !last.is_empty() {
            self.run(at, sink);
            self.say(at, last, sink);
        } else if !last.is_empty() && self.items[at].held != last {
            last.clone_into(&mut self.items[at].held);
            if self.open == Some(at) && self.items[at].kind == Kind::Message {
                sink(ModelEvent::TextIs(last.to_owned()));
            }
        }
        if self.open == Some(at) {
            self.close(sink);
        }
    }

    fn reasoning_done(
        &mut self,
        at: usize,
        wire: &ItemWire<'_>,
        raw: &str,
        sink: &mut dyn FnMut(ModelEvent),
    ) {
        let last = last_text(Kind::Reasoning, wire);
        self.settle_run(at, &last, sink);
        if text(&wire.encrypted_content).is_empty() {
            self.items[at].waiting = Some((self.parts, raw.to_owned()));
        } else {
            self.taken_bytes += raw.len();
            self.keep(self.parts, raw.to_owned(), sink);
        }
    }

    /// Gives out state to send back, for a place among the parts of the message.
    fn keep(&self, at: usize, item: String, sink: &mut dyn FnMut(ModelEvent)) {
        if let Ok(item) = RawValue::from_string(item) {
            let (provider, model) = (self.owner.clone(), self.request.model.to_owned());
            sink(ModelEvent::ProviderItem(Opaque { provider, model, item, at }));
        }
    }

    fn call_done(&mut self, at: usize, last: Option<&str>, sink: &mut dyn FnMut(ModelEvent)) {
        self.announce(at, sink);
        let item = &mut self.items[at];
        if let Some(last) = last {
            self.taken_bytes += last.len().saturating_sub(item.held.len());
            last.clone_into(&mut item.held);
        }
        item.is_done = true;
        let Some(index) = item.call else {
            self.has_nameless_call = true;
            return;
        };
        let (mut id, name, arguments) =
            (item.call_id.clone(), item.name.clone(), item.held.clone());
        let in_history = |id: &str| {
            let has = |message: &Message| message.calls().any(|call| call.id == id);
            self.request.messages.iter().any(has)
        };
        let mut round = 0;
        while id.is_empty() || self.ids.contains(&id) || in_history(&id) {
            round += 1;
            id = format!("call_{index}_{round}_{}", self.request.messages.len());
        }
        self.ids.push(id.clone());
        self.parts += 1;
        self.close(sink);
        let call = ToolCall { id, name, arguments, extra: None };
        sink(ModelEvent::ToolCallEnd { index, call });
    }

    /// The response in its last form.
    fn ended(
        &mut self,
        raw: &str,
        event: &str,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), ModelError> {
        self.has_begun = true;
        let mended = mended::<ResponseWire<'_>>(raw);
        let raw = mended.as_deref().unwrap_or(raw);
        let response = read::<ResponseWire<'_>>(raw).unwrap_or_default();
        self.named(&response, sink);
        self.usage = response.usage.or(self.usage);
        let status = match event {
            "response.failed" => "failed",
            "response.incomplete" => "incomplete",
            _ => text(&response.status),
        };
        if matches!(status, "failed" | "cancelled") {
            self.give_usage(sink);
            let error = response.error.filter(|error| is_truthy(error.get()));
            return Err(match error {
                Some(error) => self.reported(&format!("{{\"error\":{}}}", error.get())),
                None => ModelError {
                    kind: ErrorKind::Server,
                    ..self.error(&format!("gave up on the answer (status '{status}')"))
                },
            });
        }
        self.take_output(response.output.as_deref().unwrap_or_default(), sink);
        let cut = status == "incomplete";
        self.end_items(cut, sink);
        let reason = response.incomplete_details.as_ref().map_or("", |it| text(&it.reason));
        let refused = self.items.iter().any(|item| item.has_refusal);
        self.finish = Some(match reason {
            "max_output_tokens" => Finish::Length,
            "content_filter" => Finish::ContentFilter,
            _ if cut => {
                self.give_usage(sink);
                let reason = if reason.is_empty() { "no reason given" } else { reason };
                let what = format!("gave up on the answer (incomplete: {reason})");
                return Err(ModelError { kind: ErrorKind::Server, ..self.error(&what) });
            }
            _ if !self.ids.is_empty() => Finish::ToolCalls,
            _ if refused => Finish::Refusal,
            _ => Finish::Stop,
        });
        self.done = true;
        Ok(())
    }

    /// Items that only the last form of the response has, and what others lacked before it.
    fn take_output(&mut self, output: &[&RawValue], sink: &mut dyn FnMut(ModelEvent)) {
        for (index, raw) in output.iter().enumerate() {
            let mended = mended::<ItemWire<'_>>(raw.get());
            let raw = mended.as_deref().unwrap_or(raw.get());
            let Some(wire) = read::<ItemWire<'_>>(raw) else { continue };
            let (id, kind) = (text(&wire.id), Kind::of(&wire));
            let index = i64::try_from(index).unwrap_or(i64::MAX);
            let find = |fits: &dyn Fn(&Item) -> bool| {
                self.items.iter().position(|item| item.kind == kind && fits(item))
            };
            // A server may number or name its items in another way here than before.
            let known = find(&|item| !id.is_empty() && item.id == id)
                .or_else(|| find(&|item| item.output_index == index))
                .or_else(|| self.same(&wire).next());
            match known.filter(|at| self.items[*at].is_done) {
                Some(at) if !text(&wire.encrypted_content).is_empty() => {
                    if let Some((place, _)) = self.items[at].waiting.take() {
                        self.taken_bytes += raw.len();
                        self.keep(place, raw.to_owned(), sink);
                    }
                }
                Some(_) => {}
                None => {
                    let index = known.map_or(index, |at| self.items[at].output_index);
                    self.item_done(raw, Some(index), sink);
                }
            }
        }
    }

    /// Items that the server began and never finished.
    fn end_items(&mut self, cut: bool, sink: &mut dyn FnMut(ModelEvent)) {
        for at in 0..self.items.len() {
            if self.items[at].is_done {
                continue;
            }
            match self.items[at].kind {
                // A call without arguments was not begun as far as anyone could tell.
                Kind::Call if !cut || !self.items[at].held.is_empty() => {
                    self.call_done(at, None, sink);
                }
                Kind::Call | Kind::Other => {}
                Kind::Message | Kind::Reasoning => self.settle_run(at, "", sink),
            }
            self.items[at].is_done = true;
        }
        self.close(sink);
    }

    fn give_usage(&self, sink: &mut dyn FnMut(ModelEvent)) {
        let Some(wire) = self.usage else { return };
        let input = wire.input_tokens.unwrap_or(0);
        let output = wire.output_tokens.unwrap_or(0);
        let cached = wire.input_tokens_details.and_then(|details| details.cached_tokens);
        let reasoning = wire.output_tokens_details.and_then(|details| details.reasoning_tokens);
        sink(ModelEvent::Usage(Usage {
            input,
            cached_input: cached.unwrap_or(0).min(input),
            output,
            reasoning_output: reasoning.unwrap_or(0).min(output),
            total: input.saturating_add(output),
            ..Usage::default()
        }));
    }

    /// A model that never ends, or a server that means harm, is left behind.
    fn check_bounds(&self) -> Result<(), ModelError> {
        let what = if self.taken_bytes > ANSWER_BYTES_MAX {
            format!("sent an answer of more than {} MiB", ANSWER_BYTES_MAX >> 20)
        } else if self.items.len() > CALLS_MAX {
            format!("sent more than {CALLS_MAX} items in one answer")
        } else {
            return Ok(());
        };
        Err(self.error(&what).not_retryable())
    }
}

impl Assemble for Answer<'_> {
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
            self.end_items(false, sink);
            let has_content = self.parts > 0;
            self.finish = match (has_content, self.ids.is_empty()) {
                (false, _) => None,
                (true, true) => Some(Finish::Stop),
                (true, false) => Some(Finish::ToolCalls),
            };
            self.done = true;
            return Ok(());
        }
        let mended = mended::<EventWire<'_>>(data);
        let data = mended.as_deref().unwrap_or(data);
        let Some(wire) = read::<EventWire<'_>>(data) else {
            if event.name == "error" {
                return Err(self.reported(data));
            }
            self.unknown_events += 1;
            return Ok(());
        };
        text(&wire.r#type).clone_into(&mut self.last_event);
        self.take(&wire, data, sink)?;
        self.check_bounds()
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_complete(&self) -> bool {
        self.done
    }

    fn said_bytes(&self) -> usize {
        self.taken_bytes
    }

    fn has_begun(&self) -> bool {
        self.has_begun || self.has_response
    }

    fn end_of_document(&mut self) {
        self.done = true;
    }

    fn last_event(&self) -> &str {
        &self.last_event
    }

    fn take_limits(&mut self) -> Option<Limits> {
        self.limits.take()
    }

    fn authority(&self) -> &str {
        self.origin.authority
    }

    fn unknown_events(&self) -> u64 {
        self.unknown_events
    }

    fn finish(
        mut self,
        _host: &Host,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        self.close(sink);
        let Some(finish) = self.finish else {
            let after = match self.last_event.as_str() {
                "" => String::new(),
                event => format!(" after {}", classify::excerpt(event, 60)),
            };
            let what = format!("cut the answer off: its stream ended early{after}");
            return Err(self.error(&what));
        };
        if self.has_nameless_call && finish != Finish::Length {
            return Err(self.error("sent a tool call without a name"));
        }
        if self.calls > self.ids.len() && finish != Finish::Length {
            return Err(self.error("announced a tool call and never sent it"));
        }
        match self.usage {
            Some(_) => self.give_usage(sink),
            None => sink(ModelEvent::Usage(usage::estimate(self.request, self.output_bytes))),
        }
        Ok(finish)
    }
}

fn read<'a, T: serde::Deserialize<'a>>(json: &'a str) -> Option<T> {
    serde_json::from_str(json).ok()
}

/// The usual form of what is none.
fn mended<'a, T: serde::Deserialize<'a>>(json: &'a str) -> Option<String> {
    read::<T>(json).is_none().then(|| tolerate(json)).flatten()
}

/// The last text of a message, the thoughts of reasoning, the arguments of a call.
fn last_text(kind: Kind, wire: &ItemWire<'_>) -> String {
    let join = |parts: &Option<Vec<PartWire<'_>>>, between: &str| {
        let texts = parts.iter().flatten().flat_map(|part| [text(&part.text), text(&part.refusal)]);
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        texts.join(between)
    };
    match kind {
        Kind::Message => join(&wire.content, ""),
        Kind::Reasoning => {
            let summary = join(&wire.summary, "\n\n");
            if summary.is_empty() { join(&wire.content, "\n\n") } else { summary }
        }
        Kind::Call | Kind::Other => {
            let last = [&wire.arguments, &wire.input].into_iter().find(|field| field.is_some());
            last.map_or("", |last| text(last)).to_owned()
        }
    }
}

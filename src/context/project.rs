//! From events to the messages that a model gets.
//!
//! A [`Projection`] takes events one by one, from a resumed session and then from the running
//! turn, and always holds a conversation that every provider accepts: each call has exactly one
//! result, directly behind the message that made it, in the order of the calls. What happened to
//! a call that nothing tells of is said to the model instead of being left out.

use std::mem::take;

use crate::context::compact::Checkpoint;
use crate::context::messages::Messages;
use crate::context::tokens;
use crate::model::{Message, Opaque, Part, Reasoning, ResultStatus, Role, ToolCall, ToolResult};
use crate::session::{AssistantMessage, Counters, Data, Event, PartRef, Sink, Stopped};

/// The result of a call that nothing tells the end of.
pub const INTERRUPTED: &str = "tool error: interrupted before it finished; its effects are unknown";

/// Behind what a model had said of an answer that did not end.
pub const CUT_OFF: &str = "[the answer was cut off here]";

/// The conversation of a session. The system prompt is not part of it.
#[derive(Debug, Clone, Default)]
pub struct Projection {
    messages: Messages,
    /// What belongs to the next assistant message: reasoning and provider items.
    pending: Vec<Part>,
    /// Calls of the last assistant message, with what became of them.
    batch: Option<Batch>,
    /// The events that messages were made of, in order, with the index of the message.
    starts: Vec<(Box<str>, usize)>,
    counters: Counters,
    last_model: Option<(String, String)>,
    /// The newest summary.
    checkpoint: Option<Checkpoint>,
    /// How much a model was found to take: provider, model, tokens.
    windows: Vec<(String, String, u64)>,
    orphans: u64,
}

#[derive(Debug, Clone)]
struct Batch {
    /// Where the result of the first call belongs.
    first: usize,
    calls: Vec<Slot>,
}

#[derive(Debug, Clone)]
struct Slot {
    /// As the log has it, which may be empty or not unique.
    logged_id: String,
    state: SlotState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Open,
    /// There is a message that says so; a late result replaces it.
    Interrupted,
    Done,
}

/// What of a message's state stands before its text or call number `said`.
fn take_up_to(
    pending: &mut std::iter::Peekable<std::vec::IntoIter<Part>>,
    said: usize,
) -> Vec<Part> {
    let mut parts = Vec::new();
    let is_before = |part: &Part| !matches!(part, Part::Opaque(opaque) if opaque.at > said);
    while let Some(part) = pending.next_if(is_before) {
        parts.push(part);
    }
    parts
}

impl Sink for Projection {
    fn restart(&mut self) {
        *self = Projection::default();
    }

    fn event(&mut self, event: &mut Event<'_>) {
        self.push(event);
    }
}

impl Projection {
    pub fn new() -> Projection {
        Projection::default()
    }

    /// The conversation as it stands. A call whose result was not pushed yet has none here: see
    /// [`Projection::settle`].
    pub fn messages(&self) -> &[Message] {
        self.messages.all()
    }

    /// Estimated tokens of each message.
    pub fn costs(&mut self) -> &[u64] {
        self.messages.costs()
    }

    /// Their sum. Each message is counted once.
    pub fn tokens(&mut self) -> u64 {
        self.messages.tokens()
    }

    /// Their sum, by their length alone: for who only wants to know whether it is large.
    pub fn rough_tokens(&self) -> u64 {
        self.messages.all().iter().map(tokens::rough).sum()
    }

    /// The first event that the message at `at` was made of.
    pub fn event_of(&self, at: usize) -> Option<&str> {
        let first = self.starts.partition_point(|(_, start)| *start < at);
        let (id, start) = self.starts.get(first)?;
        (*start == at).then_some(id)
    }

    /// The last event that a message before `at` was made of.
    pub fn event_before(&self, at: usize) -> Option<&str> {
        let next = self.starts.partition_point(|(_, start)| *start < at);
        self.starts.get(next.checked_sub(1)?).map(|(id, _)| &**id)
    }

    /// The newest summary, which stands first in the conversation.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint.as_ref()
    }

    /// How much a model was found to take, in tokens.
    pub fn window_of(&self, provider: &str, model: &str) -> Option<u64> {
        let is_it = |(p, m, _): &&(String, String, u64)| (&**p, &**m) == (provider, model);
        self.windows.iter().rfind(is_it).map(|(_, _, tokens)| *tokens)
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Provider and model of the last answer or change.
    pub fn last_model(&self) -> Option<(&str, &str)> {
        self.last_model.as_ref().map(|(provider, model)| (provider.as_str(), model.as_str()))
    }

    /// Results that belong to no call and were left out.
    pub fn orphan_results(&self) -> u64 {
        self.orphans
    }

    /// Takes the next event of the chain, and the texts out of it: results are long.
    pub fn push(&mut self, event: &mut Event<'_>) {
        self.counters.push(event);
        let id = &*event.id;
        match &mut event.data {
            Data::User(message) => {
                self.settle();
                self.pending.clear();
                self.mark(id);
                self.say(Role::User, vec![Part::Text(take(&mut message.content).into_text())]);
            }
            Data::Assistant(message) => {
                self.settle();
                self.mark(id);
                self.assistant(&event.id, message);
            }
            Data::Tool(message) => {
                let text = take(&mut message.content).into_text();
                let at = self.result(&message.tool_call_id, &message.name, text, message.status);
                // One that was left out stands for what follows.
                self.mark_at(id, at.unwrap_or(self.messages.all().len()));
            }
            Data::Reasoning(data) => {
                self.mark(id);
                self.pending.push(Part::Reasoning(Reasoning {
                    text: take(&mut data.reasoning).0.into_owned(),
                    field: data.field.to_string(),
                    provider: data.provider.to_string(),
                    model: data.model.to_string(),
                }));
            }
            Data::ProviderItem(data) => {
                if let Some(item) = data.item() {
                    self.mark(id);
                    let (provider, model) = (data.provider.to_string(), data.model.to_string());
                    let at = data.at;
                    self.pending.push(Part::Opaque(Opaque { provider, model, item, at }));
                }
            }
            Data::Stopped(stopped) => {
                self.mark(id);
                self.stopped(stopped);
            }
            Data::Changed(changed) => {
                self.model_is(&changed.provider, &changed.model);
            }
            Data::Summary(summary) => {
                let kept = summary.first_kept_event_id.as_deref().and_then(|id| self.place_of(id));
                self.summary(Checkpoint::of(summary), kept);
            }
            Data::Folded(folded) => {
                for result in &folded.results {
                    self.fold(&result.event_id, &result.stub);
                }
            }
            Data::Window(window) => {
                let (provider, model) = (window.provider.to_string(), window.model.to_string());
                self.windows.push((provider, model, window.context_tokens));
            }
            Data::SessionStarted(_)
            | Data::Usage(_)
            | Data::Response(_)
            | Data::Metrics(_)
            | Data::Retry(_)
            | Data::Denied(_)
            | Data::Repaired(_)
            | Data::Pointer(_)
            | Data::CompactionFailed(_)
            | Data::Unknown { .. } => {}
        }
    }

    /// Gives every call that has no result one that says so. For the end of a resumed log, and
    /// before any request.
    pub fn settle(&mut self) {
        let Some(mut batch) = self.batch.take() else { return };
        for (at, slot) in batch.calls.iter_mut().enumerate() {
            if slot.state != SlotState::Open {
                continue;
            }
            slot.state = SlotState::Interrupted;
            let Some(call) = call_at(self.messages.all(), batch.first, at) else { continue };
            let result = ToolResult {
                call_id: call.id.clone(),
                name: call.name.clone(),
                text: INTERRUPTED.to_owned(),
                status: ResultStatus::Interrupted,
            };
            // All results before this one are there.
            let parts = vec![Part::ToolResult(result)];
            self.insert(batch.first + at, Message { role: Role::Tool, parts });
        }
        self.batch = Some(batch);
    }

    fn model_is(&mut self, provider: &str, model: &str) {
        let known = self.last_model.as_ref();
        if known.is_none_or(|(p, m)| p != provider || m != model) {
            self.last_model = Some((provider.to_owned(), model.to_owned()));
        }
    }

    fn mark(&mut self, id: &str) {
        self.mark_at(id, self.messages.all().len());
    }

    fn mark_at(&mut self, id: &str, at: usize) {
        let behind = self.starts.partition_point(|(_, start)| *start <= at);
        self.starts.insert(behind, (id.into(), at));
    }

    /// Puts a message where it belongs, which may be before others.
    fn insert(&mut self, at: usize, message: Message) {
        let moved = self.starts.partition_point(|(_, start)| *start < at);
        self.starts[moved..].iter_mut().for_each(|(_, start)| *start += 1);
        self.messages.insert(at, message);
    }

    /// The index of the message that an event belongs to.
    fn place_of(&self, id: &str) -> Option<usize> {
        self.starts.iter().rev().find(|(start, _)| **start == *id).map(|(_, at)| *at)
    }

    fn say(&mut self, role: Role, parts: Vec<Part>) {
        self.messages.push(Message { role, parts });
    }

    fn assistant(&mut self, event_id: &str, message: &AssistantMessage<'_>) {
        if !message.model.is_empty() {
            self.model_is(&message.provider, &message.model);
        }
        let mut pending = take(&mut self.pending).into_iter().peekable();
        let (mut parts, mut said, mut calls) = (Vec::new(), 0, Vec::new());
        for part in message.parts() {
            match part {
                PartRef::Text("") => continue,
                PartRef::Text(text) => {
                    parts.extend(take_up_to(&mut pending, said));
                    parts.push(Part::Text(text.to_owned()));
                }
                PartRef::Call(call) => {
                    parts.extend(take_up_to(&mut pending, said));
                    let logged_id = call.id.to_string();
                    let taken = calls.iter().any(|slot: &Slot| slot.logged_id == logged_id);
                    let id = match taken || logged_id.is_empty() {
                        true => format!("{event_id}_{}", calls.len()),
                        false => logged_id.clone(),
                    };
                    parts.push(Part::ToolCall(ToolCall {
                        id,
                        name: call.name.to_string(),
                        arguments: call.arguments.0.to_string(),
                        extra: call.extra.map(ToOwned::to_owned),
                    }));
                    calls.push(Slot { logged_id, state: SlotState::Open });
                }
            }
            said += 1;
        }
        parts.extend(pending);
        self.batch = None;
        // An answer that says nothing is refused by servers, and its reasoning led nowhere.
        if said > 0 {
            self.say(Role::Assistant, parts);
            self.batch =
                (!calls.is_empty()).then_some(Batch { first: self.messages.all().len(), calls });
        }
    }

    /// Takes a result to its call; where it stands now, if there is such a call.
    fn result(
        &mut self,
        logged_id: &str,
        name: &str,
        text: String,
        status: ResultStatus,
    ) -> Option<usize> {
        let open = |slot: &Slot| slot.logged_id == logged_id && slot.state != SlotState::Done;
        let found = self.batch.as_mut().and_then(|batch| {
            let at = batch.calls.iter().position(open)?;
            Some((batch, at))
        });
        let Some((batch, call_idx)) = found else {
            self.orphans += 1;
            return None;
        };
        let call = call_at(self.messages.all(), batch.first, call_idx)?;
        let name = if name.is_empty() { call.name.clone() } else { name.to_owned() };
        let result = ToolResult { call_id: call.id.clone(), name, text, status };
        let message = Message { role: Role::Tool, parts: vec![Part::ToolResult(result)] };
        let is_there = |slot: &&Slot| slot.state != SlotState::Open;
        let at = batch.first + batch.calls[..call_idx].iter().filter(is_there).count();
        match std::mem::replace(&mut batch.calls[call_idx].state, SlotState::Done) {
            SlotState::Open => self.insert(at, message),
            SlotState::Interrupted | SlotState::Done => {
                self.messages.change(at, |there| *there = message);
            }
        }
        Some(at)
    }

    /// The model is told what it had said, so that "go on" means something.
    fn stopped(&mut self, stopped: &Stopped<'_>) {
        self.settle();
        self.pending.clear();
        let waits =
            self.messages.all().last().is_some_and(|message| message.role != Role::Assistant);
        if waits && !stopped.partial.trim().is_empty() {
            let text = format!("{}\n\n{CUT_OFF}", &*stopped.partial);
            self.say(Role::Assistant, vec![Part::Text(text)]);
        }
    }

    /// Puts a summary in the place of all that stands before the message at `kept`; of all when
    /// that is not known.
    fn summary(&mut self, checkpoint: Checkpoint, kept: Option<usize>) {
        self.settle();
        let mut kept = kept.unwrap_or(self.messages.all().len());
        // The summary before this one goes, and results whose calls went.
        while let Some(message) = self.messages.all().get(kept)
            && matches!(message.role, Role::System | Role::Tool)
        {
            kept += 1;
        }
        let next = self.messages.all().get(kept).map(|message| message.role);
        let head = checkpoint.messages(next);
        let added = head.len();
        self.messages.replace_head(kept, head);
        self.starts.retain(|(_, at)| *at >= kept);
        for (_, at) in &mut self.starts {
            *at = *at - kept + added;
        }
        self.batch = self.batch.take().filter(|batch| batch.first > kept);
        if let Some(batch) = &mut self.batch {
            batch.first = batch.first - kept + added;
        }
        self.checkpoint = Some(checkpoint);
    }

    /// Puts a line in the place of a result's text.
    pub fn fold(&mut self, event_id: &str, stub: &str) {
        let Some(at) = self.place_of(event_id) else { return };
        self.messages.change(at, |message| {
            if let [Part::ToolResult(result)] = message.parts.as_mut_slice() {
                stub.clone_into(&mut result.text);
            }
        });
    }
}

/// The call number `at` of the message before `first`.
fn call_at(messages: &[Message], first: usize, at: usize) -> Option<&ToolCall> {
    messages.get(first.checked_sub(1)?)?.calls().nth(at)
}

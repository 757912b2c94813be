//! What a turn asks of its hooks, event by event: typed values in and out, payloads between.
//!
//! Every call returns at once, and makes nothing, when no hook is there for it.

use serde_json::{Map, Value, json};

use super::event::text_at;
use super::{Block, Error, HookEvent, Hooks, messages};
use crate::cancel::Cancel;
use crate::model::{Message, ToolCall};

/// Where and in what a hook runs.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The session's file; `None` where there is none (yet).
    pub session_path: Option<&'a str>,
    pub session_id: &'a str,
    pub cancel: &'a Cancel,
}

/// What hooks that may refuse and change something made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Unchanged,
    Changed(String),
    Blocked(Block),
}

/// Why a session starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    New,
    Resume,
}

/// A turn that gave an answer.
#[derive(Debug, Clone, Copy)]
pub struct TurnEnd<'a> {
    pub user_event_id: &'a str,
    pub assistant_event_id: &'a str,
    /// What the turn began with, as it is in the log.
    pub prompt: &'a str,
    /// That, and what was said in the middle of the turn.
    pub user_prompts: &'a [String],
    pub assistant_text: &'a str,
    /// How many calls were made.
    pub tool_calls: u32,
}

/// What a compaction replaces: event ids.
#[derive(Debug, Clone, Copy)]
pub struct CompactRange<'a> {
    /// `manual` or `auto`.
    pub trigger: &'a str,
    pub range_start_id: &'a str,
    pub range_end_id: &'a str,
    pub first_kept_event_id: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreCompact {
    /// Why it must not happen.
    pub block: Option<Block>,
    /// To be used in place of the model's.
    pub summary: Option<String>,
}

impl Scene<'_> {
    fn payload(&self, fields: Value) -> Value {
        let mut payload = Map::new();
        if let Some(path) = self.session_path {
            payload.insert("sessionPath".to_owned(), path.into());
        }
        if let Value::Object(fields) = fields {
            payload.extend(fields);
        }
        Value::Object(payload)
    }
}

fn tool(call: &ToolCall) -> Value {
    json!({"id": call.id, "name": call.name, "arguments": call.arguments})
}

impl Hooks {
    /// Before a prompt is stored. `Changed`: the prompt to store.
    pub fn user_prompt_submit(&self, scene: &Scene<'_>, prompt: &str) -> Result<Verdict, Error> {
        let event = HookEvent::UserPromptSubmit;
        if !self.has(event) {
            return Ok(Verdict::Unchanged);
        }
        let payload = scene.payload(json!({"prompt": prompt}));
        self.verdict(event, payload, &["prompt"], scene.cancel)
    }

    /// At every turn of a session, before its prompt is stored.
    pub fn session_start(&self, scene: &Scene<'_>, start: Start) -> Result<(), Error> {
        let reason = match start {
            Start::New => "new",
            Start::Resume => "resume",
        };
        if !self.has_for(HookEvent::SessionStart, reason) {
            return Ok(());
        }
        let payload = scene.payload(json!({"sessionId": scene.session_id, "reason": reason}));
        self.run(HookEvent::SessionStart, payload, scene.cancel).map(drop)
    }

    /// When the prompt is stored.
    pub fn turn_start(
        &self,
        scene: &Scene<'_>,
        user_event_id: &str,
        prompt: &str,
    ) -> Result<(), Error> {
        if !self.has(HookEvent::TurnStart) {
            return Ok(());
        }
        let payload = scene.payload(json!({
            "sessionId": scene.session_id, "userEventId": user_event_id, "prompt": prompt,
        }));
        self.run(HookEvent::TurnStart, payload, scene.cancel).map(drop)
    }

    /// Before a model call: the messages to send in place of `system` and `messages` together.
    /// `round` counts from 0.
    pub fn context_build(
        &self,
        scene: &Scene<'_>,
        round: u32,
        system: &[Message],
        messages: &[Message],
    ) -> Result<Option<Vec<Message>>, Error> {
        if !self.has(HookEvent::ContextBuild) {
            return Ok(None);
        }
        let all = [system, messages].concat();
        let payload = scene.payload(json!({"round": round, "messages": messages::show(&all)}));
        let outcome = self.run(HookEvent::ContextBuild, payload, scene.cancel)?;
        // What each hook gave back was checked when it did.
        let list = match outcome.payload.get("messages") {
            Some(list) if outcome.is_changed => messages::read(list).unwrap_or_default(),
            _ => return Ok(None),
        };
        Ok(Some(messages::merge(&all, list)))
    }

    /// Before anything of a batch runs. `Changed`: the call's arguments.
    pub fn pre_tool_use(&self, scene: &Scene<'_>, call: &ToolCall) -> Result<Verdict, Error> {
        let event = HookEvent::PreToolUse;
        if !self.has_for(event, &call.name) {
            return Ok(Verdict::Unchanged);
        }
        let payload = scene.payload(json!({"tool": tool(call)}));
        self.verdict(event, payload, &["tool", "arguments"], scene.cancel)
    }

    /// When a call has ended: what its result is to be, text and whether it is an error; `None`:
    /// as it is.
    pub fn post_tool_use(
        &self,
        scene: &Scene<'_>,
        call: &ToolCall,
        output: &str,
        is_error: bool,
    ) -> Result<Option<(String, bool)>, Error> {
        let event = HookEvent::PostToolUse;
        if !self.has_for(event, &call.name) {
            return Ok(None);
        }
        let fields = json!({"tool": tool(call), "output": output, "error": is_error});
        let outcome = self.run(event, scene.payload(fields), scene.cancel)?;
        let is_error = outcome.payload.get("error").and_then(Value::as_bool).unwrap_or(is_error);
        let output = || text_at(&outcome.payload, &["output"]).to_owned();
        Ok(outcome.is_changed.then(|| (output(), is_error)))
    }

    /// When a turn gave its answer.
    pub fn turn_complete(&self, scene: &Scene<'_>, end: &TurnEnd<'_>) -> Result<(), Error> {
        if !self.has(HookEvent::TurnComplete) {
            return Ok(());
        }
        let payload = scene.payload(json!({
            "sessionId": scene.session_id,
            "userEventId": end.user_event_id,
            "assistantEventId": end.assistant_event_id,
            "prompt": end.prompt,
            "userPrompts": end.user_prompts,
            "assistantText": end.assistant_text,
            "toolCalls": end.tool_calls,
        }));
        self.run(HookEvent::TurnComplete, payload, scene.cancel).map(drop)
    }

    /// Before events are replaced by a summary.
    pub fn pre_compact(
        &self,
        scene: &Scene<'_>,
        range: &CompactRange<'_>,
    ) -> Result<PreCompact, Error> {
        if !self.has_for(HookEvent::PreCompact, range.trigger) {
            return Ok(PreCompact::default());
        }
        let payload = scene.payload(json!({
            "trigger": range.trigger,
            "rangeStartId": range.range_start_id,
            "rangeEndId": range.range_end_id,
            "firstKeptEventId": range.first_kept_event_id,
        }));
        let outcome = self.run(HookEvent::PreCompact, payload, scene.cancel)?;
        let summary =
            outcome.is_changed.then(|| text_at(&outcome.payload, &["summary"]).to_owned());
        Ok(PreCompact { block: outcome.block, summary })
    }

    /// When the summary is stored.
    pub fn post_compact(
        &self,
        scene: &Scene<'_>,
        trigger: &str,
        summary_event_id: &str,
        first_kept_event_id: &str,
        summary: &str,
    ) -> Result<(), Error> {
        if !self.has_for(HookEvent::PostCompact, trigger) {
            return Ok(());
        }
        let payload = scene.payload(json!({
            "trigger": trigger,
            "summaryEventId": summary_event_id,
            "firstKeptEventId": first_kept_event_id,
            "summary": summary,
        }));
        self.run(HookEvent::PostCompact, payload, scene.cancel).map(drop)
    }

    /// Of the events that may refuse and change one text.
    fn verdict(
        &self,
        event: HookEvent,
        payload: Value,
        path: &[&str],
        cancel: &Cancel,
    ) -> Result<Verdict, Error> {
        let outcome = self.run(event, payload, cancel)?;
        Ok(match outcome {
            super::Outcome { block: Some(block), .. } => Verdict::Blocked(block),
            super::Outcome { is_changed: true, payload, .. } => {
                Verdict::Changed(text_at(&payload, path).to_owned())
            }
            super::Outcome { .. } => Verdict::Unchanged,
        })
    }
}

//! Where the turn asks its hooks, and what their answers mean for it.
//!
//! A hook that fails ends the turn, and what it guards does not happen: the prompt is not stored,
//! no call of the batch runs, a result is withheld. Without hooks nothing here does any work.

use super::assemble::Answer;
use super::batch::CallEnd;
use super::{Agent, Conversation, Event, Observer, Stop};
use crate::cancel::Cancel;
use crate::hook::{Block, Error, Scene, Start, TurnEnd, Verdict};
use crate::model::{Finish, Message, ResultStatus, ToolCall};
use crate::text;
use crate::tool::ToolOutput;

/// Of a result that a hook wrote.
const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// Of a reason that a hook gave.
const REASON_BYTES_MAX: usize = 4 * 1024;

/// What hooks are told of a turn, and what they said of its calls.
#[derive(Debug, Default)]
pub(super) struct Hooked {
    user_event_id: String,
    assistant_event_id: String,
    /// All that was said in the turn, as it was stored.
    prompts: Vec<String>,
    /// For each call of the batch that comes next, the no that it got.
    vetoes: Vec<Option<Block>>,
}

/// Messages that hooks put in the place of instructions and conversation.
pub(super) struct Built {
    pub system: Vec<Message>,
    pub messages: Vec<Message>,
}

/// The stop that a hook's error means.
pub fn stop_of(agent: &Agent<'_>, error: Error) -> Stop {
    match error {
        Error::Cancelled(reason) => Stop::Cancelled(reason),
        Error::Failed(failed) => Stop::HookFailed(failed.message(agent.redact)),
    }
}

/// A hook's reason as it is stored and told.
pub fn reason_of(agent: &Agent<'_>, block: &Block) -> String {
    text::head_tail(&(agent.redact)(&block.reason), REASON_BYTES_MAX).into_owned()
}

/// The session as its hooks are told of it.
pub struct Place {
    path: Option<String>,
    id: String,
}

impl Place {
    pub fn of(conversation: &Conversation) -> Place {
        let path = conversation.log.planned_path();
        let path = path.map(|path| path.to_string_lossy().into_owned());
        Place { path, id: conversation.log.id().to_owned() }
    }

    pub fn scene<'a>(&'a self, cancel: &'a Cancel) -> Scene<'a> {
        Scene { session_path: self.path.as_deref(), session_id: &self.id, cancel }
    }
}

/// A turn's hooks, its session and its cancellation.
pub(super) struct Asking<'t, 'a> {
    pub agent: &'t Agent<'a>,
    pub conversation: &'t Conversation,
    pub cancel: &'t Cancel,
}

impl Asking<'_, '_> {
    /// Before a prompt is stored: the prompt to store, or why the turn ends here.
    pub fn prompt(&self, prompt: &str) -> Result<String, Stop> {
        let agent = self.agent;
        let mut place = Place::of(self.conversation);
        if self.conversation.log.tip().is_none() {
            place.path = None;
        }
        let verdict = agent.hooks.user_prompt_submit(&place.scene(self.cancel), prompt);
        match verdict.map_err(|error| stop_of(agent, error))? {
            Verdict::Unchanged => Ok(prompt.to_owned()),
            Verdict::Changed(prompt) => Ok(prompt),
            Verdict::Blocked(block) => {
                Err(Stop::PromptBlocked { reason: reason_of(agent, &block), place: block.place })
            }
        }
    }

    /// Before the first prompt of a turn is stored.
    pub fn session_start(&self) -> Result<(), Stop> {
        let Conversation { log, projection, .. } = self.conversation;
        let is_new = log.tip().is_none() && projection.messages().is_empty();
        let start = if is_new { Start::New } else { Start::Resume };
        let place = Place::of(self.conversation);
        let done = self.agent.hooks.session_start(&place.scene(self.cancel), start);
        done.map_err(|error| stop_of(self.agent, error))
    }

    /// When the turn's prompt is stored.
    pub fn turn_start(&self, hooked: &mut Hooked, prompt: &str) -> Result<(), Stop> {
        hooked.user_event_id = self.conversation.log.tip().unwrap_or_default().to_owned();
        hooked.prompts.push(prompt.to_owned());
        let place = Place::of(self.conversation);
        let scene = place.scene(self.cancel);
        let done = self.agent.hooks.turn_start(&scene, &hooked.user_event_id, prompt);
        done.map_err(|error| stop_of(self.agent, error))
    }

    /// Before a model call: what is sent in place of instructions and conversation, if hooks have
    /// changed anything. `round` counts from 0.
    pub fn context(&self, round: u32) -> Result<Option<Built>, Stop> {
        let (agent, place) = (self.agent, Place::of(self.conversation));
        let (system, messages) = (agent.system, self.conversation.projection.messages());
        let scene = place.scene(self.cancel);
        let built = agent.hooks.context_build(&scene, round, system, messages);
        let Some(mut list) = built.map_err(|error| stop_of(agent, error))? else {
            return Ok(None);
        };
        let is_system = |message: &&Message| message.role == crate::model::Role::System;
        let leading = list.iter().take_while(is_system).count().min(agent.system.len());
        let messages = list.split_off(leading);
        Ok(Some(Built { system: list, messages }))
    }

    /// Before anything of a batch runs, and before its calls are stored: rewrites arguments and
    /// notes who got a no.
    pub fn calls(
        &self,
        hooked: &mut Hooked,
        answer: &mut Answer,
        finish: Option<Finish>,
    ) -> Result<(), Stop> {
        hooked.vetoes.clear();
        if !matches!(finish, Some(Finish::Stop | Finish::ToolCalls)) {
            return Ok(());
        }
        let place = Place::of(self.conversation);
        for call in answer.calls_mut() {
            let verdict = self.agent.hooks.pre_tool_use(&place.scene(self.cancel), call);
            let veto = match verdict.map_err(|error| stop_of(self.agent, error))? {
                Verdict::Unchanged => None,
                Verdict::Changed(arguments) => {
                    call.arguments = arguments;
                    None
                }
                Verdict::Blocked(block) => {
                    Some(Block { reason: reason_of(self.agent, &block), ..block })
                }
            };
            hooked.vetoes.push(veto);
        }
        Ok(())
    }

    /// When the turn gave its answer.
    pub fn turn_complete(
        &self,
        hooked: &Hooked,
        answer: &str,
        tool_calls: u32,
    ) -> Result<(), Stop> {
        let place = Place::of(self.conversation);
        let end = TurnEnd {
            user_event_id: &hooked.user_event_id,
            assistant_event_id: &hooked.assistant_event_id,
            prompt: hooked.prompts.first().map_or("", String::as_str),
            user_prompts: &hooked.prompts,
            assistant_text: answer,
            tool_calls,
        };
        let done = self.agent.hooks.turn_complete(&place.scene(self.cancel), &end);
        done.map_err(|error| stop_of(self.agent, error))
    }
}

impl Hooked {
    pub fn answered(&mut self, conversation: &Conversation) {
        self.assistant_event_id = conversation.log.tip().unwrap_or_default().to_owned();
    }

    /// A prompt that was stored in the middle of the turn.
    pub fn steered(&mut self, prompt: &str) {
        self.prompts.push(prompt.to_owned());
    }
}

/// What hooks make of the calls of one batch.
pub(super) struct Gate {
    /// `None`: there are no hooks.
    place: Option<Place>,
    vetoes: Vec<Option<Block>>,
    /// The first hook that failed.
    pub failed: Option<Error>,
}

impl Gate {
    pub fn new(agent: &Agent<'_>, hooked: &mut Hooked, conversation: &Conversation) -> Gate {
        let place = (!agent.hooks.is_empty()).then(|| Place::of(conversation));
        Gate { place, vetoes: std::mem::take(&mut hooked.vetoes), failed: None }
    }

    /// The result of a call that a hook refused.
    pub fn veto(&self, idx: usize) -> Option<CallEnd> {
        let Block { reason, place } = self.vetoes.get(idx)?.as_ref()?;
        let text = format!("tool blocked by hook: {reason}");
        let output = ToolOutput { text, status: ResultStatus::Denied, changed: Vec::new() };
        let (denied, hook) = (Some(reason.clone()), Some(place.clone()));
        Some(CallEnd { output, denied, hook, ..CallEnd::default() })
    }

    /// When a call has ended: hooks may write its result anew. What a hook did not get to see is
    /// withheld.
    pub fn ended(
        &mut self,
        agent: &Agent<'_>,
        call: &ToolCall,
        end: &mut CallEnd,
        cancel: &Cancel,
    ) {
        let Some(place) = &self.place else { return };
        let output = &mut end.output;
        let is_error = output.status != ResultStatus::Ok;
        match agent.hooks.post_tool_use(&place.scene(cancel), call, &output.text, is_error) {
            Ok(None) => {}
            Ok(Some((text, error))) => {
                let text = (agent.redact)(&text);
                output.text = text::head_tail(&text, OUTPUT_BYTES_MAX).into_owned();
                if output.text.is_empty() {
                    output.text.push_str("(no output)");
                }
                match (is_error, error) {
                    (false, true) => output.status = ResultStatus::Error,
                    (true, false) if end.denied.is_none() => output.status = ResultStatus::Ok,
                    _ => {}
                }
            }
            Err(Error::Cancelled(_)) => {
                let changed = std::mem::take(&mut output.changed);
                *output = ToolOutput { changed, ..ToolOutput::interrupted() };
            }
            Err(error) => {
                let changed = std::mem::take(&mut output.changed);
                let message = "a hook that sees results failed, so this one is withheld; the call \
                               itself may have had effects";
                *output = ToolOutput { changed, ..ToolOutput::error(message) };
                self.failed.get_or_insert(error);
            }
        }
    }
}

/// The result of a call that did not run because a hook failed before it.
pub(super) fn unguarded() -> CallEnd {
    let message = "not run: a hook that guards calls failed";
    let output = ToolOutput { status: ResultStatus::Denied, ..ToolOutput::error(message) };
    CallEnd { output, ..CallEnd::default() }
}

/// A prompt of the middle of a turn that is not stored, for the person.
pub(super) fn say_blocked(stop: &Stop, observer: &mut dyn Observer) {
    if let Some(failure) = stop.failure() {
        observer.observe(Event::Notice(&failure.message));
    }
}

//! One compaction: cut, ask for a summary, check it, put it in the place of what it tells.
//!
//! All of it is one event: whatever ends the process, the session is as before or as after. A
//! summary that is empty, cut off, no text or no gain is not taken; then the conversation stays as
//! it was, and why is in the log.

use super::assemble::Answer;
use super::hooks::{Place, reason_of};
use super::turn::{LogFailure, append};
use super::{Agent, Conversation, Event, Observer};
use crate::cancel::{Cancel, Reason};
use crate::context::budget::Budget;
use crate::context::compact::{self, Checkpoint, Keep, Piece};
use crate::context::tokens;
use crate::hook::{self, CompactRange, PreCompact};
use crate::model::{ErrorKind, Finish, Metrics, ModelError, ModelEvent, Request, Usage};
use crate::session::{EventData, NewSummary};
use crate::text::human_count;

/// Requests for one summary, beside what the provider repeats by itself.
const ATTEMPTS_MAX: usize = 2;
/// Where no window is known, a summary may have this much room at least.
const ROOM_MIN: u64 = 8_000;
/// No summary says fewer tokens than these shorter.
const WORTH_MIN: u64 = 200;
const WORDS_MAX: u64 = 1_500;
const WORDS_MIN: u64 = 150;

/// Who asked for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    Manual,
    Auto,
}

impl Trigger {
    /// The name in logs and for hooks.
    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::Manual => "manual",
            Trigger::Auto => "auto",
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    pub trigger: Trigger,
    /// What the person wants to be looked at; may be empty.
    pub focus: &'a str,
    pub keep: Keep,
    /// Estimated tokens that wait to be added: a prompt that is not in the log yet.
    pub waiting: u64,
}

/// What a compaction did, in estimated tokens of the whole prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    pub trigger: Trigger,
    /// The event that holds the summary.
    pub summary_id: String,
    pub tokens_before: u64,
    pub tokens_after: u64,
}

impl std::fmt::Display for Compacted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (before, after) = (human_count(self.tokens_before), human_count(self.tokens_after));
        write!(f, "compacted the conversation: ~{before} to ~{after} tokens")
    }
}

/// Why the conversation is as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotCompacted {
    /// All of it is to be kept.
    NothingToFold,
    /// The model, or what it wrote, was of no use.
    Failed(String),
    Cancelled(Reason),
    /// The log could not be written.
    LogFailed(String),
}

impl std::fmt::Display for NotCompacted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotCompacted::NothingToFold => {
                f.write_str("there is nothing to compact: all of the conversation is to be kept")
            }
            NotCompacted::Failed(reason) => {
                write!(f, "not compacted, the conversation is as it was: {reason}")
            }
            NotCompacted::Cancelled(reason) => {
                let reason = crate::cancel::Cancelled(*reason);
                write!(f, "not compacted, the conversation is as it was: {reason}")
            }
            NotCompacted::LogFailed(message) => f.write_str(message),
        }
    }
}

impl From<LogFailure> for NotCompacted {
    fn from(LogFailure(error): LogFailure) -> NotCompacted {
        NotCompacted::LogFailed(error.to_string())
    }
}

/// The estimated size of the prompt that would be sent now, in tokens.
pub fn prompt_tokens(agent: &Agent<'_>, conversation: &mut Conversation) -> u64 {
    fixed_tokens(agent) + conversation.projection.tokens() + conversation.drift
}

/// What every prompt has, whatever was said: instructions and tools.
pub fn fixed_tokens(agent: &Agent<'_>) -> u64 {
    tokens::of_messages(agent.system) + tokens::of_tools(&agent.tools.specs())
}

/// Compacts the conversation.
pub fn compact(
    agent: &Agent<'_>,
    conversation: &mut Conversation,
    budget: &Budget,
    order: &Order<'_>,
    cancel: &Cancel,
    observer: &mut dyn Observer,
) -> Result<Compacted, NotCompacted> {
    conversation.projection.settle();
    let Some(draft) = Draft::of(conversation, order.keep) else {
        return Err(NotCompacted::NothingToFold);
    };
    let before = prompt_tokens(agent, conversation) + order.waiting;
    observer.observe(Event::CompactionStarted { trigger: order.trigger, tokens: before });
    let mut spent = Spent::default();
    let place = Place::of(conversation);
    let written = match ask_hooks(agent, &place, order, &draft, cancel) {
        Ok(Some(text)) => Ok((text, String::new())),
        Ok(None) => write(agent, conversation, budget, order, &draft, &mut spent, cancel, observer)
            .map(|text| (text, agent.model_name.to_owned())),
        Err(reason) => Err(reason),
    };
    let taken = written.and_then(|(text, model)| Ok((draft.finish(conversation, &text)?, model)));
    let (summary, model) = match taken {
        Ok(taken) => taken,
        Err(reason) => return Err(give_up(agent, conversation, order, spent, reason, observer)?),
    };
    let after = before - (draft.cost - summary.cost);
    let (usage, metrics) = spent.logged();
    let (text, first_kept) = (summary.checkpoint.text.clone(), draft.first_kept.clone());
    let event = EventData::ContextSummary(Box::new(NewSummary {
        summary: summary.checkpoint.text,
        range_start_id: draft.range_start,
        range_end_id: draft.range_end,
        first_kept_event_id: draft.first_kept,
        request: summary.checkpoint.request,
        model,
        trigger: order.trigger.as_str(),
        instructions: order.focus.trim().to_owned(),
        tokens_before: before,
        tokens_after: after,
        read_files: summary.checkpoint.files.read,
        modified_files: summary.checkpoint.files.modified,
        usage,
        metrics,
    }));
    let summary_id = append(agent, conversation, observer, &event)?;
    // What the server counted was of another prompt.
    conversation.drift = 0;
    let compacted = Compacted {
        trigger: order.trigger,
        summary_id,
        tokens_before: before,
        tokens_after: after,
    };
    observer.observe(Event::CompactionEnded(Ok(&compacted)));
    let told = agent.hooks.post_compact(
        &place.scene(cancel),
        order.trigger.as_str(),
        &compacted.summary_id,
        &first_kept.unwrap_or_default(),
        &text,
    );
    // It is stored and stays so: a hook that only watches cannot undo it.
    if let Err(error) = told {
        observer.observe(Event::Notice(&failed_hook(agent, error)));
    }
    Ok(compacted)
}

/// Lets hooks refuse the compaction, or write the summary themselves.
fn ask_hooks(
    agent: &Agent<'_>,
    place: &Place,
    order: &Order<'_>,
    draft: &Draft,
    cancel: &Cancel,
) -> Result<Option<String>, NotCompacted> {
    let range = CompactRange {
        trigger: order.trigger.as_str(),
        range_start_id: &draft.range_start,
        range_end_id: &draft.range_end,
        first_kept_event_id: draft.first_kept.as_deref().unwrap_or_default(),
    };
    match agent.hooks.pre_compact(&place.scene(cancel), &range) {
        Ok(PreCompact { block: Some(block), .. }) => {
            let reason = format!("refused by a hook: {}", reason_of(agent, &block));
            Err(NotCompacted::Failed(reason))
        }
        Ok(PreCompact { summary, .. }) => Ok(summary.filter(|text| !text.trim().is_empty())),
        Err(hook::Error::Cancelled(reason)) => Err(NotCompacted::Cancelled(reason)),
        Err(error) => Err(NotCompacted::Failed(failed_hook(agent, error))),
    }
}

fn failed_hook(agent: &Agent<'_>, error: hook::Error) -> String {
    match error {
        hook::Error::Cancelled(reason) => crate::cancel::Cancelled(reason).to_string(),
        hook::Error::Failed(failed) => failed.message(agent.redact),
    }
}

/// Says in the log and to the person why nothing was done; gives the reason back.
fn give_up(
    agent: &Agent<'_>,
    conversation: &mut Conversation,
    order: &Order<'_>,
    mut spent: Spent,
    reason: NotCompacted,
    observer: &mut dyn Observer,
) -> Result<NotCompacted, NotCompacted> {
    let (usage, metrics) = spent.logged();
    let trigger = order.trigger.as_str();
    let why = match &reason {
        NotCompacted::Failed(why) => why.clone(),
        NotCompacted::Cancelled(reason) => crate::cancel::Cancelled(*reason).to_string(),
        NotCompacted::NothingToFold | NotCompacted::LogFailed(_) => reason.to_string(),
    };
    let failed = EventData::CompactionFailed { trigger, reason: why, usage, metrics };
    append(agent, conversation, observer, &failed)?;
    observer.observe(Event::CompactionEnded(Err(&reason)));
    Ok(reason)
}

/// What attempts cost.
#[derive(Default)]
struct Spent {
    usage: Option<Usage>,
    metrics: Option<Metrics>,
}

impl Spent {
    fn add(&mut self, answer: &Answer) {
        if let Some(usage) = &answer.usage {
            self.usage.get_or_insert_default().add(usage);
        }
        if let Some(metrics) = &answer.metrics {
            self.metrics.get_or_insert_default().add(metrics);
        }
    }

    fn logged(&mut self) -> (Option<Usage>, Option<Metrics>) {
        (self.usage, self.metrics.take())
    }
}

/// The part of the conversation that goes.
struct Draft {
    /// The index of the first message that stays.
    at: usize,
    /// Estimated tokens of what goes.
    cost: u64,
    /// How many of its messages are the checkpoint before.
    head: usize,
    range_start: String,
    range_end: String,
    first_kept: Option<String>,
}

/// A summary that was taken, and what it costs in the conversation.
struct Taken {
    checkpoint: Checkpoint,
    cost: u64,
}

impl Draft {
    fn of(conversation: &mut Conversation, keep: Keep) -> Option<Draft> {
        let projection = &mut conversation.projection;
        let costs = projection.costs().to_vec();
        let messages = projection.messages();
        let head = compact::head_len(messages, projection.checkpoint());
        let at = compact::cut(messages, &costs, head, keep)?;
        if costs[head..at].iter().sum::<u64>() < WORTH_MIN {
            return None;
        }
        let id = |id: Option<&str>| id.unwrap_or_default().to_owned();
        Some(Draft {
            at,
            cost: costs[..at].iter().sum(),
            head,
            range_start: id(projection.event_of(head)),
            range_end: id(projection.event_before(at)),
            first_kept: projection.event_of(at).map(str::to_owned),
        })
    }

    /// Adds what is kept without the model to what it wrote.
    fn finish(&self, conversation: &Conversation, text: &str) -> Result<Taken, NotCompacted> {
        let projection = &conversation.projection;
        let messages = &projection.messages()[..self.at];
        let previous = projection.checkpoint();
        let mut files = previous.map(|before| before.files.clone()).unwrap_or_default();
        files.add(messages);
        let todos = compact::open_todos(messages, previous.map(|before| before.text.as_str()));
        let text = compact::finished(text, &todos, &files);
        let request = compact::request_before(projection.messages(), self.at);
        let checkpoint = Checkpoint { text, request, files };
        let next = projection.messages().get(self.at).map(|message| message.role);
        let cost = tokens::of_messages(&checkpoint.messages(next));
        if self.cost <= cost {
            let reason = format!(
                "the summary is no smaller than what it tells (about {cost} tokens for {})",
                self.cost
            );
            return Err(NotCompacted::Failed(reason));
        }
        Ok(Taken { checkpoint, cost })
    }
}

/// Asks for the text of the summary, a second time in a smaller way when the first is of no use.
#[expect(clippy::too_many_arguments, reason = "one step of `compact`, with all that it has")]
fn write(
    agent: &Agent<'_>,
    conversation: &Conversation,
    budget: &Budget,
    order: &Order<'_>,
    draft: &Draft,
    spent: &mut Spent,
    cancel: &Cancel,
    observer: &mut dyn Observer,
) -> Result<String, NotCompacted> {
    let projection = &conversation.projection;
    let mut room = budget.prompt_max.unwrap_or_else(|| draft.cost.max(ROOM_MIN));
    let words = budget.threshold.map_or(WORDS_MAX, |threshold| threshold / 10);
    let mut last = NotCompacted::NothingToFold;
    for attempt in 0..ATTEMPTS_MAX {
        let piece = Piece {
            messages: &projection.messages()[draft.head..draft.at],
            previous: projection.checkpoint().map(|before| before.text.as_str()),
            focus: order.focus,
            room,
            words_max: words.clamp(WORDS_MIN, WORDS_MAX),
            attempt,
        };
        let mut answer = Answer::default();
        let result = ask(agent, conversation, &piece, &mut answer, cancel, observer);
        spent.add(&answer);
        let reason = match result {
            Ok(finish) => match judge(&answer, finish) {
                Ok(text) => return Ok(text),
                Err(reason) => reason.to_owned(),
            },
            Err(error) if error.kind == ErrorKind::Cancelled => {
                return Err(NotCompacted::Cancelled(cancel.reason().unwrap_or(Reason::User)));
            }
            Err(error) if error.kind == ErrorKind::ContextOverflow => {
                room = error.window.unwrap_or(room).min(room) / 2;
                error.message
            }
            // The provider has tried again where that could help.
            Err(error) => return Err(NotCompacted::Failed(error.message)),
        };
        last = NotCompacted::Failed(reason);
    }
    Err(last)
}

fn ask(
    agent: &Agent<'_>,
    conversation: &Conversation,
    piece: &Piece<'_>,
    answer: &mut Answer,
    cancel: &Cancel,
    observer: &mut dyn Observer,
) -> Result<Finish, ModelError> {
    let [system, user] = compact::request(piece);
    let request = Request {
        model: agent.model_name,
        system: std::slice::from_ref(&system),
        messages: std::slice::from_ref(&user),
        tools: &[],
        session_id: conversation.log.id(),
        reasoning_effort: agent.reasoning_effort,
        reasoning_summary: None,
        max_output_tokens: None,
    };
    agent.model.stream(&request, cancel, &mut |event| {
        answer.push(&event);
        if matches!(event, ModelEvent::Retry(_) | ModelEvent::Usage(_) | ModelEvent::Metrics(_)) {
            observer.observe(Event::Model(&event));
        }
    })
}

/// The text of an answer that can be taken for a summary.
fn judge(answer: &Answer, finish: Finish) -> Result<String, &'static str> {
    match finish {
        Finish::Length => return Err("the output limit cut the summary"),
        Finish::Refusal | Finish::ContentFilter => return Err("the model declined to summarise"),
        Finish::ToolCalls => return Err("the model called a tool instead of summarising"),
        Finish::Stop => {}
    }
    let text = answer.text();
    match text.trim() {
        "" => Err("the model wrote an empty summary"),
        _ => Ok(text),
    }
}

//! Before every model call: whether the prompt has room, and what is done when it has not.
//!
//! The cheapest first: nothing below the threshold; then folding, when that is enough; then a
//! compaction; above the floor the smallest end that can be kept; and when even that does not
//! fit, a plain stop with the numbers, before anything is sent.

use super::compact::{self, NotCompacted, Order, Trigger};
use super::turn::{LogFailure, Turn};
use super::{Event, Stop};
use crate::context::budget::Budget;
use crate::context::compact::Keep;
use crate::context::fold;
use crate::model::{ErrorKind, ModelError, Usage, Window, WindowSource};
use crate::session::{EventData, Fold};
use crate::text::{head_tail, human_count};

/// Compactions in a turn that came to nothing, before no more is tried.
const FRUITLESS_MAX: u32 = 2;
/// A fold leaves at most this share of the threshold, or is not made.
const FOLD_TO_PERCENT: u64 = 60;
/// Less than this share of the threshold is not worth a summary.
const WORTH_SHARE: u64 = 8;
/// No result is cut below this, in tokens.
const RESULT_MIN: u64 = 200;

/// What a turn knows of the room that its prompts have.
pub struct Room {
    pub budget: Budget,
    /// Estimated tokens of instructions and tools.
    pub fixed: u64,
    fruitless: u32,
    /// The server refused the last prompt as too large.
    pub overflowed: bool,
}

impl Room {
    pub fn new(budget: Budget, fixed: u64) -> Room {
        Room { budget, fixed, fruitless: 0, overflowed: false }
    }

    /// The server answered a prompt that was estimated at `sent`: what it counted more is added to
    /// later estimates. One that counts wildly more is not believed.
    pub fn answered(&mut self, sent: Option<u64>, usage: Option<Usage>, drift: &mut u64) {
        self.overflowed = false;
        if let (Some(sent), Some(usage)) = (sent, usage.filter(|usage| !usage.estimated)) {
            *drift = usage.input.saturating_sub(sent).min(sent);
        }
    }

    /// How many tokens the results of one batch may have together.
    fn batch_max(&self) -> Option<u64> {
        let max = self.budget.prompt_max?;
        Some(max.saturating_sub(self.fixed) / 2)
    }
}

/// Shares out the room that the results of a batch have, in call order: what one does not need is
/// left to those behind it.
pub struct Shares {
    left: Option<u64>,
    calls: u64,
}

impl Shares {
    pub fn new(room: &Room, calls: usize) -> Shares {
        Shares { left: room.batch_max(), calls: calls as u64 }
    }

    /// The next result's text, cut in its middle where it has more than its share.
    pub fn take(&mut self, text: &str) -> Option<String> {
        let calls = self.calls.max(1);
        self.calls = calls - 1;
        let left = self.left?;
        let share = (left / calls).max(RESULT_MIN);
        // No text has more tokens than bytes.
        let tokens = match text.len() as u64 {
            bytes if bytes <= share => bytes,
            _ => crate::text::estimate_tokens(text) as u64,
        };
        self.left = Some(left.saturating_sub(tokens.min(share)));
        if tokens <= share {
            return None;
        }
        let bytes = u128::from(share) * text.len() as u128 / u128::from(tokens);
        Some(head_tail(text, usize::try_from(bytes).unwrap_or(usize::MAX)).into_owned())
    }
}

impl Turn<'_, '_> {
    /// The estimate of the next prompt by its text alone; `None` where nobody needs it.
    pub fn estimate(&mut self) -> Option<u64> {
        self.room.budget.threshold?;
        self.conversation.projection.settle();
        Some(self.room.fixed + self.conversation.projection.tokens())
    }

    /// The estimated size of the next prompt.
    fn size(&mut self) -> u64 {
        self.room.fixed + self.conversation.projection.tokens() + self.conversation.drift
    }

    /// Sees to it that the next prompt, with `waiting` more tokens, can be sent. A stop is why it
    /// cannot.
    pub fn make_room(&mut self, waiting: u64) -> Result<Option<Stop>, LogFailure> {
        if self.room.budget.window.is_none() {
            self.ask_for_window(waiting);
        }
        // Without a threshold there is no floor either: nothing is counted.
        if self.room.budget.threshold.is_none() {
            return Ok(None);
        }
        self.conversation.projection.settle();
        let mut size = self.size() + waiting;
        if !self.room.budget.is_full(size) {
            return Ok(None);
        }
        self.fold(size)?;
        size = self.size() + waiting;
        if self.room.budget.is_full(size) && self.room.budget.compacts {
            let keep = Keep::Tokens(self.room.budget.keep_recent);
            if let Some(stop) = self.compact(keep, waiting)? {
                return Ok(Some(stop));
            }
            size = self.size() + waiting;
            if self.room.budget.is_over(size) {
                if let Some(stop) = self.compact(Keep::Least, waiting)? {
                    return Ok(Some(stop));
                }
                size = self.size() + waiting;
            }
        }
        Ok(self.room.budget.is_over(size).then(|| self.no_room(size, waiting)))
    }

    /// Finds out how much the model takes, when the conversation is large enough for it to matter.
    fn ask_for_window(&mut self, waiting: u64) {
        let about = self.room.fixed + self.conversation.projection.rough_tokens() + waiting;
        if let Some(window) = (self.agent.window)(about, self.cancel) {
            self.room.budget = self.agent.budget(self.conversation, Some(window));
        }
    }

    /// Folds what is no longer needed, if that makes enough room.
    fn fold(&mut self, size: u64) -> Result<(), LogFailure> {
        let budget = &self.room.budget;
        let Some(threshold) = budget.threshold.filter(|_| budget.folds) else { return Ok(()) };
        let excess = size.saturating_sub(threshold * FOLD_TO_PERCENT / 100);
        let projection = &mut self.conversation.projection;
        let costs = projection.costs().to_vec();
        let stubs = fold::plan(projection.messages(), &costs, budget.keep_recent, excess);
        let results: Vec<Fold> = stubs
            .into_iter()
            .flatten()
            .filter_map(|stub| {
                let event_id = projection.event_of(stub.at)?.to_owned();
                Some(Fold { event_id, stub: stub.text })
            })
            .collect();
        if results.is_empty() {
            return Ok(());
        }
        // What it brings is known when it is done; a copy is cheap beside a model call.
        let mut after = projection.clone();
        results.iter().for_each(|result| after.fold(&result.event_id, &result.stub));
        let saved = projection.tokens().saturating_sub(after.tokens());
        let (count, after) = (results.len(), size.saturating_sub(saved));
        let event = EventData::ContextFolded { results, tokens_before: size, tokens_after: after };
        self.append(&event)?;
        self.conversation.drift = 0;
        let message = format!(
            "folded {} that are no longer needed: ~{} to ~{} tokens",
            crate::text::plural(count as u64, "result"),
            human_count(size),
            human_count(after)
        );
        self.observer.observe(Event::Notice(&message));
        Ok(())
    }

    /// Compacts, if that is worth a call. A stop when the turn was cancelled meanwhile.
    fn compact(&mut self, keep: Keep, waiting: u64) -> Result<Option<Stop>, LogFailure> {
        if FRUITLESS_MAX <= self.room.fruitless || !self.is_worth_it(keep, waiting) {
            return Ok(None);
        }
        let order = Order { trigger: Trigger::Auto, focus: "", keep, waiting };
        let used = self.conversation.projection.counters().usage;
        let done = compact::compact(
            self.agent,
            self.conversation,
            &self.room.budget,
            &order,
            self.cancel,
            self.observer,
        );
        self.outcome.usage.add(&self.conversation.projection.counters().usage.since(&used));
        match done {
            Ok(_) => self.room.fruitless = 0,
            Err(NotCompacted::NothingToFold) => {}
            Err(NotCompacted::Failed(_)) => self.room.fruitless += 1,
            Err(NotCompacted::Cancelled(reason)) => return Ok(Some(Stop::Cancelled(reason))),
            Err(NotCompacted::LogFailed(message)) => return Ok(Some(Stop::LogFailed(message))),
        }
        Ok(None)
    }

    /// Whether there is enough to summarise that the prompt will be smaller for a while.
    fn is_worth_it(&mut self, keep: Keep, waiting: u64) -> bool {
        let size = self.size() + waiting;
        if self.room.overflowed || self.room.budget.is_over(size) {
            return true;
        }
        let conversation = self.conversation.projection.tokens();
        let kept = match keep {
            Keep::Tokens(tokens) | Keep::TokensOrMessages(tokens, _) => tokens,
            Keep::Least => 0,
        };
        let summary: u64 = self
            .conversation
            .projection
            .checkpoint()
            .map_or(0, |before| crate::text::estimate_tokens(&before.text) as u64);
        let goes = conversation.saturating_sub(kept + summary);
        self.room.budget.threshold.is_none_or(|threshold| threshold / WORTH_SHARE <= goes)
    }

    /// After a server's refusal: learns what the server takes and makes room, once. True when the
    /// call is worth another try.
    pub fn recover_from_overflow(&mut self, error: &ModelError) -> Result<bool, LogFailure> {
        if std::mem::replace(&mut self.room.overflowed, true)
            || !self.room.budget.compacts_on_overflow
        {
            return Ok(false);
        }
        if let Some(tokens) = error.window {
            self.learn(tokens)?;
        }
        let before = self.conversation.projection.tokens();
        let keep = (before / 3).min(self.room.budget.keep_recent);
        for keep in [Keep::Tokens(keep), Keep::Least] {
            if self.compact(keep, 0)?.is_some() {
                return Ok(false);
            }
            let size = self.size();
            let is_smaller = self.conversation.projection.tokens() < before;
            if is_smaller && !self.room.budget.is_over(size) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The server named what it takes.
    fn learn(&mut self, tokens: u64) -> Result<(), LogFailure> {
        let known = self.room.budget.window.map(|window| window.context);
        if tokens == 0 || known.is_some_and(|known| known <= tokens) {
            return Ok(());
        }
        self.append(&EventData::ModelWindow {
            provider: self.agent.model.provider().to_owned(),
            model: self.agent.model_name.to_owned(),
            context_tokens: tokens,
        })?;
        self.room.budget =
            Budget::new(self.agent.context, Some(Window::new(tokens, WindowSource::Overflow)));
        Ok(())
    }

    /// What to say when nothing helps.
    fn no_room(&self, size: u64, waiting: u64) -> Stop {
        let budget = &self.room.budget;
        let (floor, fixed) = (budget.floor.unwrap_or(0), self.room.fixed);
        let window = budget.window.map_or(String::new(), |window| {
            format!("; the window has {} tokens, {}", window.context, window.source.sentence())
        });
        let what = if floor < fixed {
            format!("instructions and tools alone take about {fixed} tokens")
        } else if floor < fixed + waiting {
            format!("the prompt and the instructions take about {} tokens", fixed + waiting)
        } else {
            format!("the prompt would have about {size} tokens")
        };
        let hint = if !budget.compacts {
            "compact the session (/compact, etch compact --session ID), turn context.auto_compact \
             on, or begin a new one"
        } else if floor < fixed + waiting {
            "use a model with a larger window, fewer tools (--tools), or a shorter prompt; \
             context.window_tokens says otherwise if this is wrong"
        } else {
            "begin a new session, or use a model with a larger window"
        };
        let message = format!("{what}, and at most {floor} fit{window}");
        Stop::Failed(ModelError {
            hint: hint.to_owned(),
            ..ModelError::new(ErrorKind::ContextOverflow, message)
        })
    }
}

//! The places of a turn where hooks are asked. Each does nothing when there are no hooks.

use std::borrow::Cow;

use super::{LogFailure, Turn, tool_event};
use crate::agent::Stop;
use crate::agent::assemble::Answer;
use crate::agent::hooks::{self, Asking, Built, Hooked};
use crate::model::{Finish, ToolCall};

impl Turn<'_, '_> {
    /// Answers calls that no hook could be asked about without running them.
    pub(super) fn refuse_unguarded(&mut self, calls: &[ToolCall]) -> Result<(), LogFailure> {
        let end = hooks::unguarded();
        for call in calls {
            self.outcome.tool_calls += 1;
            self.append(&tool_event(call, &end, None))?;
        }
        Ok(())
    }

    pub(super) fn asking(&mut self) -> (Asking<'_, '_>, &mut Hooked) {
        let Turn { agent, conversation, cancel, hooked, .. } = self;
        (Asking { agent, conversation, cancel }, hooked)
    }

    /// The prompt as hooks let it be stored.
    pub(super) fn admit<'p>(&mut self, prompt: &'p str) -> Result<Cow<'p, str>, Stop> {
        if self.agent.hooks.is_empty() {
            return Ok(Cow::Borrowed(prompt));
        }
        let (asking, _) = self.asking();
        let prompt = asking.prompt(prompt)?;
        asking.session_start()?;
        Ok(Cow::Owned(prompt))
    }

    pub(super) fn turn_started(&mut self, prompt: &str) -> Result<(), Stop> {
        if self.agent.hooks.is_empty() {
            return Ok(());
        }
        let (asking, hooked) = self.asking();
        asking.turn_start(hooked, prompt)
    }

    /// Stores what the person said in the middle of the turn, unless a hook says no to it.
    pub(super) fn steer(&mut self, text: &str) -> Result<Result<(), Stop>, LogFailure> {
        if self.agent.hooks.is_empty() {
            return self.append_user(text).map(Ok);
        }
        let (asking, _) = self.asking();
        match asking.prompt(text) {
            Ok(prompt) => {
                self.append_user(&prompt)?;
                self.hooked.steered(&prompt);
            }
            Err(stop @ Stop::PromptBlocked { .. }) => hooks::say_blocked(&stop, self.observer),
            Err(stop) => return Ok(Err(stop)),
        }
        Ok(Ok(()))
    }

    pub(super) fn build_context(&mut self) -> Result<Option<Built>, Stop> {
        if self.agent.hooks.is_empty() {
            return Ok(None);
        }
        self.conversation.projection.settle();
        let round = self.outcome.rounds.saturating_sub(1);
        self.asking().0.context(round)
    }

    pub(super) fn ask_before_calls(
        &mut self,
        answer: &mut Answer,
        finish: Option<Finish>,
    ) -> Result<(), Stop> {
        if self.agent.hooks.is_empty() {
            return Ok(());
        }
        let (asking, hooked) = self.asking();
        match asking.calls(hooked, answer, finish) {
            // The calls are told that they were interrupted, as without hooks.
            Err(Stop::Cancelled(_)) => Ok(()),
            other => other,
        }
    }

    pub(super) fn turn_completed(&mut self) -> Result<(), Stop> {
        if self.agent.hooks.is_empty() {
            return Ok(());
        }
        let (answer, calls) = (self.outcome.answer.clone(), self.outcome.tool_calls);
        let (asking, hooked) = self.asking();
        asking.turn_complete(hooked, &answer, calls)
    }
}

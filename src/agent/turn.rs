//! The turn loop, step by step.

mod hooked;

use std::collections::BTreeSet;

use super::assemble::Answer;
use super::batch::{CallEnd, run_calls};
use super::compact::fixed_tokens;
use super::hooks::{Built, Gate, Hooked, stop_of};
use super::repeat::{REPEATS_MAX, Repeats};
use super::room::{Room, Shares};
use super::{Agent, Conversation, DeniedCall, Event, Observer, Outcome, Stop};
use crate::cancel::{Cancel, Cancelled, Reason};
use crate::context::project::Projection;
use crate::context::tokens;
use crate::model::{
    ErrorKind, Finish, Message, ModelError, ModelEvent, Preview, Request, Retry, Role, ToolCall,
    ToolResult, ToolSpec, Usage,
};
use crate::session::{self, EventData};
use crate::tool::ToolOutput;

/// How one round ended.
enum RoundEnd {
    Answered(String),
    WantsTools(Vec<ToolCall>),
    /// The output limit cut an answer that holds calls: none of them may run.
    CutCalls(Vec<ToolCall>),
    /// A hook failed before the calls: none of them may run.
    Unguarded {
        calls: Vec<ToolCall>,
        stop: Stop,
    },
    Stopped {
        stop: Stop,
        partial: String,
    },
}

/// The log refused a line; nothing may be run after that.
pub(super) struct LogFailure(pub(super) session::Error);

/// Runs one turn for `prompt`. `steering` is asked between a batch's results and the next model
/// call, and only there, for what the person typed meanwhile.
pub fn run_turn(
    agent: &Agent<'_>,
    conversation: &mut Conversation,
    prompt: &str,
    steering: &mut dyn FnMut() -> Vec<String>,
    cancel: &Cancel,
    observer: &mut dyn Observer,
) -> Outcome {
    // What is known without asking; see `make_room`.
    let window = (agent.window)(0, cancel);
    let room = Room::new(agent.budget(conversation, window), fixed_tokens(agent));
    let mut turn = Turn {
        agent,
        conversation,
        room,
        cancel,
        observer,
        tools: agent.tools.specs(),
        repeats: Repeats::default(),
        hooked: Hooked::default(),
        changed: BTreeSet::new(),
        outcome: Outcome {
            stop: Stop::Final,
            answer: String::new(),
            rounds: 0,
            tool_calls: 0,
            usage: Usage::default(),
            changed_files: Vec::new(),
            denied_calls: Vec::new(),
        },
    };
    let stop = match turn.run(prompt, steering) {
        Ok(stop) => stop,
        Err(LogFailure(error)) => Stop::LogFailed(error.to_string()),
    };
    let stop = match turn.conversation.log.sync() {
        Err(error) if stop == Stop::Final => Stop::LogFailed(error.to_string()),
        _ => stop,
    };
    let mut outcome = turn.outcome;
    outcome.stop = stop;
    outcome.changed_files = turn.changed.into_iter().collect();
    outcome
}

pub(super) struct Turn<'t, 'a> {
    pub(super) agent: &'t Agent<'a>,
    pub(super) conversation: &'t mut Conversation,
    pub(super) room: Room,
    pub(super) cancel: &'t Cancel,
    pub(super) observer: &'t mut dyn Observer,
    tools: Vec<ToolSpec>,
    repeats: Repeats,
    hooked: Hooked,
    changed: BTreeSet<String>,
    pub(super) outcome: Outcome,
}

impl Turn<'_, '_> {
    fn run(
        &mut self,
        prompt: &str,
        steering: &mut dyn FnMut() -> Vec<String>,
    ) -> Result<Stop, LogFailure> {
        // What a hook refuses leaves no trace.
        let prompt = match self.admit(prompt) {
            Ok(prompt) => prompt,
            Err(stop) => return Ok(stop),
        };
        // Nor does a prompt that cannot be sent.
        let waiting = tokens::of_message(&Message::text(Role::User, &*prompt));
        if let Some(stop) = self.make_room(waiting)? {
            return Ok(stop);
        }
        self.note_model()?;
        self.append_user(&prompt)?;
        if let Err(stop) = self.turn_started(&prompt) {
            return self.stopped(stop, String::new());
        }
        let mut last_batch_denied = false;
        for round in 1..=self.agent.rounds_max.max(1) {
            if let Err(Cancelled(reason)) = self.cancel.check() {
                return self.stopped(Stop::Cancelled(reason), String::new());
            }
            if 1 < round
                && let Some(stop) = self.make_room(0)?
            {
                return self.stopped(stop, String::new());
            }
            self.outcome.rounds = round;
            self.observer.observe(Event::RoundStarted { round });
            last_batch_denied = match self.round()? {
                RoundEnd::Answered(text) => {
                    self.outcome.answer = text;
                    let stop = if last_batch_denied { Stop::Denied } else { Stop::Final };
                    let stop = self.turn_completed().err().unwrap_or(stop);
                    return if stop == Stop::Final {
                        Ok(stop)
                    } else {
                        self.stopped(stop, String::new())
                    };
                }
                RoundEnd::Stopped { stop, partial } => return self.stopped(stop, partial),
                RoundEnd::Unguarded { calls, stop } => {
                    self.refuse_unguarded(&calls)?;
                    return self.stopped(stop, String::new());
                }
                RoundEnd::CutCalls(calls) => {
                    self.refuse_cut_calls(&calls)?;
                    false
                }
                RoundEnd::WantsTools(calls) => match self.run_batch(&calls)? {
                    Ok(all_denied) => all_denied,
                    Err(stop) => return self.stopped(stop, String::new()),
                },
            };
            if let Err(Cancelled(reason)) = self.cancel.check() {
                return self.stopped(Stop::Cancelled(reason), String::new());
            }
            if let Some(name) = self.repeats.end_round() {
                return self.stopped(Stop::Repeated { name, times: REPEATS_MAX }, String::new());
            }
            for text in steering() {
                if let Err(stop) = self.steer(&text)? {
                    return self.stopped(stop, String::new());
                }
            }
        }
        self.stopped(Stop::RoundLimit { limit: self.agent.rounds_max }, String::new())
    }

    /// One model call, up to its message in the log. A prompt that the server finds too large is
    /// made smaller and sent again, once.
    fn round(&mut self) -> Result<RoundEnd, LogFailure> {
        loop {
            let built = match self.build_context() {
                Ok(built) => built,
                Err(stop) => return Ok(RoundEnd::Stopped { stop, partial: String::new() }),
            };
            // What a hook made of the conversation is not what was estimated.
            let sent = if built.is_none() { self.estimate() } else { None };
            let (mut answer, result) = self.stream(built.as_ref())?;
            let guarded = self.ask_before_calls(&mut answer, result.as_ref().ok().copied());
            if let Err(failure) = self.append_answer(&answer, result.as_ref().ok().copied()) {
                // What was said is not lost to the person with the log.
                self.outcome.answer = answer.text();
                return Err(failure);
            }
            if let Err(stop) = guarded {
                return Ok(RoundEnd::Unguarded { calls: answer.calls(), stop });
            }
            match &result {
                Ok(_) => self.room.answered(sent, answer.usage, &mut self.conversation.drift),
                Err(error) if error.kind == ErrorKind::ContextOverflow => {
                    if self.recover_from_overflow(error)? {
                        continue;
                    }
                    if let Err(Cancelled(reason)) = self.cancel.check() {
                        let stop = Stop::Cancelled(reason);
                        return Ok(RoundEnd::Stopped { stop, partial: String::new() });
                    }
                }
                Err(_) => {}
            }
            return Ok(self.judge(&answer, result));
        }
    }

    /// Streams one answer. Attempts that fail are logged as they happen.
    fn stream(
        &mut self,
        built: Option<&Built>,
    ) -> Result<(Answer, Result<Finish, ModelError>), LogFailure> {
        let Turn { agent, conversation, observer, tools, outcome, .. } = self;
        let Conversation { log, projection, .. } = &mut **conversation;
        projection.settle();
        let session_id = log.id().to_owned();
        let mut request = request(agent, tools, projection, &session_id);
        if let Some(built) = built {
            (request.system, request.messages) = (&built.system, &built.messages);
        }
        let mut answer = Answer::default();
        let mut failure = None;
        let mut logged = String::new();
        // Its own token: a log that fails in the middle of a stream ends that stream.
        let cancel = self.cancel.child();
        let result = agent.model.stream(&request, &cancel, &mut |event| {
            let mut failed = Vec::new();
            if let ModelEvent::Retry(retry) = &event {
                // What a failed attempt took is not lost with its answer.
                outcome.usage.add(&answer.usage.unwrap_or_default());
                failed = answer.facts();
                failed.push(retry_event(retry));
            }
            answer.push(&event);
            observer.observe(Event::Model(&event));
            for data in &failed {
                if failure.is_some() {
                    break;
                }
                match log.append(agent.host, data) {
                    Ok(appended) => {
                        let lines = appended.lines.lines();
                        lines.for_each(|line| observer.observe(Event::Logged { line }));
                        logged.push_str(appended.lines);
                    }
                    Err(error) => {
                        failure = Some(LogFailure(error));
                        cancel.cancel(Reason::User);
                    }
                }
            }
        });
        for line in logged.lines() {
            project(projection, line);
        }
        failure.map_or(Ok((answer, result)), Err)
    }

    /// Appends what the answer brought. A message that ended in an error is not an answer: its
    /// text goes into the stop event instead.
    fn append_answer(&mut self, answer: &Answer, finish: Option<Finish>) -> Result<(), LogFailure> {
        if let Some(finish) = finish {
            for reasoning in &answer.reasoning {
                self.append(&EventData::reasoning(reasoning))?;
            }
            for item in answer.items() {
                self.append(&EventData::provider_item(&item))?;
            }
            let parts = answer.message().parts;
            if !parts.is_empty() {
                let provider = self.agent.model.provider();
                let model = self.agent.model_name;
                self.append(&EventData::assistant(&parts, provider, model, finish))?;
                if !self.agent.hooks.is_empty() {
                    self.hooked.answered(self.conversation);
                }
            }
        }
        self.outcome.usage.add(&answer.usage.unwrap_or_default());
        answer.facts().iter().try_for_each(|data| self.append(data))
    }

    /// What the end of a stream means for the turn.
    fn judge(&self, answer: &Answer, result: Result<Finish, ModelError>) -> RoundEnd {
        let text = answer.text();
        let stopped = |stop, partial| RoundEnd::Stopped { stop, partial };
        let finish = match result {
            Ok(finish) => finish,
            Err(error) if error.kind == ErrorKind::Cancelled => {
                let reason = self.cancel.reason().unwrap_or(Reason::User);
                return stopped(Stop::Cancelled(reason), text);
            }
            Err(error) => return stopped(Stop::Failed(error), text),
        };
        let calls = answer.calls();
        match finish {
            Finish::Refusal => stopped(Stop::Refused { filtered: false }, text),
            Finish::ContentFilter => stopped(Stop::Refused { filtered: true }, text),
            Finish::Length if !calls.is_empty() => RoundEnd::CutCalls(calls),
            Finish::Length => stopped(Stop::Truncated, text),
            Finish::Stop | Finish::ToolCalls if !calls.is_empty() => RoundEnd::WantsTools(calls),
            Finish::Stop | Finish::ToolCalls if text.is_empty() => stopped(Stop::Empty, text),
            Finish::Stop | Finish::ToolCalls => RoundEnd::Answered(text),
        }
    }

    /// Runs a batch and appends its results in call order. True when every call was refused; a
    /// stop when a hook failed.
    fn run_batch(&mut self, calls: &[ToolCall]) -> Result<Result<bool, Stop>, LogFailure> {
        let mut failure = None;
        let mut denied = 0;
        let (agent, cancel) = (self.agent, self.cancel);
        // The observer is lent to the batch, which hands it back with every result.
        let Turn { conversation, observer, outcome, repeats, changed, hooked, room, .. } = self;
        let mut shares = Shares::new(room, calls.len());
        let mut gate = Gate::new(agent, hooked, conversation);
        run_calls(agent, calls, &mut gate, cancel, *observer, &mut |call, end, observer| {
            if failure.is_some() {
                return false;
            }
            outcome.tool_calls += 1;
            if let Some(reason) = &end.denied {
                denied += 1;
                let (name, reason) = (call.name.clone(), reason.clone());
                let event = EventData::ToolDenied {
                    tool_call_id: call.id.clone(),
                    name: name.clone(),
                    reason: reason.clone(),
                    hook: end.hook.clone(),
                };
                outcome.denied_calls.push(DeniedCall { name, reason });
                failure = append(agent, conversation, observer, &event).err();
            }
            repeats.note(call, &end.output.text);
            changed.extend(end.output.changed.iter().cloned());
            if failure.is_none() {
                let text = shares.take(&end.output.text);
                let event = tool_event(call, end, text.as_deref());
                failure = append(agent, conversation, observer, &event).err();
            }
            failure.is_none()
        });
        match failure {
            Some(failure) => Err(failure),
            None => Ok(match gate.failed {
                Some(error) => Err(stop_of(agent, error)),
                None => Ok(denied == calls.len()),
            }),
        }
    }

    /// Answers calls of a cut answer without running them.
    fn refuse_cut_calls(&mut self, calls: &[ToolCall]) -> Result<(), LogFailure> {
        self.observer.observe(Event::Notice(
            "the output limit cut an answer in the middle of its tool calls; none was run",
        ));
        for call in calls {
            let output = ToolOutput::error(
                "not run: the output limit cut your answer, so this call may be incomplete; \
                 send it again in smaller pieces",
            );
            let end = CallEnd { output, ..CallEnd::default() };
            self.repeats.note(call, &end.output.text);
            self.append(&tool_event(call, &end, None))?;
        }
        Ok(())
    }

    /// Says in a resumed session that another model answers from here on.
    fn note_model(&mut self) -> Result<(), LogFailure> {
        let now = (self.agent.model.provider(), self.agent.model_name);
        match self.conversation.projection.last_model() {
            Some(before) if before != now => self.append(&EventData::ModelChanged {
                provider: now.0.to_owned(),
                model: now.1.to_owned(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    fn append_user(&mut self, text: &str) -> Result<(), LogFailure> {
        self.append(&EventData::user(text))?;
        match self.conversation.sync_prompts {
            true => self.conversation.log.sync().map_err(LogFailure),
            false => Ok(()),
        }
    }

    /// Ends the turn without a final answer; the log says why.
    fn stopped(&mut self, stop: Stop, partial: String) -> Result<Stop, LogFailure> {
        if self.outcome.answer.is_empty() {
            self.outcome.answer.clone_from(&partial);
        }
        let failure = stop.failure();
        self.append(&EventData::TurnStopped {
            stop: stop.as_str(),
            kind: failure.as_ref().map(|failure| failure.kind),
            message: failure.map(|failure| failure.message).unwrap_or_default(),
            partial,
        })?;
        Ok(stop)
    }

    pub(super) fn append(&mut self, data: &EventData) -> Result<(), LogFailure> {
        append(self.agent, self.conversation, self.observer, data).map(drop)
    }
}

/// Appends to the log, then to what the model sees, then tells the observer. The event's id.
pub(super) fn append(
    agent: &Agent<'_>,
    conversation: &mut Conversation,
    observer: &mut dyn Observer,
    data: &EventData,
) -> Result<String, LogFailure> {
    let Conversation { log, projection, .. } = conversation;
    let appended = log.append(agent.host, data).map_err(LogFailure)?;
    for line in appended.lines.lines() {
        project(projection, line);
        observer.observe(Event::Logged { line });
    }
    Ok(appended.id)
}

/// What is projected is what a resumed session will read.
fn project(projection: &mut Projection, line: &str) {
    if let Ok(mut event) = session::parse(line.as_bytes()) {
        projection.push(&mut event);
    }
}

/// The request that asks for the next answer.
fn request<'r>(
    agent: &'r Agent<'_>,
    tools: &'r [ToolSpec],
    projection: &'r Projection,
    session_id: &'r str,
) -> Request<'r> {
    Request {
        model: agent.model_name,
        system: agent.system,
        messages: projection.messages(),
        tools,
        session_id,
        reasoning_effort: agent.reasoning_effort,
        reasoning_summary: agent.reasoning_summary,
        max_output_tokens: agent.max_output_tokens,
    }
}

/// What the turn for `prompt` would send first; `None` where nothing goes over a wire. Nothing
/// is sent, logged or changed.
pub fn preview(agent: &Agent<'_>, conversation: &Conversation, prompt: &str) -> Option<Preview> {
    let mut projection = conversation.projection.clone();
    let data = EventData::user(prompt);
    let line = serde_json::json!({"type": data.kind(), "id": "", "time": "", "data": data});
    project(&mut projection, &line.to_string());
    projection.settle();
    let tools = agent.tools.specs();
    agent.model.preview(&request(agent, &tools, &projection, conversation.log.id()))
}

/// `text` stands in the place of the result's own, where that was too long.
fn tool_event(call: &ToolCall, end: &CallEnd, text: Option<&str>) -> EventData {
    let result = ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        text: text.unwrap_or(&end.output.text).to_owned(),
        status: end.output.status,
    };
    let millis = u64::try_from(end.elapsed.as_millis()).unwrap_or(u64::MAX);
    EventData::tool(&result, &end.output.changed, millis)
}

fn retry_event(retry: &Retry) -> EventData {
    EventData::ModelRetry {
        attempt: retry.attempt,
        attempts_max: retry.attempts_max,
        delay_millis: retry.delay_millis,
        kind: retry.error.kind.as_str(),
        message: retry.error.message.clone(),
        status: retry.error.status,
        output_discarded: retry.output_discarded,
    }
}

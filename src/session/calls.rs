//! The model calls of a session, one by one, each with all its attempts.
//!
//! Pure: events in, a call out as soon as the next event shows that it is over; nothing of it is
//! kept. Reads what this program writes (the facts of every attempt before its retry), what it
//! wrote before (those of the last attempt), and the Go etch's logs (no attempts, no finish).

use serde::Serialize;

use super::data::{AssistantMessage, Data, Stopped};
use super::head::title_of;
use super::read::Event;
use crate::model::{Metrics, Usage};

/// Retries of one call that are told one by one.
const RETRIES_MAX: usize = 32;

/// One model call.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCall {
    /// Which turn of the session it belongs to, from 1.
    pub turn: u64,
    /// What that turn began with, on one line.
    #[serde(skip)]
    pub prompt: String,
    /// Counts the calls of the session, from 1.
    pub call: u64,
    /// Of the call's last event.
    pub time: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The one that was asked, or where the log does not tell it the one that answered.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub response_id: String,
    /// As in the answer's message; empty without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub finish: String,
    pub attempts: u64,
    /// Why it was tried again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Retried>,
    /// Why the turn ended with this call, where that was no final answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Ended>,
    /// Of all attempts.
    pub usage: Usage,
    /// Counts of all attempts; sizes and times of the last one.
    pub metrics: Metrics,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Retried {
    pub attempt: u32,
    pub kind: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    pub delay_millis: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ended {
    pub stop: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub message: String,
}

/// Makes calls of events.
#[derive(Debug, Default)]
pub struct Calls {
    open: Option<ModelCall>,
    /// The facts of the open call's attempt are there: only a retry continues it.
    attempt_over: bool,
    count: u64,
    turn: u64,
    prompt: String,
    /// Tool results were the last that was said: a message now is steering, not a new turn.
    within_turn: bool,
    provider: String,
    model: String,
}

impl Calls {
    pub fn new() -> Calls {
        Calls::default()
    }

    /// Takes the next event; a call that is over by it. Inherited events are not this session's.
    pub fn push(&mut self, event: &Event<'_>) -> Option<ModelCall> {
        if event.inherited {
            return None;
        }
        let over = match &event.data {
            Data::User(_)
            | Data::Tool(_)
            | Data::Denied(_)
            | Data::Summary(_)
            | Data::Changed(_)
            | Data::Pointer(_) => self.take(),
            Data::Assistant(_) | Data::Retry(_) if self.has_answer() => self.take(),
            Data::Assistant(_) | Data::Usage(_) | Data::Response(_) | Data::Metrics(_)
                if self.attempt_over =>
            {
                self.take()
            }
            _ => None,
        };
        self.note(event);
        match &event.data {
            Data::Stopped(stopped) => over.or_else(|| self.stop(stopped)),
            _ => over,
        }
    }

    /// The call at the end of the log.
    pub fn finish(mut self) -> Option<ModelCall> {
        self.take()
    }

    fn note(&mut self, event: &Event<'_>) {
        match &event.data {
            Data::User(message) if !self.within_turn => {
                self.turn += 1;
                self.prompt = title_of(&message.content.text());
            }
            Data::Tool(_) => self.within_turn = true,
            Data::Assistant(message) => {
                self.within_turn = false;
                self.answer(message);
            }
            Data::Changed(changed) => {
                (self.provider, self.model) =
                    (changed.provider.to_string(), changed.model.to_string());
            }
            Data::Usage(usage) => self.open().usage.add(usage),
            Data::Response(response) => {
                let call = self.open();
                call.response_id = response.provider_response_id.to_string();
                if call.model.is_empty() {
                    call.model = response.model.to_string();
                }
            }
            Data::Metrics(metrics) => {
                self.open().metrics.add(metrics);
                self.attempt_over = true;
            }
            Data::Retry(retry) => {
                let call = self.open();
                call.attempts += 1;
                if call.retries.len() < RETRIES_MAX {
                    call.retries.push(Retried {
                        attempt: retry.attempt,
                        kind: retry.kind.to_string(),
                        message: retry.message.to_string(),
                        status: retry.status,
                        delay_millis: retry.delay_millis,
                    });
                }
                self.attempt_over = false;
            }
            Data::Stopped(_) | Data::Pointer(_) => self.within_turn = false,
            Data::User(_)
            | Data::SessionStarted(_)
            | Data::Reasoning(_)
            | Data::ProviderItem(_)
            | Data::Denied(_)
            | Data::Repaired(_)
            | Data::Folded(_)
            | Data::CompactionFailed(_)
            | Data::Window(_)
            | Data::Summary(_)
            | Data::Unknown { .. } => return,
        }
        if let Some(call) = &mut self.open {
            call.time.clear();
            call.time.push_str(&event.time);
        }
    }

    fn has_answer(&self) -> bool {
        self.open.as_ref().is_some_and(|call| !call.finish.is_empty())
    }

    /// The call that events now belong to.
    fn open(&mut self) -> &mut ModelCall {
        let Calls { open, count, turn, prompt, .. } = self;
        open.get_or_insert_with(|| {
            *count += 1;
            let (turn, prompt) = ((*turn).max(1), prompt.clone());
            ModelCall { turn, prompt, call: *count, attempts: 1, ..ModelCall::default() }
        })
    }

    fn answer(&mut self, message: &AssistantMessage<'_>) {
        if !message.model.is_empty() {
            (self.provider, self.model) = (message.provider.to_string(), message.model.to_string());
        }
        let (provider, model) = (self.provider.clone(), self.model.clone());
        let call = self.open();
        (call.provider, call.model) = (provider, model);
        call.finish = match (&*message.finish, message.calls().next()) {
            ("", Some(_)) => "tool_calls".to_owned(),
            ("", None) => "stop".to_owned(),
            (finish, _) => finish.to_owned(),
        };
    }

    fn stop(&mut self, stopped: &Stopped<'_>) -> Option<ModelCall> {
        let mut call = self.take()?;
        call.stopped = Some(Ended {
            stop: stopped.stop.to_string(),
            kind: stopped.kind.as_ref().map(ToString::to_string),
            message: stopped.message.to_string(),
        });
        Some(call)
    }

    fn take(&mut self) -> Option<ModelCall> {
        self.attempt_over = false;
        let mut call = self.open.take()?;
        // Without an answer nothing says who was asked but what was said before.
        if call.finish.is_empty() && !self.model.is_empty() {
            (call.provider, call.model) = (self.provider.clone(), self.model.clone());
        }
        Some(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::parse;
    use serde_json::{Value, json};

    fn calls(lines: &[Value]) -> Vec<ModelCall> {
        let mut calls = Calls::new();
        let lines = lines.iter().map(|line| json!({"type": line[0], "id": "i", "data": line[1]}));
        let mut all: Vec<_> = lines
            .filter_map(|line| calls.push(&parse(line.to_string().as_bytes()).unwrap()))
            .collect();
        all.extend(calls.finish());
        all
    }

    fn user(text: &str) -> Value {
        json!(["message.user", {"content": text}])
    }

    fn says(finish: &str) -> Value {
        let message = json!({"content": "x", "provider": "p", "model": "m", "finish": finish});
        json!(["message.assistant", message])
    }

    fn usage(input: u64) -> Value {
        json!(["model.usage", {"inputTokens": input, "outputTokens": 1, "totalTokens": input + 1}])
    }

    fn metrics(requests: u64) -> Value {
        json!(["model.metrics", {"transport": "http", "requests": requests, "requestBytes": 10}])
    }

    fn retry(attempt: u64) -> Value {
        json!(["model.retry", {"attempt": attempt, "kind": "server", "message": "boom"}])
    }

    fn result() -> Value {
        json!(["message.tool", {"content": "", "toolCallId": "c", "name": "ls"}])
    }

    /// Turn, attempts, finish, input tokens, requests.
    fn short(calls: &[ModelCall]) -> Vec<(u64, u64, &str, u64, u64)> {
        let row =
            |call: &ModelCall| (call.turn, call.attempts, call.usage.input, call.metrics.requests);
        calls
            .iter()
            .map(|call| {
                let (turn, attempts, input, requests) = row(call);
                (turn, attempts, call.finish.as_str(), input, requests)
            })
            .collect()
    }

    #[test]
    fn attempts_belong_to_the_call_that_they_are_tries_of() {
        let log = [
            user("a"),
            usage(5),
            metrics(1),
            retry(1),
            metrics(1),
            retry(2),
            says("tool_calls"),
            usage(7),
            metrics(1),
            result(),
            says("stop"),
            usage(9),
            metrics(1),
        ];
        let all = calls(&log);
        assert_eq!(short(&all), [(1, 3, "tool_calls", 12, 3), (1, 1, "stop", 9, 1)]);
        assert_eq!((all[0].metrics.request_bytes, all[0].retries.len()), (30, 2));
        assert_eq!((all[0].provider.as_str(), all[1].model.as_str()), ("p", "m"));
    }

    #[test]
    fn logs_that_tell_less_are_understood() {
        // The last attempt's metrics spoke for all.
        let old = [user("a"), retry(1), retry(2), says("stop"), usage(7), metrics(3), user("b")];
        assert_eq!(short(&calls(&old)), [(1, 3, "stop", 7, 3)]);
        // No finish, and calls beside the content.
        let call = json!({"content": [], "toolCalls": [{"id": "c", "name": "ls"}]});
        let go = [
            user("a"),
            json!(["message.assistant", call]),
            metrics(1),
            result(),
            json!(["message.assistant", {"content": "x"}]),
            metrics(1),
        ];
        assert_eq!(short(&calls(&go)), [(1, 1, "tool_calls", 0, 1), (1, 1, "stop", 0, 1)]);
        // Killed before the facts were written.
        let cut = [user("a"), says("stop"), user("b"), says("stop"), metrics(1)];
        assert_eq!(short(&calls(&cut)), [(1, 1, "stop", 0, 0), (2, 1, "stop", 0, 1)]);
    }

    #[test]
    fn steering_is_no_new_turn_and_a_prompt_after_an_answer_is() {
        let log = [
            user("a"),
            says("tool_calls"),
            metrics(1),
            result(),
            user("also b"),
            user("and c"),
            says("stop"),
            metrics(1),
            user("d"),
            says("stop"),
            metrics(1),
        ];
        let turns: Vec<_> = calls(&log).iter().map(|call| call.turn).collect();
        assert_eq!(turns, [1, 1, 2]);
    }

    #[test]
    fn a_call_without_an_answer_says_why() {
        let stopped = json!(["turn.stopped", {"stop": "error", "kind": "quota", "message": "no"}]);
        let limit = json!(["turn.stopped", {"stop": "limit", "message": "rounds"}]);
        let log = [
            user("a"),
            metrics(1),
            stopped,
            user("b"),
            says("tool_calls"),
            metrics(1),
            result(),
            limit,
        ];
        let all = calls(&log);
        assert_eq!(short(&all), [(1, 1, "", 0, 1), (2, 1, "tool_calls", 0, 1)]);
        let want = Ended { stop: "error".into(), kind: Some("quota".into()), message: "no".into() };
        assert_eq!((&all[0].stopped, &all[1].stopped), (&Some(want), &None));
    }
}

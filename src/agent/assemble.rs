//! Assembles a model's stream into one assistant message and its facts. Pure: events in, parts
//! out; nothing of an attempt that was repeated remains.

use crate::model::{Message, Metrics, ModelEvent, Opaque, Part, Reasoning, Role, ToolCall, Usage};
use crate::session::EventData;

/// One model answer as far as it has arrived.
#[derive(Debug, Default)]
pub struct Answer {
    /// Text and calls in the order of the answer.
    parts: Vec<Part>,
    text_open: bool,
    pub reasoning: Vec<Reasoning>,
    items: Vec<Opaque>,
    pub usage: Option<Usage>,
    /// The server's response id and the model it named; both may be empty.
    pub response: Option<(String, String)>,
    pub metrics: Option<Metrics>,
}

impl Answer {
    pub fn push(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::TextStart => {
                self.parts.push(Part::Text(String::new()));
                self.text_open = true;
            }
            ModelEvent::TextEnd => self.text_open = false,
            ModelEvent::TextDelta(delta) => self.push_text(delta),
            ModelEvent::TextIs(whole) => {
                if let Some(Part::Text(text)) = self.parts.last_mut().filter(|_| self.text_open) {
                    text.clone_from(whole);
                }
            }
            ModelEvent::ReasoningEnd(reasoning) => self.reasoning.push(reasoning.clone()),
            ModelEvent::ToolCallEnd { call, .. } => {
                self.text_open = false;
                self.parts.push(Part::ToolCall(call.clone()));
            }
            ModelEvent::ProviderItem(item) => self.items.push(item.clone()),
            ModelEvent::Usage(usage) => self.usage = Some(*usage),
            ModelEvent::Response { id, model } => {
                self.response = Some((id.clone(), model.clone()));
            }
            ModelEvent::Metrics(metrics) => self.metrics = Some(metrics.clone()),
            ModelEvent::Retry(_) => *self = Answer::default(),
            ModelEvent::ReasoningStart
            | ModelEvent::ReasoningDelta(_)
            | ModelEvent::ToolCallStart { .. }
            | ModelEvent::ToolCallDelta { .. }
            | ModelEvent::Notice(_) => {}
        }
    }

    fn push_text(&mut self, delta: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(text)) if self.text_open => text.push_str(delta),
            _ if delta.is_empty() => {}
            _ => {
                self.parts.push(Part::Text(delta.to_owned()));
                self.text_open = true;
            }
        }
    }

    /// All text so far; parts are separated by a blank line.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) if !text.trim().is_empty() => Some(text.as_str()),
            _ => None,
        });
        let texts: Vec<_> = texts.collect();
        texts.join("\n\n")
    }

    pub fn calls(&self) -> Vec<ToolCall> {
        let calls = self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call.clone()),
            _ => None,
        });
        calls.collect()
    }

    pub fn calls_mut(&mut self) -> impl Iterator<Item = &mut ToolCall> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The message for the log, without parts that say nothing.
    pub fn message(&self) -> Message {
        let parts = self.parts.iter().filter(|part| says(part)).cloned().collect();
        Message { role: Role::Assistant, parts }
    }

    /// What the attempt took and how it went over the wire, as far as it was told; for the log.
    pub fn facts(&self) -> Vec<EventData> {
        let usage = self.usage.map(EventData::ModelUsage);
        let named = self.response.as_ref().filter(|(id, _)| !id.is_empty());
        let response = named.map(|(id, model)| EventData::ModelResponse {
            provider_response_id: id.clone(),
            model: model.clone(),
        });
        let metrics = self.metrics.clone().map(EventData::ModelMetrics);
        [usage, response, metrics].into_iter().flatten().collect()
    }

    /// The provider items for the log, each with its place in [`Answer::message`].
    pub fn items(&self) -> Vec<Opaque> {
        let placed = |item: &Opaque| {
            let before = &self.parts[..item.at.min(self.parts.len())];
            Opaque { at: before.iter().filter(|part| says(part)).count(), ..item.clone() }
        };
        let mut items: Vec<Opaque> = self.items.iter().map(placed).collect();
        items.sort_by_key(|item| item.at);
        items
    }
}

fn says(part: &Part) -> bool {
    !matches!(part, Part::Text(text) if text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ErrorKind, ModelError, Retry};

    fn delta(text: &str) -> ModelEvent {
        ModelEvent::TextDelta(text.to_owned())
    }

    fn call(id: &str) -> ModelEvent {
        let call = ToolCall {
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments: "{}".to_owned(),
            extra: None,
        };
        ModelEvent::ToolCallEnd { index: 0, call }
    }

    fn answer(events: &[ModelEvent]) -> Answer {
        let mut answer = Answer::default();
        events.iter().for_each(|event| answer.push(event));
        answer
    }

    #[test]
    fn text_and_calls_keep_their_order() {
        let all = [delta("a"), delta("b"), ModelEvent::TextEnd, call("1"), delta("c"), call("2")];
        let answer = answer(&all);
        assert_eq!(answer.text(), "ab\n\nc");
        assert_eq!(answer.message().parts.len(), 4);
        let ids: Vec<_> = answer.calls().into_iter().map(|call| call.id).collect();
        assert_eq!(ids, ["1", "2"]);
    }

    #[test]
    fn a_repeated_attempt_leaves_nothing_of_the_failed_one() {
        let error = ModelError::new(ErrorKind::Network, "cut");
        let retry = ModelEvent::Retry(Retry {
            attempt: 1,
            attempts_max: 5,
            delay_millis: 1000,
            error,
            output_discarded: true,
        });
        let answer = answer(&[delta("half"), call("1"), retry, delta("whole")]);
        assert_eq!(answer.text(), "whole");
        assert!(answer.calls().is_empty());
    }

    #[test]
    fn blank_text_is_no_answer() {
        let answer = answer(&[ModelEvent::TextStart, delta(" \n"), ModelEvent::TextEnd]);
        assert_eq!(answer.text(), "");
        assert!(answer.message().parts.is_empty());
    }
}

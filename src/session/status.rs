//! Counters over the events of one session.

use super::data::Data;
use super::read::Event;
use crate::host::Timestamp;
use crate::model::{Metrics, Usage};

/// What happened in a session, inherited events not counted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counters {
    pub events: u64,
    /// Prompts, steering included.
    pub user_messages: u64,
    /// Answers of the model: its rounds.
    pub assistant_messages: u64,
    /// Attempts at model calls that reported how they were made.
    pub model_calls: u64,
    pub requests: u64,
    /// WebSocket connections that were opened.
    pub connections: u64,
    /// Requests over a connection that had served another one.
    pub reuses: u64,
    /// Requests that sent only what was new.
    pub continuations: u64,
    /// Continuations and transports that were given up.
    pub fallbacks: u64,
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub tool_calls: u64,
    pub tool_results: u64,
    pub denied_calls: u64,
    pub retries: u64,
    /// Turns that ended without a final answer.
    pub stopped_turns: u64,
    pub summaries: u64,
    pub usage: Usage,
    pub started: Option<Timestamp>,
    last_time: String,
}

impl Counters {
    pub fn push(&mut self, event: &Event<'_>) {
        if event.inherited {
            return;
        }
        self.events += 1;
        match &event.data {
            Data::User(_) => self.user_messages += 1,
            Data::Assistant(message) => {
                self.assistant_messages += 1;
                self.tool_calls += message.calls().count() as u64;
            }
            Data::Tool(_) => self.tool_results += 1,
            Data::Usage(usage) => self.usage.add(usage),
            Data::Metrics(metrics) => self.add_metrics(metrics),
            Data::Retry(_) => self.retries += 1,
            Data::Denied(_) => self.denied_calls += 1,
            Data::Stopped(_) => self.stopped_turns += 1,
            Data::Summary(summary) => {
                self.summaries += 1;
                self.usage.add(&summary.usage.unwrap_or_default());
                summary.metrics.iter().for_each(|metrics| self.add_metrics(metrics));
            }
            Data::CompactionFailed(failed) => {
                self.usage.add(&failed.usage.unwrap_or_default());
                failed.metrics.iter().for_each(|metrics| self.add_metrics(metrics));
            }
            Data::SessionStarted(_)
            | Data::Reasoning(_)
            | Data::ProviderItem(_)
            | Data::Response(_)
            | Data::Changed(_)
            | Data::Repaired(_)
            | Data::Pointer(_)
            | Data::Folded(_)
            | Data::Window(_)
            | Data::Unknown { .. } => {}
        }
        if self.started.is_none() {
            self.started = Timestamp::parse(&event.time);
        }
        if !event.time.is_empty() {
            self.last_time.clear();
            self.last_time.push_str(&event.time);
        }
    }

    fn add_metrics(&mut self, metrics: &Metrics) {
        self.model_calls += 1;
        self.requests += metrics.requests;
        self.connections += metrics.web_socket_connections;
        self.reuses += metrics.web_socket_reuses;
        self.continuations += metrics.continuation_requests;
        self.fallbacks += metrics.continuation_fallbacks + metrics.transport_fallbacks;
        self.request_bytes += metrics.request_bytes;
        self.response_bytes += metrics.response_bytes;
    }

    /// The time of the last event.
    pub fn last_event(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.last_time)
    }
}

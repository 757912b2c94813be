//! What a turn, or a whole session, has taken: tokens, requests, bytes.
//!
//! A server may count the same attempt more than once while it answers; the last count is the
//! attempt's.

use super::told::Told;
use crate::model::{Metrics, ModelEvent, Usage};

#[derive(Debug, Clone, Default)]
pub struct Tally {
    usage: Usage,
    metrics: Metrics,
    /// Of the attempt that is going on.
    open_usage: Option<Usage>,
    open_metrics: Option<Metrics>,
    /// Tokens of the last answer and all that stood before it.
    context: u64,
}

impl Tally {
    /// What was taken before: of a session that is continued.
    pub fn of(usage: Usage, metrics: Metrics) -> Tally {
        Tally { usage, metrics, ..Tally::default() }
    }

    pub fn tell(&mut self, told: &Told) {
        match told {
            Told::Model(ModelEvent::Usage(usage)) => {
                self.open_usage = Some(*usage);
                self.context = usage.input.saturating_add(usage.output);
            }
            Told::Model(ModelEvent::Metrics(metrics)) => self.open_metrics = Some(metrics.clone()),
            Told::RoundStarted { .. }
            | Told::Model(ModelEvent::Retry(_))
            | Told::TurnEnded { .. } => self.close(),
            Told::Model(_)
            | Told::ToolStarted { .. }
            | Told::ToolFinished { .. }
            | Told::Notice(_) => {}
            Told::Compacting => self.close(),
            Told::Compacted(end) => {
                // The call's own size says nothing of the conversation.
                let before = self.context;
                self.close();
                self.context = end.as_ref().map_or(before, |done| done.tokens_after);
            }
        }
    }

    fn close(&mut self) {
        self.usage.add(&self.open_usage.take().unwrap_or_default());
        if let Some(metrics) = self.open_metrics.take() {
            self.metrics.add(&metrics);
        }
    }

    pub fn usage(&self) -> Usage {
        let mut usage = self.usage;
        usage.add(&self.open_usage.unwrap_or_default());
        usage
    }

    /// Only what [`Metrics::counts`] has is meant.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = self.metrics.clone();
        if let Some(open) = &self.open_metrics {
            metrics.add(open);
        }
        metrics
    }

    /// Tokens of the last answer and all that stood before it; 0 when nothing was counted.
    pub fn context(&self) -> u64 {
        self.context
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ErrorKind, ModelError, Retry};

    #[test]
    fn every_attempt_counts_once() {
        let usage = |input, output| {
            Told::Model(ModelEvent::Usage(Usage { input, output, ..Usage::default() }))
        };
        let metrics = |requests, request_bytes| {
            let metrics = Metrics { requests, request_bytes, ..Metrics::default() };
            Told::Model(ModelEvent::Metrics(metrics))
        };
        let retry = Told::Model(ModelEvent::Retry(Retry {
            attempt: 1,
            attempts_max: 5,
            delay_millis: 10,
            error: ModelError::new(ErrorKind::Network, "cut"),
            output_discarded: false,
        }));
        let before = Usage { input: 1000, ..Usage::default() };
        let mut tally = Tally::of(before, Metrics::default());
        let all = [
            Told::RoundStarted { round: 1 },
            usage(10, 1),
            usage(10, 2),
            metrics(1, 50),
            retry,
            usage(10, 3),
            metrics(1, 51),
            Told::RoundStarted { round: 2 },
            usage(20, 4),
        ];
        all.iter().for_each(|told| tally.tell(told));
        assert_eq!((tally.usage().input, tally.usage().output), (1040, 9));
        assert_eq!((tally.metrics().requests, tally.metrics().request_bytes), (2, 101));
        assert_eq!(tally.context(), 24);
    }
}

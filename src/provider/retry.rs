//! Tries again: one layer for all providers, never nested.
//!
//! Waits grow with every attempt and are spread by the host's jitter; what the server asks for is
//! their lower bound, and where it asks for more than [`RetryPolicy::server_wait_max`] the error
//! is final and names the time. Every wait ends at once when it is cancelled. Tools run only
//! after an answer is complete, so that a repeated call repeats no side effect.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{after, select};

use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{
    ErrorKind, Finish, Model, ModelError, ModelEvent, Preview, Request, Retry, Window,
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Calls in all, the first one included.
    pub attempts_max: u32,
    /// The wait after the first failed attempt; it doubles from then on.
    pub base: Duration,
    /// The first wait when the server is overloaded.
    pub base_overloaded: Duration,
    /// Our own waits grow no longer than this.
    pub wait_max: Duration,
    /// The longest wait that a server may ask for.
    pub server_wait_max: Duration,
    /// Each wait is this fraction longer or shorter at random.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy::new(5, Duration::from_secs(1))
    }
}

impl RetryPolicy {
    /// So many calls in all, with waits in proportion to the first one.
    pub fn new(attempts_max: u32, base: Duration) -> RetryPolicy {
        RetryPolicy {
            attempts_max,
            base,
            base_overloaded: base.saturating_mul(3),
            wait_max: base.saturating_mul(30),
            server_wait_max: Duration::from_secs(120),
            jitter: 0.25,
        }
    }

    /// One attempt, no more.
    pub fn never() -> RetryPolicy {
        RetryPolicy { attempts_max: 1, ..RetryPolicy::default() }
    }

    /// The wait after failed attempt number `attempt` (from 1); `random` is from -1 to 1.
    fn wait(&self, attempt: u32, error: &ModelError, random: f64) -> Duration {
        let overloaded = error.kind == ErrorKind::Overloaded;
        let base = if overloaded { self.base_overloaded } else { self.base };
        let doubled = base.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
        let spread = (1.0 + self.jitter * random).max(0.0);
        let own = doubled.min(self.wait_max).mul_f64(spread);
        own.max(error.retry_after.unwrap_or_default())
    }
}

/// A model that tries again.
pub struct Retrying<M> {
    inner: M,
    policy: RetryPolicy,
    host: Arc<Host>,
}

impl<M: Model> Retrying<M> {
    pub fn new(inner: M, policy: RetryPolicy, host: Arc<Host>) -> Retrying<M> {
        Retrying { inner, policy, host }
    }
}

impl<M: Model> Model for Retrying<M> {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn endpoint(&self) -> &str {
        self.inner.endpoint()
    }

    fn window(&self, model: &str, cancel: &Cancel) -> Option<Window> {
        self.inner.window(model, cancel)
    }

    fn known_window(&self, model: &str) -> Option<Window> {
        self.inner.known_window(model)
    }

    fn preview(&self, request: &Request<'_>) -> Option<Preview> {
        self.inner.preview(request)
    }

    fn stream(
        &self,
        request: &Request<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        let attempts_max = self.policy.attempts_max.max(1);
        for attempt in 1.. {
            let mut has_output = false;
            let mut watch = |event: ModelEvent| {
                has_output |= !matches!(
                    event,
                    ModelEvent::Metrics(_)
                        | ModelEvent::Response { .. }
                        | ModelEvent::Notice(_)
                        | ModelEvent::Usage(_)
                        | ModelEvent::Retry(_)
                );
                sink(event);
            };
            let error = match self.inner.stream(request, cancel, &mut watch) {
                Ok(finish) => return Ok(finish),
                Err(error) => error,
            };
            if !error.retryable || error.kind == ErrorKind::Cancelled {
                return Err(error);
            }
            if error.retry_after.is_some_and(|wait| wait > self.policy.server_wait_max) {
                return Err(too_long(error));
            }
            if attempt >= attempts_max {
                return Err(given_up(error, attempt));
            }
            let wait = self.policy.wait(attempt, &error, self.host.jitter());
            sink(ModelEvent::Retry(Retry {
                attempt,
                attempts_max,
                delay_millis: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                error,
                output_discarded: has_output,
            }));
            select! {
                recv(after(wait)) -> _ => {}
                recv(cancel.channel()) -> _ => {
                    return Err(ModelError::new(ErrorKind::Cancelled, "cancelled"));
                }
            }
        }
        Err(ModelError::new(ErrorKind::Cancelled, "cancelled"))
    }
}

fn too_long(error: ModelError) -> ModelError {
    let wait = error.retry_after.unwrap_or_default().as_secs();
    let shown = match wait {
        seconds if seconds < 600 => format!("{seconds} s"),
        seconds if seconds < 2 * 3600 => format!("{} minutes", seconds / 60),
        seconds => format!("{} hours", seconds / 3600),
    };
    let mut hint = format!("the server asks to wait {shown}; try again then");
    if !error.hint.is_empty() {
        hint = format!("{hint} ({})", error.hint);
    }
    error.not_retryable().with_hint(hint)
}

fn given_up(mut error: ModelError, attempts: u32) -> ModelError {
    if attempts > 1 {
        error.message = format!("{} (gave up after {attempts} attempts)", error.message);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Reason;
    use crate::model::Metrics;
    use std::sync::Mutex;
    use std::time::Instant;

    /// Fails with these errors in order, then answers.
    struct Failing(Mutex<Vec<ModelError>>);

    impl Model for Failing {
        fn provider(&self) -> &str {
            "failing"
        }

        fn stream(
            &self,
            _request: &Request<'_>,
            _cancel: &Cancel,
            sink: &mut dyn FnMut(ModelEvent),
        ) -> Result<Finish, ModelError> {
            sink(ModelEvent::Metrics(Metrics { requests: 1, ..Metrics::default() }));
            let mut errors = self.0.lock().unwrap();
            if errors.is_empty() {
                return Ok(Finish::Stop);
            }
            let error = errors.remove(0);
            if error.kind == ErrorKind::Protocol {
                sink(ModelEvent::TextStart);
            }
            Err(error)
        }
    }

    type Outcome = (Result<Finish, ModelError>, Vec<ModelEvent>);

    fn run(errors: Vec<ModelError>, policy: RetryPolicy, cancel: &Cancel) -> Outcome {
        let model = Retrying::new(Failing(Mutex::new(errors)), policy, Arc::new(Host::fixed()));
        let request = Request {
            model: "m",
            system: &[],
            messages: &[],
            tools: &[],
            session_id: "s",
            reasoning_effort: None,
            reasoning_summary: None,
            max_output_tokens: None,
        };
        let mut events = Vec::new();
        let result = model.stream(&request, cancel, &mut |event| events.push(event));
        (result, events)
    }

    fn failed(kind: ErrorKind) -> ModelError {
        ModelError::new(kind, "x")
    }

    fn retries(events: &[ModelEvent]) -> Vec<(u32, u64, bool)> {
        let retry = |event: &ModelEvent| match event {
            ModelEvent::Retry(r) => Some((r.attempt, r.delay_millis, r.output_discarded)),
            _ => None,
        };
        events.iter().filter_map(retry).collect()
    }

    const QUICK: Duration = Duration::from_micros(10);

    #[test]
    fn waits_double_up_to_their_bound_and_the_server_sets_the_least() {
        let policy = RetryPolicy::default();
        let wait = |attempt, kind, random| policy.wait(attempt, &failed(kind), random).as_millis();
        assert_eq!([1, 2, 3, 4].map(|n| wait(n, ErrorKind::Server, 0.0)), [1000, 2000, 4000, 8000]);
        assert_eq!(wait(1, ErrorKind::Overloaded, 0.0), 3000);
        assert_eq!(wait(9, ErrorKind::Server, 0.0), 30_000);
        assert_eq!(
            (wait(1, ErrorKind::Server, -1.0), wait(1, ErrorKind::Server, 1.0)),
            (750, 1250)
        );
        let mut error = failed(ErrorKind::RateLimit);
        error.retry_after = Some(Duration::from_secs(7));
        assert_eq!(policy.wait(1, &error, -1.0), Duration::from_secs(7));
        error.retry_after = Some(Duration::from_millis(5));
        assert_eq!(policy.wait(1, &error, 0.0), Duration::from_secs(1));
    }

    #[test]
    fn it_tries_again_and_says_what_was_given_out_in_vain() {
        let errors = vec![failed(ErrorKind::Server), failed(ErrorKind::Protocol)];
        let (result, events) = run(errors, RetryPolicy::new(5, QUICK), &Cancel::new());
        assert_eq!(result, Ok(Finish::Stop));
        assert_eq!(retries(&events), [(1, 0, false), (2, 0, true)]);
        let requests = |event: &ModelEvent| match event {
            ModelEvent::Metrics(metrics) => Some(metrics.requests),
            _ => None,
        };
        assert_eq!(events.iter().filter_map(requests).collect::<Vec<_>>(), [1, 1, 1]);
    }

    #[test]
    fn it_gives_up_after_its_last_attempt_and_at_once_where_waiting_is_no_use() {
        let errors = || vec![failed(ErrorKind::Server); 9];
        let (result, events) = run(errors(), RetryPolicy::new(5, QUICK), &Cancel::new());
        assert_eq!(result.unwrap_err().message, "x (gave up after 5 attempts)");
        assert_eq!(retries(&events).len(), 4);
        let (result, events) =
            run(vec![failed(ErrorKind::Quota)], RetryPolicy::new(5, QUICK), &Cancel::new());
        assert_eq!(result.unwrap_err().message, "x");
        assert_eq!(retries(&events), []);
        let mut error = failed(ErrorKind::RateLimit);
        error.retry_after = Some(Duration::from_secs(99_999));
        let (result, events) = run(vec![error], RetryPolicy::new(5, QUICK), &Cancel::new());
        let error = result.unwrap_err();
        assert_eq!(error.hint, "the server asks to wait 27 hours; try again then");
        assert!(!error.retryable && retries(&events).is_empty());
    }

    #[test]
    fn a_wait_ends_at_once_when_it_is_cancelled() {
        let cancel = Cancel::new();
        let model = Retrying::new(
            Failing(Mutex::new(vec![failed(ErrorKind::Server)])),
            RetryPolicy::new(5, Duration::from_secs(60)),
            Arc::new(Host::fixed()),
        );
        let request = Request {
            model: "m",
            system: &[],
            messages: &[],
            tools: &[],
            session_id: "s",
            reasoning_effort: None,
            reasoning_summary: None,
            max_output_tokens: None,
        };
        let start = Instant::now();
        let from_sink = cancel.clone();
        let result = model.stream(&request, &cancel, &mut |event| {
            if let ModelEvent::Retry(_) = event {
                let cancel = from_sink.clone();
                std::thread::spawn(move || cancel.cancel(Reason::User));
            }
        });
        assert_eq!(result.unwrap_err().kind, ErrorKind::Cancelled);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}

//! The Chat Completions protocol as a [`Model`].
//!
//! One call is one request, except where a server refuses a field by name: then the request is
//! sent again at once without it (or with its other form), and the server's taste is remembered
//! for as long as this adapter lives. Everything else that may be tried again is the retry
//! layer's business.

use std::sync::{Arc, Mutex, PoisonError};

use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{Finish, Model, ModelError, ModelEvent, Preview, Request, Window};
use crate::provider::classify::ApiError;
use crate::provider::openai::access::Access;
use crate::provider::openai::answer::Answer;
use crate::provider::openai::endpoint::Endpoint;
use crate::provider::openai::exchange::{Exchange, Measure, posted};
use crate::provider::openai::reader::Origin;
use crate::provider::openai::request::{self, Dialect, Echo};
use crate::wire::Transport;

/// Fields that one call may learn about before it gives up.
const LESSONS_MAX: u32 = 4;

pub struct Chat {
    exchange: Exchange,
    repeats_reasoning: bool,
    dialect: Mutex<Dialect>,
}

impl Chat {
    /// A key was checked before.
    pub fn new(
        provider: &str,
        endpoint: &Endpoint,
        access: Access,
        transport: Box<dyn Transport>,
        host: Arc<Host>,
    ) -> Chat {
        let vendor = endpoint.is_at("api.openai.com");
        let dialect = Dialect {
            new_token_limit: vendor,
            cache_key: vendor,
            short_ids: endpoint.is_at("mistral.ai"),
            ..Dialect::default()
        };
        let exchange =
            Exchange::new(provider, endpoint, "chat/completions", access, transport, host);
        Chat { exchange, repeats_reasoning: endpoint.is_at("x.ai"), dialect: Mutex::new(dialect) }
    }

    fn dialect(&self) -> Dialect {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from a refusal that names a field. True: the next request will be another one.
    /// What the person asked for and does not get is said.
    fn learn(
        &self,
        api: &ApiError,
        request: &Request<'_>,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> bool {
        if !matches!(api.status, Some(400 | 422)) {
            return false;
        }
        let (before, after) = {
            let mut dialect = self.dialect.lock().unwrap_or_else(PoisonError::into_inner);
            let before = *dialect;
            learn(&mut dialect, api, request);
            (before, *dialect)
        };
        for (is_lost, what) in [
            (after.no_effort && !before.no_effort, "reasoning effort"),
            (after.no_token_limit && !before.no_token_limit, "limit of the answer's tokens"),
        ] {
            if is_lost {
                let text =
                    format!("{} takes no {what}: going on without it", self.exchange.authority);
                sink(ModelEvent::Notice(text));
            }
        }
        before != after
    }

    fn call(
        &self,
        request: &Request<'_>,
        measure: &mut Measure<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        let mut lessons = 0;
        loop {
            let body = request::write(request, &self.exchange.provider, self.dialect());
            let refused = match self.exchange.post(body, &[], measure, cancel) {
                Ok(reply) => {
                    let origin = Origin {
                        repeats_reasoning: self.repeats_reasoning,
                        ..self.exchange.origin()
                    };
                    let answer = Answer::new(request, origin);
                    return self.exchange.answer(answer, reply, measure, sink);
                }
                Err(refused) => refused,
            };
            lessons += 1;
            if lessons > LESSONS_MAX || !self.learn(&refused.api, request, sink) {
                return Err(refused.error);
            }
        }
    }
}

impl Model for Chat {
    fn provider(&self) -> &str {
        &self.exchange.provider
    }

    fn endpoint(&self) -> &str {
        &self.exchange.url
    }

    fn window(&self, model: &str, cancel: &Cancel) -> Option<Window> {
        self.exchange.window(model, cancel)
    }

    fn known_window(&self, model: &str) -> Option<Window> {
        self.exchange.known_window(model)
    }

    fn preview(&self, request: &Request<'_>) -> Option<Preview> {
        let body = request::write(request, &self.exchange.provider, self.dialect());
        self.exchange.preview(body, posted(&[]))
    }

    fn stream(
        &self,
        request: &Request<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        let mut measure = Measure::new(&self.exchange.host);
        let result = self
            .exchange
            .watched(request, sink, |sink| self.call(request, &mut measure, cancel, sink));
        sink(ModelEvent::Metrics(measure.metrics(self.exchange.transport_name(), request)));
        result.map_err(|error| self.exchange.redacted(error))
    }
}

/// Changes the dialect by what a refusal says about one field of this request.
fn learn(dialect: &mut Dialect, api: &ApiError, request: &Request<'_>) {
    let about = |field: &str| api.param == field || api.message.contains(field);
    let says = |words: &[&str]| {
        let text = api.message.to_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    let refused = api.code.contains("unsupported")
        || api.code.contains("unknown_parameter")
        || says(&["unsupported", "not support", "unrecognized", "unknown", "unexpected", "extra"])
        || says(&["not permitted", "not allowed", "forbidden", "invalid argument", "instead"]);
    if about("reasoning_content") || about("'reasoning'") || about("`reasoning`") {
        let wanted = says(&["must be passed back", "must be provided", "is required", "missing"]);
        dialect.echo = if wanted { Echo::Always } else { Echo::Never };
        return;
    }
    if !refused {
        return;
    }
    let sent = if dialect.new_token_limit { "max_completion_tokens" } else { "max_tokens" };
    if about(sent) && request.max_output_tokens.is_some() {
        // First the other name, then none at all.
        if dialect.token_limit_flipped {
            dialect.no_token_limit = true;
        } else {
            dialect.token_limit_flipped = true;
            dialect.new_token_limit = !dialect.new_token_limit;
        }
    } else if about("stream_options") || about("include_usage") {
        dialect.no_stream_options = true;
    } else if about("reasoning_effort") && request.reasoning_effort.is_some() {
        dialect.no_effort = true;
    } else if about("prompt_cache_key") {
        dialect.cache_key = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Reason;
    use crate::model::ErrorKind;
    use crate::wire::{Body, Call, Reply, WireError, WireErrorKind};

    /// Answers with a status; the body begins, and is then cancelled or cut.
    struct Refusing {
        status: u16,
        cancels: bool,
    }

    struct Cut {
        begun: bool,
        cancels: Option<Cancel>,
    }

    impl Transport for Refusing {
        fn name(&self) -> &'static str {
            "test"
        }

        fn send(&self, _call: Call, cancel: &Cancel) -> Result<Reply, WireError> {
            let body = Cut { begun: false, cancels: self.cancels.then(|| cancel.clone()) };
            Ok(Reply { status: self.status, headers: Vec::new(), body: Box::new(body) })
        }
    }

    impl Body for Cut {
        fn chunk(&mut self) -> Result<Option<&[u8]>, WireError> {
            if !std::mem::replace(&mut self.begun, true) {
                return Ok(Some(b"{\"error\":"));
            }
            match &self.cancels {
                Some(cancel) => {
                    cancel.cancel(Reason::Terminate);
                    Err(WireError::cancelled())
                }
                None => Err(WireError::new(WireErrorKind::Cut, "cut")),
            }
        }
    }

    #[test]
    fn a_call_that_is_cancelled_while_a_refusal_is_read_is_cancelled_and_not_refused() {
        for (status, cancels, want) in [
            (400, false, ErrorKind::InvalidRequest),
            (400, true, ErrorKind::Cancelled),
            (401, true, ErrorKind::Cancelled),
            (500, true, ErrorKind::Cancelled),
        ] {
            let endpoint = Endpoint::parse("http://127.0.0.1:1/v1").unwrap();
            let transport = Box::new(Refusing { status, cancels });
            let chat =
                Chat::new("openai", &endpoint, Access::None, transport, Arc::new(Host::fixed()));
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
            let error = chat.stream(&request, &Cancel::new(), &mut |_| {}).unwrap_err();
            assert_eq!(error.kind, want, "{status} {cancels}: {error}");
        }
    }
}

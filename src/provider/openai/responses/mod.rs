//! The Responses protocol as a [`Model`].
//!
//! Nothing is stored at the server: every request holds the whole conversation, the model's own
//! encrypted state included. Where a server refuses a field by name the request is sent again at
//! once without it; everything else that may be tried again is the retry layer's business.

mod answer;
mod event;
mod request;

use std::sync::{Arc, Mutex, PoisonError};

use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{Finish, Model, ModelError, ModelEvent, Preview, Request, Role};
use crate::provider::classify::ApiError;
use crate::provider::openai::access::Access;
use crate::provider::openai::endpoint::Endpoint;
use crate::provider::openai::exchange::{Exchange, Measure, Refused, header};
use crate::provider::openai::responses::answer::Answer;
use crate::provider::openai::responses::request::{Dialect, Form};
use crate::wire::{Header, Reply, Transport};

/// The reader of one answer's body.
pub mod reader {
    /// Reads a Responses stream, or one whole response.
    pub type Reader<'r> = crate::provider::openai::reader::Reader<super::Answer<'r>>;
    pub use crate::provider::openai::reader::Origin;
}

/// Fields that one call may learn about before it gives up.
const LESSONS_MAX: u32 = 6;
/// Brings what a backend of plans routes the rest of a turn by.
const TURN_STATE: &str = "x-codex-turn-state";

/// Whose state an item is: the provider at its address. Another server cannot read it.
pub fn owner(provider: &str, authority: &str) -> String {
    format!("{provider}@{authority}")
}

/// Whether that owner is the vendor itself.
fn is_vendor(owner: &str) -> bool {
    let host = owner.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    matches!(host, "api.openai.com" | "chatgpt.com")
}

pub struct Responses {
    exchange: Exchange,
    owner: String,
    state: Mutex<State>,
}

/// What is remembered between calls; none of it changes what a request means.
#[derive(Debug, Default)]
struct State {
    dialect: Dialect,
    turn_state: Option<String>,
}

impl Responses {
    pub fn new(
        provider: &str,
        endpoint: &Endpoint,
        access: Access,
        transport: Box<dyn Transport>,
        host: Arc<Host>,
    ) -> Responses {
        let plan = matches!(access, Access::Tokens(_))
            || endpoint.base().path.ends_with("/backend-api/codex");
        let exchange = Exchange::new(provider, endpoint, "responses", access, transport, host);
        let state = State { dialect: Dialect { plan, ..Dialect::default() }, turn_state: None };
        Responses {
            owner: owner(provider, &exchange.authority),
            exchange,
            state: Mutex::new(state),
        }
    }

    fn dialect(&self) -> Dialect {
        self.lock().dialect
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Headers beside those of every exchange.
    fn headers(&self, request: &Request<'_>) -> Vec<Header> {
        let state = self.lock();
        if !state.dialect.plan {
            return Vec::new();
        }
        let mut headers =
            vec![header("OpenAI-Beta", "responses=experimental"), header("originator", "etch")];
        if !request.session_id.is_empty() {
            headers.push(header("session-id", request.session_id));
            headers.push(header("x-client-request-id", request.session_id));
        }
        if let Some(turn_state) = &state.turn_state {
            headers.push(header(TURN_STATE, turn_state));
        }
        headers
    }

    /// Keeps what the server wants to see again in this turn.
    fn note(&self, reply: &Reply) {
        if let Some(value) = reply.header(TURN_STATE) {
            self.lock().turn_state = Some(value.to_owned());
        }
    }

    fn body(&self, request: &Request<'_>) -> String {
        let dialect = self.dialect();
        let input = request::input(request, &self.owner, dialect);
        request::body(&request::head(request, dialect), &input, Form::Http)
    }

    fn call(
        &self,
        request: &Request<'_>,
        measure: &mut Measure<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        if request.messages.last().is_some_and(|message| message.role == Role::User) {
            self.lock().turn_state = None; // a new turn
        }
        let mut lessons = 0;
        loop {
            let (body, extra) = (self.body(request), self.headers(request));
            let refused = match self.exchange.post(body.into_bytes(), &extra, measure, cancel) {
                Ok(reply) => {
                    self.note(&reply);
                    let answer = Answer::new(request, self.exchange.origin());
                    return self.exchange.answer(answer, reply, measure, sink);
                }
                Err(refused) => refused,
            };
            lessons += 1;
            if lessons > LESSONS_MAX || !self.learn(&refused, request, sink) {
                return Err(refused.error);
            }
        }
    }

    /// Learns from a refusal that names a field. True: the next request will be another one.
    /// What the person asked for and does not get is said.
    fn learn(
        &self,
        refused: &Refused,
        request: &Request<'_>,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> bool {
        if !matches!(refused.api.status, Some(400 | 422)) {
            return false;
        }
        let (before, after) = {
            let mut state = self.lock();
            let before = state.dialect;
            learn(&mut state.dialect, &refused.api, request);
            (before, state.dialect)
        };
        for (is_lost, what) in [
            (after.no_effort && !before.no_effort, "takes no reasoning effort"),
            (after.no_summary && !before.no_summary, "takes no reasoning summary"),
            (after.no_token_limit && !before.no_token_limit, "takes no limit of tokens"),
            (after.no_state && !before.no_state, "does not take back its model's earlier thoughts"),
        ] {
            if is_lost {
                let text = format!("{} {what}: going on without", self.exchange.authority);
                sink(ModelEvent::Notice(text));
            }
        }
        before != after
    }
}

/// Changes the dialect by what a refusal says about one field of this request.
fn learn(dialect: &mut Dialect, api: &ApiError, request: &Request<'_>) {
    let text = api.message.to_lowercase();
    let about = |field: &str| api.param.starts_with(field) || text.contains(field);
    if api.code == "invalid_encrypted_content"
        || text.contains("encrypted content could not be")
        || text.contains("encrypted content for item")
    {
        dialect.no_state = true;
    } else if about("encrypted") || about("include") {
        dialect.no_include = true;
    } else if about("reasoning.summary") && request.reasoning_summary.is_some() {
        dialect.no_summary = true;
    } else if about("reasoning") && request.reasoning_effort.is_some() {
        dialect.no_effort = true;
        dialect.no_summary = true;
    } else if about("reasoning") && request.reasoning_summary.is_some() {
        dialect.no_summary = true;
    } else if about("prompt_cache_key") {
        dialect.no_cache_key = true;
    } else if about("max_output_tokens") && request.max_output_tokens.is_some() {
        dialect.no_token_limit = true;
    }
}

impl Model for Responses {
    fn provider(&self) -> &str {
        &self.exchange.provider
    }

    fn endpoint(&self) -> &str {
        &self.exchange.url
    }

    fn preview(&self, request: &Request<'_>) -> Option<Preview> {
        self.exchange.preview(self.body(request).into_bytes(), &self.headers(request))
    }

    fn stream(
        &self,
        request: &Request<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        let mut measure = Measure::new(&self.exchange.host);
        let result = self.call(request, &mut measure, cancel, sink);
        sink(ModelEvent::Metrics(measure.metrics(self.exchange.transport_name(), request)));
        result.map_err(|error| self.exchange.redacted(error))
    }
}

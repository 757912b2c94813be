//! The Responses protocol as a [`Model`].
//!
//! Nothing is stored at the server: every request holds the whole conversation, the model's own
//! encrypted state included. Where a server refuses a field by name the request is sent again at
//! once without it; everything else that may be tried again is the retry layer's business.

mod answer;
mod event;
mod link;
mod request;
mod said;
mod socket;

use std::sync::{Arc, Mutex, PoisonError};

use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{
    ErrorKind, Finish, Model, ModelError, ModelEvent, Preview, Request, Role, Window,
};
use crate::provider::classify::ApiError;
use crate::provider::openai::access::Access;
use crate::provider::openai::endpoint::Endpoint;
use crate::provider::openai::exchange::{Exchange, Measure, Refused, header, posted};
use crate::provider::openai::responses::answer::Answer;
use crate::provider::openai::responses::request::{Dialect, Form};
use crate::wire::websocket::Sockets;
use crate::wire::{Header, Transport};
use link::Keeper;
use socket::Failed;

/// The reader of one answer: of a body, or of whole events as a socket brings them.
pub mod reader {
    /// Takes the events one by one.
    pub use super::answer::Answer;
    pub use crate::provider::openai::reader::Assemble;

    /// Reads a Responses stream, or one whole response.
    pub type Reader<'r> = crate::provider::openai::reader::Reader<super::Answer<'r>>;
    pub use crate::provider::openai::reader::Origin;

    pub fn new<'r>(request: &'r crate::model::Request<'r>, origin: Origin<'r>) -> Reader<'r> {
        Reader::of(super::Answer::new(request, origin))
    }
}

/// Fields that one call may learn about before it gives up.
const LESSONS_MAX: u32 = 6;
/// Answers in a row that may be cut before the transport is changed.
const LOST_MAX: u32 = 2;
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

/// How requests travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Travel {
    Http,
    WebSocket,
    /// A WebSocket as long as that works.
    Auto,
}

pub struct Responses {
    exchange: Exchange,
    travel: Travel,
    sockets: Sockets,
    keeper: Keeper,
    owner: String,
    state: Mutex<State>,
}

/// What is remembered between calls; none of it changes what a request means.
#[derive(Debug, Default)]
struct State {
    dialect: Dialect,
    turn_state: Option<String>,
    /// The transport was changed to HTTP, for good.
    http_only: bool,
    /// Answers in a row that a socket lost after they had begun.
    lost: u32,
}

impl Responses {
    pub fn new(
        provider: &str,
        endpoint: &Endpoint,
        access: Access,
        travel: Travel,
        transport: Box<dyn Transport>,
        sockets: Sockets,
        host: Arc<Host>,
    ) -> Responses {
        let plan = matches!(access, Access::Tokens(_))
            || endpoint.base().path.ends_with("/backend-api/codex");
        let exchange = Exchange::new(provider, endpoint, "responses", access, transport, host);
        let state = State { dialect: Dialect { plan, ..Dialect::default() }, ..State::default() };
        Responses {
            owner: owner(provider, &exchange.authority),
            exchange,
            travel,
            sockets,
            keeper: Keeper::default(),
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
    fn note_turn_state(&self, headers: &[(String, String)]) {
        if let Some((_, value)) = headers.iter().find(|(name, _)| name == TURN_STATE) {
            self.lock().turn_state = Some(value.clone());
        }
    }

    fn body(&self, request: &Request<'_>) -> String {
        self.body_as(request, Form::Http)
    }

    fn body_as(&self, request: &Request<'_>, form: Form<'_>) -> String {
        let dialect = self.dialect();
        let input = request::input(request, &self.owner, dialect);
        request::body(&request::head(request, dialect), &input, form)
    }

    /// Over whatever transport works.
    fn call(
        &self,
        request: &Request<'_>,
        measure: &mut Measure<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> (&'static str, Result<Finish, ModelError>) {
        if request.messages.last().is_some_and(|message| message.role == Role::User) {
            self.lock().turn_state = None; // a new turn
        }
        if self.travel == Travel::Http || self.lock().http_only {
            return (
                self.exchange.transport_name(),
                self.call_http(request, measure, cancel, sink),
            );
        }
        let mut lessons = 0;
        let mut is_cut = false;
        let error = loop {
            match self.call_socket(request, measure, cancel, sink) {
                Ok(finish) => {
                    self.lock().lost = 0;
                    return ("websocket", Ok(finish));
                }
                Err(Failed::Transport(error)) => break error,
                Err(Failed::Model(refused)) => {
                    lessons += 1;
                    if lessons <= LESSONS_MAX && self.learn(&refused, request, sink) {
                        continue;
                    }
                    let error = refused.error;
                    if error.kind != ErrorKind::Network || !self.is_lost_again() {
                        return ("websocket", Err(error));
                    }
                    is_cut = true;
                    break error;
                }
            }
        };
        if self.travel == Travel::WebSocket {
            let hint = "openai.transport = \"auto\" goes on over HTTP";
            let error = if error.hint.is_empty() { error.with_hint(hint) } else { error };
            return ("websocket", Err(error));
        }
        self.lock().http_only = true;
        measure.facts.transport_fallbacks += 1;
        measure.facts.transport_fallback_error = self.exchange.access.redact(&error.message);
        let text = format!("no WebSocket ({}): going on over HTTP", error.message);
        sink(ModelEvent::Notice(self.exchange.access.redact(&text)));
        if is_cut {
            // What it had said must be void before another answer begins: a new attempt.
            return ("websocket", Err(error));
        }
        (self.exchange.transport_name(), self.call_http(request, measure, cancel, sink))
    }

    /// Counts an answer that was cut; true when it is one too many for this transport.
    fn is_lost_again(&self) -> bool {
        let mut state = self.lock();
        state.lost += 1;
        state.lost > LOST_MAX && self.travel == Travel::Auto
    }

    fn call_http(
        &self,
        request: &Request<'_>,
        measure: &mut Measure<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        let mut lessons = 0;
        loop {
            let (body, extra) = (self.body(request), self.headers(request));
            let refused = match self.exchange.post(body.into_bytes(), &extra, measure, cancel) {
                Ok(reply) => {
                    self.note_turn_state(&reply.headers);
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

    fn window(&self, model: &str, cancel: &Cancel) -> Option<Window> {
        self.exchange.window(model, cancel)
    }

    fn known_window(&self, model: &str) -> Option<Window> {
        self.exchange.known_window(model)
    }

    fn preview(&self, request: &Request<'_>) -> Option<Preview> {
        if self.travel != Travel::Http {
            let body = self.body_as(request, Form::Message).into_bytes();
            let preview = self.exchange.preview(body, self.upgrade_headers(request))?;
            let url = preview.url.replacen("http", "ws", 1);
            return Some(Preview { method: "GET", url, ..preview });
        }
        self.exchange.preview(self.body(request).into_bytes(), posted(&self.headers(request)))
    }

    fn stream(
        &self,
        request: &Request<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        let mut measure = Measure::new(&self.exchange.host);
        let (transport, result) = self
            .exchange
            .watched(request, sink, |sink| self.call(request, &mut measure, cancel, sink));
        sink(ModelEvent::Metrics(measure.metrics(transport, request)));
        result.map_err(|error| self.exchange.redacted(error))
    }
}

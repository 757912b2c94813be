//! One exchange with a server of OpenAI's protocols: who is called with which headers, what a
//! refusal means, and the facts of it for the log.
//!
//! Knows no field of any body. A credential goes into the headers of a call and nowhere else;
//! one that a server does not take is renewed once, where it can be.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{ErrorKind, Finish, Metrics, ModelError, ModelEvent, Preview, Request, Window};
use crate::provider::classify::{self, ApiError};
use crate::provider::openai::access::{Access, Bearer};
use crate::provider::openai::auth::limits::Limits;
use crate::provider::openai::endpoint::Endpoint;
use crate::provider::openai::models;
use crate::provider::openai::reader::{Assemble, Origin, Reader};
use crate::provider::openai::usage::message_bytes;
use crate::provider::preview::preview;
use crate::provider::secret::Secret;
use crate::provider::window::Windows;
use crate::provider::{ApiKey, wire_error};
use crate::wire::{Body, Call, Header, Reply, Transport, WireError, WireErrorKind};

/// Who is called, and as whom.
pub struct Exchange {
    pub provider: String,
    pub url: String,
    /// `host:port`, for messages.
    pub authority: String,
    pub access: Access,
    pub host: Arc<Host>,
    windows: Windows,
    transport: Box<dyn Transport>,
}

/// A server's answer that is none.
pub struct Refused {
    pub error: ModelError,
    /// What the server said; empty when the call did not get that far.
    pub api: Box<ApiError>,
}

impl Refused {
    /// Whether a server said it, in place of an answer.
    pub fn is_said(&self) -> bool {
        !self.api.raw.is_empty()
    }
}

impl From<ModelError> for Refused {
    fn from(error: ModelError) -> Refused {
        Refused { error, api: Box::default() }
    }
}

impl Exchange {
    /// `call` is the end of the URL, such as `chat/completions`.
    pub fn new(
        provider: &str,
        endpoint: &Endpoint,
        call: &str,
        access: Access,
        transport: Box<dyn Transport>,
        host: Arc<Host>,
    ) -> Exchange {
        let is_plan = matches!(access, Access::Tokens(_))
            || endpoint.base().path.ends_with("/backend-api/codex");
        Exchange {
            windows: Windows::new(endpoint, is_plan),
            provider: provider.to_owned(),
            url: endpoint.url(call),
            authority: endpoint.base().authority(),
            access,
            host,
            transport,
        }
    }

    fn call(&self, body: Vec<u8>, mut headers: Vec<Header>, bearer: Option<&Bearer>) -> Call {
        headers.extend(bearer.into_iter().flat_map(identity));
        Call { url: self.url.clone(), headers, body: Some(body) }
    }

    /// A call with this body and these headers; `None` where nothing goes over a wire.
    pub fn preview(&self, body: Vec<u8>, headers: Vec<Header>) -> Option<Preview> {
        // The token is not shown, and none is renewed for it.
        let hidden = |known| Bearer { token: Secret::new("redacted"), ..known };
        let bearer = self.access.known().map(hidden);
        (self.transport.name() != "replay")
            .then(|| preview(self.call(body, headers, bearer.as_ref())))
    }

    /// How much `model` takes in; may ask the server.
    pub fn window(&self, model: &str, cancel: &Cancel) -> Option<Window> {
        if self.transport.name() == "replay" {
            return None;
        }
        self.windows.window(model, cancel, &|url, body, cancel| self.fetch(url, body, cancel))
    }

    /// As far as it is known without asking.
    pub fn known_window(&self, model: &str) -> Option<Window> {
        (self.transport.name() != "replay").then(|| self.windows.known(model)).flatten()
    }

    /// Streams an answer by `call`, and says so when the server did not read the whole prompt.
    pub fn watched<R>(
        &self,
        request: &Request<'_>,
        sink: &mut dyn FnMut(ModelEvent),
        call: impl FnOnce(&mut dyn FnMut(ModelEvent)) -> R,
    ) -> R {
        let mut reported = None;
        let result = call(&mut |event| {
            if let ModelEvent::Usage(usage) = &event {
                reported = Some(*usage);
            }
            sink(event);
        });
        let reported = reported.filter(|_| self.transport.name() != "replay");
        if let Some(text) =
            reported.and_then(|usage| self.windows.cut(request, &usage, &self.authority))
        {
            sink(ModelEvent::Notice(text));
        }
        result
    }

    /// Asks the server about itself, as who calls it for answers; a token is not renewed for it.
    fn fetch(&self, url: &str, body: Option<Value>, cancel: &Cancel) -> Option<Value> {
        let mut headers = vec![header("Accept", "application/json")];
        if body.is_some() {
            headers.push(header("Content-Type", "application/json"));
        }
        headers.extend(self.access.known().iter().flat_map(identity));
        let body = body.map(|body| body.to_string().into_bytes());
        let call = Call { url: url.to_owned(), headers, body };
        let mut reply = self.transport.send(call, cancel).ok()?;
        if !(200..300).contains(&reply.status) {
            reply.body.finish();
            return None;
        }
        serde_json::from_slice(&models::whole(&mut *reply.body).ok()??).ok()
    }

    /// Posts a body and returns the reply once its status is one of success.
    pub fn post(
        &self,
        body: Vec<u8>,
        extra: &[Header],
        measure: &mut Measure<'_>,
        cancel: &Cancel,
    ) -> Result<Reply, Refused> {
        let mut bearer = self.access.bearer(cancel)?;
        let mut renewed = false;
        loop {
            let call = self.call(body.clone(), posted(extra), bearer.as_ref());
            measure.sent(body.len());
            let reply = self.transport.send(call, cancel);
            let reply = reply.map_err(|error| unanswered(error, &self.url))?;
            measure.headers();
            if (200..300).contains(&reply.status) {
                return Ok(reply);
            }
            if reply.status == 401
                && !std::mem::replace(&mut renewed, true)
                && let Some(refused) = &bearer
                && let Some(other) = self.access.renewed(refused, cancel)?
            {
                bearer = Some(other);
                continue;
            }
            let refused = self.refusal(reply);
            // What there is of a refusal is no reason to end otherwise than asked.
            return Err(match cancel.is_cancelled() {
                true => wire_error(WireError::cancelled(), &self.url).into(),
                false => refused,
            });
        }
    }

    /// The error of an answer with another status than success.
    pub fn refusal(&self, reply: Reply) -> Refused {
        let status = reply.status;
        let headers = reply.headers.clone();
        let location = reply.header("location").map(str::to_owned);
        let body = read_some(reply.body);
        let api = ApiError::parse(Some(status), &body);
        let mut error = classify::http(&api, &headers, &self.url, self.host.now());
        if (300..400).contains(&status) {
            let (what, hint) = match location.as_deref().map(crate::wire::url::printable) {
                Some(target) => (
                    format!("redirected to {target}"),
                    "redirects are not followed, because they would carry the key along; set the base URL to the new place",
                ),
                None => {
                    ("no answer".to_owned(), "check that the base URL is that of a model server")
                }
            };
            let text = format!("HTTP {status} from {}: {what}", self.url);
            error = ModelError::new(ErrorKind::InvalidRequest, text)
                .with_status(status)
                .with_hint(hint);
        }
        let limits = Limits::from_refusal(&headers, &api.raw);
        Refused { error: self.advised(error, limits.as_ref()), api: Box::new(api) }
    }

    /// With what the person can do about it: where a credential was not taken which one it was,
    /// and where a limit was hit how much of which is used.
    pub fn advised(&self, mut error: ModelError, limits: Option<&Limits>) -> ModelError {
        if error.kind == ErrorKind::Auth && error.hint.is_empty() {
            error.hint = match &self.access {
                Access::None => "no key is set: export OPENAI_API_KEY, or use --api-key".to_owned(),
                Access::Key(key) => format!("check the key from {}", key.source),
                Access::Tokens(tokens) => {
                    format!("sign in again: etch auth login (in use: {})", tokens.source())
                }
            };
        }
        self.limited(error, limits)
    }

    /// Where a limit was hit, the hint says how much of which is used and when it begins anew.
    /// One that is used up, and of which the server does not say otherwise, is not tried again.
    fn limited(&self, mut error: ModelError, limits: Option<&Limits>) -> ModelError {
        let is_limit = matches!(error.kind, ErrorKind::RateLimit | ErrorKind::Quota);
        if let Some(limits) = limits.filter(|_| is_limit) {
            let now = self.host.now().0 / 1_000_000_000;
            error.hint = limits.describe(now);
            if limits.is_used_up() && error.retry_after.is_none() {
                error.kind = ErrorKind::Quota;
                error.retryable = false;
            }
        }
        error
    }

    /// Reads an answer to its end.
    pub fn answer<A: Assemble>(
        &self,
        assemble: A,
        mut reply: Reply,
        measure: &mut Measure<'_>,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        let packed = packing(&reply);
        let mut limits = Limits::from_headers(&reply.headers);
        let mut reader = Reader::of(assemble);
        let result = self.read(&mut *reply.body, &mut reader, measure, sink);
        measure.facts.unknown_events = reader.unknown_events();
        let reported = reader.reported();
        if let Some(told) = reader.take_limits() {
            limits = Some(told.or(limits));
        }
        let finish = result.and_then(|()| {
            reader.finish(&self.host, sink).map_err(|error| match packed {
                Some(how) if error.kind == ErrorKind::Protocol => self.packed(&how),
                _ => error,
            })
        });
        let finish = finish.map_err(|error| self.advised(error, limits.as_ref()));
        match (&finish, reported) {
            (Ok(_), _) => reply.body.finish(),
            // What a failed answer cost was spent.
            (Err(_), Some(usage)) => sink(ModelEvent::Usage(usage)),
            (Err(_), None) => {}
        }
        finish
    }

    /// Reads the body to its end, or to where nothing more matters.
    fn read<A: Assemble>(
        &self,
        body: &mut dyn Body,
        reader: &mut Reader<A>,
        measure: &mut Measure<'_>,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<(), ModelError> {
        let mut said = None;
        loop {
            let chunk = match body.chunk() {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(()),
                // All that was asked for is there: how the connection ends does not matter.
                Err(error) if reader.is_complete() && !error.is_cancelled() => return Ok(()),
                Err(error) => return Err(cut_short(error, &self.url, reader.last_event())),
            };
            measure.saw(chunk.len());
            reader.push(chunk, sink)?;
            if reader.is_done() {
                return Ok(());
            }
            // Again for a server that goes on behind its finish: only of what says nothing is
            // the time limited.
            if reader.is_complete() && said != Some(reader.said_bytes()) {
                said = Some(reader.said_bytes());
                body.expect_end();
            }
        }
    }

    /// What no request asked for, but some proxies do all the same.
    fn packed(&self, how: &str) -> ModelError {
        let text = format!(
            "{} sent its answer compressed ({how}), which was not asked for",
            self.authority
        );
        ModelError::new(ErrorKind::Protocol, text)
            .not_retryable()
            .with_hint("look for a proxy in between that compresses")
    }

    /// Without any secret, whatever put it into the text.
    pub fn redacted(&self, mut error: ModelError) -> ModelError {
        error.message = self.access.redact(&error.message);
        error.hint = self.access.redact(&error.hint);
        error
    }

    /// The name of the transport in metrics.
    pub fn transport_name(&self) -> &'static str {
        self.transport.name()
    }

    /// Where the answers come from.
    pub fn origin(&self) -> Origin<'_> {
        Origin { provider: &self.provider, authority: &self.authority, repeats_reasoning: false }
    }
}

pub fn header(name: &'static str, value: &str) -> Header {
    Header { name, value: value.to_owned() }
}

/// The headers of a posted body.
pub fn posted(extra: &[Header]) -> Vec<Header> {
    let mut headers = vec![
        header("Content-Type", "application/json"),
        header("Accept", "text/event-stream, application/json"),
    ];
    headers.extend_from_slice(extra);
    headers
}

/// The headers that say who calls.
pub fn identity(bearer: &Bearer) -> Vec<Header> {
    let mut headers = vec![header("Authorization", &format!("Bearer {}", bearer.token.reveal()))];
    if let Some(account) = &bearer.account_id {
        headers.push(header("ChatGPT-Account-ID", account));
    }
    if bearer.fedramp {
        headers.push(header("X-OpenAI-Fedramp", "true"));
    }
    headers
}

/// How the body is compressed, if it says so.
fn packing(reply: &Reply) -> Option<String> {
    let how = reply.header("content-encoding")?.trim().to_ascii_lowercase();
    let known = how.bytes().all(|byte| byte.is_ascii_graphic()) && how.len() <= 32;
    (known && !how.is_empty() && how != "identity").then_some(how)
}

/// The start of an error's body.
fn read_some(mut body: Box<dyn Body>) -> String {
    let mut bytes = Vec::new();
    body.expect_end();
    while let Ok(Some(chunk)) = body.chunk() {
        bytes.extend_from_slice(chunk);
        if bytes.len() >= classify::BODY_BYTES_MAX {
            bytes.truncate(classify::BODY_BYTES_MAX);
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    body.finish();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Times and sizes of one attempt.
pub struct Measure<'h> {
    host: &'h Host,
    start: Duration,
    to_headers: Option<Duration>,
    to_first: Option<Duration>,
    /// What is counted on the way; the rest is filled in by [`Measure::metrics`].
    pub facts: Metrics,
}

impl<'h> Measure<'h> {
    pub fn new(host: &'h Host) -> Measure<'h> {
        let facts = Metrics::default();
        Measure { host, start: host.elapsed(), to_headers: None, to_first: None, facts }
    }

    fn passed(&self) -> Duration {
        self.host.elapsed().saturating_sub(self.start)
    }

    /// A request of so many bytes goes out.
    pub fn sent(&mut self, bytes: usize) {
        self.facts.requests += 1;
        self.facts.request_bytes += count(bytes);
    }

    pub fn headers(&mut self) {
        self.to_headers = Some(self.passed());
    }

    /// Bytes of an answer came in.
    pub fn saw(&mut self, bytes: usize) {
        self.facts.response_bytes += count(bytes);
        if self.to_first.is_none() {
            self.to_first = Some(self.passed());
        }
    }

    pub fn metrics(&self, transport: &str, request: &Request<'_>) -> Metrics {
        let millis = |time: Option<Duration>| {
            let millis = time.unwrap_or_default().as_millis();
            u64::try_from(millis).unwrap_or(u64::MAX)
        };
        let tools = request.tools.iter();
        let tool_bytes =
            tools.map(|tool| tool.name.len() + tool.description.len() + tool.parameters.len());
        Metrics {
            transport: transport.to_owned(),
            input_messages: count(request.messages.len()),
            tool_count: count(request.tools.len()),
            instruction_bytes: count(message_bytes(request.system)),
            input_bytes: count(message_bytes(request.messages)),
            tool_bytes: count(tool_bytes.sum()),
            time_to_headers_millis: millis(self.to_headers),
            time_to_first_event_millis: millis(self.to_first),
            ..self.facts.clone()
        }
    }
}

pub fn count(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

/// The key as a header can carry it, or an error that names its source and never shows it.
pub fn checked_key(key: Option<ApiKey>) -> Result<Option<ApiKey>, ModelError> {
    let Some(key) = key else { return Ok(None) };
    match key.secret.checked() {
        Ok(secret) => Ok(Some(ApiKey { secret, source: key.source })),
        Err(why) => {
            let text = format!("the key from {} {why}", key.source);
            Err(ModelError::new(ErrorKind::Auth, text).with_hint("set it again"))
        }
    }
}

/// A failure in an answer, behind this event of it.
pub fn cut_short(error: WireError, url: &str, last_event: &str) -> ModelError {
    let is_cancelled = error.is_cancelled();
    let mut error = wire_error(error, url);
    if !is_cancelled && !last_event.is_empty() {
        error.message = format!("{}, after {}", error.message, classify::excerpt(last_event, 60));
    }
    error
}

/// A failure before any answer. A server that does not understand a plain connection may have
/// waited for TLS.
pub fn unanswered(error: WireError, url: &str) -> ModelError {
    let strange = matches!(error.kind, WireErrorKind::Cut | WireErrorKind::Protocol);
    let error = wire_error(error, url);
    match strange && url.starts_with("http:") {
        true => error.with_hint("if it speaks TLS, write https in its address"),
        false => error,
    }
}

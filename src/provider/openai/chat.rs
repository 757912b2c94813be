//! The Chat Completions protocol as a [`Model`].
//!
//! One call is one request, except where a server refuses a field by name: then the request is
//! sent again at once without it (or with its other form), and the server's taste is remembered
//! for as long as this adapter lives. Everything else that may be tried again is the retry
//! layer's business.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{ErrorKind, Finish, Metrics, Model, ModelError, ModelEvent, Request};
use crate::provider::classify::{self, ApiError};
use crate::provider::openai::answer::Origin;
use crate::provider::openai::endpoint::Endpoint;
use crate::provider::openai::reader::Reader;
use crate::provider::openai::request::{self, Dialect, Echo};
use crate::provider::openai::usage::message_bytes;
use crate::provider::{ApiKey, wire_error};
use crate::wire::{Body, Call, Header, Reply, Transport, WireError, WireErrorKind};

/// Fields that one call may learn about before it gives up.
const LESSONS_MAX: u32 = 4;

pub struct Chat {
    provider: String,
    url: String,
    authority: String,
    repeats_reasoning: bool,
    key: Option<ApiKey>,
    dialect: Mutex<Dialect>,
    transport: Box<dyn Transport>,
    host: Arc<Host>,
}

impl Chat {
    /// `key` was checked before.
    pub fn new(
        provider: &str,
        endpoint: &Endpoint,
        key: Option<ApiKey>,
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
        Chat {
            provider: provider.to_owned(),
            url: endpoint.url("chat/completions"),
            authority: endpoint.base().authority(),
            repeats_reasoning: endpoint.is_at("x.ai"),
            key,
            dialect: Mutex::new(dialect),
            transport,
            host,
        }
    }

    fn dialect(&self) -> Dialect {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, body: Vec<u8>) -> Call {
        let header = |name, value: &str| Header { name, value: value.to_owned() };
        let mut headers = vec![
            header("Content-Type", "application/json"),
            header("Accept", "text/event-stream, application/json"),
        ];
        if let Some(key) = &self.key {
            headers.push(header("Authorization", &format!("Bearer {}", key.secret.reveal())));
        }
        Call { url: self.url.clone(), headers, body: Some(body) }
    }

    /// Without the key, whatever put it into the text.
    fn redacted(&self, mut error: ModelError) -> ModelError {
        if let Some(ApiKey { secret, .. }) = &self.key {
            error.message = secret.redact(&error.message);
            error.hint = secret.redact(&error.hint);
        }
        error
    }

    /// The error of an answer with another status than success.
    fn refusal(&self, reply: Reply) -> (ModelError, ApiError) {
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
        if error.kind == ErrorKind::Auth && error.hint.is_empty() {
            error.hint = match &self.key {
                Some(key) => format!("check the key from {}", key.source),
                None => "no key is set: export OPENAI_API_KEY, or use --api-key".to_owned(),
            };
        }
        (error, api)
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
                let text = format!("{} takes no {what}: going on without it", self.authority);
                sink(ModelEvent::Notice(text));
            }
        }
        before != after
    }

    /// Reads the body to its end, or to where nothing more matters.
    fn read(
        &self,
        body: &mut dyn Body,
        reader: &mut Reader<'_>,
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
                Err(error) => return Err(wire_error(error, &self.url)),
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

    fn answer(
        &self,
        request: &Request<'_>,
        mut reply: Reply,
        measure: &mut Measure<'_>,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        let origin = Origin {
            provider: &self.provider,
            authority: &self.authority,
            repeats_reasoning: self.repeats_reasoning,
        };
        let packed = packing(&reply);
        let mut reader = Reader::new(request, origin);
        let result = self.read(&mut *reply.body, &mut reader, measure, sink);
        measure.unknown_events = reader.unknown_events();
        result?;
        let finish = reader.finish(&self.host, sink).map_err(|error| match packed {
            Some(how) if error.kind == ErrorKind::Protocol => self.packed(&how),
            _ => error,
        })?;
        reply.body.finish();
        Ok(finish)
    }
}

impl Model for Chat {
    fn provider(&self) -> &str {
        &self.provider
    }

    fn endpoint(&self) -> &str {
        &self.url
    }

    fn stream(
        &self,
        request: &Request<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        let mut measure = Measure::new(&self.host);
        let mut lessons = 0;
        let result = loop {
            let body = request::write(request, &self.provider, self.dialect());
            measure.sent(body.len());
            let reply = match self.transport.send(self.call(body), cancel) {
                Ok(reply) => reply,
                Err(error) => break Err(unanswered(error, &self.url)),
            };
            measure.headers();
            if (200..300).contains(&reply.status) {
                break self.answer(request, reply, &mut measure, sink);
            }
            let (error, api) = self.refusal(reply);
            // What there is of a refusal is no reason to end otherwise than asked.
            if cancel.is_cancelled() {
                break Err(wire_error(WireError::cancelled(), &self.url));
            }
            lessons += 1;
            if lessons > LESSONS_MAX || !self.learn(&api, request, sink) {
                break Err(error);
            }
        };
        sink(ModelEvent::Metrics(measure.metrics(self.transport.name(), request)));
        result.map_err(|error| self.redacted(error))
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

/// Times and sizes of one call.
struct Measure<'h> {
    host: &'h Host,
    start: Duration,
    requests: u64,
    request_bytes: u64,
    response_bytes: u64,
    to_headers: Option<Duration>,
    to_first: Option<Duration>,
    unknown_events: u64,
}

impl<'h> Measure<'h> {
    fn new(host: &'h Host) -> Measure<'h> {
        Measure {
            host,
            start: host.elapsed(),
            requests: 0,
            request_bytes: 0,
            response_bytes: 0,
            to_headers: None,
            to_first: None,
            unknown_events: 0,
        }
    }

    fn passed(&self) -> Duration {
        self.host.elapsed().saturating_sub(self.start)
    }

    fn sent(&mut self, bytes: usize) {
        self.requests += 1;
        self.request_bytes = count(bytes);
    }

    fn headers(&mut self) {
        self.to_headers = Some(self.passed());
    }

    fn saw(&mut self, bytes: usize) {
        self.response_bytes += count(bytes);
        if self.to_first.is_none() {
            self.to_first = Some(self.passed());
        }
    }

    fn metrics(&self, transport: &str, request: &Request<'_>) -> Metrics {
        let millis = |time: Option<Duration>| {
            let millis = time.unwrap_or_default().as_millis();
            u64::try_from(millis).unwrap_or(u64::MAX)
        };
        let tools = request.tools.iter();
        let tool_bytes =
            tools.map(|tool| tool.name.len() + tool.description.len() + tool.parameters.len());
        Metrics {
            transport: transport.to_owned(),
            requests: self.requests,
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            input_messages: count(request.messages.len()),
            tool_count: count(request.tools.len()),
            instruction_bytes: count(message_bytes(request.system)),
            input_bytes: count(message_bytes(request.messages)),
            tool_bytes: count(tool_bytes.sum()),
            time_to_headers_millis: millis(self.to_headers),
            time_to_first_event_millis: millis(self.to_first),
            unknown_events: self.unknown_events,
            ..Metrics::default()
        }
    }
}

fn count(size: usize) -> u64 {
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

/// A failure before any answer. A server that does not understand a plain connection may have
/// waited for TLS.
fn unanswered(error: WireError, url: &str) -> ModelError {
    let strange = matches!(error.kind, WireErrorKind::Cut | WireErrorKind::Protocol);
    let error = wire_error(error, url);
    match strange && url.starts_with("http:") {
        true => error.with_hint("if it speaks TLS, write https in its address"),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Reason;

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
            let chat = Chat::new("openai", &endpoint, None, transport, Arc::new(Host::fixed()));
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

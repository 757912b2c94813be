//! The Responses protocol over a WebSocket: one connection for a session.
//!
//! A request behind a response that the connection still remembers sends only what is new, where
//! it is certain that this means the same: nothing but the input has changed, and the input
//! begins with the previous one and that response as it came. In every other case, and whenever
//! something goes wrong before the answer has begun, the whole conversation is sent. Once it has
//! begun, a cut is an attempt that failed, and so is a server that falls silent.

use std::time::Duration;

use super::answer::Answer;
use super::link::{Link, Previous};
use super::request::{self, Form, Input};
use super::{Responses, said::Said};
use crate::cancel::Cancel;
use crate::model::{ErrorKind, Finish, Message, ModelError, ModelEvent, Request};
use crate::provider::classify::{self, ApiError};
use crate::provider::openai::auth::limits::Limits;
use crate::provider::openai::exchange::{Measure, Refused, count, cut_short, header, identity};
use crate::provider::openai::reader::Assemble;
use crate::provider::wire_error;
use crate::wire::sse::Event;
use crate::wire::websocket::{OpenError, Opened};
use crate::wire::{Header, WireError, WireErrorKind};

/// Servers close a connection after an hour; it is not used when it may end in the middle.
const AGE_MAX: Duration = Duration::from_secs(55 * 60);
/// What the vendor's first release of this transport wants to see.
const BETA: &str = "responses_websockets=2026-02-06";

/// Why a request over a socket brought no answer.
pub enum Failed {
    /// As any failure of the model.
    Model(Refused),
    /// The transport failed, and nothing of an answer was given out.
    Transport(ModelError),
}

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Failed {
        Failed::Model(error.into())
    }
}

/// How one exchange over an open connection ended.
enum End {
    Finished(Finish, Option<Previous>),
    Error(Refused),
    /// The server does not know the response that was continued.
    Forgotten(ApiError),
    /// The connection is of no more use, and nothing of an answer has come.
    Lost(ModelError),
    /// The same, because the server fell silent.
    Silent(ModelError),
}

impl Responses {
    /// One call over the session's connection.
    pub(super) fn call_socket(
        &self,
        request: &Request<'_>,
        measure: &mut Measure<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, Failed> {
        let dialect = self.dialect();
        let head = request::head(request, dialect);
        let input = request::input(request, &self.owner, dialect);
        let mut link = self.idle_link(request, measure);
        let (mut is_second, mut renewed) = (false, false);
        loop {
            let mut used = match link.take() {
                Some(link) => link,
                None => self.open(request, measure, cancel)?,
            };
            let previous = used.previous.take().filter(|previous| previous.head == head);
            let from =
                previous.as_ref().and_then(|before| input.behind(&before.input, &before.answered));
            let form = match (&previous, from) {
                (Some(before), Some(from)) => {
                    Form::Continuation { response_id: &before.response_id, from }
                }
                _ => Form::Message,
            };
            let body = request::body(&head, &input, form);
            let continues = matches!(form, Form::Continuation { .. });
            note(measure, &used, continues.then(|| input.len() - from.unwrap_or(0)));
            let was_served = std::mem::replace(&mut used.served, true);
            let reason = match self.exchange_over(&mut used, body, request, measure, cancel, sink) {
                End::Finished(finish, previous) => {
                    let remembered = |before| Previous { head, input, ..before };
                    used.previous = previous.map(remembered);
                    self.keeper.park(used);
                    return Ok(finish);
                }
                End::Error(refused)
                    if refused.error.kind == ErrorKind::Auth && refused.is_said() && !renewed =>
                {
                    renewed = true;
                    let bearer = self.exchange.access.bearer(cancel)?;
                    let other = match &bearer {
                        Some(refused) => self.exchange.access.renewed(refused, cancel)?,
                        None => None,
                    };
                    if other.is_none() {
                        let error = self.exchange.advised(refused.error, None);
                        return Err(Failed::Model(Refused { error, ..refused }));
                    }
                    continue;
                }
                End::Error(mut refused) => {
                    refused.error = self.exchange.advised(refused.error, used.limits.as_ref());
                    if refused.is_said() {
                        self.keeper.park(used); // the server spoke: the connection is sound
                    }
                    return Err(Failed::Model(refused));
                }
                End::Forgotten(api) if continues => {
                    lost_continuation(measure, api.status, &api.message);
                    link = Some(used);
                    continue;
                }
                End::Forgotten(api) => ModelError::new(ErrorKind::Protocol, api.message),
                End::Lost(error) => error,
                // A connection that had served may have died unnoticed: that is no word on the rest.
                End::Silent(error) => {
                    return Err(match was_served {
                        true => error.into(),
                        false => Failed::Transport(error),
                    });
                }
            };
            if continues {
                lost_continuation(measure, reason.status, &reason.message);
            }
            // Once more on a fresh connection; a stale one tells nothing of the server.
            let again = !std::mem::replace(&mut is_second, !was_served);
            if !again || !reason.retryable {
                return Err(Failed::Transport(reason));
            }
        }
    }

    /// The connection of this session, if it is still good.
    fn idle_link(&self, request: &Request<'_>, measure: &mut Measure<'_>) -> Option<Link> {
        let mut link = self.keeper.take()?;
        let age = self.exchange.host.elapsed().saturating_sub(link.opened);
        if link.session_id == request.session_id && age < AGE_MAX && link.socket.is_alive() {
            return Some(link);
        }
        if link.previous.is_some() {
            lost_continuation(measure, None, "the connection had gone stale");
        }
        link.socket.close();
        None
    }

    /// The headers of the upgrade.
    pub(super) fn upgrade_headers(&self, request: &Request<'_>) -> Vec<Header> {
        let mut headers = vec![header("OpenAI-Beta", BETA)];
        let others = self.headers(request).into_iter();
        headers.extend(others.filter(|other| other.name != "OpenAI-Beta"));
        headers
    }

    fn open(
        &self,
        request: &Request<'_>,
        measure: &mut Measure<'_>,
        cancel: &Cancel,
    ) -> Result<Link, Failed> {
        let exchange = &self.exchange;
        let mut bearer = exchange.access.bearer(cancel)?;
        let mut renewed = false;
        loop {
            let mut headers = self.upgrade_headers(request);
            headers.extend(bearer.iter().flat_map(identity));
            measure.facts.web_socket_connections += 1;
            let error = match self.sockets.open(&exchange.url, &headers, cancel) {
                Ok(Opened { socket, headers }) => {
                    measure.headers();
                    self.note_turn_state(&headers);
                    return Ok(Link {
                        socket,
                        session_id: request.session_id.to_owned(),
                        opened: exchange.host.elapsed(),
                        served: false,
                        previous: None,
                        ended_id: String::new(),
                        limits: Limits::from_headers(&headers),
                        limits_at: exchange.host.elapsed(),
                    });
                }
                Err(OpenError::Wire(error)) => {
                    let is_cancelled = error.is_cancelled();
                    let error = wire_error(error, &exchange.url);
                    return Err(match is_cancelled {
                        true => error.into(),
                        false => Failed::Transport(error),
                    });
                }
                Err(OpenError::Refused(reply)) if reply.status == 401 && !renewed => {
                    renewed = true;
                    match &bearer {
                        Some(refused) => match exchange.access.renewed(refused, cancel)? {
                            Some(other) => {
                                bearer = Some(other);
                                continue;
                            }
                            None => exchange.refusal(reply).error,
                        },
                        None => exchange.refusal(reply).error,
                    }
                }
                Err(OpenError::Refused(reply)) if reply.status < 300 => {
                    let text = format!("HTTP {} from {}: no upgrade", reply.status, exchange.url);
                    ModelError::new(ErrorKind::Protocol, text).with_status(reply.status)
                }
                Err(OpenError::Refused(reply)) => exchange.refusal(reply).error,
            };
            if cancel.is_cancelled() {
                return Err(wire_error(WireError::cancelled(), &exchange.url).into());
            }
            // What concerns the account is the same over HTTP; who forbids may only forbid upgrades.
            return Err(match error.kind {
                ErrorKind::Auth if error.status == Some(403) => Failed::Transport(error),
                ErrorKind::Auth | ErrorKind::Quota | ErrorKind::RateLimit => error.into(),
                _ => Failed::Transport(error),
            });
        }
    }

    /// Sends one request and reads its answer.
    fn exchange_over(
        &self,
        link: &mut Link,
        body: String,
        request: &Request<'_>,
        measure: &mut Measure<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> End {
        let exchange = &self.exchange;
        let mut said = Said::default();
        let mut answer = Answer::new(request, exchange.origin());
        let mut give = |event: ModelEvent, said: &mut Said| {
            said.push(&event);
            sink(event);
        };
        measure.sent(body.len());
        link.age_limits(exchange.host.elapsed());
        if let Err(error) = link.socket.send(body.as_bytes(), cancel) {
            return self.failed(error, &answer);
        }
        while !answer.is_done() {
            let text = match link.socket.receive(cancel) {
                Ok(text) => text,
                Err(error) => return self.failed(error, &answer),
            };
            measure.saw(text.len());
            if let Some(Reported { error, api, limits }) = self.reported(text) {
                link.told(limits);
                return match api.code.as_str() {
                    "previous_response_not_found" if !said.has_output => End::Forgotten(api),
                    // Another connection is all that it takes.
                    "websocket_connection_limit_reached" => {
                        let error =
                            ModelError { kind: ErrorKind::Network, retryable: true, ..error };
                        if said.has_output { End::Error(error.into()) } else { End::Lost(error) }
                    }
                    // In the middle of an answer there is nothing to learn and to send again.
                    _ if said.has_output => End::Error(error.into()),
                    _ => End::Error(Refused { error, api: Box::new(api) }),
                };
            }
            if !said.has_response() && ends(text, &link.ended_id) {
                continue; // the end of the response before, once more
            }
            let event = Event { name: "", data: text };
            let taken = answer.event(event, &mut |event| give(event, &mut said));
            measure.facts.unknown_events = answer.unknown_events();
            link.told(answer.take_limits());
            if let Err(error) = taken {
                return End::Error(error.into());
            }
        }
        match answer.finish(&exchange.host, &mut |event| give(event, &mut said)) {
            Err(error) => End::Error(error.into()),
            Ok(finish) => {
                let (response_id, message) = said.into_message();
                link.ended_id.clone_from(&response_id);
                let is_whole = matches!(finish, Finish::Stop | Finish::ToolCalls);
                let previous = is_whole.then(|| self.remembered(response_id, &message, request));
                End::Finished(finish, previous.flatten())
            }
        }
    }

    /// What a failure of the wire means for the request.
    fn failed(&self, error: WireError, answer: &Answer<'_>) -> End {
        let kind = error.kind;
        let mut error = cut_short(error, &self.exchange.url, answer.last_event());
        if matches!(kind, WireErrorKind::Closed(1008 | 3000..)) {
            error.retryable = false;
        }
        match kind {
            _ if !answer.last_event().is_empty() => End::Error(error.into()),
            WireErrorKind::Cancelled => End::Error(error.into()),
            WireErrorKind::Timeout(_) => End::Silent(error),
            _ => End::Lost(error),
        }
    }

    /// What the server remembers of a complete answer; its request is the caller's to add.
    fn remembered(
        &self,
        response_id: String,
        message: &Message,
        request: &Request<'_>,
    ) -> Option<Previous> {
        let answered = request::answered(message, request.model, &self.owner, self.dialect());
        let (head, input) = (String::new(), Input::default());
        (!response_id.is_empty()).then_some(Previous { response_id, head, input, answered })
    }

    /// The error that a message reports.
    fn reported(&self, text: &str) -> Option<Reported> {
        if !text.contains("\"error\"") {
            return None;
        }
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        if value["type"] != "error" {
            return None;
        }
        let status = ["status", "status_code"].iter().find_map(|name| value[name].as_u64());
        let status = status.and_then(|status| u16::try_from(status).ok());
        let headers = value["headers"].as_object().into_iter().flatten();
        let headers: Vec<(String, String)> = headers
            .map(|(name, value)| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                (name.to_ascii_lowercase(), text)
            })
            .collect();
        let api = ApiError::parse(status, text);
        let error = classify::http(&api, &headers, &self.exchange.url, self.exchange.host.now());
        let error = match status {
            Some(_) => ModelError { status, ..error },
            None => ModelError {
                retry_after: error.retry_after,
                ..classify::in_stream(text, &self.exchange.authority)
            },
        };
        let limits = Limits::from_refusal(&headers, text);
        Some(Reported { error, api, limits })
    }
}

/// Whether a message is the end of the response of this id.
fn ends(text: &str, id: &str) -> bool {
    if id.is_empty() || !text.contains(id) {
        return false;
    }
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let kinds = ["done", "completed", "incomplete", "failed"];
    let kind = value["type"].as_str().and_then(|kind| kind.strip_prefix("response."));
    kind.is_some_and(|kind| kinds.contains(&kind)) && value["response"]["id"] == id
}

/// An error that came in a message, with what its headers say.
struct Reported {
    error: ModelError,
    api: ApiError,
    limits: Option<Limits>,
}

/// What is known of a request before it goes out.
fn note(measure: &mut Measure<'_>, link: &Link, continued: Option<usize>) {
    measure.facts.web_socket_reuses += u64::from(link.served);
    if let Some(items) = continued {
        measure.facts.continuation_requests += 1;
        measure.facts.delta_messages = count(items);
    }
}

fn lost_continuation(measure: &mut Measure<'_>, status: Option<u16>, reason: &str) {
    measure.facts.continuation_fallbacks += 1;
    measure.facts.continuation_fallback_status = status.unwrap_or(0).into();
    reason.clone_into(&mut measure.facts.continuation_fallback_error);
}

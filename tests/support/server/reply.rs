//! What a script is made of: replies, and the steps that play them.

use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::support::server::websocket::Ws;
use crate::support::server::{PATIENCE, lock};

/// Holds a reply back until the test opens it.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn new() -> Gate {
        Gate::default()
    }

    pub fn open(&self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }

    pub(super) fn wait(&self) {
        let closed = |open: &mut bool| !*open;
        let _ = self.0.1.wait_timeout_while(lock(&self.0.0), PATIENCE, closed);
    }
}

#[derive(Clone)]
pub(super) enum Step {
    /// Bytes as they are, with one write.
    Send(Vec<u8>),
    /// Bytes as they are, one write for each byte.
    SendBytewise(Vec<u8>),
    Wait(Gate),
    /// Nothing more, connection open, until the client goes away.
    Stall,
    /// Sends the bytes again and again until the client goes away.
    Flood(Vec<u8>),
    /// Ends the connection with a TCP reset.
    Reset,
    /// Ends our sending side and waits for the client to go away.
    HalfClose,
    /// Ends the connection. In TLS: without the closing alert.
    Close,
}

/// How the body's end is marked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Length,
    Chunked,
    /// No length at all: the connection closes after the body.
    UntilClose,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pieces {
    Whole,
    /// One write (and one chunk) per byte.
    Bytewise,
    /// Two pieces.
    CutAt(usize),
    /// A chunk for every event of the stream, sent together.
    PerEvent,
}

/// One answer. Build it with the constructors and methods below.
#[derive(Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    framing: Framing,
    pieces: Pieces,
    before: Option<Step>,
    /// After the body, in place of its normal end.
    after: Option<Step>,
    /// Pauses in the body, in order.
    gates: Vec<(usize, Gate)>,
    raw: Option<Vec<u8>>,
    pub(super) websocket: Option<Ws>,
}

impl Reply {
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Reply {
        Reply {
            status,
            headers: vec![("Content-Type".into(), content_type.into())],
            body: body.into(),
            framing: Framing::Length,
            pieces: Pieces::Whole,
            before: None,
            after: None,
            gates: Vec::new(),
            raw: None,
            websocket: None,
        }
    }

    /// A 200 event stream, chunked.
    pub fn sse(body: impl Into<Vec<u8>>) -> Reply {
        Reply::new(200, "text/event-stream", body).framing(Framing::Chunked)
    }

    pub fn json(status: u16, body: &Value) -> Reply {
        Reply::new(status, "application/json", body.to_string())
    }

    /// An error in the field's usual shape.
    pub fn error(status: u16, code: &str, message: &str) -> Reply {
        let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
        Reply::json(
            status,
            &json!({"error": {"message": message, "type": kind, "param": null, "code": code}}),
        )
    }

    /// Takes the upgrade and plays `ws`.
    pub fn websocket(ws: Ws) -> Reply {
        let mut reply = Reply::new(101, "", Vec::new());
        reply.websocket = Some(ws);
        reply
    }

    /// These bytes and nothing else, then the connection closes.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Reply {
        let mut reply = Reply::new(200, "", Vec::new());
        reply.raw = Some(bytes.into());
        reply
    }

    /// Accepts the request and then says nothing at all, not even a status.
    pub fn silence() -> Reply {
        let mut reply = Reply::new(200, "", Vec::new());
        reply.before = Some(Step::Stall);
        reply
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.into(), value.into()));
        self
    }

    #[must_use]
    pub fn without_content_type(mut self) -> Reply {
        self.headers.retain(|(known, _)| known != "Content-Type");
        self
    }

    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Reply {
        self.framing = framing;
        self
    }

    /// Every byte of the body is its own write.
    #[must_use]
    pub fn bytewise(mut self) -> Reply {
        self.pieces = Pieces::Bytewise;
        self
    }

    /// The body is sent in two writes.
    #[must_use]
    pub fn cut_at(mut self, offset: usize) -> Reply {
        self.pieces = Pieces::CutAt(offset);
        self
    }

    /// Every event of a chunked stream is its own chunk.
    #[must_use]
    pub fn chunk_per_event(mut self) -> Reply {
        self.pieces = Pieces::PerEvent;
        self
    }

    /// The status line comes only when the gate opens.
    #[must_use]
    pub fn wait_before(mut self, gate: &Gate) -> Reply {
        self.before = Some(Step::Wait(gate.clone()));
        self
    }

    /// The body stops after `offset` bytes until the gate opens. Several pauses go forward.
    #[must_use]
    pub fn wait_at(mut self, offset: usize, gate: &Gate) -> Reply {
        self.gates.push((offset, gate.clone()));
        self
    }

    /// After the body nothing more comes, but the connection stays open.
    #[must_use]
    pub fn then_stall(mut self) -> Reply {
        self.after = Some(Step::Stall);
        self
    }

    /// After the body `bytes` come again and again, until the client goes away.
    #[must_use]
    pub fn then_flood(mut self, bytes: impl Into<Vec<u8>>) -> Reply {
        self.after = Some(Step::Flood(bytes.into()));
        self
    }

    /// After the body the connection is reset, without the body's end.
    #[must_use]
    pub fn then_reset(mut self) -> Reply {
        self.after = Some(Step::Reset);
        self
    }

    /// After the body our sending side is closed, without the body's end.
    #[must_use]
    pub fn then_half_close(mut self) -> Reply {
        self.after = Some(Step::HalfClose);
        self
    }

    /// The connection closes right after the body, without its end (no last chunk). When
    /// chunked, the last chunk announced more bytes than come.
    #[must_use]
    pub fn then_cut(mut self) -> Reply {
        self.after = Some(Step::Close);
        self
    }

    /// After the whole body, with its end, the connection closes (in TLS without the alert).
    #[must_use]
    pub fn then_close(self) -> Reply {
        self.header("Connection", "close")
    }

    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self.before.iter().cloned().collect();
        if let Some(raw) = &self.raw {
            steps.extend([Step::Send(raw.clone()), Step::Close]);
            return steps;
        }
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let missing = usize::from(self.after.is_some());
        match self.framing {
            Framing::Length => {
                head.push_str(&format!("Content-Length: {}\r\n", self.body.len() + missing));
            }
            Framing::Chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
            Framing::UntilClose => head.push_str("Connection: close\r\n"),
        }
        head.push_str("\r\n");
        steps.push(Step::Send(head.into_bytes()));
        self.push_body(&mut steps);
        match (&self.after, self.framing) {
            (Some(Step::Flood(bytes)), Framing::Chunked) => {
                steps.push(Step::Flood(chunk(bytes, 0)));
            }
            (Some(after), _) => steps.push(after.clone()),
            (None, Framing::Chunked) => steps.push(Step::Send(b"0\r\n\r\n".to_vec())),
            (None, Framing::Length) => {}
            (None, Framing::UntilClose) => steps.push(Step::Close),
        }
        let closes = |(name, value): &(String, String)| name == "Connection" && value == "close";
        if self.headers.iter().any(closes) {
            steps.push(Step::Close);
        }
        steps
    }

    fn push_body(&self, steps: &mut Vec<Step>) {
        let mut begin = 0;
        for (offset, gate) in &self.gates {
            self.push_pieces(&self.body[begin..*offset], false, steps);
            steps.push(Step::Wait(gate.clone()));
            begin = *offset;
        }
        self.push_pieces(&self.body[begin..], true, steps);
    }

    fn push_pieces(&self, body: &[u8], last: bool, steps: &mut Vec<Step>) {
        let cut = self.after.as_ref().is_some_and(|step| matches!(step, Step::Close));
        let short = usize::from(cut && last);
        match (self.framing, self.pieces) {
            (Framing::Chunked, Pieces::Bytewise) => {
                steps.extend(body.iter().map(|byte| Step::Send(chunk(&[*byte], 0))));
            }
            (Framing::Chunked, Pieces::PerEvent) => {
                let text = String::from_utf8_lossy(body);
                let events = text.split_inclusive("\n\n");
                let chunks = events.flat_map(|event| chunk(event.as_bytes(), 0));
                steps.push(Step::Send(chunks.collect()));
            }
            (_, Pieces::Bytewise) => steps.push(Step::SendBytewise(body.to_vec())),
            (framing, pieces) => {
                let at = if let Pieces::CutAt(at) = pieces { at.min(body.len()) } else { 0 };
                let (one, two) = body.split_at(at);
                for (idx, piece) in [one, two].into_iter().enumerate() {
                    if !piece.is_empty() {
                        let short = if idx == 1 { short } else { 0 };
                        let chunked = framing == Framing::Chunked;
                        let bytes = if chunked { chunk(piece, short) } else { piece.to_vec() };
                        steps.push(Step::Send(bytes));
                    }
                }
            }
        }
    }
}

/// One chunk; `short` bytes of what its head announces are missing (and so is its end).
fn chunk(bytes: &[u8], short: usize) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len() + short).into_bytes();
    out.extend_from_slice(bytes);
    if short == 0 {
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

//! What every connection offers: one call out, one reply back whose body comes in chunks.
//!
//! [`Recorded`] plays stored bytes through the same trait: the decoders above cannot tell it from
//! a live server.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::cancel::Cancel;

/// One request header.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    pub name: &'static str,
    /// May be a secret: [`fmt::Debug`] does not show it.
    pub value: String,
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: [redacted]", self.name)
    }
}

/// A request: a POST when it has a body, a GET when it has none.
#[derive(Debug, Clone)]
pub struct Call {
    pub url: String,
    pub headers: Vec<Header>,
    pub body: Option<Vec<u8>>,
}

/// A status line was received; the body follows in chunks.
pub struct Reply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Box<dyn Body>,
}

impl Reply {
    /// The first header of that name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The body of a reply. Dropping it before its end cuts the connection.
pub trait Body {
    /// Blocks for the next bytes; `None` at the proper end of the body. After an error nothing
    /// more comes.
    fn chunk(&mut self) -> Result<Option<&[u8]>, WireError>;

    /// The answer is complete but for trailing data: it may take only a short time from now on,
    /// whether the server is silent or keeps the connection busy.
    fn expect_end(&mut self) {}

    /// Nothing more is needed of this body. Reads to its end within a short bound, so that the
    /// connection can serve the next call.
    fn finish(self: Box<Self>) {}
}

/// Sends calls. One transport may be used from several threads at once.
pub trait Transport: Send + Sync {
    /// The name in metrics: `http`, `replay`.
    fn name(&self) -> &'static str;

    /// Blocks until the status line and the headers are there. Cancelling makes this and the
    /// reading of the body return within milliseconds.
    fn send(&self, call: Call, cancel: &Cancel) -> Result<Reply, WireError>;
}

/// Where a timeout struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Resolve,
    Connect,
    Send,
    Headers,
    /// Between two reads of the body.
    Idle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireErrorKind {
    Cancelled,
    /// Nothing can work as it is set up (proxy variable, certificate file, URL).
    Setup,
    /// Nobody listens there.
    Refused,
    /// There is no host of that name.
    NoHost,
    /// The name could not be looked up, or there is no way to the host.
    Unreachable,
    Timeout(Phase),
    Tls,
    Proxy,
    /// The connection ended before the answer did.
    Cut,
    /// What came back is no HTTP, or breaks the rules of WebSockets.
    Protocol,
    /// The other side closed a WebSocket: its code, 1005 for none, 1006 for an end without a
    /// close frame.
    Closed(u16),
    /// A message is larger than is taken.
    TooLarge,
}

/// Why a call did not bring its whole reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError {
    pub kind: WireErrorKind,
    /// Names the host or the proxy; holds neither a secret nor a library's own URLs.
    pub message: String,
}

impl WireError {
    pub fn new(kind: WireErrorKind, message: impl Into<String>) -> WireError {
        WireError { kind, message: message.into() }
    }

    pub fn cancelled() -> WireError {
        WireError::new(WireErrorKind::Cancelled, "cancelled")
    }

    pub fn is_cancelled(&self) -> bool {
        self.kind == WireErrorKind::Cancelled
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Plays recorded bodies, one per call, in order.
pub struct Recorded {
    /// What is left, the next one last.
    bodies: Mutex<Vec<Vec<u8>>>,
    total: usize,
}

impl Recorded {
    pub fn new(mut bodies: Vec<Vec<u8>>) -> Recorded {
        let total = bodies.len();
        bodies.reverse();
        Recorded { bodies: Mutex::new(bodies), total }
    }
}

/// Bytes of a recording in one chunk: some network reads, so that chunk borders are exercised.
const RECORDED_CHUNK_BYTES: usize = 4096;

impl Transport for Recorded {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn send(&self, _call: Call, cancel: &Cancel) -> Result<Reply, WireError> {
        if cancel.is_cancelled() {
            return Err(WireError::cancelled());
        }
        let next = self.bodies.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(bytes) = next else {
            let text =
                format!("the recording has {} responses; one more was asked for", self.total);
            return Err(WireError::new(WireErrorKind::Setup, text));
        };
        Ok(Reply { status: 200, headers: Vec::new(), body: stored(bytes, cancel) })
    }
}

/// Bytes that are there already, as a body.
pub(super) fn stored(bytes: Vec<u8>, cancel: &Cancel) -> Box<dyn Body> {
    Box::new(RecordedBody { bytes, sent: 0, cancel: cancel.clone() })
}

struct RecordedBody {
    bytes: Vec<u8>,
    sent: usize,
    cancel: Cancel,
}

impl Body for RecordedBody {
    fn chunk(&mut self) -> Result<Option<&[u8]>, WireError> {
        if self.cancel.is_cancelled() {
            return Err(WireError::cancelled());
        }
        let end = (self.sent + RECORDED_CHUNK_BYTES).min(self.bytes.len());
        let chunk = &self.bytes[self.sent..end];
        self.sent = end;
        Ok((!chunk.is_empty()).then_some(chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Reason;

    fn call() -> Call {
        Call { url: "replay:".into(), headers: Vec::new(), body: None }
    }

    #[test]
    fn a_recording_is_played_in_order_and_its_end_is_an_error() {
        let recorded = Recorded::new(vec![vec![b'a'; 5000], b"b".to_vec()]);
        let cancel = Cancel::new();
        let mut sizes = Vec::new();
        for _ in 0..2 {
            let mut reply = recorded.send(call(), &cancel).unwrap();
            while let Some(chunk) = reply.body.chunk().unwrap() {
                sizes.push(chunk.len());
            }
        }
        assert_eq!(sizes, [4096, 904, 1]);
        let error = recorded.send(call(), &cancel).err().unwrap();
        assert_eq!(error.message, "the recording has 2 responses; one more was asked for");
    }

    #[test]
    fn a_recording_stops_when_it_is_cancelled() {
        let recorded = Recorded::new(vec![b"a".to_vec()]);
        let cancel = Cancel::new();
        let mut reply = recorded.send(call(), &cancel).unwrap();
        cancel.cancel(Reason::User);
        assert_eq!(reply.body.chunk(), Err(WireError::cancelled()));
    }

    #[test]
    fn headers_hide_their_values() {
        let header = Header { name: "Authorization", value: "Bearer sk-ABC".into() };
        assert_eq!(format!("{header:?}"), "Authorization: [redacted]");
    }
}

//! WebSockets (RFC 6455): one connection that carries text messages both ways.
//!
//! Everything happens on the caller's thread and is cut at once by a cancellation, which leaves no
//! thread and no descriptor but the socket's (see [`crate::wire::socket`]; the lookup of a name is
//! the one exception, see [`crate::wire::dial`]). Pings are answered whenever something is read.
//! After any error the connection is of no more use.

use std::fmt;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use tungstenite::Message;
use tungstenite::error::{CapacityError, Error, ProtocolError};
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::frame::{FrameHeader, Utf8Bytes};
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use crate::cancel::Cancel;
use crate::host::Host;
use crate::sys;
use crate::text::{floor_char, human_bytes, visible_line};
use crate::wire::dial::Dialer;
use crate::wire::frames::Frames;
use crate::wire::http::Timeouts;
use crate::wire::socket::{Patience, Socket, Stopped};
use crate::wire::target::{Target, setup};
use crate::wire::transport::{Header, Phase, Reply, WireError, WireErrorKind};
use crate::wire::upgrade::{Answer, upgrade};
use crate::wire::url::Url;

/// The largest message that is taken, in one frame or in many: larger than any event that carries
/// images, and small enough that a server cannot use up the memory.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// What one read brings at most, and the pieces in which messages are masked and sent.
const READ_BYTES: usize = 16 << 10;
const WRITE_BYTES: usize = 64 << 10;
/// Bytes of a server's reason for closing that are shown.
const REASON_BYTES_MAX: usize = 300;
/// A close frame without a code; an end without a close frame.
const NO_CODE: u16 = 1005;
const NO_CLOSE: u16 = 1006;

/// Opens WebSockets with one set of timeouts, proxies and trust roots.
pub struct Sockets {
    timeouts: Timeouts,
    dialer: Dialer,
}

/// The server took the upgrade.
#[derive(Debug)]
pub struct Opened {
    pub socket: WebSocket,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
}

/// Why there is no WebSocket.
pub enum OpenError {
    Wire(WireError),
    /// The server answered with another status than 101.
    Refused(Reply),
}

impl From<WireError> for OpenError {
    fn from(error: WireError) -> OpenError {
        OpenError::Wire(error)
    }
}

impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Wire(error) => write!(f, "Wire({error:?})"),
            OpenError::Refused(reply) => write!(f, "Refused({})", reply.status),
        }
    }
}

impl Sockets {
    /// Takes proxies and trust roots from the environment that `host` holds. Opens nothing.
    ///
    /// [`Timeouts::connect`] bounds the lookup, the way to the host, and the wait for its answer
    /// to the upgrade, each for itself.
    pub fn new(host: &Host, timeouts: Timeouts) -> Sockets {
        Sockets { timeouts, dialer: Dialer::new(host, timeouts.connect) }
    }

    /// Opens a connection to an `http` or `https` URL. Cancelling makes this return at once.
    pub fn open(
        &self,
        url: &str,
        headers: &[Header],
        cancel: &Cancel,
    ) -> Result<Opened, OpenError> {
        if cancel.is_cancelled() {
            return Err(WireError::cancelled().into());
        }
        let url = Url::parse(url).map_err(setup)?;
        let target = self.dialer.target(&url)?;
        let mut socket = self.dialer.dial(&url, &target, cancel)?;
        let limit = self.timeouts.connect.min(self.timeouts.headers);
        match upgrade(&mut socket, &url, headers, &target, limit, cancel)? {
            Answer::Refused(reply) => Err(OpenError::Refused(reply)),
            Answer::Taken { headers, rest } => {
                let socket = WebSocket::new(socket, rest, target, self.timeouts.idle);
                Ok(Opened { socket, headers })
            }
        }
    }
}

/// An open WebSocket. Dropping it cuts the connection; [`WebSocket::close`] says goodbye first.
pub struct WebSocket {
    inner: tungstenite::WebSocket<Counted>,
    target: Target,
    idle: Duration,
    opened_at: Instant,
    /// The last one received.
    message: Utf8Bytes,
    sent_bytes: u64,
    received_bytes: u64,
    /// Something failed: nothing can be sent or received any more.
    over: bool,
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebSocket({})", self.target.authority)
    }
}

impl WebSocket {
    fn new(socket: Socket, rest: Vec<u8>, target: Target, idle: Duration) -> WebSocket {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let mut counted = Counted { socket, frames: Frames::default() };
        counted.frames.advance(&rest);
        WebSocket {
            inner: tungstenite::WebSocket::from_partially_read(
                counted,
                rest,
                Role::Client,
                Some(config),
            ),
            target,
            idle,
            opened_at: Instant::now(),
            message: Utf8Bytes::default(),
            sent_bytes: 0,
            received_bytes: 0,
            over: false,
        }
    }

    pub fn age(&self) -> Duration {
        self.opened_at.elapsed()
    }

    /// Of messages, without their framing.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Of messages, without their framing.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    fn socket(&mut self) -> &mut Socket {
        &mut self.inner.get_mut().socket
    }

    /// Runs one operation that may wait. Its failure is the connection's end.
    fn waiting<T>(
        &mut self,
        cancel: &Cancel,
        phase: Phase,
        operation: impl FnOnce(&mut WebSocket) -> Result<T, Failure>,
    ) -> Result<T, WireError> {
        if cancel.is_cancelled() {
            // Nothing was begun: the connection is as good as before.
            return Err(WireError::cancelled());
        }
        if self.over {
            return Err(self.closed(NO_CLOSE, ""));
        }
        let patience = Patience::Each(self.idle);
        self.socket().begin(cancel, patience);
        let result = operation(self);
        self.socket().end();
        result.map_err(|failure| {
            self.over = true;
            match failure {
                Failure::Told(error) => error,
                Failure::Of(error) => self.explain(error, phase),
            }
        })
    }

    /// Sends a text message, which must be UTF-8, to its last byte.
    pub fn send(&mut self, text: &[u8], cancel: &Cancel) -> Result<(), WireError> {
        self.waiting(cancel, Phase::Send, |socket| {
            let sent = socket.write_message(text);
            sent.map_err(|error| match socket.socket().stopped() {
                // Who closes while we send may have said why.
                None => Failure::Told(socket.last_words(&error)),
                Some(_) => Failure::Of(Error::Io(error)),
            })
        })?;
        self.sent_bytes += text.len() as u64;
        Ok(())
    }

    /// The frame is written here, in pieces: a message of many megabytes is never held twice.
    fn write_message(&mut self, text: &[u8]) -> io::Result<()> {
        // An answer to a ping that is not out yet goes first.
        match self.inner.flush() {
            Ok(()) => {}
            Err(Error::Io(error)) => return Err(error),
            Err(error) => return Err(io::Error::other(error)),
        }
        let mut mask = [0; 4];
        sys::random_bytes(&mut mask)?;
        let mut piece = Vec::with_capacity(WRITE_BYTES.min(text.len() + 14));
        let opcode = OpCode::Data(Data::Text);
        let head = FrameHeader { opcode, mask: Some(mask), ..FrameHeader::default() };
        head.format(text.len() as u64, &mut piece).map_err(io::Error::other)?;
        let mut rest = text;
        // Whole multiples of the mask, so that each piece begins with its first byte.
        let mut room = (WRITE_BYTES - piece.len()) / mask.len() * mask.len();
        loop {
            let (part, after) = rest.split_at(room.min(rest.len()));
            let from = piece.len();
            piece.extend_from_slice(part);
            apply_mask(&mut piece[from..], mask);
            self.socket().write_all(&piece)?;
            rest = after;
            if rest.is_empty() {
                return self.socket().flush();
            }
            piece.clear();
            room = WRITE_BYTES;
        }
    }

    /// Blocks for the next text message.
    ///
    /// Fails with `Closed` when the server closes, in whatever way, and with `Timeout` when it
    /// sends nothing at all for the idle time.
    pub fn receive(&mut self, cancel: &Cancel) -> Result<&str, WireError> {
        self.message = Utf8Bytes::default();
        self.message = self.waiting(cancel, Phase::Idle, WebSocket::next_text)?;
        self.received_bytes += self.message.len() as u64;
        Ok(self.message.as_str())
    }

    fn next_text(&mut self) -> Result<Utf8Bytes, Failure> {
        loop {
            match self.inner.read().map_err(Failure::Of)? {
                Message::Text(text) => return Ok(text),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
                Message::Binary(_) => return Err(Failure::Told(self.wrong("a binary message"))),
                Message::Close(frame) => {
                    // The answer to it, as far as that needs no waiting.
                    self.socket().end();
                    let _ = self.inner.flush();
                    return Err(Failure::Told(self.closed_by(frame)));
                }
            }
        }
    }

    /// What the server said before its connection failed with `error`.
    fn last_words(&mut self, error: &io::Error) -> WireError {
        self.socket().end();
        loop {
            match self.inner.read() {
                Ok(Message::Close(frame)) => return self.closed_by(frame),
                Ok(_) => {}
                Err(_) if is_end(error) => return self.closed(NO_CLOSE, ""),
                Err(_) => return self.target.explain_io(error),
            }
        }
    }

    /// Whether the connection can be used for another message, without waiting for anything.
    ///
    /// Answers pings that came meanwhile. Anything else that came, if only its beginning, or the
    /// end, makes it useless.
    pub fn is_alive(&mut self) -> bool {
        self.message = Utf8Bytes::default();
        self.socket().end();
        while !self.over {
            match self.inner.read() {
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.over = !self.inner.get_ref().frames.is_between_messages();
                    return !self.over;
                }
                Ok(_) | Err(_) => self.over = true,
            }
        }
        false
    }

    /// Says goodbye, as far as that needs no waiting, and ends the connection.
    pub fn close(mut self) {
        self.socket().end();
        if !self.over {
            let frame = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
            let _ = self.inner.close(Some(frame));
            self.socket().say_goodbye();
        }
    }

    fn closed_by(&self, frame: Option<CloseFrame>) -> WireError {
        match frame {
            Some(frame) => self.closed(frame.code.into(), &frame.reason),
            None => self.closed(NO_CODE, ""),
        }
    }

    fn closed(&self, code: u16, reason: &str) -> WireError {
        let through = self.target.through();
        let reason = visible_line(floor_char(reason.trim(), REASON_BYTES_MAX)).into_owned();
        let text = match code {
            NO_CLOSE => format!("{through} ended the WebSocket without closing it (code 1006)"),
            NO_CODE => format!("{through} closed the WebSocket without a code"),
            _ if reason.is_empty() => format!("{through} closed the WebSocket with code {code}"),
            _ => format!("{through} closed the WebSocket with code {code}: {reason}"),
        };
        WireError::new(WireErrorKind::Closed(code), text)
    }

    fn wrong(&self, what: &str) -> WireError {
        let host = &self.target.authority;
        let text = format!("{host} does not keep to the rules of WebSockets: it sent {what}");
        WireError::new(WireErrorKind::Protocol, text)
    }

    fn explain(&mut self, error: Error, phase: Phase) -> WireError {
        match self.socket().stopped() {
            Some(Stopped::Cancelled) => return WireError::cancelled(),
            Some(Stopped::TimedOut) => return self.target.timed_out(phase, self.idle),
            None => {}
        }
        match error {
            Error::Io(error) if is_end(&error) => self.closed(NO_CLOSE, ""),
            Error::Io(error) => self.target.explain_io(&error),
            Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                self.closed(NO_CLOSE, "")
            }
            Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => {
                let (size, max) = (human_bytes(size as u64), human_bytes(max_size as u64));
                let host = &self.target.authority;
                let text = format!("{host} sent a message of {size}; no more than {max} is taken");
                WireError::new(WireErrorKind::TooLarge, text)
            }
            Error::Utf8(_) => self.wrong("text that is not UTF-8"),
            other => self.wrong(said(&other)),
        }
    }
}

/// Eight bytes at once, which is what makes this as fast as a copy.
fn apply_mask(bytes: &mut [u8], mask: [u8; 4]) {
    let [a, b, c, d] = mask;
    let key = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = bytes.as_chunks_mut();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ key).to_ne_bytes();
    }
    rest.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
}

/// Why an operation failed: in the library's words or in ours.
enum Failure {
    Of(Error),
    Told(WireError),
}

/// The ways in which a connection can end without a close frame.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::UnexpectedEof
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::NotConnected
            | Kind::BrokenPipe
    )
}

/// What a server must not send, in our words.
fn said(error: &Error) -> &'static str {
    let Error::Protocol(error) = error else { return "what cannot be read" };
    match error {
        ProtocolError::NonZeroReservedBits => "a frame with reserved bits",
        ProtocolError::MaskedFrameFromServer => "a masked frame",
        ProtocolError::FragmentedControlFrame => "a control frame in pieces",
        ProtocolError::ControlFrameTooBig => "a control frame that is too long",
        ProtocolError::InvalidOpcode(_)
        | ProtocolError::UnknownControlFrameType(_)
        | ProtocolError::UnknownDataFrameType(_) => "a frame of an unknown kind",
        ProtocolError::UnexpectedContinueFrame => "the rest of a message that had not begun",
        ProtocolError::ExpectedFragment(_) => "a message in the middle of another",
        ProtocolError::InvalidCloseSequence => "a close frame that is cut",
        _ => "what cannot be read",
    }
}

/// The socket as the frame reader sees it. What it writes are answers to pings and to a close: who
/// is not there any more to hear them may have said more before, which is read on.
struct Counted {
    socket: Socket,
    /// Where in the server's frames the reading is.
    frames: Frames,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.socket.read(buffer)?;
        self.frames.advance(&buffer[..count]);
        Ok(count)
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.socket.write(bytes) {
            Err(error) if is_end(&error) => Ok(bytes.len()),
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.socket.flush() {
            Err(error) if is_end(&error) => Ok(()),
            result => result,
        }
    }
}

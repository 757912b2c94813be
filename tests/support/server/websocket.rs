//! The server's side of a WebSocket: frames by hand, played by a script, strict about the client's.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::support::responses_rules::{Via, check_responses_bytes};
use crate::support::server::reply::Gate;
use crate::support::server::{PATIENCE, Seen, Shared, lock};

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;
const FINAL: u8 = 0x80;

/// No test sends more in one message.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// One text message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub text: String,
    /// Counts the server's connections from 0.
    pub connection: usize,
    /// Counts the messages of this connection from 0.
    pub number: usize,
}

impl Message {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }
}

type Answer = Arc<dyn Fn(&Message) -> Ws + Send + Sync>;

#[derive(Clone)]
enum Step {
    Expect,
    /// Bytes as they are.
    Send(Vec<u8>),
    /// One write for each byte.
    SendBytewise(Vec<u8>),
    ExpectPong(Vec<u8>),
    ExpectClose(Option<u16>),
    Wait(Gate),
    Pause(Duration),
    /// Nothing more, but what comes is read, until the client goes away.
    Stall,
    /// Sends the bytes again and again until the client goes away.
    Flood(Vec<u8>),
    Reset,
    /// Ends the connection without a close frame (in TLS without the closing alert).
    Cut,
    /// Answers every message with the steps that a function of it gives.
    Each(Answer),
}

/// What happens on a connection from its upgrade on; see [`super::Reply::websocket`].
///
/// After the last step the server waits for the client to go away: a message then is one too
/// many, and fails the test.
#[derive(Clone, Default)]
pub struct Ws {
    steps: Vec<Step>,
    headers: Vec<(String, String)>,
    /// In place of the hash that the client's key asks for.
    accept: Option<String>,
    /// Names in lower case.
    left_out: Vec<String>,
    /// What comes before the answer to the upgrade, and in one write with it.
    before: Vec<u8>,
    beside: Vec<u8>,
}

impl Ws {
    pub fn new() -> Ws {
        Ws::default()
    }

    /// Answers every message by a function of it. Only the steps of what it returns are played.
    pub fn each(answer: impl Fn(&Message) -> Ws + Send + Sync + 'static) -> Ws {
        Ws::new().then_each(answer)
    }

    /// A header of the 101 answer.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Ws {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Answers the upgrade without this header.
    #[must_use]
    pub fn without_header(mut self, name: &str) -> Ws {
        self.left_out.push(name.to_lowercase());
        self
    }

    /// Answers the upgrade with this `Sec-WebSocket-Accept`.
    #[must_use]
    pub fn accept(mut self, accept: &str) -> Ws {
        self.accept = Some(accept.into());
        self
    }

    /// Bytes before the answer to the upgrade.
    #[must_use]
    pub fn interim(mut self, answer: &str) -> Ws {
        self.before.extend_from_slice(answer.as_bytes());
        self
    }

    /// A text message in one write with the answer to the upgrade.
    #[must_use]
    pub fn beside(mut self, text: &str) -> Ws {
        self.beside.extend(frame(FINAL | TEXT, text.as_bytes()));
        self
    }

    fn step(mut self, step: Step) -> Ws {
        self.steps.push(step);
        self
    }

    /// The steps of another script behind those of this one.
    #[must_use]
    pub fn then(mut self, next: Ws) -> Ws {
        self.steps.extend(next.steps);
        self
    }

    /// Waits for one text message, which [`super::Server::messages`] then lists. Pings that come
    /// before it are answered.
    #[must_use]
    pub fn expect(self) -> Ws {
        self.step(Step::Expect)
    }

    #[must_use]
    pub fn then_each(self, answer: impl Fn(&Message) -> Ws + Send + Sync + 'static) -> Ws {
        self.step(Step::Each(Arc::new(answer)))
    }

    #[must_use]
    pub fn text(self, text: &str) -> Ws {
        self.raw(frame(FINAL | TEXT, text.as_bytes()))
    }

    #[must_use]
    pub fn json(self, value: &Value) -> Ws {
        self.text(&value.to_string())
    }

    /// A text message for every value, all in one write.
    #[must_use]
    pub fn events<'a>(self, values: impl IntoIterator<Item = &'a Value>) -> Ws {
        let frames = values.into_iter().map(|value| value.to_string());
        self.raw(frames.flat_map(|text| frame(FINAL | TEXT, text.as_bytes())).collect::<Vec<u8>>())
    }

    /// A text message whose every byte is its own write.
    #[must_use]
    pub fn text_bytewise(self, text: &str) -> Ws {
        self.step(Step::SendBytewise(frame(FINAL | TEXT, text.as_bytes())))
    }

    #[must_use]
    pub fn binary(self, bytes: &[u8]) -> Ws {
        self.raw(frame(FINAL | BINARY, bytes))
    }

    /// One text message in `pieces` frames of about the same size, cut anywhere.
    #[must_use]
    pub fn fragments(self, text: &str, pieces: usize) -> Ws {
        fragments(text, pieces).into_iter().fold(self, Ws::raw)
    }

    /// The same with a ping after half of it; the rest comes only when its pong has come.
    #[must_use]
    pub fn fragments_around_ping(self, text: &str, pieces: usize, ping: &str) -> Ws {
        let mut fragments = fragments(text, pieces);
        let rest = fragments.split_off(pieces / 2);
        let half = fragments.into_iter().fold(self, Ws::raw).ping(ping).expect_pong(ping);
        rest.into_iter().fold(half, Ws::raw)
    }

    #[must_use]
    pub fn ping(self, payload: &str) -> Ws {
        self.raw(frame(FINAL | PING, payload.as_bytes()))
    }

    /// A pong that nobody asked for.
    #[must_use]
    pub fn pong(self, payload: &str) -> Ws {
        self.raw(frame(FINAL | PONG, payload.as_bytes()))
    }

    /// Waits for the pong with this payload; any other frame before it fails the test.
    #[must_use]
    pub fn expect_pong(self, payload: &str) -> Ws {
        self.step(Step::ExpectPong(payload.into()))
    }

    /// Waits for the client's close frame with this code, `None` for one without a code.
    #[must_use]
    pub fn expect_close(self, code: Option<u16>) -> Ws {
        self.step(Step::ExpectClose(code))
    }

    /// Bytes as they are; see [`frame`].
    #[must_use]
    pub fn raw(self, bytes: impl Into<Vec<u8>>) -> Ws {
        self.step(Step::Send(bytes.into()))
    }

    /// Reads nothing and sends nothing until the gate opens.
    #[must_use]
    pub fn wait(self, gate: &Gate) -> Ws {
        self.step(Step::Wait(gate.clone()))
    }

    /// Time passes: for what depends on nothing else.
    #[must_use]
    pub fn pause(self, millis: u64) -> Ws {
        self.step(Step::Pause(Duration::from_millis(millis)))
    }

    /// A close frame; the connection ends when the client has answered it.
    #[must_use]
    pub fn close(self, code: u16) -> Ws {
        self.close_with(code, b"")
    }

    #[must_use]
    pub fn close_with(self, code: u16, reason: &[u8]) -> Ws {
        self.raw(frame(FINAL | CLOSE, &[&code.to_be_bytes()[..], reason].concat()))
    }

    /// A close frame without a code.
    #[must_use]
    pub fn close_without_code(self) -> Ws {
        self.raw(frame(FINAL | CLOSE, b""))
    }

    /// The connection ends without a close frame.
    #[must_use]
    pub fn cut(self) -> Ws {
        self.step(Step::Cut)
    }

    /// The connection ends with a TCP reset.
    #[must_use]
    pub fn reset(self) -> Ws {
        self.step(Step::Reset)
    }

    /// Nothing more comes, pongs included, but the connection stays open.
    #[must_use]
    pub fn stall(self) -> Ws {
        self.step(Step::Stall)
    }

    /// The bytes come again and again until the client goes away.
    #[must_use]
    pub fn flood(self, bytes: impl Into<Vec<u8>>) -> Ws {
        self.step(Step::Flood(bytes.into()))
    }
}

/// A frame of a server: the first byte (final bit, reserved bits, kind), its length and its payload.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = frame_head(first, payload.len() as u64);
    out.extend_from_slice(payload);
    out
}

/// The head alone of a frame that claims so many bytes.
pub fn frame_head(first: u8, length: u64) -> Vec<u8> {
    let mut out = vec![first];
    match length {
        0..126 => out.push(length as u8),
        126..0x1_0000 => {
            out.push(126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(127);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
    out
}

fn fragments(text: &str, pieces: usize) -> Vec<Vec<u8>> {
    let bytes = text.as_bytes();
    let at = |piece: usize| bytes.len() * piece / pieces;
    let piece = |idx: usize| {
        let kind = if idx == 0 { TEXT } else { CONTINUATION };
        let last = if idx + 1 == pieces { FINAL } else { 0 };
        frame(last | kind, &bytes[at(idx)..at(idx + 1)])
    };
    (0..pieces).map(piece).collect()
}

/// `Sec-WebSocket-Accept` for a key.
fn accept_for(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let hash = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    STANDARD.encode(hash)
}

/// What is wrong with a request for an upgrade.
fn check_upgrade(seen: &Seen) -> Result<(), String> {
    let header = |name: &str| seen.header(name).unwrap_or_default();
    let key = STANDARD.decode(header("sec-websocket-key")).unwrap_or_default();
    let tokens = header("connection").to_lowercase();
    let checks = [
        (seen.method == "GET", "the method is not GET"),
        (header("upgrade").eq_ignore_ascii_case("websocket"), "no Upgrade: websocket"),
        (tokens.split(',').any(|token| token.trim() == "upgrade"), "no Connection: Upgrade"),
        (header("sec-websocket-version") == "13", "Sec-WebSocket-Version is not 13"),
        (key.len() == 16, "Sec-WebSocket-Key is not 16 bytes in base64"),
        (!header("host").is_empty(), "no Host"),
        (header("sec-websocket-extensions").is_empty(), "an extension is offered"),
    ];
    match checks.iter().find(|(fine, _)| !fine) {
        Some((_, wrong)) => Err(format!("{} {}: {wrong}", seen.method, seen.path)),
        None => Ok(()),
    }
}

/// Answers the upgrade and plays the script to its end.
pub(super) fn serve<S: Read + Write>(
    ws: &Ws,
    stream: &mut BufReader<S>,
    raw: &TcpStream,
    seen: &Seen,
    shared: &Shared,
) -> io::Result<()> {
    if let Err(wrong) = check_upgrade(seen) {
        shared.violation(wrong);
        return stream
            .get_mut()
            .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    }
    let accept = ws.accept.clone();
    let accept =
        accept.unwrap_or_else(|| accept_for(seen.header("sec-websocket-key").unwrap_or_default()));
    let mut head = "HTTP/1.1 101 Switching Protocols\r\n".to_owned();
    let usual =
        [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", &accept)];
    let own = ws.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in usual.into_iter().chain(own) {
        if !ws.left_out.contains(&name.to_lowercase()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str("\r\n");
    let mut play =
        Play { stream, raw, shared, seen, connection: seen.connection, messages: 0, over: false };
    play.send(&[&ws.before, head.as_bytes(), &ws.beside].concat())?;
    play.steps(&ws.steps)?;
    if !play.over {
        play.until_gone()?;
    }
    Ok(())
}

/// One connection while its script is played.
struct Play<'a, S> {
    stream: &'a mut BufReader<S>,
    raw: &'a TcpStream,
    shared: &'a Shared,
    /// The request for the upgrade.
    seen: &'a Seen,
    connection: usize,
    messages: usize,
    /// Nothing more is played: the connection has ended or must be dropped.
    over: bool,
}

impl<S: Read + Write> Play<'_, S> {
    fn steps(&mut self, steps: &[Step]) -> io::Result<()> {
        for step in steps {
            if self.over {
                return Ok(());
            }
            self.step(step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Expect => {
                self.message()?;
            }
            Step::Send(bytes) => self.send(bytes)?,
            Step::SendBytewise(bytes) => {
                for byte in bytes {
                    self.send(&[*byte])?;
                }
            }
            Step::ExpectPong(payload) => {
                let known = |kind, got: &[u8]| kind == PONG && got == payload;
                self.expect_control("a pong", known)?;
            }
            Step::ExpectClose(code) => {
                let code = code.map(u16::to_be_bytes);
                let code = code.as_ref().map_or(&[][..], |code| &code[..]);
                let known = |kind, got: &[u8]| kind == CLOSE && got.get(..2).unwrap_or(got) == code;
                self.expect_control("a close frame", known)?;
                self.end()?;
            }
            Step::Wait(gate) => gate.wait(),
            Step::Pause(time) => std::thread::sleep(*time),
            Step::Stall => {
                let mut sink = [0; 1024];
                while self.stream.read(&mut sink)? > 0 {}
                self.end()?;
            }
            Step::Flood(bytes) => loop {
                self.send(bytes)?;
            },
            Step::Reset => {
                // Lingering for no time makes the close a reset, once every handle is dropped.
                socket2::SockRef::from(self.raw).set_linger(Some(Duration::ZERO))?;
                self.over = true;
            }
            Step::Cut => self.end()?,
            Step::Each(answer) => {
                while let Some(message) = self.message()? {
                    self.steps(&answer(&message).steps)?;
                    if self.over {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)?;
        self.stream.get_mut().flush()
    }

    fn end(&mut self) -> io::Result<()> {
        self.over = true;
        self.raw.shutdown(Shutdown::Both)
    }

    /// The next text message, recorded; `None` when the client closes instead.
    fn message(&mut self) -> io::Result<Option<Message>> {
        let mut text = Vec::new();
        loop {
            let Some((first, payload)) = self.frame()? else {
                self.over = true;
                return Ok(None);
            };
            match first & 0x0F {
                TEXT | CONTINUATION => {
                    if (first & 0x0F == TEXT) != text.is_empty() {
                        return self.violation("a message's frames are in disorder");
                    }
                    text.extend_from_slice(&payload);
                    if first & FINAL == 0 {
                        continue;
                    }
                    let Ok(text) = String::from_utf8(text) else {
                        return self.violation("a text message is not UTF-8");
                    };
                    if let Err(wrong) = self.check(&text) {
                        return self.violation(&wrong);
                    }
                    let number = self.messages;
                    self.messages += 1;
                    let message = Message { text, connection: self.connection, number };
                    lock(&self.shared.state).messages.push(message.clone());
                    self.shared.changed.notify_all();
                    return Ok(Some(message));
                }
                PING => self.send(&frame(FINAL | PONG, &payload))?,
                PONG => {}
                CLOSE => {
                    self.closed(&payload)?;
                    return Ok(None);
                }
                kind => return self.violation(&format!("a frame of kind {kind}")),
            }
        }
    }

    /// Holds a message against the rules of a strict server.
    fn check(&self, text: &str) -> Result<(), String> {
        let strict = lock(&self.shared.state).strict && self.seen.path.ends_with("/responses");
        if !strict {
            return Ok(());
        }
        check_responses_bytes(text.as_bytes(), &self.seen.path, Via::WebSocket)
    }

    /// Answers the client's close frame and ends.
    fn closed(&mut self, payload: &[u8]) -> io::Result<()> {
        // The client may be gone already: it need not wait for this.
        let _ = self.send(&frame(FINAL | CLOSE, payload));
        self.end()
    }

    fn expect_control(&mut self, what: &str, known: impl Fn(u8, &[u8]) -> bool) -> io::Result<()> {
        self.raw.set_read_timeout(Some(PATIENCE))?;
        let frame = self.frame();
        self.raw.set_read_timeout(None)?;
        match frame {
            Ok(Some((first, payload))) if known(first & 0x0F, &payload) => Ok(()),
            other => self.violation(&format!("{what} was expected, not {other:?}")),
        }
    }

    /// Waits for the client's end after the script's.
    fn until_gone(&mut self) -> io::Result<()> {
        while let Some((first, payload)) = self.frame()? {
            match first & 0x0F {
                CLOSE => return self.closed(&payload),
                PING | PONG => {}
                _ => return self.violation("the script has nothing left for a message"),
            }
        }
        self.end()
    }

    fn violation<T>(&mut self, what: &str) -> io::Result<T> {
        self.shared.violation(format!("connection {}: {what}", self.connection));
        self.end()?;
        Err(io::Error::other("a violation"))
    }

    /// The first byte and the unmasked payload of the client's next frame; `None` at the end.
    fn frame(&mut self) -> io::Result<Option<(u8, Vec<u8>)>> {
        let mut head = [0; 2];
        match self.stream.read(&mut head[..1]) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
        self.stream.read_exact(&mut head[1..])?;
        if head[1] & 0x80 == 0 {
            return self.violation("a frame is not masked");
        }
        if head[0] & 0x70 != 0 {
            return self.violation("a frame has reserved bits");
        }
        let length = match head[1] & 0x7F {
            126 => {
                let mut length = [0; 2];
                self.stream.read_exact(&mut length)?;
                usize::from(u16::from_be_bytes(length))
            }
            127 => {
                let mut length = [0; 8];
                self.stream.read_exact(&mut length)?;
                u64::from_be_bytes(length) as usize
            }
            length => usize::from(length),
        };
        if head[0] & 0x08 != 0 && (length > 125 || head[0] & FINAL == 0) {
            return self.violation("a control frame is long or fragmented");
        }
        if length > MESSAGE_BYTES_MAX {
            return self.violation("a frame is too long");
        }
        let mut mask = [0; 4];
        self.stream.read_exact(&mut mask)?;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        for (byte, key) in payload.iter_mut().zip(mask.iter().cycle()) {
            *byte ^= key;
        }
        Ok(Some((head[0], payload)))
    }
}

//! A scripted server on loopback: plays exact bytes, records requests, refuses bad histories.
//!
//! A script is a list of [`Reply`]s, used up in the order in which requests arrive, over any
//! number of connections. Nothing in here waits for time: a reply waits for a [`Gate`], or stalls
//! until the client goes away. Dropping the server closes every connection and fails the test
//! when a request broke the rules of a strict server (see [`Server::allow_any_request`]).

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::history;

/// How long a test waits for something that should happen at once.
const PATIENCE: Duration = Duration::from_secs(20);

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

    fn wait(&self) {
        let closed = |open: &mut bool| !*open;
        let _ = self.0.1.wait_timeout_while(lock(&self.0.0), PATIENCE, closed);
    }
}

#[derive(Clone)]
enum Step {
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

    fn steps(&self) -> Vec<Step> {
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
        404 => "Not Found",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

/// One request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Counts the connections from 0.
    pub connection: usize,
    pub at: Instant,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// What a scripted server does with a request that has no reply left in the script.
type Fallback = Box<dyn Fn(&Seen) -> Reply + Send + Sync>;

struct State {
    replies: VecDeque<Reply>,
    seen: Vec<Seen>,
    violations: Vec<String>,
    strict: bool,
    /// By connection, to end them all when the server is dropped.
    open: Vec<Option<TcpStream>>,
    connections: usize,
    stopped: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    fallback: Option<Fallback>,
    tls: Option<Arc<rustls::ServerConfig>>,
    refuse_connect: bool,
}

pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers with `replies` in order; a request too many is a failure of the test.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Server {
        Server::launch(replies.into_iter().collect(), None, None, false)
    }

    /// A proxy that takes no CONNECT: the script answers it. (Any other server takes CONNECT and
    /// is then itself at the end of the tunnel.)
    pub fn start_refusing_connect(replies: impl IntoIterator<Item = Reply>) -> Server {
        Server::launch(replies.into_iter().collect(), None, None, true)
    }

    /// Answers every request by a function of it.
    pub fn with(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Server {
        Server::launch(VecDeque::new(), Some(Box::new(answer)), None, false)
    }

    pub fn start_tls(
        config: Arc<rustls::ServerConfig>,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Server {
        Server::launch(replies.into_iter().collect(), None, Some(config), false)
    }

    fn launch(
        replies: VecDeque<Reply>,
        fallback: Option<Fallback>,
        tls: Option<Arc<rustls::ServerConfig>>,
        refuse_connect: bool,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind loopback");
        let address = listener.local_addr().expect("bound above");
        let state = State {
            replies,
            seen: Vec::new(),
            violations: Vec::new(),
            strict: true,
            open: Vec::new(),
            connections: 0,
            stopped: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            fallback,
            tls,
            refuse_connect,
        });
        let for_acceptor = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&listener, &for_acceptor));
        Server { address, shared, acceptor: Some(acceptor) }
    }

    /// Takes requests whatever their body is: for servers that are no chat server.
    #[must_use]
    pub fn allow_any_request(self) -> Server {
        lock(&self.shared.state).strict = false;
        self
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// Adds a reply at the end of the script.
    pub fn push(&self, reply: Reply) {
        lock(&self.shared.state).replies.push_back(reply);
    }

    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.state).seen.clone()
    }

    /// Waits until `count` requests have arrived, and returns all that have.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<Seen> {
        let few = |state: &mut State| state.seen.len() < count;
        let state = lock(&self.shared.state);
        let (state, timeout) = self
            .shared
            .changed
            .wait_timeout_while(state, PATIENCE, few)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "only {} of {count} requests arrived", state.seen.len());
        state.seen.clone()
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        lock(&self.shared.state).connections
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let violations = {
            let mut state = lock(&self.shared.state);
            state.stopped = true;
            for stream in state.open.iter().flatten() {
                let _ = stream.shutdown(Shutdown::Both);
            }
            std::mem::take(&mut state.violations)
        };
        let _ = TcpStream::connect(self.address); // wakes `accept`
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        if !violations.is_empty() && !std::thread::panicking() {
            panic!("the server refused requests:\n{}", violations.join("\n"));
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let mut state = lock(&shared.state);
        if state.stopped {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Ok(clone) = stream.try_clone() else { continue };
        state.open.push(Some(clone));
        let connection = state.connections;
        state.connections += 1;
        drop(state);
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // A connection that fails is the client's business: the test sees it there.
            let _ = serve(stream, connection, &shared);
            lock(&shared.state).open[connection] = None;
        });
    }
}

fn serve(tcp: TcpStream, connection: usize, shared: &Shared) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let raw = tcp.try_clone()?;
    match &shared.tls {
        None => converse(&mut BufReader::new(tcp), &raw, connection, shared),
        Some(config) => {
            let tls =
                rustls::ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
            let stream = rustls::StreamOwned::new(tls, tcp);
            converse(&mut BufReader::new(stream), &raw, connection, shared)
        }
    }
}

fn converse<S: Read + Write>(
    stream: &mut BufReader<S>,
    raw: &TcpStream,
    connection: usize,
    shared: &Shared,
) -> io::Result<()> {
    while let Some(seen) = read_request(stream, connection)? {
        if seen.method == "CONNECT" && !shared.refuse_connect {
            // Proxy and target in one: what follows in the tunnel is a request as any other.
            lock(&shared.state).seen.push(seen);
            stream.get_mut().write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            continue;
        }
        let reply = answer(seen, shared);
        for step in reply.steps() {
            match play(step, stream, raw)? {
                Played::Next => {}
                Played::Over => return raw.shutdown(Shutdown::Both),
                Played::Reset => return Ok(()),
            }
        }
    }
    Ok(())
}

/// The reply to this request; records it and checks it.
fn answer(seen: Seen, shared: &Shared) -> Reply {
    let mut state = lock(&shared.state);
    let mut wrong = None;
    if state.strict && seen.method == "POST" && seen.path.ends_with("/chat/completions") {
        wrong = history::check_chat_body(&seen.body).err();
    }
    state.seen.push(seen.clone());
    shared.changed.notify_all();
    if let Some(wrong) = wrong {
        let number = state.seen.len();
        state.violations.push(format!("request {number}: {wrong}"));
        return Reply::error(400, "invalid_request", &wrong);
    }
    if let Some(fallback) = &shared.fallback {
        drop(state);
        return fallback(&seen);
    }
    match state.replies.pop_front() {
        Some(reply) => reply,
        None => {
            let text = format!("{} {}: the script has no reply left", seen.method, seen.path);
            state.violations.push(text.clone());
            Reply::error(410, "script_exhausted", &text)
        }
    }
}

enum Played {
    Next,
    Over,
    /// The connection must be dropped without a shutdown.
    Reset,
}

fn play<S: Read + Write>(
    step: Step,
    stream: &mut BufReader<S>,
    raw: &TcpStream,
) -> io::Result<Played> {
    match step {
        Step::Send(bytes) => {
            stream.get_mut().write_all(&bytes)?;
            stream.get_mut().flush()?;
        }
        Step::SendBytewise(bytes) => {
            for byte in bytes {
                stream.get_mut().write_all(&[byte])?;
                stream.get_mut().flush()?;
            }
        }
        Step::Wait(gate) => gate.wait(),
        Step::Stall => return drained(stream),
        Step::Flood(bytes) => loop {
            stream.get_mut().write_all(&bytes)?;
        },
        Step::Reset => {
            // Lingering for no time makes the close a reset; `serve` then drops every handle.
            socket2::SockRef::from(raw).set_linger(Some(Duration::ZERO))?;
            return Ok(Played::Reset);
        }
        Step::HalfClose => {
            raw.shutdown(Shutdown::Write)?;
            return drained(stream);
        }
        Step::Close => return Ok(Played::Over),
    }
    Ok(Played::Next)
}

/// Reads until the client goes away.
fn drained<S: Read>(stream: &mut BufReader<S>) -> io::Result<Played> {
    let mut sink = [0; 1024];
    while stream.read(&mut sink)? > 0 {}
    Ok(Played::Over)
}

fn read_request<S: Read + Write>(
    stream: &mut BufReader<S>,
    connection: usize,
) -> io::Result<Option<Seen>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let mut seen = Seen { method, path, headers, body: Vec::new(), connection, at: Instant::now() };
    if seen.header("transfer-encoding") == Some("chunked") {
        return Err(io::Error::other("a chunked request"));
    }
    let length = seen.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    seen.body = vec![0; length];
    stream.read_exact(&mut seen.body)?;
    Ok(Some(seen))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

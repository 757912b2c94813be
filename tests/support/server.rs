//! A scripted server on loopback: plays exact bytes, records requests, refuses bad histories.
//!
//! A script is a list of [`Reply`]s, used up in the order in which requests arrive, over any
//! number of connections. Nothing in here waits for time: a reply waits for a [`Gate`], or stalls
//! until the client goes away. Dropping the server closes every connection and fails the test
//! when a request broke the rules of a strict server (see [`Server::allow_any_request`]).
//! A reply may be a WebSocket ([`Reply::websocket`]), which plays a script of its own.

mod reply;
mod websocket;

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

// The benchmarks use a part of this.
#[allow(unused_imports)]
pub use reply::{Framing, Gate, Reply};
#[allow(unused_imports)]
pub use websocket::{Message, Ws, frame, frame_head};

use crate::support::history;
use crate::support::responses_rules::{Via, check_responses_bytes};
use reply::Step;

/// How long a test waits for something that should happen at once.
const PATIENCE: Duration = Duration::from_secs(20);

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
    messages: Vec<Message>,
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

impl Shared {
    fn violation(&self, wrong: String) {
        lock(&self.state).violations.push(wrong);
    }
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

    /// Answers prompts with `replies` in order, and no question about the server's models.
    pub fn for_prompts(replies: impl IntoIterator<Item = Reply>) -> Server {
        let script = Mutex::new(replies.into_iter().collect::<VecDeque<_>>());
        Server::with(move |seen| match seen.method.as_str() {
            "POST" if seen.path.starts_with("/v1/") => lock(&script)
                .pop_front()
                .unwrap_or_else(|| Reply::error(410, "gone", "the script has no reply left")),
            _ => Reply::error(404, "not_found", "no such path"),
        })
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
            messages: Vec::new(),
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

    /// The text messages of all WebSockets, in the order of their arrival.
    pub fn messages(&self) -> Vec<Message> {
        lock(&self.shared.state).messages.clone()
    }

    /// Waits until `count` messages have arrived, and returns all that have.
    #[track_caller]
    pub fn wait_for_messages(&self, count: usize) -> Vec<Message> {
        let few = |state: &mut State| state.messages.len() < count;
        let state = lock(&self.shared.state);
        let (state, timeout) = self
            .shared
            .changed
            .wait_timeout_while(state, PATIENCE, few)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "only {} of {count} messages arrived", state.messages.len());
        state.messages.clone()
    }

    /// Waits until every connection that was accepted has ended.
    #[track_caller]
    pub fn wait_until_gone(&self) {
        let open = |state: &mut State| state.open.iter().any(Option::is_some);
        let state = lock(&self.shared.state);
        let (_state, timeout) = self
            .shared
            .changed
            .wait_timeout_while(state, PATIENCE, open)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "a connection is still open");
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
            shared.changed.notify_all();
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

trait Both: Read + Write {}

impl<S: Read + Write> Both for S {}

/// What goes through a tunnel, whose first bytes may have been read already.
struct Within<'a, S>(&'a mut BufReader<S>);

impl<S: Read> Read for Within<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<S: Write> Write for Within<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.get_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.get_mut().flush()
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
            let tunnel = seen.path.clone();
            lock(&shared.state).seen.push(seen);
            let secure = tunnel.ends_with(":443");
            stream.get_mut().write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            if let Some(config) = shared.tls.as_ref().filter(|_| secure) {
                // A TLS proxy, and TLS to the target within.
                let tls =
                    rustls::ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                let within: Box<dyn Both + '_> =
                    Box::new(rustls::StreamOwned::new(tls, Within(stream)));
                return converse(&mut BufReader::new(within), raw, connection, shared);
            }
            continue;
        }
        let reply = answer(seen.clone(), shared);
        if let Some(ws) = &reply.websocket {
            return websocket::serve(ws, stream, raw, &seen, shared);
        }
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
    if state.strict && seen.method == "POST" && seen.path.ends_with("/responses") {
        wrong = check_responses_bytes(&seen.body, &seen.path, Via::Http).err();
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

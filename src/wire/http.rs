//! HTTP over TCP and TLS: the only code that touches the network.
//!
//! A call's connect, TLS handshake and wait for headers run on a thread of their own; the body is
//! then read on the caller's thread, while that other thread watches for silence. Cancelling
//! shuts the socket down from outside, so that a blocked read fails at once. A name lookup and a
//! TCP connect cannot be interrupted: the caller still returns at once, and their thread ends
//! when [`Timeouts::connect`] is over (a lookup: when the system's resolver gives up).
//!
//! No redirects are followed and no response is decompressed. Connections are kept open for the
//! next call when the body was read to its end.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, select, unbounded};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Timeout};

use crate::cancel::{Cancel, Closer};
use crate::host::Host;
use crate::wire::names::own_addresses;
use crate::wire::proxy::Proxies;
use crate::wire::target::{Target, plain, setup};
use crate::wire::tls;
use crate::wire::transport::{Body, Call, Phase, Reply, Transport, WireError, WireErrorKind};
use crate::wire::url::{Url, bracketed};

/// How etch names itself to servers.
pub const USER_AGENT: &str = concat!("etch/", env!("CARGO_PKG_VERSION"));

/// What one read of a body brings at most.
const READ_BYTES: usize = 16 << 10;
/// Buffers of one connection, each way.
const SOCKET_BUFFER_BYTES: usize = 32 << 10;
/// After the answer is complete, how long the rest of its body may take before the connection is
/// given up instead of kept.
const DRAIN_MAX: Duration = Duration::from_millis(50);
/// After the answer is complete but for trailing data, how long that may take.
const TRAILER_MAX: Duration = Duration::from_secs(10);
/// An unused connection older than this is not used again.
const KEEP_MAX: Duration = Duration::from_secs(60);

/// Each one names itself in its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the name lookup, and for TCP, proxy and TLS together.
    pub connect: Duration,
    /// From the request's last byte to the end of the response's headers. Local models think
    /// before they answer at all.
    pub headers: Duration,
    /// Between two reads of the body, and for each write of the request. Any byte counts as
    /// life, comments in an event stream included.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            connect: Duration::from_secs(10),
            headers: Duration::from_secs(600),
            idle: Duration::from_secs(300),
        }
    }
}

/// HTTP connections with one set of timeouts, proxies and trust roots.
pub struct Http {
    timeouts: Timeouts,
    proxies: Proxies,
    /// `SSL_CERT_FILE`: replaces the built-in roots.
    roots_file: Option<PathBuf>,
    kept: Kept,
}

/// Agents that no call uses, each with the origin it was made for. One agent serves one call at a
/// time, because cancelling a call shuts its agent down.
type Kept = Arc<Mutex<Vec<(String, Agent)>>>;

impl Http {
    /// Takes proxies and trust roots from the environment that `host` holds. Opens nothing.
    pub fn new(host: &Host, timeouts: Timeouts) -> Http {
        Http {
            timeouts,
            proxies: Proxies::from_host(host),
            roots_file: host.var("SSL_CERT_FILE").map(|path| host.cwd().join(path)),
            kept: Kept::default(),
        }
    }

    fn agent(&self, target: &Target) -> Result<Agent, WireError> {
        let mut kept = lock(&self.kept);
        if let Some(at) = kept.iter().position(|(origin, _)| *origin == target.origin) {
            return Ok(kept.swap_remove(at).1);
        }
        drop(kept);
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(USER_AGENT)
            .input_buffer_size(SOCKET_BUFFER_BYTES)
            .output_buffer_size(SOCKET_BUFFER_BYTES)
            .max_idle_age(KEEP_MAX)
            .timeout_resolve(Some(self.timeouts.connect))
            .timeout_connect(Some(self.timeouts.connect))
            .timeout_recv_response(Some(self.timeouts.headers))
            .timeout_per_write(Some(self.timeouts.idle))
            .proxy(None);
        if let Some(proxy) = &target.proxy {
            let proxy = ureq::Proxy::new(proxy.url())
                .map_err(|_| setup(format!("the proxy {} cannot be used", proxy.shown)))?;
            config = config.proxy(Some(proxy));
        }
        // A proxy may be spoken to by TLS as well.
        if target.https || target.proxy.is_some() {
            let mut tls = TlsConfig::builder().unversioned_rustls_crypto_provider(tls::provider());
            if let Some(path) = &self.roots_file {
                let roots = tls::read_roots(path).map_err(setup)?;
                let roots = roots.iter().map(|root| Certificate::from_der(root).to_owned());
                tls = tls.root_certs(RootCerts::new_with_certs(&roots.collect::<Vec<_>>()));
            }
            config = config.tls_config(tls.build());
        }
        Ok(Agent::with_parts(config.build(), DefaultConnector::default(), OwnResolver))
    }
}

impl Transport for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    fn send(&self, call: Call, cancel: &Cancel) -> Result<Reply, WireError> {
        if cancel.is_cancelled() {
            return Err(WireError::cancelled());
        }
        let url = Url::parse(&call.url).map_err(setup)?;
        let target = Target::new(&url, &self.proxies)?;
        let agent = self.agent(&target)?;
        let for_closer = agent.clone();
        let closer = cancel.on_cancel(move || for_closer.shutdown());
        let (watch, reply_receiver) = start(&agent, call, self.timeouts.idle)
            .map_err(|e| setup(format!("cannot start a thread for the request: {e}")))?;
        let answer = select! {
            recv(reply_receiver) -> answer => answer,
            recv(cancel.channel()) -> _ => {
                agent.shutdown();
                return Err(WireError::cancelled());
            }
        };
        if cancel.is_cancelled() {
            agent.shutdown();
            return Err(WireError::cancelled());
        }
        let gone = || WireError::new(WireErrorKind::Protocol, "the request's thread panicked");
        let response =
            answer.map_err(|_| gone())?.map_err(|e| explain(e, &target, self.timeouts))?;
        Ok(reply(
            response,
            Live {
                reader: None,
                buffer: Box::new([0; READ_BYTES]),
                watch,
                cancel: cancel.clone(),
                closer: Some(closer),
                agent: Some(agent),
                kept: Arc::clone(&self.kept),
                idle_max: self.timeouts.idle,
                target,
            },
        ))
    }
}

fn reply(response: ureq::http::Response<ureq::Body>, mut live: Live) -> Reply {
    let (parts, body) = response.into_parts();
    let text = |value: &ureq::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into();
    let headers = parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value)));
    let headers = headers.collect();
    live.reader = Some(body.into_reader());
    Reply { status: parts.status.as_u16(), headers, body: Box::new(live) }
}

type Answer = Result<ureq::http::Response<ureq::Body>, ureq::Error>;

/// Starts the call on its own thread, which afterwards watches the body for silence until the
/// [`Watch`] is dropped.
fn start(agent: &Agent, call: Call, idle: Duration) -> io::Result<(Watch, Receiver<Answer>)> {
    let (sender, receiver) = bounded(1);
    // A limit is never lost: one may follow another before the first was seen.
    let (limit_sender, limits) = unbounded();
    let shared = Arc::new(Silence {
        start: Instant::now(),
        since_millis: AtomicU64::new(u64::MAX),
        expired: AtomicBool::new(false),
    });
    let (agent, silence) = (agent.clone(), Arc::clone(&shared));
    std::thread::Builder::new().name("etch-request".into()).spawn(move || {
        let answer = run(&agent, call);
        if sender.send(answer).is_ok() {
            watch_silence(&silence, &limits, idle, &agent);
        }
    })?;
    Ok((Watch { silence: shared, limits: limit_sender }, receiver))
}

fn run(agent: &Agent, call: Call) -> Answer {
    let mut request = ureq::http::Request::builder().uri(&call.url);
    for header in call.headers {
        request = request.header(header.name, header.value);
    }
    match call.body {
        Some(body) => agent.run(request.method("POST").body(body)?),
        None => agent.run(request.method("GET").body(())?),
    }
}

/// How long the current read has been waiting.
struct Silence {
    start: Instant,
    /// When the read in progress began, since `start`; `u64::MAX`: none is in progress.
    since_millis: AtomicU64,
    expired: AtomicBool,
}

impl Silence {
    fn now_millis(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }

    /// How long the read in progress waits; nothing while none is.
    fn lasts(&self) -> Duration {
        let since = self.since_millis.load(Ordering::Acquire);
        Duration::from_millis(self.now_millis().saturating_sub(since))
    }
}

struct Watch {
    silence: Arc<Silence>,
    /// How long the body may take from now on; closed when it is done with.
    limits: Sender<Duration>,
}

fn watch_silence(silence: &Silence, limits: &Receiver<Duration>, idle: Duration, agent: &Agent) {
    let mut deadline: Option<Instant> = None;
    let mut wait = idle;
    loop {
        match limits.recv_timeout(wait) {
            Ok(limit) => {
                deadline = Some(Instant::now() + limit);
                wait = limit;
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let left = match deadline {
                    Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                    None => idle.saturating_sub(silence.lasts()),
                };
                if left.is_zero() {
                    silence.expired.store(true, Ordering::Release);
                    agent.clone().shutdown();
                    return;
                }
                wait = left.max(Duration::from_millis(1));
            }
        }
    }
}

/// The body of a live reply.
struct Live {
    /// `None` after the end or an error.
    reader: Option<ureq::BodyReader<'static>>,
    buffer: Box<[u8; READ_BYTES]>,
    watch: Watch,
    cancel: Cancel,
    /// `None` once the agent was given back: cancelling must not shut down what is kept.
    closer: Option<Closer>,
    /// `None` when it was given back.
    agent: Option<Agent>,
    kept: Kept,
    idle_max: Duration,
    target: Target,
}

impl Live {
    fn read(&mut self) -> Result<usize, WireError> {
        let Some(reader) = &mut self.reader else { return Ok(0) };
        if self.cancel.is_cancelled() {
            return Err(WireError::cancelled());
        }
        let silence = &self.watch.silence;
        silence.since_millis.store(silence.now_millis(), Ordering::Release);
        let result = reader.read(&mut self.buffer[..]);
        silence.since_millis.store(u64::MAX, Ordering::Release);
        match result {
            Ok(count) if count > 0 => return Ok(count),
            // A socket that was shut down can look like a proper end: ask first.
            _ if self.cancel.is_cancelled() => return Err(WireError::cancelled()),
            _ if silence.expired.load(Ordering::Acquire) => {
                return Err(self.target.timed_out(Phase::Idle, self.idle_max));
            }
            Ok(_) => {}
            Err(error) => {
                return Err(explain(
                    ureq::Error::from(error),
                    &self.target,
                    Timeouts { idle: self.idle_max, ..Timeouts::default() },
                ));
            }
        }
        self.reader = None; // the connection goes back to its agent
        self.closer = None;
        if !self.cancel.is_cancelled() && !self.watch.silence.expired.load(Ordering::Acquire) {
            let agent = self.agent.take().map(|agent| (self.target.origin.clone(), agent));
            lock(&self.kept).extend(agent);
        }
        Ok(0)
    }
}

impl Body for Live {
    fn chunk(&mut self) -> Result<Option<&[u8]>, WireError> {
        match self.read() {
            Ok(0) => Ok(None),
            Ok(count) => Ok(Some(&self.buffer[..count])),
            Err(error) => {
                self.reader = None;
                Err(error)
            }
        }
    }

    fn expect_end(&mut self) {
        let _ = self.watch.limits.send(TRAILER_MAX.min(self.idle_max));
    }

    fn finish(mut self: Box<Self>) {
        let _ = self.watch.limits.send(DRAIN_MAX);
        let start = Instant::now();
        while start.elapsed() < DRAIN_MAX {
            match self.read() {
                Ok(count) if count > 0 => {}
                _ => return,
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.shutdown();
        }
    }
}

/// Knows this machine's own names, so that they need no resolver and no file.
#[derive(Debug)]
struct OwnResolver;

impl Resolver for OwnResolver {
    fn resolve(
        &self,
        uri: &ureq::http::Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
        let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(usual);
        let Some(addresses) = own_addresses(&host) else {
            return DefaultResolver::default().resolve(uri, config, timeout);
        };
        let mut resolved = self.empty();
        for address in addresses {
            resolved.push(SocketAddr::new(address, port));
        }
        Ok(resolved)
    }
}

/// What the HTTP library says, in our words.
fn explain(error: ureq::Error, target: &Target, timeouts: Timeouts) -> WireError {
    use WireErrorKind as Kind;
    let host = &target.authority;
    let through = target.through();
    let (kind, text) = match error {
        ureq::Error::Timeout(Timeout::Resolve) => {
            return target.timed_out(Phase::Resolve, timeouts.connect);
        }
        ureq::Error::Timeout(Timeout::Connect) => {
            return target.timed_out(Phase::Connect, timeouts.connect);
        }
        ureq::Error::Timeout(Timeout::RecvResponse) => {
            return target.timed_out(Phase::Headers, timeouts.headers);
        }
        ureq::Error::Timeout(_) => return target.timed_out(Phase::Send, timeouts.idle),
        ureq::Error::HostNotFound => (Kind::NoHost, format!("no address found for {through}")),
        ureq::Error::ConnectProxyFailed(why) => {
            (Kind::Proxy, format!("{through} refused the tunnel: {}", plain(&why)))
        }
        ureq::Error::Tls(why) => (Kind::Tls, format!("no secure connection to {host}: {why}")),
        ureq::Error::Rustls(why) => {
            (Kind::Tls, format!("no secure connection to {host}: {}", plain(&why.to_string())))
        }
        ureq::Error::Io(error) => return target.explain_io(&error),
        ureq::Error::LargeResponseHeader(..) => {
            (Kind::Protocol, format!("{host} sent headers that are too large"))
        }
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => (
            Kind::Setup,
            format!(
                "the request to {host} cannot be sent: a header or the URL holds characters that are not allowed"
            ),
        ),
        other => {
            let text = plain(&other.to_string());
            (Kind::Protocol, format!("{host} does not answer as an HTTP server should ({text})"))
        }
    };
    WireError::new(kind, text)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `host:port` of an address on this machine, as URLs write it.
pub fn loopback_url(host: &str, port: u16) -> String {
    format!("http://{}:{port}", bracketed(host))
}

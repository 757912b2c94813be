//! The way to a host: the lookup of its name, TCP, the tunnel of a proxy, TLS. Each names itself
//! in its error.
//!
//! All of it runs on the caller's thread but the lookup of a name that is not this machine's: the
//! system's resolver cannot be interrupted. Cancelling returns at once all the same; the thread of
//! the lookup ends when the resolver gives up.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossbeam_channel::{bounded, select};
use rustls::pki_types::ServerName;

use crate::cancel::Cancel;
use crate::host::Host;
use crate::text::{floor_char, visible_line};
use crate::wire::http::USER_AGENT;
use crate::wire::names::own_addresses;
use crate::wire::proxy::{Proxies, Proxy};
use crate::wire::socket::{Patience, Socket, Stopped};
use crate::wire::target::{Target, plain, setup};
use crate::wire::tls;
use crate::wire::transport::{Phase, WireError, WireErrorKind};
use crate::wire::url::{Url, bracketed};

/// What a proxy's answer may take.
const TUNNEL_HEAD_BYTES_MAX: usize = 16 << 10;
const TUNNEL_HEADERS_MAX: usize = 64;

/// How hosts are reached: proxies, trust and time.
pub(super) struct Dialer {
    proxies: Proxies,
    /// `SSL_CERT_FILE`: replaces the built-in roots.
    roots_file: Option<PathBuf>,
    /// For the name lookup, and for TCP, proxy and TLS together.
    pub connect: Duration,
}

impl Dialer {
    pub fn new(host: &Host, connect: Duration) -> Dialer {
        Dialer {
            proxies: Proxies::from_host(host),
            roots_file: host.var("SSL_CERT_FILE").map(|path| host.cwd().join(path)),
            connect,
        }
    }

    pub fn target(&self, url: &Url) -> Result<Target, WireError> {
        Target::new(url, &self.proxies)
    }

    /// A connection on which the first byte goes to the host itself. It does not wait: see
    /// [`Socket::begin`].
    pub fn dial(&self, url: &Url, target: &Target, cancel: &Cancel) -> Result<Socket, WireError> {
        let config = match url.https || target.proxy.as_ref().is_some_and(Proxy::is_https) {
            true => Some(tls::client_config(self.roots_file.as_deref()).map_err(setup)?),
            false => None,
        };
        let (host, port) = match &target.proxy {
            Some(proxy) => proxy.place(),
            None => (url.host.clone(), url.port),
        };
        let addresses = self.look_up(&host, port, target, cancel)?;
        let until = Instant::now() + self.connect;
        let failed = |(error, stopped)| self.explain(&error, stopped, target);
        let mut socket = Socket::connect(&addresses, cancel, until).map_err(failed)?;
        socket.begin(cancel, Patience::Until(until));
        if let Some(proxy) = &target.proxy {
            if let Some(config) = config.clone().filter(|_| proxy.is_https()) {
                let failed = |(error, stopped): (io::Error, _)| match error.kind() {
                    // The host has no part in it.
                    io::ErrorKind::InvalidData => {
                        let (proxy, why) = (target.through(), plain(&error.to_string()));
                        let text = format!("no secure connection to {proxy}: {why}");
                        WireError::new(WireErrorKind::Tls, text)
                    }
                    _ => failed((error, stopped)),
                };
                socket = socket.secure(config, server_name(&host)?).map_err(failed)?;
            }
            self.tunnel(&mut socket, url, proxy, target)?;
        }
        if let Some(config) = config.filter(|_| url.https) {
            socket = socket.secure(config, server_name(&url.host)?).map_err(failed)?;
        }
        socket.end();
        Ok(socket)
    }

    fn explain(&self, error: &io::Error, stopped: Option<Stopped>, target: &Target) -> WireError {
        match stopped {
            Some(Stopped::Cancelled) => WireError::cancelled(),
            Some(Stopped::TimedOut) => target.timed_out(Phase::Connect, self.connect),
            None => target.explain_io(error),
        }
    }

    fn look_up(
        &self,
        host: &str,
        port: u16,
        target: &Target,
        cancel: &Cancel,
    ) -> Result<Vec<SocketAddr>, WireError> {
        if let Some(addresses) = own_addresses(host) {
            return Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect());
        }
        let (sender, receiver) = bounded(1);
        let name = host.to_owned();
        std::thread::Builder::new()
            .name("etch-lookup".into())
            .spawn(move || {
                let found = (name.as_str(), port).to_socket_addrs().map(Vec::from_iter);
                let _ = sender.send(found);
            })
            .map_err(|e| setup(format!("cannot start a thread for the name lookup: {e}")))?;
        let found = select! {
            recv(receiver) -> found => found,
            recv(cancel.channel()) -> _ => return Err(WireError::cancelled()),
            default(self.connect) => return Err(target.timed_out(Phase::Resolve, self.connect)),
        };
        match found {
            Ok(Ok(found)) if !found.is_empty() => Ok(found),
            Ok(Err(error)) => Err(target.explain_io(&error)),
            _ => {
                let text = format!("no address found for {}", target.through());
                Err(WireError::new(WireErrorKind::NoHost, text))
            }
        }
    }

    fn tunnel(
        &self,
        socket: &mut Socket,
        url: &Url,
        proxy: &Proxy,
        target: &Target,
    ) -> Result<(), WireError> {
        let place = format!("{}:{}", bracketed(&url.host), url.port);
        let mut head = format!(
            "CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nUser-Agent: {USER_AGENT}\r\n\
             Proxy-Connection: Keep-Alive\r\n"
        );
        if let Some(login) = proxy.authorization() {
            head.push_str(&format!("Proxy-Authorization: {login}\r\n"));
        }
        head.push_str("\r\n");
        let sent = socket.write_all(head.as_bytes()).and_then(|()| socket.flush());
        let refusal = |why: &str| {
            let text = format!("{} refused the tunnel: {why}", target.through());
            WireError::new(WireErrorKind::Proxy, text)
        };
        match sent.and_then(|()| tunnel_answer(socket)) {
            Ok(Some((200..300, _))) => Ok(()),
            Ok(Some((status, reason))) => {
                let reason = visible_line(floor_char(&reason, 100)).into_owned();
                Err(refusal(format!("{status} {reason}").trim_end()))
            }
            Ok(None) => Err(refusal("it does not answer as an HTTP proxy should")),
            Err(error) => match (error.kind(), socket.stopped()) {
                (io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset, None) => {
                    Err(refusal("it closed the connection"))
                }
                (_, stopped) => Err(self.explain(&error, stopped, target)),
            },
        }
    }
}

fn server_name(host: &str) -> Result<ServerName<'static>, WireError> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| setup(format!("no secure connection to '{host}': no server has such a name")))
}

/// Status and reason of a proxy's answer; `None` when it is no HTTP. Read byte by byte, so that
/// what follows in the tunnel stays there.
fn tunnel_answer(socket: &mut Socket) -> io::Result<Option<(u16, String)>> {
    let mut head = Vec::new();
    while head.len() < TUNNEL_HEAD_BYTES_MAX && !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let mut headers = [httparse::EMPTY_HEADER; TUNNEL_HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    let whole = answer.parse(&head).is_ok_and(|status| status.is_complete());
    let reason = plain(answer.reason.unwrap_or_default());
    Ok(answer.code.filter(|_| whole).map(|status| (status, reason)))
}

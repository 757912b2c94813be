//! Signing in with a browser on this machine: it comes back to a port that waits here.
//!
//! The listener is open to every program and every page on this machine: a request counts only with
//! the state that this sign-in made up, is read up to a small bound, and no number of idle
//! connections keeps the right one out.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;

use super::device::{CODE_LASTS, Granted, pause};
use super::issuer::{Issuer, without_tokens};
use super::store::cancelled;
use super::{ISSUER, form, page};
use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{ErrorKind, ModelError};
use crate::provider::secret::Secret;
use crate::sys::{self, Interest, PollFd};
use crate::wire::http::{Http, Timeouts};
use crate::wire::{Call, Transport};

/// The ports whose addresses are registered for the client, in order.
const PORTS: [u16; 2] = [1455, 1457];
/// An issuer of the person's own takes any port of this machine.
const ANY_PORT: [u16; 1] = [0];
const SCOPE: &str = "openid profile email offline_access";
const PATH: &str = "/auth/callback";

const HEAD_BYTES_MAX: usize = 16 << 10;
/// Browsers open connections in advance and leave them idle.
const CONNECTIONS_MAX: usize = 16;
/// A stale sign-in that was told to end needs a moment to give its port back.
const FREE_TRIES: u32 = 10;
const FREE_PAUSE: Duration = Duration::from_millis(100);
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A sign-in that waits for the browser.
pub struct Waiting {
    listener: TcpListener,
    redirect_uri: String,
    verifier: Secret,
    state: String,
    /// What the browser has to open.
    pub url: String,
}

/// The browser that came back, waiting for its page.
pub struct Visitor(TcpStream);

impl Visitor {
    pub fn tell(self, title: &str, text: &str) {
        answer(self.0, "200 OK", title, text);
    }
}

/// Opens the port and makes up the address that the browser is to open.
pub fn begin(issuer: &Issuer, host: &Host, cancel: &Cancel) -> Result<Waiting, ModelError> {
    let ports: &[u16] = if issuer.base() == ISSUER { &PORTS } else { &ANY_PORT };
    let listener = listen(ports, host, cancel)?;
    let failed = |error: io::Error| network(format!("cannot wait for the browser: {error}"));
    listener.set_nonblocking(true).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let redirect_uri = format!("http://localhost:{port}{PATH}");
    let (verifier, state) = (random::<64>().map_err(failed)?, random::<32>().map_err(failed)?);
    let query = form::encode(&[
        ("response_type", "code"),
        ("client_id", issuer.client_id()),
        ("redirect_uri", &redirect_uri),
        ("scope", SCOPE),
        ("code_challenge", &challenge(&verifier)),
        ("code_challenge_method", "S256"),
        ("id_token_add_organizations", "true"),
        ("codex_cli_simplified_flow", "true"),
        ("state", &state),
        ("originator", "etch"),
    ]);
    let url = format!("{}?{query}", issuer.url("/oauth/authorize"));
    Ok(Waiting { listener, redirect_uri, verifier: Secret::new(verifier), state, url })
}

fn network(text: String) -> ModelError {
    ModelError::new(ErrorKind::Network, text).not_retryable()
}

fn random<const N: usize>() -> io::Result<String> {
    let mut bytes = [0_u8; N];
    sys::random_bytes(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()))
}

/// The first port that is free. A stale sign-in on one of them is asked to give it back.
fn listen(ports: &[u16], host: &Host, cancel: &Cancel) -> Result<TcpListener, ModelError> {
    let mut error = io::Error::from(io::ErrorKind::AddrInUse);
    for port in ports {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, *port));
        match bind() {
            Ok(listener) => return Ok(listener),
            Err(other) if other.kind() != io::ErrorKind::AddrInUse => {
                error = other;
                continue;
            }
            Err(_) => {}
        }
        let second = Duration::from_secs(1);
        let http = Http::new(host, Timeouts { connect: second, headers: second, idle: second });
        let url = format!("http://127.0.0.1:{port}/cancel");
        if http.send(Call { url, headers: Vec::new(), body: None }, cancel).is_err() {
            continue; // nobody who understands
        }
        for _ in 0..FREE_TRIES {
            match bind() {
                Ok(listener) => return Ok(listener),
                Err(_) => pause(FREE_PAUSE, cancel)?,
            }
        }
    }
    cancel.check().map_err(|_| cancelled())?;
    let names: Vec<_> = ports.iter().map(ToString::to_string).collect();
    let text = format!("cannot wait for the browser on port {}: {error}", names.join(" or "));
    Err(network(text).with_hint("end the program that uses them, or sign in without --browser"))
}

/// A connection that has not said everything yet.
struct Half {
    stream: TcpStream,
    head: Vec<u8>,
}

/// What a request means for the sign-in.
#[derive(Debug, PartialEq)]
enum Meaning {
    /// Not ours: say so and wait on.
    Other(&'static str, &'static str),
    Code(String),
    Refused(String),
    /// Another sign-in wants the port.
    GiveUp,
}

impl Waiting {
    /// Waits for the browser, at most for a quarter of an hour.
    pub fn wait(&self, host: &Host, cancel: &Cancel) -> Result<(Granted, Visitor), ModelError> {
        let failed = |error: io::Error| network(format!("cannot wait for the browser: {error}"));
        let (woken, waker) = io::pipe().map_err(failed)?;
        // Dropped by the cancellation: the pipe's other end hangs up.
        let _closer = cancel.on_cancel(move || drop(waker));
        let start = host.elapsed();
        let mut halves: Vec<Half> = Vec::new();
        loop {
            let left = CODE_LASTS.saturating_sub(host.elapsed().saturating_sub(start));
            if left.is_zero() {
                return Err(ModelError::new(ErrorKind::Auth, "the browser did not come back")
                    .with_hint("start anew: etch auth login --browser"));
            }
            let ready = {
                let mut fds = vec![
                    PollFd::new(Some(woken.as_fd()), Interest::Read),
                    PollFd::new(Some(self.listener.as_fd()), Interest::Read),
                ];
                let streams = halves.iter().map(|half| half.stream.as_fd());
                fds.extend(streams.map(|fd| PollFd::new(Some(fd), Interest::Read)));
                sys::poll(&mut fds, Some(left)).map_err(failed)?;
                fds.iter().map(PollFd::is_ready).collect::<Vec<_>>()
            };
            if cancel.is_cancelled() {
                return Err(cancelled());
            }
            for idx in (0..halves.len()).rev().filter(|idx| ready[idx + 2]) {
                let Some(done) = halves[idx].read() else { continue };
                let half = halves.remove(idx);
                if let Some(end) = done.and_then(|line| self.serve(half.stream, &line)) {
                    return end;
                }
            }
            if ready[1] {
                self.accept(&mut halves);
            }
        }
    }

    fn accept(&self, halves: &mut Vec<Half>) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                if halves.len() >= CONNECTIONS_MAX {
                    halves.remove(0);
                }
                halves.push(Half { stream, head: Vec::new() });
            }
        }
    }

    /// Answers a request; the end of the wait, if it is that.
    fn serve(
        &self,
        stream: TcpStream,
        line: &str,
    ) -> Option<Result<(Granted, Visitor), ModelError>> {
        match meaning(line, &self.state) {
            Meaning::Other(status, text) => {
                answer(stream, status, "Not a sign-in", text);
                None
            }
            Meaning::Code(code) => {
                let granted = Granted {
                    code: Secret::new(code),
                    verifier: self.verifier.clone(),
                    redirect_uri: self.redirect_uri.clone(),
                };
                Some(Ok((granted, Visitor(stream))))
            }
            Meaning::Refused(why) => {
                answer(stream, "200 OK", "Not signed in", &why);
                let text = format!("the sign-in was refused: {why}");
                Some(Err(ModelError::new(ErrorKind::Auth, text)
                    .with_hint("start anew: etch auth login --browser")))
            }
            Meaning::GiveUp => {
                answer(stream, "200 OK", "Cancelled", "Another sign-in goes on.");
                let text = "another sign-in took over the port";
                Some(Err(ModelError::new(ErrorKind::Auth, text)
                    .with_hint("finish that one, or start anew: etch auth login")))
            }
        }
    }
}

impl Half {
    /// Reads what there is: `None` while the head is not whole, then its first line, or nothing
    /// when there will be none.
    fn read(&mut self) -> Option<Option<String>> {
        let mut chunk = [0; 4096];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Some(None),
                Ok(count) => self.head.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Some(None),
            }
            if self.head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                let line = self.head.split(|byte| *byte == b'\r').next().unwrap_or_default();
                return Some(Some(String::from_utf8_lossy(line).into_owned()));
            }
            if self.head.len() > HEAD_BYTES_MAX {
                return Some(None);
            }
        }
    }
}

/// Reads `GET /path?query HTTP/1.1`.
fn meaning(line: &str, state: &str) -> Meaning {
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match (method, path) {
        ("GET", PATH) => {}
        ("GET", "/cancel") => return Meaning::GiveUp,
        ("GET", _) => return Meaning::Other("404 Not Found", "There is nothing here."),
        _ => return Meaning::Other("405 Method Not Allowed", "Only GET is understood."),
    }
    if form::field(query, "state").is_none_or(|given| !is_same(&given, state)) {
        let text = "This is not the sign-in that etch waits for. Start it from the address that \
                    etch printed.";
        return Meaning::Other("400 Bad Request", text);
    }
    if let Some(error) = form::field(query, "error") {
        let said = form::field(query, "error_description").filter(|text| !text.is_empty());
        let why = said.map_or_else(|| error.clone(), |said| format!("{said} ({error})"));
        return Meaning::Refused(without_tokens(&why));
    }
    match form::field(query, "code").filter(|code| !code.is_empty()) {
        Some(code) => Meaning::Code(code),
        None => Meaning::Refused("the browser brought no code".to_owned()),
    }
}

/// Compares in a time that does not depend on where the texts differ.
fn is_same(given: &str, wanted: &str) -> bool {
    let differences = given.bytes().zip(wanted.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == wanted.len() && differences == 0
}

fn answer(mut stream: TcpStream, status: &str, title: &str, text: &str) {
    // The page fits into the socket's buffer; a browser that is gone misses it.
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_write_timeout(Some(ANSWER_WITHIN));
    let _ = stream.write_all(page::response(status, title, text).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Reason;
    use crate::provider::openai::auth::issuer::tests::Script;

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // The example of RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(random::<64>().unwrap().len(), 86);
    }

    #[test]
    fn only_a_request_with_the_right_state_counts() {
        let other = |line: &str| match meaning(line, "S") {
            Meaning::Other(status, _) => status[..3].to_owned(),
            meaning => panic!("{line}: {meaning:?}"),
        };
        assert_eq!(other("GET / HTTP/1.1"), "404");
        assert_eq!(other("POST /auth/callback?state=S&code=c HTTP/1.1"), "405");
        for query in
            ["", "?code=c", "?code=c&state=", "?code=c&state=s", "?error=x", "?state=SS&code=c"]
        {
            assert_eq!(other(&format!("GET /auth/callback{query} HTTP/1.1")), "400", "{query}");
        }
        let check = |query: &str, want: Meaning| {
            assert_eq!(meaning(&format!("GET /auth/callback?{query} HTTP/1.1"), "S"), want);
        };
        check("code=a%2Bb&state=S", Meaning::Code("a+b".into()));
        check("state=S", Meaning::Refused("the browser brought no code".into()));
        check(
            "state=S&error=access_denied&error_description=No+%3Cb%3E",
            Meaning::Refused("No <b> (access_denied)".into()),
        );
        assert_eq!(meaning("GET /cancel HTTP/1.1", "S"), Meaning::GiveUp);
        assert_eq!(other(""), "405");
    }

    fn send(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut all = String::new();
        let _ = stream.read_to_string(&mut all);
        all
    }

    #[test]
    fn the_browser_gets_through_beside_idle_broken_and_foreign_requests() {
        let (issuer, _) = Script::issuer(&[]);
        let (host, cancel) = (Host::fixed(), Cancel::new());
        let waiting = begin(&issuer, &host, &cancel).unwrap();
        let port = waiting.listener.local_addr().unwrap().port();
        assert!(waiting.url.starts_with("https://issuer.test/oauth/authorize?response_type=code&client_id=app_1&redirect_uri=http%3A%2F%2Flocalhost%3A"));
        let state = form::field(waiting.url.split_once('?').unwrap().1, "state").unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| waiting.wait(&host, &cancel));
            let idle: Vec<_> =
                (0..20).map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap()).collect();
            assert!(send(port, "GET /favicon.ico HTTP/1.1\r\n\r\n").contains("404"));
            assert!(
                send(port, "GET /auth/callback?code=x&state=guess HTTP/1.1\r\n\r\n")
                    .contains("400")
            );
            assert_eq!(
                send(port, &format!("GET /{} HTTP/1.1\r\n", "x".repeat(HEAD_BYTES_MAX))),
                ""
            );
            let good = format!("GET /auth/callback?code=good&state={state} HTTP/1.1\r\n\r\n");
            let shown = scope.spawn(move || send(port, &good));
            let (granted, visitor) = waiter.join().unwrap().ok().unwrap();
            visitor.tell("Signed in", "Close this.");
            assert_eq!(granted.code.reveal(), "good");
            assert!(shown.join().unwrap().contains("Signed in"));
            drop(idle);
        });
    }

    #[test]
    fn the_wait_ends_when_it_is_cancelled_or_given_up() {
        let (issuer, _) = Script::issuer(&[]);
        let (host, cancel) = (Host::fixed(), Cancel::new());
        let waiting = begin(&issuer, &host, &cancel).unwrap();
        let port = waiting.listener.local_addr().unwrap().port();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| waiting.wait(&host, &cancel).err().unwrap());
            assert!(send(port, "GET /cancel HTTP/1.1\r\n\r\n").contains("Cancelled"));
            assert!(waiter.join().unwrap().message.contains("took over the port"));
            let waiter = scope.spawn(|| waiting.wait(&host, &cancel).err().unwrap());
            cancel.cancel(Reason::Interrupt);
            assert_eq!(waiter.join().unwrap().kind, ErrorKind::Cancelled);
        });
    }
}

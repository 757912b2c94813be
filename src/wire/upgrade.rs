//! The HTTP request that turns a connection into a WebSocket, and the answer to it (RFC 6455,
//! section 4).
//!
//! No extension and no subprotocol is asked for. An answer other than 101 comes back as any HTTP
//! answer does, with its body.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::cancel::Cancel;
use crate::sys;
use crate::wire::http::USER_AGENT;
use crate::wire::socket::{Patience, Socket, Stopped};
use crate::wire::target::{Target, plain, setup};
use crate::wire::transport::{Header, Phase, Reply, WireError, WireErrorKind, stored};
use crate::wire::url::Url;

/// What the head of an answer may take.
const HEAD_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 128;
/// How much of a refusal is read, and how long that may take.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
const REFUSAL_MAX: Duration = Duration::from_secs(2);
const READ_BYTES: usize = 4 << 10;

/// The server has answered.
pub(super) enum Answer {
    /// It speaks WebSocket from here on; its first bytes may have come with the answer.
    Taken {
        headers: Vec<(String, String)>,
        rest: Vec<u8>,
    },
    Refused(Reply),
}

/// Asks for the upgrade and reads the answer, within `limit`.
pub(super) fn upgrade(
    socket: &mut Socket,
    url: &Url,
    headers: &[Header],
    target: &Target,
    limit: Duration,
    cancel: &Cancel,
) -> Result<Answer, WireError> {
    let mut key = [0; 16];
    sys::random_bytes(&mut key).map_err(|e| setup(format!("no random bytes: {e}")))?;
    let key = STANDARD.encode(key);
    let request = request(url, headers, &key).ok_or_else(|| {
        setup(format!(
            "the request to {} cannot be sent: a header or the URL holds characters that are not \
             allowed",
            target.authority
        ))
    })?;
    socket.begin(cancel, Patience::Until(Instant::now() + limit));
    let sent = socket.write_all(request.as_bytes()).and_then(|()| socket.flush());
    let sent = sent.map_err(|error| explain(socket, &error, target, Phase::Send, limit));
    let head = sent.and_then(|()| read_head(socket, target, limit))?;
    if head.status == 101 {
        socket.end();
        check(&head, &key).map_err(|why| {
            let text = format!("{} took the WebSocket upgrade wrongly: {why}", target.authority);
            WireError::new(WireErrorKind::Protocol, text)
        })?;
        return Ok(Answer::Taken { headers: head.headers, rest: head.rest });
    }
    socket.begin(cancel, Patience::Until(Instant::now() + REFUSAL_MAX));
    let body = read_refusal(socket, &head);
    if cancel.is_cancelled() {
        return Err(WireError::cancelled());
    }
    let body = stored(body, cancel);
    Ok(Answer::Refused(Reply { status: head.status, headers: head.headers, body }))
}

/// `None` when something in it cannot be sent.
fn request(url: &Url, headers: &[Header], key: &str) -> Option<String> {
    let query = if url.query.is_empty() { String::new() } else { format!("?{}", url.query) };
    let is_sendable = |text: &str| text.bytes().all(|b| b == b'\t' || (b >= b' ' && b != 0x7F));
    if !url.path.is_ascii() || !query.is_ascii() {
        return None;
    }
    let mut head = format!(
        "GET {}{query} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n",
        url.path,
        url.authority()
    );
    if !headers.iter().any(|header| header.name.eq_ignore_ascii_case("user-agent")) {
        head.push_str(&format!("User-Agent: {USER_AGENT}\r\n"));
    }
    for Header { name, value } in headers {
        if !is_sendable(value) {
            return None;
        }
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    Some(head)
}

struct Head {
    status: u16,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// What came after it.
    rest: Vec<u8>,
}

impl Head {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

enum Parsed {
    Partial,
    /// And how many bytes it takes.
    Head(Head, usize),
    TooLarge,
    No(String),
}

fn parse_head(bytes: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    match answer.parse(bytes) {
        Ok(httparse::Status::Complete(used)) => {
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            let headers = answer.headers.iter();
            let headers = headers.map(|h| (h.name.to_ascii_lowercase(), text(h.value)));
            let status = answer.code.unwrap_or_default();
            Parsed::Head(Head { status, headers: headers.collect(), rest: Vec::new() }, used)
        }
        Ok(httparse::Status::Partial) if bytes.len() >= HEAD_BYTES_MAX => Parsed::TooLarge,
        Ok(httparse::Status::Partial) => Parsed::Partial,
        Err(httparse::Error::TooManyHeaders) => Parsed::TooLarge,
        Err(error) => Parsed::No(plain(&error.to_string())),
    }
}

fn read_head(socket: &mut Socket, target: &Target, limit: Duration) -> Result<Head, WireError> {
    let host = &target.authority;
    let wrong = |text: String| Err(WireError::new(WireErrorKind::Protocol, text));
    let mut bytes = Vec::new();
    loop {
        // Asked first: several answers may have come at once.
        match parse_head(&bytes) {
            Parsed::Head(head, used) if head.status / 100 == 1 && head.status != 101 => {
                bytes.drain(..used);
                continue;
            }
            Parsed::Head(mut head, used) => {
                head.rest = bytes.split_off(used);
                return Ok(head);
            }
            Parsed::TooLarge => return wrong(format!("{host} sent headers that are too large")),
            Parsed::No(why) => {
                return wrong(format!("{host} does not answer as an HTTP server should ({why})"));
            }
            Parsed::Partial => {}
        }
        match read_more(socket, &mut bytes) {
            Ok(0) => return Err(target.explain_io(&io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {}
            Err(error) => return Err(explain(socket, &error, target, Phase::Headers, limit)),
        }
    }
}

fn read_more(socket: &mut Socket, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut buffer = [0; READ_BYTES];
    let count = socket.read(&mut buffer)?;
    bytes.extend_from_slice(&buffer[..count]);
    Ok(count)
}

fn explain(
    socket: &mut Socket,
    error: &io::Error,
    target: &Target,
    phase: Phase,
    limit: Duration,
) -> WireError {
    match socket.stopped() {
        Some(Stopped::Cancelled) => WireError::cancelled(),
        Some(Stopped::TimedOut) => target.timed_out(phase, limit),
        None => target.explain_io(error),
    }
}

/// What is wrong with a 101 answer.
fn check(head: &Head, key: &str) -> Result<(), &'static str> {
    let is = |name: &str, want: &str| {
        let tokens = head.header(name).unwrap_or_default().split(',');
        tokens.into_iter().any(|token| token.trim().eq_ignore_ascii_case(want))
    };
    let hash = ring::digest::digest(
        &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes(),
    );
    if !is("upgrade", "websocket") {
        return Err("its answer has no 'Upgrade: websocket'");
    }
    if !is("connection", "upgrade") {
        return Err("its answer has no 'Connection: Upgrade'");
    }
    if head.header("sec-websocket-accept") != Some(&STANDARD.encode(hash)) {
        return Err("Sec-WebSocket-Accept is not the answer to the key");
    }
    // It may stand in several lines.
    let mut extensions = head.headers.iter().filter(|(name, _)| name == "sec-websocket-extensions");
    if extensions.any(|(_, value)| !value.is_empty()) {
        return Err("it uses an extension that was not asked for");
    }
    if head.header("sec-websocket-protocol").is_some() {
        return Err("it speaks a subprotocol that was not asked for");
    }
    Ok(())
}

/// The body of a refusal, as much of it as comes in time: the status says enough without it.
fn read_refusal(socket: &mut Socket, head: &Head) -> Vec<u8> {
    let chunked = head
        .header("transfer-encoding")
        .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
    let length = head.header("content-length").and_then(|length| length.parse().ok());
    let length = if chunked { None } else { length };
    let mut bytes = head.rest.clone();
    let is_whole = |bytes: &[u8]| match length {
        Some(length) => bytes.len() >= length,
        None => bytes.len() >= 2 * REFUSAL_BYTES_MAX || (chunked && unchunked(bytes).1),
    };
    while !is_whole(&bytes) && bytes.len() < 2 * REFUSAL_BYTES_MAX {
        match read_more(socket, &mut bytes) {
            Ok(count) if count > 0 => {}
            _ => break,
        }
    }
    let mut body = if chunked { unchunked(&bytes).0 } else { bytes };
    body.truncate(length.unwrap_or(usize::MAX).min(REFUSAL_BYTES_MAX));
    body
}

/// What the chunks hold, and whether nothing more comes or can be understood.
fn unchunked(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    loop {
        match httparse::parse_chunk_size(bytes) {
            Ok(httparse::Status::Complete((used, size @ 1..))) => {
                let rest = &bytes[used..];
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                if rest.len() <= size {
                    out.extend_from_slice(rest);
                    return (out, false);
                }
                out.extend_from_slice(&rest[..size]);
                let after = &rest[size..];
                bytes = after.strip_prefix(b"\r\n").unwrap_or(&after[after.len()..]);
            }
            Ok(httparse::Status::Partial) => return (out, false),
            Ok(httparse::Status::Complete(_)) | Err(_) => return (out, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_says_what_the_standard_asks_for() {
        let url = Url::parse("https://h.example/v1/r?a=b").unwrap();
        let headers = [Header { name: "Authorization", value: "Bearer é".into() }];
        let want = "GET /v1/r?a=b HTTP/1.1\r\nHost: h.example\r\nUpgrade: websocket\r\n\
            Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: KEY\r\n\
            User-Agent: ";
        let text = request(&url, &headers, "KEY").unwrap();
        assert!(text.starts_with(want) && text.ends_with("\r\nAuthorization: Bearer é\r\n\r\n"));
        let own = [Header { name: "user-agent", value: "me".into() }];
        let text = request(&url, &own, "KEY").unwrap();
        assert!(text.ends_with("Sec-WebSocket-Key: KEY\r\nuser-agent: me\r\n\r\n"), "{text}");
        for bad in ["a\r\nX: y", "a\n", "\0", "\x7f"] {
            let headers = [Header { name: "X", value: bad.into() }];
            assert_eq!(request(&url, &headers, "KEY"), None, "{bad:?}");
        }
    }

    #[test]
    fn the_answer_is_held_against_the_key() {
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let fine = "HTTP/1.1 101 Switching\r\nupgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
            Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        let checked = |text: &str| match parse_head(text.as_bytes()) {
            Parsed::Head(head, _) => check(&head, key),
            _ => panic!("{text}"),
        };
        assert_eq!(checked(fine), Ok(()));
        for (from, to, want) in [
            ("upgrade:", "x:", "its answer has no 'Upgrade: websocket'"),
            ("WebSocket\r", "h2c\r", "its answer has no 'Upgrade: websocket'"),
            ("keep-alive, Upgrade", "close", "its answer has no 'Connection: Upgrade'"),
            ("s3p", "S3p", "Sec-WebSocket-Accept is not the answer to the key"),
            (
                "\r\n\r\n",
                "\r\nSec-WebSocket-Extensions:\r\nSec-WebSocket-Extensions: x\r\n\r\n",
                "it uses an extension that was not asked for",
            ),
            (
                "\r\n\r\n",
                "\r\nSec-WebSocket-Protocol: chat\r\n\r\n",
                "it speaks a subprotocol that was not asked for",
            ),
        ] {
            assert_eq!(checked(&fine.replace(from, to)), Err(want), "{from}");
        }
    }

    #[test]
    fn chunks_are_joined_wherever_they_end() {
        let whole = b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
        for end in 0..=whole.len() {
            let (text, done) = unchunked(&whole[..end]);
            assert!(b"abcde".starts_with(&text[..]), "{end}");
            assert_eq!(done, end >= whole.len() - 2, "{end}");
        }
        assert_eq!(unchunked(whole).0, b"abcde");
        assert!(unchunked(b"zz\r\n").1);
    }
}

//! Whatever a server sends after the upgrade, or in place of its answer: the messages are those
//! that a decoder of whole streams, written from the definition alone, finds in it.

use std::sync::{Arc, Mutex};

use etch::cancel::Cancel;
use etch::host::Host;
use etch::wire::WireErrorKind;
use etch::wire::http::Timeouts;
use etch::wire::websocket::{OpenError, Sockets};

use super::fuzz;
use crate::support::server::{Reply, Server, Ws, frame, frame_head};

/// The texts up to the first thing that no server may send, or the end.
fn decoded(mut bytes: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    while let [first, second, rest @ ..] = bytes {
        let (length, rest) = match second & 0x7F {
            126 if rest.len() >= 2 => {
                (u64::from(u16::from_be_bytes([rest[0], rest[1]])), &rest[2..])
            }
            127 if rest.len() >= 8 => {
                (u64::from_be_bytes(rest[..8].try_into().unwrap()), &rest[8..])
            }
            length @ 0..126 => (u64::from(length), rest),
            _ => return texts,
        };
        if (rest.len() as u64) < length || first & 0x70 != 0 || second & 0x80 != 0 {
            return texts;
        }
        let (payload, rest) = rest.split_at(length as usize);
        bytes = rest;
        match (first & 0x0F, open.take()) {
            (0x9 | 0xA, kept) if first & 0x80 != 0 && length <= 125 => open = kept,
            (0x1, None) => open = Some(payload.to_vec()),
            (0x0, Some(kept)) => open = Some([&kept[..], payload].concat()),
            _ => return texts,
        }
        if first & 0x88 == 0x80 {
            let Ok(text) = String::from_utf8(open.take().unwrap_or_default()) else {
                return texts;
            };
            texts.push(text);
        }
    }
    texts
}

#[test]
fn messages_are_those_of_the_definition() {
    let input: Arc<Mutex<Vec<u8>>> = Arc::default();
    let script = Arc::clone(&input);
    let server = Server::with(move |_| {
        let bytes = script.lock().unwrap().clone();
        match bytes.split_first() {
            Some((b'h', head)) => Reply::raw(head),
            Some((_, frames)) => Reply::websocket(Ws::new().raw(frames).cut()),
            None => Reply::raw(""),
        }
    });
    let sockets = Sockets::new(&Host::fixed(), Timeouts::default());
    let url = server.url();
    let seeds = [
        b"h".to_vec(),
        b"hHTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x01a".to_vec(),
        b"hHTTP/1.1 426 Upgrade\r\nContent-Length: 3\r\n\r\nabc".to_vec(),
        b"hHTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_vec(),
        [b"w", &frame(0x81, "zwölf".as_bytes())[..], &frame(0x88, b"\x03\xE8bye")].concat(),
        [b"w", &frame(0x01, b"a")[..], &frame(0x89, b"p"), &frame(0x80, b"b")].concat(),
        [b"w", &frame_head(0x81, 300)[..], &[b'x'; 300]].concat(),
        [b"w", &frame_head(0x81, 1 << 40)[..], b"x"].concat(),
    ];
    let tokens = ["\u{1}\u{1}a", "\0\0", "HTTP/1.1 ", "\r\n\r\n", "Content-Length: ", "é"];
    let cancel = Cancel::new();
    fuzz("websocket", seeds, &tokens, |bytes| {
        *input.lock().unwrap() = bytes.to_vec();
        let mut socket = match sockets.open(&url, &[], &cancel) {
            Ok(opened) => opened.socket,
            Err(OpenError::Refused(reply)) => return (reply.status.to_string(), 0),
            Err(OpenError::Wire(error)) => return (format!("{:?}", error.kind), 0),
        };
        let mut texts = Vec::new();
        let error = loop {
            match socket.receive(&cancel) {
                Ok(text) => texts.push(text.to_owned()),
                Err(error) => break error,
            }
        };
        assert_eq!(texts, decoded(&bytes[1..]));
        assert!(!matches!(error.kind, WireErrorKind::Timeout(_)), "{error}");
        assert!(!error.message.contains(char::is_control), "{error}");
        assert!(!socket.is_alive());
        (format!("{:?}", error.kind), texts.len().min(4))
    });
}

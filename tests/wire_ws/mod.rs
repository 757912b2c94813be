//! WebSockets: what the scripted server itself promises, and how a connection behaves.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use etch::cancel::Cancel;
use etch::host::Host;
use etch::wire::http::Timeouts;
use etch::wire::websocket::{OpenError, Opened, Sockets, WebSocket};
use etch::wire::{Header, WireError};

use crate::support::server::{Reply, Server, Ws};

mod cancel;
mod closing;
mod frames;
mod opening;

fn sockets(host: &Host) -> Sockets {
    Sockets::new(host, Timeouts::default())
}

/// The same, but every wait is short.
fn hasty(limit: Duration) -> Sockets {
    let timeouts = Timeouts { connect: limit, headers: limit, idle: limit };
    Sockets::new(&Host::fixed(), timeouts)
}

fn open(sockets: &Sockets, url: &str) -> Result<Opened, OpenError> {
    let headers = [Header { name: "Authorization", value: "Bearer k".into() }];
    sockets.open(url, &headers, &Cancel::new())
}

/// A connection to a server that plays `ws` once.
fn connected(ws: Ws) -> (Server, WebSocket) {
    let server = Server::start([Reply::websocket(ws)]);
    let opened = open(&sockets(&Host::fixed()), &server.base_url()).unwrap();
    (server, opened.socket)
}

fn receive(socket: &mut WebSocket) -> Result<String, WireError> {
    socket.receive(&Cancel::new()).map(str::to_owned)
}

#[track_caller]
fn error_of(result: Result<Opened, OpenError>) -> WireError {
    match result {
        Err(OpenError::Wire(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// The key and the answer of RFC 6455, section 1.3.
const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

#[test]
fn the_scripted_server_speaks_as_the_standard_says() {
    let ws =
        Ws::new().header("X-A", "b").expect().text("Hello").close(1000).expect_close(Some(1000));
    let server = Server::start([Reply::websocket(ws)]);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(UPGRADE.as_bytes()).unwrap();
    // The masked "Hello" of section 5.7, then a masked close frame with 1000.
    stream.write_all(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58").unwrap();
    stream.write_all(b"\x88\x82\x00\x00\x00\x00\x03\xe8").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nX-A: b\r\n\r\n";
    assert_eq!(answer, [head.as_bytes(), b"\x81\x05Hello", b"\x88\x02\x03\xe8"].concat());
    let messages = server.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!((messages[0].text.as_str(), messages[0].connection), ("Hello", 0));
}

#[test]
#[should_panic(expected = "connection 0: a frame is not masked")]
fn the_scripted_server_refuses_frames_that_are_not_masked() {
    let server = Server::start([Reply::websocket(Ws::new().expect())]);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(UPGRADE.as_bytes()).unwrap();
    stream.write_all(b"\x81\x05Hello").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    drop(server);
}

#[test]
fn messages_go_both_ways_and_are_counted() {
    let ws = Ws::new()
        .header("X-Request-Id", "r1")
        .expect()
        .text("eins")
        .pong("unasked")
        .text("zwölf")
        .expect()
        .text("")
        .expect_close(Some(1000));
    let server = Server::start([Reply::websocket(ws)]);
    let Opened { mut socket, headers } =
        open(&sockets(&Host::fixed()), &server.base_url()).unwrap();
    assert!(headers.contains(&("x-request-id".into(), "r1".into())), "{headers:?}");
    let cancel = Cancel::new();
    socket.send("hällo".as_bytes(), &cancel).unwrap();
    assert_eq!(socket.receive(&cancel).unwrap(), "eins");
    assert_eq!(socket.receive(&cancel).unwrap(), "zwölf");
    socket.send(b"", &cancel).unwrap();
    assert_eq!(socket.receive(&cancel).unwrap(), "");
    assert_eq!((socket.sent_bytes(), socket.received_bytes()), (6, 10));
    assert!(socket.is_alive());
    socket.close();
    let texts: Vec<_> = server.messages().into_iter().map(|m| m.text).collect();
    assert_eq!(texts, ["hällo", ""]);
    let seen = &server.seen()[0];
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("GET", "/v1"));
    assert_eq!(seen.header("authorization"), Some("Bearer k"));
    assert!(seen.header("user-agent").is_some_and(|agent| agent.starts_with("etch/")));
    server.wait_until_gone();
}

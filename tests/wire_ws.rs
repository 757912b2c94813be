//! WebSockets: what the scripted server itself promises, and how a connection behaves.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::server::{Reply, Server, Ws};

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

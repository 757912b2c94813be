//! WebSockets over TLS: long messages, silence and ends are what they are without it.

use std::time::Duration;

use etch::cancel::Cancel;
use etch::host::Host;
use etch::wire::http::Timeouts;
use etch::wire::websocket::{Sockets, WebSocket};
use etch::wire::{Phase, WireErrorKind};

use crate::support::server::{Gate, Reply, Server, Ws};
use crate::support::tls;

/// A server that plays `ws` behind TLS, and a socket to it.
#[track_caller]
fn connected(ws: Ws, idle: Duration) -> (Server, WebSocket) {
    let server = Server::start_tls(tls::server_config(), [Reply::websocket(ws)]);
    let host = Host::fixed().with_var("SSL_CERT_FILE", tls::authority_file());
    let sockets = Sockets::new(&host, Timeouts { idle, ..Timeouts::default() });
    let opened = sockets.open(&server.base_url(), &[], &Cancel::new()).unwrap();
    (server, opened.socket)
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn large_messages_go_both_ways() {
    let text = "é,1".repeat(5 << 20);
    let (server, mut socket) = connected(Ws::new().expect().text(&text), LONG);
    let cancel = Cancel::new();
    socket.send(text.as_bytes(), &cancel).unwrap();
    assert!(socket.receive(&cancel).unwrap() == text);
    assert!(server.messages()[0].text == text);
    assert!(socket.is_alive());
    socket.close();
}

#[test]
fn a_peer_that_does_not_read_or_write_is_named() {
    let gate = Gate::new();
    let (server, mut socket) = connected(Ws::new().wait(&gate), Duration::from_millis(100));
    let error = socket.send(&vec![b'x'; 64 << 20], &Cancel::new()).unwrap_err();
    gate.open();
    assert_eq!(error.kind, WireErrorKind::Timeout(Phase::Send));
    let host = server.address();
    assert_eq!(error.message, format!("timed out after 0.1 s sending the request to {host}"));
    let (_server, mut socket) = connected(Ws::new().stall(), Duration::from_millis(100));
    let error = socket.receive(&Cancel::new()).unwrap_err();
    assert_eq!(error.kind, WireErrorKind::Timeout(Phase::Idle));
}

#[test]
fn an_end_without_a_close_frame_is_1006_and_a_close_tells_its_code() {
    let check = |ws: Ws, code: u16| {
        let (_server, mut socket) = connected(ws, LONG);
        let error = socket.receive(&Cancel::new()).unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Closed(code), "{error}");
        assert!(!socket.is_alive());
    };
    check(Ws::new().cut(), 1006);
    check(Ws::new().raw(b"\x81\x05He").cut(), 1006);
    check(Ws::new().reset(), 1006);
    check(Ws::new().close_with(1012, b"soon"), 1012);
    let ping = Ws::new().ping("a").expect_pong("a").close(1000);
    let (_server, mut socket) = connected(ping, LONG);
    while socket.is_alive() {
        std::thread::yield_now();
    }
}

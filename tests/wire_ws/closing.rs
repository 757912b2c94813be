//! How connections end, and which are good for another message.

use std::time::{Duration, Instant};

use etch::cancel::Cancel;
use etch::wire::{Phase, WireErrorKind};

use super::{connected, hasty, open, receive};
use crate::support::server::{Gate, Reply, Server, Ws, frame};
use crate::support::tls;

/// Longer than any pause of a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "still waiting: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn every_close_code_is_told_with_the_servers_reason() {
    let codes = (1000..=1003).chain(1007..=1013).chain([3000, 3999, 4000, 4001, 4999]);
    for code in codes {
        let ws = Ws::new().text("half").close_with(code, "why\u{1b}[31m\nnow".as_bytes());
        let (server, mut socket) = connected(ws.expect_close(Some(code)));
        assert_eq!(receive(&mut socket).unwrap(), "half");
        let error = receive(&mut socket).unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Closed(code), "{error}");
        let host = server.address();
        let want = format!("{host} closed the WebSocket with code {code}: why^[[31m\\nnow");
        assert_eq!(error.message, want);
        assert!(!socket.is_alive());
        server.wait_until_gone();
    }
    let (server, mut socket) = connected(Ws::new().close_with(1008, &[b'x'; 123]));
    let text = receive(&mut socket).unwrap_err().message;
    assert_eq!(
        text,
        format!("{} closed the WebSocket with code 1008: {}", server.address(), "x".repeat(123))
    );
}

#[test]
fn a_close_without_a_code_is_1005_and_an_end_without_a_close_1006() {
    let kind = |ws: Ws| {
        let (_server, mut socket) = connected(ws);
        let first = receive(&mut socket);
        let error = first.and_then(|_| receive(&mut socket)).unwrap_err();
        assert!(!socket.is_alive());
        let again = receive(&mut socket).unwrap_err();
        assert_eq!(again.kind, WireErrorKind::Closed(1006));
        error.kind
    };
    assert_eq!(kind(Ws::new().close_without_code()), WireErrorKind::Closed(1005));
    let half = frame(0x81, b"half")[..4].to_vec();
    for ws in [Ws::new(), Ws::new().text("a"), Ws::new().raw(half)] {
        assert_eq!(kind(ws.clone().cut()), WireErrorKind::Closed(1006));
        // Reset only when everything has arrived: it would take the rest with it.
        assert_eq!(kind(ws.reset()), WireErrorKind::Closed(1006));
    }
    for (ws, want) in [(Ws::new().cut(), 1006), (Ws::new().close(1012), 1012)] {
        let server = Server::start_tls(tls::server_config(), [Reply::websocket(ws)]);
        let host = etch::host::Host::fixed().with_var("SSL_CERT_FILE", tls::authority_file());
        let mut socket = open(&super::sockets(&host), &server.base_url()).unwrap().socket;
        let error = receive(&mut socket).unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Closed(want), "{error}");
    }
}

#[test]
fn a_close_that_comes_while_sending_is_told() {
    let long = vec![b'x'; 32 << 20];
    // The server reads on, or goes away in the middle of it.
    for ws in [Ws::new().stall(), Ws::new().cut()] {
        let (_server, mut socket) = connected(Ws::new().close_with(1009, b"too large").then(ws));
        let error = match socket.send(&long, &Cancel::new()) {
            Err(error) => error,
            Ok(()) => receive(&mut socket).unwrap_err(),
        };
        assert_eq!(error.kind, WireErrorKind::Closed(1009), "{error}");
    }
}

#[test]
fn a_ping_that_cannot_be_answered_any_more_hides_nothing() {
    let pings = (0..20).flat_map(|_| frame(0x89, b"p")).collect::<Vec<_>>();
    let all = [pings.clone(), frame(0x81, b"a"), pings, frame(0x88, b"\x03\xE9")].concat();
    for _ in 0..20 {
        let (server, mut socket) = connected(Ws::new().raw(all.clone()).cut());
        server.wait_until_gone();
        assert_eq!(receive(&mut socket).unwrap(), "a");
        assert_eq!(receive(&mut socket).unwrap_err().kind, WireErrorKind::Closed(1001));
    }
}

#[test]
fn a_server_that_falls_silent_is_named_with_the_time() {
    let half = frame(0x81, b"half of it")[..6].to_vec();
    for ws in [Ws::new().stall(), Ws::new().raw(half).stall()] {
        let server = Server::start([Reply::websocket(ws)]);
        let mut socket = open(&hasty(Duration::from_millis(200)), &server.url()).unwrap().socket;
        let error = receive(&mut socket).unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Timeout(Phase::Idle));
        let want = format!(
            "timed out: {} sent nothing for 0.2 s in the middle of an answer",
            server.address()
        );
        assert_eq!(error.message, want);
    }
    let gate = Gate::new();
    let server = Server::start([Reply::websocket(Ws::new().wait(&gate))]);
    let mut socket = open(&hasty(Duration::from_millis(200)), &server.url()).unwrap().socket;
    let error = socket.send(&vec![b'x'; 64 << 20], &Cancel::new()).unwrap_err();
    assert_eq!(error.kind, WireErrorKind::Timeout(Phase::Send));
    assert!(error.message.contains("timed out after 0.2 s sending the request"), "{error}");
    gate.open();
}

#[test]
fn a_sign_of_life_is_enough_between_two_messages() {
    // Longer in all than the idle time, but never silent for so long.
    let slow = (0..40).fold(Ws::new(), |ws, _| ws.ping("x").expect_pong("x").pause(25));
    let server = Server::start([Reply::websocket(slow.text("at last"))]);
    let mut socket = open(&hasty(Duration::from_millis(700)), &server.url()).unwrap().socket;
    assert_eq!(receive(&mut socket).unwrap(), "at last");
}

#[test]
fn pings_that_came_while_idle_are_answered_and_leave_it_alive() {
    let gate = Gate::new();
    let pings = Ws::new().ping("1").ping("2").pong("x").wait(&gate);
    let (_server, mut socket) = connected(Ws::new().text("a").then(pings).expect().text("b"));
    assert_eq!(receive(&mut socket).unwrap(), "a");
    for _ in 0..3 {
        assert!(socket.is_alive());
    }
    gate.open();
    socket.send(b"go", &Cancel::new()).unwrap();
    assert_eq!(receive(&mut socket).unwrap(), "b");

    let pinged = Ws::new().text("a").ping("1").expect_pong("1").close(1000);
    let (server, mut socket) = connected(pinged);
    assert_eq!(receive(&mut socket).unwrap(), "a");
    wait_until("the close that the pong brings", || !socket.is_alive());
    drop(socket);
    server.wait_until_gone();
}

#[test]
fn whatever_else_comes_while_idle_makes_it_useless() {
    let half = frame(0x81, b"half of it")[..6].to_vec();
    let unfinished = frame(0x01, b"half of it");
    for ws in [
        Ws::new().close(1001),
        Ws::new().close_without_code(),
        Ws::new().cut(),
        Ws::new().reset(),
        Ws::new().text("nobody asked"),
        Ws::new().raw(half).stall(),
        Ws::new().raw(unfinished.clone()).stall(),
        Ws::new().raw([frame(0x89, b"p"), unfinished].concat()).stall(),
        Ws::new().raw(b"\x81".to_vec()).stall(),
        Ws::new().raw(frame(0x82, b"x")),
    ] {
        let gate = Gate::new();
        let (_server, mut socket) = connected(Ws::new().text("a").wait(&gate).then(ws));
        assert_eq!(receive(&mut socket).unwrap(), "a");
        assert!(socket.is_alive());
        gate.open();
        wait_until("the end", || !socket.is_alive());
        assert!(socket.send(b"x", &Cancel::new()).is_err());
    }
}

#[test]
fn closing_waits_for_nobody() {
    let gate = Gate::new();
    let (_server, socket) = connected(Ws::new().wait(&gate));
    let start = Instant::now();
    socket.close();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    gate.open();
}

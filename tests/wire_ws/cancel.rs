//! Cancelling in every phase: back at once, and the process is as it was.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use etch::cancel::{Cancel, Reason};
use etch::host::Host;
use etch::wire::WireError;
use etch::wire::websocket::{OpenError, Sockets, WebSocket};

use super::{open, sockets};
use crate::support::alone::alone;
use crate::support::server::{Gate, Reply, Server, Ws, frame};
use crate::support::tls;

const TIMES: usize = 100;
const PATIENCE: Duration = Duration::from_secs(20);
/// What a person is promised.
const AT_ONCE: Duration = Duration::from_millis(50);

fn count(dir: &str) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

/// Threads and descriptors of this process.
fn held() -> (usize, usize) {
    (count("/proc/self/task"), count("/proc/self/fd"))
}

#[track_caller]
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "still waiting: {what}");
        std::thread::yield_now();
    }
}

/// The calling thread sleeps in `poll`: it has nothing to do but wait.
fn is_waiting(thread: &str) -> bool {
    let path = format!("/proc/self/task/{thread}/syscall");
    match std::fs::read_to_string(&path) {
        Ok(text) => text.split(' ').next() == Some(PPOLL),
        // Not for us to read here: asleep must do.
        Err(_) => std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"))
            .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S"))),
    }
}

#[cfg(target_arch = "x86_64")]
const PPOLL: &str = "271";
#[cfg(not(target_arch = "x86_64"))]
const PPOLL: &str = "73";

fn own_thread() -> String {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Runs `operation` on what `prepare` made, again and again, each time cancelled once it waits;
/// asserts that it is back at once and, after `end`, that nothing is left.
#[track_caller]
fn cancelled<T>(
    phase: &str,
    prepare: impl Fn() -> T,
    operation: impl Fn(&mut T, &Cancel) -> Option<WireError>,
    end: impl FnOnce(),
) {
    let thread = own_thread();
    let before = held();
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let mut on = prepare();
        let cancel = Cancel::new();
        let (error, took) = std::thread::scope(|scope| {
            let (canceller, thread) = (cancel.clone(), &thread);
            let at = scope.spawn(move || {
                wait_until("the wait", || is_waiting(thread));
                let at = Instant::now();
                canceller.cancel(Reason::Interrupt);
                at
            });
            let error = operation(&mut on, &cancel);
            let ended = Instant::now();
            (error, ended.saturating_duration_since(at.join().unwrap()))
        });
        assert_eq!(error, Some(WireError::cancelled()), "{phase}");
        times.push(took);
    }
    times.sort();
    println!("{phase}: p50 {:?}, max {:?} of {TIMES}", times[TIMES / 2], times[TIMES - 1]);
    assert!(times[TIMES / 2] < AT_ONCE && times[TIMES - 1] < Duration::from_secs(2), "{phase}");
    end();
    wait_until(phase, || held() == before);
}

/// Cancels the opening of a connection to `url`.
#[track_caller]
fn cancelled_open(phase: &str, host: &Host, url: &str) {
    let open = |sockets: &mut Sockets, cancel: &Cancel| match sockets.open(url, &[], cancel) {
        Err(OpenError::Wire(error)) => Some(error),
        _ => None,
    };
    cancelled(phase, || sockets(host), open, || {});
}

/// A queue of one that nobody accepts from: further connects get no answer.
fn full_queue() -> (socket2::Socket, SocketAddr, Vec<TcpStream>) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let mut queue = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        queue.push(stream);
        assert!(queue.len() < 100, "the queue never fills");
    }
    (socket, address, queue)
}

#[test]
fn a_cancel_in_any_phase_returns_at_once_and_leaves_nothing() {
    if !alone("wire_ws::cancel::a_cancel_in_any_phase_returns_at_once_and_leaves_nothing") {
        return;
    }
    let host = Host::fixed();
    let (_socket, address, _queue) = full_queue();
    cancelled_open("connect", &host, &format!("http://{address}/"));
    // Connections that are taken by the kernel alone: nothing is ever said on them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let drained = || {
        silent.set_nonblocking(true).unwrap();
        while silent.accept().is_ok() {}
    };
    cancelled_open("TLS", &host, &format!("https://{address}/"));
    drained();
    let proxied = Host::fixed().with_var("HTTP_PROXY", format!("http://{address}"));
    cancelled_open("tunnel", &proxied, "http://model.example/");
    drained();
    cancelled_open("upgrade", &host, &format!("http://{address}/"));
    drained();
    let refusing = Server::with(|_| Reply::new(500, "text/plain", "half").then_stall());
    cancelled_open("refusal", &host, &refusing.url());
}

#[test]
fn a_cancel_of_a_message_returns_at_once_and_leaves_nothing() {
    if !alone("wire_ws::cancel::a_cancel_of_a_message_returns_at_once_and_leaves_nothing") {
        return;
    }
    let half = frame(0x81, b"half of it")[..6].to_vec();
    for (phase, ws) in [("silence", Ws::new()), ("half a message", Ws::new().raw(half))] {
        let server = Server::with(move |_| Reply::websocket(ws.clone().stall()));
        let connect = || open(&sockets(&Host::fixed()), &server.url()).unwrap().socket;
        let receive = |socket: &mut WebSocket, cancel: &Cancel| {
            let error = socket.receive(cancel).err();
            assert!(!socket.is_alive());
            error
        };
        cancelled(phase, connect, receive, || {});
    }
    // TLS reads and writes through the same wait.
    let server = Server::start_tls(
        tls::server_config(),
        (0..TIMES).map(|_| Reply::websocket(Ws::new().stall())),
    );
    let trusting = Host::fixed().with_var("SSL_CERT_FILE", tls::authority_file());
    let connect = || open(&sockets(&trusting), &server.url()).unwrap().socket;
    let receive = |socket: &mut WebSocket, cancel: &Cancel| socket.receive(cancel).err();
    cancelled("silence in TLS", connect, receive, || {});
    // A peer that does not read, and whose threads wait for the gate.
    let gate = Gate::new();
    let held_back = gate.clone();
    let server = Server::with(move |_| Reply::websocket(Ws::new().wait(&held_back)));
    let connect = || open(&sockets(&Host::fixed()), &server.url()).unwrap().socket;
    let long = vec![b'x'; 32 << 20];
    let send = |socket: &mut WebSocket, cancel: &Cancel| {
        let error = socket.send(&long, cancel).err();
        assert!(!socket.is_alive());
        error
    };
    cancelled("send", connect, send, || gate.open());
}

#[test]
fn a_cancel_that_came_before_costs_nothing_and_harms_nothing() {
    let server = Server::start([Reply::websocket(Ws::new().expect().text("hi"))]);
    let cancel = Cancel::new();
    cancel.cancel(Reason::User);
    let sockets = sockets(&Host::fixed());
    let refused = sockets.open(&server.url(), &[], &cancel);
    assert!(matches!(refused, Err(OpenError::Wire(error)) if error.is_cancelled()));
    let mut socket = open(&sockets, &server.url()).unwrap().socket;
    assert_eq!(socket.send(b"x", &cancel), Err(WireError::cancelled()));
    assert_eq!(socket.receive(&cancel), Err(WireError::cancelled()));
    assert!(socket.is_alive());
    socket.send(b"x", &Cancel::new()).unwrap();
    assert_eq!(super::receive(&mut socket).unwrap(), "hi");
    assert_eq!(server.connections(), 1);
}

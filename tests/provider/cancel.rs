//! Cancelling, whatever a call is waiting for: back at once, and nothing is left.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use etch::cancel::{Cancel, Reason};
use etch::host::Host;
use etch::model::{ErrorKind, ModelEvent};

use crate::support::alone::alone;
use crate::support::chat::Chat;
use crate::support::model::{ask, ask_with, model, settings, user};
use crate::support::server::{Reply, Server};

/// Longer than any pause of a busy machine; what is measured is far below.
const PATIENCE: Duration = Duration::from_secs(20);
const CALLS: usize = 20;

fn count(dir: &str) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

/// Threads and file descriptors of this process.
fn held() -> (usize, usize) {
    (count("/proc/self/task"), count("/proc/self/fd"))
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "still waiting: {what}");
        std::thread::yield_now();
    }
}

/// Cancels a call to `reply` after `events` events, again and again.
fn cancelled_calls(reply: &Reply, events: usize) -> Vec<Duration> {
    let reply = reply.clone();
    let server = Server::with(move |_| reply.clone());
    let model = model(&settings(&server.base_url()), Host::fixed());
    let mut times = Vec::new();
    for call in 1..=CALLS {
        let cancel = Cancel::new();
        let canceller = cancel.clone();
        let (at_sender, at) = crossbeam_channel::bounded(1);
        let (go_sender, go) = crossbeam_channel::bounded::<()>(1);
        let thread = std::thread::spawn(move || {
            let _ = go.recv();
            let _ = at_sender.send(Instant::now());
            canceller.cancel(Reason::Interrupt);
        });
        let mut left = events;
        let go_from_watch = go_sender.clone();
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Without any event to wait for: the request has arrived.
                if events == 0 {
                    server.wait_for(call);
                    let _ = go_sender.send(());
                }
            });
            ask_with(
                &*model,
                &[user("go")],
                &cancel,
                &mut |event| {
                    if left > 0 && !matches!(event, ModelEvent::Response { .. }) {
                        left -= 1;
                        if left == 0 {
                            let _ = go_from_watch.send(());
                        }
                    }
                },
                |_| {},
            )
        });
        times.push(at.recv().unwrap().elapsed());
        thread.join().unwrap();
        assert_eq!(outcome.error().kind, ErrorKind::Cancelled, "{:?}", outcome.error());
    }
    times
}

#[test]
fn a_cancelled_call_returns_at_once_and_leaves_no_thread_and_no_socket() {
    if !alone(
        "provider::cancel::a_cancelled_call_returns_at_once_and_leaves_no_thread_and_no_socket",
    ) {
        return;
    }
    let flood = Chat::new().text("x").into_bytes();
    for (phase, reply, events) in [
        ("headers", Reply::silence(), 0),
        ("silent body", Chat::new().text("Hi").reply().then_stall(), 2),
        ("flooding body", Chat::new().text("Hi").reply().then_flood(flood.repeat(100)), 50),
        ("retry wait", Reply::error(429, "x", "slow").header("Retry-After", "60"), 2),
    ] {
        let before = held();
        let mut times = cancelled_calls(&reply, events);
        times.sort();
        println!("{phase}: p50 {:?}, max {:?} of {CALLS}", times[CALLS / 2], times[CALLS - 1]);
        assert!(times[CALLS / 2] < PATIENCE);
        wait_until(phase, || held() == before);
    }
}

#[test]
fn a_connect_that_hangs_is_left_behind_and_ends_by_its_own_bound() {
    if !alone("provider::cancel::a_connect_that_hangs_is_left_behind_and_ends_by_its_own_bound") {
        return;
    }
    // A queue of one that nobody accepts from: further connects get no answer.
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
    let mut settings = settings(&format!("http://{address}/v1"));
    settings.timeouts.connect = Duration::from_millis(500);
    let model = model(&settings, Host::fixed());
    let before = held();
    let cancel = Cancel::new();
    let canceller = cancel.clone();
    let (at_sender, at) = crossbeam_channel::bounded(1);
    let thread = std::thread::spawn(move || {
        // The canceller itself and the thread that connects, with its socket.
        wait_until("the connect", || held().0 >= before.0 + 2 && held().1 > before.1);
        let _ = at_sender.send(Instant::now());
        canceller.cancel(Reason::Interrupt);
    });
    let outcome = ask_with(&*model, &[user("go")], &cancel, &mut |_| {}, |_| {});
    println!("connect: {:?}", at.recv().unwrap().elapsed());
    assert_eq!(outcome.error().kind, ErrorKind::Cancelled, "{:?}", outcome.error());
    thread.join().unwrap();
    wait_until("the thread that connects", || held() == before);
    // Without a cancel the same bound ends the attempt and names itself.
    let outcome = ask(&*model, &[user("go")]);
    let text = &outcome.error().message;
    assert!(text.contains(&format!("timed out after 0.5 s connecting to {address}")), "{text}");
    wait_until("the last connect", || held() == before);
    drop(queue);
}

#[test]
fn a_call_after_a_cancelled_one_works() {
    let server =
        Server::start([Chat::new().text("Hel").reply().then_stall(), Chat::answer("Hello")]);
    let model = model(&settings(&server.base_url()), Host::fixed());
    let cancel = Cancel::new();
    let canceller = cancel.clone();
    let outcome = ask_with(
        &*model,
        &[user("go")],
        &cancel,
        &mut |event| {
            if let ModelEvent::TextDelta(_) = event {
                canceller.cancel(Reason::User);
            }
        },
        |_| {},
    );
    assert_eq!(outcome.error().kind, ErrorKind::Cancelled);
    assert_eq!(ask(&*model, &[user("go")]).text(), "Hello");
    let spent = ask_with(&*model, &[user("go")], &cancel, &mut |_| {}, |_| {});
    assert_eq!(spent.error().kind, ErrorKind::Cancelled);
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn calls_of_one_model_at_once_are_cancelled_one_by_one() {
    let server = Server::with(|seen| {
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        if body.contains("stall") {
            Chat::new().text("x").reply().then_stall()
        } else {
            Chat::answer("Hi")
        }
    });
    let model = model(&settings(&server.base_url()), Host::fixed());
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let stalled =
            scope.spawn(|| ask_with(&*model, &[user("stall")], &cancel, &mut |_| {}, |_| {}));
        server.wait_for(1);
        for _ in 0..3 {
            assert_eq!(ask(&*model, &[user("go")]).text(), "Hi");
        }
        cancel.cancel(Reason::User);
        assert_eq!(stalled.join().unwrap().error().kind, ErrorKind::Cancelled);
        assert_eq!(ask(&*model, &[user("go")]).text(), "Hi");
    });
}

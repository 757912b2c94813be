//! The chat on a terminal that nobody reads for a while: a stopped `ssh`, a pane that is held.

use std::time::{Duration, Instant};

use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::server::{Reply, Server};
use crate::support::talk::{COLUMNS, ROWS, Talk, settings};

/// Words without an end.
fn flood() -> Reply {
    let more = Chat::new().text("and more words\n\n").into_bytes();
    Chat::new().text("words ").reply().then_flood(more)
}

/// Waits for what a shell writes into a file of the place.
fn told(place: &Place, name: &str) -> String {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(place.work().join(name)).unwrap_or_default();
        if text.ends_with('\n') {
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "the chat does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_signal_ends_it_at_once_and_the_terminal_is_as_it_was() {
    for (signal, code, args) in
        [("TERM", "143\n", ""), ("HUP", "129\n", ""), ("TERM", "143\n", "chat --plain")]
    {
        let place = Place::new();
        let server = Server::start([flood()]);
        let script = format!(
            "stty -g >before; trap : HUP; $ETCH {args}; echo $? >code; stty -g >after; read -r x"
        );
        let mut talk = Talk::spawn(settings(place.sh(&script), &server), COLUMNS, ROWS);
        talk.keys("go\r");
        talk.sees("and more");
        talk.pty.hold();
        let begun = Instant::now();
        place.sh(&format!("pkill -{signal} -P {} etch", talk.pty.pid())).run().exits(0);
        assert_eq!(told(&place, "code"), code, "{args}");
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(5), "{signal} {args}: {took:?}");
        assert_eq!(told(&place, "after"), told(&place, "before"), "{signal} {args}");
        // Whoever reads again finds a terminal that is as it was, and how to go on.
        talk.pty.go_on();
        let output = talk.pty.wait_for("resume: etch resume ");
        if args.is_empty() {
            assert!(output.contains("\u{1b}[?2004l"), "{signal}");
        }
        let sessions = settings(place.etch(["sessions"]), &server).run().exits(0);
        assert!(sessions.out().contains("go"), "{}", sessions.out());
        let locks = place.sh("find / -xdev -path \"$HOME/*\" -name '*.lock' 2>/dev/null").run();
        assert_eq!(locks.out(), "", "the session is closed");
        talk.keys("\r");
    }
}

#[test]
fn what_is_typed_meanwhile_is_there_afterwards() {
    let place = Place::new();
    let server = Server::for_prompts([flood(), Chat::answer("the answer to it")]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.keys("go\r");
    talk.sees("and more");
    talk.pty.hold();
    talk.keys("typed meanwhile\u{1b}[D\u{1b}[DX");
    talk.keys("\u{c}");
    talk.pty.go_on();
    talk.sees("› typed meanwhiXle");
    talk.keys("\u{3}");
    talk.sees("Cancelled");
    talk.sees("› typed meanwhiXle");
    talk.keys("\r");
    talk.sees("the answer to it");
}

#[test]
fn ctrl_c_from_outside_stops_the_turn_and_twice_leaves() {
    let place = Place::new();
    let server = Server::start([flood()]);
    let mut talk = Talk::start(&place, &server, &["chat"]);
    talk.keys("go\r");
    talk.sees("and more");
    talk.pty.hold();
    let interrupt = format!("kill -INT {0}; sleep 0.3; kill -INT {0}", talk.pty.pid());
    place.sh(&interrupt).run().exits(0);
    talk.pty.go_on();
    let (status, output, _) = talk.end();
    assert!(status.success(), "{output}");
    assert!(output.contains("resume: etch resume "), "{output}");
}

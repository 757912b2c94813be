//! Messages, however they are framed; and what is refused.

use std::time::Duration;

use etch::cancel::Cancel;
use etch::wire::WireErrorKind;

use super::{connected, receive};
use crate::support::alone::alone;
use crate::support::server::{Ws, frame, frame_head};

const MIB: usize = 1 << 20;

/// Long text that would show any piece at a wrong place.
fn numbered(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&format!("{number:x}é,"));
    }
    text
}

fn peak_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_message_of_17_mib_comes_in_one_frame() {
    let text = numbered(17 * MIB);
    let (_server, mut socket) = connected(Ws::new().text(&text).text("done"));
    assert!(receive(&mut socket).unwrap() == text);
    assert_eq!(receive(&mut socket).unwrap(), "done");
}

#[test]
fn a_ping_in_the_middle_of_a_thousand_fragments_is_answered_there() {
    let text = numbered(17 * MIB);
    let ws = Ws::new().fragments_around_ping(&text, 1000, "now").text("done");
    let (server, mut socket) = connected(ws);
    assert!(receive(&mut socket).unwrap() == text);
    assert_eq!(receive(&mut socket).unwrap(), "done");
    socket.close();
    server.wait_until_gone();
}

#[test]
fn a_frame_that_claims_gigabytes_is_refused_by_its_head() {
    if !alone("wire_ws::frames::a_frame_that_claims_gigabytes_is_refused_by_its_head") {
        return;
    }
    let too_large = |ws: Ws| {
        let (_server, mut socket) = connected(ws);
        let error = receive(&mut socket).unwrap_err();
        assert_eq!(error.kind, WireErrorKind::TooLarge);
        assert!(!socket.is_alive());
        error.message
    };
    // What the first connection takes, whatever comes.
    let (_server, mut socket) = connected(Ws::new().text("x"));
    assert_eq!(receive(&mut socket).unwrap(), "x");
    let before = peak_kb();
    for (claim, shown) in
        [(4 << 30, "of 4.0GB;"), (u64::MAX >> 1, "TB;"), (64 * MIB as u64 + 1, "of 64.0MB;")]
    {
        // Nothing of the payload ever comes.
        let text = too_large(Ws::new().raw(frame_head(0x81, claim)).stall());
        assert!(text.contains(shown) && text.contains("no more than 64.0MB is taken"), "{text}");
    }
    assert!(peak_kb() - before < 8 << 10, "{} KB", peak_kb() - before);
    // In fragments: refused when they are more, not when they end.
    let piece = frame(0x00, &vec![b'x'; 16 * MIB]);
    let first = frame(0x01, &vec![b'x'; 16 * MIB]);
    let text = too_large(Ws::new().raw([first, piece.repeat(4)].concat()).stall());
    assert!(text.contains("no more than 64.0MB is taken"), "{text}");
}

#[test]
fn a_long_message_goes_out_without_a_copy_of_it() {
    if !alone("wire_ws::frames::a_long_message_goes_out_without_a_copy_of_it") {
        return;
    }
    // Every length of a frame's length, and around the pieces that are written.
    for bytes in [0, 125, 126, 65535, 65536, 65521, 65522, 65523, 131_072, 3 * MIB] {
        let text = numbered(bytes);
        let (server, mut socket) = connected(Ws::new().expect().text("got it"));
        socket.send(text.as_bytes(), &Cancel::new()).unwrap();
        assert_eq!(receive(&mut socket).unwrap(), "got it");
        assert_eq!(socket.sent_bytes(), text.len() as u64);
        assert!(server.messages()[0].text == text, "{bytes}");
    }
    // This process is the server as well: it reads nothing until the peak was taken.
    let text = vec![b'x'; 64 * MIB];
    let gate = crate::support::server::Gate::new();
    let (_server, mut socket) = connected(Ws::new().wait(&gate).expect());
    let before = peak_kb();
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let (socket, cancel, text) = (&mut socket, &cancel, &text);
        let sending = scope.spawn(move || socket.send(text, cancel));
        std::thread::sleep(Duration::from_millis(100));
        cancel.cancel(etch::cancel::Reason::User);
        assert!(sending.join().unwrap().unwrap_err().is_cancelled());
    });
    assert!(peak_kb() - before < 16 << 10, "{} KB", peak_kb() - before);
    gate.open();
}

#[test]
fn text_is_the_same_wherever_its_frame_is_cut() {
    let text = "ein 漢字 🦀 \"\\n\"";
    let mut ws = Ws::new().text_bytewise(text);
    // Fragments end within characters too.
    for pieces in 2..=text.len() {
        ws = ws.fragments(text, pieces);
    }
    let (_server, mut socket) = connected(ws.text_bytewise("last"));
    for _ in 0..text.len() {
        assert_eq!(receive(&mut socket).unwrap(), text);
    }
    assert_eq!(receive(&mut socket).unwrap(), "last");
}

#[test]
fn what_no_server_may_send_is_named() {
    let says = |name: &str, bytes: Vec<u8>, want: &str| {
        let (_server, mut socket) = connected(Ws::new().raw(bytes).stall());
        let error = receive(&mut socket).unwrap_err();
        let host = "does not keep to the rules of WebSockets: it sent";
        assert_eq!(error.kind, WireErrorKind::Protocol, "{name}: {error}");
        assert!(error.message.ends_with(&format!("{host} {want}")), "{name}: {error}");
        assert!(!socket.is_alive());
        assert!(socket.send(b"x", &Cancel::new()).is_err());
    };
    says("masked", b"\x81\x81\0\0\0\0x".to_vec(), "a masked frame");
    for bit in [0x40, 0x20, 0x10] {
        says("reserved", frame(0x81 | bit, b"x"), "a frame with reserved bits");
    }
    for kind in [0x3, 0x7, 0xB, 0xF] {
        says("kind", frame(0x80 | kind, b"x"), "a frame of an unknown kind");
    }
    says("UTF-8", frame(0x81, b"a\xFF"), "text that is not UTF-8");
    says("half a character", frame(0x81, "é".as_bytes()[..1].into()), "text that is not UTF-8");
    let fragments = [frame(0x01, b"\xC3"), frame(0x80, b"x")].concat();
    says("UTF-8 in fragments", fragments, "text that is not UTF-8");
    says("binary", frame(0x82, b"x"), "a binary message");
    says("rest alone", frame(0x80, b"x"), "the rest of a message that had not begun");
    let two = [frame(0x01, b"x"), frame(0x81, b"y")].concat();
    says("two at once", two, "a message in the middle of another");
    says("ping in pieces", frame(0x09, b"x"), "a control frame in pieces");
    says("long ping", frame(0x89, &[b'x'; 126]), "a control frame that is too long");
    says("short close", frame(0x88, b"x"), "a close frame that is cut");
    says("reason", frame(0x88, b"\x03\xE8\xFF"), "text that is not UTF-8");
    let page = format!("HTTP/1.1 200 OK\r\n\r\n{}", " ".repeat(100));
    says("HTTP", page.into_bytes(), "a frame with reserved bits");
}

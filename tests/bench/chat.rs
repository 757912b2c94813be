//! The chat in a pseudo-terminal: how soon it can be typed in, how many bytes a streamed answer
//! costs, and how long a key takes to be seen while much arrives.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use crate::measure::{binary, budget};
use crate::support::command::Place;
use crate::support::pty::Pty;

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;
/// What a model says, cut as models cut it.
const WORDS: &[&str] =
    &["The ", "quick ", "brown ", "fox", " jumps", " over ", "the ", "lazy", " dog. "];
/// Keys that no answer holds.
const KEYS: &str = "\u{416}\u{428}\u{42e}\u{424}\u{414}\u{418}\u{42f}\u{411}";

pub fn print() {
    start();
    for (what, rate) in [("50 deltas a second", 50), ("500 deltas a second", 500)] {
        bytes(what, rate);
    }
    echo(5_000);
}

/// A server that says `count` pieces, so many a second; its base URL and the text it says.
fn server(rate: u64, count: usize) -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let text: String = WORDS.iter().cycle().take(count).copied().collect();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut line, mut length) = (String::new(), 0_usize);
        while reader.read_line(&mut line).unwrap() > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        std::io::copy(&mut std::io::Read::take(reader, length as u64), &mut std::io::sink())
            .unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
            )
            .unwrap();
        let begun = Instant::now();
        for (idx, word) in WORDS.iter().cycle().take(count).enumerate() {
            let due = Duration::from_nanos(1_000_000_000 / rate * idx as u64);
            thread::sleep(due.saturating_sub(begun.elapsed()));
            let event =
                format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\n");
            if stream.write_all(event.as_bytes()).is_err() {
                return;
            }
        }
        let _ = stream.write_all(b"data: [DONE]\n\n");
    });
    (url, text)
}

fn chat(place: &Place, args: &[&str]) -> Pty {
    let command = place.command(binary(), args).env("TERM", "xterm-256color").env("NO_COLOR", "1");
    Pty::spawn(command.into_command(), COLUMNS, ROWS)
}

fn start() {
    let place = Place::new();
    let mut times: Vec<Duration> = (0..21)
        .map(|_| {
            let begun = Instant::now();
            let mut pty = chat(&place, &["chat", "--provider", "echo"]);
            pty.wait_for("\u{203a}");
            begun.elapsed()
        })
        .collect();
    times.sort();
    let median = times[times.len() / 2].as_secs_f64() * 1000.0;
    println!(
        "start to a prompt: median {median:.1} ms, worst {:.1} ms",
        times[times.len() - 1].as_secs_f64() * 1000.0
    );
    budget("chat: start to a usable prompt", median, 30.0, "ms", "");
}

fn bytes(what: &str, rate: u64) {
    let (place, (url, text)) = (Place::new(), server(rate, rate as usize * 5));
    let mut pty =
        chat(&place, &["chat", "--provider", "openai", "--model", "m", "--base-url", &url]);
    pty.wait_for("\u{203a}");
    let before = pty.wait_until("a prompt", |_| true).len();
    pty.type_keys("go\r");
    let begun = Instant::now();
    pty.wait_for("Worked for");
    let seconds = begun.elapsed().as_secs_f64();
    let output = pty.wait_until("all", |_| true).to_vec();
    let written = output.len() - before;
    let size = |n| NonZero::new(n).unwrap();
    let mut terminal = vt100::Parser::new(size(ROWS), size(COLUMNS), 0);
    terminal.process(&output);
    let screen = terminal.screen().contents().len();
    let repaint = seconds * 20.0 * screen as f64;
    let ratio = written as f64 / text.len() as f64;
    println!(
        "{what}: {} bytes of text, {written} written ({ratio:.2} times); the whole screen 20 times a second: {:.1} times",
        text.len(),
        repaint / text.len() as f64
    );
    budget(&format!("chat: bytes written per byte of text, {what}"), ratio, 3.0, "", "");
}

fn echo(rate: u64) {
    let (place, (url, _)) = (Place::new(), server(rate, rate as usize * 4));
    let mut pty =
        chat(&place, &["chat", "--provider", "openai", "--model", "m", "--base-url", &url]);
    pty.wait_for("\u{203a}");
    pty.type_keys("go\r");
    pty.wait_for("quick");
    let mut times = Vec::new();
    for key in KEYS.chars().cycle().take(40) {
        let key = key.to_string();
        let from = pty.wait_until("now", |_| true).len();
        let begun = Instant::now();
        pty.type_keys(&key);
        pty.wait_until("the key", |seen| {
            seen[from..].windows(key.len()).any(|window| window == key.as_bytes())
        });
        times.push(begun.elapsed());
        thread::sleep(Duration::from_millis(30));
    }
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let (median, worst) = (ms(times[times.len() / 2]), ms(times[times.len() - 1]));
    println!(
        "key to echo at {rate} deltas a second: median {median:.1} ms, worst of {} {worst:.1} ms",
        times.len()
    );
    budget("chat: key to echo in a stream of 5,000 deltas a second", worst, 16.0, "ms", "");
}

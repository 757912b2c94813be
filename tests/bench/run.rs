//! Whole runs against a scripted loopback server: start, one prompt, rounds, long streams.

use std::process::Command;

use crate::measure::{Used, binary, median, row, used, wall_ratio};
use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::server::{Reply, Server};

pub fn print() {
    let size = std::fs::metadata(binary()).map_or(0, |data| data.len());
    println!("binary {}: {:.2} MB", binary().display(), size as f64 / 1e6);
    let version = || used(Command::new(binary()).arg("--version"));
    row("etch --version", median(50, version));
    row("/bin/true", median(50, || used(&mut Command::new("/bin/true"))));
    let ratio = wall_ratio(200, version, || used(&mut Command::new("/bin/true")));
    println!("etch --version / /bin/true, wall: {ratio:.2}");
    row("one prompt, one answer", median(20, || prompt(&[Chat::answer("hello")])));
    for rounds in [1, 11] {
        let mut replies = Vec::new();
        for round in 1..rounds {
            let id = format!("call_{round}");
            // Another line each time: the same call again and again would end the run.
            let arguments = format!("{{\"path\":\"file.txt\",\"offset\":{round}}}");
            replies.push(Chat::calls(&[(&id, "read", &arguments)]));
        }
        replies.push(Chat::answer("done"));
        row(&format!("{} rounds of read", rounds - 1), median(10, || prompt(&replies)));
    }
    for deltas in [10_000, 100_000] {
        let mut chat = Chat::new();
        for _ in 0..deltas {
            chat = chat.text("word ");
        }
        let reply = chat.finish("stop").done().reply();
        row(&format!("{deltas} deltas"), median(5, || prompt(std::slice::from_ref(&reply))));
    }
}

/// One run in a fresh place, against a server that plays `replies`.
fn prompt(replies: &[Reply]) -> Used {
    let place = Place::new();
    let lines: String = (1..100).map(|line| format!("line {line}\n")).collect();
    place.file("file.txt", lines);
    let server = Server::start(replies.to_vec());
    let mut command = Command::new(binary());
    command.env_clear().env("HOME", place.home.path()).env("PATH", "/usr/bin:/bin");
    command.current_dir(place.work()).stdin(std::process::Stdio::null());
    let url = server.base_url();
    command.args(["-p", "go", "--provider", "openai", "--model", "m", "--api-key", "k"]);
    command.args(["--base-url", &url]);
    used(&mut command)
}

//! Whole runs against a scripted loopback server: start, one prompt, rounds, long streams.

use std::process::Command;

use crate::measure::{Used, binary, budget, command, median, row, used, wall_ratio};
use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::server::{Reply, Seen, Server};

pub fn print() {
    let size = std::fs::metadata(binary()).map_or(0, |data| data.len());
    println!("binary {}: {size} bytes", binary().display());
    let beside = if std::env::var_os("ETCH_BENCH_BINARY").is_some() { "" } else { "not static" };
    budget("size of the binary", size as f64 / 1e6, 4.0, "MB", beside);
    start();
    one_prompt();
    rounds();
    deltas();
    strangers();
}

fn start() {
    let version = || used(command(binary()).arg("--version"));
    let peer = || used(&mut command("/bin/true"));
    row("etch --version", median(50, version));
    let beside = median(50, peer);
    row("/bin/true", beside);
    let ratio = wall_ratio(200, version, peer);
    println!("etch --version / /bin/true, wall: {ratio:.2}");
    let beside = format!("/bin/true: {:.2} ms", beside.wall_ms());
    budget("etch --version, wall, as a multiple of /bin/true", ratio, 1.0, "", &beside);
}

fn one_prompt() {
    let (figures, seen) = prompts(20, &[Chat::answer("hello")]);
    row("one prompt, one answer", figures);
    budget("one prompt: CPU", figures.cpu_ms(), 2.5, "ms", "");
    budget("one prompt: peak memory", figures.rss_mb(), 4.5, "MB", "");
    let body = seen[0].json();
    let system = body["messages"][0]["content"].as_str().map_or(0, |text| text.chars().count());
    let tools = body["tools"].to_string().chars().count();
    println!(
        "system prompt {system} characters, tools {tools}, request {} bytes",
        seen[0].body.len()
    );
    budget("base prompt and all tool schemas", (system + tools) as f64, 4500.0, "characters", "");
}

/// From one request to the next, which includes the server's small answer.
fn rounds() {
    // Other arguments each time: the same call again and again would end the run.
    for (what, name, limit_ms) in [("read", "read", 1.5), ("a shell command", "bash", 2.0)] {
        let mut replies = Vec::new();
        for round in 1..=20 {
            let arguments = match name {
                "read" => format!("{{\"path\":\"file.txt\",\"offset\":{round}}}"),
                _ => format!("{{\"command\":\"echo {round}\"}}"),
            };
            replies.push(Chat::calls(&[(&format!("call_{round}"), name, &arguments)]));
        }
        replies.push(Chat::answer("done"));
        let (figures, seen) = prompts(10, &replies);
        row(&format!("20 rounds of {what}"), figures);
        let mut gaps: Vec<f64> =
            seen.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64() * 1e3).collect();
        gaps.sort_by(f64::total_cmp);
        let middle = gaps[gaps.len() / 2];
        println!("  a round: median {middle:.2} ms");
        let shell = median(20, || used(command("bash").args(["-c", "echo"]))).wall_ms();
        let beside = if what == "read" { String::new() } else { format!("bash -c: {shell:.2} ms") };
        budget(
            &format!("a round of {what}, answer to next request"),
            middle,
            limit_ms,
            "ms",
            &beside,
        );
    }
}

fn deltas() {
    let figures = [10_000, 100_000].map(|deltas| {
        let mut chat = Chat::new();
        for _ in 0..deltas {
            chat = chat.text("word ");
        }
        let reply = chat.finish("stop").done().reply();
        let (figures, _) = prompts(5, std::slice::from_ref(&reply));
        row(&format!("{deltas} deltas"), figures);
        figures
    });
    let beside = format!("10,000: {:.1} ms, {:.1} MB", figures[0].cpu_ms(), figures[0].rss_mb());
    budget("100,000 deltas: CPU", figures[1].cpu_ms(), 120.0, "ms", &beside);
    budget("100,000 deltas: peak memory", figures[1].rss_mb(), 6.0, "MB", "");
}

/// Whom a run calls beside its endpoint, names looked up included.
fn strangers() {
    let place = Place::new();
    let server = Server::start([Chat::answer("hello")]);
    let trace = place.home.path().join("trace");
    let mut command = command("strace");
    command.args(["-f", "-e", "trace=connect,sendto", "-o"]).arg(&trace).arg(binary());
    if run_prompt(&place, &server, command).exit != 0 {
        return println!("strace cannot be used: contacts are not counted");
    }
    let calls = std::fs::read_to_string(trace).unwrap();
    let port = format!("htons({})", server.address().port());
    let outward =
        calls.lines().filter(|line| line.contains("sin_port") || line.contains("sin6_port"));
    let count = outward.filter(|line| !line.contains(&port)).count();
    budget("hosts contacted beside the endpoint", count as f64, 0.0, "", "");
}

/// Several runs, each in a fresh place, against a server that plays `replies`: what they used, and
/// what the server saw of the last one.
fn prompts(runs: usize, replies: &[Reply]) -> (Used, Vec<Seen>) {
    let mut seen = Vec::new();
    let figures = median(runs, || {
        let place = Place::new();
        let lines: String = (1..100).map(|line| format!("line {line}\n")).collect();
        place.file("file.txt", lines);
        let server = Server::start(replies.to_vec());
        let figures = run_prompt(&place, &server, command(binary()));
        seen = server.seen();
        figures
    });
    assert_eq!((figures.exit, seen.len()), (0, replies.len()));
    (figures, seen)
}

fn run_prompt(place: &Place, server: &Server, mut command: Command) -> Used {
    command.env_clear().env("HOME", place.home.path()).env("PATH", "/usr/bin:/bin");
    command.current_dir(place.work()).stdin(std::process::Stdio::null());
    command.args(["-p", "go", "--provider", "openai", "--model", "m", "--api-key", "k"]);
    command.args(["--base-url", &server.base_url()]);
    used(&mut command)
}

//! From the interrupt to the end of the process, whatever was in progress.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::measure::{binary, budget};
use crate::support::chat::Chat;
use crate::support::command::Place;
use crate::support::server::{Reply, Server};

const RUNS: usize = 50;
/// For the run to get into the phase after its request was seen.
const INTO_PHASE: Duration = Duration::from_millis(30);

pub fn print() {
    let started = || Chat::new().text("word ").reply();
    let command = Chat::calls(&[("call_1", "bash", "{\"command\":\"sleep 60 | cat\"}")]);
    let event = Chat::new().text("word ").into_bytes();
    let phases = [
        ("no headers yet", Reply::silence()),
        ("a silent body", started().then_stall()),
        ("a flooding body", started().then_flood(event)),
        ("a command", command),
    ];
    let mut worst_ms = 0.0;
    for (what, reply) in phases {
        let mut millis: Vec<f64> = (0..RUNS).map(|_| cancelled(&reply)).collect();
        millis.sort_by(f64::total_cmp);
        println!(
            "cancel in {what:<20} median {:>6.2} ms  worst {:>6.2} ms",
            millis[RUNS / 2],
            millis[RUNS - 1]
        );
        worst_ms = f64::max(worst_ms, millis[RUNS - 1]);
    }
    // How long this machine takes to end a process that does nothing.
    let sleeping = |_| {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        sleep(INTO_PHASE);
        interrupted(child)
    };
    let sleep_ms = (0..RUNS).map(sleeping).fold(0.0, f64::max);
    let beside = format!("sleep: {sleep_ms:.1} ms");
    budget(&format!("cancel to return, worst of {}", 4 * RUNS), worst_ms, 50.0, "ms", &beside);
}

fn cancelled(reply: &Reply) -> f64 {
    let place = Place::new();
    let server = Server::start([reply.clone()]);
    let mut command = Command::new(binary());
    command.env_clear().env("HOME", place.home.path()).env("PATH", "/usr/bin:/bin");
    command.current_dir(place.work()).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.args(["-p", "go", "--provider", "openai", "--model", "m", "--api-key", "k"]);
    let mut child = command.args(["--base-url", &server.base_url()]).spawn().unwrap();
    server.wait_for(1);
    sleep(INTO_PHASE);
    assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
    interrupted(child)
}

/// From the signal to the end.
fn interrupted(mut child: Child) -> f64 {
    let start = Instant::now();
    // SAFETY: a signal to a child that has not been waited for.
    unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) };
    child.wait().unwrap();
    start.elapsed().as_secs_f64() * 1e3
}

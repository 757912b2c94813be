//! The session log: appending, resuming long sessions, listing many.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use etch::context::project::Projection;
use etch::host::Host;
use etch::model::{Finish, Metrics, Part, Reasoning, ResultStatus, ToolCall, ToolResult, Usage};
use etch::session::{EventData, Log, Store, replay};

use crate::measure::{binary, budget, command, median, row, used};
use crate::support::command::TempDir;
use crate::support::session::started;

/// In a process of its own: reads this session into a projection and ends.
pub const REPLAY: &str = "ETCH_BENCH_REPLAY";
/// In a process of its own: lists this folder and ends.
pub const LIST: &str = "ETCH_BENCH_LIST";

pub fn print() {
    if let Some(path) = std::env::var_os(REPLAY) {
        let mut projection = Projection::new();
        replay(Path::new(&path), &mut projection).unwrap();
        projection.settle();
        return assert!(!projection.messages().is_empty());
    }
    if let Some(dir) = std::env::var_os(LIST) {
        return assert!(!Store::open(dir).list().unwrap().is_empty());
    }
    let temp = TempDir::new();
    append(temp.path());
    resume(temp.path());
    list(temp.path());
}

/// This program again, with `topic` and one variable.
fn again(name: &str, path: &Path) -> Command {
    let mut command = command(std::env::current_exe().unwrap());
    command.arg("log").env(name, path);
    command
}

/// The events of round `round`: seven, of some 3.7 kB together.
fn events(round: usize) -> Vec<EventData> {
    let call = ToolCall {
        id: format!("call_{round}"),
        name: "read".into(),
        arguments: format!("{{\"path\":\"src/module_{round}/file.rs\",\"offset\":{round}}}"),
        extra: None,
    };
    let usage =
        Usage { input: 1200, cached_input: 1000, output: 90, total: 1290, ..Usage::default() };
    let metrics = Metrics {
        transport: "http".into(),
        requests: 1,
        request_bytes: 7714,
        response_bytes: 2013,
        input_messages: 2,
        tool_count: 7,
        time_to_headers_millis: 9,
        time_to_first_event_millis: 12,
        ..Metrics::default()
    };
    let reasoning = Reasoning {
        text: "The function seems to be called from two places; look at both. ".repeat(3),
        field: "reasoning_content".into(),
        provider: "local".into(),
        model: "m".into(),
    };
    let text =
        "    let value = map.get(\"key\").copied().unwrap_or_default(); // line\n".repeat(14);
    let result = ToolResult {
        call_id: call.id.clone(),
        name: "read".into(),
        text,
        status: ResultStatus::Ok,
    };
    let said = Part::Text("Let me look at the module first, then at who calls it.".into());
    vec![
        EventData::user(format!("And what about module {round}? ").repeat(4)),
        EventData::reasoning(&reasoning),
        EventData::assistant(&[said, Part::ToolCall(call)], "local", "m", Finish::ToolCalls),
        EventData::ModelUsage(usage),
        EventData::ModelMetrics(metrics),
        EventData::tool(&result, &[], 3),
        EventData::assistant(&[Part::Text("It is fine. ".repeat(20))], "local", "m", Finish::Stop),
    ]
}

fn write(dir: &Path, count: usize) -> std::path::PathBuf {
    let host = Host::from_process();
    let mut log = Log::create(&Store::open(dir), &host, started("/work"), "bench");
    for event in (0..).flat_map(events).take(count) {
        log.append(&host, &event).unwrap();
    }
    log.path().unwrap().to_path_buf()
}

fn append(dir: &Path) {
    let host = Host::from_process();
    let mut log = Log::create(&Store::open(dir.join("append")), &host, started("/work"), "bench");
    let round = events(1);
    for (place, before) in [("an empty log", 0), ("a log of 50,000 events", 50_000)] {
        for event in round.iter().cycle().take(before) {
            log.append(&host, event).unwrap();
        }
        let start = Instant::now();
        for event in round.iter().cycle().take(7_000) {
            log.append(&host, event).unwrap();
        }
        let micros = start.elapsed().as_secs_f64() * 1e6 / 7_000.0;
        println!("append to {place:<24} {micros:>8.2} us an event");
    }
}

fn resume(dir: &Path) {
    for count in [10_000, 100_000] {
        let path = write(&dir.join(count.to_string()), count);
        let size = std::fs::metadata(&path).unwrap().len() as f64;
        let replayed = median(5, || used(&mut again(REPLAY, &path)));
        row(&format!("resume and project {count} events"), replayed);
        println!(
            "  {:.1} MB: {:.0} MB/s of CPU, {:.2}x the file in memory",
            size / 1e6,
            size / 1e6 / replayed.cpu.as_secs_f64(),
            replayed.rss_kib as f64 * 1024.0 / size
        );
        let session = path.file_stem().unwrap();
        let mut resumed = || {
            // Back to what it was, for the next run.
            std::fs::File::options().write(true).open(&path).unwrap().set_len(size as u64).unwrap();
            let mut command = command(binary());
            command.current_dir(dir).env("HOME", dir).stdin(std::process::Stdio::null());
            command.args(["-p", "go", "--provider", "echo", "--session-dir"]);
            command.arg(path.parent().unwrap()).arg("--session").arg(session);
            used(&mut command)
        };
        let whole = median(5, &mut resumed);
        assert_eq!(whole.exit, 0);
        row(&format!("etch -p --session, {count} events"), whole);
        if count == 100_000 {
            let multiple = whole.rss_mb() * 1e6 / size;
            budget("resume 100,000 events: CPU", whole.cpu_ms(), 150.0, "ms", "");
            budget("resume: memory, as a multiple of the file", multiple, 1.5, "", "");
        }
    }
}

fn list(dir: &Path) {
    let dir = dir.join("list");
    for _ in 0..500 {
        write(&dir, 2_000);
    }
    write(&dir, 100_000);
    row("list 501 sessions by their rows", median(5, || used(&mut again(LIST, &dir))));
    std::fs::remove_file(dir.join("index.jsonl")).unwrap();
    row("list 501 sessions by their heads", median(5, || used(&mut again(LIST, &dir))));
}

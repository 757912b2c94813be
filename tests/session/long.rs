//! Sessions of tens of megabytes: counted in bytes and calls, not in time.

use super::*;
use std::io::{BufWriter, Write};

/// What this thread has asked of the system: bytes read, bytes written, calls of `write`.
fn counts() -> [u64; 3] {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    ["rchar: ", "wchar: ", "syscw: "].map(|name| {
        let line = io.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    })
}

fn counted<T>(work: impl FnOnce() -> T) -> (T, [u64; 3]) {
    let before = counts();
    let done = work();
    let after = counts();
    (done, [0, 1, 2].map(|at| after[at] - before[at]))
}

/// 12,000 records in 60 MB, one of them of 8 MB; every three thousand a summary that keeps the
/// last two messages before it. Messages that say `kept` stand behind the last summary.
fn write_long(path: &Path) -> u64 {
    let mut out = BufWriter::new(fs::File::create(path).unwrap());
    let mut parent = String::new();
    let mut add = |number: usize, kind: &str, data: String| {
        let before =
            if number == 0 { String::new() } else { format!("\"parentId\":\"{parent}\",") };
        let line = format!(
            "{{\"type\":\"{kind}\",\"id\":\"e{number}\",{before}\"time\":\"2026-01-01T00:00:00Z\",\
             \"data\":{data}}}"
        );
        writeln!(out, "{line}").unwrap();
        parent = format!("e{number}");
    };
    add(0, "session.started", r#"{"cwd":"/work","version":"0.1.0"}"#.into());
    for number in 1..12_000 {
        let text = match number {
            100 => "y".repeat(8_000_000),
            9_003.. => format!("kept {number}"),
            _ => format!("{number} {}", "x".repeat(5_700)),
        };
        let content = format!(r#""content":[{{"type":"text","text":"{text}"}}]"#);
        match number % 3_000 {
            0 => {
                let kept = number - 2;
                let data = format!(r#"{{"summary":"S{number}","firstKeptEventId":"e{kept}"}}"#);
                add(number, "context.summary", data);
            }
            _ if number % 2 == 0 => add(number, "message.user", format!("{{{content}}}")),
            _ => add(
                number,
                "message.assistant",
                format!(r#"{{{content},"provider":"p","model":"m","finish":"stop"}}"#),
            ),
        }
    }
    out.flush().unwrap();
    drop(out);
    fs::metadata(path).unwrap().len()
}

#[test]
fn a_session_of_sixty_megabytes_is_read_once_and_written_to_as_a_short_one() {
    let temp = TempDir::new();
    let path = temp.path().join("long.jsonl");
    let size = write_long(&path);
    assert!((55_000_000..65_000_000).contains(&size), "{size}");
    let host = Host::from_process();
    let (row, [listing, ..]) = counted(|| row_of(&path));
    assert!(listing < 200_000, "{listing} bytes read to find it");
    let mut projection = Projection::new();
    let ((mut log, replayed), [read, ..]) = counted(|| Log::open(&row, &mut projection).unwrap());
    assert!(read < size + size / 100, "{read} bytes read of {size}");
    assert_eq!((replayed.notices, replayed.lines), (vec![], 12_000));
    let said = said(&projection);
    assert_eq!(said.len(), 1 + 2 + 2_999);
    assert!(said[0].ends_with("S9000") && said[1].starts_with("user: 8998 x"), "{}", said[0]);
    // Only what is active is held.
    let held: usize = said.iter().map(String::len).sum();
    assert!(held < 100_000, "{held}");
    for _ in 0..3 {
        let (line, [read, written, writes]) =
            counted(|| log.append(&host, &EventData::user("go on")).unwrap().lines.len() as u64);
        // The rest is the look at the counts.
        assert!(read < 1_000, "{read}");
        assert_eq!((written, writes), (line, 1));
    }
}

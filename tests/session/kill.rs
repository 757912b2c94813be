//! A writer in a process of its own, killed at every place.

use super::*;
use crate::support::random::Random;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// The variable that turns this test program into a writer, with the folder to write in.
const WRITER: &str = "ETCH_TEST_WRITER_DIR";
/// The number of its first event.
const FIRST: &str = "ETCH_TEST_WRITER_FIRST";

/// A process that resumes the session of its folder, or begins one, and appends one event for
/// each byte it is given; it prints `ok N` for those that were accepted and `error …` for those
/// that were not. After two errors it ends.
pub struct Child {
    child: std::process::Child,
    output: BufReader<ChildStdout>,
    /// Held open, so that a writer without work waits.
    _input: ChildStdin,
}

impl Child {
    /// `limit_kib` bounds the size of files, as a full disk does.
    pub fn start(dir: &Path, limit_kib: Option<u32>, first: u64, events: usize) -> Child {
        let limit =
            limit_kib.map_or(String::new(), |kib| format!("trap '' XFSZ; ulimit -f {}; ", kib * 2));
        let script = format!("{limit}exec \"$0\" --exact session::kill::writer --nocapture -q");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .env(WRITER, dir)
            .env(FIRST, first.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&vec![b'.'; events]).unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Child { child, output, _input: input }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads on to the event with this number.
    pub fn wait_for(&mut self, number: u64) {
        let want = format!("ok {number}\n");
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if line == want {
                return;
            }
            line.clear();
        }
        panic!("the writer ended before event {number}");
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What it printed before its end and was not read yet.
    pub fn finish(&mut self) -> Vec<String> {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        self.child.wait().unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Event number `number` of the writer: long and short lines, calls and results.
fn event(number: u64) -> EventData {
    match number % 4 {
        0 => EventData::user(format!("{number} {}", "x".repeat((number % 97) as usize))),
        1 => asks(&[&format!("c{number}")]),
        2 => result(&format!("c{}", number - 1), &format!("{number} {}", "y\n".repeat(300))),
        _ => answers(&format!("{number}")),
    }
}

/// No test of its own: the body of [`Child`], when the variable is there.
#[test]
fn writer() {
    let Ok(dir) = std::env::var(WRITER) else { return };
    let host = Host::from_process();
    let store = Store::open(dir);
    let mut log = match store.list().unwrap().pop() {
        Some(row) => Log::open(&row, &mut ()).unwrap().0,
        None => Log::create(&store, &host, started("/work"), "kill"),
    };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let mut output = std::io::stdout();
    let mut failures = 0;
    for (number, byte) in (first..).zip(std::io::BufReader::new(std::io::stdin()).bytes()) {
        byte.unwrap();
        let line = match log.append(&host, &event(number)) {
            Ok(_) => format!("ok {number}\n"),
            Err(error) => {
                failures += 1;
                format!("error {error}\n")
            }
        };
        output.write_all(line.as_bytes()).unwrap();
        output.flush().unwrap();
        if failures == 2 {
            return;
        }
    }
}

#[test]
fn no_acknowledged_event_is_lost_by_two_hundred_kills() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut temp, mut next) = (TempDir::new(), 0);
    for round in 0..210 {
        if round % 30 == 0 {
            (temp, next) = (TempDir::new(), 0);
        }
        // Half of them with no event under way, half in the midst of some.
        let (heard, ahead) = (random.below(8) as u64, random.below(2) as u64 * 6);
        let events = usize::try_from(heard + 1 + ahead).unwrap();
        let mut child = Child::start(temp.path(), None, next, events);
        child.wait_for(next + heard);
        child.kill();
        let number = |line: &String| line.strip_prefix("ok ")?.parse::<u64>().ok();
        let last = child.finish().iter().rev().find_map(number).unwrap_or(next + heard);
        let path = lock::row_of_only(temp.path());
        let mut written = Vec::new();
        let replayed = etch::session::each_event(&path, &mut |event| {
            if event.kind.starts_with("message.") {
                written.push((event.kind.to_string(), event.raw.to_owned()));
            }
        })
        .unwrap();
        let torn = usize::from(replayed.torn.is_some());
        assert_eq!(replayed.notices.len(), torn, "round {round}: {:?}", replayed.notices);
        // Every acknowledged event, and at most one whose acknowledgement came too late.
        let count = written.len() as u64;
        assert!(count == last + 1 || count == last + 2, "round {round}: {count} after {last}");
        for (number, (kind, raw)) in (0..).zip(&written).skip(usize::try_from(next).unwrap()) {
            let want = event(number);
            let data = serde_json::to_string(&want).unwrap();
            assert!(kind == want.kind() && raw.ends_with(&format!("\"data\":{data}}}")), "{raw}");
        }
        next = count;
    }
}

//! What an append asks of the system.

use super::*;

/// Calls of `write` by this thread, as the kernel counts them.
fn writes() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("syscw: ")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn an_append_is_one_write_however_long_the_line() {
    let temp = TempDir::new();
    let host = Host::from_process();
    let mut log = Log::create(&Store::open(temp.path()), &host, started(), "t");
    log.append(&host, &EventData::user("first")).unwrap();
    for length in [1, 10, 100, 5_000, 100_000, 3_000_000] {
        let before = writes();
        log.append(&host, &answers(&"x".repeat(length))).unwrap();
        assert_eq!(writes() - before, 1, "{length} bytes");
    }
    assert_eq!(said(&project(log.path().unwrap()).0).len(), 7);
}

#[test]
fn closing_a_fragment_costs_one_write_for_the_report_and_one_for_the_event() {
    let temp = TempDir::new();
    let host = Host::from_process();
    let path = write_session(temp.path(), &[EventData::user("one"), answers("1")]);
    let whole = fs::read(&path).unwrap();
    for (cut, want) in [(0, 1), (1, 1), (5, 2)] {
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        let (mut log, _) = Log::open(&row_of(&path), &mut ()).unwrap();
        let before = writes();
        let lines = log.append(&host, &EventData::user("two")).unwrap().lines.to_owned();
        assert_eq!(writes() - before, want, "cut by {cut}");
        assert_eq!(lines.lines().count() as u64, want, "{lines}");
        assert!(lines.starts_with('{') && fs::read_to_string(&path).unwrap().ends_with(&lines));
    }
}

#[test]
fn a_line_no_reader_would_take_is_refused_and_the_log_goes_on() {
    let temp = TempDir::new();
    let host = Host::from_process();
    let mut log = Log::create(&Store::open(temp.path()), &host, started(), "t");
    log.append(&host, &EventData::user("one")).unwrap();
    let huge = EventData::user("x".repeat(etch::session::LINE_BYTES_MAX));
    let error = log.append(&host, &huge).unwrap_err().to_string();
    assert!(
        error.starts_with("a message.user event of 67109") && error.contains("67108864"),
        "{error}"
    );
    log.append(&host, &answers("1")).unwrap();
    let (projection, replayed) = project(log.path().unwrap());
    assert_eq!(
        (said(&projection), replayed.notices),
        (vec!["user: one".into(), "assistant: 1".into()], vec![])
    );
}

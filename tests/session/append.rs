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
    let mut log = Log::create(&Store::open(temp.path()), &host, started("/work"), "t");
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
    let mut log = Log::create(&Store::open(temp.path()), &host, started("/work"), "t");
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

#[test]
fn json_that_nests_too_deeply_for_other_readers_is_kept_as_text() {
    let temp = TempDir::new();
    let host = Host::from_process();
    let mut log = Log::create(&Store::open(temp.path()), &host, started("/work"), "t");
    log.append(&host, &EventData::user("one")).unwrap();
    let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    // Brackets within a string do not nest.
    let quoted = format!("{{\"a\":\"\\\\\\\"{}\"}}", "[".repeat(1000));
    for (arguments, is_object) in
        [(nested(63), true), (nested(64), false), (nested(100_000), false), (quoted, true)]
    {
        let parts = [Part::ToolCall(ToolCall { arguments: arguments.clone(), ..call("c") })];
        let asked = EventData::assistant(&parts, "p", "m", Finish::ToolCalls);
        let item = serde_json::value::RawValue::from_string(arguments.clone()).unwrap();
        let opaque = etch::model::Opaque { provider: "p".into(), model: "m".into(), item, at: 0 };
        for data in [asked, EventData::provider_item(&opaque)] {
            let line = log.append(&host, &data).unwrap().lines.to_owned();
            // The usual reader, with its usual bound of 128.
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            let data = &line["data"];
            let kept = match data["content"].get(0) {
                Some(part) => &part["arguments"],
                None if data.get("item").is_some() => &data["item"],
                None => &data["itemText"],
            };
            assert_eq!(kept.is_object(), is_object, "{} bytes", arguments.len());
        }
        let (projection, _) = project(log.path().unwrap());
        let read = projection.messages().iter().rev().flat_map(|message| &message.parts);
        let mut calls = read.filter_map(|part| match part {
            Part::ToolCall(call) => Some(&call.arguments),
            _ => None,
        });
        assert_eq!(calls.next(), Some(&arguments));
    }
}

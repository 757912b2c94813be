//! Files that crashes, full disks and other programs leave behind.

use super::*;
use etch::session::{Error, LINE_BYTES_MAX, each_event, parse};

/// Six lines with the start; the last two are a whole turn.
fn six() -> Vec<EventData> {
    vec![
        EventData::user("one é"),
        answers("1"),
        EventData::user("two"),
        EventData::user("three"),
        answers("last ü"),
    ]
}

#[test]
fn a_last_line_cut_at_any_byte_costs_at_most_itself() {
    let temp = TempDir::new();
    let whole = fs::read(write_session(temp.path(), &six())).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in last..=whole.len() {
        let path = temp.write("cut.jsonl", &whole[..cut]);
        let first = resume_and_add(&path, &[EventData::user("new"), answers("turn")]);
        let second = resume_and_add(&path, &[EventData::user("newer")]);
        let (projection, third) = project(&path);
        let mut want = vec!["user: one é", "assistant: 1", "user: two", "user: three"];
        let complete = cut + 1 >= whole.len();
        if complete {
            want.push("assistant: last ü");
        }
        want.extend(["user: new", "assistant: turn", "user: newer"]);
        assert_eq!(said(&projection), want, "cut at byte {cut}");
        // The notice comes once: when the damage is found.
        let damaged = usize::from(!complete && cut != last);
        assert_eq!(first.notices.len(), damaged, "cut at byte {cut}: {:?}", first.notices);
        assert_eq!((&second.notices, &third.notices), (&vec![], &vec![]), "cut at byte {cut}");
        // Nothing was rewritten, and every line but the fragment is an event.
        let now = fs::read(&path).unwrap();
        assert!(now.starts_with(&whole[..cut]), "cut at byte {cut}");
        let lines = now.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        assert_eq!(lines.filter(|line| parse(line).is_err()).count(), damaged, "at byte {cut}");
    }
}

#[test]
fn a_repair_says_what_it_closed() {
    let temp = TempDir::new();
    let path = write_session(temp.path(), &six());
    let mut text = fs::read_to_string(&path).unwrap();
    text.truncate(text.len() - 9);
    fs::write(&path, &text).unwrap();
    let fragment = text.lines().next_back().unwrap().len();
    let replayed = resume_and_add(&path, &[EventData::user("new")]);
    let notice = format!(
        "the last line of the session was cut off ({fragment} bytes at line 6) and is set aside"
    );
    assert_eq!(replayed.notices, [notice]);
    let after = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = after.lines().collect();
    assert_eq!(lines.len(), 8);
    let data = format!("\"data\":{{\"line\":6,\"fragmentBytes\":{fragment}}}}}");
    assert!(lines[6].starts_with("{\"type\":\"log.repaired\"") && lines[6].ends_with(&data));
}

#[test]
fn opening_alone_changes_nothing() {
    let temp = TempDir::new();
    let path = write_session(temp.path(), &six());
    let mut text = fs::read(&path).unwrap();
    text.truncate(text.len() - 9);
    fs::write(&path, &text).unwrap();
    drop(Log::open(&row_of(&path), &mut ()).unwrap());
    assert_eq!(fs::read(&path).unwrap(), text);
}

/// Forty records; number 12, a call, is what `bad` makes of it.
fn forty_with(temp: &TempDir, bad: &dyn Fn(&str) -> Vec<u8>) -> PathBuf {
    let mut events = Vec::new();
    for turn in 0..13 {
        events.extend([EventData::user(format!("u{turn}")), asks(&["c"]), result("c", "r")]);
    }
    let path = write_session(temp.path(), &events);
    let text = fs::read_to_string(&path).unwrap();
    let mut out = Vec::new();
    for (at, line) in text.lines().enumerate() {
        match at {
            11 => out.extend(bad(line)),
            _ => out.extend(line.as_bytes()),
        }
        out.push(b'\n');
    }
    fs::write(&path, &out).unwrap();
    path
}

#[test]
fn a_bad_line_in_the_middle_hides_nothing_after_it() {
    let check = |bad: &dyn Fn(&str) -> Vec<u8>, notice: Option<&str>| {
        let temp = TempDir::new();
        let path = forty_with(&temp, bad);
        let (projection, replayed) = project(&path);
        // The call of one turn is gone, so its result is nobody's; all else is there.
        let said = said(&projection);
        let users: Vec<String> = (0..13).map(|turn| format!("user: u{turn}")).collect();
        let by_users: Vec<&String> = said.iter().filter(|line| line.starts_with("user")).collect();
        assert_eq!(by_users, users.iter().collect::<Vec<_>>());
        assert_eq!(said.len(), 13 * 3 - 2, "{said:?}");
        assert_eq!(projection.orphan_results(), 1);
        let notices: Vec<&str> = replayed.notices.iter().map(String::as_str).collect();
        assert_eq!(notices, notice.into_iter().collect::<Vec<_>>());
        // The same from the other reading, and the line stays in the file.
        let mut count = 0;
        assert_eq!(each_event(&path, &mut |_| count += 1).unwrap(), replayed);
        assert_eq!(count, if notice.is_some() { 39 } else { 40 });
        resume_and_add(&path, &[EventData::user("more")]);
        assert_eq!(fs::read(&path).unwrap().split(|byte| *byte == b'\n').count(), 42);
    };
    let damaged = |reason: &str| format!("skipped damaged line 12 of the session ({reason})");
    let cut = damaged("cut or damaged JSON");
    check(&|_| vec![0; 512], Some(&damaged("NUL bytes")));
    check(&|line| line.as_bytes()[..line.len() / 2].to_vec(), Some(&cut));
    check(&|_| b"{\"type\":\"from_the_future\",\"x\":1}".to_vec(), None);
    check(&|_| vec![b'a'; 2_000_000], Some(&cut));
    let no_event = damaged("JSON, but no event");
    check(&|_| b"[\"message.user\",\"id\",null,\"\"]".to_vec(), Some(&no_event));
    let invalid = |line: &str| {
        let mut bytes = line.as_bytes().to_vec();
        bytes[line.find("read").unwrap()] = 0xff;
        bytes
    };
    check(&invalid, Some(&damaged("not UTF-8")));
    check(&|_| vec![b'a'; LINE_BYTES_MAX + 1_000_000], Some(&damaged("too long")));
}

#[test]
fn a_known_type_in_an_unknown_shape_is_kept_and_said() {
    let temp = TempDir::new();
    let reshape =
        |line: &str| line.replace("\"content\":[", "\"content\":7,\"was\":[").into_bytes();
    let path = forty_with(&temp, &reshape);
    let (projection, replayed) = project(&path);
    assert_eq!(said(&projection).len(), 13 * 3 - 2);
    assert_eq!(replayed.notices, ["events of an unknown shape are not used (line 12)"]);
}

#[test]
fn many_bad_lines_give_one_notice() {
    let temp = TempDir::new();
    let path = write_session(temp.path(), &six());
    let mut text = fs::read_to_string(&path).unwrap();
    for _ in 0..20 {
        text.push_str("{\"type\":\n");
    }
    fs::write(&path, text).unwrap();
    let (projection, replayed) = project(&path);
    assert_eq!(said(&projection).len(), 5);
    assert_eq!(
        replayed.notices,
        ["skipped 20 damaged lines of the session (lines 7, 8, 9, 10, 11, 12, 13, 14, …; \
          the first: cut or damaged JSON)"]
    );
}

#[test]
fn a_file_without_any_event_is_an_error_that_names_it() {
    let temp = TempDir::new();
    for (content, reason) in [
        ("", "the file is empty"),
        ("{\"type\":\"sess", "its only line was cut off"),
        ("hello\n", "cut or damaged JSON"),
    ] {
        let path = temp.write("bad.jsonl", content);
        let error = replay(&path, &mut ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{}: not one readable event: {reason}; restore the file, or remove it",
                path.display()
            )
        );
        assert_eq!(error.exit_code(), 9);
    }
    let missing = temp.path().join("missing.jsonl");
    assert!(matches!(replay(&missing, &mut ()), Err(Error::Read { .. })));
}

#[test]
fn carriage_returns_blank_lines_and_a_byte_order_mark_are_no_damage() {
    let temp = TempDir::new();
    let text = fs::read_to_string(write_session(temp.path(), &six())).unwrap();
    let text = format!("\u{feff}{}\r\n\n", text.replace('\n', "\r\n"));
    let (projection, replayed) = project(&temp.write("dos.jsonl", text));
    assert_eq!((said(&projection).len(), replayed.notices), (5, vec![]));
}

//! What is written comes back as the conversation that it was.

use super::*;
use etch::model::{Opaque, Reasoning, Usage};
use serde_json::value::RawValue;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn calls_are_written_as_ordered_parts_and_read_back_byte_for_byte() {
    let temp = TempDir::new();
    let texts = [
        "{\"a\":  1.50,\"z\":[ ],\"a\":\"\\u00e9\"}",
        "",
        "{\"cut\": ",
        "{\n  \"over\": \"lines\"\n}",
        "[1]",
        "null",
        "\"text\"",
        " {}",
        "12345678901234567890.1e400",
    ];
    let mut parts = vec![Part::Text("before".into())];
    for (at, text) in texts.iter().enumerate() {
        parts.push(Part::ToolCall(ToolCall {
            id: format!("c{at}"),
            name: "x".into(),
            arguments: (*text).into(),
            extra: Some(raw("{\"sig\": \"a/b\"}")),
        }));
        parts.push(Part::Text(format!("after {at}")));
    }
    let answer = EventData::assistant(&parts, "p", "m", Finish::ToolCalls);
    let path = write_session(temp.path(), &[EventData::user("go"), answer]);
    let (projection, _) = project(&path);
    assert_eq!(projection.messages()[1].parts, parts);
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.contains(&format!("\"arguments\":{},", texts[0])), "{written}");
    assert_eq!(written.lines().count(), 3);
}

#[test]
fn provider_items_keep_every_byte_even_when_they_stand_on_several_lines() {
    let temp = TempDir::new();
    let item = |text: &str| Opaque {
        provider: "openai".into(),
        model: "m".into(),
        item: raw(text),
        at: 0,
    };
    let items = [
        item("{\"z\":1,\"a\":2.0,\"e\":\"\\u00e9/\\/\"}"),
        item("{\n\t\"z\": 1,\r\n \"a\": \"x\\ny\"\n}"),
    ];
    let events = [
        EventData::user("go"),
        EventData::provider_item(&items[0]),
        EventData::provider_item(&items[1]),
        answers("done"),
    ];
    let path = write_session(temp.path(), &events);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 5);
    let (projection, _) = project(&path);
    let want: Vec<Part> =
        items.into_iter().map(Part::Opaque).chain([Part::Text("done".into())]).collect();
    assert_eq!(projection.messages()[1].parts, want);
}

#[test]
fn raw_json_laid_out_over_lines_never_splits_a_line() {
    let temp = TempDir::new();
    let item = EventData::ModelProviderItem {
        provider: "p".into(),
        model: "m".into(),
        item: Some(raw("{\n \"a\": 1\n}")),
        item_text: None,
        at: 0,
    };
    let path = write_session(temp.path(), &[EventData::user("go"), item, answers("done")]);
    let (_, replayed) = project(&path);
    assert_eq!((replayed.lines, replayed.notices), (4, vec![]));
}

fn interrupted(id: &str) -> String {
    format!(
        "tool: {id} Interrupted: tool error: interrupted before it finished; its effects are \
         unknown"
    )
}

#[test]
fn a_call_without_its_result_is_answered_as_interrupted_in_call_order() {
    let temp = TempDir::new();
    let events = [
        EventData::user("go"),
        asks(&["c1", "c2", "c3"]),
        result("c2", "two"),
        EventData::user("go on"),
        result("c3", "late"),
        result("nobody", "lost"),
        asks(&["c4"]),
    ];
    let (projection, _) = project(&write_session(temp.path(), &events));
    assert_eq!(
        said(&projection),
        [
            "user: go".to_owned(),
            "assistant: +read(c1) +read(c2) +read(c3)".to_owned(),
            interrupted("c1"),
            "tool: c2 Ok: two".to_owned(),
            "tool: c3 Ok: late".to_owned(),
            "user: go on".to_owned(),
            "assistant: +read(c4)".to_owned(),
            interrupted("c4"),
        ]
    );
    assert_eq!(projection.orphan_results(), 1);
    assert_eq!(projection.last_model(), Some(("p", "m")));
}

#[test]
fn results_out_of_order_and_ids_used_twice_still_pair_up() {
    let temp = TempDir::new();
    let events = [
        EventData::user("go"),
        asks(&["", "", "x"]),
        result("x", "third"),
        result("", "first"),
        result("", "second"),
        asks(&["x"]),
        result("x", "again"),
    ];
    let (projection, _) = project(&write_session(temp.path(), &events));
    let last_word = |line: String| line.split(' ').next_back().unwrap().to_owned();
    let texts: Vec<String> = said(&projection).into_iter().map(last_word).collect();
    assert_eq!(texts[2..5], ["first", "second", "third"]);
    assert_eq!(texts[6], "again");
    let ids: Vec<&str> = projection.messages()[1].calls().map(|call| call.id.as_str()).collect();
    assert!(ids[0] != ids[1] && !ids[0].is_empty() && ids[2] == "x", "{ids:?}");
}

/// Every order of events of a turn, well-formed or not: each call has exactly one result, right
/// behind its message and in call order, and no result is without its call.
#[test]
fn every_sequence_of_events_projects_to_a_conversation_that_servers_accept() {
    let reasoning = Reasoning { text: "hm".into(), ..Default::default() };
    let stopped = || EventData::TurnStopped {
        stop: "cancelled",
        kind: None,
        message: String::new(),
        partial: "part".into(),
    };
    let vocabulary = [
        EventData::user("u"),
        asks(&["a", "b"]),
        result("a", "ra"),
        result("b", "rb"),
        answers("x"),
        EventData::reasoning(&reasoning),
        stopped(),
    ];
    let host = Host::fixed();
    let length = 5_u32;
    for number in 0..vocabulary.len().pow(length) {
        let mut log = Log::ephemeral(host.new_id(), started("/work"));
        let mut projection = Projection::new();
        let mut rest = number;
        for _ in 0..length {
            let appended = log.append(&host, &vocabulary[rest % vocabulary.len()]).unwrap();
            rest /= vocabulary.len();
            for mut event in appended.events() {
                etch::session::Sink::event(&mut projection, &mut event);
            }
        }
        projection.settle();
        let mut waiting: Vec<String> = Vec::new();
        for message in projection.messages() {
            if let (Role::Tool, [Part::ToolResult(result)]) = (message.role, &message.parts[..]) {
                assert!(!waiting.is_empty(), "{number}: {:?}", said(&projection));
                assert_eq!(waiting.remove(0), result.call_id, "{number}: {:?}", said(&projection));
                continue;
            }
            assert!(waiting.is_empty(), "{number}: {:?}", said(&projection));
            waiting.extend(message.calls().map(|call| call.id.clone()));
        }
        assert!(waiting.is_empty(), "{number}: {:?}", said(&projection));
    }
}

#[test]
fn following_the_log_gives_what_reading_it_gives() {
    let temp = TempDir::new();
    let host = Host::from_process();
    let mut log = Log::create(&Store::open(temp.path()), &host, started("/work"), "t");
    let mut live = Projection::new();
    let reasoning =
        Reasoning { text: "hm".into(), field: "reasoning".into(), ..Default::default() };
    let usage = Usage { input: 5, output: 2, total: 7, ..Default::default() };
    let stopped = EventData::TurnStopped {
        stop: "cancelled",
        kind: None,
        message: String::new(),
        partial: "I was ab".into(),
    };
    for event in [
        EventData::user("go"),
        EventData::reasoning(&reasoning),
        asks(&["c1"]),
        EventData::ModelUsage(usage),
        result("c1", "one"),
        stopped,
        EventData::user("go on"),
        answers("done"),
    ] {
        for mut event in log.append(&host, &event).unwrap().events() {
            live.push(&mut event);
        }
    }
    let (read, _) = project(log.path().unwrap());
    assert_eq!(read.messages(), live.messages());
    assert_eq!(read.counters(), live.counters());
    assert_eq!(
        said(&live),
        [
            "user: go",
            "assistant: <hm> +read(c1)",
            "tool: c1 Ok: one",
            "assistant: I was ab\n\n[the answer was cut off here]",
            "user: go on",
            "assistant: done",
        ]
    );
    let counters = live.counters();
    assert_eq!((counters.events, counters.user_messages, counters.assistant_messages), (9, 2, 2));
    assert_eq!((counters.tool_calls, counters.tool_results, counters.stopped_turns), (1, 1, 1));
    assert_eq!(counters.usage.total, 7);
    assert!(counters.started <= counters.last_event() && counters.started.is_some());
}

#[test]
fn an_ephemeral_session_makes_lines_and_no_file() {
    let host = Host::fixed();
    let mut log = Log::ephemeral(host.new_id(), started("/work"));
    let lines = log.append(&host, &EventData::user("hi")).unwrap().lines.to_owned();
    assert_eq!(lines.lines().count(), 2);
    let second = log.append(&host, &answers("ho")).unwrap().lines.to_owned();
    assert!(second.contains("\"parentId\":\"id-0003\""), "{second}");
    log.sync().unwrap();
    assert_eq!(log.path(), None);
}

fn forked(origin: &Path, at: Option<&str>) -> EventData {
    EventData::SessionStarted {
        cwd: "/work".into(),
        version: "0.1.0".into(),
        name: None,
        fork_session_path: Some(origin.to_str().unwrap().into()),
        fork_event_id: at.map(str::to_owned),
    }
}

#[test]
fn a_fork_continues_its_origin_without_touching_it() {
    let temp = TempDir::new();
    let host = Host::from_process();
    let dir = temp.path().join("sessions");
    let turns = [EventData::user("one"), answers("1"), EventData::user("two"), answers("2")];
    let origin = write_session(&dir, &turns);
    let before = fs::read(&origin).unwrap();
    let tip = replay(&origin, &mut ()).unwrap().tip;
    let store = Store::open(&dir);
    let mut fork = Log::create(&store, &host, forked(&origin, tip.as_deref()), "three");
    fork.append(&host, &EventData::user("three")).unwrap();
    let fork_path = fork.path().unwrap().to_path_buf();
    // What the origin says later is not the fork's.
    resume_and_add(&origin, &[EventData::user("elsewhere")]);
    let want = ["user: one", "assistant: 1", "user: two", "assistant: 2", "user: three"];
    let (projection, replayed) = project(&fork_path);
    assert_eq!(said(&projection), want);
    assert_eq!((replayed.tip.as_deref(), replayed.notices.len()), (fork.tip(), 0));
    assert_eq!(projection.counters().user_messages, 1);
    assert!(fs::read(&origin).unwrap().starts_with(&before));
    // A fork of the fork; then all are moved to another place.
    let mut second = Log::create(&store, &host, forked(&fork_path, fork.tip()), "four");
    second.append(&host, &EventData::user("four")).unwrap();
    let second_name = second.path().unwrap().file_name().unwrap().to_owned();
    drop((fork, second));
    let moved = temp.path().join("moved");
    fs::rename(&dir, &moved).unwrap();
    let (projection, replayed) = project(&moved.join(&second_name));
    assert_eq!(said(&projection)[..5], want);
    assert_eq!(said(&projection)[5..], ["user: four"]);
    assert_eq!(replayed.notices, Vec::<String>::new());
    // Without the origin what is there is still there, and what is missing is said.
    fs::remove_file(moved.join(origin.file_name().unwrap())).unwrap();
    let (projection, replayed) = project(&moved.join(&second_name));
    assert_eq!(said(&projection), ["user: three", "user: four"]);
    assert_eq!(replayed.notices.len(), 1);
    assert!(replayed.notices[0].starts_with("what came before the fork is missing: "));
}

#[test]
fn a_fork_at_an_event_that_is_not_there_inherits_nothing_and_says_so() {
    let temp = TempDir::new();
    let host = Host::from_process();
    let origin = write_session(temp.path(), &[EventData::user("one"), answers("1")]);
    let store = Store::open(temp.path());
    let mut fork = Log::create(&store, &host, forked(&origin, Some("nowhere")), "two");
    fork.append(&host, &EventData::user("two")).unwrap();
    let (projection, replayed) = project(fork.path().unwrap());
    assert_eq!(said(&projection), ["user: two"]);
    let notice = format!(
        "what came before the fork is missing: {}: the event it was forked at is not there",
        origin.display()
    );
    assert_eq!(replayed.notices, [notice]);
}

#[test]
fn a_fork_of_itself_ends() {
    let temp = TempDir::new();
    let path = temp.path().join("loop.jsonl");
    let line = format!(
        "{{\"type\":\"session.started\",\"id\":\"a\",\"time\":\"\",\"data\":{{\"cwd\":\"/\",\
         \"forkSessionPath\":\"{}\",\"forkEventId\":\"a\"}}}}\n",
        path.display()
    );
    fs::write(&path, line).unwrap();
    let (_, replayed) = project(&path);
    assert!(replayed.notices[0].ends_with("it is a fork of itself"), "{:?}", replayed.notices);
}

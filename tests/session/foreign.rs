//! Logs of the Go etch, and of the shape that its design document describes.

use super::*;
use etch::session::each_event;

fn read_fixture(name: &str) -> (Vec<String>, Replayed, Projection) {
    let (projection, replayed) = project(&fixture(name));
    (said(&projection), replayed, projection)
}

#[test]
fn plain_turns_project() {
    let (said, replayed, projection) = read_fixture("go-plain.jsonl");
    assert_eq!(
        said,
        [
            "user: hi",
            "assistant: Hello. What shall we do?",
            "user: Fix the typo in\n  README.md, please; it says „recieve“ in the second paragraph",
            "assistant: Done.",
        ]
    );
    assert_eq!(replayed.notices, Vec::<String>::new());
    assert_eq!(projection.counters().model_calls, 1);
}

#[test]
fn calls_with_string_arguments_project_and_count() {
    let (said, replayed, projection) = read_fixture("go-tools.jsonl");
    assert_eq!(
        said,
        [
            "user: what is in a.txt?",
            "assistant: Looking. +ls(call_a) +read(call_b)",
            "tool: call_a Ok: a.txt\n(skipped 1 internal entries)",
            "tool: call_b Ok: 1 | alpha",
            "user: and b.txt?",
            "assistant: +read(call_c)",
            "tool: call_c Ok: tool error: b.txt does not exist",
            "assistant: a.txt holds alpha; there is no b.txt.",
        ]
    );
    let arguments: Vec<&str> =
        projection.messages()[1].calls().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, ["{\"path\": \".\"}", "{\"path\":\"a.txt\"}"]);
    assert_eq!(replayed.notices, Vec::<String>::new());
    let counters = projection.counters();
    assert_eq!((counters.tool_calls, counters.tool_results, counters.model_calls), (3, 3, 2));
    assert_eq!((counters.usage.input, counters.usage.total), (430, 471));
    assert_eq!(counters.request_bytes, 2 * 7714);
}

#[test]
fn reasoning_and_provider_items_go_before_the_answer_they_led_to() {
    let (said, _, _) = read_fixture("go-reasoning.jsonl");
    assert_eq!(
        said,
        [
            "user: think, then list",
            "assistant: <**Listing** the folder first.> [openai {\"type\":\"reasoning\",\
             \"id\":\"rs_1\",\"encrypted_content\":\"gAAAAABo+/9=\",\"summary\":[{\"text\":\
             \"**Listing** the folder first.\",\"type\":\"summary_text\"}]}] +ls(call_a)",
            "tool: call_a Ok: a.txt",
            "assistant: [openai {\"type\":\"reasoning\",\"id\":\"rs_2\",\
             \"encrypted_content\":\"gAAAAABp\",\"summary\":[]}] One file: a.txt.",
        ]
    );
}

#[test]
fn the_newest_summary_stands_for_what_came_before_and_orphans_no_result() {
    let (said, replayed, projection) = read_fixture("go-summary.jsonl");
    assert_eq!(
        said,
        [
            "system: Summary of the earlier conversation, which is not repeated here:\n\
             ## Goal\nread more files",
            "assistant: It says gamma.",
            "user: thanks",
        ]
    );
    assert_eq!(replayed.notices, Vec::<String>::new());
    assert_eq!((projection.counters().summaries, projection.orphan_results()), (2, 0));
}

#[test]
fn the_first_summary_keeps_what_it_says_it_keeps() {
    let temp = TempDir::new();
    let text = fs::read_to_string(fixture("go-summary.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().take(9).collect();
    let path = temp.write("s.jsonl", lines.join("\n"));
    assert_eq!(
        said(&project(&path).0),
        [
            "system: Summary of the earlier conversation, which is not repeated here:\n\
             ## Goal\nread files\n\n## Files\n### Read\n- a.txt",
            "user: now b.txt",
            "assistant: It is empty.",
            "user: and c.txt?",
        ]
    );
}

#[test]
fn a_child_inherits_what_was_said_before_its_call() {
    // The origin's path is of another machine: it is found beside the child.
    let (said, replayed, projection) = read_fixture("go-child.jsonl");
    assert_eq!(
        said,
        [
            "user: what is in a.txt?",
            "assistant: Looking. +ls(call_a) +read(call_b)",
            "tool: call_a Ok: a.txt\n(skipped 1 internal entries)",
            "tool: call_b Ok: 1 | alpha",
            "user: and b.txt?",
            "user: Find b.txt",
            "assistant: It does not exist.",
        ]
    );
    assert_eq!(replayed.notices, Vec::<String>::new());
    assert_eq!(projection.counters().usage.total, 55);
}

#[test]
fn lines_glued_by_a_crash_come_apart_again() {
    let (said, replayed, _) = read_fixture("go-glued.jsonl");
    assert_eq!(
        said,
        [
            "user: first",
            "assistant: one",
            "user: second",
            "user: third",
            "assistant: three",
            "user: fourth",
            "assistant: four",
        ]
    );
    let notice = "skipped damaged line 5 of the session (cut or damaged JSON)";
    assert_eq!(replayed.notices, [notice]);
}

#[test]
fn of_two_writers_the_last_one_is_continued_with_its_own_past() {
    let want = [
        "user: start",
        "assistant: ready",
        "user: RIGHT?",
        "assistant: right",
        "user: which side am I on?",
    ];
    let (said, replayed, projection) = read_fixture("go-two-writers.jsonl");
    assert_eq!(said, want);
    assert_eq!(replayed.notices, Vec::<String>::new());
    assert_eq!(projection.counters().events, 7);
    let mut kinds = Vec::new();
    let printed = each_event(&fixture("go-two-writers.jsonl"), &mut |event| {
        kinds.push((event.line, event.kind.to_string()));
    });
    assert_eq!(printed.unwrap(), replayed);
    let kind = |line, kind: &str| (line, kind.to_owned());
    assert_eq!(
        kinds,
        [
            kind(1, "session.started"),
            kind(2, "message.user"),
            kind(3, "message.assistant"),
            kind(5, "message.user"),
            kind(7, "message.assistant"),
            kind(8, "model.usage"),
            kind(9, "message.user"),
        ]
    );
}

#[test]
fn the_documented_shape_projects_and_unknown_types_pass_through() {
    let (said, replayed, projection) = read_fixture("document-shape.jsonl");
    assert_eq!(
        said,
        [
            "user: fix tests",
            "assistant: First: +grep(call_1)  and then +ls(call_2)",
            "tool: call_1 Ok: a.rs:1: TODO",
            "tool: call_2 Interrupted: tool error: interrupted before it finished; its effects \
             are unknown",
        ]
    );
    let grep = projection.messages()[1].calls().next().unwrap();
    assert_eq!(grep.arguments, "{\"pattern\":\"TODO\"}");
    assert_eq!((replayed.tip.as_deref(), replayed.notices.len()), (Some("01H4"), 0));
    let text = fs::read_to_string(fixture("document-shape.jsonl")).unwrap();
    let mut raw = Vec::new();
    each_event(&fixture("document-shape.jsonl"), &mut |event| raw.push(event.raw.to_owned()))
        .unwrap();
    assert_eq!(raw, text.lines().collect::<Vec<_>>());
}

#[test]
fn a_session_of_the_go_etch_can_be_continued() {
    let temp = TempDir::new();
    let path = temp.write("go.jsonl", fs::read(fixture("go-tools.jsonl")).unwrap());
    let before = fs::read_to_string(&path).unwrap();
    resume_and_add(&path, &[EventData::user("more"), answers("ok")]);
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(&before) && after.lines().count() == before.lines().count() + 2);
    let (projection, replayed) = project(&path);
    assert_eq!(said(&projection)[8..], ["user: more", "assistant: ok"]);
    assert_eq!(replayed.notices, Vec::<String>::new());
}

//! Cuts, lists and requests by tables.

use super::*;
use crate::model::{ResultStatus, ToolCall, ToolResult};

fn call(id: &str, name: &str, arguments: &str) -> Message {
    let (id, name, arguments) = (id.to_owned(), name.to_owned(), arguments.to_owned());
    let part = Part::ToolCall(ToolCall { id, name, arguments, extra: None });
    Message { role: Role::Assistant, parts: vec![part] }
}

fn result(id: &str, text: &str, status: ResultStatus) -> Message {
    let (call_id, name, text) = (id.to_owned(), "tool".to_owned(), text.to_owned());
    let part = Part::ToolResult(ToolResult { call_id, name, text, status });
    Message { role: Role::Tool, parts: vec![part] }
}

fn say(role: Role) -> Message {
    Message::text(role, "words")
}

/// `S`ystem, `U`ser, `A`nswer, `T`ool result, each of ten tokens.
fn conversation(letters: &str) -> (Vec<Message>, Vec<u64>) {
    let message = |letter| match letter {
        'S' => say(Role::System),
        'U' => say(Role::User),
        'A' => say(Role::Assistant),
        _ => result("c", "text", ResultStatus::Ok),
    };
    (letters.chars().map(message).collect(), vec![10; letters.len()])
}

#[test]
fn a_cut_falls_before_a_prompt_or_an_answer_and_never_behind_a_call() {
    use Keep::{Least, Tokens, TokensOrMessages};
    for (letters, head, keep, want) in [
        ("UATTATUATT", 0, Tokens(100), None),
        ("UATTATUATT", 0, Tokens(90), Some(1)),
        ("UATTATUATT", 0, Tokens(80), Some(6)),
        // A prompt is worth half of what may be kept, and no more.
        ("UAAAAAAAAU", 0, Tokens(60), Some(4)),
        ("UAAAAAUAAA", 0, Tokens(60), Some(6)),
        ("UATTATUATT", 0, Tokens(39), Some(7)),
        ("UATTATUATT", 0, Tokens(29), Some(7)),
        ("UATTATUATT", 0, Tokens(0), Some(7)),
        ("UATTATUATT", 0, Least, Some(7)),
        ("UATTTTTTTT", 0, Tokens(30), Some(1)),
        ("U", 0, Least, None),
        ("UA", 0, Least, Some(1)),
        ("", 0, Least, None),
        // What the checkpoint before it left is no progress.
        ("SUAT", 2, Least, None),
        ("SUATAT", 2, Least, Some(4)),
        ("SUATAT", 2, Tokens(1000), None),
        ("UAUAUAUAUA", 0, TokensOrMessages(1000, 4), Some(6)),
        ("UAUATTTTUA", 0, TokensOrMessages(1000, 4), Some(8)),
        ("UAUA", 0, TokensOrMessages(1000, 4), None),
        ("UAUA", 0, TokensOrMessages(20, 4), Some(2)),
    ] {
        let (messages, costs) = conversation(letters);
        let got = cut(&messages, &costs, head, keep);
        assert_eq!(got, want, "{letters}, head {head}, {keep:?}");
    }
}

#[test]
fn files_are_told_from_calls_that_worked() {
    let mut files = Files::from_lists(vec!["old.rs".to_owned(), "b.rs".to_owned()], Vec::new());
    files.add(&[
        call("1", "read", r#"{"path":"./a.rs"}"#),
        result("1", "text", ResultStatus::Ok),
        call("2", "read", r#"{"files":[{"path":"b.rs","offset":3},{"path":"c.rs"}]}"#),
        result("2", "text", ResultStatus::Ok),
        call("3", "edit", r#"{"path":"b.rs","edits":[]}"#),
        result("3", "done", ResultStatus::Ok),
        call("4", "write", r#"{"path":"d.rs","content":""}"#),
        result("4", "refused", ResultStatus::Denied),
        call("5", "read", r#"{"path":"b.rs"}"#),
        result("5", "text", ResultStatus::Ok),
        call("6", "bash", r#"{"command":"cat e.rs"}"#),
        result("6", "text", ResultStatus::Ok),
        call("7", "read", "no JSON"),
        result("7", "text", ResultStatus::Ok),
        call("8", "read", r#"{"path":"never.rs"}"#),
    ]);
    let section = files.section();
    assert_eq!(section, "\n\n## Files\n### Read\n- old.rs\n- a.rs\n- c.rs\n### Modified\n- b.rs");
    assert_eq!(files::without_lists(&format!("## Goal\nx{section}")).trim(), "## Goal\nx");
    // A section of that name with more than lists in it is the model's.
    let own = "## Goal\nx\n## Files\nall of them matter";
    assert_eq!(files::without_lists(own), own);
}

#[test]
fn open_todos_outlive_a_summary_that_forgot_them() {
    let list = Message::text(Role::Assistant, "- [x] one\n- [ ] two\n  * [ ] three\n- [?] no");
    let todos = open_todos(&[list, say(Role::Assistant)], Some("- [ ] of before"));
    assert_eq!(todos, ["two", "three"]);
    assert_eq!(open_todos(&[say(Role::Assistant)], Some("- [ ] of before")), ["of before"]);
    let done = Message::text(Role::Assistant, "- [x] of before");
    assert!(open_todos(&[done], Some("- [ ] of before")).is_empty());
    let text = finished("## Next steps\n- [ ] two", &todos, &Files::default());
    assert_eq!(text, "## Next steps\n- [ ] two\n\n## Open todos\n- [ ] three");
}

#[test]
fn a_request_fits_its_room_and_says_what_it_left_out() {
    let mut messages = Vec::new();
    for round in 0..50 {
        messages.push(call(&round.to_string(), "bash", r#"{"command":"make"}"#));
        let text = format!("line of round {round}\n").repeat(200);
        messages.push(result(&round.to_string(), &text, ResultStatus::Ok));
    }
    let size = |room, attempt| {
        let piece = Piece {
            messages: &messages,
            previous: Some("## Goal\nkeep me\n\n## Files\n### Read\n- a"),
            focus: "the build",
            room,
            words_max: 300,
            attempt,
        };
        let [system, user] = request(&piece);
        let text = user.joined_text();
        assert!(text.contains("keep me") && text.contains("the build"), "{text}");
        assert!(!text.contains("### Read"), "{text}");
        assert!(text.contains("round 49"), "the newest is always there");
        let tokens = text::estimate_tokens(&text) + text::estimate_tokens(&system.joined_text());
        (tokens as u64, text)
    };
    let (all, text) = size(1_000_000, 0);
    assert!(text.contains("line of round 0") && !text.contains("left out here"));
    let (again, _) = size(1_000_000, 1);
    assert!(again < all * 2 / 3, "a further attempt is smaller: {again} of {all}");
    for room in [20_000, 6_000, 3_000, 1_200] {
        let (tokens, text) = size(room, 0);
        assert!(tokens <= room, "{tokens} in {room}");
        assert_eq!(room < 3_000, text.contains("earlier entries left out here"), "{room}");
    }
}

#[test]
fn a_tail_without_a_prompt_gets_the_last_one_behind_the_summary() {
    let messages = [say(Role::User), Message::text(Role::User, "do it"), call("1", "ls", "{}")];
    assert_eq!(request_before(&messages, 2).as_deref(), Some("do it"));
    assert_eq!(request_before(&messages, 1), None);
    assert_eq!(request_before(&messages, 3), None);
    let request = Some("do it".to_owned());
    let checkpoint = Checkpoint { text: "sum".to_owned(), request, ..Checkpoint::default() };
    let roles = |next| checkpoint.messages(next).iter().map(|m| m.role).collect::<Vec<_>>();
    assert_eq!(roles(Some(Role::Assistant)), [Role::System, Role::User]);
    assert_eq!(roles(Some(Role::User)), [Role::System]);
    let head = checkpoint.messages(Some(Role::Assistant));
    assert_eq!(head_len(&head, Some(&checkpoint)), 2);
    assert_eq!(head_len(&head, None), 0);
}

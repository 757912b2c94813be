//! What goes wrong with summaries and with windows, and what then stands in the session.

use std::fs;
use std::sync::atomic::Ordering;

use super::*;

const WINDOW: &str = "context.window_tokens=8000";

/// Rounds that read something until the conversation is too large, then an answer.
fn reads(rounds: usize) -> impl Fn(usize, &Value) -> Reply + Send + Sync + 'static {
    move |round, _| match round < rounds {
        true => {
            let command = format!(r#"{{"command":"seq {round} {}"}}"#, round + 500);
            Chat::calls(&[(&format!("call_{round}"), "bash", &command)])
        }
        false => Chat::answer("done"),
    }
}

fn failed_reasons(events: &[Value]) -> Vec<String> {
    let failed = of_type(events, "context.compaction_failed");
    failed.iter().map(|event| event["data"]["reason"].as_str().unwrap().to_owned()).collect()
}

/// Whatever comes in the place of a summary, it is asked for a bounded number of times, nothing of
/// it becomes the conversation, and the run ends with a clear word when there is no more room.
#[test]
fn what_is_no_summary_is_not_taken() {
    let server_error = || Reply::error(500, "server_error", "the summariser is broken");
    type Answer = (fn() -> Reply, &'static str, usize);
    let empty: Answer = (|| Chat::answer(""), "empty", 4);
    let call: Answer =
        (|| Chat::calls(&[("x", "bash", r#"{"command":"touch hacked"}"#)]), "called a tool", 4);
    let cut: Answer =
        (|| Chat::new().text("## Goal").finish("length").usage(9, 9).done().reply(), "cut", 4);
    let refused: Answer = (|| too_large(100, 5000), "maximum context length", 4);
    let _ = server_error;
    let same: Answer = (|| Chat::answer(&"the same again ".repeat(4000)), "no smaller", 2);
    for (answer, reason, requests_max) in [empty, call, cut, refused, same] {
        let place = Place::new();
        let (server, log) = server(1_000_000, reads(40), move |_, _| answer());
        let args =
            ["-c", WINDOW, "-c", "context.fold=false", "--max-tool-rounds", "60", "-p", "go"];
        let ran = run(&place, &server, &args);
        let events = events(&ran);
        assert_eq!(ran.code, Some(1), "{reason}: {}", ran.stderr);
        let result = events.last().unwrap();
        assert_eq!(result["error"]["kind"], "context_overflow", "{result}");
        let reasons = failed_reasons(&events);
        assert_eq!(reasons.len(), 2, "two tries, then a clear stop: {reasons:?}");
        assert!(reasons.iter().all(|told| told.contains(reason)), "{reasons:?}");
        assert!(log.summaries() <= requests_max, "{reason}: {} requests", log.summaries());
        assert!(of_type(&events, "context.summary").is_empty());
        assert!(!place.work().join("hacked").exists());
        // Everything is still there.
        let rounds = log.rounds();
        let last = String::from_utf8_lossy(rounds.last().unwrap()).into_owned();
        assert!(last.contains("seq 0 500"), "the history is untouched");
    }
}

/// Nobody knew the window; the server tells it when it refuses.
#[test]
fn a_refusal_makes_room_once_and_what_it_says_is_kept() {
    let place = Place::new();
    let (server, log) = server(9_000, reads(30), summarised);
    let ran =
        run(&place, &server, &["-c", "context.fold=false", "--max-tool-rounds", "60", "-p", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = events(&ran);
    assert_eq!(log.refused.load(Ordering::Relaxed), 1, "after the first refusal it is known");
    assert_eq!(of_type(&all, "model.window")[0]["data"]["contextTokens"], 9_000);
    assert!(!of_type(&all, "context.summary").is_empty());
    // A later run of the session knows it from the log.
    let id = all.last().unwrap()["sessionId"].as_str().unwrap();
    let next = run(&place, &server, &["--session", id, "-p", "again"]);
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    assert_eq!(log.refused.load(Ordering::Relaxed), 1);
}

/// Somebody who wants no summaries gets none, and the refusal with advice.
#[test]
fn who_turned_it_off_is_told_what_to_do() {
    let place = Place::new();
    let (server, log) = server(9_000, reads(30), summarised);
    let off =
        ["-c", "context.auto_compact=false", "-c", "context.fold=false", "--max-tool-rounds", "60"];
    let ran = run(&place, &server, &[&off[..], &["-p", "go"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!((log.summaries(), log.refused.load(Ordering::Relaxed)), (0, 1));
    // With the window known it is not even sent, and a prompt for which there is no room is not
    // stored.
    let known = [&off[..], &["-c", "context.window_tokens=9000"]].concat();
    let id = events(&ran).pop().unwrap()["sessionId"].as_str().unwrap().to_owned();
    let next =
        run(&place, &server, &[&known[..], &["--session", &id, "-p", "more of it"]].concat());
    assert_eq!(next.code, Some(1), "{}", next.stderr);
    let result = events(&next).pop().unwrap();
    assert!(result["error"]["hint"].as_str().unwrap().contains("etch compact"), "{result}");
    assert_eq!(log.refused.load(Ordering::Relaxed), 1);
    let shown = place.etch(["show", &id]).run().out().to_owned();
    assert!(!shown.contains("more of it"), "{shown}");
}

#[test]
fn a_window_that_holds_no_prompt_is_told_before_anything_is_sent() {
    let place = Place::new();
    place.file("AGENTS.md", "Follow these many rules of the house.\n".repeat(600));
    let (server, log) = server(4_000, |_, _| Chat::answer("ok"), summarised);
    let ran = run(&place, &server, &["-c", "context.window_tokens=4000", "-p", "hi"]);
    assert_eq!(ran.code, Some(1));
    let result = events(&ran).pop().unwrap();
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("instructions and tools alone take about"), "{message}");
    assert!(message.contains("the window has 4000 tokens"), "{message}");
    assert!(log.bodies.lock().unwrap().is_empty(), "nothing was sent");
    assert_eq!(place.etch(["sessions"]).run().out(), "no sessions\n");
}

/// A kill at any moment of a compaction: every prefix of the log is a session that goes on, with
/// the summary or with all that it stands for.
#[test]
fn a_crash_anywhere_in_a_compaction_leaves_one_of_two_sessions() {
    let place = Place::new();
    let (server, log) = server(1_000_000, reads(14), summarised);
    let args = ["-c", WINDOW, "-c", "context.fold=false", "--max-tool-rounds", "60", "-p", "go"];
    let ran = run(&place, &server, &args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let id = events(&ran).pop().unwrap()["sessionId"].as_str().unwrap().to_owned();
    let dir = place.home.path().join(".local/state/etch/sessions");
    let path = dir.join(format!("{id}.jsonl"));
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let at = lines.iter().position(|line| line.contains(r#""type":"context.summary""#)).unwrap();
    for kept in at - 2..=at + 2 {
        let before = log.rounds().len();
        // The next line was being written.
        let torn = &lines[kept][..lines[kept].len() / 2];
        fs::write(&path, format!("{}\n{torn}", lines[..kept].join("\n"))).unwrap();
        let next = run(&place, &server, &["--session", &id, "-p", "go on"]);
        assert_eq!(next.code, Some(0), "{kept}: {}", next.stderr);
        let body: Value = serde_json::from_slice(&log.rounds()[before]).unwrap();
        let all = texts(&body);
        let is_after = at < kept;
        assert_eq!(all.contains(SUMMARY), is_after, "{kept} of {at}");
        assert_eq!(all.contains("seq 0 500"), !is_after, "{kept} of {at}");
    }
}

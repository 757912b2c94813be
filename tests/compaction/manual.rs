//! `etch compact` on a stored session.

use super::*;

/// A session of some turns, each with a long answer; its id.
fn session(place: &Place, turns: usize) -> String {
    let (server, _) = server(
        1_000_000,
        |round, _| Chat::answer(&format!("answer {round} {}", "with many words ".repeat(300))),
        summarised,
    );
    let mut id = String::new();
    for turn in 0..turns {
        let prompt = format!("prompt {turn}");
        let mut args = vec!["-p", &prompt];
        if !id.is_empty() {
            args.extend(["--session", &id]);
        }
        let ran = run(place, &server, &args);
        let result = events(&ran).pop().unwrap();
        id = result["sessionId"].as_str().unwrap().to_owned();
    }
    id
}

fn compact(place: &Place, server: &Server, args: &[&str]) -> Ran {
    let base = server.base_url();
    let mut all = vec!["compact", "--provider", "openai", "--model", "m", "--base-url", &base];
    all.extend_from_slice(args);
    place.etch(all).env("OPENAI_API_KEY", "k").run()
}

#[test]
fn a_stored_session_is_compacted_and_goes_on_with_the_summary() {
    let place = Place::new();
    let id = session(&place, 6);
    let (server, log) = server(1_000_000, |_, _| Chat::answer("ok"), summarised);
    let done = compact(
        &place,
        &server,
        &["--session", &id[..8], "--keep-recent-tokens", "2000", "--instructions", "the paths"],
    );
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(
        done.out().starts_with(&format!("compacted session {}: ~", &id[..8])),
        "{}",
        done.out()
    );
    let asked = String::from_utf8(log.bodies.lock().unwrap()[0].1.clone()).unwrap();
    assert!(asked.contains("the paths") && asked.contains("prompt 0"));
    assert!(!asked.contains("\"tools\""), "a summary is written without tools");
    let next = run(&place, &server, &["--session", &id, "-p", "go on"]);
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    let body: Value = serde_json::from_slice(&log.rounds()[0]).unwrap();
    let all = texts(&body);
    assert!(
        all.contains(SUMMARY) && all.contains("prompt 5") && !all.contains("prompt 0"),
        "{all}"
    );
    assert!(all.contains("You are etch"), "instructions are never compacted");
    // The file has everything.
    let shown = place.etch(["show", &id]).run().out().to_owned();
    assert!(
        shown.contains("prompt 0") && shown.contains(SUMMARY.lines().next().unwrap()),
        "{shown}"
    );
    // The event says what was done, with the numbers that were printed.
    let lines = place.etch(["show", &id, "--json"]).run().out().to_owned();
    let all: Vec<Value> = serde_json::from_str(&lines).unwrap();
    let data = &of_type(&all, "context.summary")[0]["data"];
    assert_eq!(data["trigger"], "manual");
    for number in ["tokensBefore", "tokensAfter"] {
        assert!(done.out().contains(&format!("~{} ", data[number])), "{} {data}", done.out());
    }
    let kept = data["firstKeptEventId"].as_str().unwrap();
    assert!(all.iter().any(|event| event["id"] == kept && event["type"] == "message.user"));
}

#[test]
fn nothing_to_fold_is_said_and_nobody_is_asked() {
    let place = Place::new();
    let id = session(&place, 2);
    let (server, log) = server(1_000_000, |_, _| Chat::answer("ok"), summarised);
    let done = compact(&place, &server, &["--session", &id]);
    assert_eq!(done.code, Some(0));
    assert!(done.out().is_empty() && done.stderr.contains("nothing to compact"), "{}", done.stderr);
    assert!(log.bodies.lock().unwrap().is_empty());
    let unnamed = compact(&place, &server, &[]);
    assert_eq!(unnamed.code, Some(2), "{}", unnamed.stderr);
    let unknown = compact(&place, &server, &["--session", "ffffffff"]);
    assert_eq!(unknown.code, Some(9), "{}", unknown.stderr);
}

/// A second compaction updates the summary of the first.
#[test]
fn a_second_summary_is_made_from_the_first() {
    let place = Place::new();
    place.file("a.txt", "text\n");
    let id = session(&place, 4);
    let (server, log) = server(
        1_000_000,
        |round, _| match round {
            0 => Chat::calls(&[("c1", "read", r#"{"files":[{"path":"a.txt"}]}"#)]),
            1 => Chat::answer(&format!("- [ ] an open item\n{}", "more words ".repeat(2000))),
            _ => Chat::answer(&"other words ".repeat(2000)),
        },
        |nth, _| Chat::answer(&format!("## Goal\nsummary number {nth}")),
    );
    let keep = ["--session", &id, "--keep-recent-tokens", "500"];
    assert_eq!(compact(&place, &server, &keep).code, Some(0));
    for prompt in ["read it", "and", "more"] {
        let ran = run(&place, &server, &["--session", &id, "-p", prompt]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let done = compact(&place, &server, &keep);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let asked = {
        let bodies = log.bodies.lock().unwrap();
        let (_, body) = bodies.iter().rfind(|(summary, _)| *summary).unwrap().clone();
        texts(&serde_json::from_slice(&body).unwrap())
    };
    assert!(asked.contains("<previous-checkpoint>\n## Goal\nsummary number 0"), "{asked}");
    let lines = place.etch(["show", &id, "--json"]).run().out().to_owned();
    let all: Vec<Value> = serde_json::from_str(&lines).unwrap();
    let summaries = of_type(&all, "context.summary");
    let last = &summaries[1]["data"];
    assert_eq!(last["readFiles"], serde_json::json!(["a.txt"]), "{last}");
    let text = last["summary"].as_str().unwrap();
    assert!(text.contains("- [ ] an open item"), "{text}");
    assert!(text.ends_with("## Files\n### Read\n- a.txt"), "{text}");
}

//! `/compact` at the prompt, and a conversation that fills up while one talks.

use super::*;

fn lines(place: &Place, server: &Server, settings: &[&str], input: &str) -> Ran {
    let base = server.base_url();
    let mut all = vec!["chat", "--provider", "openai", "--model", "m", "--base-url", &base];
    all.extend_from_slice(settings);
    place.etch(all).env("OPENAI_API_KEY", "k").stdin(input).run()
}

#[test]
fn a_conversation_is_compacted_by_hand_and_goes_on() {
    let place = Place::new();
    let (server, log) = server(
        1_000_000,
        |round, _| Chat::answer(&format!("answer {round} {}", "with many words ".repeat(300))),
        summarised,
    );
    let ran = lines(
        &place,
        &server,
        &["--keep-recent-tokens", "1000"],
        "one\n/compact\ntwo\n/compact\nthree\n/compact the paths\nfour\n",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown = format!("{}{}", ran.out(), ran.stderr);
    assert_eq!(shown.matches("compacted the conversation: ~").count(), 2, "{shown}");
    assert_eq!(log.summaries(), 2);
    let last: Value = serde_json::from_slice(log.rounds().last().unwrap()).unwrap();
    let all = texts(&last);
    assert!(all.contains(SUMMARY) && all.contains("four") && !all.contains("answer 0"), "{all}");
}

#[test]
fn too_little_to_compact_is_said_and_the_chat_goes_on() {
    let place = Place::new();
    let (server, log) = server(1_000_000, |_, _| Chat::answer("hello"), summarised);
    let ran = lines(&place, &server, &[], "/compact\nhi\n/compact\nhi again\n");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown = format!("{}{}", ran.out(), ran.stderr);
    assert_eq!(shown.matches("nothing to compact").count(), 2, "{shown}");
    assert_eq!((log.summaries(), log.rounds().len()), (0, 2));
}

/// A model that cannot summarise ends nothing: the conversation is as it was.
#[test]
fn a_summary_that_fails_ends_no_chat() {
    let place = Place::new();
    let (server, log) = server(
        1_000_000,
        |round, _| Chat::answer(&format!("answer {round} {}", "with many words ".repeat(300))),
        |_, _| Chat::answer(" "),
    );
    let ran =
        lines(&place, &server, &["--keep-recent-tokens", "1000"], "one\ntwo\n/compact\nthree\n");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown = format!("{}{}", ran.out(), ran.stderr);
    assert!(
        shown.contains("the conversation is as it was: the model wrote an empty summary"),
        "{shown}"
    );
    assert_eq!(log.summaries(), 2, "one more try, and no further");
    let last: Value = serde_json::from_slice(log.rounds().last().unwrap()).unwrap();
    assert!(texts(&last).contains("answer 0"), "nothing is lost");
}

#[test]
fn before_a_summary_one_goes_back_to_the_whole_conversation() {
    let place = Place::new();
    let (server, log) = server(
        1_000_000,
        |round, _| Chat::answer(&format!("answer {round} {}", "with many words ".repeat(300))),
        summarised,
    );
    let input = "one\ntwo\n/compact\nthree\n/rewind 2\nagain\n/fork 1\nlast\n";
    let ran = lines(&place, &server, &["--keep-recent-tokens", "1000"], input);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(log.summaries(), 1);
    let rounds: Vec<String> =
        log.rounds().iter().map(|body| texts(&serde_json::from_slice(body).unwrap())).collect();
    let has = |round: usize, text: &str| rounds[round].contains(text);
    assert!(has(2, SUMMARY) && !has(2, "answer 0"), "three: {}", rounds[2]);
    assert!(has(3, "answer 0") && has(3, "again"), "again: {}", rounds[3]);
    assert!(!has(3, SUMMARY) && !has(3, "answer 1"), "again: {}", rounds[3]);
    assert!(has(4, SUMMARY) && has(4, "answer 2") && has(4, "last"), "last: {}", rounds[4]);
    assert!(!has(4, "answer 0") && !has(4, "again"), "last: {}", rounds[4]);
}

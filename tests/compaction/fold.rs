//! Results that are no longer needed become one line.

use super::*;

/// Reads one of two files in turn and now and then changes one: earlier reads are stale, and they
/// make most of the conversation.
fn round(round: usize, _: &Value) -> Reply {
    let id = format!("call_{round}");
    let file = round % 2;
    match round {
        30.. => Chat::answer("done"),
        _ if round % 7 == 6 => {
            let edit = format!(
                r#"{{"path":"f{file}.txt","edits":[{{"oldText":"mark {file}:","newText":"mark {file}:x"}}]}}"#
            );
            Chat::calls(&[(&id, "edit", &edit)])
        }
        _ => Chat::calls(&[(&id, "read", &format!(r#"{{"path":"f{file}.txt"}}"#))]),
    }
}

#[test]
fn stale_results_are_folded_instead_of_summarised_and_stay_as_they_were_sent() {
    let place = Place::new();
    for file in 0..2 {
        let lines: String = (0..100).map(|n| format!("line {n} of the file\n")).collect();
        place.file(&format!("f{file}.txt"), format!("mark {file}:\n{lines}"));
    }
    let (server, log) = server(16_000, round, summarised);
    let args = ["-c", "context.window_tokens=16000", "--max-tool-rounds", "60", "-p", "go"];
    let ran = run(&place, &server, &args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = events(&ran);
    let folds = of_type(&all, "context.folded");
    assert!(!folds.is_empty() && log.summaries() == 0, "{} folds", folds.len());
    assert_eq!(ran.stderr.matches("no longer needed").count(), folds.len(), "{}", ran.stderr);
    let data = &folds[0]["data"];
    let (before, after) = (data["tokensBefore"].as_u64(), data["tokensAfter"].as_u64());
    assert!(after.unwrap() * 10 <= before.unwrap() * 8, "a fold has to pay: {data}");
    let stubs: Vec<&str> = folds
        .iter()
        .flat_map(|fold| fold["data"]["results"].as_array().unwrap())
        .map(|result| result["stub"].as_str().unwrap())
        .collect();
    assert!(
        stubs.contains(&"[folded: f0.txt was read again later; read it again if needed]")
            || stubs.contains(&"[folded: f0.txt was changed later; read it again if needed]"),
        "{stubs:?}"
    );
    // What was sent once is sent again byte for byte, but where something was folded.
    let rounds = log.rounds();
    let told = |body: &Vec<u8>| serde_json::from_slice::<Value>(body).unwrap()["messages"].take();
    let broken = rounds.windows(2).filter(|pair| {
        let (one, two) = (told(&pair[0]), told(&pair[1]));
        !two.as_array().unwrap().starts_with(one.as_array().unwrap())
    });
    assert_eq!(broken.count(), folds.len());
    // A resumed session sees the same.
    let id = all.last().unwrap()["sessionId"].as_str().unwrap();
    let next =
        run(&place, &server, &["--session", id, "-c", "context.window_tokens=16000", "-p", "x"]);
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    let last = log.rounds().pop().unwrap();
    let last = String::from_utf8(last).unwrap();
    assert!(stubs.iter().all(|stub| last.contains(stub)), "{last}");
}

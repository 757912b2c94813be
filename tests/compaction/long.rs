//! Tasks that are longer than the model's window.

use std::sync::atomic::Ordering;

use super::*;

const ROUNDS: usize = 200;

/// Files that a long task reads, and their contents: code-like lines, all different.
fn files(place: &Place, count: usize, lines: usize) {
    for file in 0..count {
        let line = |at| format!("fn step_{file}_{at}(value: usize) -> usize {{ value + {at} }}\n");
        place.file(&format!("src/part_{file}.rs"), (0..lines).map(line).collect::<String>());
    }
}

/// What the model does in round N of a long task: reads, searches, edits, commands.
fn work(round: usize, numbers: usize) -> Reply {
    let id = format!("call_{round}");
    let file = round % 20;
    let read = format!(r#"{{"path":"src/part_{file}.rs"}}"#);
    let (name, arguments) = match round % 4 {
        0 | 1 => ("read", read),
        2 => ("grep", format!(r#"{{"pattern":"step_{file}_","path":"src"}}"#)),
        _ => ("bash", format!(r#"{{"command":"seq {round} {}"}}"#, round + numbers)),
    };
    Chat::new()
        .text(&format!("Round {round}: looking further."))
        .call(0, &id, name, &arguments)
        .finish("tool_calls")
        .usage(10, 2)
        .done()
        .reply()
}

fn long_task(window: usize, lines: usize, numbers: usize) {
    let place = Place::new();
    files(&place, 20, lines);
    let (server, log) = server(
        window,
        move |round, _| {
            if round < ROUNDS { work(round, numbers) } else { Chat::answer("all done") }
        },
        summarised,
    );
    let size = format!("context.window_tokens={window}");
    let ran = run(
        &place,
        &server,
        &["--max-tool-rounds", "300", "-c", &size, "-p", "do two hundred rounds of work"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let events = events(&ran);
    let result = events.last().unwrap();
    assert_eq!(result["answer"], "all done");
    assert_eq!(log.refused.load(Ordering::Relaxed), 0, "no request was too large");
    let summaries = of_type(&events, "context.summary");
    let folds = of_type(&events, "context.folded");
    // How much of each prompt the server has seen before, which is what a cache is good for.
    let rounds = log.rounds();
    let (mut same, mut all) = (0, 0);
    for pair in rounds.windows(2) {
        let shared = pair[0].iter().zip(&pair[1]).take_while(|(one, two)| one == two).count();
        same += shared;
        all += pair[1].len();
    }
    let share = 100 * same / all;
    println!(
        "window {window}: {} rounds, {} summaries, {} folds, {share} % of the bytes of a prompt \
         were in the one before",
        rounds.len(),
        summaries.len(),
        folds.len(),
    );
    assert!((3..=12).contains(&summaries.len()), "{} summaries", summaries.len());
    assert!(80 <= share, "only {share} % of a prompt is as it was sent before");
    // What the person asked for is there to the end, word for word.
    let last = String::from_utf8_lossy(rounds.last().unwrap()).into_owned();
    assert!(last.contains("do two hundred rounds of work"));
    for summary in &summaries {
        let (before, after) = (&summary["data"]["tokensBefore"], &summary["data"]["tokensAfter"]);
        assert!(after.as_u64() < before.as_u64(), "{summary}");
        assert_eq!(summary["data"]["trigger"], "auto");
        assert!(summary["data"]["usage"]["inputTokens"].as_u64().is_some(), "{summary}");
    }
    let shown = ran.stderr.matches("compacted the conversation").count();
    assert_eq!(shown, summaries.len(), "{}", ran.stderr);
    // All of it is still on the disk, and goes on.
    let id = result["sessionId"].as_str().unwrap();
    let go_on = run(&place, &server, &["-c", &size, "--session", id, "-p", "and again"]);
    assert_eq!(go_on.code, Some(0), "{}", go_on.stderr);
}

#[test]
fn two_hundred_rounds_fit_a_window_of_32k() {
    long_task(32_768, 40, 300);
}

#[test]
fn two_hundred_rounds_fit_a_window_of_8k() {
    long_task(8_192, 2, 5);
}

/// One turn, calls of 1,000 tokens each, then one of 30,000: more than the window has.
#[test]
fn a_tool_loop_is_measured_before_every_call_and_a_giant_result_is_cut() {
    let place = Place::new();
    let words = "word ".repeat(800);
    place.file("some.txt", &words);
    place.file(
        "giant.txt",
        (0..6000).map(|n| format!("line {n} of many words\n")).collect::<String>(),
    );
    let round = |round: usize, _: &Value| {
        let id = format!("call_{round}");
        match round {
            0 => Chat::calls(&[(&id, "bash", r#"{"command":"cat giant.txt"}"#)]),
            1..41 => {
                let command = format!(r#"{{"command":"cat some.txt; echo {round}"}}"#);
                Chat::calls(&[(&id, "bash", &command)])
            }
            _ => Chat::answer("done"),
        }
    };
    let (server, log) = server(20_000, round, summarised);
    let ran = run(
        &place,
        &server,
        &[
            "-c",
            "context.window_tokens=20000",
            "-c",
            "context.fold=false",
            "--max-tool-rounds",
            "60",
            "-p",
            "go",
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(log.refused.load(Ordering::Relaxed), 0);
    assert!(1 < log.summaries());
    let events = events(&ran);
    let giant = of_type(&events, "message.tool")[0]["data"]["content"][0]["text"].to_string();
    assert!(giant.len() < 60_000, "{}", giant.len());
    assert!(giant.contains("left out"), "{}", &giant[..200]);
    assert_eq!(of_type(&events, "message.user").len(), 1, "the task went on by itself");
}

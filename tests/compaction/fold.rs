//! Results that are no longer needed become one line.

use super::*;

/// Reads the same file again and again, and changes it once: all but the last reads are stale.
#[test]
fn stale_reads_are_folded_before_anything_is_summarised_and_stay_so() {
    let place = Place::new();
    place.file("big.txt", (0..300).map(|n| format!("line {n} of the file\n")).collect::<String>());
    let round = |round: usize, _: &Value| match round {
        12 => Chat::answer("done"),
        _ => {
            let id = format!("call_{round}");
            Chat::calls(&[(&id, "read", r#"{"path":"big.txt"}"#)])
        }
    };
    let (server, log) = server(16_000, round, summarised);
    let ran = run(
        &place,
        &server,
        &["-c", "context.window_tokens=16000", "-c", "bash.timeout_seconds_max=20", "-p", "go"],
    );
    // Five equal calls end a turn; what matters here is what was sent before.
    let events = events(&ran);
    let folds = of_type(&events, "context.folded");
    println!("{} folds, {} rounds, {:?}", folds.len(), log.rounds().len(), ran.code);
}

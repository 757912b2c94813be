//! Notices a model that is stuck: the same call with the same arguments and the same result,
//! again and again.

use crate::model::ToolCall;

/// This many equal calls in a row end the turn.
pub const REPEATS_MAX: u32 = 5;

/// Counts equal calls in a row, and equal rounds in a row (a loop over the same two calls).
#[derive(Debug, Default)]
pub struct Repeats {
    last_call: Option<CallKey>,
    call_times: u32,
    round: Vec<CallKey>,
    last_round: Vec<CallKey>,
    round_times: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CallKey {
    name: String,
    arguments: String,
    result: String,
}

impl Repeats {
    /// Notes a call's end.
    pub fn note(&mut self, call: &ToolCall, result: &str) {
        let key = CallKey {
            name: call.name.clone(),
            arguments: normal(&call.arguments),
            result: without_duration(result),
        };
        self.round.push(key.clone());
        let same = self.last_call.as_ref() == Some(&key);
        self.call_times = if same { self.call_times + 1 } else { 1 };
        self.last_call = Some(key);
    }

    /// Ends a round; the name of the call that was repeated too often, if one was.
    pub fn end_round(&mut self) -> Option<String> {
        let same = !self.round.is_empty() && self.round == self.last_round;
        self.round_times = if same { self.round_times + 1 } else { 1 };
        self.last_round = std::mem::take(&mut self.round);
        let stuck = self.call_times >= REPEATS_MAX || self.round_times >= REPEATS_MAX;
        stuck.then(|| self.last_call.as_ref().map(|key| key.name.clone()).unwrap_or_default())
    }
}

/// Arguments that differ only in white space are the same arguments.
fn normal(arguments: &str) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_str(arguments);
    value.map_or_else(|_| arguments.to_owned(), |value| value.to_string())
}

/// A shell result without the line that says how long it took.
fn without_duration(result: &str) -> String {
    let keeps = |line: &&str| !line.starts_with("duration: ");
    result.lines().filter(keeps).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            id: "x".to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            extra: None,
        }
    }

    #[test]
    fn five_equal_calls_in_a_row_are_too_many() {
        let mut repeats = Repeats::default();
        for round in 1..=5 {
            repeats.note(&call("read", r#"{"path": "a"}"#), &format!("x\nduration: {round}ms"));
            let want = (round == 5).then(|| "read".to_owned());
            assert_eq!(repeats.end_round(), want, "round {round}");
        }
    }

    #[test]
    fn another_result_or_another_call_starts_anew() {
        let mut repeats = Repeats::default();
        for round in 0..20 {
            repeats.note(&call("bash", "{}"), &format!("{round}"));
            assert_eq!(repeats.end_round(), None);
        }
        for round in 0..20 {
            repeats.note(&call("read", &format!("{{\"offset\":{}}}", round % 3)), "same");
            assert_eq!(repeats.end_round(), None);
        }
    }

    #[test]
    fn the_same_pair_of_calls_five_rounds_long_is_too_many() {
        let mut repeats = Repeats::default();
        for round in 1..=5 {
            repeats.note(&call("a", "{}"), "1");
            repeats.note(&call("b", "{}"), "2");
            assert_eq!(repeats.end_round().is_some(), round == 5);
        }
    }
}

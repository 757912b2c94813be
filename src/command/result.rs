//! The last line of a JSON run: `run.result`, on every path that is not a usage error.

use serde::Serialize;

use crate::agent::{DeniedCall, Failure, Outcome, Stop};
use crate::model::Usage;

/// How a run ended, for scripts. `exit` equals the process's exit code.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    r#type: &'static str,
    pub stop: &'static str,
    pub exit: u8,
    /// The final answer; with another stop, what there is of one.
    pub answer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Model calls.
    pub rounds: u32,
    pub tool_calls: u32,
    pub usage: Usage,
    pub duration_millis: u64,
    /// How the server was told who calls; absent when the run ended before that was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<&'static str>,
    /// Absent when nothing was kept or the run ended before a session began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    pub changed_files: Vec<String>,
    pub denied_calls: Vec<DeniedCall>,
}

impl RunResult {
    /// The result of a turn that ran.
    pub fn of_turn(
        outcome: Outcome,
        session_id: Option<String>,
        auth: &'static str,
        duration_millis: u64,
    ) -> RunResult {
        RunResult {
            r#type: "run.result",
            stop: outcome.stop.as_str(),
            exit: outcome.stop.exit_code(),
            error: outcome.stop.failure(),
            answer: outcome.answer,
            rounds: outcome.rounds,
            tool_calls: outcome.tool_calls,
            usage: outcome.usage,
            duration_millis,
            auth: Some(auth),
            session_id,
            changed_files: outcome.changed_files,
            denied_calls: outcome.denied_calls,
        }
    }

    /// The result of a run that ended before its turn.
    pub fn early(stop: &'static str, exit: u8, error: Failure, duration_millis: u64) -> RunResult {
        RunResult {
            r#type: "run.result",
            stop,
            exit,
            answer: String::new(),
            error: Some(error),
            rounds: 0,
            tool_calls: 0,
            usage: Usage::default(),
            duration_millis,
            auth: None,
            session_id: None,
            changed_files: Vec::new(),
            denied_calls: Vec::new(),
        }
    }

    /// The result of a run that a bug ended.
    pub fn panicked(message: String, duration_millis: u64) -> RunResult {
        let stop = Stop::Panicked(message);
        let failure = stop.failure().unwrap_or(Failure {
            kind: "bug",
            message: String::new(),
            hint: String::new(),
        });
        RunResult::early(stop.as_str(), stop.exit_code(), failure, duration_millis)
    }

    /// Makes a success a failure that came after the turn.
    pub fn fail(&mut self, kind: &'static str, message: String, exit: u8) {
        self.stop = "error";
        self.exit = exit;
        self.error = Some(Failure { kind, message, hint: String::new() });
    }

    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "{\"type\":\"run.result\"}".to_owned())
    }
}

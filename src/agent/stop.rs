//! How a turn ends: one enum, and its exit code and names in JSON.

use std::fmt;

use crate::cancel::Reason;
use crate::model::{ErrorKind, ModelError};
use crate::text;

/// Why a turn ended. Every variant but [`Stop::Final`] is a failure to whoever scripts etch.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// The model gave its final answer.
    Final,
    /// The model call failed after its retries.
    Failed(ModelError),
    /// The model ended without an answer and without a call.
    Empty,
    /// The model declined, or a filter withheld the answer.
    Refused {
        filtered: bool,
    },
    /// The output limit cut the answer.
    Truncated,
    /// The last calls before the answer were all refused.
    Denied,
    /// A hook refused the prompt; it was not stored. `place`: the hook's line.
    PromptBlocked {
        reason: String,
        place: String,
    },
    /// A hook failed, and what it guards did not happen.
    HookFailed(String),
    RoundLimit {
        limit: u32,
    },
    /// The same call with the same result came this often in a row.
    Repeated {
        name: String,
        times: u32,
    },
    Cancelled(Reason),
    /// The log could not be written: nothing further was run.
    LogFailed(String),
    /// A bug in etch itself.
    Panicked(String),
}

/// What went wrong, for people and for `run.result`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Failure {
    pub kind: &'static str,
    pub message: String,
    pub hint: String,
}

impl Failure {
    /// One that has no advice.
    pub fn new(kind: &'static str, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), hint: String::new() }
    }
}

/// What people read: what happened, and what to do about it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.hint.is_empty() {
            write!(f, "; {}", self.hint)?;
        }
        Ok(())
    }
}

impl Stop {
    /// The value of `stop` in the log and in `run.result`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Stop::Final => "final",
            Stop::Failed(error) if error.kind == ErrorKind::Network => "network",
            Stop::Failed(error) if error.kind == ErrorKind::ContentFilter => "refused",
            Stop::Failed(_)
            | Stop::Empty
            | Stop::HookFailed(_)
            | Stop::LogFailed(_)
            | Stop::Panicked(_) => "error",
            Stop::Refused { .. } => "refused",
            Stop::Truncated => "truncated",
            Stop::Denied | Stop::PromptBlocked { .. } => "denied",
            Stop::RoundLimit { .. } | Stop::Repeated { .. } => "limit",
            Stop::Cancelled(Reason::Timeout) => "timeout",
            Stop::Cancelled(_) => "cancelled",
        }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Stop::Final => 0,
            Stop::Failed(error) => match error.kind {
                ErrorKind::Auth => 3,
                ErrorKind::Network => 8,
                ErrorKind::RateLimit
                | ErrorKind::Quota
                | ErrorKind::ContextOverflow
                | ErrorKind::InvalidRequest
                | ErrorKind::ContentFilter
                | ErrorKind::Overloaded
                | ErrorKind::Server
                | ErrorKind::Protocol
                | ErrorKind::Cancelled => 1,
            },
            Stop::Empty | Stop::Refused { .. } | Stop::Truncated | Stop::HookFailed(_) => 1,
            Stop::Denied | Stop::PromptBlocked { .. } => 4,
            Stop::RoundLimit { .. } | Stop::Repeated { .. } => 5,
            Stop::LogFailed(_) => 9,
            Stop::Panicked(_) => 70,
            Stop::Cancelled(reason) => match reason {
                Reason::Interrupt | Reason::User => 130,
                Reason::Terminate => 143,
                Reason::Hangup => 129,
                Reason::Timeout => 124,
                Reason::OutputGone => 141,
            },
        }
    }

    /// What went wrong; `None` for a final answer.
    pub fn failure(&self) -> Option<Failure> {
        let make = |kind, message: String, hint: &str| {
            Some(Failure { kind, message, hint: hint.to_owned() })
        };
        match self {
            Stop::Final => None,
            Stop::Failed(error) => make(error.kind.as_str(), error.message.clone(), &error.hint),
            Stop::Empty => make(
                "empty",
                "the model ended without an answer".to_owned(),
                "ask again, or try another model",
            ),
            Stop::Refused { filtered: false } => {
                make("refused", "the model declined to answer".to_owned(), "rephrase the prompt")
            }
            Stop::Refused { filtered: true } => make(
                "content_filter",
                "a content filter withheld the answer".to_owned(),
                "rephrase the prompt",
            ),
            Stop::Truncated => make(
                "truncated",
                "the output limit of the server cut the answer".to_owned(),
                "ask for less at a time, or raise the limit at the server",
            ),
            Stop::Denied => make(
                "denied",
                "the calls that the answer needed were refused".to_owned(),
                "the denied calls say what would allow them",
            ),
            Stop::PromptBlocked { reason, place } => make(
                "denied",
                format!("a hook blocked the prompt: {reason} ({place})"),
                "it was neither sent nor stored",
            ),
            Stop::HookFailed(message) => {
                make("hook", message.clone(), "correct the hook, or set 'disabled = true' there")
            }
            Stop::RoundLimit { limit } => make(
                "limit",
                format!(
                    "stopped after {} of tool calls without a final answer",
                    text::plural(u64::from(*limit), "round")
                ),
                "go on in the same session with a fresh budget, or raise --max-tool-rounds",
            ),
            Stop::Repeated { name, times } => make(
                "limit",
                format!("the model made the same '{name}' call {times} times with the same result"),
                "continue with another instruction, or try another model",
            ),
            Stop::Cancelled(reason) => {
                let message = crate::cancel::Cancelled(*reason).to_string();
                make(self.as_str(), message, "")
            }
            // What can be done depends on what failed, and is said there.
            Stop::LogFailed(message) => make("log", message.clone(), ""),
            Stop::Panicked(message) => make(
                "bug",
                format!("etch failed: {message}"),
                "this is a bug in etch; please report it",
            ),
        }
    }
}

//! The one taxonomy of model failures. No HTTP status has a meaning above this.

use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// No credential, or the server refused it.
    Auth,
    RateLimit,
    /// Money or plan used up: waiting does not help.
    Quota,
    ContextOverflow,
    InvalidRequest,
    ContentFilter,
    Overloaded,
    Server,
    /// The host could not be reached or the connection broke.
    Network,
    /// The answer could not be understood, or ended without its end.
    Protocol,
    Cancelled,
}

impl ErrorKind {
    /// The name in logs and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Auth => "auth",
            ErrorKind::RateLimit => "rate_limit",
            ErrorKind::Quota => "quota",
            ErrorKind::ContextOverflow => "context_overflow",
            ErrorKind::InvalidRequest => "invalid_request",
            ErrorKind::ContentFilter => "content_filter",
            ErrorKind::Overloaded => "overloaded",
            ErrorKind::Server => "server",
            ErrorKind::Network => "network",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Cancelled => "cancelled",
        }
    }
}

/// Why a model call failed.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelError {
    pub kind: ErrorKind,
    /// Another attempt of the same request may succeed.
    pub retryable: bool,
    /// The server's own lower bound on the wait before the next attempt.
    pub retry_after: Option<Duration>,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// Of a [`ErrorKind::ContextOverflow`]: the size in tokens that the server says it takes.
    pub window: Option<u64>,
    /// What happened and where, in the server's words where it has some. Never holds a secret.
    pub message: String,
    /// What the person can do about it; empty when there is nothing to say.
    pub hint: String,
}

impl ModelError {
    /// An error of `kind` with that kind's usual answer to "try again?".
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ModelError {
        let retryable = matches!(
            kind,
            ErrorKind::RateLimit
                | ErrorKind::Overloaded
                | ErrorKind::Server
                | ErrorKind::Network
                | ErrorKind::Protocol
        );
        ModelError {
            kind,
            retryable,
            retry_after: None,
            status: None,
            window: None,
            message: message.into(),
            hint: String::new(),
        }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> ModelError {
        self.hint = hint.into();
        self
    }

    #[must_use]
    pub fn with_status(mut self, status: u16) -> ModelError {
        self.status = Some(status);
        self
    }

    #[must_use]
    pub fn not_retryable(mut self) -> ModelError {
        self.retryable = false;
        self
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.hint.is_empty() {
            write!(f, "; {}", self.hint)?;
        }
        Ok(())
    }
}

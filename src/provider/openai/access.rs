//! What identifies the caller to a server: nothing, a key, or a token that can be renewed.

use std::fmt;
use std::sync::Arc;

use crate::cancel::Cancel;
use crate::model::ModelError;
use crate::provider::ApiKey;
use crate::provider::secret::{Secret, redact_all};

/// What goes into the headers of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    pub token: Secret,
    /// The account that the token is for, where a server wants it beside the token.
    pub account_id: Option<String>,
    pub fedramp: bool,
}

/// Tokens that expire.
pub trait Tokens: Send + Sync {
    /// The name of the mode: `chatgpt` or `access_token`.
    fn mode(&self) -> &'static str;

    /// Where they come from, for messages.
    fn source(&self) -> String;

    /// The token at hand, which may have expired; nobody is asked.
    fn known(&self) -> Bearer;

    /// The token to use now; renewed before, when it is about to expire.
    fn current(&self, cancel: &Cancel) -> Result<Bearer, ModelError>;

    /// Another token than `refused`, which a server answered with 401; the error says what the
    /// person can do.
    fn renewed(&self, refused: &Bearer, cancel: &Cancel) -> Result<Bearer, ModelError>;

    /// `text` without any token that is or was in use.
    fn redact(&self, text: &str) -> String;
}

/// How a server is told who calls.
#[derive(Clone, Default)]
pub enum Access {
    #[default]
    None,
    Key(ApiKey),
    Tokens(Arc<dyn Tokens>),
}

impl Access {
    /// `none`, `api_key`, `chatgpt` or `access_token`: shown to people and in JSON.
    pub fn mode(&self) -> &'static str {
        match self {
            Access::None => "none",
            Access::Key(_) => "api_key",
            Access::Tokens(tokens) => tokens.mode(),
        }
    }

    /// Where it comes from, for messages; empty when there is none.
    pub fn source(&self) -> String {
        match self {
            Access::None => String::new(),
            Access::Key(key) => key.source.clone(),
            Access::Tokens(tokens) => tokens.source(),
        }
    }

    /// The mode and where it comes from, for people.
    pub fn describe(&self) -> String {
        match self {
            Access::None => "none".to_owned(),
            Access::Key(key) => format!("the key from {}", key.source),
            Access::Tokens(tokens) => tokens.source(),
        }
    }

    /// What is at hand; a token may have expired.
    pub fn known(&self) -> Option<Bearer> {
        match self {
            Access::None => None,
            Access::Key(key) => {
                let token = key.secret.clone();
                Some(Bearer { token, account_id: None, fedramp: false })
            }
            Access::Tokens(tokens) => Some(tokens.known()),
        }
    }

    /// What to send now.
    pub fn bearer(&self, cancel: &Cancel) -> Result<Option<Bearer>, ModelError> {
        match self {
            Access::None | Access::Key(_) => Ok(self.known()),
            Access::Tokens(tokens) => tokens.current(cancel).map(Some),
        }
    }

    /// What to send after a 401; `None` when there is nothing else to try.
    pub fn renewed(&self, refused: &Bearer, cancel: &Cancel) -> Result<Option<Bearer>, ModelError> {
        match self {
            Access::None | Access::Key(_) => Ok(None),
            Access::Tokens(tokens) => tokens.renewed(refused, cancel).map(Some),
        }
    }

    /// `text` without any secret of this access.
    pub fn redact(&self, text: &str) -> String {
        match self {
            Access::None => text.to_owned(),
            Access::Key(key) => redact_all(std::iter::once(&key.secret), text),
            Access::Tokens(tokens) => tokens.redact(text),
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [redacted]", self.mode())
    }
}

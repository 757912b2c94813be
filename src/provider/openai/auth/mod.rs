//! Signing in with a ChatGPT subscription: the stored sign-in, its renewal, and the ways to get it.
//!
//! Whoever sends requests sees only [`Tokens`](super::access::Tokens). Tokens leave this module in
//! the header of a call to the one base URL that the sign-in belongs to, in calls to its issuer,
//! and in its file; every error that comes out of here is free of them.

pub mod browser;
pub mod claims;
pub mod device;
pub mod file;
mod form;
pub mod import;
pub mod issuer;
pub mod limits;
mod page;
pub mod refresh;
pub mod signin;
pub mod store;
pub mod token;
pub mod usage;
pub mod vault;

use std::path::{Path, PathBuf};

use crate::config::{Key, Kind, Trust};
use crate::host::Host;
use crate::model::{ErrorKind, ModelError};
use crate::wire::url::Url;

pub const ISSUER: &str = "https://auth.openai.com";
/// The public client that the sign-in was registered for; it has no secret.
pub const CLIENT_ID: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
pub const CODEX_BASE_URL: &str = "https://chatgpt.com/backend-api/codex";
/// A token for one run, in place of a stored sign-in.
pub const ACCESS_TOKEN: &str = "CODEX_ACCESS_TOKEN";

/// What to do about every sign-in that does not work any more.
pub const LOGIN_HINT: &str = "sign in again: etch auth login";

pub const FILE: Key = Key {
    name: "auth.file",
    kind: Kind::Path,
    default: None,
    trust: Trust::Own,
    doc: "Where the sign-in with a ChatGPT subscription is kept. Unset: ~/.etch/auth/openai.json.",
};

const fn key(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { name, kind, default: Some(default), trust: Trust::Own, doc }
}

pub const ISSUER_KEY: Key =
    key("auth.issuer", Kind::Url, ISSUER, "Who signs people in and renews their tokens.");
pub const CLIENT_ID_KEY: Key =
    key("auth.client_id", Kind::Text, CLIENT_ID, "The client that a sign-in is for.");
pub const CODEX_BASE_URL_KEY: Key = key(
    "auth.codex_base_url",
    Kind::Url,
    CODEX_BASE_URL,
    "The server that a sign-in is for, and the only one that gets its tokens.",
);

/// The settings that this module is configured by. No project sets them, trusted or not.
pub const KEYS: &[Key] = &[FILE, ISSUER_KEY, CLIENT_ID_KEY, CODEX_BASE_URL_KEY];

/// Where a sign-in is kept when nothing else is set.
pub fn default_file(host: &Host) -> Option<PathBuf> {
    Some(host.home()?.join(".etch/auth/openai.json"))
}

/// An address that tokens may be sent to, without a slash at its end.
pub fn checked_url(name: &str, text: &str) -> Result<String, ModelError> {
    let wrong = |why: String| {
        ModelError::new(ErrorKind::InvalidRequest, format!("{name}: {why}"))
            .with_hint(format!("set {name} to an https:// URL"))
    };
    let url = Url::parse(text).map_err(wrong)?;
    if !url.https && !url.is_loopback() {
        return Err(wrong(format!("'{url}' would carry tokens in the clear")));
    }
    if !url.query.is_empty() {
        return Err(wrong(format!("'{url}' has a query")));
    }
    Ok(url.to_string().trim_end_matches('/').to_owned())
}

/// A failure of the credentials: `what` happened, and signing in anew is what helps.
fn refused(what: impl Into<String>) -> ModelError {
    ModelError::new(ErrorKind::Auth, what).with_hint(LOGIN_HINT)
}

/// A failure of a file: what, where, why.
fn file_error(path: &Path, what: &str, hint: impl Into<String>) -> ModelError {
    ModelError::new(ErrorKind::Auth, format!("{}: {what}", path.display())).with_hint(hint)
}

/// Unix seconds.
pub fn seconds_now(host: &Host) -> u64 {
    host.now().0 / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_over_tls_or_stay_on_this_machine() {
        let check = |text: &str| checked_url("auth.issuer", text).map_err(|e| e.to_string());
        assert_eq!(check("https://h/x/").as_deref(), Ok("https://h/x"));
        assert_eq!(check("http://127.0.0.1:1/").as_deref(), Ok("http://127.0.0.1:1"));
        assert_eq!(
            check("http://h"),
            Err("auth.issuer: 'http://h/' would carry tokens in the clear; set auth.issuer to an \
                 https:// URL"
                .to_owned())
        );
        assert!(check("h").is_err() && check("https://h/?a").is_err());
    }
}

//! A token from the environment: used as it is, for one server, never renewed.

use std::sync::Arc;

use super::claims::Claims;
use super::{ACCESS_TOKEN, seconds_now};
use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{ErrorKind, ModelError};
use crate::provider::openai::access::{Bearer, Tokens};
use crate::provider::secret::{Secret, redact_all};

pub struct AccessToken {
    token: Secret,
    claims: Claims,
    host: Arc<Host>,
}

fn wrong(text: String) -> ModelError {
    ModelError::new(ErrorKind::Auth, text)
        .with_hint(format!("set {ACCESS_TOKEN} to a new token, or sign in: etch auth login"))
}

impl AccessToken {
    /// The text of the variable; the error never shows it.
    pub fn new(text: &str, host: Arc<Host>) -> Result<AccessToken, ModelError> {
        let token = Secret::new(text).checked();
        let token = token.map_err(|why| wrong(format!("the token from {ACCESS_TOKEN} {why}")))?;
        let claims = Claims::of(token.reveal());
        Ok(AccessToken { token, claims, host })
    }

    pub fn claims(&self) -> &Claims {
        &self.claims
    }
}

impl Tokens for AccessToken {
    fn mode(&self) -> &'static str {
        "access_token"
    }

    fn source(&self) -> String {
        ACCESS_TOKEN.to_owned()
    }

    fn known(&self) -> Bearer {
        Bearer {
            token: self.token.clone(),
            account_id: self.claims.account_id.clone(),
            fedramp: self.claims.fedramp,
        }
    }

    fn current(&self, _cancel: &Cancel) -> Result<Bearer, ModelError> {
        if self.claims.expires_at.is_some_and(|at| at <= seconds_now(&self.host)) {
            return Err(wrong(format!("the token from {ACCESS_TOKEN} has expired")));
        }
        Ok(self.known())
    }

    fn renewed(&self, _refused: &Bearer, _cancel: &Cancel) -> Result<Bearer, ModelError> {
        Err(wrong(format!("the server refused the token from {ACCESS_TOKEN}")).with_status(401))
    }

    fn redact(&self, text: &str) -> String {
        redact_all(std::iter::once(&self.token), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::openai::auth::file::tests::token;

    #[test]
    fn it_is_used_until_it_ends_and_never_shown() {
        let host = || Arc::new(Host::fixed());
        let text = token("acc", 1_767_225_700, "SECRET");
        let access = AccessToken::new(&format!("{text}\r\n"), host()).unwrap();
        let bearer = access.current(&Cancel::new()).unwrap();
        assert_eq!((bearer.token.reveal(), bearer.account_id.as_deref()), (&*text, Some("acc")));
        assert_eq!(access.redact(&format!("no {text}")), "no [redacted]");
        let hint = "set CODEX_ACCESS_TOKEN to a new token, or sign in: etch auth login";
        let error = access.renewed(&bearer, &Cancel::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the server refused the token from CODEX_ACCESS_TOKEN; {hint}")
        );
        let old = AccessToken::new(&token("acc", 5, "x"), host()).unwrap();
        let error = old.current(&Cancel::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the token from CODEX_ACCESS_TOKEN has expired; {hint}")
        );
        // An opaque one has no end that is known here.
        assert!(AccessToken::new("opaque", host()).unwrap().current(&Cancel::new()).is_ok());
        for (text, why) in [
            ("a\nSECRET", "has a line break in the middle"),
            (" ", "is empty"),
            ("SECRÄT", "has a character that is no ASCII"),
        ] {
            let error = AccessToken::new(text, host()).err().unwrap();
            assert_eq!(error.message, format!("the token from CODEX_ACCESS_TOKEN {why}"));
        }
    }
}

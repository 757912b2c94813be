//! One refresh: a token that is good for one use goes out, new ones come back.

use serde_json::json;

use super::issuer::{Answer, Issuer};
use super::refused;
use crate::cancel::Cancel;
use crate::model::{ErrorKind, ModelError};
use crate::provider::secret::Secret;

/// New tokens; what the issuer left out stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fresh {
    pub id: Option<Secret>,
    pub access: Option<Secret>,
    pub refresh: Option<Secret>,
}

impl Fresh {
    pub fn of(answer: &Answer) -> Fresh {
        Fresh {
            id: answer.secret("id_token"),
            access: answer.secret("access_token"),
            refresh: answer.secret("refresh_token"),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.id.is_none() && self.access.is_none() && self.refresh.is_none()
    }
}

/// Why there are no new tokens.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// This refresh token will never work again.
    ForGood(ModelError),
    /// Another try may succeed.
    ForNow(ModelError),
}

/// Codes after which a refresh token is worth nothing.
const FOR_GOOD: [&str; 4] =
    ["refresh_token_expired", "refresh_token_reused", "refresh_token_invalidated", "invalid_grant"];

/// Asks for new tokens. Once the request is out it must not be cut: the answer holds the only
/// token that works from then on.
pub fn refresh(issuer: &Issuer, token: &Secret, cancel: &Cancel) -> Result<Fresh, Failure> {
    let body = json!({
        "client_id": issuer.client_id(),
        "grant_type": "refresh_token",
        "refresh_token": token.reveal(),
    });
    let what = "the sign-in cannot be renewed";
    let answer = issuer.post_json("/oauth/token", &body, &[token], cancel);
    let answer = answer.map_err(|error| {
        let message = format!("{what}: {}", error.message);
        Failure::ForNow(ModelError { message, ..error })
    })?;
    if answer.is_success() {
        let fresh = Fresh::of(&answer);
        let none = format!("{what}: no token in the answer");
        let useless = || Failure::ForNow(answer.failure(&none));
        return if fresh.is_empty() { Err(useless()) } else { Ok(fresh) };
    }
    if answer.status == 401 || FOR_GOOD.contains(&answer.code()) {
        let why = match answer.code() {
            "refresh_token_expired" => "it expired",
            "refresh_token_reused" => "its refresh token was used before, by another program",
            "refresh_token_invalidated" => "it was revoked",
            _ => return Err(Failure::ForGood(refused(answer.failure(what).message))),
        };
        return Err(Failure::ForGood(refused(format!("{what}: {why}"))));
    }
    let mut error = answer.failure(what);
    if error.kind == ErrorKind::Auth && error.hint.is_empty() {
        error = error.with_hint("try again later, or sign in again: etch auth login");
    }
    Err(Failure::ForNow(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::openai::auth::issuer::tests::Script;

    fn ask(status: u16, body: &str) -> Result<Fresh, Failure> {
        let (issuer, seen) = Script::issuer(&[(status, body)]);
        let result = refresh(&issuer, &Secret::new("rt_SECRET_0123456789"), &Cancel::new());
        let (url, body) = seen.lock().unwrap()[0].clone();
        assert_eq!(url, "https://issuer.test/oauth/token");
        let sent: serde_json::Value = serde_json::from_str(&body).unwrap();
        let want = json!({"client_id": "app_1", "grant_type": "refresh_token",
            "refresh_token": "rt_SECRET_0123456789"});
        assert_eq!(sent, want);
        result
    }

    #[test]
    fn tokens_that_are_left_out_stay_absent() {
        let secret = |text: &str| Some(Secret::new(text));
        let all = r#"{"id_token":"i","access_token":"a","refresh_token":"r","expires_in":1}"#;
        assert_eq!(
            ask(200, all),
            Ok(Fresh { id: secret("i"), access: secret("a"), refresh: secret("r") })
        );
        assert_eq!(
            ask(200, r#"{"access_token":"a","refresh_token":null,"id_token":""}"#),
            Ok(Fresh { access: secret("a"), ..Fresh::default() })
        );
    }

    #[test]
    fn refusals_for_good_are_told_from_those_for_now() {
        for code in FOR_GOOD {
            for body in [
                format!(r#"{{"error":{{"code":"{code}","message":"m"}}}}"#),
                format!(r#"{{"error":"{code}"}}"#),
                format!(r#"{{"code":"{code}"}}"#),
            ] {
                for status in [400, 401, 403] {
                    let Err(Failure::ForGood(error)) = ask(status, &body) else {
                        panic!("{status} {body}")
                    };
                    assert_eq!(
                        (error.kind, error.hint.as_str()),
                        (ErrorKind::Auth, crate::provider::openai::auth::LOGIN_HINT)
                    );
                    assert!(!error.retryable);
                }
            }
        }
        assert!(matches!(ask(401, "no"), Err(Failure::ForGood(_))));
        for (status, body, kind, why) in [
            (0, "connection refused", ErrorKind::Network, "connection refused"),
            (429, "{}", ErrorKind::RateLimit, "HTTP 429 from"),
            (503, "<html>", ErrorKind::Server, "HTTP 503 from"),
            (200, "{}", ErrorKind::Protocol, "no token in the answer: HTTP 200 from"),
            (200, "cut {\"acc", ErrorKind::Protocol, "no token in the answer: HTTP 200 from"),
            (403, "<html>blocked", ErrorKind::Auth, "HTTP 403 from"),
        ] {
            let Err(Failure::ForNow(error)) = ask(status, body) else { panic!("{status} {body}") };
            assert_eq!(error.kind, kind, "{status} {body}");
            let want = format!("the sign-in cannot be renewed: {why}");
            assert!(error.message.starts_with(&want), "{error}");
        }
    }
}

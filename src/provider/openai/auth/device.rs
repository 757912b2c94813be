//! Signing in with a code: the person types it on a page, on whatever machine has a browser.
//!
//! It looks like the usual device flow and is none: bodies are JSON, statuses are its own, and the
//! poll brings an authorization code with a verifier that the server made.

use std::time::Duration;

use crossbeam_channel::{after, select};
use serde_json::{Value, json};

use super::issuer::{Answer, Issuer};
use super::refresh::Fresh;
use super::store::cancelled;
use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{ErrorKind, ModelError};
use crate::provider::secret::Secret;

/// A code is good for this long.
pub const CODE_LASTS: Duration = Duration::from_secs(15 * 60);
const INTERVAL_DEFAULT: u64 = 5;
const INTERVAL_MAX: u64 = 60;
/// What a server that is asked too often gets more.
const SLOWER_BY: u64 = 5;
/// Polls in a row that may fail to reach the server.
const MISSES_MAX: u32 = 5;

/// What the person needs to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    pub url: String,
    pub user_code: String,
    id: String,
    interval_seconds: u64,
}

/// The person agreed: what is traded for tokens.
#[derive(Debug)]
pub struct Granted {
    pub code: Secret,
    pub verifier: Secret,
    pub redirect_uri: String,
}

/// How a wait between two polls is done; [`pause`] outside of tests.
pub type Pause<'a> = &'a dyn Fn(Duration, &Cancel) -> Result<(), ModelError>;

pub fn pause(time: Duration, cancel: &Cancel) -> Result<(), ModelError> {
    select! {
        recv(after(time)) -> _ => Ok(()),
        recv(cancel.channel()) -> _ => Err(cancelled()),
    }
}

/// Asks for a code.
pub fn begin(issuer: &Issuer, cancel: &Cancel) -> Result<Code, ModelError> {
    let body = json!({ "client_id": issuer.client_id() });
    let answer = issuer.post_json("/api/accounts/deviceauth/usercode", &body, &[], cancel)?;
    let what = "cannot begin to sign in";
    if answer.status == 404 {
        return Err(answer.failure(what).with_hint(
            "signing in with a code may be off for this account: turn on device code \
             authorization in ChatGPT's security settings, or use: etch auth login --browser",
        ));
    }
    if !answer.is_success() {
        return Err(answer.failure(what));
    }
    let user_code = answer.text("user_code").or_else(|| answer.text("usercode"));
    let (Some(id), Some(user_code)) = (answer.text("device_auth_id"), user_code) else {
        return Err(answer.failure(&format!("{what}: no code in the answer")));
    };
    let page = answer.text("verification_uri").filter(|url| url.starts_with("https://"));
    Ok(Code {
        url: page.map_or_else(|| issuer.url("/codex/device"), str::to_owned),
        user_code: user_code.to_owned(),
        id: id.to_owned(),
        interval_seconds: interval(&answer.value()["interval"]),
    })
}

/// Seconds as a number or as text.
fn interval(value: &Value) -> u64 {
    let seconds = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    seconds.map_or(INTERVAL_DEFAULT, |seconds| (seconds.ceil() as u64).clamp(1, INTERVAL_MAX))
}

/// Polls until the person has agreed, at most for [`CODE_LASTS`].
pub fn wait(
    issuer: &Issuer,
    code: &Code,
    host: &Host,
    pause: Pause<'_>,
    cancel: &Cancel,
) -> Result<Granted, ModelError> {
    let start = host.elapsed();
    let mut waited = Duration::ZERO;
    let mut interval = Duration::from_secs(code.interval_seconds);
    let mut misses = 0;
    // What the last poll says of the server, when that is what kept the code waiting.
    let mut trouble = None;
    loop {
        let body = json!({ "device_auth_id": code.id, "user_code": code.user_code });
        match issuer.post_json("/api/accounts/deviceauth/token", &body, &[], cancel) {
            Ok(answer) => {
                misses = 0;
                if let Some(granted) = granted(issuer, &answer)? {
                    return Ok(granted);
                }
                trouble = answer.is_trouble().then(|| answer.failure("no word of the code"));
                if answer.code() == "slow_down" {
                    interval += Duration::from_secs(SLOWER_BY);
                }
            }
            Err(error) if error.kind == ErrorKind::Cancelled => return Err(error),
            Err(error) => {
                misses += 1;
                if misses >= MISSES_MAX {
                    return Err(error);
                }
            }
        }
        let passed = waited.max(host.elapsed().saturating_sub(start));
        let left = CODE_LASTS.saturating_sub(passed);
        if left.is_zero() {
            if let Some(trouble) = trouble {
                return Err(trouble.with_hint("try again later: etch auth login"));
            }
            return Err(ModelError::new(ErrorKind::Auth, "nobody entered the code in 15 minutes")
                .with_hint("start anew: etch auth login"));
        }
        let time = interval.min(left);
        pause(time, cancel)?;
        waited += time;
    }
}

/// What a poll says; `None` while it has to be asked again.
fn granted(issuer: &Issuer, answer: &Answer) -> Result<Option<Granted>, ModelError> {
    if answer.is_success() {
        let (Some(code), Some(verifier)) =
            (answer.secret("authorization_code"), answer.secret("code_verifier"))
        else {
            return Err(answer.failure("the sign-in was accepted, but without a code"));
        };
        let redirect_uri = issuer.url("/deviceauth/callback");
        return Ok(Some(Granted { code, verifier, redirect_uri }));
    }
    let pending = matches!(answer.status, 403 | 404 | 429 | 500..)
        || ["slow_down", "authorization_pending", "deviceauth_authorization_pending"]
            .contains(&answer.code());
    // A refusal in the person's name comes with the status of a code that is still open.
    let denied = ["access_denied", "expired_token", "deviceauth_expired", "deviceauth_denied"]
        .contains(&answer.code());
    if pending && !denied { Ok(None) } else { Err(answer.failure("the sign-in was refused")) }
}

/// Trades the code for tokens.
pub fn exchange(issuer: &Issuer, granted: &Granted, cancel: &Cancel) -> Result<Fresh, ModelError> {
    let Granted { code, verifier, redirect_uri } = granted;
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", issuer.client_id()),
        ("code", code.reveal()),
        ("redirect_uri", redirect_uri),
        ("code_verifier", verifier.reveal()),
    ];
    let answer = issuer.post_form("/oauth/token", &fields, &[code, verifier], cancel)?;
    let what = "the sign-in was accepted, but its tokens were not given out";
    if !answer.is_success() {
        return Err(answer.failure(what));
    }
    let fresh = Fresh::of(&answer);
    match (&fresh.access, &fresh.refresh) {
        (Some(_), Some(_)) => Ok(fresh),
        _ => Err(answer.failure(&format!("{what} (a token is missing in the answer)"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::openai::auth::issuer::tests::Script;
    use std::cell::RefCell;

    const CODE: &str = r#"{"device_auth_id":"d1","user_code":"ABCD-1234","interval":"2"}"#;
    const GRANT: &str = r#"{"authorization_code":"a+/c","code_challenge":"x","code_verifier":"v"}"#;

    /// Begins and polls by a script; the granted code or the error, and every pause in seconds.
    fn flow(polls: &[(u16, &str)]) -> (Result<String, String>, Vec<u64>) {
        let mut replies = vec![(200, CODE)];
        replies.extend(polls);
        let (issuer, _) = Script::issuer(&replies);
        let cancel = Cancel::new();
        let code = begin(&issuer, &cancel).unwrap();
        let pauses = RefCell::new(Vec::new());
        let pause = |time: Duration, _: &Cancel| {
            pauses.borrow_mut().push(time.as_secs());
            Ok(())
        };
        let granted = wait(&issuer, &code, &Host::fixed(), &pause, &cancel);
        let granted = granted.map(|granted| granted.code.reveal().to_owned());
        (granted.map_err(|error| error.to_string()), pauses.into_inner())
    }

    #[test]
    fn intervals_come_as_text_as_a_number_or_not_at_all() {
        for (value, want) in [
            (json!("5"), 5),
            (json!(3), 3),
            (json!(1.2), 2),
            (json!("0"), 1),
            (json!(0), 1),
            (json!(null), 5),
            (json!("soon"), 5),
            (json!(-4), 5),
            (json!(1e9), 60),
        ] {
            assert_eq!(interval(&value), want, "{value}");
        }
    }

    #[test]
    fn a_code_is_shown_with_its_page() {
        let begin = |status, body: &str| {
            let (issuer, seen) = Script::issuer(&[(status, body)]);
            let code = begin(&issuer, &Cancel::new());
            let asked = seen.lock().unwrap()[0].clone();
            assert_eq!(asked.0, "https://issuer.test/api/accounts/deviceauth/usercode");
            assert_eq!(asked.1, r#"{"client_id":"app_1"}"#);
            code.map(|code| (code.url, code.user_code)).map_err(|error| error.to_string())
        };
        let own = ("https://issuer.test/codex/device".to_owned(), "ABCD-1234".to_owned());
        assert_eq!(begin(200, CODE), Ok(own.clone()));
        let other = r#"{"device_auth_id":"d","usercode":"ABCD-1234","verification_uri":"ftp://x"}"#;
        assert_eq!(begin(200, other), Ok(own));
        assert!(begin(404, "{}").unwrap_err().contains("etch auth login --browser"));
        assert!(begin(200, "{}").unwrap_err().contains("no code in the answer"));
        assert!(begin(500, "").unwrap_err().contains("HTTP 500 from https://issuer.test/api"));
    }

    #[test]
    fn polling_goes_on_while_it_is_pending_and_slows_down_when_told() {
        let slow = r#"{"error":{"code":"slow_down"}}"#;
        let pending = r#"{"error":"deviceauth_authorization_pending"}"#;
        let (got, pauses) = flow(&[
            (403, "{}"),
            (404, "no"),
            (400, slow),
            (0, "refused"),
            (400, pending),
            (503, ""),
            (200, GRANT),
        ]);
        assert_eq!(got.as_deref(), Ok("a+/c"));
        assert_eq!(pauses, [2, 2, 7, 7, 7, 7]);
        let (got, _) = flow(&[(0, "refused"); 5]);
        assert_eq!(got.unwrap_err(), "refused");
        let (got, _) = flow(&[(400, r#"{"error":"access_denied","error_description":"no"}"#)]);
        assert!(got.unwrap_err().starts_with("the sign-in was refused: HTTP 400 from"));
        let (got, _) = flow(&[(403, r#"{"error":"access_denied"}"#)]);
        assert!(got.is_err());
        let (got, _) = flow(&[(200, r#"{"authorization_code":"x"}"#)]);
        assert!(got.unwrap_err().starts_with("the sign-in was accepted, but without a code"));
    }

    #[test]
    fn after_a_quarter_of_an_hour_the_code_is_given_up() {
        let (got, pauses) = flow(&[(403, "{}"); 451]);
        assert_eq!(
            got.unwrap_err(),
            "nobody entered the code in 15 minutes; start anew: etch auth login"
        );
        assert_eq!(pauses.iter().sum::<u64>(), CODE_LASTS.as_secs());
        // It may not have been the person's doing.
        for (status, body) in [(503, "{}"), (403, "<html>blocked")] {
            let (got, _) = flow(&[(status, body); 451]);
            let error = got.unwrap_err();
            assert!(error.starts_with(&format!("no word of the code: HTTP {status}")), "{error}");
        }
    }

    #[test]
    fn the_code_is_traded_as_an_encoded_form() {
        let tokens = r#"{"id_token":"i","access_token":"a","refresh_token":"r"}"#;
        let (issuer, seen) = Script::issuer(&[
            (200, tokens),
            (200, r#"{"access_token":"a"}"#),
            (400, r#"{"error":{"message":"bad a+/code12"}}"#),
        ]);
        let granted = Granted {
            code: Secret::new("a+/code12"),
            verifier: Secret::new("v~verifier"),
            redirect_uri: issuer.url("/deviceauth/callback"),
        };
        let fresh = exchange(&issuer, &granted, &Cancel::new()).unwrap();
        assert_eq!(fresh.refresh, Some(Secret::new("r")));
        let (url, body) = seen.lock().unwrap()[0].clone();
        assert_eq!(url, "https://issuer.test/oauth/token");
        assert_eq!(
            body,
            "grant_type=authorization_code&client_id=app_1&code=a%2B%2Fcode12&redirect_uri=\
             https%3A%2F%2Fissuer.test%2Fdeviceauth%2Fcallback&code_verifier=v~verifier"
        );
        assert!(
            exchange(&issuer, &granted, &Cancel::new()).unwrap_err().message.contains("missing")
        );
        let error = exchange(&issuer, &granted, &Cancel::new()).unwrap_err();
        assert!(error.message.ends_with("bad [redacted]"), "{error}");
    }
}

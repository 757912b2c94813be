//! What a token says of itself: the middle part of a JWT, read leniently.
//!
//! Nothing is verified: the token came over TLS from the one who made it, and the server that gets
//! it verifies it. What is read here is shown to people and decides when to renew.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// The claims under this key are about the account. The name holds dots: it is one key.
const ACCOUNT_CLAIMS: &str = "https://api.openai.com/auth";
const PROFILE_CLAIMS: &str = "https://api.openai.com/profile";

/// What etch wants to know of a token; whatever it does not say is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// Unix seconds.
    pub expires_at: Option<u64>,
    pub email: Option<String>,
    pub account_id: Option<String>,
    /// `plus`, `pro`, …: any text.
    pub plan: Option<String>,
    pub fedramp: bool,
}

impl Claims {
    /// Reads a token; one that is no JWT says nothing.
    pub fn of(token: &str) -> Claims {
        let Some(claims) = payload(token) else { return Claims::default() };
        let account = &claims[ACCOUNT_CLAIMS];
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(plain);
        Claims {
            expires_at: seconds(&claims["exp"]),
            email: text(&claims["email"]).or_else(|| text(&claims[PROFILE_CLAIMS]["email"])),
            account_id: text(&account["chatgpt_account_id"]),
            plan: text(&account["chatgpt_plan_type"]),
            fedramp: account["chatgpt_account_is_fedramp"] == true,
        }
    }

    /// What is missing here and said by `other`. The expiry is each token's own.
    pub fn or(self, other: Claims) -> Claims {
        Claims {
            expires_at: self.expires_at,
            email: self.email.or(other.email),
            account_id: self.account_id.or(other.account_id),
            plan: self.plan.or(other.plan),
            fedramp: self.fedramp || other.fedramp,
        }
    }
}

fn payload(token: &str) -> Option<Value> {
    let mut parts = token.trim().split('.');
    let (_, middle) = (parts.next()?, parts.next()?);
    parts.next()?;
    let bytes = URL_SAFE_NO_PAD.decode(middle.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Whole seconds; some issuers write them as a fraction or as text.
fn seconds(value: &Value) -> Option<u64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    // Up to the year 9999: beyond that it is no time.
    (0.0..=253_402_300_799.0).contains(&number).then_some(number as u64)
}

/// As it can stand in a line and in a header.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn token(claims: &Value) -> String {
        let middle = URL_SAFE_NO_PAD.encode(claims.to_string());
        format!("eyJhbGciOiJSUzI1NiJ9.{middle}.c2ln")
    }

    #[test]
    fn claims_are_found_where_issuers_put_them() {
        let own = json!({
            "exp": 1_767_225_600, "email": "a@b.c",
            "https://api.openai.com/auth": {
                "chatgpt_account_id": "acc-1", "chatgpt_plan_type": "plus",
                "chatgpt_account_is_fedramp": true,
            },
        });
        let want = Claims {
            expires_at: Some(1_767_225_600),
            email: Some("a@b.c".into()),
            account_id: Some("acc-1".into()),
            plan: Some("plus".into()),
            fedramp: true,
        };
        assert_eq!(Claims::of(&token(&own)), want);
        let elsewhere = json!({"exp": "17.9", "https://api.openai.com/profile": {"email": "x@y"}});
        let got = Claims::of(&token(&elsewhere));
        assert_eq!((got.expires_at, got.email.as_deref()), (Some(17), Some("x@y")));
        // The id token first, the access token for what it does not say.
        let id = Claims::of(&token(&json!({"email": "id@x"})));
        let both = id.or(Claims::of(&token(&own)));
        assert_eq!(
            (both.email.as_deref(), both.account_id.as_deref()),
            (Some("id@x"), Some("acc-1"))
        );
        assert_eq!(both.expires_at, None);
    }

    #[test]
    fn what_is_no_token_says_nothing() {
        for text in ["", "abc", "a.b", "a.!!!.c", "a.e30.c", "a.bnVsbA.c", "a.WzFd.c", "..."] {
            assert_eq!(Claims::of(text), Claims::default(), "{text}");
        }
        for exp in [json!(-1), json!("x"), json!(1e300), json!(null), json!([])] {
            assert_eq!(Claims::of(&token(&json!({"exp": exp}))).expires_at, None);
        }
    }
}

//! Calls to the issuer: JSON or a form out, a bounded answer back, errors without any token.

use std::time::Duration;

use serde_json::Value;

use super::{checked_url, form};
use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{ErrorKind, ModelError};
use crate::provider::secret::Secret;
use crate::provider::wire_error;
use crate::text;
use crate::wire::http::{Http, Timeouts};
use crate::wire::{Body, Call, Header, Transport, WireError};

/// Tokens have some kilobytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// Of a server's own words, what an error repeats.
const SHOWN_CHARS_MAX: usize = 200;

const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(10),
    headers: Duration::from_secs(30),
    idle: Duration::from_secs(30),
};

/// The service that signs people in.
pub struct Issuer {
    base: String,
    client_id: String,
    transport: Box<dyn Transport>,
}

/// What came back, whatever its status.
pub struct Answer {
    pub status: u16,
    url: String,
    /// Without what was sent along as secret.
    body: String,
    value: Value,
}

impl Issuer {
    /// Opens nothing yet.
    pub fn new(host: &Host, base: &str, client_id: &str) -> Result<Issuer, ModelError> {
        Issuer::over(Box::new(Http::new(host, TIMEOUTS)), base, client_id)
    }

    /// The same over any transport.
    pub fn over(
        transport: Box<dyn Transport>,
        base: &str,
        client_id: &str,
    ) -> Result<Issuer, ModelError> {
        let base = checked_url("auth.issuer", base)?;
        Ok(Issuer { base, client_id: client_id.to_owned(), transport })
    }

    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// `secrets` are what the answer must not show again.
    pub fn post_json(
        &self,
        path: &str,
        body: &Value,
        secrets: &[&Secret],
        cancel: &Cancel,
    ) -> Result<Answer, ModelError> {
        self.post(path, "application/json", body.to_string(), secrets, cancel)
    }

    pub fn post_form(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        secrets: &[&Secret],
        cancel: &Cancel,
    ) -> Result<Answer, ModelError> {
        let body = form::encode(fields);
        self.post(path, "application/x-www-form-urlencoded", body, secrets, cancel)
    }

    fn post(
        &self,
        path: &str,
        content_type: &str,
        body: String,
        secrets: &[&Secret],
        cancel: &Cancel,
    ) -> Result<Answer, ModelError> {
        let url = self.url(path);
        let header = |name, value: &str| Header { name, value: value.to_owned() };
        let headers =
            vec![header("Content-Type", content_type), header("Accept", "application/json")];
        let call = Call { url: url.clone(), headers, body: Some(body.into_bytes()) };
        let wire = |error: WireError| wire_error(error, &url);
        let reply = self.transport.send(call, cancel).map_err(wire)?;
        let status = reply.status;
        let text = read_all(reply.body).map_err(wire)?;
        let value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let mut body = text;
        for secret in secrets {
            body = secret.redact(&body);
        }
        Ok(Answer { status, url, body, value })
    }
}

/// The whole body, up to a bound.
pub fn read_all(mut body: Box<dyn Body>) -> Result<String, WireError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.chunk()? {
        bytes.extend_from_slice(chunk);
        if bytes.len() > ANSWER_BYTES_MAX {
            bytes.truncate(ANSWER_BYTES_MAX);
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    body.finish();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it is a web page or a failure of the server: no word on what was asked.
    pub fn is_trouble(&self) -> bool {
        self.status >= 500 || self.body.trim_start().starts_with('<')
    }

    /// A text field of a JSON answer that is not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value[name].as_str().filter(|text| !text.is_empty())
    }

    pub fn secret(&self, name: &str) -> Option<Secret> {
        self.text(name).map(Secret::new)
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The server's name for what went wrong, in the three places where it stands; or empty.
    pub fn code(&self) -> &str {
        let value = &self.value;
        [&value["error"]["code"], &value["error"], &value["code"], &value["error"]["type"]]
            .into_iter()
            .find_map(|code| code.as_str().filter(|code| !code.is_empty()))
            .unwrap_or_default()
    }

    /// This answer as an error: status, where, and the server's own words.
    pub fn failure(&self, what: &str) -> ModelError {
        let kind = match self.status {
            429 => ErrorKind::RateLimit,
            500.. => ErrorKind::Server,
            200..300 => ErrorKind::Protocol,
            _ => ErrorKind::Auth,
        };
        let words = self.words();
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        let text = format!("{what}: HTTP {} from {}{words}", self.status, self.url);
        ModelError::new(kind, text).with_status(self.status)
    }

    fn words(&self) -> String {
        let redacted: Value = serde_json::from_str(&self.body).unwrap_or(Value::Null);
        let said = [
            &redacted["error"]["message"],
            &redacted["error_description"],
            &redacted["message"],
            &redacted["detail"],
            &redacted["error"],
        ];
        let said = said.into_iter().find_map(|text| text.as_str().filter(|text| !text.is_empty()));
        let is_page = self.body.trim_start().starts_with('<');
        let text = match said {
            Some(text) => text,
            None if self.is_success() || is_page => "",
            None => &self.body,
        };
        without_tokens(text)
    }
}

/// Some words of a text from outside, on one line and without anything that looks like a token.
pub fn without_tokens(text: &str) -> String {
    let is_token = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        word.len() > 20 && (word.contains("eyJ") || word.starts_with("rt_"))
    };
    let words =
        text.split_whitespace().map(|word| if is_token(word) { "[redacted]" } else { word });
    let line = words.collect::<Vec<_>>().join(" ");
    let line = text::visible(&line);
    match line.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::wire::{Recorded, Reply};
    use std::sync::{Arc, Mutex};

    type Seen = Arc<Mutex<Vec<(String, String)>>>;

    /// Answers calls from a script of status and body, and keeps what was asked.
    pub struct Script {
        replies: Mutex<Vec<(u16, String)>>,
        seen: Seen,
    }

    impl Script {
        pub fn issuer(replies: &[(u16, &str)]) -> (Issuer, Seen) {
            let seen = Seen::default();
            let replies = replies.iter().rev().map(|(s, b)| (*s, (*b).to_owned())).collect();
            let script = Script { replies: Mutex::new(replies), seen: Arc::clone(&seen) };
            (Issuer::over(Box::new(script), "https://issuer.test/", "app_1").unwrap(), seen)
        }
    }

    impl Transport for Script {
        fn name(&self) -> &'static str {
            "script"
        }

        fn send(&self, call: Call, cancel: &Cancel) -> Result<Reply, WireError> {
            let body = String::from_utf8(call.body.unwrap_or_default()).unwrap();
            self.seen.lock().unwrap().push((call.url.clone(), body));
            match self.replies.lock().unwrap().pop() {
                // No status: nobody answers.
                Some((0, text)) => Err(WireError::new(crate::wire::WireErrorKind::Refused, text)),
                Some((status, text)) => {
                    let played = Recorded::new(vec![text.into_bytes()]);
                    let call = Call { url: String::new(), headers: Vec::new(), body: None };
                    Ok(Reply { status, ..played.send(call, cancel)? })
                }
                None => panic!("no reply left for {}", call.url),
            }
        }
    }

    #[test]
    fn what_an_answer_says_is_found_and_never_shows_what_was_sent() {
        let secret = Secret::new("rt_SECRET_0123456789");
        let check = |status, body: &str, code: &str, text: &str| {
            let (issuer, _) = Script::issuer(&[(status, body)]);
            let cancel = Cancel::new();
            let answer = issuer.post_json("/x", &Value::Null, &[&secret], &cancel).unwrap();
            assert_eq!(answer.code(), code, "{body}");
            let want = format!("cannot renew: HTTP {status} from https://issuer.test/x{text}");
            assert_eq!(answer.failure("cannot renew").message, want);
        };
        check(
            401,
            r#"{"error":{"code":"a","message":"no rt_SECRET_0123456789"}}"#,
            "a",
            ": no [redacted]",
        );
        check(
            400,
            r#"{"error":"invalid_grant","error_description":"gone"}"#,
            "invalid_grant",
            ": gone",
        );
        check(400, r#"{"code":"c","detail":"d"}"#, "c", ": d");
        check(502, "<html>rt_SECRET_0123456789</html>", "", "");
        check(400, "plain\n\u{1b}words", "", ": plain ^[words");
        check(200, r#"{"access_token":"eyJabc"}"#, "", "");
        check(400, r#"{"message":"bad eyJhbGciOiJSUzI1NiJ9.abc.def!"}"#, "", ": bad [redacted]");
        let long = "x".repeat(300);
        check(500, &long, "", &format!(": {}…", &long[..200]));
    }
}

//! A call as people may see it: everything that would be sent, but no credential.

use crate::model::Preview;
use crate::wire::http::USER_AGENT;
use crate::wire::url::printable;
use crate::wire::{Call, Header};

/// Headers whose value says who calls.
const SECRET: &[&str] = &["authorization", "api-key", "x-api-key", "chatgpt-account-id", "cookie"];

/// The call as it would be sent. What the connection adds by itself (`Host`, the length) is
/// left out.
pub fn preview(call: Call) -> Preview {
    let body = call.body.unwrap_or_default();
    let mut headers = vec![("User-Agent".to_owned(), USER_AGENT.to_owned())];
    headers.extend(call.headers.iter().map(shown));
    Preview {
        method: "POST",
        url: without_values(&printable(&call.url)),
        headers,
        // Every adapter writes JSON.
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

/// A URL without the values of its query: some servers take their keys there. The version of the
/// interface is none.
fn without_values(url: &str) -> String {
    let Some((path, query)) = url.split_once('?') else { return url.to_owned() };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if name != "api-version" => format!("{name}=[redacted]"),
        _ => pair.to_owned(),
    });
    format!("{path}?{}", shown.collect::<Vec<_>>().join("&"))
}

/// Name and value of a header; of a credential only its scheme.
pub fn shown(header: &Header) -> (String, String) {
    let is_secret = SECRET.iter().any(|name| header.name.eq_ignore_ascii_case(name));
    let value = match header.value.split_once(' ') {
        _ if !is_secret => header.value.clone(),
        Some((scheme @ ("Bearer" | "Basic"), _)) => format!("{scheme} [redacted]"),
        _ => "[redacted]".to_owned(),
    };
    (header.name.to_owned(), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_redacted_and_the_rest_is_as_it_is_sent() {
        let header = |name, value: &str| Header { name, value: value.to_owned() };
        let call = Call {
            url: "https://joe:pw@h/v1/x?api-version=1&key=k3=&on".to_owned(),
            headers: vec![
                header("Accept", "a b"),
                header("authorization", "Bearer sk-1"),
                header("Authorization", "sk 2"),
                header("ChatGPT-Account-Id", "acc"),
            ],
            body: Some(b"{\"a\":\"\xc3\xa4\"}".to_vec()),
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let want = Preview {
            method: "POST",
            url: "https://[redacted]@h/v1/x?api-version=1&key=[redacted]&on".to_owned(),
            headers: vec![
                pair("User-Agent", USER_AGENT),
                pair("Accept", "a b"),
                pair("authorization", "Bearer [redacted]"),
                pair("Authorization", "[redacted]"),
                pair("ChatGPT-Account-Id", "[redacted]"),
            ],
            body: "{\"a\":\"ä\"}".to_owned(),
        };
        assert_eq!(preview(call), want);
    }
}

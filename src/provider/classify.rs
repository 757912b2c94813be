//! Turns what a server says when it fails into one [`ModelError`].
//!
//! Machine codes come before wordings, wordings before the HTTP status, because the same status
//! means different things at different vendors: an overflow of the context is 400, 413 or 500, a
//! used-up quota is 402, 403 or 429. Wordings are matched in the message and the raw body.

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use crate::host::Timestamp;
use crate::model::{ErrorKind, ModelError};
use crate::provider::{overflow, retry_after};
use crate::text;

/// Bytes of an error body that are looked at.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// Bytes of a server's message that are shown.
const MESSAGE_BYTES_MAX: usize = 600;

/// What a server said, taken apart.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ApiError {
    pub status: Option<u16>,
    pub code: String,
    /// `error.type`.
    pub class: String,
    /// The request field that was refused.
    pub param: String,
    pub message: String,
    pub raw: String,
}

impl ApiError {
    /// Takes the body of a failed call, or the data of an error event, apart.
    pub fn parse(status: Option<u16>, body: &str) -> ApiError {
        let raw = body.trim().trim_start_matches('\u{feff}').to_owned();
        let mut value: Value = serde_json::from_str(&raw).unwrap_or(Value::Null);
        if let Value::Array(list) = &mut value {
            value = list.first_mut().map(Value::take).unwrap_or_default();
        }
        let error = &value["error"];
        let holder = if error.is_object() { error } else { &value };
        let word = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let said = [&error["message"], error, &value["message"], &value["detail"]];
        let mut message = said
            .iter()
            .find_map(|value| value.as_str().filter(|text| !text.trim().is_empty()))
            .or_else(|| value["detail"][0]["msg"].as_str())
            .map_or_else(|| page_text(&raw), str::to_owned);
        if let Some(cause) = error["metadata"]["raw"].as_str().filter(|raw| !raw.is_empty()) {
            message = format!("{message}: {cause}");
        }
        let code = word(&holder["code"]);
        let inner = holder["status_code"].as_u64().or_else(|| code.parse().ok());
        let inner = inner.and_then(|status| u16::try_from(status).ok());
        ApiError {
            status: status.or(inner.filter(|status| (400..600).contains(status))),
            class: [&holder["type"], &holder["status"]].map(word).concat(),
            param: word(&holder["param"]),
            code,
            message: excerpt(&message, MESSAGE_BYTES_MAX),
            raw,
        }
    }

    pub fn has_code(&self, codes: &[&str]) -> bool {
        let is = |word: &str| codes.iter().any(|code| code.eq_ignore_ascii_case(word));
        is(&self.code) || is(&self.class)
    }

    /// The wording, message and raw body, is one of these.
    pub fn says(&self, pattern: &Pattern) -> bool {
        pattern.as_ref().is_some_and(|regex| {
            regex.is_match(&self.message) || regex.is_match(cut(&self.raw, BODY_BYTES_MAX))
        })
    }
}

/// The error of a call that was answered with another status than success.
pub fn http(api: &ApiError, headers: &[(String, String)], url: &str, now: Timestamp) -> ModelError {
    let status = api.status.unwrap_or(0);
    let (kind, retryable) = classify(api);
    let said = if api.message.is_empty() { "no message" } else { &api.message };
    let mut error = ModelError::new(kind, format!("HTTP {status} from {url}: {said}"));
    error.retryable = retryable;
    error.status = api.status;
    error.retry_after = retry_after::read(headers, &api.raw, now);
    error.window = window(api, kind);
    error.hint = hint(api, kind).to_owned();
    if kind == ErrorKind::Quota && status == 402 && error.retry_after.is_some_and(is_short) {
        // Money that is only bound for a moment by calls in flight.
        error.kind = ErrorKind::RateLimit;
        error.retryable = true;
    }
    let flag = headers.iter().find(|(name, _)| name == "x-should-retry");
    match flag.map(|(_, value)| value.as_str()) {
        Some("true") => error.retryable = true,
        Some("false") => error.retryable = false,
        _ => {}
    }
    error
}

/// The error that a stream or a 200 answer holds.
pub fn in_stream(data: &str, authority: &str) -> ModelError {
    let api = ApiError::parse(None, data);
    let (kind, retryable) = classify(&api);
    let said = if api.message.is_empty() { "no message" } else { &api.message };
    let mut error = ModelError::new(kind, format!("{authority} reported an error: {said}"));
    error.retryable = retryable;
    error.status = api.status;
    error.retry_after = retry_after::read(&[], &api.raw, Timestamp::default());
    error.window = window(&api, kind);
    error.hint = hint(&api, kind).to_owned();
    error
}

fn window(api: &ApiError, kind: ErrorKind) -> Option<u64> {
    (kind == ErrorKind::ContextOverflow).then(|| overflow::window(api)).flatten()
}

fn is_short(wait: Duration) -> bool {
    wait <= Duration::from_secs(120)
}

const FILTER_CODES: &[&str] = &[
    "content_filter",
    "content_policy_violation",
    "invalid_prompt",
    "cyber_policy",
    "bio_policy",
    "image_content_policy_violation",
    "SAFETY",
    "refusal",
];
const QUOTA_CODES: &[&str] = &[
    "insufficient_quota",
    "credit_balance_exhausted",
    "billing_error",
    "usage_limit_reached",
    "usage_not_included",
    "enforced_spend_limit_reached",
    "QUOTA_EXHAUSTED",
    "quota_exceeded",
    "ServiceQuotaExceededException",
    "FreeUsageLimitError",
    "GoUsageLimitError",
    "1113",
    "1308",
];
const RATE_CODES: &[&str] = &[
    "rate_limit_exceeded",
    "rate_limit_error",
    "RESOURCE_EXHAUSTED",
    "slow_down",
    "ThrottlingException",
    "1302",
];
const AUTH_CODES: &[&str] = &[
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "token_expired",
];
const OVERLOAD_CODES: &[&str] = &[
    "overloaded_error",
    "server_is_overloaded",
    "UNAVAILABLE",
    "engine_overloaded",
    "capacity_exceeded",
    "unavailable_error",
    "ServiceUnavailableException",
];
const SERVER_CODES: &[&str] = &[
    "server_error",
    "api_error",
    "internal_error",
    "internal_server_error",
    "timeout_error",
    "INTERNAL",
    "DEADLINE_EXCEEDED",
    "InternalServerError",
];
const REQUEST_CODES: &[&str] = &[
    "invalid_request_error",
    "unsupported_parameter",
    "unsupported_value",
    "invalid_value",
    "model_not_found",
    "previous_response_not_found",
    "data_residency_mismatch",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "BadRequestError",
];

/// A pattern is compiled on the first failure, never at start-up.
pub type Pattern = LazyLock<Option<Regex>>;

macro_rules! pattern {
    ($name:ident, $($part:expr),+ $(,)?) => {
        static $name: Pattern = LazyLock::new(|| {
            Regex::new(&format!("(?is){}", [$($part),+].join("|"))).ok()
        });
    };
}
pub(super) use pattern;

pattern!(TOO_LARGE_FOR_RATE, r"request too large for .*tokens per min");
pattern!(
    RATE_WORDS,
    r"^(?:throttling error|service unavailable):",
    r"rate limit",
    r"too many requests",
    r"tokens per (?:min|minute|hour|day)",
);
pattern!(
    QUOTA_WORDS,
    r"insufficient_quota",
    r"insufficient (?:account )?(?:balance|credits?|funds)",
    r"credit balance is too low",
    r"exceeded your current quota",
    r"quota exceeded",
    r"out of budget",
    r"available balance",
    r"check your plan and billing",
    r"billing_(?:error|hard_limit)",
    r"payment required",
    r"monthly usage limit reached",
    r"usage limit (?:has been )?reached",
    r"reached your .{0,20}usage limit",
    r"余额不足",
    r"payment is past due",
    r"GoUsageLimitError",
    r"FreeUsageLimitError",
);
pattern!(QUOTA_OF_A_DAY, r#""quotaId":\s*"[^"]*(?:PerDay|Daily)"#, r"tokens per day");
pattern!(SHORT_WAIT, r"try again in [0-9.]+ ?m?s", r#""retryDelay""#);
pattern!(AUTH_WORDS, r"api key not valid", r"(?:invalid|incorrect|missing) api.?key");
pattern!(FILTER_WORDS, r"content management policy", r"flagged by .*moderation");
pattern!(TEMPLATE_WORDS, r"jinja", r"roles must alternate", r"template");
pattern!(OVERLOAD_WORDS, r"overloaded", r"server busy", r"loading model", r"service.?unavailable");

/// What kind of failure it is, and whether the same request may succeed later.
fn classify(api: &ApiError) -> (ErrorKind, bool) {
    use ErrorKind as Kind;
    let status = api.status;
    let is = |wanted: &[u16]| status.is_some_and(|status| wanted.contains(&status));
    if api.says(&TOO_LARGE_FOR_RATE) {
        return (Kind::RateLimit, false); // the same request never fits
    }
    let is_rate = api.status == Some(429) || api.says(&RATE_WORDS);
    if overflow::is_overflow(api, is_rate) {
        return (Kind::ContextOverflow, false);
    }
    if !is_rate && overflow::is_too_many_bytes(api) {
        return (Kind::InvalidRequest, false); // a shorter conversation may not help
    }
    if api.has_code(FILTER_CODES) || api.says(&FILTER_WORDS) {
        return (Kind::ContentFilter, false);
    }
    if is_quota(api) {
        return (Kind::Quota, false);
    }
    if api.has_code(&["tool_use_failed"]) {
        return (Kind::Server, true); // the model wrote a call that the server cannot read
    }
    if api.has_code(RATE_CODES) || is(&[429]) {
        return (Kind::RateLimit, true);
    }
    if api.has_code(AUTH_CODES) || is(&[401, 403]) || api.says(&AUTH_WORDS) {
        return (Kind::Auth, false);
    }
    if status.is_none_or(|status| status >= 500) && api.says(&TEMPLATE_WORDS) {
        return (Kind::InvalidRequest, false); // the template never takes these messages
    }
    if api.has_code(OVERLOAD_CODES) || is(&[498, 503, 529]) {
        return (Kind::Overloaded, true);
    }
    if api.has_code(SERVER_CODES) || is(&[408, 409, 499]) || status.is_some_and(|s| s >= 500) {
        return (Kind::Server, true);
    }
    if api.has_code(&["websocket_connection_limit_reached"]) {
        return (Kind::Network, true); // the next attempt has a connection of its own
    }
    let about_image = ["invalid_image", "image_"].iter().any(|start| api.code.starts_with(start));
    if about_image || api.has_code(REQUEST_CODES) || status.is_some() {
        return (Kind::InvalidRequest, false);
    }
    if api.says(&RATE_WORDS) {
        return (Kind::RateLimit, true);
    }
    if api.says(&OVERLOAD_WORDS) {
        return (Kind::Overloaded, true);
    }
    (Kind::Server, true)
}

fn is_quota(api: &ApiError) -> bool {
    if api.has_code(QUOTA_CODES) || api.status == Some(402) || api.says(&QUOTA_OF_A_DAY) {
        return true;
    }
    // A short wait in the text: it is a rate, whatever page on billing it links to.
    api.says(&QUOTA_WORDS) && !api.says(&SHORT_WAIT)
}

/// What the person can do.
fn hint(api: &ApiError, kind: ErrorKind) -> &'static str {
    let names_model = api.has_code(&["model_not_found"]) || api.message.contains("model");
    match kind {
        ErrorKind::InvalidRequest if api.status == Some(404) && names_model => {
            "check the model's name and the base URL"
        }
        ErrorKind::InvalidRequest if matches!(api.status, Some(404 | 405)) => {
            "check the base URL: most servers want it to end in /v1"
        }
        ErrorKind::InvalidRequest if api.says(&TEMPLATE_WORDS) => {
            "the server's chat template does not take these messages; try another template or model"
        }
        ErrorKind::InvalidRequest if overflow::is_too_many_bytes(api) => {
            "this is about bytes or pixels, not tokens: attach a smaller image or file, or raise the server's limit"
        }
        ErrorKind::RateLimit if api.says(&TOO_LARGE_FOR_RATE) => {
            "the request alone is larger than this account's tokens per minute"
        }
        ErrorKind::Quota => "the account's quota or balance is used up",
        ErrorKind::ContextOverflow => "the conversation is too long for this model",
        _ => "",
    }
}

/// The visible text of what is no JSON: the title of a page, or the text itself.
pub fn page_text(raw: &str) -> String {
    let lower = raw.to_ascii_lowercase();
    if lower.starts_with("<!doctype html") || lower.starts_with("<html") {
        let title = lower.find("<title>").and_then(|start| {
            let end = lower[start..].find("</title>")?;
            Some(raw[start + "<title>".len()..start + end].to_owned())
        });
        return format!("a web page ({})", title.as_deref().unwrap_or("without a title").trim());
    }
    raw.to_owned()
}

/// One line, with control characters made visible, at most `bytes_max` bytes and an ellipsis.
pub fn excerpt(text: &str, bytes_max: usize) -> String {
    let near: String = text.chars().take(bytes_max * 2).collect();
    let line = near.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = &*text::visible(&line);
    if line.len() <= bytes_max { line.to_owned() } else { format!("{}…", cut(line, bytes_max)) }
}

/// The longest start of `text` of at most `bytes_max` bytes that ends between characters.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorKind as Kind;

    const URL: &str = "http://h/v1/chat/completions";

    fn of(status: u16, body: &str) -> ModelError {
        http(&ApiError::parse(Some(status), body), &[], URL, Timestamp::default())
    }

    #[track_caller]
    fn check(status: u16, body: &str, kind: Kind, retryable: bool) {
        let error = of(status, body);
        assert_eq!((error.kind, error.retryable), (kind, retryable), "{status} {body}");
    }

    #[test]
    fn control_characters_of_the_servers_words_are_seen() {
        for body in [
            "down\x1b[2J\x07 \u{9b}31m\tnow",
            r#"{"error":{"message":"down\u001b[2J\u0007 \u009b31m\tnow"}}"#,
        ] {
            let error = of(503, body);
            assert!(error.message.contains("down^[[2J^G \\u{9b}31m now"), "{}", error.message);
        }
        assert_eq!(excerpt("a\x1bbc", 3), "a^[…");
    }

    #[test]
    fn what_only_sounds_like_an_overflow_is_none() {
        let throttled = "Throttling error: Too many tokens, please wait before trying again.";
        check(429, throttled, Kind::RateLimit, true);
        assert_eq!(in_stream(throttled, "h").kind, Kind::RateLimit);
        let cerebras = "Tokens per minute limit exceeded - too many tokens processed.";
        check(429, cerebras, Kind::RateLimit, true);
        check(429, "Rate limit reached for requests", Kind::RateLimit, true);
        let limit =
            "max_tokens is too large: 200000. This model supports at most 128000 completion tokens";
        check(400, limit, Kind::InvalidRequest, false);
    }

    #[test]
    fn a_request_above_the_rate_itself_is_not_retried() {
        let text = "Request too large for gpt-4o in organization o on tokens per min (TPM): Limit 30000, Requested 50000";
        for status in [413, 429] {
            let body = serde_json::json!(
                {"error": {"message": text, "type": "tokens", "code": "rate_limit_exceeded"}});
            check(status, &body.to_string(), Kind::RateLimit, false);
        }
    }

    #[test]
    fn used_up_quotas_are_told_from_rates() {
        check(429, r#"{"error":{"type":"insufficient_quota"}}"#, Kind::Quota, false);
        check(402, r#"{"error":{"message":"Insufficient Balance"}}"#, Kind::Quota, false);
        check(403, "Your subscription payment is past due", Kind::Quota, false);
        let session = "you have reached your session usage limit, upgrade for more";
        check(429, session, Kind::Quota, false);
        check(429, r#"{"error":{"code":"1308","message":"x"}}"#, Kind::Quota, false);
        check(429, r#"{"error":{"code":"1113","message":"余额不足"}}"#, Kind::Quota, false);
        check(429, r#"{"error":{"code":"1302","message":"slow"}}"#, Kind::RateLimit, true);
        let groq = r#"{"error":{"message":"Rate limit reached. Please try again in 4.77s. Need more tokens? Upgrade at https://h/settings/billing","code":"rate_limit_exceeded"}}"#;
        check(429, groq, Kind::RateLimit, true);
        assert_eq!(of(429, groq).retry_after, Some(Duration::from_millis(4770)));
        let gemini = |id: &str| {
            format!(
                r#"[{{"error":{{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded","details":[{{"quotaId":"{id}"}},{{"retryDelay":"0.5s"}}]}}}}]"#
            )
        };
        check(429, &gemini("RequestsPerMinute"), Kind::RateLimit, true);
        let error = of(429, &gemini("RequestsPerMinute"));
        assert_eq!(error.retry_after, Some(Duration::from_millis(500)));
        check(429, &gemini("GenerateRequestsPerDayPerProject"), Kind::Quota, false);
        let headers = [("retry-after".to_owned(), "2".to_owned())];
        let bound = ApiError::parse(Some(402), "in flight");
        let error = http(&bound, &headers, URL, Timestamp::default());
        assert_eq!((error.kind, error.retryable), (Kind::RateLimit, true));
    }

    #[test]
    fn the_other_classes() {
        check(401, r#"{"error":{"code":"invalid_api_key"}}"#, Kind::Auth, false);
        check(403, "<html><title>Denied</title></html>", Kind::Auth, false);
        let gemini = r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#;
        check(400, gemini, Kind::Auth, false);
        check(503, r#"{"error":{"message":"Loading model"}}"#, Kind::Overloaded, true);
        check(529, r#"{"error":{"type":"overloaded_error"}}"#, Kind::Overloaded, true);
        check(502, "<html><title>502 Bad Gateway</title></html>", Kind::Server, true);
        check(500, "boom", Kind::Server, true);
        check(408, "", Kind::Server, true);
        check(500, "Jinja Exception: roles must alternate", Kind::InvalidRequest, false);
        check(404, r#"{"error":{"message":"no such route"}}"#, Kind::InvalidRequest, false);
        check(
            422,
            r#"{"detail":[{"loc":["body"],"msg":"bad","type":"x"}]}"#,
            Kind::InvalidRequest,
            false,
        );
        check(
            400,
            r#"{"error":{"code":"tool_use_failed","type":"invalid_request_error"}}"#,
            Kind::Server,
            true,
        );
        check(400, r#"{"error":{"code":"content_filter"}}"#, Kind::ContentFilter, false);
    }

    #[test]
    fn errors_in_streams_are_classified_by_what_they_hold() {
        let check = |data: &str, kind: Kind, retryable: bool, message: &str| {
            let error = in_stream(data, "h:1");
            assert_eq!((error.kind, error.retryable), (kind, retryable), "{data}");
            assert_eq!(error.message, format!("h:1 reported an error: {message}"));
        };
        check(r#"{"error":{"message":"boom"}}"#, Kind::Server, true, "boom");
        check(r#"{"error":"text"}"#, Kind::Server, true, "text");
        check(r#"{"object":"error","message":"m","code":400}"#, Kind::InvalidRequest, false, "m");
        check(r#"{"error":{"code":502,"message":"up"}}"#, Kind::Server, true, "up");
        check(r#"{"error":{"message":"x","status_code":429}}"#, Kind::RateLimit, true, "x");
        check(
            r#"{"code":"c","error":"The service is currently unavailable"}"#,
            Kind::Server,
            true,
            "The service is currently unavailable",
        );
        check(
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"too deep"}}}"#,
            Kind::Server,
            true,
            "Provider returned error: too deep",
        );
        check(
            r#"{"error":{"type":"invalid_request_error","message":"no"}}"#,
            Kind::InvalidRequest,
            false,
            "no",
        );
        check("overloaded, try later", Kind::Overloaded, true, "overloaded, try later");
        check("{}", Kind::Server, true, "{}");
    }

    #[test]
    fn the_servers_words_are_found_wherever_they_stand() {
        let message = |status: u16, body: &str| ApiError::parse(Some(status), body).message;
        assert_eq!(message(400, r#"{"error":{"message":"a"}}"#), "a");
        assert_eq!(message(400, r#"{"error":"b"}"#), "b");
        assert_eq!(message(400, r#"{"message":"c"}"#), "c");
        assert_eq!(message(400, r#"{"detail":"d"}"#), "d");
        assert_eq!(message(422, r#"{"detail":[{"loc":[],"msg":"e"}]}"#), "e");
        assert_eq!(message(400, r#"[{"error":{"message":"f"}}]"#), "f");
        let page = "<!DOCTYPE html><html><head><TITLE>Bad\nGateway</TITLE></head>";
        assert_eq!(message(502, page), "a web page (Bad Gateway)");
        assert_eq!(message(500, "plain\n\u{1b}[31mtext"), "plain ^[[31mtext");
        let long = "é".repeat(1000);
        assert_eq!(message(500, &long), format!("{}…", "é".repeat(300)));
    }

    #[test]
    fn a_wrong_path_names_the_url_and_the_likely_cause() {
        let error = of(404, "404 page not found");
        assert_eq!(
            error.to_string(),
            "HTTP 404 from http://h/v1/chat/completions: 404 page not found; check the base URL: \
             most servers want it to end in /v1"
        );
    }

    #[test]
    fn the_servers_own_word_on_retrying_wins() {
        let headers = [("x-should-retry".to_owned(), "false".to_owned())];
        let error = http(&ApiError::parse(Some(500), "x"), &headers, URL, Timestamp::default());
        assert_eq!((error.kind, error.retryable), (Kind::Server, false));
    }
}

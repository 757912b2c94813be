//! What servers say when a prompt has more tokens than they take: whether it is that, and how
//! many they do take.
//!
//! A request of too many bytes (an image, an attached file, a proxy's limit) is something else:
//! the conversation may be short, and then nothing is won by making it shorter.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::provider::classify::{ApiError, Pattern, pattern};

/// A number outside these is none of a model's sizes.
const WINDOW_MIN: u64 = 256;
const WINDOW_MAX: u64 = 1_000_000_000;

const CODES: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    "string_above_max_length",
];
/// Anthropic's and its gateways', of the body's bytes.
const BYTES_CODES: &[&str] = &["request_too_large"];

pattern!(
    OVERFLOW_WORDS,
    r"prompt is too long",
    r"input is too long for requested model",
    r"input length and .?max_tokens.? exceed context limit",
    r"exceeds the context window",
    r"context[_ ]length[_ ]exceeded",
    r"maximum context length is [\d,]+ tokens",
    r"this model.?s maximum context length is \d+",
    r"exceeds (?:the )?(?:model'?s )?maximum context length(?: of [\d,]+ tokens?|\s*\([\d,]+\))",
    r"maximum context length (?:is|of) (\d+) tokens.*?(?:resulted in|requested) ~?(\d+) tokens",
    r"requested \d+ output tokens",
    r"prompt contains.*\d+ input tokens",
    r"for a total of.*\d+ tokens",
    r"context length is only \d+ tokens",
    r"input length.*exceeds.*context length",
    r"exceeds (?:the )?maximum allowed input length of [\d,]+ tokens?",
    r"input \(\d+ tokens\) is longer than the model'?s context length \(\d+ tokens\)",
    r"input token count.*exceeds the maximum",
    r"maximum prompt length is \d+",
    r"reduce the length of the messages",
    r"exceeds the limit of \d+",
    r"exceeds the available context size",
    r"greater than the context length",
    r"context window exceeds limit",
    r"exceeded model token limit",
    r"too large for model with \d+ maximum context length",
    r"model_context_window_exceeded",
    r"prompt too long; exceeded (?:max )?context length",
    r"prompt is longer than the context length currently available",
    r"the input length exceeds the context length",
    r"input after truncation exceeds maximum context length",
    r"input length \(\d+ tokens\) exceeds the model's maximum context length",
    r"range of input length should be \[\d+,\s*\d+\]",
    r"input too long:\s*\d+\s*input tokens,\s*limit is\s*\d+",
    r"input tokens \[\d+\] exceed context window \[\d+\]",
    r"too many tokens",
    r"token limit exceeded",
    r"longer than the maximum model length of \d+",
    r"context length of only \d+ tokens",
    r"inputs.? tokens \+ .?max_new_tokens.? must be <=",
    r"^4(?:00|13)\s*(?:status code)?\s*\(no body\)",
);
pattern!(
    BYTES_WORDS,
    r"\b(?:image|file|attachment)s?\b.{0,60}(?:exceeds?|too large|too big|larger than)",
    r"(?:body|entity|payload|content)(?: size)? (?:is )?too large",
    r"(?:body|entity|payload|request)(?: size)? exceeds the (?:maximum size|limit|maximum allowed)",
    r"(?:body|payload) (?:size )?limit",
    r"length limit exceeded",
    r"maximum (?:allowed )?number of bytes",
    r"\d ?(?:bytes|[kmg]i?b)\b.{0,40}(?:exceeds|>|larger than|maximum)",
    r"(?:exceeds|>|larger than|limit of|limit is|maximum(?: size)? of).{0,20}\d ?(?:bytes|[kmg]i?b)\b",
);
pattern!(TOKEN_WORDS, r"tokens?\b", r"context (?:length|window|size)", r"prompt");

// What the server takes stands behind one of these.
pattern!(
    WINDOW_WORDS,
    concat!(
        r"(?:",
        r"maximum context length(?: is| of)?",
        r"|maximum (?:prompt|model) length(?: is| of)",
        r"|maximum allowed input length of",
        r"|maximum number of tokens allowed(?: is| of)?",
        r"|prompt is too long: [\d,]+ tokens >",
        r"|exceed context limit: [\d,]+ \+ [\d,]+ >",
        r"|available context size",
        r"|model'?s? context length(?: is| of)?",
        r"|exceeds the context length",
        r"|context length (?:of|is) only",
        r"|n_ctx:",
        r"|exceeds the limit of",
        r"|exceeded model token limit:",
        r"|too large for model with",
        r"|range of input length should be \[\d+,",
        r"|input tokens, limit is",
        r"|exceed context window",
        r"|.max_new_tokens.? must be <=",
        r")[\s(\[~]*(\d[\d,_]*)",
    ),
);

/// Whether a failure means that the prompt has too many tokens. `is_rate`: it is about a rate,
/// as far as its words and its status go.
pub fn is_overflow(api: &ApiError, is_rate: bool) -> bool {
    if api.has_code(CODES) {
        return true;
    }
    if is_rate || is_too_many_bytes(api) {
        return false;
    }
    let no_body = api.raw.is_empty() && matches!(api.status, Some(400 | 413));
    api.status == Some(413) || no_body || api.says(&OVERFLOW_WORDS)
}

/// Whether a failure is about bytes: of the request, or of something in it.
pub fn is_too_many_bytes(api: &ApiError) -> bool {
    let of_tokens = TOKEN_WORDS.as_ref().is_some_and(|regex| regex.is_match(&api.message));
    !of_tokens && (api.has_code(BYTES_CODES) || api.says(&BYTES_WORDS))
}

/// How many tokens the server takes, where its refusal of a prompt says so.
pub fn window(api: &ApiError) -> Option<u64> {
    let sane = |size: &u64| (WINDOW_MIN..=WINDOW_MAX).contains(size);
    let in_text = |text: &str| {
        let found = WINDOW_WORDS.as_ref()?.captures(text)?;
        let digits: String = found[1].chars().filter(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    in_text(&api.message).filter(sane).or_else(|| field(&api.raw).filter(sane))
}

/// The number that llama.cpp gives beside its words.
fn field(raw: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(raw).ok()?;
    value["error"]["n_ctx"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Timestamp;
    use crate::model::{ErrorKind, ModelError};
    use crate::provider::classify::{http, in_stream};

    const URL: &str = "http://h/v1/chat/completions";

    fn of(status: u16, body: &str) -> ModelError {
        http(&ApiError::parse(Some(status), body), &[], URL, Timestamp::default())
    }

    /// Messages after the vendors' forms, behind what they say is taken.
    const OVERFLOWS: &[(u64, &str)] = &[
        (200_000, "prompt is too long: 213462 tokens > 200000 maximum"),
        (
            200_000,
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length",
        ),
        (
            0,
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
        (
            128_000,
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
        ),
        (
            8_192,
            "This model's maximum context length is 8,192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion).",
        ),
        (
            131_072,
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (139000 of text input, 1000 in the output).",
        ),
        (
            1_048_575,
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        ),
        (
            131_072,
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        ),
        (0, "Please reduce the length of the messages or completion."),
        (
            8_192,
            "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
        ),
        (0, "the request exceeds the available context size. try increasing the context size"),
        (
            4_096,
            "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length.",
        ),
        (
            0,
            "The number of tokens to keep from the initial prompt is greater than the context length",
        ),
        (
            32_768,
            "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough.",
        ),
        (128_000, "prompt token count of 150000 exceeds the limit of 128000"),
        (0, "invalid params, context window exceeds limit (2013)"),
        (262_144, "Your request exceeded model token limit: 262144 (requested: 300000)"),
        (
            131_072,
            "Prompt contains 200000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
        ),
        (
            65_536,
            "The input (70000 tokens) is longer than the model's context length (65536 tokens).",
        ),
        (
            245_760,
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 245760]",
        ),
        (0, "Input is too long for requested model."),
        (0, "400 (no body)"),
        (0, "context_length_exceeded"),
        (4_096, "exceeds the model's maximum context length of 4,096 tokens"),
        (
            16_384,
            "The decoder prompt (length 21535) is longer than the maximum model length of 16384.",
        ),
        (0, "You passed 9 input tokens and requested 4096 output tokens"),
        (0, "Prompt contains at least 8193 input tokens"),
        (0, "for a total of 9000 tokens"),
        (4_096, "context length is only 4096 tokens"),
        (4_097, "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens"),
        (0, "the input length exceeds the context length"),
        (8_000, "the input length (9000) exceeds the context length (8000)"),
        (8_192, "exceeds the maximum allowed input length of 8192 tokens"),
        (0, "prompt too long; exceeded max context length by 4000 tokens"),
        (0, "prompt is longer than the context length currently available"),
        (0, "input after truncation exceeds maximum context length"),
        (
            8_192,
            "Input length (9000 tokens) exceeds the model's maximum context length (8192 tokens)",
        ),
        (8_192, "Input too long: 9000 input tokens, limit is 8192"),
        (8_192, "input tokens [9000] exceed context window [8192]"),
        (0, "token limit exceeded"),
        (0, "This model's maximum context length is 7 tokens."),
    ];

    #[test]
    fn every_wording_of_an_overflow_is_one_and_the_size_in_it_is_read() {
        for (window, message) in OVERFLOWS {
            let window = Some(*window).filter(|window| *window != 0);
            let body = serde_json::json!({"error": {"message": message, "code": null}}).to_string();
            for error in [of(400, &body), of(500, message), in_stream(&body, "h")] {
                assert_eq!(error.kind, ErrorKind::ContextOverflow, "{message}");
                assert!(!error.retryable, "{message}");
                assert_eq!(error.window, window, "{message}");
            }
        }
    }

    #[test]
    fn a_code_or_a_status_is_enough() {
        let llama = r#"{"error":{"code":400,"message":"x","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}"#;
        for (status, body, window) in [
            (413, "", None),
            (413, "too big", None),
            (400, "", None),
            (400, llama, Some(8192)),
            (429, r#"{"error":{"code":"context_length_exceeded"}}"#, None),
        ] {
            let error = of(status, body);
            assert_eq!((error.kind, error.window), (ErrorKind::ContextOverflow, window), "{body}");
        }
    }

    #[test]
    fn too_many_bytes_are_no_overflow() {
        for (status, message) in [
            (413, "request body too large"),
            (413, "http: request body too large"),
            (413, "Request Entity Too Large"),
            (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
            (413, "Payload Too Large"),
            (413, "Content Too Large"),
            (413, "Failed to buffer the request body: length limit exceeded"),
            (413, "Request exceeds the maximum size"),
            (413, "Request payload size exceeds the limit: 20971520 bytes."),
            (413, "Request exceeds the maximum allowed number of bytes."),
            (500, "PayloadTooLargeError: request entity too large"),
            (400, "image exceeds 5 MB"),
            (
                400,
                "messages.2.content.0.image.source.base64: image exceeds 5 MB maximum: 8259148 bytes > 5242880 bytes",
            ),
            (400, "At least one of the image dimensions exceed max allowed size: 8000 pixels"),
            (400, "The attached file is too large: at most 20MB"),
            (422, "upload of 12.5 MB exceeds what is allowed"),
        ] {
            let body = serde_json::json!({"error": {"message": message, "code": null}}).to_string();
            for body in [body.as_str(), message] {
                let error = of(status, body);
                assert_eq!(error.kind, ErrorKind::InvalidRequest, "{message}");
                assert!(!error.retryable && error.window.is_none(), "{message}");
                assert!(error.hint.starts_with("this is about bytes or pixels"), "{message}");
            }
        }
        let anthropic = r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#;
        assert_eq!(of(413, anthropic).kind, ErrorKind::InvalidRequest);
        // The same code with words about tokens is about tokens.
        let tokens = r#"{"error":{"type":"request_too_large","message":"prompt is too long: 300000 tokens > 200000 maximum"}}"#;
        let error = of(413, tokens);
        assert_eq!((error.kind, error.window), (ErrorKind::ContextOverflow, Some(200_000)));
        // A rate stays a rate.
        assert_eq!(of(429, "request body too large").kind, ErrorKind::RateLimit);
    }
}

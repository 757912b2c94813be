//! The list of models that a server offers.

use serde_json::Value;

use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{ErrorKind, ModelError};
use crate::provider::classify::{self, ApiError};
use crate::provider::openai::endpoint::Endpoint;
use crate::provider::{ApiKey, wire_error};
use crate::wire::{Body, Call, Header, Transport, WireError};

/// Bytes of a list that are read; the longest lists known have some 2 MB.
const LIST_BYTES_MAX: usize = 8 << 20;

/// Asks `GET {base}/models` for the ids, in the server's order.
pub fn list(
    transport: &dyn Transport,
    endpoint: &Endpoint,
    key: Option<&ApiKey>,
    host: &Host,
    cancel: &Cancel,
) -> Result<Vec<String>, ModelError> {
    let url = endpoint.url("models");
    let mut headers = vec![Header { name: "Accept", value: "application/json".into() }];
    if let Some(key) = key {
        let value = format!("Bearer {}", key.secret.reveal());
        headers.push(Header { name: "Authorization", value });
    }
    let redacted = |mut error: ModelError| {
        if let Some(key) = key {
            error.message = key.secret.redact(&error.message);
        }
        error
    };
    let call = Call { url: url.clone(), headers, body: None };
    let mut reply = transport.send(call, cancel).map_err(|error| wire_error(error, &url))?;
    let bytes = whole(&mut *reply.body).map_err(|error| wire_error(error, &url))?;
    let Some(bytes) = bytes else {
        let text = format!("the list of models from {url} is too long");
        return Err(ModelError::new(ErrorKind::Protocol, text));
    };
    let text = String::from_utf8_lossy(&bytes);
    if !(200..300).contains(&reply.status) {
        let api = ApiError::parse(Some(reply.status), &text);
        return Err(redacted(classify::http(&api, &reply.headers, &url, host.now())));
    }
    read(&text).ok_or_else(|| {
        let shown = classify::excerpt(&text, 200);
        let text = format!("{url} did not answer with a list of models: {shown}");
        redacted(ModelError::new(ErrorKind::Protocol, text))
    })
}

/// A body to its end; `None` when it is longer than any list of models.
pub fn whole(body: &mut dyn Body) -> Result<Option<Vec<u8>>, WireError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.chunk()? {
        bytes.extend_from_slice(chunk);
        if bytes.len() > LIST_BYTES_MAX {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}

fn read(text: &str) -> Option<Vec<String>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let list = [&value["data"], &value["models"], &value].into_iter().find_map(Value::as_array)?;
    let id = |model: &Value| {
        let names = [&model["id"], &model["model"], &model["name"]];
        names.into_iter().find_map(Value::as_str).map(str::to_owned)
    };
    Some(list.iter().filter_map(id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_in_every_form() {
        let want = Some(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(read(r#"{"object":"list","data":[{"id":"a"},{"id":"b"}]}"#), want);
        assert_eq!(read(r#"{"models":[{"name":"a"},{"model":"b"}]}"#), want);
        assert_eq!(read(r#"[{"id":"a"},{"id":"b"},{}]"#), want);
        assert_eq!(read(r#"{"data":[]}"#), Some(Vec::new()));
        assert_eq!(read("<html>"), None);
        assert_eq!(read(r#"{"status":"ok"}"#), None);
    }
}

//! Asks the server how much of the plan is used.

use serde_json::Value;

use super::issuer::read_all;
use super::limits::Limits;
use crate::cancel::Cancel;
use crate::model::{ErrorKind, ModelError};
use crate::provider::openai::access::Bearer;
use crate::provider::openai::exchange::{header, identity};
use crate::provider::wire_error;
use crate::wire::{Call, Transport};

/// Where the usage page is for a Codex base URL.
pub fn url(codex_base_url: &str) -> String {
    let base = codex_base_url.trim_end_matches('/');
    let base = base.strip_suffix("/codex").unwrap_or(base);
    format!("{base}/wham/usage")
}

/// `None` when the server says nothing that is understood.
pub fn ask(
    transport: &dyn Transport,
    codex_base_url: &str,
    bearer: &Bearer,
    cancel: &Cancel,
) -> Result<Option<Limits>, ModelError> {
    let url = url(codex_base_url);
    let mut headers = identity(bearer);
    headers.push(header("originator", "etch"));
    headers.push(header("Accept", "application/json"));
    let call = Call { url: url.clone(), headers, body: None };
    let reply = transport.send(call, cancel).map_err(|error| wire_error(error, &url))?;
    let status = reply.status;
    let text = read_all(reply.body).map_err(|error| wire_error(error, &url))?;
    if !(200..300).contains(&status) {
        let kind = if status == 401 { ErrorKind::Auth } else { ErrorKind::Server };
        let error = ModelError::new(kind, format!("HTTP {status} from {url}"));
        return Err(error.with_status(status));
    }
    let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    Ok(Limits::from_json(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_beside_the_codex_address() {
        for (base, want) in [
            ("https://chatgpt.com/backend-api/codex", "https://chatgpt.com/backend-api/wham/usage"),
            ("http://127.0.0.1:9/codex/", "http://127.0.0.1:9/wham/usage"),
            ("https://h/x", "https://h/x/wham/usage"),
        ] {
            assert_eq!(url(base), want);
        }
    }
}

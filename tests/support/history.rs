//! What a strict Chat Completions server refuses: the vendor's schema and the rules on history.

use std::sync::LazyLock;

use serde_json::Value;

use crate::support::schema;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../fixtures/schemas/openai-chat-request.schema.json"))
        .expect("the schema is JSON")
});

/// Refuses a body that a strict server would refuse.
pub fn check_chat_body(body: &[u8]) -> Result<(), String> {
    let body: Value = serde_json::from_slice(body).map_err(|e| format!("body is no JSON: {e}"))?;
    schema::check(&SCHEMA, &body)?;
    if body.get("tools").is_some_and(|tools| tools.as_array().is_none_or(Vec::is_empty)) {
        return Err("'tools' is empty".into());
    }
    if body.get("max_tokens").is_some() && body.get("max_completion_tokens").is_some() {
        return Err("both token limits".into());
    }
    check_history(&body["messages"])
}

/// Refuses orphan tool results, calls without results, empty messages, broken arguments.
pub fn check_history(messages: &Value) -> Result<(), String> {
    let messages = messages.as_array().ok_or("'messages' is no list")?;
    if messages.is_empty() {
        return Err("'messages' is empty".into());
    }
    let mut waiting: Vec<String> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let mut system_allowed = true;
    for (idx, message) in messages.iter().enumerate() {
        let say = |what: &str| format!("messages[{idx}]: {what}: {message}");
        let fail = |what: &str| Err(say(what));
        let role = message["role"].as_str().unwrap_or_default();
        let text = message["content"].as_str();
        if role != "system" {
            system_allowed = false;
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = waiting.iter().position(|known| known == id) else {
                return fail("a tool result without a preceding call");
            };
            if at != 0 {
                return fail("tool results out of call order");
            }
            waiting.remove(0);
            if text.is_none_or(|text| text.trim().is_empty()) {
                return fail("an empty tool result");
            }
            continue;
        }
        if !waiting.is_empty() {
            return fail(&format!("calls without results before it: {waiting:?}"));
        }
        let calls = message.get("tool_calls").map(|calls| calls.as_array());
        match role {
            "system" if !system_allowed => return fail("a late system message"),
            "assistant" => {
                let calls = match calls {
                    Some(Some(calls)) if calls.is_empty() => return fail("'tool_calls' is empty"),
                    Some(Some(calls)) => calls.as_slice(),
                    Some(None) => return fail("'tool_calls' is no list"),
                    None => &[],
                };
                if calls.is_empty() && text.is_none_or(|text| text.trim().is_empty()) {
                    return fail("an assistant message with neither text nor calls");
                }
                if text.is_some_and(|text| text.trim().is_empty()) {
                    return fail("blank assistant content");
                }
                for call in calls {
                    let id = check_call(call).map_err(|what| say(&what))?;
                    if known.contains(&id) {
                        return fail("a call id used twice");
                    }
                    known.push(id.clone());
                    waiting.push(id);
                }
            }
            "user" | "system" => {
                let blank = match &message["content"] {
                    Value::String(text) => text.trim().is_empty(),
                    Value::Array(parts) => parts.is_empty(),
                    _ => true,
                };
                if blank {
                    return fail("empty content");
                }
            }
            _ => return fail("an unknown role"),
        }
    }
    if waiting.is_empty() { Ok(()) } else { Err(format!("calls without results: {waiting:?}")) }
}

fn check_call(call: &Value) -> Result<String, String> {
    let id = call["id"].as_str().unwrap_or_default();
    if id.is_empty() || id.chars().count() > 40 {
        return Err("a call id of 1 to 40 characters is needed".into());
    }
    if call["type"] != "function" || call["function"]["name"].as_str().is_none_or(str::is_empty) {
        return Err("a call without type or name".into());
    }
    let Some(arguments) = call["function"]["arguments"].as_str() else {
        return Err("call arguments that are no string".into());
    };
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Object(_)) => Ok(id.to_owned()),
        _ => Err(format!("call arguments that are no JSON object: {arguments}")),
    }
}

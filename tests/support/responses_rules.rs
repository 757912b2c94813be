//! What a strict Responses server refuses: the vendor's schema, the rules on history, and those
//! of the backend of ChatGPT plans.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::support::schema;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../../fixtures/schemas/openai-responses-request.schema.json");
    serde_json::from_str(text).expect("the schema is JSON")
});

/// The path of the backend of plans; its rules hold below it.
const PLAN_PATH: &str = "/backend-api/codex/";
/// Fields that the backend of plans takes. Of any other it says that it is unsupported.
const PLAN_FIELDS: &[&str] = &[
    "model",
    "store",
    "stream",
    "instructions",
    "input",
    "text",
    "include",
    "prompt_cache_key",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "tools",
    "service_tier",
    "previous_response_id",
];
const ID_CHARS_MAX: usize = 64;

/// How a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    Http,
    WebSocket,
}

/// As [`check_responses`], for bytes as they came.
pub fn check_responses_bytes(body: &[u8], path: &str, via: Via) -> Result<(), String> {
    let body: Value = serde_json::from_slice(body).map_err(|e| format!("body is no JSON: {e}"))?;
    check_responses(&body, path, via)
}

/// Refuses a request that a strict server would refuse.
pub fn check_responses(body: &Value, path: &str, via: Via) -> Result<(), String> {
    let mut plain = body.clone();
    let fields = plain.as_object_mut().ok_or("the request is no object")?;
    if via == Via::WebSocket {
        if fields.remove("type") != Some(json!("response.create")) {
            return Err("the message's type is not 'response.create'".into());
        }
        for name in ["stream", "background"] {
            if fields.contains_key(name) {
                return Err(format!("'{name}' in a message"));
            }
        }
        // Prepares a connection; the schema knows bodies of calls only.
        fields.remove("generate");
        fields.insert("stream".into(), true.into());
    }
    let continues = fields.contains_key("previous_response_id");
    if continues && via == Via::Http {
        return Err("'previous_response_id' of a response that nobody stored".into());
    }
    if fields.get("store") != Some(&Value::Bool(false)) {
        return Err("'store' is not false".into());
    }
    if path.contains(PLAN_PATH) {
        check_plan(fields)?;
    }
    let key = body["prompt_cache_key"].as_str();
    if key.is_some_and(|key| key.is_empty() || key.chars().count() > ID_CHARS_MAX) {
        return Err("'prompt_cache_key' is not 1 to 64 characters".into());
    }
    for item in plain["input"].as_array_mut().into_iter().flatten() {
        // The vendor takes its model's messages without these, whatever the schema says.
        if item["type"] == "message" && item["role"] == "assistant" && item["id"].is_null() {
            item["id"] = "msg_1".into();
            item["status"] = "completed".into();
        }
    }
    schema::check(&SCHEMA, &plain)?;
    check_input(&body["input"], continues)
}

fn check_plan(fields: &serde_json::Map<String, Value>) -> Result<(), String> {
    let detail = |text: &str| Err(json!({"detail": text}).to_string());
    if let Some(name) = fields.keys().find(|name| !PLAN_FIELDS.contains(&name.as_str())) {
        return detail(&format!("Unsupported parameter: {name}"));
    }
    if fields.get("stream") != Some(&Value::Bool(true)) {
        return detail("Stream must be set to true");
    }
    let instructions = fields.get("instructions").and_then(Value::as_str).unwrap_or_default();
    if instructions.trim().is_empty() {
        return detail("Instructions are required");
    }
    let Some(Value::Array(input)) = fields.get("input") else {
        return detail("Input must be a list");
    };
    if input.iter().any(|item| item["role"] == "system") {
        return detail("System messages are not allowed");
    }
    let include = fields.get("include").and_then(Value::as_array);
    if !include.is_some_and(|all| all.contains(&json!("reasoning.encrypted_content"))) {
        return Err("reasoning is lost: 'include' does not ask for it".into());
    }
    Ok(())
}

/// Refuses outputs and calls without each other, reasoning that leads nowhere or cannot be read
/// back, and empty texts. An input that `continues` a response may answer the calls of it.
fn check_input(input: &Value, continues: bool) -> Result<(), String> {
    let items = input.as_array().ok_or("'input' is no list")?;
    if items.is_empty() {
        return Err("'input' is empty".into());
    }
    let mut history = History { continues, ..History::default() };
    for (idx, item) in items.iter().enumerate() {
        let say = |what: String| format!("input[{idx}]: {what}: {item}");
        if history.leads && !leads_on(item) {
            return Err(say("reasoning without its required following item before it".into()));
        }
        history.take(item).map_err(say)?;
    }
    if history.leads {
        return Err("reasoning without its required following item at the end".into());
    }
    match history.waiting.first() {
        Some(id) => Err(format!("No tool output found for function call {id}.")),
        None => Ok(()),
    }
}

/// What may follow reasoning: what it led to, or more of it.
fn leads_on(item: &Value) -> bool {
    let said = item["type"] == "message" && item["role"] == "assistant";
    said || item["type"] == "function_call" || item["type"] == "reasoning"
}

#[derive(Default)]
struct History {
    continues: bool,
    /// Calls that have no output yet.
    waiting: Vec<String>,
    called: HashSet<String>,
    answered: HashSet<String>,
    /// The last item is reasoning.
    leads: bool,
}

impl History {
    fn take(&mut self, item: &Value) -> Result<(), String> {
        self.leads = item["type"] == "reasoning";
        match item["type"].as_str().unwrap_or_default() {
            "message" => check_message(item),
            "reasoning" => check_reasoning(item),
            "function_call" => {
                let id = call_id(item)?;
                check_call(item)?;
                if !self.called.insert(id.clone()) {
                    return Err("a call id used twice".into());
                }
                self.waiting.push(id);
                Ok(())
            }
            "function_call_output" => {
                let id = call_id(item)?;
                if !self.answered.insert(id.clone()) {
                    return Err("a second output for one call".into());
                }
                match self.waiting.iter().position(|known| *known == id) {
                    Some(at) => drop(self.waiting.remove(at)),
                    None if self.continues => {}
                    None => {
                        return Err(format!(
                            "No tool call found for function call output with call_id {id}."
                        ));
                    }
                }
                check_parts(&item["output"], &["input_text", "input_image", "input_file"])
            }
            other => Err(format!("an item of the type '{other}'")),
        }
    }
}

fn call_id(item: &Value) -> Result<String, String> {
    let id = item["call_id"].as_str().unwrap_or_default();
    if is_name(id) {
        return Ok(id.to_owned());
    }
    Err("a call id that is not 1 to 64 of A-Z, a-z, 0-9, '_' and '-'".into())
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=ID_CHARS_MAX).contains(&text.len()) && text.bytes().all(plain)
}

fn check_call(item: &Value) -> Result<(), String> {
    let name = item["name"].as_str().unwrap_or_default();
    if !is_name(name) {
        return Err(format!("a name that no tool can have: '{name}'"));
    }
    // Servers that make a template of it read it.
    let arguments = item["arguments"].as_str().unwrap_or_default();
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Object(_)) => Ok(()),
        _ => Err("call arguments that are no JSON object".into()),
    }
}

fn check_reasoning(item: &Value) -> Result<(), String> {
    if !item["summary"].is_array() {
        return Err("reasoning without 'summary'".into());
    }
    if item["encrypted_content"].as_str().is_none_or(str::is_empty) {
        return Err("Items are not persisted when `store` is set to false".into());
    }
    Ok(())
}

fn check_message(item: &Value) -> Result<(), String> {
    if item["role"] == "assistant" {
        if !item["content"].is_array() {
            return Err("an assistant message without parts".into());
        }
        return check_parts(&item["content"], &["output_text", "refusal"]);
    }
    check_parts(&item["content"], &["input_text", "input_image", "input_file"])
}

/// Refuses what is empty or of another kind.
fn check_parts(content: &Value, kinds: &[&str]) -> Result<(), String> {
    if let Some(text) = content.as_str() {
        return if text.trim().is_empty() { Err("an empty text".into()) } else { Ok(()) };
    }
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    if parts.is_empty() {
        return Err("nothing in it".into());
    }
    for part in parts {
        let kind = part["type"].as_str().unwrap_or_default();
        if !kinds.contains(&kind) {
            return Err(format!("a part of the type '{kind}'"));
        }
        let text = part.get("text").or_else(|| part.get("refusal"));
        if text.is_some_and(|text| text.as_str().is_none_or(|text| text.trim().is_empty())) {
            return Err("an empty text".into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/v1/responses";
    const PLAN: &str = "/backend-api/codex/responses";

    fn user(text: &str) -> Value {
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
    }

    fn said(text: &str) -> Value {
        json!({"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": text, "annotations": []}]})
    }

    fn reasoning() -> Value {
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"})
    }

    fn call(id: &str) -> Value {
        json!({"type": "function_call", "call_id": id, "name": "ls", "arguments": "{}"})
    }

    fn output(id: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": "out"})
    }

    fn body(input: &[Value]) -> Value {
        json!({"model": "m", "store": false, "stream": true, "instructions": "be brief",
            "include": ["reasoning.encrypted_content"], "input": input})
    }

    fn message(input: &[Value]) -> Value {
        let mut message = body(input);
        message.as_object_mut().unwrap().remove("stream");
        message["type"] = "response.create".into();
        message
    }

    /// The body with a field set, or removed by null.
    fn changed(mut body: Value, name: &str, value: Value) -> Value {
        match value {
            Value::Null => drop(body.as_object_mut().unwrap().remove(name)),
            value => body[name] = value,
        }
        body
    }

    #[track_caller]
    fn refused(body: &Value, path: &str, via: Via, why: &str) {
        let got = check_responses(body, path, via).unwrap_err();
        assert!(got.contains(why), "{got}");
    }

    #[test]
    fn a_conversation_with_everything_in_it_is_taken() {
        let two = [reasoning(), reasoning(), call("a"), call("b"), output("b"), output("a")];
        let mut input = vec![user("go"), said("well")];
        input.extend(two);
        input.extend([reasoning(), said("so"), user("and then?")]);
        check_responses(&body(&input), PATH, Via::Http).unwrap();
        check_responses(&body(&input), PLAN, Via::Http).unwrap();
        check_responses(&message(&input), PLAN, Via::WebSocket).unwrap();
    }

    #[test]
    fn histories_that_a_server_refuses_are_refused() {
        let go = || user("go");
        let without = |item: Value, name: &str| changed(item, name, Value::Null);
        let with = |item: Value, name: &str, value: Value| changed(item, name, value);
        for (input, why) in [
            (vec![], "'input' is empty"),
            (vec![go(), call("a")], "No tool output found for function call a"),
            (vec![go(), output("a")], "No tool call found for function call output"),
            (vec![go(), output("a"), call("a")], "No tool call found"),
            (vec![go(), call("a"), call("a"), output("a")], "used twice"),
            (vec![go(), call("a"), output("a"), call("a"), output("a")], "used twice"),
            (vec![go(), call("a"), output("a"), output("a")], "a second output"),
            (vec![go(), reasoning()], "following item"),
            (vec![go(), reasoning(), user("more")], "following item"),
            (vec![go(), without(reasoning(), "summary"), said("x")], "'summary' is missing"),
            (vec![go(), without(reasoning(), "encrypted_content"), said("x")], "not persisted"),
            (vec![go(), with(reasoning(), "encrypted_content", "".into()), said("x")], "persisted"),
            (vec![user(" ")], "an empty text"),
            (vec![go(), said("")], "an empty text"),
            (vec![with(go(), "content", json!([]))], "nothing in it"),
            (vec![go(), with(go(), "role", "assistant".into())], "type 'input_text'"),
            (vec![go(), call("a"), with(output("a"), "output", "".into())], "an empty text"),
            (vec![go(), call("a b"), output("a b")], "a call id that is not"),
            (vec![go(), call(&"a".repeat(65)), output(&"a".repeat(65))], "a call id that is not"),
            (vec![go(), with(call("a"), "name", "l s".into()), output("a")], "a name that no"),
            (vec![go(), with(call("a"), "arguments", "[]".into()), output("a")], "no JSON object"),
            (vec![json!({"type": "item_reference", "id": "rs_1"})], "item_reference"),
        ] {
            refused(&body(&input), PATH, Via::Http, why);
        }
    }

    #[test]
    fn bodies_that_a_server_refuses_are_refused() {
        let whole = || body(&[user("go")]);
        for (name, value, why) in [
            ("store", Value::Null, "'store' is not false"),
            ("store", json!(true), "'store' is not false"),
            ("stream", Value::Null, "'stream' is missing"),
            ("messages", json!([]), "$.messages"),
            ("previous_response_id", json!("resp_1"), "nobody stored"),
            ("prompt_cache_key", json!("k".repeat(65)), "1 to 64 characters"),
            ("input", json!("go"), "no list"),
            ("tools", json!([{"type": "function", "function": {"name": "ls"}}]), "$.tools[0]"),
            ("tools", json!([{"type": "function", "name": "ls", "parameters": {}}]), "$.tools[0]"),
        ] {
            refused(&changed(whole(), name, value), PATH, Via::Http, why);
        }
    }

    #[test]
    fn the_backend_of_plans_has_rules_of_its_own() {
        let whole = || body(&[user("go")]);
        for (name, value, why) in [
            ("max_output_tokens", json!(100), "Unsupported parameter: max_output_tokens"),
            ("truncation", json!("auto"), "Unsupported parameter: truncation"),
            ("stream", Value::Null, "Stream must be set to true"),
            ("instructions", Value::Null, "Instructions are required"),
            ("instructions", json!(""), "Instructions are required"),
            ("input", json!("go"), "Input must be a list"),
            ("include", Value::Null, "reasoning is lost"),
        ] {
            let body = changed(whole(), name, value);
            refused(&body, PLAN, Via::Http, why);
        }
        let system = changed(user("be brief"), "role", "system".into());
        refused(
            &body(std::slice::from_ref(&system)),
            PLAN,
            Via::Http,
            "System messages are not allowed",
        );
        check_responses(&body(&[system]), PATH, Via::Http).unwrap();
        let longer = changed(whole(), "max_output_tokens", json!(100));
        check_responses(&longer, PATH, Via::Http).unwrap();
    }

    #[test]
    fn a_message_continues_a_response_whose_calls_it_answers() {
        let whole = || message(&[output("a"), user("go")]);
        let continued = changed(whole(), "previous_response_id", json!("resp_1"));
        check_responses(&continued, PLAN, Via::WebSocket).unwrap();
        refused(&whole(), PATH, Via::WebSocket, "No tool call found");
        let twice = changed(continued.clone(), "input", json!([output("a"), output("a")]));
        refused(&twice, PATH, Via::WebSocket, "a second output");
        for (name, value, why) in [
            ("stream", json!(true), "'stream' in a message"),
            ("type", Value::Null, "'response.create'"),
            ("response", json!({}), "$.response"),
        ] {
            refused(&changed(continued.clone(), name, value), PATH, Via::WebSocket, why);
        }
        check_responses(&changed(continued, "generate", false.into()), PATH, Via::WebSocket)
            .unwrap();
    }
}

//! The wire form of one Chat Completions chunk, and of a whole answer, which has the same shape.
//!
//! The usual chunk is parsed into borrowed structs. One that does not fit is rewritten by
//! [`tolerate`] (wrong types made right or left out, parts joined) and parsed again, so that odd
//! servers cost time and everyone else does not.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::provider::openai::surrogate;

/// A string that borrows where the JSON has no escapes. (A plain `Option<Cow<str>>` would not.)
#[derive(Debug, Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The text of an optional field; empty when there is none.
pub fn text<'t>(field: &'t Option<Text<'_>>) -> &'t str {
    field.as_ref().map_or("", |text| &text.0)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Chunk<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub model: Option<Text<'a>>,
    #[serde(borrow)]
    pub object: Option<Text<'a>>,
    #[serde(borrow)]
    pub choices: Option<Vec<Choice<'a>>>,
    pub usage: Option<UsageWire>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub detail: Option<&'a RawValue>,
    pub x_groq: Option<Nested>,
    pub timings: Option<Timings>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Nested {
    pub usage: Option<UsageWire>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Timings {
    pub cache_n: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Choice<'a> {
    #[serde(borrow)]
    pub delta: Option<Delta<'a>>,
    /// Whole answers, and some servers in streams.
    #[serde(borrow)]
    pub message: Option<Delta<'a>>,
    #[serde(borrow)]
    pub finish_reason: Option<Text<'a>>,
    pub usage: Option<UsageWire>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Delta<'a> {
    #[serde(borrow)]
    pub content: Option<Text<'a>>,
    #[serde(borrow)]
    pub refusal: Option<Text<'a>>,
    #[serde(borrow)]
    pub reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    pub reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    pub reasoning_text: Option<Text<'a>>,
    #[serde(borrow)]
    pub reasoning_details: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub tool_calls: Option<Vec<CallDelta<'a>>>,
    #[serde(borrow)]
    pub function_call: Option<FunctionDelta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CallDelta<'a> {
    pub index: Option<i64>,
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub function: Option<FunctionDelta<'a>>,
    /// Signatures that must come back with the call.
    #[serde(borrow)]
    pub extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FunctionDelta<'a> {
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub arguments: Option<Text<'a>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(default)]
pub struct UsageWire {
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub total_tokens: Option<u64>,
    pub prompt_tokens_details: Option<Details>,
    pub completion_tokens_details: Option<Details>,
    pub prompt_cache_hit_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    /// US dollars.
    pub cost: Option<f64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(default)]
pub struct Details {
    pub cached_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
}

/// Rewrites a chunk of an unusual form into the usual one; `None` when it is no JSON object (nor
/// a list that begins with one).
pub fn tolerate(data: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(data).ok().or_else(|| surrogate::read(data))?;
    if let Value::Array(list) = &mut value {
        value = list.first_mut()?.take();
    }
    let chunk = value.as_object_mut()?;
    for field in ["id", "model", "object"] {
        keep_string(chunk, field);
    }
    make_list(chunk, "choices");
    if let Some(Value::Array(choices)) = chunk.get_mut("choices") {
        choices.iter_mut().filter_map(Value::as_object_mut).for_each(tolerate_choice);
    }
    tolerate_usage(chunk);
    for field in ["x_groq", "timings"] {
        keep(chunk, field, Value::is_object);
    }
    if let Some(Value::Object(groq)) = chunk.get_mut("x_groq") {
        tolerate_usage(groq);
    }
    if let Some(Value::Object(timings)) = chunk.get_mut("timings") {
        whole_number(timings, "cache_n");
    }
    Some(value.to_string())
}

fn tolerate_choice(choice: &mut Map<String, Value>) {
    keep_string(choice, "finish_reason");
    tolerate_usage(choice);
    for field in ["delta", "message"] {
        if let Some(Value::String(_)) = choice.get(field) {
            let mut delta = Map::new();
            delta.insert("content".into(), choice.remove(field).unwrap_or_default());
            choice.insert(field.into(), Value::Object(delta));
        }
        keep(choice, field, Value::is_object);
        if let Some(Value::Object(delta)) = choice.get_mut(field) {
            tolerate_delta(delta);
        }
    }
}

fn tolerate_delta(delta: &mut Map<String, Value>) {
    if let Some(content @ (Value::Array(_) | Value::Object(_))) = delta.get("content") {
        let (text, thinking) = join_parts(content);
        delta.insert("content".into(), text.into());
        if !thinking.is_empty() {
            delta.insert("reasoning_content".into(), thinking.into());
        }
    }
    for field in ["content", "refusal", "reasoning_content", "reasoning", "reasoning_text"] {
        keep(delta, field, Value::is_string);
    }
    keep(delta, "reasoning_details", Value::is_array);
    make_list(delta, "tool_calls");
    if let Some(Value::Array(calls)) = delta.get_mut("tool_calls") {
        for call in calls.iter_mut().filter_map(Value::as_object_mut) {
            keep_string(call, "id");
            if let Some(Value::String(digits)) = call.get("index") {
                let index = digits.trim().parse::<i64>().map_or(Value::Null, Value::from);
                call.insert("index".into(), index);
            }
            keep(call, "index", Value::is_i64);
            tolerate_function(call, "function");
        }
    }
    tolerate_function(delta, "function_call");
}

fn tolerate_function(call: &mut Map<String, Value>, field: &str) {
    keep(call, field, Value::is_object);
    let Some(Value::Object(function)) = call.get_mut(field) else { return };
    keep_string(function, "name");
    match function.get("arguments") {
        None | Some(Value::String(_) | Value::Null) => {}
        Some(other) => {
            let written = other.to_string();
            function.insert("arguments".into(), written.into());
        }
    }
}

/// Text and thinking of a content that is a list of parts (or one part).
fn join_parts(content: &Value) -> (String, String) {
    let (mut text, mut thinking) = (String::new(), String::new());
    let parts = match content {
        Value::Array(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    for part in parts {
        match (part, part["type"].as_str()) {
            (Value::String(piece), _) => text.push_str(piece),
            (_, Some("thinking")) => match &part["thinking"] {
                Value::String(piece) => thinking.push_str(piece),
                nested => thinking.push_str(&join_parts(nested).0),
            },
            _ => text.push_str(part["text"].as_str().unwrap_or_default()),
        }
    }
    (text, thinking)
}

fn tolerate_usage(holder: &mut Map<String, Value>) {
    keep(holder, "usage", Value::is_object);
    let Some(Value::Object(usage)) = holder.get_mut("usage") else { return };
    for field in [
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
    ] {
        whole_number(usage, field);
    }
    keep(usage, "cost", Value::is_number);
    for field in ["prompt_tokens_details", "completion_tokens_details"] {
        keep(usage, field, Value::is_object);
        if let Some(Value::Object(details)) = usage.get_mut(field) {
            whole_number(details, "cached_tokens");
            whole_number(details, "reasoning_tokens");
        }
    }
}

/// Leaves the field out unless it is of the right kind (or null).
pub fn keep(map: &mut Map<String, Value>, field: &str, right: impl Fn(&Value) -> bool) {
    if map.get(field).is_some_and(|value| !value.is_null() && !right(value)) {
        map.remove(field);
    }
}

/// A list of objects: a single object becomes a list of one, anything else is left out.
pub fn make_list(map: &mut Map<String, Value>, field: &str) {
    if let Some(Value::Object(_)) = map.get(field) {
        let single = map.remove(field);
        map.insert(field.into(), Value::Array(single.into_iter().collect()));
    }
    keep(map, field, Value::is_array);
    if let Some(Value::Array(list)) = map.get_mut(field) {
        list.retain(Value::is_object);
    }
}

pub fn keep_string(map: &mut Map<String, Value>, field: &str) {
    if let Some(Value::Number(number)) = map.get(field) {
        let written = number.to_string();
        map.insert(field.into(), written.into());
    }
    keep(map, field, Value::is_string);
}

pub fn whole_number(map: &mut Map<String, Value>, field: &str) {
    let Some(value) = map.get(field) else { return };
    if value.is_u64() || value.is_null() {
        return;
    }
    // A count: fractions are cut, and what is negative or no number counts as nothing.
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let count = number.map_or(0, |number| number.max(0.0) as u64);
    map.insert(field.into(), count.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(odd: &str, usual: &str) {
        let got: Value = serde_json::from_str(&tolerate(odd).unwrap()).unwrap();
        let want: Value = serde_json::from_str(usual).unwrap();
        assert_eq!(got, want, "{odd}");
        serde_json::from_str::<Chunk<'_>>(&got.to_string()).unwrap();
    }

    #[test]
    fn odd_chunks_become_usual_ones() {
        check(
            r#"{"id":7,"model":null,"choices":{"delta":"hi"}}"#,
            r#"{"id":"7","model":null,"choices":[{"delta":{"content":"hi"}}]}"#,
        );
        check(
            r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text",
               "text":"hm"}]},{"type":"text","text":"a"},{"type":"reference"},"b"]}}]}"#,
            r#"{"choices":[{"delta":{"content":"ab","reasoning_content":"hm"}}]}"#,
        );
        check(
            r#"{"choices":[{"delta":{"content":"x","tool_calls":{"index":"1","id":5,
               "function":{"name":"ls","arguments":{"a":1}}}}}]}"#,
            r#"{"choices":[{"delta":{"content":"x","tool_calls":[{"index":1,"id":"5",
               "function":{"name":"ls","arguments":"{\"a\":1}"}}]}}]}"#,
        );
        check(r#"[{"error":{"code":400}}]"#, r#"{"error":{"code":400}}"#);
        check(
            r#"{"choices":"none","usage":{"prompt_tokens":3.7,"completion_tokens":"x",
               "total_tokens":-1}}"#,
            r#"{"usage":{"prompt_tokens":3,"completion_tokens":0,"total_tokens":0}}"#,
        );
        check(
            r#"{"choices":[{"delta":{"reasoning":{"effort":"low"},"content":null}}]}"#,
            r#"{"choices":[{"delta":{"content":null}}]}"#,
        );
    }

    #[test]
    fn what_is_no_object_is_nothing() {
        for bad in ["", "7", "\"text\"", "[]", "[1]", "{\"a\":", "null"] {
            assert_eq!(tolerate(bad), None, "{bad}");
        }
    }
}

//! The wire form of one event of a Responses stream, and of the items in it.
//!
//! The same JSON objects come as server-sent events and as WebSocket messages. Fields that an
//! event lacks are absent here; what is not needed is not read.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::provider::openai::chunk::{Text, keep, keep_string, make_list, whole_number};
use crate::provider::openai::surrogate;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct EventWire<'a> {
    #[serde(borrow)]
    pub r#type: Option<Text<'a>>,
    /// A whole response in place of an event has this instead of a type.
    #[serde(borrow)]
    pub object: Option<Text<'a>>,
    #[serde(borrow)]
    pub response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub item: Option<&'a RawValue>,
    pub output_index: Option<i64>,
    #[serde(borrow)]
    pub item_id: Option<Text<'a>>,
    pub summary_index: Option<i64>,
    #[serde(borrow)]
    pub delta: Option<Text<'a>>,
    /// The whole text of a part; in a whole response the settings of its text.
    #[serde(borrow)]
    pub text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub refusal: Option<Text<'a>>,
    #[serde(borrow)]
    pub arguments: Option<Text<'a>>,
    #[serde(borrow)]
    pub input: Option<Text<'a>>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    /// Some servers say no more than this of an error.
    #[serde(borrow)]
    pub detail: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ItemWire<'a> {
    #[serde(borrow)]
    pub r#type: Option<Text<'a>>,
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub call_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub arguments: Option<Text<'a>>,
    /// Of a custom tool: its raw text.
    #[serde(borrow)]
    pub input: Option<Text<'a>>,
    #[serde(borrow)]
    pub phase: Option<Text<'a>>,
    #[serde(borrow)]
    pub content: Option<Vec<PartWire<'a>>>,
    #[serde(borrow)]
    pub summary: Option<Vec<PartWire<'a>>>,
    #[serde(borrow)]
    pub encrypted_content: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PartWire<'a> {
    #[serde(borrow)]
    pub r#type: Option<Text<'a>>,
    #[serde(borrow)]
    pub text: Option<Text<'a>>,
    #[serde(borrow)]
    pub refusal: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResponseWire<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub model: Option<Text<'a>>,
    #[serde(borrow)]
    pub status: Option<Text<'a>>,
    #[serde(borrow)]
    pub output: Option<Vec<&'a RawValue>>,
    pub usage: Option<UsageWire>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub incomplete_details: Option<IncompleteWire<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct IncompleteWire<'a> {
    #[serde(borrow)]
    pub reason: Option<Text<'a>>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub struct UsageWire {
    pub input_tokens: Option<u64>,
    pub input_tokens_details: Option<InputDetails>,
    pub output_tokens: Option<u64>,
    pub output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub struct InputDetails {
    pub cached_tokens: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub struct OutputDetails {
    pub reasoning_tokens: Option<u64>,
}

/// Fields that hold text, of events, items, parts and responses alike.
const TEXTS: &[&str] = &[
    "type",
    "object",
    "item_id",
    "delta",
    "text",
    "refusal",
    "id",
    "call_id",
    "name",
    "phase",
    "encrypted_content",
    "model",
    "status",
    "reason",
];

/// Rewrites an event, an item or a response of an unusual form into the usual one; `None` when it
/// is no JSON object.
pub fn tolerate(json: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(json).ok().or_else(|| surrogate::read(json))?;
    value.is_object().then(|| usual(&mut value))?;
    Some(value.to_string())
}

fn usual(value: &mut Value) {
    let Value::Object(map) = value else { return };
    for field in TEXTS {
        keep_string(map, field);
    }
    for field in ["arguments", "input"] {
        if let Some(Value::Object(_) | Value::Array(_)) = map.get(field) {
            let written = map[field].to_string();
            map.insert(field.into(), written.into());
        }
        keep_string(map, field);
    }
    for field in ["output_index", "summary_index"] {
        keep(map, field, Value::is_i64);
    }
    for field in ["content", "summary", "output"] {
        make_list(map, field);
    }
    for field in ["content", "summary"] {
        map.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten().for_each(usual);
    }
    for field in ["usage", "incomplete_details"] {
        keep(map, field, Value::is_object);
    }
    map.get_mut("incomplete_details").into_iter().for_each(usual);
    let Some(Value::Object(usage)) = map.get_mut("usage") else { return };
    for field in ["input_tokens", "output_tokens"] {
        whole_number(usage, field);
    }
    for (field, count) in
        [("input_tokens_details", "cached_tokens"), ("output_tokens_details", "reasoning_tokens")]
    {
        keep(usage, field, Value::is_object);
        if let Some(Value::Object(details)) = usage.get_mut(field) {
            whole_number(details, count);
        }
    }
}

//! The wire form of one event of a Responses stream, and of the items in it.
//!
//! The same JSON objects come as server-sent events and as WebSocket messages. Fields that an
//! event lacks are absent here; what is not needed is not read.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::provider::openai::chunk::Text;

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
    #[serde(borrow)]
    pub text: Option<Text<'a>>,
    #[serde(borrow)]
    pub refusal: Option<Text<'a>>,
    #[serde(borrow)]
    pub arguments: Option<Text<'a>>,
    #[serde(borrow)]
    pub input: Option<Text<'a>>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
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

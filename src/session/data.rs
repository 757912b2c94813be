//! What the events of a log hold, borrowed from their lines.
//!
//! Reads this program's shapes and those of the Go etch: calls as ordered `tool_call` parts or as
//! `toolCalls` with string arguments, provider items whole or in fields, content as parts or text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::{Metrics, ResultStatus, Usage};

/// The typed `data` of an event.
#[derive(Debug, Clone)]
pub enum Data<'a> {
    SessionStarted(Started<'a>),
    User(UserMessage<'a>),
    Assistant(AssistantMessage<'a>),
    Tool(ToolMessage<'a>),
    Reasoning(ReasoningData<'a>),
    ProviderItem(ProviderItem<'a>),
    Usage(Usage),
    Response(ResponseData<'a>),
    Metrics(Metrics),
    Retry(RetryData<'a>),
    Stopped(Stopped<'a>),
    Changed(Changed<'a>),
    Denied(Denied<'a>),
    Repaired(Repaired),
    Summary(Summary<'a>),
    Pointer(Pointer<'a>),
    Folded(Folded<'a>),
    CompactionFailed(CompactionFailed<'a>),
    Window(Window<'a>),
    /// A type that this version does not know, or a known one in an unknown shape.
    Unknown {
        known_type: bool,
    },
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Started<'a> {
    #[serde(borrow)]
    pub cwd: Text<'a>,
    pub version: Option<Text<'a>>,
    pub name: Option<Text<'a>>,
    pub fork_session_path: Option<Text<'a>>,
    /// The last inherited event.
    pub fork_event_id: Option<Text<'a>>,
    /// The Go etch: the first event that is not inherited any more.
    pub fork_before_event_id: Option<Text<'a>>,
    pub parent_session_id: Option<Text<'a>>,
    pub parent_tool_call_id: Option<Text<'a>>,
    pub subagent_profile: Option<Text<'a>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct UserMessage<'a> {
    #[serde(borrow)]
    pub content: Content<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AssistantMessage<'a> {
    #[serde(borrow)]
    pub content: Content<'a>,
    /// The Go etch: the calls, after all text.
    tool_calls: Option<Vec<Call<'a>>>,
    pub provider: Text<'a>,
    pub model: Text<'a>,
    pub finish: Text<'a>,
}

impl<'a> AssistantMessage<'a> {
    /// Text and calls in their order, in whichever of the two shapes they were written.
    pub fn parts(&self) -> impl Iterator<Item = PartRef<'_, 'a>> {
        let calls = self.tool_calls.iter().flatten().map(PartRef::Call);
        self.content.parts().chain(calls)
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.parts().filter_map(|part| match part {
            PartRef::Call(call) => Some(call),
            PartRef::Text(_) => None,
        })
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolMessage<'a> {
    #[serde(borrow)]
    pub content: Content<'a>,
    pub tool_call_id: Text<'a>,
    pub name: Text<'a>,
    pub status: ResultStatus,
    pub changed: Vec<Text<'a>>,
    pub duration_millis: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ReasoningData<'a> {
    #[serde(borrow)]
    pub reasoning: Text<'a>,
    pub field: Text<'a>,
    pub provider: Text<'a>,
    pub model: Text<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderItem<'a> {
    #[serde(borrow)]
    pub provider: Text<'a>,
    pub model: Text<'a>,
    /// How many texts and calls of the message stand before it.
    pub at: usize,
    item: Option<&'a RawValue>,
    item_text: Option<Text<'a>>,
    // The fields of the Go etch.
    r#type: Option<Text<'a>>,
    id: Option<Text<'a>>,
    encrypted_content: Option<Text<'a>>,
    summary: Option<&'a RawValue>,
}

impl ProviderItem<'_> {
    /// The item byte for byte; one that the Go etch wrote is put together from its fields.
    /// `None` when there is none, or what there is, is no JSON.
    pub fn item(&self) -> Option<Box<RawValue>> {
        if let Some(item) = self.item {
            return Some(item.to_owned());
        }
        if let Some(text) = &self.item_text {
            return RawValue::from_string(text.to_string()).ok();
        }
        #[derive(serde::Serialize)]
        struct Item<'a> {
            r#type: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            encrypted_content: Option<&'a str>,
            summary: serde_json::Value,
        }
        let item = Item {
            r#type: self.r#type.as_deref()?,
            id: self.id.as_deref(),
            encrypted_content: self.encrypted_content.as_deref(),
            summary: summary_parts(self.summary),
        };
        serde_json::value::to_raw_value(&item).ok()
    }
}

/// The summary of a reasoning item as a list of `summary_text` parts, from a list of parts, a
/// list of strings, or one string.
fn summary_parts(summary: Option<&RawValue>) -> serde_json::Value {
    use serde_json::{Value, json};
    let part = |text: &Value| json!({"type": "summary_text", "text": text});
    match summary.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
        Some(Value::Array(parts)) => {
            let full = |value: &Value| if value.is_string() { part(value) } else { value.clone() };
            parts.iter().map(full).collect()
        }
        Some(text @ Value::String(_)) => json!([part(&text)]),
        _ => json!([]),
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResponseData<'a> {
    #[serde(borrow)]
    pub provider_response_id: Text<'a>,
    pub model: Text<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryData<'a> {
    pub attempt: u32,
    pub attempts_max: u32,
    pub delay_millis: u64,
    #[serde(borrow)]
    pub kind: Text<'a>,
    pub message: Text<'a>,
    pub status: Option<u16>,
    pub output_discarded: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Stopped<'a> {
    #[serde(borrow)]
    pub stop: Text<'a>,
    pub kind: Option<Text<'a>>,
    pub message: Text<'a>,
    pub partial: Text<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Changed<'a> {
    #[serde(borrow)]
    pub provider: Text<'a>,
    pub model: Text<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Denied<'a> {
    #[serde(borrow)]
    pub tool_call_id: Text<'a>,
    pub name: Text<'a>,
    pub reason: Text<'a>,
    /// The hook that refused it.
    pub hook: Option<Text<'a>>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Repaired {
    pub line: u64,
    pub fragment_bytes: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary<'a> {
    #[serde(borrow)]
    pub summary: Text<'a>,
    pub first_kept_event_id: Option<Text<'a>>,
    pub range_start_id: Option<Text<'a>>,
    pub range_end_id: Option<Text<'a>>,
    pub request: Option<Text<'a>>,
    pub model: Text<'a>,
    pub trigger: Text<'a>,
    pub tokens_before: u64,
    /// 0 where the writer did not know: the Go etch.
    pub tokens_after: u64,
    pub read_files: Option<Vec<Text<'a>>>,
    pub modified_files: Option<Vec<Text<'a>>>,
    pub usage: Option<Usage>,
    pub metrics: Option<Metrics>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Folded<'a> {
    #[serde(borrow)]
    pub results: Vec<FoldedResult<'a>>,
    pub tokens_before: u64,
    pub tokens_after: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FoldedResult<'a> {
    #[serde(borrow)]
    pub event_id: Text<'a>,
    pub stub: Text<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionFailed<'a> {
    #[serde(borrow)]
    pub trigger: Text<'a>,
    pub reason: Text<'a>,
    pub usage: Option<Usage>,
    pub metrics: Option<Metrics>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Window<'a> {
    #[serde(borrow)]
    pub provider: Text<'a>,
    pub model: Text<'a>,
    pub context_tokens: u64,
}

/// From here on the session goes on from an earlier event.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pointer<'a> {
    #[serde(borrow)]
    pub reason: Text<'a>,
    /// The event that is gone on from. It is the parent, unless the session inherits it: then the
    /// parent is the session's first event.
    pub target_id: Text<'a>,
    /// The last event of what is left.
    pub from_id: Option<Text<'a>>,
}

impl Pointer<'_> {
    /// The target, where it is an event that the session inherits.
    pub(super) fn inherited_target(&self, parent_id: Option<&str>) -> Option<&str> {
        let target = &*self.target_id;
        (!target.is_empty() && Some(target) != parent_id).then_some(target)
    }
}

/// The parts of a message; what is neither text nor a call is left out.
#[derive(Debug, Clone, Default)]
pub struct Content<'a>(Vec<FlatPart<'a>>);

#[derive(Debug, Clone, Copy)]
pub enum PartRef<'e, 'a> {
    Text(&'e str),
    Call(&'e Call<'a>),
}

/// A tool call as the model wrote it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Call<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    pub name: Text<'a>,
    pub arguments: Arguments<'a>,
    pub extra: Option<&'a RawValue>,
}

/// The text of a call's arguments: that of a JSON string, or the bytes of any other value.
#[derive(Debug, Clone, Default)]
pub struct Arguments<'a>(pub Text<'a>);

/// Tagged by `type`, read in one go: a tagged enum would be buffered first.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "FlatFields<'a>", bound(deserialize = "'de: 'a"))]
enum FlatPart<'a> {
    Text(Text<'a>),
    Call(Call<'a>),
    Other,
}

#[derive(Deserialize)]
struct FlatFields<'a> {
    #[serde(borrow, default)]
    r#type: Text<'a>,
    text: Option<Text<'a>>,
    id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    arguments: Option<Arguments<'a>>,
    extra: Option<&'a RawValue>,
}

impl<'a> From<FlatFields<'a>> for FlatPart<'a> {
    fn from(fields: FlatFields<'a>) -> Self {
        match &*fields.r#type {
            "text" => FlatPart::Text(fields.text.unwrap_or_default()),
            "tool_call" => FlatPart::Call(Call {
                id: fields.id.unwrap_or_default(),
                name: fields.name.unwrap_or_default(),
                arguments: fields.arguments.unwrap_or_default(),
                extra: fields.extra,
            }),
            _ => FlatPart::Other,
        }
    }
}

impl<'a> Content<'a> {
    pub fn parts(&self) -> impl Iterator<Item = PartRef<'_, 'a>> {
        self.0.iter().filter_map(|part| match part {
            FlatPart::Text(text) => Some(PartRef::Text(text)),
            FlatPart::Call(call) => Some(PartRef::Call(call)),
            FlatPart::Other => None,
        })
    }

    /// As [`Content::text`], without a copy where there is one text and it is owned.
    pub fn into_text(mut self) -> String {
        match self.0.as_mut_slice() {
            [FlatPart::Text(text)] => std::mem::take(text).0.into_owned(),
            _ => self.text().into_owned(),
        }
    }

    /// The text parts in order; borrowed when there is only one.
    pub fn text(&self) -> Cow<'_, str> {
        let mut whole = Cow::Borrowed("");
        for part in self.parts() {
            match part {
                PartRef::Text(text) if whole.is_empty() => whole = Cow::Borrowed(text),
                PartRef::Text(text) => whole.to_mut().push_str(text),
                PartRef::Call(_) => {}
            }
        }
        whole
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of parts, or text")
            }
            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(Content::default())
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content(vec![FlatPart::Text(Text(Cow::Borrowed(text)))]))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content(vec![FlatPart::Text(Text(Cow::Owned(text.to_owned())))]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = seq.next_element()? {
                    parts.push(part);
                }
                Ok(Content(parts))
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        let text = match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw).map_err(de::Error::custom)?,
            _ if raw == "null" => Text::default(),
            _ => Text(Cow::Borrowed(raw)),
        };
        Ok(Arguments(text))
    }
}

/// Text that borrows from the line wherever it holds no escape.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text<'a>(pub Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

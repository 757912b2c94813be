//! One line of a log as a borrowed, typed event.
//!
//! Unknown types and unknown shapes of known types stay events; only what is no JSON object with
//! a `type` is bad. Lines that this program wrote are told apart by their first bytes, others by
//! a look at their `type` first.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::data::{Data, Text};

/// One event of a log.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// The line's `type`.
    pub kind: Cow<'a, str>,
    /// Empty where a foreign line has none.
    pub id: Cow<'a, str>,
    pub parent_id: Option<Cow<'a, str>>,
    /// RFC 3339; empty where a foreign line has none.
    pub time: Cow<'a, str>,
    pub data: Data<'a>,
    /// The whole line without its newline, as `--json` prints it.
    pub raw: &'a str,
    /// The line in its file, from 1.
    pub line: u64,
    /// The event comes from the session that this one was forked from.
    pub inherited: bool,
}

/// Why a line is no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bad {
    /// Begins with NUL bytes, as files do after a power loss.
    Nul,
    NotUtf8,
    /// Cut or glued JSON, or none at all.
    NotJson,
    /// JSON, but no object with a `type`.
    NoEvent,
    /// Over [`super::LINE_BYTES_MAX`].
    TooLong,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bad::Nul => "NUL bytes",
            Bad::NotUtf8 => "not UTF-8",
            Bad::NotJson => "cut or damaged JSON",
            Bad::NoEvent => "JSON, but no event",
            Bad::TooLong => "too long",
        })
    }
}

/// The fallback, and the whole of what a look at the chain needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Peek<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(default)]
    id: Text<'a>,
    parent_id: Option<Text<'a>>,
    #[serde(default)]
    time: Text<'a>,
}

/// Reads one line (without its newline) as an event with all of its data.
pub fn parse(line: &[u8]) -> Result<Event<'_>, Bad> {
    let text = line_text(line)?;
    let prefix = text.strip_prefix("{\"type\":\"").and_then(|rest| rest.split_once('"'));
    if let Some((kind, _)) = prefix
        && let Some(event) = typed(text, Cow::Borrowed(kind))
    {
        return Ok(event);
    }
    let peeked = peek(text)?;
    match typed(text, peeked.kind.clone()) {
        Some(event) => Ok(event),
        None => Ok(Event { data: Data::Unknown { known_type: is_known(&peeked.kind) }, ..peeked }),
    }
}

/// Reads only type, id, parent and time of a line; `data` stays [`Data::Unknown`].
pub fn parse_head(line: &[u8]) -> Result<Event<'_>, Bad> {
    peek(line_text(line)?)
}

/// As [`parse_head`], but pointers with their data: they may say how much is inherited.
pub fn parse_link(line: &[u8]) -> Result<Event<'_>, Bad> {
    let head = parse_head(line)?;
    let is_pointer = head.kind == "session.pointer";
    let typed = if is_pointer { typed(head.raw, head.kind.clone()) } else { None };
    Ok(typed.unwrap_or(head))
}

fn line_text(line: &[u8]) -> Result<&str, Bad> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line) {
        _ if line.first() == Some(&0) => Err(Bad::Nul),
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(_) => Err(Bad::NotUtf8),
    }
}

fn peek(text: &str) -> Result<Event<'_>, Bad> {
    // A list would be taken for the fields in their order.
    if text.trim_start().starts_with('[') {
        return Err(Bad::NoEvent);
    }
    match serde_json::from_str::<Peek<'_>>(text) {
        Ok(peek) => Ok(Event {
            kind: peek.r#type.0,
            id: peek.id.0,
            parent_id: peek.parent_id.map(|id| id.0),
            time: peek.time.0,
            data: Data::Unknown { known_type: false },
            raw: text,
            line: 0,
            inherited: false,
        }),
        Err(error) if error.is_data() => Err(Bad::NoEvent),
        Err(_) => Err(Bad::NotJson),
    }
}

macro_rules! kinds {
    ($($kind:literal => $variant:ident,)*) => {
        fn is_known(kind: &str) -> bool {
            matches!(kind, $($kind)|*)
        }

        /// Reads the `data` of an event of a type, straight from the line.
        struct DataOf<'k>(&'k str);

        impl<'de> DeserializeSeed<'de> for DataOf<'_> {
            type Value = Data<'de>;

            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Data<'de>, D::Error> {
                match self.0 {
                    $($kind => Ok(Data::$variant(Deserialize::deserialize(from)?)),)*
                    _ => Err(de::Error::custom("unknown type")),
                }
            }
        }
    };
}

kinds! {
    "message.tool" => Tool,
    "message.assistant" => Assistant,
    "message.user" => User,
    "model.usage" => Usage,
    "model.metrics" => Metrics,
    "model.response" => Response,
    "model.reasoning" => Reasoning,
    "model.provider_item" => ProviderItem,
    "session.started" => SessionStarted,
    "context.summary" => Summary,
    "context.folded" => Folded,
    "context.compaction_failed" => CompactionFailed,
    "model.window" => Window,
    "model.retry" => Retry,
    "model.changed" => Changed,
    "turn.stopped" => Stopped,
    "tool.denied" => Denied,
    "log.repaired" => Repaired,
    "session.pointer" => Pointer,
}

/// `None` when the type is unknown or the line does not have its shape.
fn typed<'a>(text: &'a str, kind: Cow<'a, str>) -> Option<Event<'a>> {
    if !is_known(&kind) {
        return None;
    }
    let mut line = serde_json::Deserializer::from_str(text);
    let mut event = (&mut line).deserialize_map(Line(&kind)).ok()?;
    line.end().ok()?;
    (event.kind, event.raw) = (kind, text);
    Some(event)
}

/// Visits a line whose type is known. By hand, because a derived one would be in the binary once
/// for each type.
struct Line<'k>(&'k str);

impl<'de> Visitor<'de> for Line<'_> {
    type Value = Event<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event<'de>, A::Error> {
        let (mut id, mut parent_id, mut time, mut data) = (None, None, None, None);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            let again = match &*key {
                "id" => id.replace(map.next_value::<Text<'de>>()?).is_some(),
                "parentId" => parent_id.replace(map.next_value::<Option<Text<'de>>>()?).is_some(),
                "time" => time.replace(map.next_value::<Text<'de>>()?).is_some(),
                "data" => data.replace(map.next_value_seed(DataOf(self.0))?).is_some(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    false
                }
            };
            if again {
                return Err(de::Error::custom("the same field twice"));
            }
        }
        Ok(Event {
            kind: Cow::Borrowed(""),
            id: id.unwrap_or_default().0,
            parent_id: parent_id.flatten().map(|id| id.0),
            time: time.unwrap_or_default().0,
            data: data.ok_or_else(|| de::Error::missing_field("data"))?,
            raw: "",
            line: 0,
            inherited: false,
        })
    }
}

/// Calls `each` for every event of a line, which is one, except where a torn line and the next
/// ones were glued together: then for each whole one, and for the damage.
pub fn parse_glued<'a>(line: &'a [u8], each: &mut dyn FnMut(Result<Event<'a>, Bad>)) {
    if let Ok(event) = parse(line) {
        return each(Ok(event));
    }
    let (mut start, mut tail) = (0, 1);
    for _ in 0..GLUED_MAX {
        let rest = line.get(tail..).unwrap_or_default();
        let Some(offset) = memchr::memmem::find(rest, b"{\"type\":\"") else { break };
        let cut = tail + offset;
        tail = cut + 1;
        if !begins_event(&line[cut..]) {
            continue;
        }
        let before = parse(&line[start..cut]);
        if before.is_ok() || parse(&line[cut..]).is_ok() {
            each(before);
            start = cut;
        }
    }
    each(parse(&line[start..]));
}

/// The most places at which one line is tried for another event.
const GLUED_MAX: usize = 64;

/// A part of a message begins alike, but a type with a dot and an id after it is an event's.
fn begins_event(text: &[u8]) -> bool {
    let kind = &text[b"{\"type\":\"".len()..text.len().min(100)];
    let Some(end) = memchr::memchr(b'"', kind) else { return false };
    kind[..end].contains(&b'.') && kind[end..].starts_with(b"\",\"id\":\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(line: &[u8]) -> Vec<Result<(String, String), Bad>> {
        let mut all = Vec::new();
        parse_glued(line, &mut |parsed| {
            all.push(parsed.map(|event| (event.id.into_owned(), format!("{:?}", event.data))));
        });
        all
    }

    #[test]
    fn the_type_may_stand_anywhere_and_be_written_with_escapes() {
        for line in [
            r#"{"type":"message.user","id":"a","time":"t","data":{"content":"hi"}}"#,
            r#" { "data": {"content":"hi"}, "id": "a", "type": "message.user", "time": "t" } "#,
            r#"{"type":"message\u002euser","id":"a","time":"t","data":{"content":"hi"}}"#,
            r#"{"type":"message.user","id":"a","parentId":null,"time":"t","data":{"content":[{"type":"text","text":"h"},{"type":"image","url":{}},{"type":"text","text":"i"}],"more":1}}"#,
        ] {
            let event = parse(line.as_bytes()).unwrap();
            let Data::User(message) = &event.data else { panic!("{line}: {event:?}") };
            assert_eq!((&*message.content.text(), &*event.id), ("hi", "a"), "{line}");
            assert_eq!((&*event.kind, &*event.time), ("message.user", "t"), "{line}");
        }
    }

    #[test]
    fn what_is_no_event_is_named() {
        let check = |line: &str, want: Bad| assert_eq!(parse(line.as_bytes()).unwrap_err(), want);
        check("", Bad::NotJson);
        check("{\"type\":\"message.user\",\"id\":\"a\",\"data\":{\"content\":\"h", Bad::NotJson);
        check("{\"type\":\"a\",\"id\":\"b\"} x", Bad::NotJson);
        check("{\"id\":\"a\"}", Bad::NoEvent);
        check("{\"type\":7}", Bad::NoEvent);
        check("\"type\"", Bad::NoEvent);
        check(" [\"a.b\",\"id\",null,\"t\"]", Bad::NoEvent);
        check("\0\0\0", Bad::Nul);
        assert_eq!(parse(b"{\"type\":\"a\xff\"}").unwrap_err(), Bad::NotUtf8);
    }

    #[test]
    fn a_known_type_of_another_shape_stays_in_the_chain() {
        for data in ["", ",\"data\":7", ",\"data\":{\"content\":7}", ",\"data\":{\"content\":[7]}"]
        {
            let line =
                format!("{{\"type\":\"message.user\",\"id\":\"a\",\"parentId\":\"b\"{data}}}");
            let event = parse(line.as_bytes()).unwrap();
            assert_eq!((&*event.id, event.parent_id.as_deref()), ("a", Some("b")), "{line}");
            assert!(matches!(event.data, Data::Unknown { known_type: true }), "{line}");
        }
    }

    #[test]
    fn glued_lines_come_apart_only_at_events() {
        let one = r#"{"type":"x.y","id":"1"}"#;
        let two = r#"{"type":"x.y","id":"2"}"#;
        let ok = |id: &str| Ok((id.to_owned(), "Unknown { known_type: false }".to_owned()));
        assert_eq!(heard(one.as_bytes()), [ok("1")]);
        assert_eq!(heard(format!("{one}{two}").as_bytes()), [ok("1"), ok("2")]);
        for cut in 1..one.len() {
            let line = format!("{}{two}", &one[..cut]);
            assert_eq!(heard(line.as_bytes()), [Err(Bad::NotJson), ok("2")], "{line}");
        }
        for (torn, bad) in [("{\"type\":\"é", Bad::NotUtf8), ("\0\0", Bad::Nul)] {
            let line = [&torn.as_bytes()[..torn.len() - 1], two.as_bytes()].concat();
            assert_eq!(heard(&line), [Err(bad), ok("2")], "{torn:?}");
        }
        // Parts of a cut message are no events.
        let cut = r#"{"type":"message.assistant","id":"1","data":{"content":[{"type":"tool_call","id":"c"}"#;
        assert_eq!(heard(cut.as_bytes()), [Err(Bad::NotJson)]);
    }
}

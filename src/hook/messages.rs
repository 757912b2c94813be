//! A conversation as hooks see it: the shape of the Go etch, its rules, and the way back.
//!
//! The shape holds text and calls alone. A message that comes back as it went out is taken to be
//! the same one, so that what the shape cannot express (reasoning, provider state, images) stays.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};

use super::reply::{kind, short};
use crate::model::{Message, Part, ResultStatus, Role, ToolCall, ToolResult};

/// One message as a hook gave it back.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    role: Role,
    text: Vec<String>,
    calls: Vec<ShapeCall>,
    /// Of a result.
    call_id: String,
    name: String,
}

#[derive(Debug, Clone, PartialEq)]
struct ShapeCall {
    id: String,
    name: String,
    arguments: String,
}

/// The messages as hooks get them.
pub fn show(messages: &[Message]) -> Value {
    messages.iter().map(show_one).collect()
}

fn show_one(message: &Message) -> Value {
    let mut shown = Map::new();
    shown.insert("role".to_owned(), message.role.as_str().into());
    let (mut content, mut calls) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            Part::Text(text) => content.push(json!({"type": "text", "text": text})),
            Part::ToolCall(call) => calls.push(json!({
                "id": call.id, "name": call.name, "arguments": call.arguments,
            })),
            Part::ToolResult(result) => {
                content.push(json!({"type": "text", "text": result.text}));
                shown.insert("toolCallId".to_owned(), result.call_id.as_str().into());
                shown.insert("name".to_owned(), result.name.as_str().into());
            }
            Part::Image { .. } | Part::Reasoning(_) | Part::Opaque(_) => {}
        }
    }
    shown.insert("content".to_owned(), content.into());
    if !calls.is_empty() {
        shown.insert("toolCalls".to_owned(), calls.into());
    }
    Value::Object(shown)
}

/// Reads what a hook gave back as `messages`. `content` may be text, too.
pub fn read(value: &Value) -> Result<Vec<Shape>, String> {
    let Value::Array(items) = value else {
        return Err(format!("'messages' is {}, not a list", kind(value)));
    };
    let read = |(idx, item)| read_one(item).map_err(|reason| format!("messages[{idx}]{reason}"));
    items.iter().enumerate().map(read).collect()
}

fn read_one(value: &Value) -> Result<Shape, String> {
    let Value::Object(fields) = value else {
        return Err(format!(" is {}, not an object", kind(value)));
    };
    const FIELDS: [&str; 5] = ["role", "content", "toolCalls", "toolCallId", "name"];
    if let Some(name) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        let known = FIELDS.join(", ");
        return Err(format!(": unknown field '{}'; it has {known}", short(name)));
    }
    let role = match text(fields, "role")?.as_str() {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => {
            let other = short(other);
            return Err(format!(".role is '{other}'; it is system, user, assistant or tool"));
        }
    };
    let calls = match fields.get("toolCalls") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(calls)) => {
            calls.iter().enumerate().map(read_call).collect::<Result<_, _>>()?
        }
        Some(other) => return Err(format!(".toolCalls is {}, not a list", kind(other))),
    };
    Ok(Shape {
        role,
        text: content(fields.get("content"))?,
        calls,
        call_id: text(fields, "toolCallId")?,
        name: text(fields, "name")?,
    })
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<String, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(format!(".{name} is {}, not text", kind(other))),
    }
}

fn content(value: Option<&Value>) -> Result<Vec<String>, String> {
    let parts = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) => return Ok(vec![text.clone()]),
        Some(Value::Array(parts)) => parts,
        Some(other) => return Err(format!(".content is {}, not a list of parts", kind(other))),
    };
    let part = |(idx, part): (usize, &Value)| match (
        part.get("type").and_then(Value::as_str),
        part.get("text").and_then(Value::as_str),
    ) {
        (Some("text"), Some(text)) => Ok(text.to_owned()),
        _ => Err(format!(".content[{idx}] is not {{\"type\": \"text\", \"text\": …}}")),
    };
    parts.iter().enumerate().map(part).collect()
}

fn read_call((idx, value): (usize, &Value)) -> Result<ShapeCall, String> {
    let Value::Object(fields) = value else {
        return Err(format!(".toolCalls[{idx}] is {}, not an object", kind(value)));
    };
    let text = |name| text(fields, name).map_err(|reason| format!(".toolCalls[{idx}]{reason}"));
    Ok(ShapeCall { id: text("id")?, name: text("name")?, arguments: text("arguments")? })
}

/// What every model asks of a conversation: it says something, each call has its result right
/// behind and nothing else has one, and the last word is not the model's.
pub fn check(list: &[Shape]) -> Result<(), String> {
    // Calls that wait for their result.
    let mut open: Vec<&str> = Vec::new();
    let missing = |idx: usize, id: &str| {
        let id = short(id);
        Err(format!("messages[{idx}]: the call '{id}' has no result right behind it"))
    };
    let mut asked_at = 0;
    for (idx, shape) in list.iter().enumerate() {
        let fault = |what: String| Err(format!("messages[{idx}]{what}"));
        if shape.role == Role::Tool {
            let Some(found) = open.iter().position(|id| *id == shape.call_id) else {
                let id = short(&shape.call_id);
                return fault(format!(" is a result of '{id}', which is no call right before it"));
            };
            open.swap_remove(found);
        } else if let Some(id) = open.first() {
            return missing(asked_at, id);
        }
        if shape.role != Role::Assistant && !shape.calls.is_empty() {
            return fault(format!(
                ".toolCalls: only assistant messages have calls, this one is '{}'",
                shape.role.as_str()
            ));
        }
        for (at, call) in shape.calls.iter().enumerate() {
            if call.id.is_empty() || call.name.is_empty() {
                return fault(format!(".toolCalls[{at}] has no id or no name"));
            }
            if open.contains(&call.id.as_str()) {
                return fault(format!(".toolCalls[{at}]: its id is that of another call"));
            }
            open.push(&call.id);
            asked_at = idx;
        }
        let is_silent =
            shape.calls.is_empty() && shape.text.iter().all(|text| text.trim().is_empty());
        if is_silent && shape.role != Role::Tool {
            return fault(" says nothing".to_owned());
        }
    }
    if let Some(id) = open.first() {
        return missing(asked_at, id);
    }
    match list.last().map(|shape| shape.role) {
        None => Err("'messages' is empty".to_owned()),
        Some(Role::User | Role::Tool) => Ok(()),
        Some(Role::System | Role::Assistant) => {
            Err("the last of 'messages' must be of the user or a tool".to_owned())
        }
    }
}

/// The messages that a checked list means: an original wherever one was left as it was, else a
/// new one.
pub fn merge(originals: &[Message], list: Vec<Shape>) -> Vec<Message> {
    let mut unused: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (idx, message) in originals.iter().enumerate() {
        unused.entry(key(&show_one(message))).or_default().push_back(idx);
    }
    let calls: HashMap<&str, &ToolCall> =
        originals.iter().flat_map(Message::calls).map(|call| (call.id.as_str(), call)).collect();
    let statuses: HashMap<&str, ResultStatus> = originals
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::ToolResult(result) => Some((result.call_id.as_str(), result.status)),
            _ => None,
        })
        .collect();
    let mut next = 0;
    let mut merge_one = |shape: Shape| {
        let new = shape.into_message(&calls, &statuses);
        let same = unused.get_mut(&key(&show_one(&new)));
        // The first that is not behind; one that was moved is still the same.
        let found = same.and_then(|same| {
            let at = same.iter().position(|idx| next <= *idx).unwrap_or(0);
            same.remove(at)
        });
        let Some(idx) = found else { return new };
        next = idx + 1;
        originals[idx].clone()
    };
    list.into_iter().map(&mut merge_one).collect()
}

/// Equal for messages of one shape: parts of text that only were cut differently are the same.
fn key(shown: &Value) -> String {
    let mut shown = shown.clone();
    if let Some(content) = shown.get_mut("content") {
        let texts = content.as_array().into_iter().flatten();
        let text: String = texts.filter_map(|part| part.get("text")?.as_str()).collect();
        *content = text.into();
    }
    shown.to_string()
}

impl Shape {
    fn into_message(
        self,
        calls: &HashMap<&str, &ToolCall>,
        statuses: &HashMap<&str, ResultStatus>,
    ) -> Message {
        let role = self.role;
        if role == Role::Tool {
            let status = statuses.get(self.call_id.as_str()).copied().unwrap_or_default();
            let (call_id, mut name, text) = (self.call_id, self.name, self.text.concat());
            if name.is_empty() {
                name =
                    calls.get(call_id.as_str()).map(|call| call.name.clone()).unwrap_or_default();
            }
            let parts = vec![Part::ToolResult(ToolResult { call_id, name, text, status })];
            return Message { role, parts };
        }
        let texts = self.text.into_iter().filter(|text| !text.is_empty()).map(Part::Text);
        let calls = self.calls.into_iter().map(|ShapeCall { id, name, arguments }| {
            let extra = calls.get(id.as_str()).and_then(|call| call.extra.clone());
            Part::ToolCall(ToolCall { id, name, arguments, extra })
        });
        Message { role, parts: texts.chain(calls).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reasoning;

    fn call(id: &str, arguments: &str) -> Part {
        let extra = serde_json::value::RawValue::from_string(format!("{{\"of\":\"{id}\"}}"));
        Part::ToolCall(ToolCall {
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments: arguments.to_owned(),
            extra: extra.ok(),
        })
    }

    fn result(id: &str, text: &str, status: ResultStatus) -> Message {
        let (call_id, name, text) = (id.to_owned(), "read".to_owned(), text.to_owned());
        let parts = vec![Part::ToolResult(ToolResult { call_id, name, text, status })];
        Message { role: Role::Tool, parts }
    }

    fn conversation() -> Vec<Message> {
        let reasoning = Reasoning { text: "hm".to_owned(), ..Reasoning::default() };
        let image = Part::Image { media_type: "image/png".to_owned(), data: "AA==".to_owned() };
        vec![
            Message::text(Role::System, "be brief"),
            Message { role: Role::User, parts: vec![Part::Text("look".to_owned()), image] },
            Message {
                role: Role::Assistant,
                parts: vec![
                    Part::Reasoning(reasoning),
                    call("a", "{}"),
                    Part::Text("both".to_owned()),
                    call("b", "{\"x\":1}"),
                ],
            },
            result("a", "one", ResultStatus::Ok),
            result("b", "tool error: two", ResultStatus::Error),
            Message::text(Role::User, "go on"),
        ]
    }

    fn back(value: &Value) -> Vec<Message> {
        let list = read(value).unwrap();
        check(&list).unwrap();
        merge(&conversation(), list)
    }

    #[test]
    fn hooks_get_the_shape_of_the_go_etch() {
        let want = json!([
            {"role": "system", "content": [{"type": "text", "text": "be brief"}]},
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "both"}],
                "toolCalls": [
                    {"id": "a", "name": "read", "arguments": "{}"},
                    {"id": "b", "name": "read", "arguments": "{\"x\":1}"},
                ],
            },
            {
                "role": "tool",
                "content": [{"type": "text", "text": "one"}],
                "toolCallId": "a",
                "name": "read",
            },
            {
                "role": "tool",
                "content": [{"type": "text", "text": "tool error: two"}],
                "toolCallId": "b",
                "name": "read",
            },
            {"role": "user", "content": [{"type": "text", "text": "go on"}]},
        ]);
        assert_eq!(show(&conversation()), want);
    }

    #[test]
    fn what_a_hook_leaves_alone_keeps_what_the_shape_cannot_say() {
        let originals = conversation();
        let mut shown = show(&originals);
        assert_eq!(back(&shown), originals);
        // A message more, one less, one changed: the others are what they were.
        shown[5]["content"] = "go on, please".into();
        let list = shown.as_array_mut().unwrap();
        list.remove(0);
        list.insert(0, json!({"role": "system", "content": "be long"}));
        list.insert(5, json!({"role": "user", "content": [{"type": "text", "text": "!"}]}));
        let got = back(&shown);
        assert_eq!(got[0], Message::text(Role::System, "be long"));
        assert_eq!(got[1..5], originals[1..5]);
        assert_eq!(got[5], Message::text(Role::User, "!"));
        assert_eq!(got[6], Message::text(Role::User, "go on, please"));
    }

    #[test]
    fn a_changed_message_keeps_the_state_of_its_calls_and_results() {
        let mut shown = show(&conversation());
        shown[2]["content"] = Value::Null;
        shown[4] = json!({"role": "tool", "content": "cut", "toolCallId": "b"});
        let got = back(&shown);
        let want = vec![call("a", "{}"), call("b", "{\"x\":1}")];
        assert_eq!(got[2], Message { role: Role::Assistant, parts: want });
        assert_eq!(got[4], result("b", "cut", ResultStatus::Error));
    }

    #[test]
    fn equal_messages_are_told_apart_by_their_order() {
        let image = |data: &str| Message {
            role: Role::User,
            parts: vec![
                Part::Text("same".to_owned()),
                Part::Image { media_type: String::new(), data: data.to_owned() },
            ],
        };
        let originals = [image("1"), image("2"), image("3")];
        let shown = show(&originals);
        assert_eq!(merge(&originals, read(&shown).unwrap()), originals);
        let swapped = json!([shown[0], {"role": "user", "content": "new"}, shown[2], shown[1]]);
        let got = merge(&originals, read(&swapped).unwrap());
        assert_eq!(got[0], originals[0]);
        assert_eq!(got[2..], originals[1..]);
    }

    #[test]
    fn a_conversation_that_no_model_accepts_is_refused() {
        let user = || json!({"role": "user", "content": "x"});
        let asks = |ids: &[&str]| {
            let calls = ids.iter().map(|id| json!({"id": id, "name": "ls", "arguments": "{}"}));
            json!({"role": "assistant", "toolCalls": calls.collect::<Vec<_>>()})
        };
        let result = |id: &str| json!({"role": "tool", "toolCallId": id, "content": "x"});
        let check = |value: Value, want: &str| {
            let got = read(&value).and_then(|list| check(&list));
            assert_eq!(got.err().unwrap_or_default(), want, "{value}");
        };
        check(json!([user()]), "");
        check(json!([user(), asks(&["a", "b"]), result("b"), result("a")]), "");
        check(json!([user(), asks(&["a"]), result("a"), asks(&["a"]), result("a")]), "");
        check(json!([]), "'messages' is empty");
        check(json!({}), "'messages' is an object, not a list");
        check(json!([7]), "messages[0] is a number, not an object");
        check(
            json!([user(), {"role": "robot", "content": "x"}]),
            "messages[1].role is 'robot'; it is system, user, assistant or tool",
        );
        check(
            json!([{"role": "user", "text": "x"}]),
            "messages[0]: unknown field 'text'; it has role, content, toolCalls, toolCallId, name",
        );
        check(
            json!([{"role": "user", "content": 1}]),
            "messages[0].content is a number, not a list of parts",
        );
        check(
            json!([{"role": "user", "content": [{"type": "image"}]}]),
            "messages[0].content[0] is not {\"type\": \"text\", \"text\": …}",
        );
        check(json!([{"role": "user", "content": " "}]), "messages[0] says nothing");
        check(
            json!([user(), asks(&["a"])]),
            "messages[1]: the call 'a' has no result right behind it",
        );
        check(
            json!([user(), asks(&["a"]), user(), result("a")]),
            "messages[1]: the call 'a' has no result right behind it",
        );
        check(
            json!([user(), result("a")]),
            "messages[1] is a result of 'a', which is no call right before it",
        );
        check(
            json!([asks(&["a"]), result("a"), result("a")]),
            "messages[2] is a result of 'a', which is no call right before it",
        );
        check(
            json!([user(), asks(&["a", "a"]), result("a"), result("a")]),
            "messages[1].toolCalls[1]: its id is that of another call",
        );
        check(json!([asks(&[""])]), "messages[0].toolCalls[0] has no id or no name");
        check(
            json!([{"role": "user", "content": "x", "toolCalls": [{"id": "a", "name": "b"}]}]),
            "messages[0].toolCalls: only assistant messages have calls, this one is 'user'",
        );
        let last = "the last of 'messages' must be of the user or a tool";
        check(json!([user(), {"role": "assistant", "content": "x"}]), last);
        check(json!([{"role": "system", "content": "x"}]), last);
    }
}

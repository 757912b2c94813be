//! Puts tool calls together from deltas, however a server numbers and names them.
//!
//! A delta is matched to a call by its id first, then by its index, then to the latest call; see
//! [`Assembly::slot_for`]. A call is never taken for finished before the stream ends, because
//! `{}` can be the beginning of something longer.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::model::{ModelEvent, ToolSpec};
use crate::provider::openai::chunk::{CallDelta, text};

/// Far more calls than any model makes in one answer.
pub const CALLS_MAX: usize = 128;

/// A call under assembly.
#[derive(Debug, Default)]
struct Slot {
    index: Option<i64>,
    id: String,
    name: String,
    arguments: String,
    extra: Option<Box<RawValue>>,
    started: bool,
    /// Bytes of `arguments` already given out.
    given_bytes: usize,
}

/// A call as the server meant it. The id may be empty or not unique.
#[derive(Debug)]
pub struct Assembled {
    pub id: String,
    pub name: String,
    pub arguments: String,
    pub extra: Option<Box<RawValue>>,
    /// Its start was not given out yet.
    pub is_new: bool,
}

#[derive(Debug)]
pub struct Assembly<'r> {
    /// In order of first appearance.
    slots: Vec<Slot>,
    tools: &'r [ToolSpec],
}

impl<'r> Assembly<'r> {
    pub fn new(tools: &'r [ToolSpec]) -> Assembly<'r> {
        Assembly { slots: Vec::new(), tools }
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// What is kept until the end of the answer.
    pub fn held_bytes(&self) -> usize {
        let extra = |slot: &Slot| slot.extra.as_ref().map_or(0, |extra| extra.get().len());
        let held =
            |slot: &Slot| slot.id.len() + slot.name.len() + slot.arguments.len() + extra(slot);
        self.slots.iter().map(held).sum()
    }

    pub fn push(&mut self, delta: &CallDelta<'_>, sink: &mut dyn FnMut(ModelEvent)) {
        let id = text(&delta.id);
        let function = delta.function.as_ref();
        let name = function.map_or("", |function| text(&function.name));
        let arguments = function.map_or("", |function| text(&function.arguments));
        let at = self.add(id, delta.index, name, arguments);
        // Half a surrogate passes as raw JSON, but a server may refuse every later request with it.
        let is_sound = |extra: &&RawValue| {
            extra.get() != "null" && serde_json::from_str::<serde_json::Value>(extra.get()).is_ok()
        };
        if let Some(extra) = delta.extra_content.filter(is_sound) {
            let kept = format!("{{\"extra_content\":{}}}", extra.get());
            self.slots[at].extra = RawValue::from_string(kept).ok();
        }
        self.give_out(at, false, sink);
    }

    /// The old form of a call: one per answer, without id and index.
    pub fn push_legacy(&mut self, name: &str, arguments: &str, sink: &mut dyn FnMut(ModelEvent)) {
        let at = self.add("", Some(0), name, arguments);
        self.give_out(at, false, sink);
    }

    fn add(&mut self, id: &str, index: Option<i64>, name: &str, arguments: &str) -> usize {
        let at = self.slot_for(id, index, name);
        self.set_name(at, name);
        let slot = &mut self.slots[at];
        if slot.id.is_empty() {
            id.clone_into(&mut slot.id);
        }
        if slot.index.is_none() {
            slot.index = index;
        }
        // Some servers send the whole arguments again in the last delta.
        let repeated =
            !arguments.is_empty() && arguments == slot.arguments && is_json_object(&slot.arguments);
        if !repeated {
            slot.arguments.push_str(arguments);
        }
        at
    }

    /// Which call a delta belongs to; opens a new one where it must.
    fn slot_for(&mut self, id: &str, index: Option<i64>, name: &str) -> usize {
        let latest = self.slots.len().checked_sub(1);
        let indexed = match index {
            Some(_) => self.slots.iter().rposition(|slot| slot.index == index),
            None => latest,
        };
        if id.is_empty() {
            // The head of a call may have come without the index that its rest has.
            let headless = |at: &usize| name.is_empty() && self.slots[*at].index.is_none();
            let Some(at) = indexed.or_else(|| latest.filter(headless)) else {
                return self.open(index);
            };
            let slot = &self.slots[at];
            let begins =
                !name.is_empty() && !slot.name.is_empty() && is_json_object(&slot.arguments);
            return if begins { self.open(index) } else { at };
        }
        if let Some(known) = self.slots.iter().rposition(|slot| slot.id == id) {
            let known_index = self.slots[known].index;
            let moved = index.is_some() && known_index.is_some() && known_index != index;
            // One id for calls at several indexes is no id.
            return if moved && !name.is_empty() { self.open(index) } else { known };
        }
        let Some(at) = indexed else { return self.open(index) };
        let slot = &self.slots[at];
        let same_call = match (name, slot.name.as_str()) {
            // A delta without a name cannot start a call, whatever id it brings.
            ("", _) => true,
            (_, "") => slot.id.is_empty(),
            (name, known) => name == known && !is_json_object(&slot.arguments),
        };
        if same_call { at } else { self.open(index) }
    }

    fn open(&mut self, index: Option<i64>) -> usize {
        self.slots.push(Slot { index, ..Slot::default() });
        self.slots.len() - 1
    }

    /// A name is set once. A different piece is joined or taken in its place only where that
    /// makes the name of a tool that exists.
    fn set_name(&mut self, at: usize, piece: &str) {
        let is_tool = |name: &str| self.tools.iter().any(|tool| tool.name == name);
        let slot = &mut self.slots[at];
        if piece.is_empty() || piece == slot.name {
            return;
        }
        if slot.name.is_empty() {
            piece.clone_into(&mut slot.name);
        } else if slot.arguments.is_empty() && !slot.started {
            let joined = format!("{}{piece}", slot.name);
            if is_tool(&joined) {
                slot.name = joined;
            } else if is_tool(piece) {
                piece.clone_into(&mut slot.name);
            }
        }
    }

    /// Gives out the start of a call as soon as its name is sure, and what is new of it.
    fn give_out(&mut self, at: usize, at_end: bool, sink: &mut dyn FnMut(ModelEvent)) {
        let slot = &mut self.slots[at];
        if !slot.started {
            let sure = at_end
                || !slot.arguments.is_empty()
                || self.tools.iter().any(|tool| tool.name == slot.name);
            if slot.name.is_empty() || !sure {
                return;
            }
            slot.started = true;
            sink(ModelEvent::ToolCallStart { index: at, name: slot.name.clone() });
        }
        if slot.given_bytes < slot.arguments.len() {
            let arguments = slot.arguments[slot.given_bytes..].to_owned();
            slot.given_bytes = slot.arguments.len();
            sink(ModelEvent::ToolCallDelta { index: at, arguments });
        }
    }

    /// The end of the stream: every call, in order of first appearance. A slot that holds
    /// several JSON objects for a tool becomes as many calls, unless they are all the same.
    pub fn finish(mut self, sink: &mut dyn FnMut(ModelEvent)) -> Vec<Assembled> {
        for at in 0..self.slots.len() {
            self.give_out(at, true, sink);
        }
        let (mut calls, mut more) = (Vec::new(), Vec::new());
        let tools = self.tools;
        for mut slot in self.slots {
            if let Some(tool) = meant(&slot.name, tools) {
                tool.clone_into(&mut slot.name);
            }
            let is_tool = tools.iter().any(|tool| tool.name == slot.name);
            let mut objects = split_objects(&slot.arguments, is_tool).into_iter();
            let arguments = objects.next().unwrap_or_default();
            more.extend(objects.map(|arguments| Assembled {
                id: String::new(),
                name: slot.name.clone(),
                arguments,
                extra: None,
                is_new: true,
            }));
            let Slot { id, name, extra, started, .. } = slot;
            calls.push(Assembled { id, name, arguments, extra, is_new: !started });
        }
        calls.extend(more);
        calls
    }
}

/// The tool that a model means which learned other names: the same in other letter case, or
/// behind a namespace, as in `Read` and `functions.read`.
fn meant<'t>(called: &str, tools: &'t [ToolSpec]) -> Option<&'t str> {
    let is_called = |name: &str| tools.iter().any(|tool| tool.name == name);
    if is_called(called) {
        return None;
    }
    let last = called.rsplit(['.', ':', '/']).next().unwrap_or(called);
    let mut like = tools.iter().filter(|tool| tool.name.eq_ignore_ascii_case(last));
    match (like.next(), like.next()) {
        (Some(only), None) => Some(&only.name),
        _ => None,
    }
}

/// A complete JSON object and nothing else.
fn is_json_object(text: &str) -> bool {
    let trimmed = text.trim();
    trimmed.starts_with('{')
        && trimmed.ends_with('}')
        && serde_json::from_str::<IgnoredAny>(trimmed).is_ok()
}

/// Several JSON objects in a row, each once, where they may be `several`; anything else as it is
/// (blanks alone: nothing). Stops behind [`CALLS_MAX`].
fn split_objects(arguments: &str, several: bool) -> Vec<String> {
    if arguments.trim().is_empty() {
        return Vec::new();
    }
    let whole = vec![arguments.to_owned()];
    if !several || !arguments.trim_end().ends_with('}') || is_json_object(arguments) {
        return whole;
    }
    let mut objects: Vec<String> = Vec::new();
    for object in serde_json::Deserializer::from_str(arguments).into_iter::<&RawValue>() {
        match object {
            Ok(object) if object.get().starts_with('{') => {
                if !objects.iter().any(|known| known == object.get()) {
                    objects.push(object.get().to_owned());
                }
                if objects.len() > CALLS_MAX {
                    break;
                }
            }
            _ => return whole,
        }
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    type Call = (String, String, String);

    /// `(id, name, arguments)` of every call, and the events with their indexes.
    fn assemble(tools: &[&str], deltas: &[Value]) -> (Vec<Call>, Vec<String>) {
        let spec = |name: &&str| ToolSpec {
            name: (*name).into(),
            description: String::new(),
            parameters: "{}".into(),
        };
        let tools: Vec<ToolSpec> = tools.iter().map(spec).collect();
        let mut assembly = Assembly::new(&tools);
        let mut events = Vec::new();
        let mut sink = |event: ModelEvent| {
            events.push(match event {
                ModelEvent::ToolCallStart { index, name } => format!("{index} {name}"),
                ModelEvent::ToolCallDelta { index, arguments } => format!("{index}+{arguments}"),
                other => format!("{other:?}"),
            });
        };
        for delta in deltas {
            let text = delta.to_string();
            let delta: CallDelta<'_> = serde_json::from_str(&text).unwrap();
            assembly.push(&delta, &mut sink);
        }
        let calls = assembly.finish(&mut sink);
        (calls.into_iter().map(|call| (call.id, call.name, call.arguments)).collect(), events)
    }

    #[track_caller]
    fn check(deltas: &[Value], want: &[(&str, &str, &str)]) {
        let (calls, _) = assemble(&["read", "ls", "read_file"], deltas);
        let want = want.iter().map(|(i, n, a)| ((*i).into(), (*n).into(), (*a).into()));
        assert_eq!(calls, want.collect::<Vec<Call>>());
    }

    #[test]
    fn the_usual_form_and_its_events() {
        let head = json!({"name": "read", "arguments": ""});
        let deltas = [
            json!({"index": 0, "id": "c1", "type": "function", "function": head}),
            json!({"index": 0, "function": {"arguments": "{\"path\":"}}),
            json!({"index": 1, "id": "c2", "function": {"name": "ls", "arguments": ""}}),
            json!({"index": 0, "function": {"arguments": "\"a\"}"}}),
        ];
        let (calls, events) = assemble(&["read", "ls"], &deltas);
        assert_eq!(calls.len(), 2);
        assert_eq!(events, ["0 read", "0+{\"path\":", "1 ls", "0+\"a\"}"]);
        check(&deltas, &[("c1", "read", "{\"path\":\"a\"}"), ("c2", "ls", "")]);
    }

    #[test]
    fn opaque_fields_are_kept_as_they_came_if_they_are_whole() {
        let extra = |content: &str| {
            let mut assembly = Assembly::new(&[]);
            let text = format!(
                r#"{{"index":0,"id":"c","function":{{"name":"ls"}},"extra_content":{content}}}"#
            );
            assembly.push(&serde_json::from_str(&text).unwrap(), &mut |_| ());
            assembly.finish(&mut |_| ())[0].extra.as_ref().map(|extra| extra.get().to_owned())
        };
        let kept = r#"{"extra_content":{ "s": "\u00e9" }}"#;
        assert_eq!(extra(r#"{ "s": "\u00e9" }"#).as_deref(), Some(kept));
        assert_eq!(extra("null"), None);
        assert_eq!(extra(r#"{"s\ud800":1}"#), None);
    }

    #[test]
    fn calls_without_index_stay_apart() {
        let first = json!({"id":"c1","function":{"name":"read","arguments":"{\"path\":\"a\"}"}});
        let second = json!({"id":"c2","function":{"name":"read","arguments":"{\"path\":"}});
        let rest = json!({"function":{"arguments":"\"b\"}"}});
        let want = [("c1", "read", "{\"path\":\"a\"}"), ("c2", "read", "{\"path\":\"b\"}")];
        check(&[first.clone(), second.clone(), rest.clone()], &want);
        let mut indexed = first.clone();
        indexed["index"] = json!(0);
        check(&[indexed, second.clone(), rest.clone()], &want);
        let nulls = [first, second, rest].map(|mut delta| {
            delta["index"] = Value::Null;
            delta
        });
        check(&nulls, &want);
    }

    #[test]
    fn one_index_for_all_calls_is_told_apart_by_id() {
        check(
            &[
                json!({"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}),
                json!({"index":0,"id":"b","function":{"name":"read","arguments":"{\"p\":2}"}}),
                json!({"index":0,"id":"c","function":{"name":"ls","arguments":""}}),
                json!({"index":0,"id":"c","function":{"arguments":"{}"}}),
            ],
            &[("a", "read", "{\"p\":1}"), ("b", "read", "{\"p\":2}"), ("c", "ls", "{}")],
        );
    }

    #[test]
    fn a_new_id_on_every_delta_does_not_make_new_calls() {
        let mut deltas =
            vec![json!({"index":0,"id":"r0","function":{"name":"read","arguments":""}})];
        for (number, piece) in "{\"path\":\"a\"}".chars().enumerate() {
            let id = format!("r{}", number + 1);
            deltas.push(json!({"index":0,"id":id,"function":{"name":"","arguments":piece}}));
        }
        check(&deltas, &[("r0", "read", "{\"path\":\"a\"}")]);
    }

    #[test]
    fn a_repeated_name_is_set_once() {
        let piece = |id: Value, name: &str, arguments: &str| json!({"index": 0, "id": id, "function": {"name": name, "arguments": arguments}});
        let want = [("c1", "read", "{\"path\":\"a\"}")];
        let full = ["{\"pa", "th\":", "\"a\"}"].map(|part| piece(json!("c1"), "read", part));
        check(&full, &want);
        let late = [
            piece(json!("c1"), "", ""),
            piece(Value::Null, "read", "{\"path\":"),
            piece(json!(""), "read", "\"a\"}"),
        ];
        check(&late, &want);
    }

    #[test]
    fn a_split_name_is_joined_only_to_a_tool_that_exists() {
        let piece = |name: &str| json!({"index": 0, "id": "c", "function": {"name": name}});
        let (calls, events) = assemble(&["read_file"], &[piece("read_"), piece("file")]);
        assert_eq!(calls, [("c".into(), "read_file".into(), String::new())]);
        assert_eq!(events, ["0 read_file"]);
        let (calls, _) = assemble(&["ls"], &[piece("thinking"), piece("ls")]);
        assert_eq!(calls[0].1, "ls");
        let (calls, _) = assemble(&["ls"], &[piece("foo"), piece("bar")]);
        assert_eq!(calls[0].1, "foo");
    }

    #[test]
    fn a_name_in_other_case_or_behind_a_namespace_is_the_tool_of_that_name() {
        let called = |name: &str, tools: &[&str]| {
            let delta = json!({"index": 0, "id": "c", "function": {"name": name}});
            assemble(tools, &[delta]).0[0].1.clone()
        };
        for name in ["Read", "READ", "functions.read", "default_api:Read", "tools/read"] {
            assert_eq!(called(name, &["ls", "read"]), "read");
        }
        for name in ["readme", "read.", "re.ad", "nosuch"] {
            assert_eq!(called(name, &["ls", "read"]), name);
        }
        assert_eq!(called("READ", &["read", "Read"]), "READ");
        assert_eq!(called("Read", &["read", "Read"]), "Read");
    }

    #[test]
    fn a_late_name_and_missing_ids_do_no_harm() {
        check(
            &[
                json!({"index":0,"id":"c1","function":{"arguments":"{\"path\":"}}),
                json!({"index":0,"function":{"name":"read","arguments":"\"a\"}"}}),
            ],
            &[("c1", "read", "{\"path\":\"a\"}")],
        );
        check(
            &[
                json!({"id":"","function":{"name":"ls","arguments":"{}"}}),
                json!({"function":{"name":"ls","arguments":"{\"p\":1}"}}),
            ],
            &[("", "ls", "{}"), ("", "ls", "{\"p\":1}")],
        );
        check(
            &[
                json!({"id":"c","function":{"name":"read","arguments":"{"}}),
                json!({"index":0,"function":{"arguments":"}"}}),
            ],
            &[("c", "read", "{}")],
        );
    }

    #[test]
    fn one_id_for_calls_of_different_indexes_is_two_calls() {
        check(
            &[
                json!({"index":0,"id":"x","function":{"name":"ls","arguments":"{}"}}),
                json!({"index":1,"id":"x","function":{"name":"ls","arguments":"{\"p\":1}"}}),
                json!({"index":1,"id":"x","function":{"arguments":" "}}),
            ],
            &[("x", "ls", "{}"), ("x", "ls", "{\"p\":1} ")],
        );
    }

    #[test]
    fn arguments_sent_twice_count_once_and_several_objects_are_several_calls() {
        let whole = json!({"index":0,"id":"c","function":{"name":"ls","arguments":"{\"p\":1}"}});
        let again = json!({"index":0,"function":{"arguments":"{\"p\":1}"}});
        check(&[whole.clone(), again], &[("c", "ls", "{\"p\":1}")]);
        let other = json!({"index":0,"function":{"arguments":"{\"p\":2}"}});
        check(&[whole.clone(), other], &[("c", "ls", "{\"p\":1}"), ("", "ls", "{\"p\":2}")]);
        let broken = json!({"index":0,"function":{"arguments":"{\"p\":"}});
        check(&[whole, broken], &[("c", "ls", "{\"p\":1}{\"p\":")]);
        let unknown = json!({"index":0,"id":"c","function":{"name":"x","arguments":"{}{\"p\":1}"}});
        check(&[unknown], &[("c", "x", "{}{\"p\":1}")]);
    }

    #[test]
    fn empty_arguments_in_every_form_are_empty() {
        for function in [
            json!({"name": "ls", "arguments": ""}),
            json!({"name": "ls", "arguments": "  "}),
            json!({"name": "ls"}),
            json!({"name": "ls", "arguments": null}),
        ] {
            check(&[json!({"index": 0, "id": "c", "function": function})], &[("c", "ls", "")]);
        }
    }
}

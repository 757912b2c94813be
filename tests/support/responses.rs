//! Composes the event streams of the Responses API, for an HTTP body or as WebSocket messages.
//!
//! The ids of items tell where they belong: `fc_2_1n0` is item 1 of response 2 and needs the
//! reasoning item 0 of it, as the vendor remembers it. [`needs`] reads that.

use serde_json::{Value, json};

use crate::support::server::Reply;

enum Piece {
    Event(String),
    /// No event of its own: a comment, a broken line.
    Bytes(Vec<u8>),
}

/// A stream under construction: one method per kind of event or item, in the order of the answer.
pub struct Responses {
    number: u64,
    model: String,
    pieces: Vec<Piece>,
    sequence: u64,
    /// Items that are done.
    output: Vec<Value>,
    output_index: usize,
    /// The last reasoning item, while nothing that it led to has come.
    leads: Option<usize>,
    usage: Value,
    /// What `response.output` holds at the end; `None`: what was done.
    output_at_end: Option<Value>,
}

/// The reasoning item that the item of this id is sent back with.
pub fn needs(id: &str) -> Option<String> {
    let (response, place) = id.split_once('_')?.1.rsplit_once('_')?;
    let (_, reasoning) = place.split_once('n')?;
    Some(format!("rs_{response}_{reasoning}"))
}

fn halves(text: &str) -> [&str; 2] {
    let mut half = text.len() / 2;
    while !text.is_char_boundary(half) {
        half -= 1;
    }
    [&text[..half], &text[half..]]
}

impl Responses {
    /// A stream that has begun, of the response `resp_1`.
    pub fn new() -> Responses {
        Responses::numbered(1)
    }

    /// A stream that has begun, of the response `resp_{number}`.
    pub fn numbered(number: u64) -> Responses {
        let bare = Responses::bare(number);
        let response = bare.response("in_progress");
        bare.event(&json!({"type": "response.created", "response": response}))
            .event(&json!({"type": "response.in_progress", "response": response}))
    }

    /// A stream of which nothing has come.
    pub fn bare(number: u64) -> Responses {
        Responses {
            number,
            model: "m".into(),
            pieces: Vec::new(),
            sequence: 0,
            output: Vec::new(),
            output_index: 0,
            leads: None,
            usage: usage(10, 0, 2, 0),
            output_at_end: None,
        }
    }

    pub fn id(&self) -> String {
        format!("resp_{}", self.number)
    }

    /// The items that are done, as a client gets them.
    pub fn output(&self) -> &[Value] {
        &self.output
    }

    fn response(&self, status: &str) -> Value {
        json!({
            "id": self.id(), "object": "response", "created_at": 1, "status": status,
            "model": self.model, "output": [], "usage": null, "error": null,
            "incomplete_details": null, "store": false, "service_tier": "default",
        })
    }

    /// Any event; it gets the next sequence number.
    #[must_use]
    pub fn event(mut self, event: &Value) -> Responses {
        let mut event = event.clone();
        if let Value::Object(fields) = &mut event {
            fields.insert("sequence_number".into(), self.sequence.into());
            self.sequence += 1;
        }
        self.pieces.push(Piece::Event(event.to_string()));
        self
    }

    /// Any data of an event as it is.
    #[must_use]
    pub fn data(mut self, data: &str) -> Responses {
        self.pieces.push(Piece::Event(data.into()));
        self
    }

    /// Any bytes of an HTTP body as they are.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Responses {
        self.pieces.push(Piece::Bytes(bytes.to_vec()));
        self
    }

    /// The id of the item that comes next.
    pub fn item_id(&self, prefix: &str) -> String {
        let place = format!("{prefix}_{}_{}", self.number, self.output_index);
        match self.leads {
            Some(reasoning) if prefix != "rs" => format!("{place}n{reasoning}"),
            _ => place,
        }
    }

    /// An item begins at this place of the output.
    #[must_use]
    pub fn added(self, output_index: usize, item: &Value) -> Responses {
        self.event(&json!({
            "type": "response.output_item.added", "output_index": output_index, "item": item,
        }))
    }

    /// The item at this place of the output is final.
    #[must_use]
    pub fn done_item(mut self, output_index: usize, item: &Value) -> Responses {
        self.leads = (item["type"] == "reasoning").then_some(output_index);
        self.output.push(item.clone());
        self.output_index = self.output_index.max(output_index + 1);
        self.event(&json!({
            "type": "response.output_item.done", "output_index": output_index, "item": item,
        }))
    }

    /// Reasoning of one paragraph that can be sent back.
    #[must_use]
    pub fn reasoning(self, summary: &str) -> Responses {
        let encrypted = format!("gAAAA-{}", self.item_id("rs"));
        self.reasoning_item(&[summary], Some(&encrypted))
    }

    /// Reasoning in paragraphs, perhaps none; without what is encrypted it cannot be sent back.
    #[must_use]
    pub fn reasoning_item(self, summary: &[&str], encrypted: Option<&str>) -> Responses {
        let (id, index) = (self.item_id("rs"), self.output_index);
        // What is encrypted is whole only at the end.
        let mut item = json!({"id": id, "type": "reasoning", "summary": []});
        let mut stream = self.added(index, &item);
        for (place, text) in summary.iter().enumerate() {
            let of = |kind: &str| {
                json!({
                    "type": format!("response.reasoning_summary_{kind}"), "item_id": id,
                    "output_index": index, "summary_index": place,
                })
            };
            let part = |text: &str| json!({"type": "summary_text", "text": text});
            stream = stream.event(&with(of("part.added"), "part", part("")));
            for half in halves(text) {
                stream = stream.event(&with(of("text.delta"), "delta", half));
            }
            stream = stream.event(&with(of("text.done"), "text", *text));
            stream = stream.event(&with(of("part.done"), "part", part(text)));
        }
        let parts = summary.iter().map(|text| json!({"type": "summary_text", "text": text}));
        item["summary"] = parts.collect();
        if let Some(encrypted) = encrypted {
            item["encrypted_content"] = encrypted.into();
        }
        stream.done_item(index, &item)
    }

    #[must_use]
    pub fn message(self, text: &str) -> Responses {
        self.message_item(text, None)
    }

    /// A message that says what it is for: `commentary` or `final_answer`.
    #[must_use]
    pub fn message_item(self, text: &str, phase: Option<&str>) -> Responses {
        self.said("output_text", text, phase)
    }

    #[must_use]
    pub fn refusal(self, text: &str) -> Responses {
        self.said("refusal", text, None)
    }

    fn said(self, kind: &str, text: &str, phase: Option<&str>) -> Responses {
        let (id, index) = (self.item_id("msg"), self.output_index);
        let field = if kind == "refusal" { "refusal" } else { "text" };
        let mut item = json!({
            "id": id, "type": "message", "role": "assistant", "status": "in_progress",
            "content": [],
        });
        if let Some(phase) = phase {
            item["phase"] = phase.into();
        }
        let part = |text: &str| {
            let mut part = json!({"type": kind, field: text});
            if kind == "output_text" {
                part["annotations"] = json!([]);
                part["logprobs"] = json!([]);
            }
            part
        };
        let of = |event: &str| {
            json!({
                "type": event, "item_id": id, "output_index": index, "content_index": 0,
            })
        };
        let mut stream = self.added(index, &item).event(&with(
            of("response.content_part.added"),
            "part",
            part(""),
        ));
        for half in halves(text) {
            stream = stream.event(&with(of(&format!("response.{kind}.delta")), "delta", half));
        }
        stream = stream
            .event(&with(of(&format!("response.{kind}.done")), field, text))
            .event(&with(of("response.content_part.done"), "part", part(text)));
        item["content"] = json!([part(text)]);
        item["status"] = "completed".into();
        stream.done_item(index, &item)
    }

    /// A whole call: its head, the arguments in two pieces, its end.
    #[must_use]
    pub fn call(self, call_id: &str, name: &str, arguments: &str) -> Responses {
        let (index, leads) = (self.output_index, self.leads);
        let (stream, item) = self.call_begins(index, leads, call_id, name);
        let mut stream = stream;
        for half in halves(arguments) {
            stream = stream.call_delta(&item, index, half);
        }
        stream.call_ends(item, index, arguments)
    }

    /// Calls whose arguments come in turns.
    #[must_use]
    pub fn calls_in_turns(self, calls: &[(&str, &str, &str)]) -> Responses {
        let (first, leads) = (self.output_index, self.leads);
        let mut stream = self;
        let mut items = Vec::new();
        for (place, (call_id, name, _)) in calls.iter().enumerate() {
            let item;
            stream.output_index = first + place;
            (stream, item) = stream.call_begins(first + place, leads, call_id, name);
            items.push(item);
        }
        for half in 0..2 {
            for (place, (_, _, arguments)) in calls.iter().enumerate() {
                let piece = halves(arguments)[half];
                stream = stream.call_delta(&items[place], first + place, piece);
            }
        }
        for (place, item) in items.into_iter().enumerate() {
            stream = stream.call_ends(item, first + place, calls[place].2);
        }
        stream
    }

    fn call_begins(
        mut self,
        index: usize,
        leads: Option<usize>,
        call_id: &str,
        name: &str,
    ) -> (Responses, Value) {
        self.leads = leads;
        let item = json!({
            "id": self.item_id("fc"), "type": "function_call", "status": "in_progress",
            "call_id": call_id, "name": name, "arguments": "",
        });
        (self.added(index, &item), item)
    }

    fn call_delta(self, item: &Value, index: usize, piece: &str) -> Responses {
        self.event(&json!({
            "type": "response.function_call_arguments.delta", "item_id": item["id"],
            "output_index": index, "delta": piece,
        }))
    }

    fn call_ends(self, mut item: Value, index: usize, arguments: &str) -> Responses {
        item["arguments"] = arguments.into();
        item["status"] = "completed".into();
        self.event(&json!({
            "type": "response.function_call_arguments.done", "item_id": item["id"],
            "output_index": index, "name": item["name"], "arguments": arguments,
        }))
        .done_item(index, &item)
    }

    /// A call of a tool that takes plain text.
    #[must_use]
    pub fn custom_call(self, call_id: &str, name: &str, input: &str) -> Responses {
        let (id, index) = (self.item_id("ctc"), self.output_index);
        let mut item = json!({
            "id": id, "type": "custom_tool_call", "status": "in_progress",
            "call_id": call_id, "name": name, "input": "",
        });
        let of = |kind: &str| {
            json!({
                "type": format!("response.custom_tool_call_input.{kind}"), "item_id": id,
                "output_index": index,
            })
        };
        let mut stream = self.added(index, &item);
        for half in halves(input) {
            stream = stream.event(&with(of("delta"), "delta", half));
        }
        stream = stream.event(&with(of("done"), "input", input));
        item["input"] = input.into();
        item["status"] = "completed".into();
        stream.done_item(index, &item)
    }

    #[must_use]
    pub fn usage(mut self, input: u64, cached: u64, output: u64, reasoning: u64) -> Responses {
        self.usage = usage(input, cached, output, reasoning);
        self
    }

    #[must_use]
    pub fn without_usage(mut self) -> Responses {
        self.usage = Value::Null;
        self
    }

    /// The end names no items, as one back end does it.
    #[must_use]
    pub fn empty_output_at_end(mut self) -> Responses {
        self.output_at_end = Some(json!([]));
        self
    }

    fn end(self, kind: &str, change: impl FnOnce(&mut Value)) -> Responses {
        let status = kind.trim_start_matches("response.");
        let mut response = self.response(status);
        response["output"] =
            self.output_at_end.clone().unwrap_or_else(|| self.output.clone().into());
        response["usage"] = self.usage.clone();
        change(&mut response);
        self.event(&json!({"type": kind, "response": response}))
    }

    #[must_use]
    pub fn completed(self) -> Responses {
        self.end("response.completed", |_| {})
    }

    /// Cut by `max_output_tokens`, or withheld by `content_filter`.
    #[must_use]
    pub fn incomplete(self, reason: &str) -> Responses {
        self.end("response.incomplete", |response| {
            response["incomplete_details"] = json!({"reason": reason});
        })
    }

    #[must_use]
    pub fn failed(self, code: &str, message: &str) -> Responses {
        self.without_usage().end("response.failed", |response| {
            response["error"] = json!({"code": code, "message": message});
        })
    }

    /// An error as event streams have it.
    #[must_use]
    pub fn error(self, code: &str, message: &str) -> Responses {
        self.event(&json!({"type": "error", "code": code, "message": message, "param": null}))
    }

    pub fn into_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in self.pieces {
            match piece {
                Piece::Bytes(some) => bytes.extend(some),
                Piece::Event(data) => {
                    let event: Value = serde_json::from_str(&data).unwrap_or_default();
                    if let Some(kind) = event["type"].as_str() {
                        bytes.extend(format!("event: {kind}\n").bytes());
                    }
                    bytes.extend(format!("data: {data}\n\n").bytes());
                }
            }
        }
        bytes
    }

    pub fn reply(self) -> Reply {
        Reply::sse(self.into_bytes())
    }

    /// The same events as WebSocket messages.
    pub fn frames(self) -> Vec<String> {
        let events = self.pieces.into_iter().filter_map(|piece| match piece {
            Piece::Event(data) => Some(data),
            Piece::Bytes(_) => None,
        });
        events.collect()
    }

    /// The whole usual answer.
    pub fn answer(text: &str) -> Responses {
        Responses::new().message(text).completed()
    }

    /// The whole usual request for tools, `(call_id, name, arguments)` each.
    pub fn calls(calls: &[(&str, &str, &str)]) -> Responses {
        let add =
            |stream: Responses, call: &(&str, &str, &str)| stream.call(call.0, call.1, call.2);
        calls.iter().fold(Responses::new(), add).completed()
    }
}

/// An error as WebSocket messages have it.
pub fn error_message(status: u16, code: &str, message: &str, headers: &[(&str, &str)]) -> String {
    let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
    let mut event = json!({
        "type": "error", "status": status,
        "error": {"type": kind, "code": code, "message": message, "param": null},
    });
    if !headers.is_empty() {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
        event["headers"] = Value::Object(headers.collect());
    }
    event.to_string()
}

fn with(mut event: Value, field: &str, value: impl Into<Value>) -> Value {
    event[field] = value.into();
    event
}

fn usage(input: u64, cached: u64, output: u64, reasoning: u64) -> Value {
    json!({
        "input_tokens": input, "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output, "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": input + output,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(stream: Responses) -> Vec<Value> {
        stream.frames().iter().map(|frame| serde_json::from_str(frame).unwrap()).collect()
    }

    #[test]
    fn a_body_and_the_messages_hold_the_same_events_numbered_in_order() {
        let stream = || Responses::new().reasoning("hm").call("c1", "ls", "{}").completed();
        let body = String::from_utf8(stream().into_bytes()).unwrap();
        let of_body: Vec<&str> =
            body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(of_body, stream().frames());
        for (number, event) in events(stream()).iter().enumerate() {
            assert_eq!(event["sequence_number"], number);
            assert!(body.contains(&format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )));
        }
    }

    #[test]
    fn items_that_follow_reasoning_name_it() {
        let stream = Responses::numbered(7)
            .reasoning("hm")
            .calls_in_turns(&[("a", "ls", "{}"), ("b", "ls", "{}")])
            .message("so")
            .completed();
        let ids: Vec<String> =
            stream.output().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids, ["rs_7_0", "fc_7_1n0", "fc_7_2n0", "msg_7_3"]);
        assert_eq!(needs("fc_7_2n0").as_deref(), Some("rs_7_0"));
        assert_eq!(needs("msg_7_3"), None);
        let events = events(stream);
        assert_eq!(events.last().unwrap()["response"]["output"].as_array().unwrap().len(), 4);
        let places: Vec<_> = events
            .iter()
            .filter(|event| event["type"] == "response.output_item.done")
            .map(|event| event["output_index"].clone())
            .collect();
        assert_eq!(places, [0, 1, 2, 3]);
    }
}

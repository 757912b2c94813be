//! Writes the body of a Responses request.
//!
//! Keys have one fixed order and the input comes last, so that a longer conversation continues
//! the bytes of a shorter one. Items carry no ids: servers that keep nothing would look for what
//! they name. State of the model goes back byte for byte, and only to the server that made it.

use std::collections::HashSet;

use serde_json::Value;

use crate::model::{Message, Part, Request, Role, ToolCall};
use crate::provider::openai::request::{
    Json, NO_OUTPUT, NO_RESULT, find_result, fnv1a, is_sound_object, joined,
};

/// Longest id of a call, and longest cache key.
const ID_BYTES_MAX: usize = 64;
/// A backend that wants instructions gets these where there are none.
const INSTRUCTIONS: &str = "You are a coding agent.";

/// What is known of one server's taste. Starts from its address, and is corrected by its
/// refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// The backend of ChatGPT plans: knows fewer fields, and wants some that others do not.
    pub plan: bool,
    pub no_effort: bool,
    pub no_summary: bool,
    pub no_include: bool,
    pub no_cache_key: bool,
    pub no_token_limit: bool,
    /// State that it made earlier is not taken back.
    pub no_state: bool,
}

/// How the body travels.
#[derive(Debug, Clone, Copy)]
pub enum Form<'r> {
    Http,
    /// A WebSocket message with the whole input.
    Message,
    /// A WebSocket message behind the response of this id, with the items from this one on.
    Continuation {
        response_id: &'r str,
        from: usize,
    },
}

/// The input of one request as JSON items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Input {
    items: Vec<String>,
}

impl Input {
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// How many items stand before what is new, when this input begins with `sent` and then
    /// `answered`.
    pub fn behind(&self, sent: &Input, answered: &Input) -> Option<usize> {
        let known = sent.items.iter().chain(&answered.items);
        let count = sent.len() + answered.len();
        let same = count < self.len() && self.items.iter().zip(known).all(|(a, b)| a == b);
        same.then_some(count)
    }
}

/// Everything before the input: what must be the same for a continuation.
pub fn head(request: &Request<'_>, dialect: Dialect) -> String {
    let mut out = Json(Vec::with_capacity(4096));
    out.raw("\"model\":");
    out.string(request.model);
    out.raw(",\"store\":false");
    let instructions = request.system.iter().map(Message::joined_text);
    let instructions: Vec<_> = instructions.filter(|text| !text.trim().is_empty()).collect();
    if !instructions.is_empty() || dialect.plan {
        out.raw(",\"instructions\":");
        let text = instructions.join("\n\n");
        out.string(if text.is_empty() { INSTRUCTIONS } else { &text });
    }
    if let Some(tokens) = request.max_output_tokens
        && !dialect.plan
        && !dialect.no_token_limit
    {
        out.raw(&format!(",\"max_output_tokens\":{tokens}"));
    }
    let effort = request.reasoning_effort.filter(|_| !dialect.no_effort);
    let summary = request.reasoning_summary.filter(|_| !dialect.no_summary);
    if effort.is_some() || summary.is_some() {
        out.raw(",\"reasoning\":{");
        let mut comma = "";
        for (name, value) in [("effort", effort), ("summary", summary)] {
            if let Some(value) = value {
                out.raw(&format!("{comma}\"{name}\":"));
                out.string(value);
                comma = ",";
            }
        }
        out.raw("}");
    }
    if !dialect.no_include {
        out.raw(",\"include\":[\"reasoning.encrypted_content\"]");
    }
    if !request.session_id.is_empty() && !dialect.no_cache_key {
        out.raw(",\"prompt_cache_key\":");
        out.string(request.session_id.get(..ID_BYTES_MAX).unwrap_or(request.session_id));
    }
    if !request.tools.is_empty() {
        if dialect.plan {
            out.raw(",\"tool_choice\":\"auto\",\"parallel_tool_calls\":true");
        }
        out.raw(",\"tools\":[");
        for (idx, tool) in request.tools.iter().enumerate() {
            out.raw(if idx == 0 { "" } else { "," });
            out.raw("{\"type\":\"function\",\"name\":");
            out.string(&tool.name);
            out.raw(",\"description\":");
            out.string(&tool.description);
            out.raw(",\"strict\":");
            out.raw(if dialect.plan { "null" } else { "false" });
            out.raw(",\"parameters\":");
            out.raw(&tool.parameters);
            out.raw("}");
        }
        out.raw("]");
    }
    String::from_utf8(out.0).unwrap_or_default()
}

/// The whole body.
pub fn body(head: &str, input: &Input, form: Form<'_>) -> String {
    let mut body = String::with_capacity(head.len() + 256);
    body.push('{');
    let mut from = 0;
    if !matches!(form, Form::Http) {
        body.push_str("\"type\":\"response.create\",");
    }
    body.push_str(head);
    match form {
        Form::Http => body.push_str(",\"stream\":true"),
        Form::Message => {}
        Form::Continuation { response_id, from: begin } => {
            from = begin;
            let id = serde_json::to_string(response_id).unwrap_or_default();
            body.push_str(",\"previous_response_id\":");
            body.push_str(&id);
        }
    }
    body.push_str(",\"input\":[");
    for (idx, item) in input.items[from..].iter().enumerate() {
        body.push_str(if idx == 0 { "" } else { "," });
        body.push_str(item);
    }
    body.push_str("]}");
    body
}

/// The conversation as input items. `owner` is whose state goes back.
pub fn input(request: &Request<'_>, owner: &str, dialect: Dialect) -> Input {
    let mut history = History::new(request.model, owner, dialect);
    for (idx, message) in request.messages.iter().enumerate() {
        match message.role {
            // Instructions that come late are the user's as far as templates know.
            Role::User | Role::System => history.user(message),
            Role::Assistant => {
                history.assistant(message);
                history.results(message, &request.messages[idx + 1..]);
            }
            Role::Tool => {} // written with its call; without a call it is dropped
        }
    }
    history.input
}

/// The items of an answer, as they will stand in later requests.
pub fn answered(message: &Message, model: &str, owner: &str, dialect: Dialect) -> Input {
    let mut history = History::new(model, owner, dialect);
    history.assistant(message);
    history.input
}

struct History<'r> {
    input: Input,
    model: &'r str,
    owner: &'r str,
    dialect: Dialect,
    /// Call ids of the message being written, as the server gets them.
    ids: Vec<String>,
    used: HashSet<String>,
}

impl<'r> History<'r> {
    fn new(model: &'r str, owner: &'r str, dialect: Dialect) -> History<'r> {
        let (input, ids, used) = (Input::default(), Vec::new(), HashSet::new());
        History { input, model, owner, dialect, ids, used }
    }

    fn push(&mut self, item: Json) {
        self.input.items.push(String::from_utf8(item.0).unwrap_or_default());
    }

    fn user(&mut self, message: &Message) {
        let text = joined(message);
        let mut out = Json(Vec::new());
        out.raw("{\"type\":\"message\",\"role\":\"user\",\"content\":[");
        let mut comma = "";
        if !text.trim().is_empty() {
            out.raw("{\"type\":\"input_text\",\"text\":");
            out.string(&text);
            out.raw("}");
            comma = ",";
        }
        for part in &message.parts {
            if let Part::Image { media_type, data } = part
                && !data.is_empty()
            {
                out.raw(comma);
                out.raw("{\"type\":\"input_image\",\"detail\":\"auto\",\"image_url\":");
                out.string(&format!("data:{media_type};base64,{data}"));
                out.raw("}");
                comma = ",";
            }
        }
        if !comma.is_empty() {
            out.raw("]}");
            self.push(out);
        }
    }

    fn assistant(&mut self, message: &Message) {
        self.ids.clear();
        let says = |part: &Part| match part {
            Part::Text(text) => !text.trim().is_empty(),
            Part::ToolCall(_) => true,
            _ => false,
        };
        let mut phase = String::new();
        for (idx, part) in message.parts.iter().enumerate() {
            match part {
                Part::Opaque(opaque) if self.is_own(opaque) => {
                    let item: Value = serde_json::from_str(opaque.item.get()).unwrap_or_default();
                    let is_message = item["type"] == "message";
                    if is_message {
                        item["phase"].as_str().unwrap_or_default().clone_into(&mut phase);
                    } else if item["type"] == "reasoning"
                        && item["encrypted_content"].is_string()
                        && message.parts[idx + 1..].iter().any(says)
                    {
                        self.input.items.push(opaque.item.get().to_owned());
                    }
                }
                Part::Text(text) if !text.trim().is_empty() => {
                    self.text(text, &std::mem::take(&mut phase));
                }
                Part::ToolCall(call) => self.call(call),
                _ => {}
            }
        }
    }

    fn is_own(&self, opaque: &crate::model::Opaque) -> bool {
        // A log of the Go etch names neither server nor model.
        let foreign = opaque.provider == "openai" && opaque.model.is_empty();
        let own = opaque.provider == self.owner && opaque.model == self.model;
        (own || (foreign && super::is_vendor(self.owner))) && !self.dialect.no_state
    }

    fn text(&mut self, text: &str, phase: &str) {
        let mut out = Json(Vec::new());
        out.raw("{\"type\":\"message\",\"role\":\"assistant\",");
        if !phase.is_empty() {
            out.raw("\"phase\":");
            out.string(phase);
            out.raw(",");
        }
        out.raw("\"content\":[{\"type\":\"output_text\",\"text\":");
        out.string(text);
        out.raw(",\"annotations\":[]}]}");
        self.push(out);
    }

    fn call(&mut self, call: &ToolCall) {
        let id = self.wire_id(&call.id);
        let mut out = Json(Vec::new());
        out.raw("{\"type\":\"function_call\",\"call_id\":");
        out.string(&id);
        out.raw(",\"name\":");
        out.string(&wire_name(&call.name));
        out.raw(",\"arguments\":");
        // What the model wrote wrongly is told by the result.
        out.string(if is_sound_object(&call.arguments) { &call.arguments } else { "{}" });
        out.raw("}");
        self.push(out);
        self.ids.push(id);
    }

    fn results(&mut self, message: &Message, later: &[Message]) {
        for (call, id) in message.calls().zip(std::mem::take(&mut self.ids)) {
            let text = find_result(&call.id, later).map_or(NO_RESULT, |result| &result.text);
            let mut out = Json(Vec::new());
            out.raw("{\"type\":\"function_call_output\",\"call_id\":");
            out.string(&id);
            out.raw(",\"output\":");
            out.string(if text.trim().is_empty() { NO_OUTPUT } else { text });
            out.raw("}");
            self.push(out);
        }
    }

    /// The id as it is where a server can take it, else one made of it.
    fn wire_id(&mut self, id: &str) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let fits = (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(plain);
        let mut written = id.to_owned();
        let mut round = 0;
        while (round == 0 && !fits) || self.used.contains(&written) {
            round += 1;
            written = format!("call_{:016x}", fnv1a(id.as_bytes(), round));
        }
        self.used.insert(written.clone());
        written
    }
}

/// The name as it is where a tool can have it. A model calls tools that cannot be, and the vendor
/// then refuses every later request.
fn wire_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().take(ID_BYTES_MAX).map(plain).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

//! Writes the body of a Chat Completions request.
//!
//! The narrow shape that every compatible server takes: no field that the request does not need.
//! Keys have one fixed order, the messages come last, and a message is written the same way in
//! every request: a longer conversation continues the bytes of a shorter one. A message depends
//! on what stands after it only where strict servers force it (a call without a result, the
//! first reasoning that must be sent back).

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::model::{Message, Part, Reasoning, Request, Role, ToolCall, ToolResult};
use crate::provider::openai::think;

/// Longest id of a call that every server takes.
const ID_CHARS_MAX: usize = 40;
pub(super) const NO_RESULT: &str = "no result: the call was interrupted";
pub(super) const NO_OUTPUT: &str = "(no tool output)";

/// When reasoning text goes back to the server that sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Echo {
    /// When the conversation holds reasoning together with calls: the servers that then need
    /// it refuse its absence, others that sent it do not mind.
    #[default]
    Auto,
    Always,
    Never,
}

/// What is known of one server's taste. Starts from its address, and is corrected by its
/// refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// `max_completion_tokens` in place of `max_tokens`.
    pub new_token_limit: bool,
    /// Its other name was tried.
    pub token_limit_flipped: bool,
    pub no_token_limit: bool,
    pub no_stream_options: bool,
    pub no_effort: bool,
    /// The vendor's own cache key; unknown to compatible servers.
    pub cache_key: bool,
    pub echo: Echo,
    /// Call ids of exactly nine letters and digits, and no user message right after a result.
    pub short_ids: bool,
}

/// The whole body. `provider` is who the answer will be attributed to.
pub fn write(request: &Request<'_>, provider: &str, dialect: Dialect) -> Vec<u8> {
    let mut out = Json(Vec::with_capacity(4096));
    out.raw("{\"model\":");
    out.string(request.model);
    out.raw(",\"stream\":true");
    if !dialect.no_stream_options {
        out.raw(",\"stream_options\":{\"include_usage\":true}");
    }
    if let Some(tokens) = request.max_output_tokens.filter(|_| !dialect.no_token_limit) {
        let name = if dialect.new_token_limit { "max_completion_tokens" } else { "max_tokens" };
        out.raw(&format!(",\"{name}\":{tokens}"));
    }
    if let Some(effort) = request.reasoning_effort.filter(|_| !dialect.no_effort) {
        out.raw(",\"reasoning_effort\":");
        out.string(effort);
    }
    if dialect.cache_key && !request.session_id.is_empty() {
        out.raw(",\"prompt_cache_key\":");
        out.string(request.session_id.get(..64).unwrap_or(request.session_id));
    }
    if !request.tools.is_empty() {
        out.raw(",\"tools\":[");
        for (idx, tool) in request.tools.iter().enumerate() {
            out.raw(if idx == 0 { "" } else { "," });
            out.raw("{\"type\":\"function\",\"function\":{\"name\":");
            out.string(&tool.name);
            out.raw(",\"description\":");
            out.string(&tool.description);
            out.raw(",\"parameters\":");
            out.raw(&tool.parameters);
            out.raw("}}");
        }
        out.raw("]");
    }
    out.raw(",\"messages\":[");
    let mut history = History {
        out,
        is_first: true,
        ids: HashSet::new(),
        dialect,
        echo_field: echo_field(request, provider, dialect.echo),
        provider,
        model: request.model,
        after_result: false,
    };
    history.system(request.system);
    history.conversation(request.messages);
    history.out.raw("]}");
    history.out.0
}

pub(super) struct Json(pub(super) Vec<u8>);

impl Json {
    pub(super) fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn string(&mut self, text: &str) {
        serde_json::to_writer(&mut self.0, text).expect("writing text to memory cannot fail");
    }
}

/// The reasoning of this very provider and model, with a field to send it back in.
fn own<'m>(part: &'m Part, provider: &str, model: &str) -> Option<&'m Reasoning> {
    match part {
        Part::Reasoning(reasoning)
            if reasoning.provider == provider
                && reasoning.model == model
                && !matches!(reasoning.field.as_str(), "" | think::FIELD) =>
        {
            Some(reasoning)
        }
        _ => None,
    }
}

/// The field in which reasoning goes back, `None` when none does.
fn echo_field<'r>(request: &'r Request<'_>, provider: &str, echo: Echo) -> Option<&'r str> {
    let field = |message: &'r Message| {
        let mut found = message.parts.iter().filter_map(|part| own(part, provider, request.model));
        found.next().map(|reasoning| reasoning.field.as_str())
    };
    let messages = || request.messages.iter().filter(|message| message.role == Role::Assistant);
    match echo {
        Echo::Never => None,
        Echo::Auto => messages().filter(|m| m.calls().next().is_some()).find_map(field),
        Echo::Always => Some(messages().find_map(field).unwrap_or("reasoning_content")),
    }
}

struct History<'r> {
    out: Json,
    is_first: bool,
    /// Call ids already written.
    ids: HashSet<String>,
    dialect: Dialect,
    echo_field: Option<&'r str>,
    provider: &'r str,
    model: &'r str,
    after_result: bool,
}

impl History<'_> {
    fn begin(&mut self, role: &str) {
        self.out.raw(if std::mem::take(&mut self.is_first) { "" } else { "," });
        self.out.raw("{\"role\":\"");
        self.out.raw(role);
        self.out.raw("\"");
    }

    /// One message for all instructions: many templates take no second one.
    fn system(&mut self, messages: &[Message]) {
        let texts = messages.iter().map(Message::joined_text);
        let texts: Vec<_> = texts.filter(|text| !text.trim().is_empty()).collect();
        if !texts.is_empty() {
            self.begin("system");
            self.out.raw(",\"content\":");
            self.out.string(&texts.join("\n\n"));
            self.out.raw("}");
        }
    }

    fn conversation(&mut self, messages: &[Message]) {
        for (idx, message) in messages.iter().enumerate() {
            match message.role {
                // Instructions that come late are the user's as far as templates know.
                Role::User | Role::System => self.user(message),
                Role::Assistant => self.assistant(message, &messages[idx + 1..]),
                Role::Tool => {} // written with its call; without a call it is dropped
            }
        }
    }

    fn user(&mut self, message: &Message) {
        let text = joined(message);
        let image = |part: &&Part| matches!(part, Part::Image { data, .. } if !data.is_empty());
        let has_image = message.parts.iter().any(|part| image(&part));
        if text.trim().is_empty() && !has_image {
            return;
        }
        if std::mem::take(&mut self.after_result) && self.dialect.short_ids {
            self.begin("assistant");
            self.out.raw(",\"content\":\"Understood.\"}");
        }
        self.begin("user");
        self.out.raw(",\"content\":");
        if !has_image {
            self.out.string(&text);
            self.out.raw("}");
            return;
        }
        self.out.raw("[");
        let mut comma = "";
        for part in &message.parts {
            match part {
                Part::Text(text) if !text.trim().is_empty() => {
                    self.out.raw(comma);
                    self.out.raw("{\"type\":\"text\",\"text\":");
                    self.out.string(text);
                    self.out.raw("}");
                }
                Part::Image { media_type, data } if !data.is_empty() => {
                    self.out.raw(comma);
                    self.out.raw("{\"type\":\"image_url\",\"image_url\":{\"url\":");
                    self.out.string(&format!("data:{media_type};base64,{data}"));
                    self.out.raw("}}");
                }
                _ => continue,
            }
            comma = ",";
        }
        self.out.raw("]}");
    }

    fn assistant(&mut self, message: &Message, later: &[Message]) {
        let text = message.joined_text();
        let has_text = !text.trim().is_empty();
        let calls: Vec<&ToolCall> = message.calls().collect();
        if !has_text && calls.is_empty() {
            return;
        }
        self.after_result = false;
        self.begin("assistant");
        self.out.raw(",\"content\":");
        if has_text {
            self.out.string(&text)
        } else {
            self.out.raw("null")
        }
        self.reasoning(message);
        if calls.is_empty() {
            self.out.raw("}");
            return;
        }
        let ids: Vec<String> = calls.iter().map(|call| self.wire_id(&call.id)).collect();
        self.out.raw(",\"tool_calls\":[");
        for (idx, (call, id)) in calls.iter().zip(&ids).enumerate() {
            self.out.raw(if idx == 0 { "" } else { "," });
            self.call(call, id);
        }
        self.out.raw("]}");
        for (call, id) in calls.iter().zip(&ids) {
            let text = find_result(&call.id, later).map_or(NO_RESULT, |result| &result.text);
            let text = if text.trim().is_empty() { NO_OUTPUT } else { text };
            self.begin("tool");
            self.out.raw(",\"tool_call_id\":");
            self.out.string(id);
            self.out.raw(",\"content\":");
            self.out.string(text);
            self.out.raw("}");
        }
        self.after_result = true;
    }

    fn call(&mut self, call: &ToolCall, id: &str) {
        self.out.raw("{\"id\":");
        self.out.string(id);
        self.out.raw(",\"type\":\"function\",\"function\":{\"name\":");
        self.out.string(&call.name);
        self.out.raw(",\"arguments\":");
        // Templates parse them: what the model wrote wrongly is told by the result.
        let whole = is_sound_object(&call.arguments);
        self.out.string(if whole { &call.arguments } else { "{}" });
        self.out.raw("}");
        let extra = call.extra.as_ref().map(|extra| extra.get().trim());
        if let Some(fields) = extra.and_then(|e| e.strip_prefix('{')?.strip_suffix('}'))
            && !fields.trim().is_empty()
        {
            self.out.raw(",");
            self.out.raw(fields);
        }
        self.out.raw("}");
    }

    /// Reasoning in the form in which this message's maker wants it back.
    fn reasoning(&mut self, message: &Message) {
        for part in &message.parts {
            let Part::Opaque(opaque) = part else { continue };
            if opaque.provider != self.provider || opaque.model != self.model {
                continue;
            }
            let item: Value = serde_json::from_str(opaque.item.get()).unwrap_or_default();
            if let Some(Value::Array(details)) = item.get("reasoning_details") {
                // They hold the text too: the plain field would only repeat it.
                self.out.raw(",\"reasoning_details\":");
                self.out.raw(&Value::Array(details.clone()).to_string());
                return;
            }
        }
        let Some(field) = self.echo_field else { return };
        let own = message.parts.iter().filter_map(|part| own(part, self.provider, self.model));
        let text: String = own.map(|reasoning| reasoning.text.as_str()).collect();
        self.out.raw(",");
        self.out.string(field);
        self.out.raw(":");
        self.out.string(&text);
    }

    /// The id as it is where a server can take it, else a short one made of it.
    fn wire_id(&mut self, id: &str) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let fits = if self.dialect.short_ids {
            id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        } else {
            (1..=ID_CHARS_MAX).contains(&id.len()) && id.chars().all(plain)
        };
        let mut written = Cow::Borrowed(id);
        let mut round = 0;
        while (round == 0 && !fits) || self.ids.contains(written.as_ref()) {
            round += 1;
            let hash = fnv1a(id.as_bytes(), round);
            let short = self.dialect.short_ids;
            written = if short { base36(hash).into() } else { format!("call_{hash:016x}").into() };
        }
        self.ids.insert(written.clone().into_owned());
        written.into_owned()
    }
}

/// The text parts of a message, a line apart.
pub(super) fn joined(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The result of a call among the messages behind it, up to where its id is used anew.
pub(super) fn find_result<'m>(id: &str, later: &'m [Message]) -> Option<&'m ToolResult> {
    for message in later {
        for part in &message.parts {
            match part {
                Part::ToolResult(result) if result.call_id == id => return Some(result),
                Part::ToolCall(call) if call.id == id => return None,
                _ => {}
            }
        }
    }
    None
}

pub(super) fn fnv1a(bytes: &[u8], round: u64) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let seed = 0xcbf2_9ce4_8422_2325_u64.wrapping_add(round - 1);
    bytes.iter().fold(seed, |hash, byte| step(hash, *byte))
}

/// Nine letters and digits.
fn base36(mut number: u64) -> String {
    let digits = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut text = String::new();
    for _ in 0..9 {
        let digit = usize::try_from(number % 36).unwrap_or(0);
        text.push(char::from(digits[digit]));
        number /= 36;
    }
    text
}

/// A JSON object that a strict reader takes too: one that only skips what it reads lets halves of
/// surrogate pairs and numbers without bounds pass.
pub(super) fn is_sound_object(json: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(json).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Opaque, ResultStatus, ToolSpec};
    use serde_json::json;
    use serde_json::value::RawValue;

    fn request<'a>(messages: &'a [Message], tools: &'a [ToolSpec]) -> Request<'a> {
        Request {
            model: "m",
            system: &[],
            messages,
            tools,
            session_id: "s",
            reasoning_effort: None,
            reasoning_summary: None,
            max_output_tokens: None,
        }
    }

    fn call(id: &str, arguments: &str) -> Part {
        Part::ToolCall(ToolCall {
            id: id.into(),
            name: "ls".into(),
            arguments: arguments.into(),
            extra: None,
        })
    }

    fn result(id: &str, text: &str) -> Message {
        let result = ToolResult {
            call_id: id.into(),
            name: "ls".into(),
            text: text.into(),
            status: ResultStatus::Ok,
        };
        Message { role: Role::Tool, parts: vec![Part::ToolResult(result)] }
    }

    fn said(parts: Vec<Part>) -> Message {
        Message { role: Role::Assistant, parts }
    }

    fn thought(text: &str, field: &str) -> Part {
        Part::Reasoning(Reasoning {
            text: text.into(),
            field: field.into(),
            provider: "p".into(),
            model: "m".into(),
        })
    }

    fn user(text: &str) -> Message {
        Message::text(Role::User, text)
    }

    fn messages_in(messages: &[Message], dialect: Dialect) -> Value {
        let body = write(&request(messages, &[]), "p", dialect);
        serde_json::from_slice::<Value>(&body).unwrap()["messages"].take()
    }

    #[track_caller]
    fn check(messages: &[Message], want: &Value) {
        assert_eq!(&messages_in(messages, Dialect::default()), want);
    }

    #[test]
    fn only_arguments_that_every_server_can_read_are_sent_back() {
        for sound in [r#"{"a":"\ud83d\ude00 \u00e9"}"#, " {\"a\":[1e3]}\n", "{}"] {
            assert!(is_sound_object(sound), "{sound}");
        }
        for unsound in [
            r#"{"a":"\ud83d"}"#,
            r#"{"pa\ud800th":"a"}"#,
            r#"{"a":1e999}"#,
            r#"{"a":1"#,
            r#"{"a":1} x"#,
            "[1]",
            "",
        ] {
            assert!(!is_sound_object(unsound), "{unsound}");
        }
    }

    #[test]
    fn the_narrow_shape_and_its_key_order() {
        let system = [Message::text(Role::System, "be brief"), Message::text(Role::System, "x")];
        let tools = [ToolSpec {
            name: "ls".into(),
            description: "list \"it\"".into(),
            parameters: r#"{"type":"object"}"#.into(),
        }];
        let messages = [user("hi")];
        let mut full = request(&messages, &tools);
        full.system = &system;
        let text = String::from_utf8(write(&full, "p", Dialect::default())).unwrap();
        assert_eq!(
            text,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"ls","description":"list \"it\"","parameters":{"type":"object"}}}],"messages":[{"role":"system","content":"be brief\n\nx"},{"role":"user","content":"hi"}]}"#
        );
        full.max_output_tokens = Some(9);
        full.reasoning_effort = Some("low");
        let new = Dialect { new_token_limit: true, cache_key: true, ..Dialect::default() };
        let text = String::from_utf8(write(&full, "p", new)).unwrap();
        let head = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":9,"reasoning_effort":"low","prompt_cache_key":"s","tools""#;
        assert!(text.starts_with(head), "{text}");
        let bare = Dialect {
            no_stream_options: true,
            no_effort: true,
            no_token_limit: true,
            ..Dialect::default()
        };
        let text = String::from_utf8(write(&full, "p", bare)).unwrap();
        assert!(text.starts_with(r#"{"model":"m","stream":true,"tools""#), "{text}");
    }

    #[test]
    fn a_tool_turn_is_written_as_strict_servers_want_it() {
        check(
            &[
                user("go"),
                said(vec![call("c1", "{\"p\":1}"), call("c2", "")]),
                result("c2", ""),
                result("c1", "a"),
                said(vec![Part::Text("done".into())]),
            ],
            &json!([
                {"role":"user","content":"go"},
                {"role":"assistant","content":null,"tool_calls":[
                    {"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"p\":1}"}},
                    {"id":"c2","type":"function","function":{"name":"ls","arguments":"{}"}}]},
                {"role":"tool","tool_call_id":"c1","content":"a"},
                {"role":"tool","tool_call_id":"c2","content":"(no tool output)"},
                {"role":"assistant","content":"done"},
            ]),
        );
    }

    #[test]
    fn a_history_with_holes_is_mended() {
        check(
            &[
                result("lost", "orphan"),
                user("go"),
                said(vec![]),
                said(vec![Part::Text(" \n".into())]),
                said(vec![Part::Text("let me".into()), call("c1", "{\"broken"), call("c2", "[1]")]),
                user(""),
                user("stop"),
            ],
            &json!([
                {"role":"user","content":"go"},
                {"role":"assistant","content":"let me","tool_calls":[
                    {"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}},
                    {"id":"c2","type":"function","function":{"name":"ls","arguments":"{}"}}]},
                {"role":"tool","tool_call_id":"c1","content":NO_RESULT},
                {"role":"tool","tool_call_id":"c2","content":NO_RESULT},
                {"role":"user","content":"stop"},
            ]),
        );
    }

    #[test]
    fn ids_are_rewritten_only_where_they_must_be() {
        let long = "x".repeat(60);
        let messages = [
            said(vec![call("ok_1", ""), call(&long, ""), call("", "")]),
            result("ok_1", "1"),
            result(&long, "2"),
            result("", "3"),
            said(vec![call("ok_1", "")]),
            result("ok_1", "4"),
        ];
        let written = messages_in(&messages, Dialect::default());
        let ids: Vec<&str> =
            (0..3).map(|idx| written[0]["tool_calls"][idx]["id"].as_str().unwrap()).collect();
        assert_eq!(ids[0], "ok_1");
        assert!(ids[1].len() == 21 && ids[2].len() == 21 && ids[1] != ids[2], "{ids:?}");
        for idx in 0..3 {
            assert_eq!(written[idx + 1]["tool_call_id"], ids[idx]);
        }
        let again = written[4]["tool_calls"][0]["id"].as_str().unwrap();
        assert!(again != "ok_1" && written[5]["tool_call_id"] == again, "{written}");
        assert_eq!(written[5]["content"], "4");
        let short = Dialect { short_ids: true, ..Dialect::default() };
        let written = messages_in(&[said(vec![call("call_abc123xyz1", "")]), user("x")], short);
        let id = written[0]["tool_calls"][0]["id"].as_str().unwrap();
        assert!(id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()), "{id}");
        assert_eq!(written[2]["role"], "assistant");
    }

    #[test]
    fn a_longer_conversation_continues_the_bytes_of_a_shorter_one() {
        let messages = [
            user("go é \u{1f980} \"x\""),
            said(vec![Part::Text("a".into()), call("c1", "{\"p\": 1}")]),
            result("c1", "out"),
            said(vec![Part::Text("b".into())]),
            user("more"),
        ];
        let mut shorter = write(&request(&messages[..1], &[]), "p", Dialect::default());
        for end in [3, 4, 5] {
            let longer = write(&request(&messages[..end], &[]), "p", Dialect::default());
            let kept = &shorter[..shorter.len() - 2];
            assert!(longer.starts_with(kept), "{}", String::from_utf8_lossy(&longer));
            shorter = longer;
        }
    }

    #[test]
    fn reasoning_goes_back_only_to_its_maker_and_only_with_calls() {
        let plain = [user("a"), said(vec![thought("hm", "reasoning"), Part::Text("b".into())])];
        assert_eq!(
            messages_in(&plain, Dialect::default())[1],
            json!({"role":"assistant","content":"b"})
        );
        let mut turn = plain.to_vec();
        turn.extend([
            said(vec![thought("plan", "reasoning_content"), call("c", "")]),
            result("c", "r"),
            said(vec![Part::Text("d".into())]),
        ]);
        let written = messages_in(&turn, Dialect::default());
        assert_eq!(written[1]["reasoning_content"], "hm");
        assert_eq!(written[2]["reasoning_content"], "plan");
        assert_eq!(written[4]["reasoning_content"], "");
        let never = Dialect { echo: Echo::Never, ..Dialect::default() };
        assert!(!messages_in(&turn, never).to_string().contains("reasoning"));
        let always = Dialect { echo: Echo::Always, ..Dialect::default() };
        assert_eq!(messages_in(&plain, always)[1]["reasoning"], "hm");
        assert_eq!(
            messages_in(&[said(vec![Part::Text("x".into())])], always)[0]["reasoning_content"],
            ""
        );
        let body = write(&request(&turn, &[]), "other", Dialect::default());
        assert!(!String::from_utf8(body).unwrap().contains("reasoning"));
        let tagged = [said(vec![thought("t", think::FIELD), call("c", "")]), result("c", "r")];
        assert!(!messages_in(&tagged, Dialect::default()).to_string().contains("think"));
    }

    #[test]
    fn native_state_goes_back_as_it_came() {
        let raw = |text: &str| RawValue::from_string(text.into()).unwrap();
        let item = raw(r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}"#);
        let signed = ToolCall {
            id: "c".into(),
            name: "ls".into(),
            arguments: "{}".into(),
            extra: Some(raw(r#"{"extra_content":{"google":{"thought_signature":"sig"}}}"#)),
        };
        let opaque = |provider: &str| {
            Part::Opaque(Opaque {
                provider: provider.into(),
                model: "m".into(),
                item: item.clone(),
                at: 0,
            })
        };
        let own = [said(vec![thought("t", "reasoning"), opaque("p"), Part::ToolCall(signed)])];
        let written = messages_in(&own, Dialect::default());
        assert_eq!(
            written[0]["reasoning_details"],
            json!([{"type":"reasoning.encrypted","data":"x"}])
        );
        assert_eq!(written[0].get("reasoning"), None);
        let call = &written[0]["tool_calls"][0];
        assert_eq!(call["extra_content"]["google"]["thought_signature"], "sig");
        let other = [said(vec![Part::Text("x".into()), opaque("q")])];
        assert_eq!(
            messages_in(&other, Dialect::default())[0],
            json!({"role":"assistant","content":"x"})
        );
    }

    #[test]
    fn images_are_parts_and_empty_ones_are_left_out() {
        let image = |data: &str| Part::Image { media_type: "image/png".into(), data: data.into() };
        let message = Message {
            role: Role::User,
            parts: vec![Part::Text("what?".into()), image("iVBO"), image("")],
        };
        check(
            &[message],
            &json!([{"role":"user","content":[
            {"type":"text","text":"what?"},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}]}]),
        );
    }
}

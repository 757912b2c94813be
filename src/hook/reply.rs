//! What a hook wrote on standard output, as data or as the reason why it is not understood.
//!
//! Pure. Nothing is guessed: text beside the object, a field that the event does not know or a
//! wrong type is a mistake of the hook, since what it meant might have been a no.

use serde_json::{Map, Value};

use super::event::{Change, HookEvent, Wants};
use super::messages;

/// An answer that was understood.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// New values of the payload.
    pub changes: Vec<(Change, Value)>,
    /// Why not; `None`: go on.
    pub block: Option<String>,
}

/// What a reason is when the hook gave none.
const NO_REASON: &str = "no reason was given";

/// Reads the whole output of a hook. Empty: nothing to say.
pub fn parse(event: HookEvent, output: &[u8]) -> Result<Reply, String> {
    let output = output.trim_ascii();
    if output.is_empty() {
        return Ok(Reply::default());
    }
    let object = match serde_json::from_slice(output) {
        Ok(Value::Object(object)) => object,
        Ok(other) => return Err(format!("its output is {}, not a JSON object", kind(&other))),
        Err(error) => return Err(format!("its output is not one JSON object: {error}")),
    };
    let mut reply = Reply { changes: Vec::new(), block: blocked(&object)? };
    if reply.block.is_some() && !event.may_block() {
        return Err(format!("it says to block, which {} cannot", event.name()));
    }
    let changes = event.changes();
    if changes.is_empty() && !event.may_block() {
        return Ok(reply);
    }
    for (name, value) in object {
        if value.is_null() || is_verdict(&name) {
            continue;
        }
        let Some(change) = changes.iter().find(|change| change.name == name) else {
            // What asks for nothing may be said to any event.
            if name == "error" && value == Value::Bool(false) {
                continue;
            }
            let name = short(&name);
            return Err(format!("unknown field '{name}'; {} takes {}", event.name(), known(event)));
        };
        check(change, &value)?;
        reply.changes.push((*change, value));
    }
    Ok(reply)
}

fn is_verdict(name: &str) -> bool {
    matches!(name, "block" | "reason" | "decision")
}

/// Whether and why the hook says no.
fn blocked(object: &Map<String, Value>) -> Result<Option<String>, String> {
    let reason = match object.get("reason") {
        None | Some(Value::Null) => "",
        Some(Value::String(reason)) => reason.trim(),
        Some(other) => return Err(format!("'reason' is {}, not text", kind(other))),
    };
    let by_flag = match object.get("block") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(block)) => *block,
        Some(other) => return Err(format!("'block' is {}, not true or false", kind(other))),
    };
    let by_word = match object.get("decision") {
        None | Some(Value::Null) => false,
        Some(Value::String(word)) => match word.as_str() {
            "block" | "deny" => true,
            "allow" | "approve" => false,
            other => {
                let other = short(other);
                return Err(format!(
                    "'decision' is '{other}'; it is block, deny, allow or approve"
                ));
            }
        },
        Some(other) => return Err(format!("'decision' is {}, not text", kind(other))),
    };
    let reason = if reason.is_empty() { NO_REASON } else { reason };
    Ok((by_flag || by_word).then(|| reason.to_owned()))
}

fn known(event: HookEvent) -> String {
    let mut names: Vec<_> = event.changes().iter().map(|change| change.name).collect();
    if event.may_block() {
        names.extend(["block", "reason"]);
    }
    names.join(", ")
}

fn check(change: &Change, value: &Value) -> Result<(), String> {
    let name = change.name;
    let text = || match value {
        Value::String(text) => Ok(text.as_str()),
        other => Err(format!("'{name}' is {}, not text", kind(other))),
    };
    match change.wants {
        Wants::Text => text().map(drop),
        Wants::FullText if text()?.trim().is_empty() => {
            Err(format!("'{name}' is empty; leave it out to change nothing"))
        }
        Wants::FullText => Ok(()),
        Wants::Arguments => match serde_json::from_str(text()?) {
            Ok(Value::Object(_)) => Ok(()),
            Ok(other) => Err(format!("'{name}' holds {}, not a JSON object", kind(&other))),
            Err(error) => Err(format!("'{name}' is not the text of a JSON object: {error}")),
        },
        Wants::Bool if value.is_boolean() => Ok(()),
        Wants::Bool => Err(format!("'{name}' is {}, not true or false", kind(value))),
        Wants::Messages => messages::read(value).and_then(|list| messages::check(&list)).map(drop),
    }
}

/// What a value is, for a message about it.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A name from outside, short enough for a message.
pub(super) fn short(name: &str) -> &str {
    crate::text::floor_char(name, 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(event: HookEvent, output: &str, want: &str) {
        let got = match parse(event, output.as_bytes()) {
            Err(error) => error,
            Ok(reply) => {
                let changes = reply.changes.iter();
                let changes = changes.map(|(change, value)| format!("{}={value}", change.name));
                let block = reply.block.iter().map(|reason| format!("block: {reason}"));
                changes.chain(block).collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(got, want, "{output}");
    }

    #[test]
    fn an_answer_changes_what_its_event_lets_it_change() {
        use HookEvent::*;
        for event in HookEvent::ALL {
            check(event, "", "");
            check(event, " \n", "");
            check(event, "{}", "");
            check(event, r#"{"block":false,"reason":""}"#, "");
        }
        check(UserPromptSubmit, r#"{"prompt":"x"}"#, r#"prompt="x""#);
        check(UserPromptSubmit, "\n{\"prompt\":\"x\",\"reason\":null}\n", r#"prompt="x""#);
        check(PreToolUse, r#"{"arguments":"{\"a\":1}"}"#, r#"arguments="{\"a\":1}""#);
        check(PreToolUse, r#"{"arguments":null}"#, "");
        check(PostToolUse, r#"{"output":"","error":true}"#, r#"error=true output="""#);
        check(PreCompact, r###"{"summary":"## Goal"}"###, r###"summary="## Goal""###);
        check(
            ContextBuild,
            r#"{"messages":[{"role":"user","content":"x"}]}"#,
            r#"messages=[{"content":"x","role":"user"}]"#,
        );
        // Nothing of theirs can change anything: whatever they tell is theirs.
        check(TurnStart, r#"{"ok":true,"n":[1]}"#, "");
        check(TurnComplete, r#"{"prompt":7}"#, "");
    }

    #[test]
    fn every_form_of_a_no_is_a_no() {
        use HookEvent::*;
        let no = "block: no reason was given";
        check(PreToolUse, r#"{"block":true}"#, no);
        check(PreToolUse, r#"{"block":true,"reason":" "}"#, no);
        check(PreToolUse, r#"{"block":true,"reason":"not .env"}"#, "block: not .env");
        check(PreToolUse, r#"{"decision":"deny"}"#, no);
        check(PreToolUse, r#"{"decision":"block","reason":"x"}"#, "block: x");
        check(PreToolUse, r#"{"decision":"deny","block":false}"#, no);
        check(UserPromptSubmit, r#"{"block":true,"reason":"x"}"#, "block: x");
        check(PreCompact, r#"{"block":true,"reason":"x"}"#, "block: x");
        check(PreToolUse, r#"{"decision":"approve"}"#, "");
    }

    #[test]
    fn what_is_not_understood_is_said() {
        use HookEvent::*;
        check(
            PreToolUse,
            "denied",
            "its output is not one JSON object: expected value at line 1 column 1",
        );
        check(
            PreToolUse,
            "log\n{\"block\":true}",
            "its output is not one JSON object: expected value at line 1 column 1",
        );
        check(
            PreToolUse,
            "{\"block\":true}\ndone",
            "its output is not one JSON object: trailing characters at line 2 column 1",
        );
        check(
            PreToolUse,
            "{} {}",
            "its output is not one JSON object: trailing characters at line 1 column 4",
        );
        check(
            PreToolUse,
            r#"{"block":tr"#,
            "its output is not one JSON object: EOF while parsing a value at line 1 column 11",
        );
        check(PreToolUse, "[]", "its output is a list, not a JSON object");
        check(PreToolUse, r#"{"block":"yes"}"#, "'block' is text, not true or false");
        check(PreToolUse, r#"{"block":1}"#, "'block' is a number, not true or false");
        check(PreToolUse, r#"{"block":true,"reason":{}}"#, "'reason' is an object, not text");
        check(
            PreToolUse,
            r#"{"decision":"ask"}"#,
            "'decision' is 'ask'; it is block, deny, allow or approve",
        );
        check(
            PreToolUse,
            r#"{"blocked":true}"#,
            "unknown field 'blocked'; PreToolUse takes arguments, block, reason",
        );
        check(PreToolUse, r#"{"arguments":{"a":1}}"#, "'arguments' is an object, not text");
        check(PreToolUse, r#"{"arguments":"[1]"}"#, "'arguments' holds a list, not a JSON object");
        check(
            PreToolUse,
            r#"{"arguments":""}"#,
            "'arguments' is not the text of a JSON object: EOF while parsing a value at line 1 column 0",
        );
        check(
            UserPromptSubmit,
            r#"{"prompt":" "}"#,
            "'prompt' is empty; leave it out to change nothing",
        );
        check(PostToolUse, r#"{"error":"no"}"#, "'error' is text, not true or false");
        check(PostToolUse, r#"{"block":true}"#, "it says to block, which PostToolUse cannot");
        check(TurnStart, r#"{"decision":"deny"}"#, "it says to block, which TurnStart cannot");
        check(ContextBuild, r#"{"messages":[]}"#, "'messages' is empty");
        check(ContextBuild, r#"{"messages":7}"#, "'messages' is a number, not a list");
    }
}

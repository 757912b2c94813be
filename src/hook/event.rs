//! The events of hooks: what their matchers see and what a hook may give back.

use serde_json::Value;

use crate::config::tables::HOOK_EVENTS;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvent {
    SessionStart,
    UserPromptSubmit,
    TurnStart,
    TurnComplete,
    ContextBuild,
    PreToolUse,
    PostToolUse,
    PreCompact,
    PostCompact,
}

/// A field of an answer that takes the place of one in the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Its name in the answer.
    pub name: &'static str,
    /// Where it goes in the payload.
    pub path: &'static [&'static str],
    pub wants: Wants,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// May be empty.
    Text,
    /// Must say something.
    FullText,
    /// Text that is a JSON object.
    Arguments,
    Bool,
    /// A conversation that a model accepts.
    Messages,
}

const fn change(name: &'static str, path: &'static [&'static str], wants: Wants) -> Change {
    Change { name, path, wants }
}

impl HookEvent {
    pub const ALL: [HookEvent; 9] = [
        HookEvent::SessionStart,
        HookEvent::UserPromptSubmit,
        HookEvent::TurnStart,
        HookEvent::TurnComplete,
        HookEvent::ContextBuild,
        HookEvent::PreToolUse,
        HookEvent::PostToolUse,
        HookEvent::PreCompact,
        HookEvent::PostCompact,
    ];

    /// As in the configuration.
    pub fn name(self) -> &'static str {
        HOOK_EVENTS[self as usize]
    }

    pub fn by_name(name: &str) -> Option<HookEvent> {
        HookEvent::ALL.into_iter().find(|event| event.name() == name)
    }

    /// What matchers are held against: a tool's name, a reason, a trigger. `None`: this event's
    /// hooks run whatever their matchers say.
    pub fn subject(self) -> Option<&'static [&'static str]> {
        match self {
            HookEvent::PreToolUse | HookEvent::PostToolUse => Some(&["tool", "name"]),
            HookEvent::SessionStart => Some(&["reason"]),
            HookEvent::PreCompact | HookEvent::PostCompact => Some(&["trigger"]),
            HookEvent::UserPromptSubmit
            | HookEvent::TurnStart
            | HookEvent::TurnComplete
            | HookEvent::ContextBuild => None,
        }
    }

    /// What a hook may change. Of an event without any, nothing in an answer has an effect.
    pub fn changes(self) -> &'static [Change] {
        const PROMPT: &[Change] = &[change("prompt", &["prompt"], Wants::FullText)];
        const MESSAGES: &[Change] = &[change("messages", &["messages"], Wants::Messages)];
        const ARGUMENTS: &[Change] =
            &[change("arguments", &["tool", "arguments"], Wants::Arguments)];
        const RESULT: &[Change] =
            &[change("output", &["output"], Wants::Text), change("error", &["error"], Wants::Bool)];
        const SUMMARY: &[Change] = &[change("summary", &["summary"], Wants::FullText)];
        match self {
            HookEvent::UserPromptSubmit => PROMPT,
            HookEvent::ContextBuild => MESSAGES,
            HookEvent::PreToolUse => ARGUMENTS,
            HookEvent::PostToolUse => RESULT,
            HookEvent::PreCompact => SUMMARY,
            HookEvent::SessionStart
            | HookEvent::TurnStart
            | HookEvent::TurnComplete
            | HookEvent::PostCompact => &[],
        }
    }

    /// Whether a hook may say no.
    pub fn may_block(self) -> bool {
        matches!(self, HookEvent::UserPromptSubmit | HookEvent::PreToolUse | HookEvent::PreCompact)
    }
}

/// The value at a path of object fields.
pub fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// The text at a path; empty when there is none.
pub fn text_at<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_name_in_the_configuration() {
        let names: Vec<_> = HookEvent::ALL.iter().map(|event| format!("{event:?}")).collect();
        assert_eq!(names, HOOK_EVENTS);
        for event in HookEvent::ALL {
            assert_eq!(event.name(), format!("{event:?}"));
            assert_eq!(HookEvent::by_name(event.name()), Some(event));
        }
        assert_eq!(HookEvent::by_name("PreTool"), None);
    }
}

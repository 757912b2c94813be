//! Estimates of what messages and tools cost, in tokens. No model is asked.

use crate::model::{Message, Part, ToolSpec};
use crate::text::estimate_tokens;

/// What a message costs beside its text: its role and its limits.
const MESSAGE: usize = 4;
/// The same for a call, a result, a tool.
const FRAME: usize = 8;
/// Bytes of provider-native state to a token: base64 of something denser than text.
const OPAQUE_BYTES: usize = 6;
/// What vendors count for an image of middling size.
const IMAGE: usize = 1_500;

/// One message as a request holds it.
pub fn of_message(message: &Message) -> u64 {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => estimate_tokens(text),
        Part::Image { .. } => IMAGE,
        Part::Reasoning(reasoning) => estimate_tokens(&reasoning.text),
        Part::ToolCall(call) => {
            FRAME + estimate_tokens(&call.name) + estimate_tokens(&call.arguments)
        }
        Part::ToolResult(result) => FRAME + estimate_tokens(&result.text),
        Part::Opaque(opaque) => opaque.item.get().len() / OPAQUE_BYTES,
    });
    (MESSAGE + parts.sum::<usize>()) as u64
}

/// The same by the length of its texts alone.
pub fn rough(message: &Message) -> u64 {
    let bytes = message.parts.iter().map(|part| match part {
        Part::Text(text) => text.len(),
        Part::Image { .. } => IMAGE * 4,
        Part::Reasoning(reasoning) => reasoning.text.len(),
        Part::ToolCall(call) => call.arguments.len(),
        Part::ToolResult(result) => result.text.len(),
        Part::Opaque(opaque) => opaque.item.get().len(),
    });
    (MESSAGE + bytes.sum::<usize>() / 4) as u64
}

pub fn of_messages(messages: &[Message]) -> u64 {
    messages.iter().map(of_message).sum()
}

/// A tool as it is offered.
pub fn of_tool(tool: &ToolSpec) -> u64 {
    let texts = [&tool.name, &tool.description, &tool.parameters];
    (FRAME + texts.iter().map(|text| estimate_tokens(text)).sum::<usize>()) as u64
}

pub fn of_tools(tools: &[ToolSpec]) -> u64 {
    tools.iter().map(of_tool).sum()
}

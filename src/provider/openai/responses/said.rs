//! What an answer said, put together from its events as the conversation will hold it.

use crate::model::{Message, ModelEvent, Opaque, Part, Role};

#[derive(Debug, Default)]
pub struct Said {
    /// Something was given out that a person may have seen.
    pub has_output: bool,
    response_id: String,
    parts: Vec<Part>,
    items: Vec<Opaque>,
}

impl Said {
    /// Anything of an answer has come, if only its id.
    pub fn has_response(&self) -> bool {
        self.has_output || !self.response_id.is_empty()
    }

    pub fn push(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Response { id, .. } => return id.clone_into(&mut self.response_id),
            ModelEvent::Usage(_) | ModelEvent::Notice(_) => return,
            ModelEvent::TextStart => self.parts.push(Part::Text(String::new())),
            ModelEvent::TextDelta(delta) => {
                if let Some(Part::Text(text)) = self.parts.last_mut() {
                    text.push_str(delta);
                }
            }
            ModelEvent::TextIs(whole) => {
                if let Some(Part::Text(text)) = self.parts.last_mut() {
                    text.clone_from(whole);
                }
            }
            ModelEvent::ToolCallEnd { call, .. } => self.parts.push(Part::ToolCall(call.clone())),
            ModelEvent::ProviderItem(item) => self.items.push(item.clone()),
            _ => {}
        }
        self.has_output = true;
    }

    /// The response's id and the message.
    pub fn into_message(self) -> (String, Message) {
        let mut parts = self.parts;
        let mut items = self.items;
        items.sort_by_key(|item| item.at);
        for item in items.into_iter().rev() {
            parts.insert(item.at.min(parts.len()), Part::Opaque(item));
        }
        (self.response_id, Message { role: Role::Assistant, parts })
    }
}

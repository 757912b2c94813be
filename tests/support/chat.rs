//! Composes Chat Completions event streams.

use serde_json::{Value, json};

use crate::support::server::Reply;

/// A stream under construction: one method per kind of chunk, in the order of the answer.
#[derive(Clone, Default)]
pub struct Chat(Vec<u8>);

impl Chat {
    pub fn new() -> Chat {
        Chat::default()
    }

    /// Any `data:` payload as it is.
    #[must_use]
    pub fn data(mut self, payload: &str) -> Chat {
        self.0.extend_from_slice(b"data: ");
        self.0.extend_from_slice(payload.as_bytes());
        self.0.extend_from_slice(b"\n\n");
        self
    }

    /// Any bytes as they are.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Chat {
        self.0.extend_from_slice(bytes);
        self
    }

    /// A chunk with this delta.
    #[must_use]
    pub fn delta(self, delta: &Value) -> Chat {
        self.choice(&json!({"index": 0, "delta": delta, "finish_reason": null}))
    }

    #[must_use]
    pub fn choice(self, choice: &Value) -> Chat {
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice],
        });
        self.data(&chunk.to_string())
    }

    #[must_use]
    pub fn text(self, text: &str) -> Chat {
        self.delta(&json!({"content": text}))
    }

    #[must_use]
    pub fn reasoning(self, text: &str) -> Chat {
        self.delta(&json!({"reasoning_content": text}))
    }

    /// A whole call as most servers send it: a head, then the arguments in two pieces.
    #[must_use]
    pub fn call(self, index: usize, id: &str, name: &str, arguments: &str) -> Chat {
        let mut half = arguments.len() / 2;
        while !arguments.is_char_boundary(half) {
            half -= 1;
        }
        let (one, two) = arguments.split_at(half);
        let head = json!({"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": ""}});
        self.delta(&json!({"tool_calls": [head]}))
            .delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": one}}]}))
            .delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": two}}]}))
    }

    #[must_use]
    pub fn finish(self, reason: &str) -> Chat {
        self.choice(&json!({"index": 0, "delta": {}, "finish_reason": reason}))
    }

    #[must_use]
    pub fn usage(self, input: u64, output: u64) -> Chat {
        let chunk = json!({"id": "chatcmpl-1", "model": "m", "choices": [], "usage": {
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}});
        self.data(&chunk.to_string())
    }

    #[must_use]
    pub fn done(self) -> Chat {
        self.data("[DONE]")
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn reply(self) -> Reply {
        Reply::sse(self.0)
    }

    /// The whole usual answer: text, usage, finish.
    pub fn answer(text: &str) -> Reply {
        Chat::new().text(text).finish("stop").usage(10, 2).done().reply()
    }

    /// The whole usual request for tools, `(id, name, arguments)` each.
    pub fn calls(calls: &[(&str, &str, &str)]) -> Reply {
        let mut chat = Chat::new();
        for (index, (id, name, arguments)) in calls.iter().enumerate() {
            chat = chat.call(index, id, name, arguments);
        }
        chat.finish("tool_calls").usage(10, 2).done().reply()
    }
}

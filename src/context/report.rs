//! What a model sees, as data: layer by layer, with its size in bytes and in estimated tokens.
//!
//! Pure: a view of what the next request is made of, with nothing read and nobody asked. The sum
//! of the parts is the estimate of the whole prompt by which `context::tokens` counts.

use std::path::PathBuf;

use serde::Serialize;

use crate::context::budget::Budget;
use crate::context::compact::{self, Keep};
use crate::context::instructions::Layer;
use crate::context::project::Projection;
use crate::context::skills::Skill;
use crate::context::tokens;
use crate::model::{Message, Part, Role, ToolSpec, Window};
use crate::text::{self, estimate_tokens};

/// What the next request to a model is made of, the prompt itself excepted.
pub struct Sight<'a> {
    pub layers: &'a [Layer],
    pub skills: &'a [Skill],
    pub tools: &'a [ToolSpec],
    pub projection: &'a Projection,
    /// `None`: a session that nothing was said in.
    pub session_id: Option<&'a str>,
    /// Empty: none is configured.
    pub model: &'a str,
    /// With the window as far as it is known without asking anybody.
    pub budget: &'a Budget,
}

/// What a part of the prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    Instructions,
    /// Of the conversation that is not repeated.
    Summary,
    /// The conversation itself.
    Replay,
    Tools,
}

/// One part of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Piece {
    pub kind: Kind,
    /// For people: `base prompt`, `AGENTS.md`, `answers`, …
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// How many messages, tools or skills it is; 1 for a text.
    pub count: u64,
    pub bytes: u64,
    pub tokens: u64,
}

/// Sizes of everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    pub pieces: Vec<Piece>,
    /// The sums over the pieces.
    pub bytes: u64,
    pub tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The largest prompt that leaves room for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_max_tokens: Option<u64>,
    /// From here on a conversation is folded or compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_tokens: Option<u64>,
    /// More than this is not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_tokens: Option<u64>,
    /// How much of the latest conversation stays as it is.
    pub keep_recent_tokens: u64,
    pub folds: bool,
    pub compacts: bool,
    /// How many messages a compaction would put a summary in the place of now; 0: none.
    pub next_compaction_messages: u64,
}

impl Report {
    /// How full the window is, in percent of the largest prompt.
    pub fn fill_percent(&self) -> Option<u64> {
        let whole = u128::from(self.prompt_max_tokens?.max(1));
        u64::try_from(u128::from(self.tokens) * 100 / whole).ok()
    }
}

const ROLES: [(Role, Kind, &str); 4] = [
    (Role::System, Kind::Summary, "summary"),
    (Role::User, Kind::Replay, "prompts"),
    (Role::Assistant, Kind::Replay, "answers"),
    (Role::Tool, Kind::Replay, "results"),
];

pub fn report(sight: &Sight<'_>) -> Report {
    let mut pieces = instructions(sight);
    for (role, kind, name) in ROLES {
        let said = sight.projection.messages().iter().filter(|message| message.role == role);
        let said: Vec<&Message> = said.collect();
        if !said.is_empty() || kind == Kind::Replay {
            pieces.push(Piece {
                kind,
                name: name.to_owned(),
                path: None,
                count: said.len() as u64,
                bytes: said.iter().map(|message| message_bytes(message)).sum(),
                tokens: said.iter().map(|message| tokens::of_message(message)).sum(),
            });
        }
    }
    let tool_bytes =
        |tool: &ToolSpec| (tool.name.len() + tool.description.len() + tool.parameters.len()) as u64;
    pieces.push(Piece {
        kind: Kind::Tools,
        name: "tool schemas".to_owned(),
        path: None,
        count: sight.tools.len() as u64,
        bytes: sight.tools.iter().map(tool_bytes).sum(),
        tokens: tokens::of_tools(sight.tools),
    });
    Report {
        session_id: sight.session_id.map(str::to_owned),
        model: sight.model.to_owned(),
        bytes: pieces.iter().map(|piece| piece.bytes).sum(),
        tokens: pieces.iter().map(|piece| piece.tokens).sum(),
        pieces,
        prompt_max_tokens: sight.budget.prompt_max,
        window: sight.budget.window,
        threshold_tokens: sight.budget.threshold,
        floor_tokens: sight.budget.floor,
        keep_recent_tokens: sight.budget.keep_recent,
        folds: sight.budget.folds,
        compacts: sight.budget.compacts,
        next_compaction_messages: next_compaction(sight),
    }
}

fn next_compaction(sight: &Sight<'_>) -> u64 {
    let (messages, checkpoint) = (sight.projection.messages(), sight.projection.checkpoint());
    let costs: Vec<u64> = messages.iter().map(tokens::of_message).collect();
    let head = compact::head_len(messages, checkpoint);
    let keep = Keep::TokensOrMessages(sight.budget.keep_recent, sight.budget.keep_messages);
    let at = compact::cut(messages, &costs, head, keep);
    at.map_or(0, |at| (at - head) as u64)
}

/// The layers. They are sent as one message: what that costs beside them, or less than they do one
/// by one, is the largest one's, so that the sum is that of the message.
fn instructions(sight: &Sight<'_>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = sight
        .layers
        .iter()
        .map(|layer| Piece {
            kind: Kind::Instructions,
            name: layer.name.to_owned(),
            path: layer.path.clone(),
            count: if layer.name == "skills" { sight.skills.len() as u64 } else { 1 },
            bytes: layer.text.len() as u64,
            tokens: estimate_tokens(&layer.text) as u64,
        })
        .collect();
    let texts: Vec<&str> = sight.layers.iter().map(|layer| layer.text.as_str()).collect();
    let whole = tokens::of_message(&Message::text(Role::System, texts.join("\n\n")));
    let sum: u64 = pieces.iter().map(|piece| piece.tokens).sum();
    if let Some(largest) = pieces.iter_mut().max_by_key(|piece| piece.tokens) {
        largest.tokens = (largest.tokens + whole).saturating_sub(sum);
    }
    pieces
}

/// What a message says, without the frame that a protocol puts around it.
fn message_bytes(message: &Message) -> u64 {
    let bytes = message.parts.iter().map(|part| match part {
        Part::Text(text) => text.len(),
        Part::Image { .. } => 0,
        Part::Reasoning(reasoning) => reasoning.text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => result.text.len(),
        Part::Opaque(opaque) => opaque.item.get().len(),
    });
    bytes.sum::<usize>() as u64
}

/// All that the model sees, as one text: every layer whole and as it is sent.
pub fn dump(sight: &Sight<'_>) -> String {
    let sizes = report(sight);
    let session = sight.session_id.unwrap_or("none yet");
    let model = if sight.model.is_empty() { "none configured" } else { sight.model };
    let mut out = format!("Session: {session}\nModel: {model}\n");
    out.push_str(&format!("Size: {} bytes, ~{} tokens\n", sizes.bytes, sizes.tokens));
    for layer in sight.layers {
        let place = layer.path.as_ref().map(|path| format!(": {}", path.display()));
        heading(&mut out, &format!("{}{}", titled(layer.name), place.unwrap_or_default()));
        out.push_str(&layer.text);
        out.push('\n');
    }
    heading(&mut out, "Conversation Replay");
    for (idx, message) in sight.projection.messages().iter().enumerate() {
        out.push_str(&format!("\n[{}] {}\n", idx + 1, message.role.as_str()));
        for part in &message.parts {
            part_text(&mut out, part);
            out.push('\n');
        }
    }
    heading(&mut out, "Tool Schemas");
    for tool in sight.tools {
        out.push_str(&format!("\n{}: {}\n{}\n", tool.name, tool.description, tool.parameters));
    }
    out
}

fn heading(out: &mut String, title: &str) {
    // A path is whatever somebody made it.
    out.push_str(&format!("\n===== {} =====\n", text::visible_line(title)));
}

/// `base prompt` as `Base Prompt`.
fn titled(name: &str) -> String {
    let word = |word: &str| {
        let mut rest = word.chars();
        let first = rest.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(rest).collect::<String>()
    };
    name.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn part_text(out: &mut String, part: &Part) {
    match part {
        Part::Text(text) => out.push_str(text),
        Part::Reasoning(reasoning) => {
            out.push_str("(reasoning) ");
            out.push_str(&reasoning.text);
        }
        Part::ToolCall(call) => {
            out.push_str(&format!("(call {}) {} {}", call.id, call.name, call.arguments));
        }
        Part::ToolResult(result) => {
            out.push_str(&format!("(result of {}) {}", result.call_id, result.text));
        }
        Part::Opaque(opaque) => {
            out.push_str(&format!("(state of {}) {}", opaque.provider, opaque.item.get()));
        }
        Part::Image { .. } => out.push_str("(image)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::budget::Settings;
    use crate::model::WindowSource;
    use crate::session::parse;

    fn layer(name: &'static str, text: &str) -> Layer {
        Layer { name, path: None, text: text.to_owned() }
    }

    fn conversation() -> Projection {
        let mut projection = Projection::new();
        let lines = [
            r#"{"type":"message.user","id":"1","data":{"role":"user","content":"look at a.txt"}}"#,
            r#"{"type":"message.assistant","id":"2","data":{"role":"assistant","content":[{"type":"text","text":"Looking."},{"type":"tool_call","id":"c","name":"read","arguments":{"path":"a.txt"}}]}}"#,
            r#"{"type":"message.tool","id":"3","data":{"role":"tool","content":"1 | alpha","toolCallId":"c","name":"read"}}"#,
        ];
        for line in lines {
            projection.push(&mut parse(line.as_bytes()).unwrap());
        }
        projection
    }

    #[test]
    fn pieces_add_up_to_the_estimate_of_the_whole_prompt() {
        let layers = [
            layer("base prompt", "You are etch. Look before you change."),
            layer("environment", "Working directory: /w"),
            layer("AGENTS.md", "été: le code est à nous, façon générale."),
        ];
        let tools = [ToolSpec {
            name: "read".to_owned(),
            description: "Reads a file.".to_owned(),
            parameters: r#"{"type":"object"}"#.to_owned(),
        }];
        let settings = Settings { reserve: 200, ..Settings::default() };
        let window = Window::new(1_000, WindowSource::Configured);
        let budget = Budget::new(&settings, Some(window));
        for (layers, projection) in
            [(&layers[..], conversation()), (&layers[..1], Projection::new())]
        {
            let sight = Sight {
                layers,
                skills: &[],
                tools: &tools,
                projection: &projection,
                session_id: Some("s"),
                model: "m",
                budget: &budget,
            };
            let report = report(&sight);
            let texts: Vec<_> = layers.iter().map(|layer| layer.text.as_str()).collect();
            let system = Message::text(Role::System, texts.join("\n\n"));
            let messages = projection.messages();
            let want = tokens::of_message(&system)
                + tokens::of_messages(messages)
                + tokens::of_tools(&tools);
            assert_eq!(report.tokens, want);
            let sum: u64 = report.pieces.iter().map(|piece| piece.bytes).sum();
            assert_eq!(report.bytes, sum);
            assert_eq!(report.prompt_max_tokens, Some(800));
            assert_eq!(report.fill_percent(), Some(want * 100 / 800));
            let counts: Vec<_> = report.pieces.iter().rev().take(4).map(|p| p.count).collect();
            let said = u64::from(!messages.is_empty());
            assert_eq!(counts, [1, said, said, said]);
        }
    }

    #[test]
    fn titles_are_words_with_capitals() {
        assert_eq!(titled("base prompt"), "Base Prompt");
        assert_eq!(titled("AGENTS.md"), "AGENTS.md");
        assert_eq!(titled(""), "");
    }
}

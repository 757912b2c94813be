//! Any bytes as the answer of a server, of either protocol: the turn ends, nothing of the answer
//! depends on how it was cut, nothing grows beyond what was sent, and what is asked next is
//! something that a strict server takes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use etch::agent::{Agent, Conversation, Event, Observer, Stop, run_turn};
use etch::cancel::Cancel;
use etch::context::project::Projection;
use etch::hook::Hooks;
use etch::host::Host;
use etch::model::{Model, ModelEvent, ToolSpec};
use etch::policy::Decision;
use etch::provider::openai::access::Access;
use etch::provider::openai::chat::Chat;
use etch::provider::openai::endpoint::Endpoint;
use etch::provider::openai::responses::{Responses, Travel};
use etch::session::Log;
use etch::tool::{Overlap, Plan, Registry, Tool, ToolContext, ToolOutput};
use etch::wire::http::Timeouts;
use etch::wire::websocket::Sockets;
use etch::wire::{Body, Call, Reply, Transport, WireError};
use etch::workspace::Workspace;
use serde_json::{Value, json};

use crate::fuzz::responses::TOKENS;
use crate::fuzz::{cuts, fuzz, recorded_streams};
use crate::support::command::TempDir;
use crate::support::history::check_chat_body;
use crate::support::responses_rules::{Via, check_responses};
use crate::support::session::started;

/// The protocol of a server.
#[derive(Clone, Copy, PartialEq)]
enum Api {
    Chat,
    Responses,
}

impl Api {
    fn model(self, transport: Pieces) -> Box<dyn Model> {
        let endpoint = Endpoint::parse("http://localhost:1/v1").unwrap();
        // The adapter's own host: times of a metric line are no part of what is compared.
        let host = Arc::new(Host::fixed());
        let transport = Box::new(transport);
        match self {
            Api::Chat => Box::new(Chat::new("p", &endpoint, Access::None, transport, host)),
            Api::Responses => {
                let sockets = Sockets::new(&host, Timeouts::default());
                let (access, travel) = (Access::None, Travel::Http);
                Box::new(Responses::new("p", &endpoint, access, travel, transport, sockets, host))
            }
        }
    }

    fn check(self, body: &[u8]) -> Result<(), String> {
        match self {
            Api::Chat => check_chat_body(body),
            Api::Responses => {
                let mut body: Value =
                    serde_json::from_slice(body).map_err(|error| error.to_string())?;
                // These are the server's own words, sent back byte for byte.
                for item in body["input"].as_array_mut().into_iter().flatten() {
                    if item["type"] == "reasoning" {
                        let state = &item["encrypted_content"];
                        *item = json!({"type": "reasoning", "id": "rs", "summary": [],
                            "encrypted_content": state});
                    } else if let Some(item) = item.as_object_mut() {
                        item.remove("phase");
                    }
                }
                check_responses(&body, "/v1/responses", Via::Http)
            }
        }
    }

    fn last(self) -> &'static [u8] {
        match self {
            Api::Chat => {
                b"data: {\"choices\":[{\"delta\":{\"content\":\"ok\"}}]}\n\ndata: [DONE]\n\n"
            }
            Api::Responses => {
                b"data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"ok\"}]}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\"}}\n\n"
            }
        }
    }
}

/// Plays answers in their pieces and holds every request against the rules of a strict server.
struct Pieces(Api, Mutex<VecDeque<Vec<Vec<u8>>>>);

impl Transport for Pieces {
    fn name(&self) -> &'static str {
        "pieces"
    }

    fn send(&self, call: Call, _cancel: &Cancel) -> Result<Reply, WireError> {
        let body = call.body.unwrap_or_default();
        if let Err(wrong) = self.0.check(&body) {
            panic!("{wrong}\n{}", String::from_utf8_lossy(&body));
        }
        let next = self.1.lock().unwrap().pop_front();
        let pieces = next.unwrap_or_else(|| vec![self.0.last().to_vec()]).into_iter();
        let body = Box::new(Played { pieces, now: Vec::new() });
        Ok(Reply { status: 200, headers: Vec::new(), body })
    }
}

struct Played {
    pieces: std::vec::IntoIter<Vec<u8>>,
    now: Vec<u8>,
}

impl Body for Played {
    fn chunk(&mut self) -> Result<Option<&[u8]>, WireError> {
        let Some(next) = self.pieces.find(|piece| !piece.is_empty()) else { return Ok(None) };
        self.now = next;
        Ok(Some(&self.now))
    }
}

struct Look(ToolSpec);

impl Tool for Look {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn output_bytes_max(&self) -> usize {
        100
    }

    fn plan(&self, arguments: &str, _cx: &ToolContext<'_>) -> Result<Plan, String> {
        serde_json::from_str::<serde_json::Value>(arguments).map_err(|error| error.to_string())?;
        Ok(Plan { overlap: Overlap::Serial, lane: None, needs: Vec::new() })
    }

    fn run(&self, _arguments: &str, _cx: &ToolContext<'_>) -> ToolOutput {
        ToolOutput::ok("seen")
    }
}

fn tools() -> Registry {
    let tool = |name: &str| {
        let (name, description) = (name.to_owned(), "looks".to_owned());
        let spec = ToolSpec { name, description, parameters: "{\"type\":\"object\"}".to_owned() };
        Box::new(Look(spec)) as Box<dyn Tool>
    };
    Registry::new(vec![tool("ls"), tool("read"), tool("write")]).unwrap()
}

/// What a person and the log would see of a turn, and how much of it there is.
#[derive(Default)]
struct Watch {
    shown: String,
    given_bytes: usize,
    open: Option<&'static str>,
}

impl Watch {
    fn model(&mut self, event: &ModelEvent) {
        self.given_bytes += match event {
            ModelEvent::TextDelta(delta) | ModelEvent::ReasoningDelta(delta) => delta.len(),
            ModelEvent::ToolCallDelta { arguments, .. } => arguments.len(),
            ModelEvent::ToolCallEnd { call, .. } => call.name.len() + call.arguments.len(),
            _ => 0,
        };
        let open = match event {
            ModelEvent::TextStart => Some("text"),
            ModelEvent::ReasoningStart => Some("reasoning"),
            ModelEvent::TextDelta(_) => return assert_eq!(self.open, Some("text")),
            ModelEvent::ReasoningDelta(_) => return assert_eq!(self.open, Some("reasoning")),
            ModelEvent::TextEnd | ModelEvent::ReasoningEnd(_) => {
                assert!(self.open.is_some());
                self.open = None;
                return;
            }
            _ => return,
        };
        assert_eq!(self.open, None);
        self.open = open;
    }
}

impl Observer for Watch {
    fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Model(event) => self.model(event),
            Event::Logged { line } if line.contains("\"model.metrics\"") => {}
            Event::Logged { line } => {
                self.shown.push_str(line);
                self.shown.push('\n');
            }
            Event::RoundStarted { .. } => self.open = None,
            _ => {}
        }
    }
}

/// How much of a body that is no answer was there when that was clear depends on the pieces.
fn without_excerpt(shown: &str) -> &str {
    shown.find(" sent no answer but this: ").map_or(shown, |at| &shown[..at])
}

struct Turn {
    stop: Stop,
    watch: Watch,
    calls: u32,
}

fn turn(api: Api, workspace: &Workspace, tools: &Registry, answer: &[&[u8]]) -> Turn {
    let host = Arc::new(Host::fixed());
    let pieces = answer.iter().map(|piece| piece.to_vec()).collect();
    let model = api.model(Pieces(api, Mutex::new(VecDeque::from([pieces]))));
    let agent = Agent {
        host: &host,
        model: &*model,
        model_name: "m",
        reasoning_effort: None,
        reasoning_summary: None,
        max_output_tokens: None,
        window: &|_, _| None,
        context: &etch::context::budget::Settings::default(),
        tools,
        workspace,
        decide: &|_, _| Decision::Allow,
        redact: &|text| text.to_owned(),
        hooks: &Hooks::default(),
        system: &[],
        rounds_max: 3,
    };
    let log = Log::ephemeral(host.new_id(), started("/w"));
    let mut conversation = Conversation::new(log, Projection::new());
    let mut watch = Watch::default();
    let run = |prompt: &str, conversation: &mut Conversation, watch: &mut Watch| {
        run_turn(&agent, conversation, prompt, &mut Vec::new, &Cancel::new(), watch)
    };
    let outcome = run("go", &mut conversation, &mut watch);
    // Whatever came of it, the conversation goes on.
    let next = run("and then?", &mut conversation, &mut Watch::default());
    assert_eq!((next.stop, next.answer.as_str()), (Stop::Final, "ok"));
    Turn { stop: outcome.stop, watch, calls: outcome.tool_calls }
}

fn fuzz_turns(name: &str, api: Api, recorded: &str, tokens: &[&str]) {
    let place = TempDir::new();
    let workspace = Workspace::new(place.path(), false).unwrap();
    let tools = tools();
    fuzz(name, recorded_streams(recorded), tokens, |bytes| {
        let whole = turn(api, &workspace, &tools, &[bytes]);
        // Names once a call, arguments as deltas and whole.
        assert!(whole.watch.given_bytes <= 3 * bytes.len() + 1000, "{}", whole.watch.given_bytes);
        for pieces in cuts(bytes) {
            let cut = turn(api, &workspace, &tools, &pieces);
            assert_eq!(without_excerpt(&cut.watch.shown), without_excerpt(&whole.watch.shown));
            assert_eq!(cut.stop.as_str(), whole.stop.as_str());
        }
        // What a message quotes of the input makes no new kind.
        let message = match &whole.stop {
            Stop::Failed(error) => {
                let words = error.message.split([':', '\'', '(']).nth(1).unwrap_or_default();
                let known: String =
                    words.chars().filter(char::is_ascii_lowercase).take(24).collect();
                format!("{} {known}", error.kind.as_str())
            }
            stop => stop.as_str().to_owned(),
        };
        (message, whole.calls.min(8), whole.watch.shown.lines().count().min(16))
    });
}

#[test]
fn an_answer_of_a_chat_server() {
    let tokens = [
        "\n\n",
        "data: ",
        "data: [DONE]\n\n",
        "event: error\n",
        "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}",
        "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"read\",\"arguments\":\"{}\"}}]}}]}",
        "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}",
        "\"finish_reason\":\"length\"",
        "\"finish_reason\":\"tool_calls\"",
        "\"index\":1,",
        "\"index\":null,",
        "\"id\":\"\",",
        "\"id\":\"call_a\",",
        "\"name\":\"read\",",
        "\"name\":\"\",",
        "\"arguments\":\"{\\\"path\\\":\"",
        "\"arguments\":\"\"",
        "\"arguments\":{}",
        "{\\\"a\\\":1}",
        "<think>",
        "</think>",
        "\"reasoning_content\":\"hm\",",
        "\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"x\"}],",
        "\"error\":{\"message\":\"x\"},",
        "\"usage\":{\"prompt_tokens\":18446744073709551615,\"completion_tokens\":1},",
        "\"content\":\"  \"",
        "\"content\":null",
        "\"content\":[{\"type\":\"text\",\"text\":\"t\"}]",
        "null",
        "1e999",
        "\\ud800",
        "\\u0000",
        "[[[[",
        "}",
        "]",
        "\"",
        ",",
    ];
    fuzz_turns("an answer of a chat server", Api::Chat, "streams", &tokens);
}

#[test]
fn an_answer_of_a_responses_server() {
    fuzz_turns("an answer of a Responses server", Api::Responses, "responses", TOKENS);
}

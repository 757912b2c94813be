//! The turn: prompt, model call, tool calls, results, again until the model asks for none.
//!
//! The loop runs headless: it tells an [`Observer`] what happens and returns an [`Outcome`]; it
//! prints nothing. Everything that shapes the next model call is in the log before it is acted
//! on, and whatever ends the turn, every call in the log has its result.

mod assemble;
mod batch;
mod compact;
mod hooks;
mod repeat;
mod room;
mod stop;
mod turn;

pub use batch::CallEnd;
pub use compact::{Compacted, NotCompacted, Order, Trigger, compact, fixed_tokens, prompt_tokens};
pub use hooks::{Place, reason_of, stop_of};
pub use stop::{Failure, Stop};
pub use turn::{preview, run_turn};

use crate::cancel::Cancel;
use crate::context::budget::{Budget, Settings};
use crate::context::project::Projection;
use crate::hook::Hooks;
use crate::host::Host;
use crate::model::{Message, Model, ModelEvent, ToolCall, Usage, Window, WindowSource};
use crate::policy::Decision;
use crate::session::Log;
use crate::tool::{Plan, Registry};
use crate::workspace::Workspace;

/// Everything a turn works with; nothing in it changes during a turn.
pub struct Agent<'a> {
    pub host: &'a Host,
    pub model: &'a dyn Model,
    /// The model's name in requests.
    pub model_name: &'a str,
    pub reasoning_effort: Option<&'a str>,
    pub reasoning_summary: Option<&'a str>,
    pub max_output_tokens: Option<u64>,
    /// How much the model takes, as far as it matters to a prompt of so many tokens; may ask the
    /// server.
    pub window: &'a (dyn Fn(u64, &Cancel) -> Option<Window> + Sync),
    /// When a conversation is folded and compacted.
    pub context: &'a Settings,
    pub tools: &'a Registry,
    pub workspace: &'a Workspace,
    /// The one decision before every call: pure, from the tool's name and what the call needs.
    pub decide: &'a (dyn Fn(&str, &Plan) -> Decision + Sync),
    /// A tool's text without any secret of this run: what is logged and what the model sees.
    pub redact: &'a (dyn Fn(&str) -> String + Sync),
    /// Programs of the person's own that watch, change and refuse.
    pub hooks: &'a Hooks,
    /// Instructions, sent before the conversation; the same bytes in every round.
    pub system: &'a [Message],
    /// Model calls in one turn, at least 1.
    pub rounds_max: u32,
}

/// A session as it goes on: its log, and what the model sees of it.
pub struct Conversation {
    pub log: Log,
    pub projection: Projection,
    /// What a person says is on the disk, and not only with the system, before it is acted on.
    pub sync_prompts: bool,
    /// How many tokens more than estimated the server counted for the last prompt.
    pub drift: u64,
}

impl Conversation {
    /// The one that goes on from what was projected of `log`.
    pub fn new(log: Log, projection: Projection) -> Conversation {
        Conversation { log, projection, sync_prompts: false, drift: 0 }
    }
}

impl Agent<'_> {
    /// What holds for `conversation`, in which a server may have told how much its model takes.
    pub fn budget(&self, conversation: &Conversation, window: Option<Window>) -> Budget {
        let learned = conversation.projection.window_of(self.model.provider(), self.model_name);
        let learned = learned.map(|tokens| Window::new(tokens, WindowSource::Overflow));
        let window = match (window, learned) {
            (Some(known), Some(learned)) if learned.context < known.context => Some(learned),
            (known, learned) => known.or(learned),
        };
        Budget::new(self.context, window)
    }
}

/// What happens in a turn, in order.
#[derive(Clone, Copy)]
pub enum Event<'a> {
    /// A line was appended to the log; without its line end.
    Logged {
        line: &'a str,
    },
    /// A model call begins; rounds count from 1.
    RoundStarted {
        round: u32,
    },
    Model(&'a ModelEvent),
    ToolStarted {
        call: &'a ToolCall,
    },
    /// In order of completion; results are logged in call order.
    ToolFinished {
        call: &'a ToolCall,
        end: &'a CallEnd,
    },
    /// A summary is asked for; `tokens` is the estimated size of the prompt.
    CompactionStarted {
        trigger: Trigger,
        tokens: u64,
    },
    CompactionEnded(Result<&'a Compacted, &'a NotCompacted>),
    /// Something that the person should know.
    Notice(&'a str),
}

/// Whoever shows or records a turn. Called on the turn's thread: it must not block for long.
pub trait Observer {
    fn observe(&mut self, event: Event<'_>);
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DeniedCall {
    pub name: String,
    pub reason: String,
}

/// How a turn went.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub stop: Stop,
    /// The final answer; with another stop, what there is of one.
    pub answer: String,
    /// Model calls made, attempts that failed not counted.
    pub rounds: u32,
    pub tool_calls: u32,
    /// Of all attempts.
    pub usage: Usage,
    /// Sorted, relative to the working directory.
    pub changed_files: Vec<String>,
    pub denied_calls: Vec<DeniedCall>,
}

//! Going on from another place of the same session: back before a prompt, or to an end that was
//! left. A pointer is appended to the log; nothing is removed, and files stay as they are.

use std::collections::{BTreeSet, HashSet};

use super::Harness;
use crate::agent::Conversation;
use crate::context::project::Projection;
use crate::host::Host;
use crate::session::{self, Data, Event, Points, Sink, Way, hash_id};

/// What going elsewhere left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Prompts that are not part of the conversation any more, steering included.
    pub prompts_left: usize,
    /// Files that calls changed which are not part of it any more, sorted. They are as they were.
    pub changed: Vec<String>,
}

/// The places that the conversation can go on from. Reads the session's file.
pub fn points(conversation: &Conversation) -> Result<Points, session::Error> {
    session::points(&conversation.log)
}

impl Harness {
    /// Goes on from the event `to`, the end of a turn of this session or of what it inherits.
    /// Nothing counts as read by the model any more, as in a session that is resumed. When this
    /// fails, the conversation is what it was.
    pub fn go_to(
        &self,
        conversation: &mut Conversation,
        way: Way,
        to: &str,
    ) -> Result<Moved, session::Error> {
        let moved = go_to(&self.host, conversation, way, to)?;
        self.workspace.reads().forget();
        Ok(moved)
    }
}

fn go_to(
    host: &Host,
    conversation: &mut Conversation,
    way: Way,
    to: &str,
) -> Result<Moved, session::Error> {
    let mut before = Vec::new();
    conversation.log.each_event(&mut |event| before.extend(Trace::of(event)))?;
    let mut now = Now::default();
    conversation.log.go_to(host, way, to, &mut now)?;
    now.projection.settle();
    conversation.projection = now.projection;
    conversation.drift = 0;
    let mut moved = Moved::default();
    let mut changed = BTreeSet::new();
    for trace in before.into_iter().filter(|trace| !now.ids.contains(&trace.id)) {
        moved.prompts_left += usize::from(trace.is_prompt);
        changed.extend(trace.changed);
    }
    moved.changed = changed.into_iter().collect();
    Ok(moved)
}

/// What of an event is asked for when it is left.
struct Trace {
    id: u64,
    is_prompt: bool,
    changed: Vec<String>,
}

impl Trace {
    fn of(event: &Event<'_>) -> Option<Trace> {
        let (is_prompt, changed) = match &event.data {
            Data::User(_) => (true, Vec::new()),
            Data::Tool(result) if !result.changed.is_empty() => {
                (false, result.changed.iter().map(ToString::to_string).collect())
            }
            _ => return None,
        };
        Some(Trace { id: hash_id(&event.id), is_prompt, changed })
    }
}

/// The conversation in its new place.
#[derive(Default)]
struct Now {
    projection: Projection,
    ids: HashSet<u64>,
}

impl Sink for Now {
    fn restart(&mut self) {
        *self = Now::default();
    }

    fn event(&mut self, event: &mut Event<'_>) {
        self.ids.insert(hash_id(&event.id));
        self.projection.push(event);
    }
}

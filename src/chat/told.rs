//! What a turn tells the chat: the kernel's events, owned, so that they can go to another thread.
//!
//! Made on the turn's thread. What nobody shows is left out there: deltas of a call's arguments,
//! provider-native state, lines of the log.

use std::time::Duration;

use crate::agent::{CallEnd, Compacted, Event, NotCompacted, Outcome};
use crate::model::{ModelEvent, ToolCall};

#[derive(Debug, Clone)]
pub enum Told {
    RoundStarted {
        round: u32,
    },
    Model(ModelEvent),
    ToolStarted {
        call: ToolCall,
    },
    /// In order of completion.
    ToolFinished {
        call: ToolCall,
        end: CallEnd,
    },
    Compacting,
    Compacted(Result<Compacted, NotCompacted>),
    Notice(String),
    /// The last of a turn, whatever ended it.
    TurnEnded {
        outcome: Outcome,
        elapsed: Duration,
    },
}

impl Told {
    /// `None` for what nobody shows.
    pub fn of(event: &Event<'_>) -> Option<Told> {
        Some(match *event {
            Event::Logged { .. } => return None,
            Event::RoundStarted { round } => Told::RoundStarted { round },
            Event::Model(event) if is_shown(event) => Told::Model(event.clone()),
            Event::Model(_) => return None,
            Event::ToolStarted { call } => Told::ToolStarted { call: call.clone() },
            Event::ToolFinished { call, end } => {
                Told::ToolFinished { call: call.clone(), end: end.clone() }
            }
            Event::CompactionStarted { .. } => Told::Compacting,
            Event::CompactionEnded(end) => Told::Compacted(end.cloned().map_err(Clone::clone)),
            Event::Notice(message) => Told::Notice(message.to_owned()),
        })
    }
}

fn is_shown(event: &ModelEvent) -> bool {
    match event {
        ModelEvent::TextStart
        | ModelEvent::TextDelta(_)
        | ModelEvent::TextIs(_)
        | ModelEvent::TextEnd
        | ModelEvent::ReasoningStart
        | ModelEvent::ReasoningDelta(_)
        | ModelEvent::ReasoningEnd(_)
        | ModelEvent::ToolCallStart { .. }
        | ModelEvent::Usage(_)
        | ModelEvent::Metrics(_)
        | ModelEvent::Retry(_)
        | ModelEvent::Notice(_) => true,
        // The call itself comes with `ToolStarted`.
        ModelEvent::ToolCallDelta { .. }
        | ModelEvent::ToolCallEnd { .. }
        | ModelEvent::Response { .. }
        | ModelEvent::ProviderItem(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_shows_does_not_leave_the_turn() {
        let delta = ModelEvent::ToolCallDelta { index: 0, arguments: "{}".to_owned() };
        assert!(Told::of(&Event::Model(&delta)).is_none());
        assert!(Told::of(&Event::Logged { line: "{}" }).is_none());
        let text = ModelEvent::TextDelta("a".to_owned());
        let told = Told::of(&Event::Model(&text));
        assert!(matches!(told, Some(Told::Model(event)) if event == text));
    }
}

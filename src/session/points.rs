//! The places of a session that a person may go on from: its prompts, and ends that were left.
//!
//! Only whole turns count: before a prompt, which is after the turn before it, and the end of
//! what was left. What was said to a running turn (steering) begins none.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::chain::Nodes;
use super::data::Data;
use super::head::title_of;
use super::read::{self, Event};
use super::replay::{self, Each, each_found};
use super::{Error, Log};

/// What the places of a session are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Points {
    /// The prompts of the conversation, the oldest first, inherited ones too.
    pub prompts: Vec<Prompt>,
    /// The ends of what was left, in the order in which they were left.
    pub left: Vec<Left>,
}

/// A prompt, which begins a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub id: String,
    /// The event before it, which ends the turn before; `None` where there is none.
    pub before: Option<String>,
    /// As it was given to the model.
    pub text: String,
    /// RFC 3339; empty where the log has none.
    pub time: String,
}

/// The end of a part that is not on the way from the last event to the first any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Its last event, pointers aside; an inherited one where that is what was left.
    pub id: String,
    /// The last that the person said there, on one line.
    pub prompt: String,
    /// When it was left, where a pointer says it; else of its last event.
    pub time: String,
}

/// Reads the places from the session's file; it has none when no file is kept.
pub fn points(log: &Log) -> Result<Points, Error> {
    let mut prompts = Prompts::default();
    log.each_event(&mut |event| prompts.push(event))?;
    let mut left = Vec::new();
    if let Some(path) = log.path() {
        let mut tree = Tree::default();
        each_found(path, read::parse, &mut |found| {
            if let Ok(event) = found.parsed {
                tree.push(&event);
            }
            ControlFlow::Continue(())
        })?;
        left = tree.left(path)?;
    }
    Ok(Points { prompts: prompts.found, left })
}

/// Finds the prompts among the events of a conversation.
#[derive(Debug, Default)]
struct Prompts {
    found: Vec<Prompt>,
    before: Option<String>,
    /// Calls of the last answer that nothing tells the end of.
    open_calls: usize,
    /// Results were the last that was said.
    has_results: bool,
}

impl Prompts {
    fn push(&mut self, event: &Event<'_>) {
        match &event.data {
            // Between the results of a turn and its next answer it is steering. Where results are
            // missing, the turn died.
            Data::User(_) if self.has_results && self.open_calls == 0 => {}
            Data::User(message) => {
                self.has_results = false;
                self.found.push(Prompt {
                    id: event.id.to_string(),
                    before: self.before.clone(),
                    text: message.content.text().into_owned(),
                    time: event.time.to_string(),
                });
            }
            Data::Assistant(message) => {
                (self.open_calls, self.has_results) = (message.calls().count(), false);
            }
            Data::Tool(_) => {
                self.open_calls = self.open_calls.saturating_sub(1);
                self.has_results = true;
            }
            // Nothing of this stands within a turn.
            Data::SessionStarted(_)
            | Data::Stopped(_)
            | Data::Changed(_)
            | Data::Repaired(_)
            | Data::Pointer(_) => self.has_results = false,
            Data::Reasoning(_)
            | Data::ProviderItem(_)
            | Data::Usage(_)
            | Data::Response(_)
            | Data::Metrics(_)
            | Data::Retry(_)
            | Data::Denied(_)
            | Data::Summary(_)
            | Data::Folded(_)
            | Data::CompactionFailed(_)
            | Data::Window(_)
            | Data::Unknown { .. } => {}
        }
        if !event.id.is_empty() {
            self.before = Some(event.id.to_string());
        }
    }
}

/// All events of a file, and who continues whom.
#[derive(Default)]
struct Tree {
    nodes: Nodes,
    events: Vec<Node>,
    indices: HashMap<String, usize>,
    /// The session that this one continues, and the last event that it takes from there.
    origin: Option<(PathBuf, String)>,
}

struct Node {
    id: String,
    parent: Option<usize>,
    time: String,
    kind: Kind,
}

enum Kind {
    /// What a person said, on one line.
    Prompt(String),
    /// Leads to its parent, or to an event that the session inherits.
    Pointer {
        inherited: Option<String>,
        from: Option<String>,
    },
    Other,
}

impl Tree {
    fn push(&mut self, event: &Event<'_>) {
        if event.id.is_empty() {
            return;
        }
        let parent = self.nodes.parent_of(event);
        self.nodes.push(event);
        let kind = match &event.data {
            Data::User(message) => Kind::Prompt(title_of(&message.content.text())),
            Data::Pointer(pointer) => Kind::Pointer {
                inherited: pointer.inherited_target(event.parent_id.as_deref()).map(str::to_owned),
                from: pointer.from_id.as_ref().map(ToString::to_string),
            },
            Data::SessionStarted(started) => {
                self.origin = replay::origin_of(started);
                Kind::Other
            }
            _ => Kind::Other,
        };
        let (id, time) = (event.id.to_string(), event.time.to_string());
        self.indices.insert(id.clone(), self.events.len());
        self.events.push(Node { id, parent, time, kind });
    }

    /// A pointer to an event of this file, for which that event can stand.
    fn target_of(&self, idx: usize) -> Option<usize> {
        match self.events[idx] {
            Node { kind: Kind::Pointer { inherited: None, .. }, parent, .. } => parent,
            _ => None,
        }
    }

    /// Which events are on the way from the last one back to the first.
    fn current(&self) -> Vec<bool> {
        let mut is_current = vec![false; self.events.len()];
        let mut at = self.events.len().checked_sub(1);
        while let Some(idx) = at {
            is_current[idx] = true;
            at = self.events[idx].parent;
        }
        is_current
    }

    /// The pointer by which each end was left the last time.
    fn leavings(&self) -> HashMap<usize, usize> {
        let mut leavings = HashMap::new();
        for (idx, event) in self.events.iter().enumerate() {
            let Kind::Pointer { from: Some(from), .. } = &event.kind else { continue };
            // What is not in this file is inherited: it hangs on the first event.
            let mut end = self.indices.get(from).copied().unwrap_or(0);
            while let Some(target) = self.target_of(end) {
                end = target;
            }
            leavings.insert(end, idx);
        }
        leavings
    }

    /// In the order in which they were left. Where nobody said anything, nothing was.
    fn left(&self, path: &Path) -> Result<Vec<Left>, Error> {
        let is_current = self.current();
        let leavings = self.leavings();
        let mut is_continued = vec![false; self.events.len()];
        for idx in (0..self.events.len()).rev() {
            if let Some(parent) = self.events[idx].parent {
                is_continued[parent] |= self.target_of(idx).is_none() || is_continued[idx];
            }
        }
        let mut left = Vec::new();
        for end in (0..self.events.len()).filter(|idx| !is_current[*idx] && !is_continued[*idx]) {
            if self.target_of(end).is_some() {
                continue;
            }
            if let Some(prompt) = self.last_prompt(end, &is_current) {
                let leaving = leavings.get(&end).copied().unwrap_or(end);
                let (id, time) = (self.events[end].id.clone(), self.events[leaving].time.clone());
                left.push((leaving, Left { id, prompt, time }));
            }
        }
        let hangs_on_start = |(idx, event): (usize, &Node)| {
            event.parent == Some(0)
                && !matches!(event.kind, Kind::Pointer { inherited: Some(_), .. })
                && (self.target_of(idx).is_none() || is_continued[idx])
        };
        // Else it is on the way to another end.
        let is_end = !self.events.iter().enumerate().any(hangs_on_start);
        let inherited_end = self.origin.as_ref().map(|(_, id)| id);
        let is_elsewhere = |(node, is_current): (&Node, &bool)| match &node.kind {
            Kind::Pointer { inherited: Some(to), .. } => *is_current && Some(to) != inherited_end,
            _ => false,
        };
        if is_end
            && self.events.iter().zip(&is_current).any(is_elsewhere)
            && let Some(inherited) = self.inherited(path)?
        {
            let leaving = leavings.get(&0).copied().unwrap_or(0);
            let time = self.events[leaving].time.clone();
            left.push((leaving, Left { time, ..inherited }));
        }
        left.sort_by_key(|(leaving, _)| *leaving);
        Ok(left.into_iter().map(|(_, left)| left).collect())
    }

    /// The last that was said on the way from `end` to what is current.
    fn last_prompt(&self, end: usize, is_current: &[bool]) -> Option<String> {
        let mut at = Some(end);
        while let Some(idx) = at.filter(|idx| !is_current[*idx]) {
            if let Kind::Prompt(prompt) = &self.events[idx].kind {
                return Some(prompt.clone());
            }
            at = self.events[idx].parent;
        }
        None
    }

    /// The end of what the session inherits.
    fn inherited(&self, path: &Path) -> Result<Option<Left>, Error> {
        let Some((origin, id)) = &self.origin else { return Ok(None) };
        let mut prompts = Prompts::default();
        let origin = replay::find_origin(path, origin);
        let found = replay::replay_origin(&origin, id, &mut Each(&mut |event| prompts.push(event)));
        let last = found?.and_then(|_| prompts.found.pop());
        Ok(last.map(|last| Left { id: id.clone(), prompt: title_of(&last.text), time: last.time }))
    }
}

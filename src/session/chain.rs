//! Which events of a file are on the chain from its end, or from a given event, to its root.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use super::Error;
use super::data::Data;
use super::read::{self, Event};
use super::replay::{End, each_found};

/// Ids are compared by hash where many are held: 8 bytes each instead of 32 and a pointer. Three
/// are taken for each event of a log; ids are random, so that a simple one does.
pub fn hash_id(id: &str) -> u64 {
    let mix =
        |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let (words, rest) = id.as_bytes().as_chunks::<8>();
    let hash = words.iter().fold(0, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| mix(hash, 256 | u64::from(*byte)))
}

/// The events that a file's readers have met, and who continues whom.
#[derive(Default)]
pub(super) struct Nodes {
    hashes: Vec<u64>,
    /// Made on the first event that does not continue the one before it.
    positions: Option<HashMap<u64, usize>>,
}

impl Nodes {
    /// The position of `event`'s parent, `None` for a root. A parent that is nowhere before the
    /// event is taken to be the one just before.
    pub fn parent_of(&mut self, event: &Event<'_>) -> Option<usize> {
        let last = self.hashes.len().checked_sub(1)?;
        let Some(parent) = &event.parent_id else { return Some(last) };
        let parent = hash_id(parent);
        if parent == self.hashes[last] {
            return Some(last);
        }
        let hashes = &self.hashes;
        let positions = self
            .positions
            .get_or_insert_with(|| hashes.iter().enumerate().map(|(at, id)| (*id, at)).collect());
        Some(positions.get(&parent).copied().unwrap_or(last))
    }

    pub fn push(&mut self, event: &Event<'_>) {
        let id = hash_id(&event.id);
        if let Some(positions) = &mut self.positions {
            positions.insert(id, self.hashes.len());
        }
        self.hashes.push(id);
    }
}

/// Follows a file that is its own chain.
#[derive(Default)]
pub(super) struct Linear {
    nodes: Nodes,
}

impl Linear {
    /// Whether `event` continues the one given before it. An event without id is no link.
    pub fn follows(&mut self, event: &Event<'_>) -> bool {
        if event.id.is_empty() {
            return true;
        }
        // Where the inherited part ends must be known before it is read.
        if let Data::Pointer(pointer) = &event.data
            && pointer.inherited_target(event.parent_id.as_deref()).is_some()
        {
            return false;
        }
        let follows = match self.nodes.parent_of(event) {
            Some(parent) => parent + 1 == self.nodes.hashes.len(),
            None => true,
        };
        self.nodes.push(event);
        follows
    }
}

/// For every event of a file, in file order: whether it is on the chain.
pub(super) struct Chain {
    wanted: Vec<bool>,
    next: usize,
    /// The last inherited event, where a pointer on the chain says another one than the start.
    pub inherited_end: Option<String>,
}

impl Chain {
    /// Reads the links of all events. `None` when the event at `end` is not there.
    pub fn of(path: &Path, end: &End) -> Result<Option<Chain>, Error> {
        let mut nodes = Nodes::default();
        let mut parents = Vec::new();
        // The node of each event; those without id go with the one before them.
        let mut nodes_of_events: Vec<Option<usize>> = Vec::new();
        let mut tip = None;
        let mut inherited_ends = Vec::new();
        each_found(path, read::parse_link, &mut |found| {
            let Ok(event) = found.parsed else { return ControlFlow::Continue(()) };
            if !event.id.is_empty() {
                let parent = nodes.parent_of(&event);
                match end {
                    End::At(id) if *id == event.id => tip = Some(Some(parents.len())),
                    End::Before(id) if *id == event.id => tip = Some(parent),
                    End::Tip | End::At(_) | End::Before(_) => {}
                }
                // Only right behind the start can a pointer lead into what is inherited.
                if let Data::Pointer(pointer) = &event.data
                    && let Some(target) = pointer.inherited_target(event.parent_id.as_deref())
                    && parent == Some(0)
                {
                    inherited_ends.push((parents.len(), target.to_owned()));
                }
                nodes.push(&event);
                parents.push(parent);
            }
            nodes_of_events.push(parents.len().checked_sub(1));
            ControlFlow::Continue(())
        })?;
        let mut at = match (end, tip) {
            (End::Tip, _) => parents.len().checked_sub(1),
            (_, Some(tip)) => tip,
            (_, None) => return Ok(None),
        };
        let mut on_chain = vec![false; parents.len()];
        while let Some(node) = at {
            on_chain[node] = true;
            at = parents[node];
        }
        let wanted = nodes_of_events.iter().map(|node| node.is_none_or(|node| on_chain[node]));
        let inherited_end = inherited_ends.into_iter().find(|(node, _)| on_chain[*node]);
        let inherited_end = inherited_end.map(|(_, end)| end);
        Ok(Some(Chain { wanted: wanted.collect(), next: 0, inherited_end }))
    }

    /// Whether the next event of the file is wanted.
    pub fn wants_next(&mut self) -> bool {
        self.next += 1;
        self.wanted.get(self.next - 1).copied().unwrap_or(false)
    }
}

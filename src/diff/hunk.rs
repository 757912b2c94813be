//! Changes with the lines around them.

use crate::diff::{CONTEXT_LINES, Change};

/// The difference of two files. No hunks: the files are equal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff<'a> {
    pub hunks: Vec<Hunk<'a>>,
    /// Lines added, over all hunks.
    pub added: usize,
    /// Lines removed, over all hunks.
    pub removed: usize,
}

/// Changes that stand close together. Starts count from 1; with a count of 0 they name the line
/// before, as in a unified diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk<'a> {
    pub old_start: usize,
    pub old_count: usize,
    pub new_start: usize,
    pub new_count: usize,
    pub lines: Vec<Line<'a>>,
}

/// A line of a hunk, with its line end where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    pub kind: Kind,
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Context,
    Removed,
    Added,
}

impl Diff<'_> {
    pub fn is_empty(&self) -> bool {
        self.hunks.is_empty()
    }
}

/// Hunks from ordered changes.
pub(super) fn group<'a>(changes: &[Change], old: &[&'a [u8]], new: &[&'a [u8]]) -> Diff<'a> {
    let mut diff = Diff::default();
    let mut rest = changes;
    while !rest.is_empty() {
        let is_near = |pair: &&[Change]| pair[1].old_at - pair[0].old_end() <= 2 * CONTEXT_LINES;
        let count = 1 + rest.windows(2).take_while(is_near).count();
        let (near, after) = rest.split_at(count);
        rest = after;
        diff.added += near.iter().map(|change| change.new_len).sum::<usize>();
        diff.removed += near.iter().map(|change| change.old_len).sum::<usize>();
        diff.hunks.push(hunk(near, old, new));
    }
    diff
}

/// `near` holds at least one change.
fn hunk<'a>(near: &[Change], old: &[&'a [u8]], new: &[&'a [u8]]) -> Hunk<'a> {
    let before = near[0].old_at.min(CONTEXT_LINES);
    let (old_at, new_at) = (near[0].old_at - before, near[0].new_at - before);
    let mut lines = Vec::new();
    let mut push = |kind, part: &[&'a [u8]]| {
        lines.extend(part.iter().map(|&bytes| Line { kind, bytes }));
    };
    let (mut old_end, mut new_end) = (old_at, new_at);
    for change in near {
        push(Kind::Context, &old[old_end..change.old_at]);
        push(Kind::Removed, &old[change.old_at..change.old_end()]);
        push(Kind::Added, &new[change.new_at..change.new_end()]);
        (old_end, new_end) = (change.old_end(), change.new_end());
    }
    let after = (old.len() - old_end).min(CONTEXT_LINES);
    push(Kind::Context, &old[old_end..old_end + after]);
    let (old_count, new_count) = (old_end + after - old_at, new_end + after - new_at);
    Hunk {
        old_start: old_at + usize::from(0 < old_count),
        old_count,
        new_start: new_at + usize::from(0 < new_count),
        new_count,
        lines,
    }
}

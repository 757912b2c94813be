//! Where a change is shown: an inserted block that could stand at several places reads best
//! where it begins and ends with the structure of the text.

use std::cmp::Reverse;

use crate::diff::Change;

/// Places that are tried for one change; bounds the work on files of equal lines.
const STEPS_MAX: usize = 200;

/// Moves pure insertions and deletions among their equal places to the best one.
pub(super) fn settle(changes: &mut [Change], old: &[&[u8]], new: &[&[u8]]) {
    for idx in 0..changes.len() {
        let change = changes[idx];
        let (lines, at, len) = match (change.old_len, change.new_len) {
            (0, len) => (new, change.new_at, len),
            (len, 0) => (old, change.old_at, len),
            _ => continue,
        };
        // One line has to stay between neighbours, or they would be one change.
        let above = match idx.checked_sub(1) {
            Some(before) => change.old_at - changes[before].old_end() - 1,
            None => change.old_at,
        };
        let below = match changes.get(idx + 1) {
            Some(after) => after.old_at - change.old_end() - 1,
            None => old.len() - change.old_end(),
        };
        let is_equal_up = |step: &usize| lines[at - step - 1] == lines[at + len - step - 1];
        let is_equal_down = |step: &usize| lines[at + step] == lines[at + len + step];
        let up = (0..above.min(STEPS_MAX)).take_while(is_equal_up).count();
        let down = (0..below.min(STEPS_MAX)).take_while(is_equal_down).count();
        if up + down == 0 {
            continue;
        }
        let places = at - up..=at + down;
        let best = places.min_by_key(|&at| roughness(lines, at, len)).unwrap_or(at);
        let change = &mut changes[idx];
        change.old_at = change.old_at + best - at;
        change.new_at = change.new_at + best - at;
    }
}

/// How badly a block reads at a place, smaller is better: by how deep its two ends cut into the
/// indentation, then whether it follows a blank line, then the lowest place.
fn roughness(lines: &[&[u8]], at: usize, len: usize) -> (usize, bool, Reverse<usize>) {
    let depth = indent_from(lines, at) + indent_from(lines, at + len);
    let follows_blank = at.checked_sub(1).is_none_or(|before| is_blank(lines[before]));
    (depth, !follows_blank, Reverse(at))
}

/// The indentation of the first line with text from `at` on.
fn indent_from(lines: &[&[u8]], at: usize) -> usize {
    const BLANKS_MAX: usize = 20;
    let line = lines[at..].iter().take(BLANKS_MAX).find(|line| !is_blank(line));
    let columns = |byte: &u8| match byte {
        b' ' => Some(1),
        b'\t' => Some(8),
        _ => None,
    };
    line.map_or(0, |line| line.iter().map_while(columns).sum())
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

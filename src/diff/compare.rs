//! Which lines changed: Myers' O(ND) search from both ends, in linear space and bounded time.

use std::collections::HashMap;

use crate::diff::Change;

/// Edits that a search tries before it settles for the best way found so far. More would make
/// long unlike files slow; with fewer, edits of ordinary size would not be the shortest.
fn cost_max(lines: usize) -> usize {
    lines.isqrt().max(256)
}

/// The changes between two lists of lines.
pub(super) fn changes(old: &[&[u8]], new: &[&[u8]]) -> Vec<Change> {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[prefix..], &new[prefix..]);
    let pairs = old_rest.iter().rev().zip(new_rest.iter().rev());
    let suffix = pairs.take_while(|(a, b)| a == b).count();
    let old_mid = &old_rest[..old_rest.len() - suffix];
    let new_mid = &new_rest[..new_rest.len() - suffix];
    let (removed, added) = changed_lines(old_mid, new_mid);
    collect(&removed, &added, prefix)
}

/// For each line of both sides: does it belong to a change?
fn changed_lines(old: &[&[u8]], new: &[&[u8]]) -> (Vec<bool>, Vec<bool>) {
    let mut removed = vec![true; old.len()];
    let mut added = vec![true; new.len()];
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    let mut number = |line| {
        let next = numbers.len() as u32;
        *numbers.entry(line).or_insert(next)
    };
    let old_numbers: Vec<u32> = old.iter().map(|&line| number(line)).collect();
    let new_numbers: Vec<u32> = new.iter().map(|&line| number(line)).collect();
    let count = numbers.len();
    // A line that the other side has nowhere cannot match: leaving it out makes the search short.
    let (a, a_idx) = common_lines(&old_numbers, &new_numbers, count);
    let (b, b_idx) = common_lines(&new_numbers, &old_numbers, count);
    for (a_at, b_at) in Search::new(&a, &b).matches() {
        removed[a_idx[a_at]] = false;
        added[b_idx[b_at]] = false;
    }
    (removed, added)
}

/// The lines that `other` has too, with their indexes.
fn common_lines(lines: &[u32], other: &[u32], count: usize) -> (Vec<u32>, Vec<usize>) {
    let mut is_known = vec![false; count];
    other.iter().for_each(|&number| is_known[number as usize] = true);
    let common = lines.iter().enumerate().filter(|&(_, &number)| is_known[number as usize]);
    common.map(|(idx, &number)| (number, idx)).unzip()
}

fn collect(removed: &[bool], added: &[bool], offset: usize) -> Vec<Change> {
    let run = |flags: &[bool]| flags.iter().take_while(|&&flag| flag).count();
    let mut changes = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    while old_at < removed.len() || new_at < added.len() {
        let (old_len, new_len) = (run(&removed[old_at..]), run(&added[new_at..]));
        if 0 < old_len + new_len {
            let (old_at, new_at) = (old_at + offset, new_at + offset);
            changes.push(Change { old_at, old_len, new_at, new_len });
        }
        // Behind a change stands one equal line on each side, or the end of both.
        old_at = (old_at + old_len + 1).min(removed.len());
        new_at = (new_at + new_len + 1).min(added.len());
    }
    changes
}

/// A part of both lists that is still to be compared.
#[derive(Clone, Copy)]
struct Part {
    a_at: usize,
    a_end: usize,
    b_at: usize,
    b_end: usize,
}

struct Search<'a> {
    a: &'a [u32],
    b: &'a [u32],
    cost_max: usize,
    from_start: Reached,
    from_end: Reached,
}

impl<'a> Search<'a> {
    fn new(a: &'a [u32], b: &'a [u32]) -> Search<'a> {
        let cost_max = cost_max(a.len() + b.len());
        let reached = Reached::new(cost_max);
        Search { a, b, cost_max, from_start: reached.clone(), from_end: reached }
    }

    /// Pairs of indexes of equal lines: a common subsequence, in no order.
    fn matches(mut self) -> Vec<(usize, usize)> {
        let (a, b) = (self.a, self.b);
        let mut pairs = Vec::new();
        let mut parts = vec![Part { a_at: 0, a_end: a.len(), b_at: 0, b_end: b.len() }];
        while let Some(mut part) = parts.pop() {
            let is_open = |part: &Part| part.a_at < part.a_end && part.b_at < part.b_end;
            while is_open(&part) && a[part.a_at] == b[part.b_at] {
                pairs.push((part.a_at, part.b_at));
                part.a_at += 1;
                part.b_at += 1;
            }
            while is_open(&part) && a[part.a_end - 1] == b[part.b_end - 1] {
                part.a_end -= 1;
                part.b_end -= 1;
                pairs.push((part.a_end, part.b_end));
            }
            if is_open(&part) {
                let (a_mid, b_mid) = self.split(part);
                parts.push(Part { a_at: a_mid, b_at: b_mid, ..part });
                parts.push(Part { a_end: a_mid, b_end: b_mid, ..part });
            }
        }
        pairs
    }

    /// A point on a shortest path through the part, or on a good one where that takes too long.
    ///
    /// Both sides hold lines and neither their first nor their last ones are equal, so a path
    /// has an edit before and one after the point: the two parts that it makes are smaller.
    fn split(&mut self, part: Part) -> (usize, usize) {
        let a = &self.a[part.a_at..part.a_end];
        let b = &self.b[part.b_at..part.b_end];
        let size = Size { a: a.len() as isize, b: b.len() as isize };
        let point = |x: isize, y: isize| (part.a_at + x as usize, part.b_at + y as usize);
        let is_odd = (size.a - size.b) % 2 != 0;
        for cost in 0..=self.cost_max as isize {
            self.from_start.extend(cost, size, |x, y| a[x] == b[y]);
            if is_odd
                && let Some((x, y)) = self.from_start.meeting(cost, &self.from_end, cost - 1, size)
            {
                return point(x, y);
            }
            self.from_end.extend(cost, size, |x, y| a[a.len() - 1 - x] == b[b.len() - 1 - y]);
            if !is_odd
                && let Some((x, y)) = self.from_end.meeting(cost, &self.from_start, cost, size)
            {
                return point(size.a - x, size.b - y);
            }
        }
        let (x, y) = self.from_start.furthest(self.cost_max as isize);
        let (u, v) = self.from_end.furthest(self.cost_max as isize);
        match x + y < u + v {
            true => point(size.a - u, size.b - v),
            false => point(x, y),
        }
    }
}

#[derive(Clone, Copy)]
struct Size {
    a: isize,
    b: isize,
}

/// How far the paths of one direction got. A path that has passed `x` lines of `a` and `y` of `b`
/// is on the diagonal `x - y`; for each diagonal the largest `x` is kept.
#[derive(Clone)]
struct Reached {
    x: Vec<isize>,
    /// Index of diagonal 0.
    zero: isize,
}

/// A diagonal that no path is on.
const NOWHERE: isize = -1;

impl Reached {
    fn new(cost_max: usize) -> Reached {
        Reached { x: vec![NOWHERE; 2 * cost_max + 3], zero: cost_max as isize + 1 }
    }

    fn get(&self, diagonal: isize) -> Option<isize> {
        let x = self.x[(self.zero + diagonal) as usize];
        (x != NOWHERE).then_some(x)
    }

    fn set(&mut self, diagonal: isize, x: Option<isize>) {
        self.x[(self.zero + diagonal) as usize] = x.unwrap_or(NOWHERE);
    }

    /// Lets every path take its `cost`-th edit and then all equal lines.
    fn extend(&mut self, cost: isize, size: Size, is_equal: impl Fn(usize, usize) -> bool) {
        // These may hold what an earlier part left.
        self.set(-cost - 1, None);
        self.set(cost + 1, None);
        for diagonal in (-cost..=cost).step_by(2) {
            // One more line of `a`, or one of `b`, where there is one.
            let from_left = self.get(diagonal - 1).filter(|&x| x < size.a).map(|x| x + 1);
            let from_above = self.get(diagonal + 1).filter(|&x| x - diagonal <= size.b);
            let start = if cost == 0 { Some(0) } else { from_left.max(from_above) };
            let end = start.map(|mut x| {
                while x < size.a
                    && x - diagonal < size.b
                    && is_equal(x as usize, (x - diagonal) as usize)
                {
                    x += 1;
                }
                x
            });
            self.set(diagonal, end);
        }
    }

    /// Where a path with `cost` edits meets one of the opposite direction.
    fn meeting(
        &self,
        cost: isize,
        other: &Reached,
        other_cost: isize,
        size: Size,
    ) -> Option<(isize, isize)> {
        (-cost..=cost).step_by(2).find_map(|diagonal| {
            let opposite = size.a - size.b - diagonal;
            if other_cost < opposite.abs() {
                return None;
            }
            let x = self.get(diagonal)?;
            let rest = other.get(opposite)?;
            (size.a <= x + rest).then_some((x, x - diagonal))
        })
    }

    fn furthest(&self, cost: isize) -> (isize, isize) {
        let ends = (-cost..=cost).step_by(2).filter_map(|d| self.get(d).map(|x| (x, x - d)));
        ends.max_by_key(|(x, y)| x + y).unwrap_or((0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lcs_len(a: &[u32], b: &[u32]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (at, y) in b.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if x == y { diagonal + 1 } else { above.max(row[at]) };
                diagonal = above;
            }
        }
        row[b.len()]
    }

    #[track_caller]
    fn check(a: &[u32], b: &[u32]) {
        let mut pairs = Search::new(a, b).matches();
        pairs.sort_unstable();
        assert!(pairs.iter().all(|&(x, y)| a[x] == b[y]), "{a:?} {b:?}: {pairs:?}");
        let ascends = |pair: &[(usize, usize)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
        assert!(pairs.windows(2).all(ascends), "{a:?} {b:?}: {pairs:?}");
        assert_eq!(pairs.len(), lcs_len(a, b), "{a:?} {b:?}");
    }

    #[test]
    fn short_lists_get_a_longest_common_part() {
        let mut lists: Vec<Vec<u32>> = vec![Vec::new()];
        for length in 0..5 {
            for list in lists.clone().into_iter().filter(|list| list.len() == length) {
                lists.extend((0..3).map(|line| [&list[..], &[line]].concat()));
            }
        }
        for a in &lists {
            for b in &lists {
                check(a, b);
            }
        }
    }

    #[test]
    fn longer_lists_get_a_longest_common_part() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for lines in [2, 3, 10, 100] {
            for _ in 0..100 {
                let (a_len, b_len) = (random(120), random(120));
                let a: Vec<u32> = (0..a_len).map(|_| random(lines) as u32).collect();
                let b: Vec<u32> = (0..b_len).map(|_| random(lines) as u32).collect();
                check(&a, &b);
            }
        }
    }
}

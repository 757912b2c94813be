//! Line diffs: what changed as data, and as text that `patch -p1` and `git apply` accept.
//!
//! Works on bytes. A line ends with LF; a CR is part of its line, so a changed line end is a
//! changed line. Nothing is decoded here: [`Diff::unified`] keeps every byte, and
//! [`Diff::unified_text`] marks those that are not UTF-8, for reading only.
//!
//! The result is a shortest edit for ordinary changes. The work is bounded: where two files
//! differ very much, the edit found may be longer than the shortest, never wrong.

mod compare;
mod hunk;
mod slide;
mod unified;

pub use hunk::{Diff, Hunk, Kind, Line};
pub use unified::FileChange;

/// Unchanged lines around each change.
pub const CONTEXT_LINES: usize = 3;

/// What turns `old` into `new`.
pub fn diff<'a>(old: &'a [u8], new: &'a [u8]) -> Diff<'a> {
    let old = split_lines(old);
    let new = split_lines(new);
    let mut changes = compare::changes(&old, &new);
    slide::settle(&mut changes, &old, &new);
    hunk::group(&changes, &old, &new)
}

/// Lines with their ends; only the last may have none.
fn split_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', bytes) {
        lines.push(&bytes[start..=end]);
        start = end + 1;
    }
    if start < bytes.len() {
        lines.push(&bytes[start..]);
    }
    lines
}

/// One replaced stretch: `old_len` lines from index `old_at` became `new_len` from `new_at`.
/// Changes are in order and never touch each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    old_at: usize,
    old_len: usize,
    new_at: usize,
    new_len: usize,
}

impl Change {
    fn old_end(&self) -> usize {
        self.old_at + self.old_len
    }

    fn new_end(&self) -> usize {
        self.new_at + self.new_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The new file, by the old one and the hunks alone; checks every number on the way.
    fn apply(old: &[u8], diff: &Diff<'_>) -> Vec<u8> {
        let old = split_lines(old);
        let mut new: Vec<&[u8]> = Vec::new();
        let mut old_at = 0;
        for hunk in &diff.hunks {
            let first = |start, count: usize| if count == 0 { start } else { start - 1 };
            let old_first = first(hunk.old_start, hunk.old_count);
            new.extend(&old[old_at..old_first]);
            old_at = old_first;
            assert_eq!(new.len(), first(hunk.new_start, hunk.new_count));
            for line in &hunk.lines {
                if line.kind != Kind::Added {
                    assert_eq!(line.bytes, old[old_at]);
                    old_at += 1;
                }
                if line.kind != Kind::Removed {
                    new.push(line.bytes);
                }
            }
            assert_eq!(old_at, old_first + hunk.old_count);
        }
        new.extend(&old[old_at..]);
        let count = |kind| {
            diff.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind).count()
        };
        assert_eq!((diff.added, diff.removed), (count(Kind::Added), count(Kind::Removed)));
        new.concat()
    }

    #[track_caller]
    fn check(old: &[u8], new: &[u8]) {
        let diff = diff(old, new);
        assert_eq!(apply(old, &diff), new, "{old:?} {new:?}");
        assert_eq!(diff.is_empty(), old == new);
    }

    #[test]
    fn applying_the_diff_gives_the_new_file_for_all_short_files() {
        let pieces: [&[u8]; 7] = [b"a\n", b"b\n", b"\n", b"a\r\n", b"\r", b"a", b"\xff\0\n"];
        let mut files: Vec<Vec<u8>> = vec![Vec::new()];
        for _ in 0..3 {
            let grown = |file: &Vec<u8>| pieces.map(|piece| [file, piece].concat());
            files.extend(files.iter().flat_map(grown).collect::<Vec<_>>());
            files.sort();
            files.dedup();
        }
        for old in &files {
            for new in &files {
                check(old, new);
            }
        }
    }

    fn xorshift(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        }
    }

    #[test]
    fn applying_the_diff_gives_the_new_file_for_random_edits() {
        for seed in 1..300 {
            let mut random = xorshift(seed * 0x9e37_79b9);
            let vocabulary = 1 + random(30);
            let mut lines: Vec<String> =
                (0..random(200)).map(|_| format!("{}\n", random(vocabulary))).collect();
            let old = lines.concat();
            for _ in 0..random(20) {
                let at = random(lines.len() + 1);
                let end = (at + random(5)).min(lines.len());
                let added: Vec<_> = (0..random(5)).map(|_| format!("{}\n", random(40))).collect();
                lines.splice(at..end, added);
            }
            let new = lines.concat();
            check(old.as_bytes(), new.as_bytes());
            check(old.trim_end().as_bytes(), new.as_bytes());
            check(old.as_bytes(), new.trim_end().as_bytes());
        }
    }

    /// Each takes hours when all of Myers' search is done.
    #[test]
    fn files_that_differ_everywhere_take_bounded_work() {
        let file = |seed, vocabulary: usize| -> Vec<u8> {
            let mut random = xorshift(seed);
            (0..20_000).flat_map(|_| format!("{}\n", random(vocabulary)).into_bytes()).collect()
        };
        // All lines common and shuffled; few different lines; none common.
        for vocabulary in [2, 50, 10_000, usize::MAX / 2] {
            check(&file(1, vocabulary), &file(2, vocabulary));
        }
        let (ones, twos) = ("1\n".repeat(30_000), "1\n2\n".repeat(30_000));
        check(ones.as_bytes(), twos.as_bytes());
        check(twos.as_bytes(), ones.as_bytes());
    }

    /// The lines of a diff with their signs.
    fn shown(old: &str, new: &str) -> String {
        let diff = diff(old.as_bytes(), new.as_bytes());
        let path = std::path::Path::new("x");
        let text = diff.unified_text(path, FileChange::Modified, usize::MAX);
        text.lines().skip(2).fold(String::new(), |all, line| all + line + "\n")
    }

    #[test]
    fn an_inserted_block_is_shown_whole() {
        let old = "fn a() {\n    one\n}\n\nfn c() {\n    one\n}\n";
        let new = "fn a() {\n    one\n}\n\nfn b() {\n    one\n}\n\nfn c() {\n    one\n}\n";
        let want = "@@ -2,6 +2,10 @@\n     one\n }\n \n+fn b() {\n+    one\n+}\n+\n \
                    fn c() {\n     one\n }\n";
        assert_eq!(shown(old, new), want);
        let old = "def a():\n    if x:\n        one\n    if z:\n        one\n";
        let new =
            "def a():\n    if x:\n        one\n    if y:\n        one\n    if z:\n        one\n";
        let want = "@@ -1,5 +1,7 @@\n def a():\n     if x:\n         one\n+    if y:\n\
                    +        one\n     if z:\n         one\n";
        assert_eq!(shown(old, new), want);
    }
}

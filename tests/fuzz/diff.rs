//! Two files in one input: the hunks turn the first into the second.

use std::path::Path;

use etch::diff::{Diff, FileChange, Kind, diff};

use crate::fuzz::fuzz;

/// The new file by the old one and the hunks.
fn apply(old: &[u8], diff: &Diff<'_>) -> Vec<u8> {
    let old: Vec<_> = old.split_inclusive(|&byte| byte == b'\n').collect();
    let mut new = Vec::new();
    let mut old_at = 0;
    for hunk in &diff.hunks {
        let start = hunk.old_start - usize::from(0 < hunk.old_count);
        new.extend(&old[old_at..start]);
        old_at = start;
        for line in &hunk.lines {
            if line.kind != Kind::Added {
                assert_eq!(line.bytes, old[old_at]);
                old_at += 1;
            }
            if line.kind != Kind::Removed {
                new.push(line.bytes);
            }
        }
    }
    new.extend(&old[old_at..]);
    new.concat()
}

#[test]
fn diff_of_two_files() {
    let source = include_bytes!("../../src/diff/mod.rs");
    let numbers: String = (0..200).map(|n| format!("{}\n", n % 7 * n % 11)).collect();
    let seeds = [
        [&source[..1_500], b"\xfe", &source[800..2_000]].concat(),
        [numbers.as_bytes(), b"\xfe", &numbers.as_bytes()[40..]].concat(),
        b"a\nb\nc\xfea\nc\n".to_vec(),
        b"\xfe".to_vec(),
    ];
    let tokens =
        ["\n", "\r\n", "\r", "a\n", "b\n", "    a\n", "\n\n\n", "1\n2\n3\n", "}\n\nfn x() {\n"];
    fuzz("diff", seeds, &tokens, |bytes| {
        let cut = bytes.iter().position(|&byte| byte == 0xfe).unwrap_or(bytes.len() / 2);
        let (old, new) = bytes.split_at(cut);
        let diff = diff(old, new);
        assert!(apply(old, &diff) == new);
        let path = Path::new("a file");
        let bytes_max = bytes.len() % 1_000;
        let text = diff.unified(path, FileChange::Modified, bytes_max);
        assert!(text.len() <= bytes_max.max(30) + 80, "{}", text.len());
        (diff.hunks.len(), diff.added.ilog2_or_zero(), diff.removed.ilog2_or_zero())
    });
}

trait Log2 {
    fn ilog2_or_zero(self) -> u32;
}

impl Log2 for usize {
    fn ilog2_or_zero(self) -> u32 {
        self.checked_ilog2().unwrap_or(0)
    }
}

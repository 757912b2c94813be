//! A diff as unified text, whole or cut to a size.

use std::path::Path;

use crate::diff::{Diff, Hunk, Kind, Line};
use crate::text;

/// What became of the file, for the two name lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    Modified,
    Created,
    Deleted,
}

impl Diff<'_> {
    /// Unified text that `patch -p1` and `git apply` accept in the folder that `path` is relative
    /// to; empty when nothing changed. Every byte of the files is kept.
    ///
    /// Hunks that would pass `bytes_max` are left out, of the first one only the last lines; a
    /// line in brackets then says how much is missing, and may itself stand above the limit.
    /// Whole hunks still apply, and tools skip that line.
    pub fn unified(&self, path: &Path, change: FileChange, bytes_max: usize) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_empty() {
            return out;
        }
        push_names(&mut out, path, change);
        let mut left_out = None;
        for (idx, hunk) in self.hunks.iter().enumerate() {
            let start = out.len();
            push_hunk(&mut out, hunk);
            if bytes_max < out.len() {
                out.truncate(start);
                left_out = Some(&self.hunks[idx..]);
                break;
            }
        }
        let Some(left_out) = left_out else { return out };
        let mut missing = Missing::of(left_out);
        if left_out.len() == self.hunks.len()
            && let Some(part) = first_lines(&left_out[0], bytes_max.saturating_sub(out.len()))
        {
            push_hunk(&mut out, &part);
            let shown = Missing::of(std::slice::from_ref(&part));
            missing.added -= shown.added;
            missing.removed -= shown.removed;
        }
        out.extend_from_slice(missing.to_string().as_bytes());
        out
    }

    /// [`Diff::unified`] for a reader, a model or a log: bytes that are not UTF-8 are marked.
    pub fn unified_text(&self, path: &Path, change: FileChange, bytes_max: usize) -> String {
        text::decode_lossy(&self.unified(path, change, bytes_max)).into_owned()
    }
}

fn push_names(out: &mut Vec<u8>, path: &Path, change: FileChange) {
    for (sign, prefix, is_there) in [
        ("--- ", "a/", change != FileChange::Created),
        ("+++ ", "b/", change != FileChange::Deleted),
    ] {
        out.extend_from_slice(sign.as_bytes());
        match is_there {
            true => push_name(out, prefix, path.as_os_str().as_encoded_bytes()),
            false => out.extend_from_slice(b"/dev/null"),
        }
        out.push(b'\n');
    }
}

/// Names with control characters, quotes or backslashes are quoted as in C; a tab ends a name
/// with blanks, which would else be cut there.
fn push_name(out: &mut Vec<u8>, prefix: &str, name: &[u8]) {
    let needs_quotes = |byte: &u8| byte.is_ascii_control() || matches!(byte, b'"' | b'\\');
    if !name.iter().any(needs_quotes) {
        out.extend_from_slice(prefix.as_bytes());
        out.extend_from_slice(name);
        if name.contains(&b' ') {
            out.push(b'\t');
        }
        return;
    }
    out.push(b'"');
    out.extend_from_slice(prefix.as_bytes());
    for &byte in name {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            byte if byte.is_ascii_control() => {
                out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            }
            byte => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Room for a hunk's header: four numbers.
const HEADER_BYTES_MAX: usize = 92;

fn push_hunk(out: &mut Vec<u8>, hunk: &Hunk<'_>) {
    let range = |start, count| match count {
        1 => format!("{start}"),
        _ => format!("{start},{count}"),
    };
    let old = range(hunk.old_start, hunk.old_count);
    let new = range(hunk.new_start, hunk.new_count);
    out.extend_from_slice(format!("@@ -{old} +{new} @@\n").as_bytes());
    hunk.lines.iter().for_each(|line| push_line(out, line));
}

const NO_NEWLINE: &[u8] = b"\n\\ No newline at end of file\n";

fn push_line(out: &mut Vec<u8>, line: &Line<'_>) {
    out.push(match line.kind {
        Kind::Context => b' ',
        Kind::Removed => b'-',
        Kind::Added => b'+',
    });
    out.extend_from_slice(line.bytes);
    if !line.bytes.ends_with(b"\n") {
        out.extend_from_slice(NO_NEWLINE);
    }
}

/// As many first lines of a hunk as fit, as a hunk of their own; `None` when they show no change.
fn first_lines<'a>(hunk: &Hunk<'a>, bytes_max: usize) -> Option<Hunk<'a>> {
    let mut left = bytes_max.checked_sub(HEADER_BYTES_MAX + NO_NEWLINE.len())?;
    let fits = |line: &&Line<'a>| {
        let rest = left.checked_sub(1 + line.bytes.len());
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let lines: Vec<_> = hunk.lines.iter().take_while(fits).copied().collect();
    let count = |without| lines.iter().filter(|line| line.kind != without).count();
    let (old_count, new_count) = (count(Kind::Added), count(Kind::Removed));
    if lines.iter().all(|line| line.kind == Kind::Context) {
        return None;
    }
    // The start of an empty side names the line before, that of another its first line.
    let start = |start: usize, whole: usize, count: usize| match (whole, count) {
        (1.., 0) => start - 1,
        _ => start,
    };
    Some(Hunk {
        old_start: start(hunk.old_start, hunk.old_count, old_count),
        old_count,
        new_start: start(hunk.new_start, hunk.new_count, new_count),
        new_count,
        lines,
    })
}

/// What a cut left out.
struct Missing {
    places: usize,
    added: usize,
    removed: usize,
}

impl Missing {
    fn of(hunks: &[Hunk<'_>]) -> Missing {
        let count = |kind| {
            hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind).count()
        };
        Missing { places: hunks.len(), added: count(Kind::Added), removed: count(Kind::Removed) }
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let added = text::plural(self.added as u64, "added line");
        let removed = text::plural(self.removed as u64, "removed line");
        let places = text::plural(self.places as u64, "place");
        writeln!(f, "[diff cut: {added} and {removed} at {places} left out]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::diff;

    fn text_of(old: &str, new: &str, bytes_max: usize) -> String {
        let diff = diff(old.as_bytes(), new.as_bytes());
        diff.unified_text(Path::new("src/a.rs"), FileChange::Modified, bytes_max)
    }

    #[test]
    fn a_change_stands_among_its_neighbours() {
        assert_eq!(
            text_of("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", 1000),
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
        assert_eq!(text_of("same\n", "same\n", 1000), "");
        assert_eq!(
            text_of("a\r\nb", "a\nb\n", 1000),
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,2 @@\n-a\r\n-b\n\
             \\ No newline at end of file\n+a\n+b\n"
        );
        assert_eq!(
            text_of("", "new", 1000),
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn distant_changes_are_hunks_of_their_own() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let near = old.replace("\n5\n", "\n").replace("\n12\n", "\ntwelve\n");
        let far = old.replace("\n5\n", "\n").replace("\n13\n", "\nthirteen\n");
        let heads = |new: &str| -> Vec<String> {
            let text = text_of(&old, new, 1000);
            text.lines().filter(|line| line.starts_with("@@")).map(str::to_owned).collect()
        };
        assert_eq!(heads(&near), ["@@ -2,14 +2,13 @@"]);
        assert_eq!(heads(&far), ["@@ -2,7 +2,6 @@", "@@ -10,7 +9,7 @@"]);
    }

    #[test]
    fn names_say_what_became_of_the_file_and_survive_odd_signs() {
        let names = |path: &str, change| {
            let text = diff(b"a\n", b"b\n").unified_text(Path::new(path), change, 1000);
            text.split("@@").next().unwrap().to_owned()
        };
        assert_eq!(names("x", FileChange::Created), "--- /dev/null\n+++ b/x\n");
        assert_eq!(names("x", FileChange::Deleted), "--- a/x\n+++ /dev/null\n");
        assert_eq!(names("my é", FileChange::Modified), "--- a/my é\t\n+++ b/my é\t\n");
        assert_eq!(
            names("a\"b\\c\n\u{1}", FileChange::Modified),
            "--- \"a/a\\\"b\\\\c\\n\\001\"\n+++ \"b/a\\\"b\\\\c\\n\\001\"\n"
        );
    }

    #[test]
    fn a_long_diff_is_cut_between_hunks_and_says_so() {
        let old: String = (0..200).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 50\n", "").replace("line 100\n", "LINE\n").replace("150", "x");
        let whole = text_of(&old, &new, 10_000);
        let cut = text_of(&old, &new, 250);
        let (shown, marker) = cut.split_once("[diff cut").unwrap();
        assert!(whole.starts_with(shown) && shown.ends_with(" line 103\n"), "{cut}");
        assert_eq!(marker, ": 1 added line and 1 removed line at 1 place left out]\n");
        // Not even the first hunk fits.
        let all = text_of("a\nb\n", &"new line\n".repeat(100), 300);
        let start = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,14 @@\n-a\n-b\n+new line\n";
        assert!(all.starts_with(start), "{all}");
        assert!(
            all.ends_with("[diff cut: 86 added lines and 0 removed lines at 1 place left out]\n")
        );
        assert_eq!(
            text_of("", &"long".repeat(1000), 300),
            "--- a/src/a.rs\n+++ b/src/a.rs\n\
             [diff cut: 1 added line and 0 removed lines at 1 place left out]\n"
        );
        for bytes_max in 0..600 {
            assert!(text_of(&old, &new, bytes_max).len() <= bytes_max.max(30) + 80);
        }
    }

    #[test]
    fn bytes_are_kept_and_only_the_text_marks_them() {
        let found = diff(b"n = 7\n# gar\xe7on\n", b"n = 8\n# gar\xe7on\n");
        let bytes = found.unified(Path::new("a"), FileChange::Modified, 1000);
        assert!(bytes.ends_with(b"-n = 7\n+n = 8\n # gar\xe7on\n"));
        let text = found.unified_text(Path::new("a"), FileChange::Modified, 1000);
        assert!(text.ends_with("-n = 7\n+n = 8\n # gar\\xe7on\n"));
    }
}

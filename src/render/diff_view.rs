//! A unified diff for people: numbers of the lines, colours, a cut to what fits.
//!
//! Reads what [`crate::diff`] writes, and the same cut off anywhere. A line belongs to a hunk as
//! long as the hunk's header says so, whatever it looks like; lines outside of hunks are shown
//! as they are. Every line is cut to the width: this is for looking, the log has the whole text.

use super::line;
use super::style::{Attrs, Style};
use crate::text;

/// The diff inside a tool's output: from the first file's names to the end.
pub fn find(output: &str) -> Option<&str> {
    let mut at = 0;
    for line in output.split_inclusive('\n') {
        if line.starts_with("--- ") && output[at + line.len()..].starts_with("+++ ") {
            return Some(&output[at..]);
        }
        at += line.len();
    }
    None
}

/// At most `lines_max` lines of a diff, each no wider than `columns` and with its end; one more
/// line says how many are missing, and `hint` where they are.
pub fn render(diff: &str, style: Style, columns: usize, lines_max: usize, hint: &str) -> String {
    let rows = rows(diff);
    let digits = rows.iter().map(Row::number_max).max().unwrap_or(0).to_string().len();
    let mut out = String::new();
    for row in rows.iter().take(lines_max) {
        row.render(&mut out, digits, columns, style);
        out.push('\n');
    }
    let more = rows.len().saturating_sub(lines_max);
    if more > 0 {
        let line = format!("… {}{hint}", text::plural(more as u64, "more line"));
        out.push_str(&style.dim(&text::truncate_width(&line, columns)));
        out.push('\n');
    }
    out
}

/// One line to show.
enum Row<'a> {
    Context {
        old: usize,
        new: usize,
        text: &'a str,
    },
    Removed {
        old: usize,
        text: &'a str,
    },
    Added {
        new: usize,
        text: &'a str,
    },
    /// Between two hunks.
    Gap,
    /// The name of a second file and of those behind it.
    File(&'a str),
    Note(&'a str),
}

/// What is left of the hunk that is being read, and where it stands.
#[derive(Default)]
struct Hunk {
    old: usize,
    new: usize,
    old_left: usize,
    new_left: usize,
}

fn rows(diff: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut hunk = Hunk::default();
    let (mut files, mut hunks) = (0, 0);
    let keeps_cr = !has_crlf_alone(diff);
    let lines = diff.strip_suffix('\n').unwrap_or(diff).split('\n');
    let mut lines = lines.map(|line| cut_cr(line, keeps_cr)).peekable();
    while let Some(line) = lines.next() {
        if let Some(row) = hunk.line(line) {
            rows.push(row);
        } else if let Some(next) = hunk_header(line) {
            if 0 < hunks {
                rows.push(Row::Gap);
            }
            hunks += 1;
            hunk = next;
        } else if line.starts_with("--- ")
            && let Some(name) = lines.next_if(|next| next.starts_with("+++ "))
        {
            files += 1;
            hunks = 0;
            if 1 < files {
                rows.push(Row::File(file_name(line, name)));
            }
        } else if !line.is_empty() {
            rows.push(Row::Note(line));
        }
    }
    rows
}

/// Whether all lines of the files end with CR LF: then no CR is worth to be seen.
fn has_crlf_alone(diff: &str) -> bool {
    let is_name = |line: &str| line.starts_with("--- ") || line.starts_with("+++ ");
    let mut lines = diff.split('\n').filter(|line| line.starts_with([' ', '+', '-']));
    lines.all(|line| is_name(line) || line.ends_with('\r'))
}

fn cut_cr(line: &str, keeps_cr: bool) -> &str {
    if keeps_cr { line } else { line.strip_suffix('\r').unwrap_or(line) }
}

impl Hunk {
    /// The row of a line of this hunk; `None` when the line is none of its.
    fn line<'a>(&mut self, line: &'a str) -> Option<Row<'a>> {
        if let Some(note) = line.strip_prefix("\\ ") {
            return Some(Row::Note(note));
        }
        let (sign, text) = match line.chars().next() {
            // A blank line of context may have lost its blank on the way.
            None => (' ', ""),
            Some(sign @ (' ' | '-' | '+')) => (sign, &line[1..]),
            Some(_) => return None,
        };
        let (takes_old, takes_new) = (sign != '+', sign != '-');
        let is_over = takes_old && self.old_left == 0 || takes_new && self.new_left == 0;
        if is_over {
            return None;
        }
        let (old, new) = (self.old, self.new);
        self.old = old.saturating_add(usize::from(takes_old));
        self.old_left -= usize::from(takes_old);
        self.new = new.saturating_add(usize::from(takes_new));
        self.new_left -= usize::from(takes_new);
        Some(match sign {
            '-' => Row::Removed { old, text },
            '+' => Row::Added { new, text },
            _ => Row::Context { old, new, text },
        })
    }
}

/// `@@ -1,4 +1,5 @@` and whatever stands behind it.
fn hunk_header(line: &str) -> Option<Hunk> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |range: &str| -> Option<(usize, usize)> {
        match range.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((range.parse().ok()?, 1)),
        }
    };
    let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
    Some(Hunk { old, new, old_left, new_left })
}

/// The name without its mark; that of the old file where the new one is gone.
fn file_name<'a>(old: &'a str, new: &'a str) -> &'a str {
    let name = |line: &'a str| line[4..].trim_end_matches('\t');
    let shown = match name(new) {
        "/dev/null" => name(old),
        shown => shown,
    };
    shown.strip_prefix("a/").or(shown.strip_prefix("b/")).unwrap_or(shown)
}

impl Row<'_> {
    fn number_max(&self) -> usize {
        match *self {
            Row::Context { old, new, .. } => old.max(new),
            Row::Removed { old, .. } => old,
            Row::Added { new, .. } => new,
            Row::Gap | Row::File(_) | Row::Note(_) => 0,
        }
    }

    fn render(&self, out: &mut String, digits: usize, columns: usize, style: Style) {
        let (old, new, sign, attrs, text) = match *self {
            Row::Context { old, new, text } => (Some(old), Some(new), ' ', Attrs::NONE, text),
            Row::Removed { old, text } => (Some(old), None, '-', Attrs::RED, text),
            Row::Added { new, text } => (None, Some(new), '+', Attrs::GREEN, text),
            Row::Gap => (None, None, '⋮', Attrs::DIM, ""),
            Row::Note(note) => (None, None, ' ', Attrs::DIM, note),
            Row::File(name) => {
                let name = text::visible_line(name);
                return style.paint_to(out, Attrs::BOLD, &text::truncate_width(&name, columns));
            }
        };
        let number = |number: Option<usize>| number.map_or(String::new(), |n| n.to_string());
        let gutter = format!("{:>digits$} {:>digits$} ", number(old), number(new));
        let gutter = text::fit_width(&gutter, columns);
        style.paint_to(out, Attrs::DIM, gutter);
        let body = match text {
            "" => sign.to_string(),
            text => format!("{sign} {}", line::fit(text, usize::MAX)),
        };
        let body = text::truncate_width(body.trim_end(), columns - gutter.len()).into_owned();
        style.paint_to(out, attrs, &body);
        if body.is_empty() {
            // A blank line of context: nothing but its numbers.
            let end = out.trim_end_matches(' ').len();
            out.truncate(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::diff::{self, FileChange};
    use crate::render::style::painted_width;

    const DIFF: &str = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -8,4 +8,4 @@\n fn a() {\n-\tone();\n+\ttwo();\n\n }\n@@ -99 +99,2 @@\n-- -- x\n+++ y\n+界界界界\n\\ No newline at end of file\n[diff cut: 1 added line and 0 removed lines at 1 place left out]\n";

    #[test]
    fn lines_have_their_numbers_and_hunks_stand_apart() {
        let want = [
            "  8   8   fn a() {",
            "  9     -     one();",
            "      9 +     two();",
            " 10  10",
            " 11  11   }",
            "        ⋮",
            " 99     - - -- x",
            "     99 + ++ y",
            "    100 + 界界界界",
            "          No newline at end of file",
            "          [diff cut: 1 added line and 0 removed lines at 1 place left out]",
            "",
        ];
        assert_eq!(render(DIFF, Style::plain(), 80, 20, ""), want.join("\n"));
        let want = [
            "  8   8   fn a(…",
            "  9     -     o…",
            "      9 +     t…",
            " 10  10",
            " 11  11   }",
            "        ⋮",
            " 99     - - -- x",
            "     99 + ++ y",
            "    100 + 界界…",
            "… 2 more lines",
            "",
        ];
        assert_eq!(render(DIFF, Style::plain(), 16, 9, ""), want.join("\n"));
    }

    #[test]
    fn colours_tell_what_was_added_and_removed() {
        let shown = render(DIFF, Style::coloured(), 80, 3, "");
        let want = "\x1b[2m  8   8 \x1b[0m  fn a() {\n\
                    \x1b[2m  9     \x1b[0m\x1b[31m-     one();\x1b[0m\n\
                    \x1b[2m      9 \x1b[0m\x1b[32m+     two();\x1b[0m\n\
                    \x1b[2m… 8 more lines\x1b[0m\n";
        assert_eq!(shown, want);
    }

    #[test]
    fn a_diff_may_be_cut_anywhere_and_no_line_is_too_wide() {
        for end in (0..=DIFF.len()).filter(|&end| DIFF.is_char_boundary(end)) {
            for columns in [0, 1, 5, 9, 10, 11, 20] {
                for line in render(&DIFF[..end], Style::coloured(), columns, 100, "").lines() {
                    assert!(painted_width(line) <= columns, "{end} {columns} {line:?}");
                }
            }
        }
    }

    #[test]
    fn what_the_diff_module_writes_is_read_back() {
        let old: String = (1..40).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 3\n", "three\n").replace("line 30\n", "");
        let made = diff::diff(old.as_bytes(), new.as_bytes());
        let text = made.unified_text(Path::new("a b"), FileChange::Modified, 10_000);
        let shown = render(&text, Style::plain(), 80, 100, "");
        assert!(shown.contains("\n 3    - line 3\n    3 + three\n"), "{shown}");
        assert!(shown.contains("\n30    - line 30\n31 30   line 31\n"), "{shown}");
        let two = format!("{text}{}", text.replace("a b", "c"));
        assert!(render(&two, Style::plain(), 80, 100, "").contains("\nc\n"));
    }

    #[test]
    fn controls_are_shown_and_the_diff_is_found_in_the_output() {
        let output = "Edited --- x.\n--- not yet\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\x1b[2J\n+b\r";
        let diff = find(output).unwrap();
        assert!(diff.starts_with("--- a/x\n"));
        assert_eq!(render(diff, Style::plain(), 80, 9, ""), "1   - a^[[2J\n  1 + b^M\n");
        assert_eq!(find("--- a\nb"), None);
    }

    #[test]
    fn line_ends_are_seen_where_they_differ() {
        let mixed = "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n";
        assert_eq!(render(mixed, Style::plain(), 80, 9, ""), "1   - a^M\n  1 + a\n2 2   b^M\n");
        let alike = "@@ -1,2 +1,2 @@\n-a\r\n+c\r\n b\r\n";
        assert_eq!(render(alike, Style::plain(), 80, 9, ""), "1   - a\n  1 + c\n2 2   b\n");
    }
}

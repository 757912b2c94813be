//! A tool call and what came of it, as a person sees it: one line, and below it a diff or the
//! ends of a command's output. The rest is left out and counted; the log has it all.

use super::diff_view;
use super::line;
use super::style::{Attrs, Style, painted_width};
use crate::text;

/// Lines of a command's output that are shown below its call: head and tail.
const OUTPUT_LINES_MAX: usize = 8;
/// Lines of a diff that are shown below its call.
const DIFF_LINES_MAX: usize = 80;
/// What is shown of a call's subject even where its result needs the room.
const SUBJECT_COLUMNS_MIN: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Running,
    Done,
    /// The call failed, was refused, or its command did.
    Failed,
}

impl State {
    /// Of a call that ended; a command may have failed although its call did not.
    pub fn ended(failed: bool, summary: &str) -> State {
        let exit_code = summary.strip_prefix("exit code ").map(|rest| rest.split(',').next());
        match failed || exit_code.is_some_and(|code| code != Some("0")) {
            true => State::Failed,
            false => State::Done,
        }
    }
}

/// The line of a call.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    pub name: &'a str,
    pub subject: &'a str,
    pub summary: &'a str,
    pub state: State,
}

impl Head<'_> {
    /// No wider than `columns`, where they are given. The summary is the first to give way.
    pub fn paint(&self, columns: Option<usize>, style: Style) -> String {
        let mut name = text::visible_line(self.name).into_owned();
        let mut subject = text::visible_line(self.subject).into_owned();
        let mut summary = format!("({})", text::visible_line(self.summary));
        if let Some(columns) = columns {
            name = line::fit(&name, columns.saturating_sub(2));
            let room = columns.saturating_sub(text::width(&name) + 3);
            let beside = room.saturating_sub(text::width(&summary) + 1);
            subject = line::fit(&subject, beside.max(SUBJECT_COLUMNS_MIN).min(room));
        }
        let mark = match self.state {
            State::Running => style.dim("•"),
            State::Done => style.green("•"),
            State::Failed => style.red("•"),
        };
        let blank = if subject.is_empty() { "" } else { " " };
        let mut head = format!("{mark} {}{blank}{subject} ", style.bold(&name));
        if let Some(columns) = columns {
            summary = line::fit(&summary, columns.saturating_sub(painted_width(&head)));
        }
        style.paint_to(&mut head, Attrs::DIM, &summary);
        head.trim_end().to_owned()
    }
}

/// What belongs to a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// Painted, none wider than the columns.
    pub lines: Vec<String>,
    /// Something of the output is not among them.
    pub has_more: bool,
}

impl Details {
    /// The diff of an edit, the ends of a command's output; `hint` stands behind the count of
    /// lines that are left out.
    pub fn of(name: &str, output: &str, columns: usize, style: Style, hint: &str) -> Details {
        match name {
            "edit" | "write" => {
                let Some(diff) = diff_view::find(output) else { return Details::default() };
                let shown = diff_view::render(diff, style, columns, DIFF_LINES_MAX, hint);
                let lines: Vec<String> = shown.lines().map(String::from).collect();
                Details { has_more: DIFF_LINES_MAX < lines.len() || is_cut(&lines), lines }
            }
            "bash" => {
                let body = output.split_once("\n\n").map_or("", |(_, body)| body);
                let (lines, has_more) = preview(body, columns, hint);
                Details { lines: lines.iter().map(|line| style.dim(line)).collect(), has_more }
            }
            _ => Details { lines: Vec::new(), has_more: !output.is_empty() },
        }
    }
}

/// `… 12 more lines` and what stands behind it.
pub fn more(lines: usize, hint: &str) -> String {
    format!("… {}{hint}", text::plural(lines as u64, "more line"))
}

/// The first and last lines of a command's output, cut to the width; and whether more is there.
fn preview(body: &str, columns: usize, hint: &str) -> (Vec<String>, bool) {
    // The label says nothing where it is the only one.
    let body = body.strip_prefix("stdout:\n").unwrap_or(body);
    let is_said = |line: &&str| !line.trim().is_empty();
    let count = body.lines().filter(is_said).count();
    let cut = |line: &str| line::fit(line, columns);
    if count <= OUTPUT_LINES_MAX {
        let lines: Vec<_> = body.lines().filter(is_said).map(cut).collect();
        let is_cut = is_cut(&lines);
        return (lines, is_cut);
    }
    let half = OUTPUT_LINES_MAX / 2;
    let mut lines: Vec<_> = body.lines().filter(is_said).take(half).map(cut).collect();
    lines.push(cut(&more(count - 2 * half, hint)));
    let tail: Vec<_> = body.lines().rev().filter(is_said).take(half).map(cut).collect();
    lines.extend(tail.into_iter().rev());
    (lines, true)
}

/// Whether a line looks as if its end were left out.
fn is_cut(lines: &[String]) -> bool {
    lines.iter().any(|line| line.trim_end_matches("\x1b[0m").ends_with('…'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_gives_way_first_and_then_the_subject() {
        let head = Head {
            name: "bash",
            subject: "cargo test --all\x1b[2J",
            summary: "exit code 1, 4ms",
            state: State::ended(false, "exit code 1, 4ms"),
        };
        assert_eq!(head.state, State::Failed);
        let at = |columns| head.paint(Some(columns), Style::plain());
        assert_eq!(at(60), "• bash cargo test --all^[[2J (exit code 1, 4ms)");
        assert_eq!(at(40), "• bash cargo test --… (exit code 1, 4ms)");
        assert_eq!(at(30), "• bash cargo test … (exit cod…");
        assert_eq!(at(20), "• bash cargo test …");
        assert_eq!(at(10), "• bash ca…");
        assert_eq!(at(4), "• b…");
        assert_eq!(
            head.paint(None, Style::coloured()),
            "\x1b[31m•\x1b[0m \x1b[1mbash\x1b[0m cargo test --all^[[2J \x1b[2m(exit code 1, 4ms)\x1b[0m"
        );
    }

    #[test]
    fn long_outputs_are_shown_by_their_ends() {
        let body: String = (1..=10_000).map(|n| format!("line {n}\n\n")).collect();
        let output = format!("exit code: 0\nduration: 1s\n\nstdout:\n{body}");
        let details = Details::of("bash", &output, 30, Style::plain(), " (/show 3)");
        let want = [
            "line 1",
            "line 2",
            "line 3",
            "line 4",
            "… 9992 more lines (/show 3)",
            "line 9997",
            "line 9998",
            "line 9999",
            "line 10000",
        ];
        assert_eq!(details.lines, want);
        assert!(details.has_more);
        let short = Details::of("bash", "exit code: 0\n\nstdout:\na\n", 30, Style::plain(), "");
        assert_eq!(short, Details { lines: vec!["a".into()], has_more: false });
        let wide = Details::of("bash", "exit code: 0\n\nstdout:\nabcdef\n", 4, Style::plain(), "");
        assert_eq!(wide, Details { lines: vec!["abc…".into()], has_more: true });
        assert!(Details::of("read", "1 | a", 30, Style::plain(), "").has_more);
    }

    #[test]
    fn long_diffs_are_cut_and_counted() {
        let body: String = (0..200).map(|n| format!("+line {n}\n")).collect();
        let output = format!("Done.\n\n--- a/x\n+++ b/x\n@@ -0,0 +1,200 @@\n{body}");
        let details = Details::of("edit", &output, 40, Style::plain(), " (/show 7)");
        assert_eq!(details.lines.len(), 81);
        assert_eq!(details.lines[80], "… 120 more lines (/show 7)");
        assert!(details.has_more);
        assert!(Details::of("edit", "Nothing to do.", 40, Style::plain(), "").lines.is_empty());
    }
}

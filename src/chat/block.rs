//! What one prompt, notice, call or end of a turn looks like. Pure: painted for a width when it is
//! asked for, so that what waits in the live region follows the terminal's size.

use std::borrow::Cow;
use std::time::Duration;

use super::footer;
use super::outputs::Shown;
use super::stream::INDENT;
use super::tally::Tally;
use crate::agent::{CallEnd, Outcome, Stop};
use crate::cancel::Reason;
use crate::model::{ResultStatus, ToolCall};
use crate::render::call::{call_subject, result_summary};
use crate::render::call_view::{Details, Head, State, more};
use crate::render::line;
use crate::render::status::clock;
use crate::render::style::{Attrs, Style, painted_width};
use crate::text;

/// Rows of a prompt that are shown: head and tail.
const PROMPT_ROWS_MAX: usize = 12;
/// Rows of a failed call's text.
const ERROR_ROWS_MAX: usize = 8;
/// A subject is kept so wide; the terminal may have less room.
const SUBJECT_COLUMNS_MAX: usize = 400;

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    Info,
    Warn,
    Error,
}

#[derive(Debug)]
pub enum Block {
    /// What the person said.
    Prompt(String),
    Notice {
        kind: Notice,
        text: String,
        /// What can be done about it; may be empty.
        hint: String,
    },
    /// Painted by somebody else.
    Lines(Vec<String>),
    Call(Call),
}

impl Block {
    pub fn notice(kind: Notice, text: impl Into<String>) -> Block {
        Block::Notice { kind, text: text.into(), hint: String::new() }
    }

    /// Whether nothing of it can change any more.
    pub fn is_done(&self) -> bool {
        !matches!(self, Block::Call(Call { end: None, .. }))
    }

    /// As it stands in the live region: of a call only its line.
    pub fn live_lines(&self, now: Duration, columns: usize, style: Style) -> Cow<'_, [String]> {
        match self {
            Block::Prompt(text) => Cow::Owned(prompt_lines(text, columns, style)),
            Block::Notice { kind, text, hint } => {
                Cow::Owned(notice_lines(*kind, text, hint, columns, style))
            }
            Block::Lines(lines) => Cow::Borrowed(lines),
            Block::Call(call) => Cow::Owned(vec![call.head(now, columns, style)]),
        }
    }
}

fn prompt_lines(text: &str, columns: usize, style: Style) -> Vec<String> {
    let text = text.trim_end_matches(['\n', '\r', ' ']);
    let rows = line::wrap(text, columns.saturating_sub(INDENT));
    let rows = ends(rows, PROMPT_ROWS_MAX, "");
    let paint = |(idx, row): (usize, &String)| match (idx, row.as_str()) {
        (0, row) => format!("{} {}", style.cyan(">"), style.bold(row)),
        (_, "") => String::new(),
        (_, row) => format!("{:INDENT$}{}", "", style.bold(row)),
    };
    rows.iter().enumerate().map(paint).collect()
}

/// The first and last of the rows, when they are more than `rows_max`.
fn ends(mut rows: Vec<String>, rows_max: usize, hint: &str) -> Vec<String> {
    if rows.len() <= rows_max {
        return rows;
    }
    let head = rows_max / 2;
    let tail = rows.len() - (rows_max - head);
    let left_out = more(tail - head, hint);
    rows.splice(head..tail, [left_out]);
    rows
}

fn notice_lines(kind: Notice, text: &str, hint: &str, columns: usize, style: Style) -> Vec<String> {
    let (attrs, word) = match kind {
        Notice::Info => (Attrs::DIM, ""),
        Notice::Warn => (Attrs::YELLOW, ""),
        Notice::Error => (Attrs::RED, "Error: "),
    };
    let room = columns.saturating_sub(INDENT);
    let text = text.trim_end();
    let rows = line::wrap(&format!("{word}{text}"), room);
    let mut lines: Vec<_> = rows.iter().map(|row| style.paint(attrs, row)).collect();
    if !hint.is_empty() {
        lines.extend(line::wrap(hint, room).iter().map(|row| style.dim(row)));
    }
    led(&style.paint(attrs, "•"), lines)
}

/// Lines behind a dot.
fn led(dot: &str, lines: Vec<String>) -> Vec<String> {
    let lead = |(idx, line): (usize, String)| match idx {
        0 => format!("{dot} {line}"),
        _ => format!("{:INDENT$}{line}", "").trim_end().to_owned(),
    };
    lines.into_iter().enumerate().map(lead).collect()
}

/// How a turn ended, unless it did with an answer; `is_partial`: text of an answer that never
/// ended was shown.
pub fn stop_notice(stop: &Stop, is_partial: bool) -> Option<Block> {
    let failure = stop.failure()?;
    let (kind, mut text) = match stop {
        Stop::Final => return None,
        Stop::Cancelled(Reason::User | Reason::Interrupt) => (Notice::Warn, "Cancelled".to_owned()),
        Stop::Cancelled(_) => (Notice::Warn, format!("Cancelled: {}", failure.message)),
        Stop::Truncated
        | Stop::Denied
        | Stop::PromptBlocked { .. }
        | Stop::RoundLimit { .. }
        | Stop::Repeated { .. } => (Notice::Warn, failure.message),
        Stop::Failed(_)
        | Stop::Empty
        | Stop::Refused { .. }
        | Stop::HookFailed(_)
        | Stop::LogFailed(_)
        | Stop::Panicked(_) => (Notice::Error, failure.message),
    };
    if is_partial && matches!(stop, Stop::Cancelled(_) | Stop::Failed(_)) {
        text.push_str("; the answer above is incomplete");
    }
    Some(Block::Notice { kind, text, hint: failure.hint })
}

/// `Worked for 6s · 2 tools · 1.2k in · 80 out · 3 requests · 12.0KB up · 30.0KB down`.
pub fn turn_footer(outcome: &Outcome, elapsed: Duration, tally: &Tally) -> Block {
    let elapsed = match elapsed.as_secs() {
        0 => format!("{}ms", elapsed.as_millis()),
        _ => clock(elapsed),
    };
    let mut parts = vec![format!("Worked for {elapsed}")];
    if 0 < outcome.tool_calls {
        parts.push(text::plural(u64::from(outcome.tool_calls), "tool"));
    }
    parts.extend(footer::tokens(&outcome.usage));
    parts.extend(footer::traffic(&tally.metrics()));
    parts.extend(footer::cost(&outcome.usage));
    Block::notice(Notice::Info, parts.join(footer::GAP))
}

/// A tool call, from its start on.
#[derive(Debug)]
pub struct Call {
    pub id: String,
    /// Of the calls of a chat, from 1.
    pub number: usize,
    /// Calls of one batch stand together.
    pub batch: u64,
    name: String,
    subject: String,
    since: Duration,
    end: Option<End>,
}

#[derive(Debug)]
struct End {
    status: ResultStatus,
    elapsed: Duration,
    output: String,
}

impl Call {
    pub fn new(call: &ToolCall, number: usize, batch: u64, now: Duration) -> Call {
        Call {
            id: call.id.clone(),
            number,
            batch,
            name: call.name.clone(),
            subject: call_subject(&call.name, &call.arguments, SUBJECT_COLUMNS_MAX),
            since: now,
            end: None,
        }
    }

    pub fn is_running(&self) -> bool {
        self.end.is_none()
    }

    pub fn end(&mut self, end: &CallEnd) {
        self.end = Some(End {
            status: end.output.status,
            elapsed: end.elapsed,
            output: end.output.text.clone(),
        });
    }

    /// The turn is over and nothing was told of the call's end.
    pub fn give_up(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.since);
        let status = ResultStatus::Interrupted;
        self.end.get_or_insert(End { status, elapsed, output: "interrupted".to_owned() });
    }

    fn head(&self, now: Duration, columns: usize, style: Style) -> String {
        let (name, subject) = (self.name.as_str(), self.subject.as_str());
        let paint = |summary: &str, state| {
            Head { name, subject, summary, state }.paint(Some(columns), style)
        };
        let Some(end) = &self.end else {
            let elapsed = now.saturating_sub(self.since);
            let summary = match elapsed.as_secs() {
                0 => "running".to_owned(),
                _ => format!("running {}", clock(elapsed)),
            };
            return paint(&summary, State::Running);
        };
        if self.is_too_long(end, columns) {
            return paint(end.word(), State::Failed);
        }
        let mut summary = end.summary(name);
        let state = State::ended(end.status != ResultStatus::Ok, &summary);
        // A command's summary has its time already.
        if name != "bash" && Duration::from_secs(1) <= end.elapsed {
            summary.push_str(&format!(", {}", clock(end.elapsed)));
        }
        paint(&summary, state)
    }

    /// The whole block, and what is to be kept because it is not all there.
    pub fn finish(self, columns: usize, style: Style) -> (Vec<String>, Option<Shown>) {
        let mut lines = vec![self.head(Duration::ZERO, columns, style)];
        let Some(end) = &self.end else { return (lines, None) };
        let room = columns.saturating_sub(INDENT);
        let hint = format!(" (/show {})", self.number);
        let details = match end.status {
            ResultStatus::Ok => Details::of(&self.name, &end.output, room, style, &hint),
            _ if self.is_too_long(end, columns) => end.error_details(room, style, &hint),
            ResultStatus::Error | ResultStatus::Denied | ResultStatus::Interrupted => {
                Details::default()
            }
        };
        let indent = |line: &String| format!("{:INDENT$}{line}", "").trim_end().to_owned();
        lines.extend(details.lines.iter().map(indent));
        let kept = details.has_more.then(|| self.into_shown());
        (lines, kept)
    }

    fn into_shown(self) -> Shown {
        let text = self.end.map(|end| end.output).unwrap_or_default();
        Shown {
            number: self.number,
            call_id: self.id,
            name: self.name,
            subject: self.subject,
            text,
        }
    }

    /// Whether the text of a failure has no room on the call's line.
    fn is_too_long(&self, end: &End, columns: usize) -> bool {
        if end.status == ResultStatus::Ok {
            return false;
        }
        let beside = text::width(&self.name) + text::width(&self.subject) + "•  ()".len();
        1 < end.output.lines().take(2).count()
            || columns < beside + painted_width(&end.summary(&self.name))
    }
}

impl End {
    fn summary(&self, name: &str) -> String {
        result_summary(name, &self.output, self.status != ResultStatus::Ok, usize::MAX)
    }

    fn word(&self) -> &'static str {
        match self.status {
            ResultStatus::Ok => "done",
            ResultStatus::Error => "failed",
            ResultStatus::Denied => "denied",
            ResultStatus::Interrupted => "interrupted",
        }
    }

    /// The text of a failure in full, as far as it is not endless.
    fn error_details(&self, columns: usize, style: Style, hint: &str) -> Details {
        let text = self.output.strip_prefix("tool error: ").unwrap_or(&self.output);
        let rows = line::wrap(text.trim_end(), columns);
        let has_more = ERROR_ROWS_MAX < rows.len();
        let rows = ends(rows, ERROR_ROWS_MAX, hint);
        Details { lines: rows.iter().map(|row| style.dim(row)).collect(), has_more }
    }
}

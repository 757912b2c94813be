//! What commands answer: lines that say what they are; painting them is the last step.
//!
//! Estimates of tokens are marked by `~`; everything else is counted.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::command::COMMANDS;
use super::custom::Custom;
use crate::agent::Conversation;
use crate::context::report::{Kind, Report};
use crate::context::skills::Skill;
use crate::harness::Harness;
use crate::host::Host;
use crate::model::Part;
use crate::render::style::Style;
use crate::render::{diff_view, line, status};
use crate::session;
use crate::text::{self, human_bytes, human_count, plural};

/// Columns of the names of rows.
const NAME_COLUMNS: usize = 22;
/// Lines of one diff that are shown.
const DIFF_LINES_MAX: usize = 400;
/// Sessions that are listed; the newest.
const SESSIONS_MAX: usize = 30;

/// One line of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Title(String),
    Row(String, String),
    /// A row that is never cut: the terminal wraps it, and it can be copied whole.
    Whole(String, String),
    Text(String),
    /// A unified diff, of as many lines as it has.
    Diff(String),
}

fn row(name: &str, value: impl Into<String>) -> Line {
    Line::Row(name.to_owned(), value.into())
}

fn whole(name: &str, value: impl Into<String>) -> Line {
    Line::Whole(name.to_owned(), value.into())
}

fn title(text: &str) -> Line {
    Line::Title(text.to_owned())
}

/// Text of somebody else's.
pub fn plain(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line::Text(line.to_owned())).collect()
}

/// Painted lines, cut to the width but for [`Line::Whole`].
pub fn paint(lines: &[Line], columns: usize, style: Style) -> Vec<String> {
    let mut painted = Vec::new();
    for line in lines {
        match line {
            Line::Title(text) => painted.push(style.bold(&line::fit(text, columns))),
            Line::Text(text) => painted.push(line::fit(text, columns)),
            Line::Row(name, value) => painted.push(paint_row(name, value, columns, style)),
            Line::Whole(name, value) => painted.push(paint_row(name, value, usize::MAX, style)),
            Line::Diff(diff) => {
                let shown = diff_view::render(diff, style, columns, DIFF_LINES_MAX, "");
                painted.extend(shown.lines().map(str::to_owned));
            }
        }
    }
    painted
}

fn paint_row(name: &str, value: &str, columns: usize, style: Style) -> String {
    let name = line::fit(&format!("  {name}"), columns);
    let pad = " ".repeat((NAME_COLUMNS + 2).saturating_sub(text::width(&name)).max(1));
    let left = columns.saturating_sub(text::width(&name) + pad.len());
    format!("{}{pad}{}", style.dim(&name), line::fit(value, left))
}

/// `/help`: the commands, those of the person's own last.
pub fn commands(custom: &[Custom]) -> Vec<Line> {
    let mut lines = vec![title("Commands")];
    lines.extend(COMMANDS.iter().map(|command| {
        let name = format!("/{} {}", command.name, command.arguments);
        row(name.trim_end(), command.about)
    }));
    lines.extend(custom.iter().map(|custom| row(&format!("/{}", custom.name), &*custom.about)));
    lines
}

/// `/help`: the keys.
pub fn keys() -> Vec<Line> {
    let mut lines = vec![title("Keys")];
    lines.extend(KEYS.iter().map(|(key, what)| row(key, *what)));
    lines
}

const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while a turn runs: for when it has room"),
    ("Alt-Enter, Ctrl-J", "a new line (Shift-Enter where the terminal tells)"),
    ("Esc", "stop the turn; else empty the draft (Ctrl-_ brings it back)"),
    ("Ctrl-C", "stop the turn, then empty the draft; twice: leave"),
    ("Ctrl-D", "leave, when the draft is empty"),
    ("Up, Down", "lines of the draft, then earlier prompts; Ctrl-R searches"),
    ("Tab", "complete /commands and @paths"),
    ("Ctrl-O", "the last output that was cut, in full"),
    ("Ctrl-X Ctrl-E", "the draft in $EDITOR"),
    ("Ctrl-Z, Ctrl-L", "suspend; draw the screen anew"),
    ("!command", "run a command of your own; its output goes along"),
];

/// `/status`
pub fn status(host: &Host, harness: &Harness, conversation: &Conversation) -> Vec<Line> {
    let counters = conversation.projection.counters();
    let mut lines = vec![title("Session")];
    lines.push(whole("id", conversation.log.id()));
    match conversation.log.path() {
        Some(path) => lines.push(whole("file", path.display().to_string())),
        None => lines.push(row("file", "none yet")),
    }
    if let Some(started) = counters.started {
        lines.push(row("started", started.to_rfc3339()));
        lines.push(row("age", status::clock(host.now().since(started))));
    }
    lines.push(title("Activity"));
    lines.push(row("prompts", counters.user_messages.to_string()));
    lines.push(row("answers", counters.assistant_messages.to_string()));
    lines.push(row(
        "tool calls",
        format!("{}, {} denied", counters.tool_calls, counters.denied_calls),
    ));
    lines.push(row("stopped turns", counters.stopped_turns.to_string()));
    lines.push(row("events", counters.events.to_string()));
    lines.push(title("Model"));
    lines.push(row("name", harness.model_name()));
    if let Some(effort) = harness.reasoning_effort() {
        lines.push(row("effort", effort));
    }
    lines.push(row("server", harness.model().endpoint()));
    lines.push(row("auth", harness.access().describe()));
    let usage = &counters.usage;
    lines.push(row(
        "tokens",
        format!(
            "{} in ({} cached), {} out ({} reasoning)",
            human_count(usage.input),
            human_count(usage.cached_input),
            human_count(usage.output),
            human_count(usage.reasoning_output)
        ),
    ));
    lines.push(row(
        "requests",
        format!(
            "{}, {} repeated, {} up, {} down",
            counters.requests,
            counters.retries,
            human_bytes(counters.request_bytes),
            human_bytes(counters.response_bytes)
        ),
    ));
    if counters.connections > 0 {
        lines.push(row(
            "sockets",
            format!(
                "{} opened, {} reused, {} continued, {} lost",
                counters.connections, counters.reuses, counters.continuations, counters.fallbacks
            ),
        ));
    }
    lines
}

/// `/context`, and `etch context`: sizes by layers, and what happens at which size.
pub fn context(sizes: &Report, skills: &[Skill]) -> Vec<Line> {
    let amount = |bytes, tokens| format!("{}, ~{} tokens", human_bytes(bytes), human_count(tokens));
    let mut lines = Vec::new();
    let mut last = None;
    for piece in &sizes.pieces {
        if last != Some(piece.kind) {
            lines.push(title(match piece.kind {
                Kind::Instructions => "Instructions",
                Kind::Summary | Kind::Replay if last == Some(Kind::Summary) => "Conversation",
                Kind::Summary => "Summary",
                Kind::Replay => "Conversation",
                Kind::Tools => "Tools",
            }));
            last = Some(piece.kind);
        }
        let place = piece.path.as_ref().map(|path| format!(" {}", path.display()));
        let count = if piece.count == 1 { String::new() } else { format!("{}: ", piece.count) };
        let name = format!("{}{}", piece.name, place.unwrap_or_default());
        lines.push(row(&name, format!("{count}{}", amount(piece.bytes, piece.tokens))));
    }
    if !skills.is_empty() {
        lines.push(title("Skills"));
        lines.extend(skills.iter().map(|skill| row(&skill.name, skill.description.clone())));
    }
    lines.push(title("In all"));
    lines.push(row("size", amount(sizes.bytes, sizes.tokens)));
    match (&sizes.window, sizes.prompt_max_tokens) {
        (Some(window), Some(max)) => {
            let source = window.source.sentence();
            lines.push(row("window", format!("{} tokens, {source}", human_count(window.context))));
            let fill = sizes.fill_percent().unwrap_or(0);
            lines.push(row("largest prompt", format!("{} tokens, {fill}% used", human_count(max))));
        }
        _ => lines.push(row("window", "not known")),
    }
    if let Some(threshold) = sizes.threshold_tokens {
        let what = match (sizes.folds, sizes.compacts) {
            (true, true) => "folded or compacted",
            (true, false) => "folded",
            (false, true) => "compacted",
            (false, false) => "left as it is",
        };
        lines.push(row(&format!("from ~{} on", human_count(threshold)), what));
    }
    if let Some(floor) = sizes.floor_tokens {
        lines.push(row(&format!("above ~{}", human_count(floor)), "not sent"));
    }
    let next = match sizes.next_compaction_messages {
        0 => "nothing yet".to_owned(),
        count => plural(count, "message"),
    };
    lines.push(row("/compact would tell", next));
    lines
}

/// `/context dump`: all that the model sees as text, in a file that only its owner can read.
pub fn dump(host: &Host, text: &str, path: Option<&Path>) -> Result<Vec<Line>, String> {
    let stamp: String =
        host.now().to_rfc3339().chars().filter(char::is_ascii_digit).take(14).collect();
    let path = match path {
        Some(path) => host.cwd().join(path),
        None => host.cwd().join(PathBuf::from(format!("context-{stamp}.txt"))),
    };
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => Ok(vec![Line::Text(format!("written to {}", path.display()))]),
        Err(error) => Err(format!("cannot write {}: {error}", path.display())),
    }
}

/// `/tools`
pub fn tools(harness: &Harness) -> Vec<Line> {
    let specs = harness.tools().specs();
    let first = |text: &str| text.split(['.', '\n']).next().unwrap_or_default().to_owned();
    let mut lines = vec![title("Tools")];
    lines.extend(specs.iter().map(|spec| row(&spec.name, first(&spec.description))));
    lines
}

/// `/model` without a name
pub fn model(harness: &Harness) -> Vec<Line> {
    let mut lines = vec![row("model", harness.model_name())];
    lines.push(row("server", harness.model().endpoint()));
    lines.push(Line::Text("/model NAME changes it from the next prompt on".to_owned()));
    lines
}

/// `/auth`
pub fn auth(harness: &Harness) -> Vec<Line> {
    let access = harness.access();
    let mut lines = vec![row("auth", access.mode()), row("from", access.describe())];
    lines.push(Line::Text("'etch auth status' says how much of a plan is used".to_owned()));
    lines
}

/// `/sessions`
pub fn sessions(rows: &[session::Row]) -> Vec<Line> {
    let mut lines = vec![title("Sessions")];
    let newest = rows.len().saturating_sub(SESSIONS_MAX);
    lines.extend(
        rows[newest..]
            .iter()
            .map(|each| row(each.short_id(), format!("{}  {}", each.minute(), each.label()))),
    );
    if newest > 0 {
        lines.push(Line::Text(format!("and {} before these", plural(newest as u64, "session"))));
    }
    lines
}

/// `/diff`: what the tools changed in this session, change by change.
pub fn diff(conversation: &Conversation) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for message in conversation.projection.messages() {
        for part in &message.parts {
            if let Part::ToolResult(result) = part
                && matches!(result.name.as_str(), "edit" | "write")
                && let Some(diff) = diff_view::find(&result.text)
            {
                lines.push(title(result.text.lines().next().unwrap_or_default()));
                lines.push(Line::Diff(diff.to_owned()));
            }
        }
    }
    if lines.is_empty() {
        return Err("no tool has changed a file in this session (what commands of bash changed is not known)".to_owned());
    }
    Ok(lines)
}

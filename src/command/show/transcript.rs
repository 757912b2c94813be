//! The text of a session: one block for each event that a person cares about.

use std::fmt::Write;

use crate::session::{Call, Counters, Data, Event, PartRef, Row};
use crate::text::{human_count, plural, truncate_width};

/// How many lines of a result or of a prompt are shown without `--full`.
const LINES_MAX: usize = 20;
/// How wide a shown line of a result may be without `--full`.
const COLUMNS_MAX: usize = 300;
const CALL_COLUMNS_MAX: usize = 160;

#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub colored: bool,
    /// Cut nothing.
    pub full: bool,
}

/// Makes text of events, in the order in which they come.
pub struct Transcript {
    style: Style,
    counters: Counters,
    /// Whether the last event came from the session that this one continues.
    inherited: bool,
}

/// Makes control characters visible where that is wanted.
pub type Clean<'a> = &'a dyn Fn(&str) -> String;

impl Transcript {
    pub fn new(style: Style) -> Transcript {
        Transcript { style, counters: Counters::default(), inherited: false }
    }

    pub fn head(&self, row: &Row, clean: Clean<'_>, out: &mut String) {
        let name = row.name.as_deref().map(|name| format!(" [{name}]")).unwrap_or_default();
        let _ = writeln!(out, "session {}{}", clean(&row.id), clean(&name));
    }

    pub fn event(&mut self, event: &Event<'_>, clean: Clean<'_>, out: &mut String) {
        self.counters.push(event);
        if self.inherited && !event.inherited {
            self.title(out, "forked here: what follows is this session's own", "");
        }
        self.inherited = event.inherited;
        match &event.data {
            Data::SessionStarted(started) => {
                let _ = writeln!(out, "started {} in {}", time(&event.time), clean(&started.cwd));
                if let Some(from) = &started.fork_session_path {
                    let _ = writeln!(out, "forked from {}", clean(from));
                }
                if let Some(parent) = &started.parent_session_id {
                    let _ = writeln!(out, "subagent of session {}", clean(parent));
                }
            }
            Data::User(message) => {
                self.title(out, "user", &time(&event.time));
                self.body(out, &clean(&message.content.text()));
            }
            Data::Assistant(message) => {
                let by = [&*message.provider, &*message.model].join("/");
                self.title(out, "assistant", clean(&by).trim_matches('/'));
                for part in message.parts() {
                    match part {
                        PartRef::Text(text) if text.trim().is_empty() => {}
                        PartRef::Text(text) => whole(out, &clean(text)),
                        PartRef::Call(call) => self.call(out, call, clean),
                    }
                }
                if !matches!(&*message.finish, "" | "stop" | "tool_calls") {
                    let _ = writeln!(out, "(ended by: {})", clean(&message.finish));
                }
            }
            Data::Tool(result) => {
                let status = format!("{:?}", result.status).to_lowercase();
                let head = format!("{} {status}, {} ms", result.name, result.duration_millis);
                self.title(out, "result", &clean(&head));
                self.body(out, &clean(&result.content.text()));
                if !result.changed.is_empty() {
                    let names: Vec<_> = result.changed.iter().map(|name| clean(name)).collect();
                    let _ = writeln!(out, "(changed: {})", names.join(", "));
                }
            }
            Data::Reasoning(data) => {
                self.title(out, "reasoning", "");
                self.dim(out, |out| whole(out, &clean(&data.reasoning)));
            }
            Data::Retry(retry) => {
                let head = format!(
                    "{} of {} in {} ms",
                    retry.attempt, retry.attempts_max, retry.delay_millis
                );
                self.title(out, "retry", &head);
                let _ = writeln!(out, "{}: {}", clean(&retry.kind), clean(&retry.message));
            }
            Data::Stopped(stopped) => {
                self.title(out, "stopped", &clean(&stopped.stop));
                whole(out, &clean(&stopped.message));
                if !stopped.partial.is_empty() {
                    out.push_str("(the answer had begun:)\n");
                    whole(out, &clean(&stopped.partial));
                }
            }
            Data::Changed(changed) => {
                let model = format!("{}/{}", changed.provider, changed.model);
                self.title(out, "model", &clean(&model));
            }
            Data::Denied(denied) => {
                self.title(out, "denied", &clean(&denied.name));
                whole(out, &clean(&denied.reason));
                if let Some(hook) = &denied.hook {
                    whole(out, &clean(&format!("(by the hook at {hook})")));
                }
            }
            Data::Repaired(repaired) => {
                let head = format!("line {}: {} bytes", repaired.line, repaired.fragment_bytes);
                self.title(out, "repaired", &format!("{head} of an unfinished event set aside"));
            }
            Data::Pointer(pointer) => {
                let left = pointer.from_id.as_deref().map(|id| format!(", up to event {id},"));
                let left = format!("what followed here{} was left", left.unwrap_or_default());
                let what = if pointer.reason.is_empty() { "pointer" } else { &pointer.reason };
                self.title(out, &clean(what), &clean(&format!("{}  {left}", time(&event.time))));
            }
            Data::Summary(summary) => {
                self.title(out, "summary", &clean(&summary.trigger));
                whole(out, &clean(&summary.summary));
            }
            Data::Folded(folded) => {
                let (before, after) = (folded.tokens_before, folded.tokens_after);
                let what = plural(folded.results.len() as u64, "result");
                self.title(out, "folded", &format!("{what}, ~{before} to ~{after} tokens"));
            }
            Data::CompactionFailed(failed) => {
                self.title(out, "not compacted", &clean(&failed.trigger));
                whole(out, &clean(&failed.reason));
            }
            Data::Window(window) => {
                let head = format!("{}: {} tokens", window.model, window.context_tokens);
                self.title(out, "window", &clean(&head));
            }
            Data::Unknown { .. } => {
                self.title(out, &clean(&event.kind), "");
                self.body(out, &clean(event.raw));
            }
            // Told in sums at the end, or of no use to a reader.
            Data::ProviderItem(_) | Data::Usage(_) | Data::Response(_) | Data::Metrics(_) => {}
        }
    }

    /// The sums of the whole session.
    pub fn end(&self, out: &mut String) {
        let counters = &self.counters;
        let usage = &counters.usage;
        let mut sums = vec![
            plural(counters.user_messages, "prompt"),
            plural(counters.assistant_messages, "answer"),
            plural(counters.tool_calls, "tool call"),
        ];
        if usage.input + usage.output > 0 {
            sums.push(format!(
                "{} tokens in ({} cached), {} out",
                human_count(usage.input),
                human_count(usage.cached_input),
                human_count(usage.output)
            ));
        }
        self.title(out, "total", &sums.join(", "));
    }

    fn title(&self, out: &mut String, what: &str, detail: &str) {
        let (bold, plain) = if self.style.colored { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        let detail = if detail.is_empty() { String::new() } else { format!("  {detail}") };
        let _ = writeln!(out, "\n{bold}── {what}{plain}{detail}");
    }

    fn dim(&self, out: &mut String, write: impl FnOnce(&mut String)) {
        if !self.style.colored {
            return write(out);
        }
        out.push_str("\x1b[2m");
        write(out);
        out.push_str("\x1b[0m");
    }

    /// Text that may be long: its first lines, and how many more there are.
    fn body(&self, out: &mut String, text: &str) {
        if self.style.full {
            return whole(out, text);
        }
        for line in text.lines().take(LINES_MAX) {
            let _ = writeln!(out, "{}", truncate_width(line, COLUMNS_MAX));
        }
        let more = text.lines().count().saturating_sub(LINES_MAX);
        if more > 0 {
            let _ = writeln!(out, "({}; --full shows all)", plural(more as u64, "more line"));
        }
    }

    fn call(&self, out: &mut String, call: &Call<'_>, clean: Clean<'_>) {
        let line = clean(&format!("{} {}", call.name, &*call.arguments.0));
        let line = line.replace('\n', "^J");
        let (cyan, plain) = if self.style.colored { ("\x1b[36m", "\x1b[0m") } else { ("", "") };
        let shown =
            if self.style.full { line.into() } else { truncate_width(&line, CALL_COLUMNS_MAX) };
        let _ = writeln!(out, "{cyan}→ {shown}{plain}");
    }
}

/// Text with exactly one line end behind it.
fn whole(out: &mut String, text: &str) {
    let text = text.trim_end_matches('\n');
    let _ = writeln!(out, "{text}");
}

/// `2026-01-01 00:00:00`, from what the log has; UTC.
fn time(text: &str) -> String {
    let known = crate::host::Timestamp::parse(text).map(crate::host::Timestamp::to_rfc3339);
    known.map_or_else(String::new, |time| {
        time.chars().take(19).collect::<String>().replace('T', " ")
    })
}

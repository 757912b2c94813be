//! `etch show --stats`: what the model calls of a session took, as a table or as JSON.
//!
//! The log is streamed and no call is kept. The table reads it twice: once for the widths, the
//! sums and the remarks, which are bounded, and once for the rows.

use std::borrow::Cow;

use serde::Serialize;

use crate::command::out::{Out, say};
use crate::model::{Metrics, Usage};
use crate::session::{self, Calls, Error, ModelCall, Row};
use crate::text::{human_bytes, human_count, plural, truncate_width, visible_line, width};

/// Wider tables stand closer.
const COLUMNS_USUAL: usize = 80;
const REMARKS_MAX: usize = 50;
const REMARK_COLUMNS_MAX: usize = 240;
const WORD_COLUMNS_MAX: usize = 32;

/// Calls every `each` with the session's own model calls, in order.
fn each_call(row: &Row, each: &mut dyn FnMut(&ModelCall)) -> Result<Vec<String>, Error> {
    let mut calls = Calls::new();
    let replayed = session::each_event(&row.path, &mut |event| {
        if let Some(call) = calls.push(event) {
            each(&call);
        }
    })?;
    if let Some(call) = calls.finish() {
        each(&call);
    }
    Ok(replayed.notices)
}

/// Sums over the calls of a session.
#[derive(Debug, Default, Serialize)]
struct Total {
    /// Turns that called a model.
    turns: u64,
    calls: u64,
    attempts: u64,
    usage: Usage,
    metrics: Metrics,
    #[serde(skip)]
    last_turn: u64,
}

impl Total {
    fn add(&mut self, call: &ModelCall) {
        self.turns += u64::from(self.last_turn != call.turn);
        self.last_turn = call.turn;
        self.calls += 1;
        self.attempts += call.attempts;
        self.usage.add(&call.usage);
        self.metrics.add(&call.metrics);
    }

    /// Without what only the last call was.
    fn finish(&mut self) {
        self.metrics = self.metrics.counts();
    }

    /// The sums as a row of the table.
    fn as_row(&self) -> ModelCall {
        ModelCall {
            attempts: self.attempts,
            usage: self.usage,
            metrics: self.metrics.clone(),
            ..ModelCall::default()
        }
    }

    /// One sentence for a person.
    fn sentence(&self) -> String {
        let (usage, metrics) = (&self.usage, &self.metrics);
        let mut parts =
            vec![format!("{} in {}", plural(self.calls, "call"), plural(self.turns, "turn"))];
        let mut some = |count: u64, noun: &str| {
            if count > 0 {
                parts.push(plural(count, noun));
            }
        };
        some(self.attempts.saturating_sub(self.calls), "retry");
        if metrics.requests != self.calls {
            some(metrics.requests, "request");
        }
        some(metrics.web_socket_connections, "connection");
        some(metrics.continuation_requests, "continuation");
        some(metrics.continuation_fallbacks, "lost continuation");
        some(metrics.transport_fallbacks, "change to HTTP");
        if usage.input > 0 || usage.output > 0 {
            let about = if usage.estimated { "about " } else { "" };
            let mut tokens = format!("{about}{} in", human_count(usage.input));
            if usage.cached_input > 0 {
                let share = percent(usage.cached_input, usage.input);
                let cached = human_count(usage.cached_input);
                tokens.push_str(&format!(" ({cached} cached, {share}%)"));
            }
            parts.push(tokens);
            let reasoning = match usage.reasoning_output {
                0 => String::new(),
                count => format!(" ({} reasoning)", human_count(count)),
            };
            parts.push(format!("{} out{reasoning}", human_count(usage.output)));
        }
        if metrics.request_bytes > 0 || metrics.response_bytes > 0 {
            parts.push(format!("{} up", human_bytes(metrics.request_bytes)));
            parts.push(format!("{} down", human_bytes(metrics.response_bytes)));
        }
        parts.extend(usage.cost.map(|cost| format!("${cost:.4}")));
        parts.join(", ")
    }
}

fn percent(part: u64, whole: u64) -> u128 {
    u128::from(part) * 100 / u128::from(whole.max(1))
}

/// A column of numbers.
struct Column {
    head: &'static str,
    value: fn(&ModelCall) -> u64,
    show: fn(u64) -> String,
    /// A column that says nothing else in any row is left out.
    usual: u64,
}

const fn column(
    head: &'static str,
    usual: u64,
    show: fn(u64) -> String,
    value: fn(&ModelCall) -> u64,
) -> Column {
    Column { head, value, show, usual }
}

fn plain(count: u64) -> String {
    count.to_string()
}

/// `84ms`, `1.2s`; nothing where nothing was measured.
fn millis(millis: u64) -> String {
    match millis {
        0 => String::new(),
        1..1_000 => format!("{millis}ms"),
        _ => format!("{:.1}s", millis as f64 / 1e3),
    }
}

const NUMBERS: &[Column] = &[
    column("#", 0, plain, |call| call.call),
    column("in", 0, human_count, |call| call.usage.input),
    column("cached", 0, human_count, |call| call.usage.cached_input),
    column("out", 0, human_count, |call| call.usage.output),
    column("think", 0, human_count, |call| call.usage.reasoning_output),
    column("up", 0, human_bytes, |call| call.metrics.request_bytes),
    column("down", 0, human_bytes, |call| call.metrics.response_bytes),
    column("head", 0, millis, |call| call.metrics.time_to_headers_millis),
    column("first", 0, millis, |call| call.metrics.time_to_first_event_millis),
    column("tries", 1, plain, |call| call.attempts),
    column("req", 1, plain, |call| call.metrics.requests),
    column("conn", 0, plain, |call| call.metrics.web_socket_connections),
    column("reuse", 0, plain, |call| call.metrics.web_socket_reuses),
    column("cont", 0, plain, |call| call.metrics.continuation_requests),
    column("lost", 0, plain, |call| {
        call.metrics.continuation_fallbacks.saturating_add(call.metrics.transport_fallbacks)
    }),
];

/// What is only a column where calls differ in it.
const WORDS: [fn(&ModelCall) -> Cow<'_, str>; 2] = [
    |call| visible_line(&call.metrics.transport),
    |call| match (&*call.provider, &*call.model) {
        ("", model) => visible_line(model),
        (provider, model) => visible_line(&format!("{provider}/{model}")).into_owned().into(),
    },
];
const WORD_HEADS: [&str; 2] = ["via", "model"];

fn word(call: &ModelCall, idx: usize) -> String {
    truncate_width(&WORDS[idx](call), WORD_COLUMNS_MAX).into_owned()
}

/// How the call ended.
fn end(call: &ModelCall) -> String {
    let end = match &call.stopped {
        Some(stopped) => stopped.kind.as_deref().unwrap_or(&stopped.stop),
        None if call.finish == "tool_calls" => "calls",
        None => &call.finish,
    };
    truncate_width(&visible_line(end), WORD_COLUMNS_MAX).into_owned()
}

/// What the first reading finds out.
#[derive(Default)]
struct Layout {
    total: Total,
    /// Of the columns of numbers; zero: left out.
    widths: [usize; NUMBERS.len()],
    words: [WordColumn; WORDS.len()],
    end_width: usize,
    remarks: Vec<String>,
    remarks_more: u64,
}

#[derive(Default)]
struct WordColumn {
    first: String,
    differs: bool,
    width: usize,
}

impl Layout {
    fn add(&mut self, call: &ModelCall) {
        self.total.add(call);
        self.widen(call);
        for (idx, column) in self.words.iter_mut().enumerate() {
            let word = word(call, idx);
            column.width = column.width.max(width(&word));
            if column.first.is_empty() {
                column.first = word;
            } else if !word.is_empty() && word != column.first {
                column.differs = true;
            }
        }
        self.end_width = self.end_width.max(width(&end(call)));
        for remark in remarks(call) {
            if self.remarks.len() < REMARKS_MAX {
                let line = visible_line(&remark);
                self.remarks.push(truncate_width(&line, REMARK_COLUMNS_MAX).into_owned());
            } else {
                self.remarks_more += 1;
            }
        }
    }

    fn widen(&mut self, call: &ModelCall) {
        for (column, column_width) in NUMBERS.iter().zip(&mut self.widths) {
            let value = (column.value)(call);
            if value > column.usual || *column_width > 0 {
                let cell = width(&(column.show)(value));
                *column_width = (*column_width).max(cell).max(column.head.len());
            }
        }
    }

    fn finish(&mut self) {
        self.total.finish();
        let mut row = self.total.as_row();
        // Sums are wider, but make no column.
        row.call = self.total.calls;
        for (column, column_width) in NUMBERS.iter().zip(&mut self.widths) {
            if *column_width > 0 {
                *column_width = (*column_width).max(width(&(column.show)((column.value)(&row))));
            }
        }
        self.widths[0] = self.widths[0].max("all".len());
        for (column, head) in self.words.iter_mut().zip(WORD_HEADS) {
            column.width = column.width.max(head.len());
        }
    }

    fn gap(&self) -> &'static str {
        let numbers = self.widths.iter().filter(|width| **width > 0);
        let words = self.words.iter().filter(|column| column.differs).map(|column| column.width);
        let widths: Vec<usize> = numbers.copied().chain(words).chain([self.end_width]).collect();
        let whole = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
        if whole <= COLUMNS_USUAL { "  " } else { " " }
    }

    /// One row of cells: those of numbers at their right edges, words at their left.
    fn row(
        &self,
        number: impl Fn(usize) -> String,
        word: impl Fn(usize) -> String,
        end: &str,
    ) -> String {
        let mut cells = Vec::new();
        for (idx, column_width) in self.widths.iter().enumerate().filter(|(_, width)| **width > 0) {
            let cell = number(idx);
            cells.push(format!("{}{cell}", " ".repeat(column_width.saturating_sub(width(&cell)))));
        }
        for (idx, column) in self.words.iter().enumerate().filter(|(_, column)| column.differs) {
            let cell = word(idx);
            cells.push(format!("{cell}{}", " ".repeat(column.width.saturating_sub(width(&cell)))));
        }
        cells.push(end.to_owned());
        cells.join(self.gap()).trim_end().to_owned()
    }

    fn call(&self, call: &ModelCall) -> String {
        let number = |idx: usize| (NUMBERS[idx].show)((NUMBERS[idx].value)(call));
        self.row(number, |idx| word(call, idx), &end(call))
    }

    fn heads(&self) -> String {
        self.row(|idx| NUMBERS[idx].head.to_owned(), |idx| WORD_HEADS[idx].to_owned(), "end")
    }

    fn sums(&self) -> String {
        let row = self.total.as_row();
        let number = |idx: usize| match idx {
            0 => "all".to_owned(),
            _ => (NUMBERS[idx].show)((NUMBERS[idx].value)(&row)),
        };
        self.row(number, |_| String::new(), "")
    }

    /// What all calls have in common.
    fn common(&self) -> String {
        let [via, model] = &self.words;
        let via = if via.differs { "" } else { via.first.as_str() };
        let model = if model.differs { "" } else { model.first.as_str() };
        match (model, via) {
            ("", "") => String::new(),
            ("", via) => format!("over {via}"),
            (model, "") => model.to_owned(),
            (model, via) => format!("{model} over {via}"),
        }
    }
}

/// What went wrong in a call, in words.
fn remarks(call: &ModelCall) -> Vec<String> {
    let number = call.call;
    let mut remarks = Vec::new();
    for retry in &call.retries {
        let status = retry.status.map(|status| format!(", HTTP {status}")).unwrap_or_default();
        let wait = match millis(retry.delay_millis) {
            none if none.is_empty() => "at once".to_owned(),
            wait => format!("after {wait}"),
        };
        let (attempt, kind, message) = (retry.attempt, &retry.kind, &retry.message);
        remarks.push(format!(
            "call {number}: attempt {attempt} failed ({kind}{status}) and was repeated {wait}: {message}"
        ));
    }
    let metrics = &call.metrics;
    let because = |reason: &str| match reason {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    if metrics.continuation_fallbacks > 0 {
        let status = match metrics.continuation_fallback_status {
            0 => String::new(),
            status => format!(" (HTTP {status})"),
        };
        let why = because(&metrics.continuation_fallback_error);
        remarks.push(format!(
            "call {number}: the continuation was lost and all was sent again{status}{why}"
        ));
    }
    if metrics.transport_fallbacks > 0 {
        let why = because(&metrics.transport_fallback_error);
        remarks.push(format!("call {number}: went on over HTTP in place of a WebSocket{why}"));
    }
    if let Some(stopped) = &call.stopped {
        let kind = match &stopped.kind {
            Some(kind) if *kind != stopped.stop => format!(" ({kind})"),
            _ => String::new(),
        };
        let (stop, why) = (&stopped.stop, because(&stopped.message));
        remarks.push(format!("call {number}: ended its turn without an answer, {stop}{kind}{why}"));
    }
    remarks
}

/// The table, the sums and the remarks.
pub fn text(row: &Row, colored: bool, out: &mut Out) -> Result<(), Error> {
    let mut layout = Layout::default();
    let notices = each_call(row, &mut |call| layout.add(call))?;
    layout.finish();
    let name = row.name.as_deref().map(|name| format!(" [{name}]")).unwrap_or_default();
    out.line(&visible_line(&format!("session {}{name}", row.id)));
    if layout.total.calls == 0 {
        out.line("no model calls");
    } else {
        table(row, &layout, colored, out)?;
    }
    notices.iter().for_each(|notice| say(notice));
    Ok(())
}

fn table(row: &Row, layout: &Layout, colored: bool, out: &mut Out) -> Result<(), Error> {
    let (bold, normal) = if colored { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let common = layout.common();
    if !common.is_empty() {
        out.line(&common);
    }
    out.line(&format!("\n{bold}{}{normal}", layout.heads()));
    let mut turn = 0;
    each_call(row, &mut |call| {
        if turn != call.turn {
            turn = call.turn;
            let line = format!("turn {turn}: {}", call.prompt);
            out.line(&truncate_width(&visible_line(&line), COLUMNS_USUAL));
        }
        out.line(&layout.call(call));
    })?;
    out.line(&format!("{bold}{}{normal}\n\n{}", layout.sums(), layout.total.sentence()));
    layout.remarks.iter().for_each(|remark| {
        out.line(remark);
    });
    if layout.remarks_more > 0 {
        let more = plural(layout.remarks_more, "more remark");
        out.line(&format!("({more}; --json tells everything)"));
    }
    Ok(())
}

/// Strings and numbers: nothing that could not be written.
fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The same, exact: one object with the calls, then the sums.
pub fn json(row: &Row, out: &mut Out) -> Result<(), Error> {
    let mut total = Total::default();
    out.text("{\"sessionId\":");
    out.json(&written(&row.id));
    out.text(",\"calls\":[");
    let notices = each_call(row, &mut |call| {
        out.text(if total.calls == 0 { "\n" } else { ",\n" });
        total.add(call);
        out.json(&written(call));
    })?;
    total.finish();
    out.text("\n],\"total\":");
    out.json(&written(&total));
    out.text("}\n");
    notices.iter().for_each(|notice| say(notice));
    Ok(())
}

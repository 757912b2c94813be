//! What a chat shows above its editor: events in, finished painted lines and a tail out.
//!
//! Finished lines are given out once, in the order in which things happened, and never change.
//! What still may change is the tail: the open part of a stream of text, calls that run or wait
//! for an earlier one, and whatever was said behind them. So finished lines and tail together
//! show everything once and in order, at any moment.
//!
//! Nothing that is finished is kept, but for outputs that were shown in part (up to
//! [`OUTPUTS_BYTES_MAX`](super::outputs::OUTPUTS_BYTES_MAX)) and the last answer.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use super::block::{Block, Call, Notice, stop_notice, turn_footer};
use super::outputs::{Outputs, Shown};
use super::stream::{Kind, Stream};
use super::tally::Tally;
use super::told::Told;
use crate::agent::Outcome;
use crate::model::{ModelEvent, Retry};
use crate::render::line;
use crate::render::style::Style;
use crate::text;

/// Bytes of a column in a tail's line, at most: what stands before is not looked at.
const COLUMN_BYTES_MAX: usize = 16;

/// What stands together: between two blocks of different groups is a blank line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// The calls of one answer.
    Batch(u64),
    /// Any other block stands by itself.
    Single,
}

pub struct Transcript {
    columns: usize,
    style: Style,
    finished: Vec<String>,
    /// Of the last line that was finished.
    last: Option<Group>,
    /// What is being streamed; it stands before all that waits.
    stream: Option<Stream>,
    /// In order; the first is not done, or stands behind the stream.
    waiting: VecDeque<Block>,
    batch: u64,
    calls: usize,
    outputs: Outputs,
    /// Of the turn.
    tally: Tally,
    /// Something of the model's present attempt was shown, and text among it.
    has_output: bool,
    has_text: bool,
    /// Text of the turn was shown.
    has_answer: bool,
    answer: String,
}

impl Transcript {
    pub fn new(columns: usize, style: Style) -> Transcript {
        Transcript {
            columns,
            style,
            finished: Vec::new(),
            last: None,
            stream: None,
            waiting: VecDeque::new(),
            batch: 0,
            calls: 0,
            outputs: Outputs::default(),
            tally: Tally::default(),
            has_output: false,
            has_text: false,
            has_answer: false,
            answer: String::new(),
        }
    }

    /// Of all lines that are not begun.
    pub fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
        if let Some(stream) = &mut self.stream {
            stream.set_columns(columns);
        }
    }

    /// What the person said.
    pub fn prompt(&mut self, text: &str) {
        self.push(Block::Prompt(text.to_owned()));
    }

    pub fn notice(&mut self, kind: Notice, text: &str) {
        self.push(Block::notice(kind, text));
    }

    /// Painted lines as they are: what a command of the person gave out.
    pub fn lines(&mut self, painted: Vec<String>) {
        if !painted.is_empty() {
            self.push(Block::Lines(painted));
        }
    }

    pub fn tell(&mut self, told: &Told, now: Duration) {
        self.tally.tell(told);
        match told {
            Told::RoundStarted { .. } => {
                self.settle(now);
                self.batch += 1;
                (self.has_output, self.has_text) = (false, false);
            }
            Told::Model(event) => self.tell_model(event, now),
            Told::ToolStarted { call } => {
                self.end_stream();
                self.has_text = false;
                self.calls += 1;
                let call = Call::new(call, self.calls, self.batch, now);
                self.push(Block::Call(call));
            }
            Told::ToolFinished { call, end } => {
                let running = self.waiting.iter_mut().find_map(|block| match block {
                    Block::Call(known) if known.is_running() && known.id == call.id => Some(known),
                    _ => None,
                });
                if let Some(running) = running {
                    running.end(end);
                }
                self.commit();
            }
            Told::Compacting => {}
            Told::Compacted(Ok(done)) => self.notice(Notice::Info, &done.to_string()),
            Told::Compacted(Err(reason)) => self.notice(Notice::Warn, &reason.to_string()),
            Told::Notice(message) => self.notice(Notice::Warn, message),
            Told::TurnEnded { outcome, elapsed } => self.end_turn(outcome, *elapsed, now),
        }
    }

    /// The lines that were finished since the last call.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.finished)
    }

    /// What may still change: its last rows, at most `rows_max`, none wider than the columns.
    pub fn tail(&self, now: Duration, rows_max: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut last = self.last;
        if let Some(stream) = &self.stream {
            let open = stream.tail();
            if !open.is_empty() {
                if !stream.has_begun() && last.is_some() {
                    lines.push(String::new());
                }
                lines.extend(open);
                last = Some(Group::Single);
            }
        }
        for block in &self.waiting {
            let (group, open) = (group(block), block.live_lines(now, self.columns, self.style));
            if stands_apart(last, group) {
                lines.push(String::new());
            }
            let start = open.len().saturating_sub(rows_max);
            lines.extend_from_slice(&open[start..]);
            last = Some(group);
        }
        let mut rows = Vec::new();
        let bytes_max = rows_max.saturating_mul(self.columns).saturating_mul(COLUMN_BYTES_MAX);
        for line in lines.iter().rev() {
            if rows_max <= rows.len() {
                break;
            }
            rows.extend(line::fold(painted_end(line, bytes_max), self.columns).into_iter().rev());
        }
        rows.truncate(rows_max);
        rows.reverse();
        rows
    }

    /// The output of a call that was shown in part.
    pub fn shown(&self, number: usize) -> Option<&Shown> {
        self.outputs.get(number)
    }

    /// All outputs that are kept, from the oldest on.
    pub fn outputs(&self) -> impl DoubleEndedIterator<Item = &Shown> {
        self.outputs.iter()
    }

    /// The number of the last output of the conversation that was shown in part; 0 for none.
    pub fn last_output(&self) -> usize {
        self.outputs.last()
    }

    /// The conversation goes on from another place, where this was the last answer and these are
    /// the calls. Whatever else was shown can still be asked for by its number.
    pub fn go_to(&mut self, answer: &str, calls: HashSet<String>) {
        self.answer.clear();
        self.answer.push_str(answer);
        self.outputs.leave_all_but(&calls);
    }

    /// The last answer, or what there is of it.
    pub fn last_answer(&self) -> &str {
        &self.answer
    }

    fn tell_model(&mut self, event: &ModelEvent, now: Duration) {
        match event {
            ModelEvent::TextStart | ModelEvent::TextEnd | ModelEvent::ReasoningStart => {
                self.end_stream();
            }
            ModelEvent::TextDelta(delta) => self.stream(Kind::Text, delta, now),
            ModelEvent::TextIs(whole) => self.correct(whole, now),
            ModelEvent::ReasoningDelta(delta) => self.stream(Kind::Reasoning, delta, now),
            ModelEvent::ReasoningEnd(reasoning) => {
                let is_streamed =
                    self.stream.as_ref().is_some_and(|stream| stream.kind == Kind::Reasoning);
                if !is_streamed {
                    self.stream(Kind::Reasoning, &reasoning.text, now);
                }
                self.end_stream();
            }
            ModelEvent::Retry(retry) => self.retry(retry),
            ModelEvent::Notice(message) => self.notice(Notice::Info, message),
            ModelEvent::ToolCallStart { .. }
            | ModelEvent::ToolCallDelta { .. }
            | ModelEvent::ToolCallEnd { .. }
            | ModelEvent::Usage(_)
            | ModelEvent::Response { .. }
            | ModelEvent::ProviderItem(_)
            | ModelEvent::Metrics(_) => {}
        }
    }

    fn stream(&mut self, kind: Kind, delta: &str, now: Duration) {
        if delta.is_empty() {
            return;
        }
        if self.stream.as_ref().is_none_or(|stream| stream.kind != kind) {
            self.settle(now);
            self.stream = Some(Stream::new(kind, self.columns, self.style));
        }
        self.has_output = true;
        if kind == Kind::Text {
            (self.has_text, self.has_answer) = (true, true);
        }
        if let Some(mut stream) = self.stream.take() {
            let is_first = !stream.has_begun();
            let lines = stream.push(delta);
            self.finish_stream_lines(is_first, lines);
            self.stream = Some(stream);
        }
    }

    fn end_stream(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            let is_first = !stream.has_begun();
            let lines = stream.finish();
            self.finish_stream_lines(is_first, lines);
        }
        self.commit();
    }

    fn finish_stream_lines(&mut self, is_first: bool, lines: Vec<String>) {
        match is_first {
            true => self.finish(Group::Single, lines),
            false => self.finished.extend(lines),
        }
    }

    /// The text that is being streamed is this: what is missing is added, but lines that were
    /// finished cannot be taken back.
    fn correct(&mut self, whole: &str, now: Duration) {
        let Some(stream) = self.stream.as_ref().filter(|stream| stream.kind == Kind::Text) else {
            return;
        };
        if let Some(rest) = whole.strip_prefix(stream.text()) {
            return self.stream(Kind::Text, rest, now);
        }
        self.end_stream();
        self.notice(Notice::Info, "the server corrected the text above; this is all of it:");
        self.stream(Kind::Text, whole, now);
    }

    fn retry(&mut self, retry: &Retry) {
        self.end_stream();
        let is_void = retry.output_discarded && self.has_output;
        let void = if is_void { " (the text above is void)" } else { "" };
        (self.has_output, self.has_text) = (false, false);
        self.notice(Notice::Warn, &format!("{retry}{void}"));
    }

    fn end_turn(&mut self, outcome: &Outcome, elapsed: Duration, now: Duration) {
        self.settle(now);
        if !outcome.answer.is_empty() {
            self.answer.clone_from(&outcome.answer);
            if !self.has_answer {
                self.stream(Kind::Text, &outcome.answer, now);
                self.end_stream();
            }
        }
        self.waiting.extend(stop_notice(&outcome.stop, self.has_text));
        let tally = std::mem::take(&mut self.tally);
        self.push(turn_footer(outcome, elapsed, &tally));
        (self.has_output, self.has_text, self.has_answer) = (false, false, false);
    }

    fn push(&mut self, block: Block) {
        self.waiting.push_back(block);
        self.commit();
    }

    /// Whatever came before is over: nothing waits any longer.
    fn settle(&mut self, now: Duration) {
        self.end_stream();
        for block in &mut self.waiting {
            if let Block::Call(call) = block {
                call.give_up(now);
            }
        }
        self.commit();
    }

    /// Finishes what is done and has nothing open before it.
    fn commit(&mut self) {
        while self.stream.is_none() && self.waiting.front().is_some_and(Block::is_done) {
            let Some(block) = self.waiting.pop_front() else { return };
            let group = group(&block);
            let lines = match block {
                Block::Call(call) => {
                    let (lines, kept) = call.finish(self.columns, self.style);
                    kept.into_iter().for_each(|shown| self.outputs.keep(shown));
                    lines
                }
                Block::Lines(lines) => lines,
                block => block.live_lines(Duration::ZERO, self.columns, self.style).into_owned(),
            };
            self.finish(group, lines);
        }
    }

    fn finish(&mut self, group: Group, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        if stands_apart(self.last, group) {
            self.finished.push(String::new());
        }
        self.last = Some(group);
        self.finished.extend(lines);
    }
}

fn group(block: &Block) -> Group {
    match block {
        Block::Call(call) => Group::Batch(call.batch),
        Block::Prompt(_) | Block::Notice { .. } | Block::Lines(_) => Group::Single,
    }
}

fn stands_apart(last: Option<Group>, group: Group) -> bool {
    last.is_some_and(|last| last != group || group == Group::Single)
}

/// The end of a painted line; paint that is on before it is lost.
fn painted_end(line: &str, bytes_max: usize) -> &str {
    let end = text::ceil_char(line, bytes_max);
    let before = &line[..line.len() - end.len()];
    // Not in the middle of a sequence of paint.
    match before.rfind('\x1b') {
        Some(at) if !before[at..].contains('m') => end.split_once('m').map_or("", |(_, end)| end),
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{CallEnd, Stop};
    use crate::cancel::Reason;
    use crate::chat::outputs::OUTPUTS_BYTES_MAX;
    use crate::model::{ErrorKind, Metrics, ModelError, ToolCall, Usage};
    use crate::render::style::painted_width;
    use crate::tool::ToolOutput;

    const SECOND: Duration = Duration::from_secs(1);

    fn text(text: &str) -> Told {
        Told::Model(ModelEvent::TextDelta(text.to_owned()))
    }

    fn reasoning(text: &str) -> Told {
        Told::Model(ModelEvent::ReasoningDelta(text.to_owned()))
    }

    fn text_end() -> Told {
        Told::Model(ModelEvent::TextEnd)
    }

    fn round() -> Told {
        Told::RoundStarted { round: 1 }
    }

    fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
        let (id, name) = (id.to_owned(), name.to_owned());
        ToolCall { id, name, arguments: arguments.to_owned(), extra: None }
    }

    fn started(id: &str) -> Told {
        let arguments = format!("{{\"command\":\"run {id}\"}}");
        Told::ToolStarted { call: call(id, "bash", &arguments) }
    }

    fn finished(id: &str, output: ToolOutput) -> Told {
        let end = CallEnd { output, elapsed: SECOND, ..CallEnd::default() };
        Told::ToolFinished { call: call(id, "bash", ""), end }
    }

    fn ran(id: &str, body: &str) -> Told {
        let output = format!("exit code: 0\nduration: 1.2s\n\nstdout:\n{body}");
        finished(id, ToolOutput::ok(output))
    }

    fn retry(output_discarded: bool) -> Told {
        let error = ModelError::new(ErrorKind::Network, "the connection was cut");
        Told::Model(ModelEvent::Retry(Retry {
            attempt: 1,
            attempts_max: 5,
            delay_millis: 1500,
            error,
            output_discarded,
        }))
    }

    fn ended(stop: Stop, answer: &str) -> Told {
        let outcome = Outcome {
            stop,
            answer: answer.to_owned(),
            rounds: 1,
            tool_calls: 0,
            usage: Usage::default(),
            changed_files: Vec::new(),
            denied_calls: Vec::new(),
        };
        Told::TurnEnded { outcome, elapsed: SECOND * 6 }
    }

    /// Nothing but paint acts on a terminal, and all paint ends on its line.
    #[track_caller]
    fn assert_painted(line: &str) {
        let mut is_on = false;
        for part in line.split("\x1b[").skip(1) {
            let (codes, _) = part.split_once('m').expect("a sequence of paint");
            assert!(codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'), "{line:?}");
            is_on = codes != "0";
        }
        assert!(!is_on, "paint is left on: {line:?}");
        let bare = line.replace("\x1b[", "");
        assert!(!bare.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
    }

    /// All that was finished; after every event tail and finished lines are looked at.
    struct Play {
        transcript: Transcript,
        finished: Vec<String>,
        now: Duration,
    }

    impl Play {
        fn new(columns: usize, style: Style) -> Play {
            let transcript = Transcript::new(columns, style);
            Play { transcript, finished: Vec::new(), now: Duration::ZERO }
        }

        fn tell(&mut self, told: &Told) {
            self.transcript.tell(told, self.now);
            self.look();
        }

        fn look(&mut self) {
            let lines = self.transcript.take();
            lines.iter().for_each(|line| assert_painted(line));
            self.finished.extend(lines);
            for rows_max in [0, 3, 1000] {
                let tail = self.transcript.tail(self.now, rows_max);
                assert!(tail.len() <= rows_max);
                let columns = self.transcript.columns;
                for row in &tail {
                    assert_painted(row);
                    assert!(painted_width(row) <= columns, "wider than {columns}: {row:?}");
                }
            }
        }

        fn tail(&self) -> Vec<String> {
            self.transcript.tail(self.now, 1000)
        }

        /// What stands on the terminal.
        fn all(&self) -> Vec<String> {
            [self.finished.clone(), self.tail()].concat()
        }
    }

    fn play(columns: usize, style: Style, all: &[Told]) -> Play {
        let mut play = Play::new(columns, style);
        all.iter().for_each(|told| play.tell(told));
        play
    }

    #[track_caller]
    fn check(columns: usize, all: &[Told], want: &str) {
        let play = play(columns, Style::plain(), all);
        assert_eq!(play.finished.join("\n"), want);
        assert!(play.tail().is_empty(), "{:?}", play.tail());
    }

    #[test]
    fn a_turn_reads_in_the_order_in_which_it_happened() {
        let edit = "Done.\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
        let edit_call = || call("4", "edit", "{\"path\":\"src/x.rs\"}");
        let mut all = vec![
            round(),
            Told::Model(ModelEvent::ReasoningStart),
            reasoning("**Looking**\n\nI should look "),
            reasoning("at it."),
            Told::Model(ModelEvent::ReasoningEnd(crate::model::Reasoning::default())),
            Told::Model(ModelEvent::TextStart),
            text("Let me *see*:\n\n- one\n"),
            text_end(),
            started("1"),
            started("2"),
            ran("2", "b\n"),
            ran("1", "a\n"),
            Told::Notice("calls were left out".to_owned()),
            round(),
            Told::ToolStarted { call: edit_call() },
        ];
        let output = ToolOutput::ok(edit);
        let end = CallEnd { output, elapsed: SECOND * 2, ..CallEnd::default() };
        all.push(Told::ToolFinished { call: edit_call(), end });
        all.extend([round(), text("Done."), text_end(), ended(Stop::Final, "Done.")]);
        let want = "◦ **Looking**

  I should look at it.

• Let me *see*:

  - one

• bash run 1 (exit code 0, 1.2s)
  a
• bash run 2 (exit code 0, 1.2s)
  b

• calls were left out

• edit src/x.rs (+1 -1, 2s)
  1   - a
    1 + b

• Done.

• Worked for 6s";
        check(80, &all, want);
        let narrow = play(20, Style::plain(), &all).finished.join("\n");
        assert!(narrow.contains("\n  I should look at\n  it.\n"), "{narrow}");
        assert!(narrow.contains("• bash run 1 (exit …\n  a\n• bash run 2 (exit …\n"), "{narrow}");
        assert!(narrow.contains("• calls were left\n  out\n"), "{narrow}");
    }

    #[test]
    fn paint_tells_what_is_what() {
        let mut play = Play::new(40, Style::coloured());
        play.transcript.prompt("do\n\nit");
        let all = [
            round(),
            reasoning("**Hm**"),
            text("so"),
            text_end(),
            started("1"),
            ran("1", "a\n"),
            started("2"),
            finished("2", ToolOutput::error("no")),
            ended(Stop::Failed(ModelError::new(ErrorKind::Auth, "no").with_hint("log in")), ""),
        ];
        all.iter().for_each(|told| play.tell(told));
        let want = [
            "\x1b[36m>\x1b[0m \x1b[1mdo\x1b[0m",
            "",
            "  \x1b[1mit\x1b[0m",
            "",
            "\x1b[2m◦ \x1b[1mHm\x1b[0m",
            "",
            "• so",
            "",
            "\x1b[32m•\x1b[0m \x1b[1mbash\x1b[0m run 1 \x1b[2m(exit code 0, 1.2s)\x1b[0m",
            "  \x1b[2ma\x1b[0m",
            "\x1b[31m•\x1b[0m \x1b[1mbash\x1b[0m run 2 \x1b[2m(tool error: no)\x1b[0m",
            "",
            "\x1b[31m•\x1b[0m \x1b[31mError: no\x1b[0m",
            "  \x1b[2mlog in\x1b[0m",
            "",
            "\x1b[2m•\x1b[0m \x1b[2mWorked for 6s\x1b[0m",
        ];
        assert_eq!(play.finished, want);
    }

    #[test]
    fn calls_are_committed_in_call_order_whichever_ended_first() {
        let mut play = play(40, Style::plain(), &[round(), text("Go."), started("1")]);
        play.tell(&started("2"));
        play.tell(&started("3"));
        play.now = SECOND * 12;
        play.tell(&ran("2", "second\n"));
        assert_eq!(play.finished, ["• Go."]);
        let live = ["", "• bash run 1 (running 12s)", "• bash run 2 (exit code 0, 1.2s)"];
        assert_eq!(play.tail()[..3], live);
        // What is said meanwhile stands behind them.
        play.transcript.notice(Notice::Info, "noted");
        play.tell(&ran("1", "first\n"));
        let want = "• Go.

• bash run 1 (exit code 0, 1.2s)
  first
• bash run 2 (exit code 0, 1.2s)
  second";
        assert_eq!(play.finished.join("\n"), want);
        assert_eq!(play.tail(), ["• bash run 3 (running 12s)", "", "• noted"]);
        play.tell(&ran("3", "third\n"));
        assert!(
            play.finished
                .join("\n")
                .ends_with("  second\n• bash run 3 (exit code 0, 1.2s)\n  third\n\n• noted")
        );
        assert!(play.tail().is_empty());
    }

    #[test]
    fn a_notice_does_not_cut_the_text_that_is_streamed() {
        let mut play = play(40, Style::plain(), &[round(), text("One ")]);
        play.transcript.notice(Notice::Info, "noted");
        play.tell(&text("two.\n\nThree"));
        assert_eq!(play.all(), ["• One two.", "", "  Three", "", "• noted"]);
        play.tell(&text_end());
        assert_eq!(play.finished, ["• One two.", "", "  Three", "", "• noted"]);
    }

    const ANSWER: &str = "# Title\n\nSome *words* that go on, and **more** of `them`: 界面很好 \
        👩\u{200d}💻 e\u{301}.\n\n| a | b |\n|---|---|\n| 1 | a long cell that wraps |\n\n\
        - x\n  - y\n\n```rust\nfn main() {\n\tprintln!(\"a very long line of code that is whole\");\n}\n```\n\n\
        > quote\n\nhttps://example.org/a/very/long/address/that/stays/whole\nend \x1b[2J\u{202e}";

    #[test]
    fn an_answer_may_be_cut_anyhow() {
        for columns in [80, 40, 20, 7, 2, 1] {
            for style in [Style::plain(), Style::coloured()] {
                let end = || ended(Stop::Final, ANSWER);
                let want = play(columns, style, &[round(), text(ANSWER), text_end(), end()]);
                let by_chars = ANSWER.chars().map(|c| text(c.encode_utf8(&mut [0; 4])));
                let mut all: Vec<Told> = [round()].into_iter().chain(by_chars).collect();
                all.extend([text_end(), end()]);
                let got = play(columns, style, &all);
                assert_eq!(got.finished, want.finished, "{columns}");
                assert_eq!(got.transcript.last_answer(), ANSWER);
            }
        }
    }

    #[test]
    fn finished_lines_and_tail_are_what_the_text_so_far_is_alone() {
        for (width_idx, columns) in [80, 40, 20].into_iter().enumerate() {
            let mut play = Play::new(columns, Style::coloured());
            play.transcript.notice(Notice::Info, "before");
            play.tell(&round());
            for (count, (at, c)) in ANSWER.char_indices().enumerate() {
                play.transcript.tell(&text(c.encode_utf8(&mut [0; 4])), play.now);
                // Every moment is looked at in one of the widths.
                if count % 3 != width_idx {
                    continue;
                }
                play.look();
                let mut alone = Play::new(columns, Style::coloured());
                alone.transcript.notice(Notice::Info, "before");
                alone.tell(&text(&ANSWER[..at + c.len_utf8()]));
                alone.tell(&text_end());
                // A tail is folded; what is finished may be wider.
                let fold = |lines: &[String]| -> Vec<String> {
                    lines.iter().flat_map(|line| line::fold(line, columns)).collect()
                };
                assert_eq!(fold(&play.all()), fold(&alone.finished), "{columns}: {at}");
            }
        }
    }

    #[test]
    fn the_tail_shows_the_last_rows_alone() {
        let rows: String = (1..=30).map(|n| format!("| {n} | cell |\n")).collect();
        let table = format!("Here:\n\n| n | t |\n|---|---|\n{rows}");
        let table = play(40, Style::plain(), &[round(), text(&table)]);
        assert_eq!(table.finished, ["• Here:", ""]);
        assert_eq!(table.transcript.tail(table.now, 2), ["  29 | cell", "  30 | cell"]);
        let line = "0123456789".repeat(100_000);
        let code = play(20, Style::plain(), &[round(), text("```\n"), text(&line)]);
        assert_eq!(code.finished, ["• ```"]);
        let tail = code.transcript.tail(code.now, 3);
        assert_eq!(tail.len(), 3);
        assert_eq!(tail[2], "  ```");
        assert!(tail[..2].concat().ends_with("23456789"), "{tail:?}");
    }

    #[test]
    fn an_attempt_that_is_void_is_marked_where_it_was_shown() {
        let all = [
            round(),
            text("Half of an"),
            retry(true),
            round(),
            retry(true),
            text("Whole."),
            text_end(),
            ended(Stop::Final, "Whole."),
        ];
        let want = "• Half of an

• attempt 1 of 5 failed: the connection was cut; again in 1.5 s (the text above is void)

• attempt 1 of 5 failed: the connection was cut; again in 1.5 s

• Whole.

• Worked for 6s";
        check(100, &all, want);
    }

    #[test]
    fn a_cancelled_turn_keeps_what_was_said_and_says_so() {
        let cancelled = || Stop::Cancelled(Reason::User);
        let all = [round(), text("Part of **an"), ended(cancelled(), "Part of **an")];
        let want = "• Part of **an

• Cancelled; the answer above is incomplete

• Worked for 6s";
        check(80, &all, want);
        assert_eq!(play(80, Style::plain(), &all).transcript.last_answer(), "Part of **an");
        // Text before calls is whole, and a call whose end was never told is over.
        let interrupted = finished("1", ToolOutput::interrupted());
        let all = [round(), text("Go."), started("1"), started("2"), interrupted];
        let all = all.into_iter().chain([ended(cancelled(), "")]).collect::<Vec<_>>();
        let want = "• Go.

• bash run 1 (tool error: interrupted before it finished)
• bash run 2 (interrupted)

• Cancelled

• Worked for 6s";
        check(80, &all, want);
    }

    #[test]
    fn how_a_turn_ended_is_said_with_what_to_do() {
        let error = ModelError::new(ErrorKind::Server, "the server\nanswered \x1b[2J500")
            .with_hint("try again later");
        check(
            80,
            &[round(), text("a"), ended(Stop::Failed(error), "a")],
            "• a\n\n• Error: the server\n  answered ^[[2J500; the answer above is incomplete\n  \
             try again later\n\n• Worked for 6s",
        );
        check(
            40,
            &[round(), ended(Stop::RoundLimit { limit: 2 }, "")],
            "• stopped after 2 rounds of tool calls\n  without a final answer\n  go on in the same \
             session with a fresh\n  budget, or raise --max-tool-rounds\n\n• Worked for 6s",
        );
        check(
            80,
            &[round(), text("a"), ended(Stop::Truncated, "a")],
            "• a\n\n• the output limit of the server cut the answer\n  ask for less at a time, or \
             raise the limit at the server\n\n• Worked for 6s",
        );
        check(
            80,
            &[ended(Stop::Cancelled(Reason::Timeout), "")],
            "• Cancelled: the time limit was reached\n\n• Worked for 6s",
        );
    }

    #[test]
    fn a_turn_is_summed_up() {
        let usage = Usage { input: 1234, cached_input: 900, output: 80, ..Usage::default() };
        let metrics = Metrics { requests: 2, request_bytes: 2048, ..Metrics::default() };
        let outcome = Outcome {
            stop: Stop::Final,
            answer: "never streamed".to_owned(),
            rounds: 2,
            tool_calls: 2,
            usage,
            changed_files: Vec::new(),
            denied_calls: Vec::new(),
        };
        let end = |elapsed| Told::TurnEnded { outcome: outcome.clone(), elapsed };
        let all = [
            round(),
            Told::Model(ModelEvent::Metrics(metrics.clone())),
            round(),
            Told::Model(ModelEvent::Metrics(metrics)),
            end(SECOND * 64),
            end(SECOND / 4),
        ];
        let want = "• never streamed

• Worked for 1m04s · 2 tools · 1.2k in · 900 cached · 80 out · 4 requests · 4.0KB up

• never streamed

• Worked for 250ms · 2 tools · 1.2k in · 900 cached · 80 out";
        check(100, &all, want);
    }

    #[test]
    fn long_and_hostile_outputs_are_collapsed_and_kept() {
        let body: String = (1..=10_000).map(|n| format!("\x1b[31m{n}\r\0\u{9b}2J\n")).collect();
        let long = format!("{}\n", "x".repeat(1_000_000));
        let all = [round(), started("1"), ran("1", &body), started("2"), ran("2", &long)];
        let play = play(40, Style::coloured(), &all);
        assert_eq!(play.finished.len(), 1 + 9 + 1 + 1);
        assert!(play.finished.iter().all(|line| painted_width(line) <= 40));
        assert_eq!(play.finished[5], "  \x1b[2m… 9992 more lines (/show 1)\x1b[0m");
        assert!(play.finished[1].contains("^[[31m1^M^@\\u{9b}2J"), "{:?}", play.finished[1]);
        let shown = play.transcript.shown(1).unwrap().lines(40, Style::coloured());
        assert_eq!(shown.len(), 1 + 4 + 10_000);
        shown.iter().for_each(|line| assert_painted(line));
        assert!(play.transcript.shown(2).is_some() && play.transcript.shown(3).is_none());
    }

    #[test]
    fn failures_with_much_to_say_say_it_below() {
        let message = "old text matches 3 places (lines 4, 19, 88); include more of the lines";
        let many: String = (0..20).map(|n| format!("reason {n}\n")).collect();
        let all = [
            round(),
            started("1"),
            finished("1", ToolOutput::error(message)),
            started("2"),
            finished("2", ToolOutput::error(&many)),
            ended(Stop::Final, ""),
        ];
        let play = play(40, Style::plain(), &all);
        let want = "• bash run 1 (failed)
  old text matches 3 places (lines 4,
  19, 88); include more of the lines
• bash run 2 (failed)
  reason 0
  reason 1
  reason 2
  reason 3
  … 12 more lines (/show 2)
  reason 16
  reason 17
  reason 18
  reason 19";
        assert!(play.finished.join("\n").starts_with(want), "{}", play.finished.join("\n"));
        assert!(play.transcript.shown(1).is_none() && play.transcript.shown(2).is_some());
    }

    #[test]
    fn a_long_prompt_is_shown_by_its_ends() {
        let mut play = Play::new(20, Style::plain());
        let lines: String = (1..=1000).map(|n| format!("\tline {n}\r\n")).collect();
        play.transcript.prompt(&lines);
        play.transcript.prompt("界面 \x1b[2J");
        play.look();
        assert_eq!(play.finished.len(), 13 + 1 + 1);
        assert_eq!(play.finished[0], ">     line 1");
        assert_eq!(play.finished[6], "  … 988 more lines");
        assert_eq!(play.finished[14], "> 界面 ^[[2J");
    }

    #[test]
    fn text_that_the_server_corrects_is_completed_or_said_anew() {
        let is = |whole: &str| Told::Model(ModelEvent::TextIs(whole.to_owned()));
        check(80, &[text("Hel"), is("Hello"), text_end()], "• Hello");
        check(
            80,
            &[text("Hel"), is("Bye"), text_end()],
            "• Hel\n\n• the server corrected the text above; this is all of it:\n\n• Bye",
        );
    }

    #[test]
    fn what_waits_follows_the_width() {
        let mut play = play(80, Style::plain(), &[round(), started("1")]);
        let words = "one two three four five six seven";
        play.transcript.notice(Notice::Warn, words);
        play.transcript.lines(vec!["x".repeat(30)]);
        for columns in [1, 2, 3, 20, 0] {
            play.transcript.set_columns(columns.max(1));
            play.look();
        }
        play.transcript.set_columns(20);
        play.look();
        let want = ["• bash run 1 (runni…", "", "• one two three four", "  five six seven", ""];
        assert_eq!(play.tail()[..5], want);
        play.tell(&ended(Stop::Final, ""));
        assert!(play.finished.contains(&"  five six seven".to_owned()));
        assert!(play.finished.contains(&"x".repeat(30)));
        // A stream goes on at the new width.
        play.tell(&text("one two three four five six "));
        play.transcript.set_columns(40);
        play.tell(&text("seven eight nine ten eleven twelve\n\n"));
        let want = ["• one two three four", "  five six seven eight nine ten eleven", "  twelve"];
        assert_eq!(play.finished[play.finished.len() - 3..], want);
    }

    #[test]
    fn of_a_long_chat_only_bounded_outputs_remain() {
        let mut play = Play::new(80, Style::plain());
        let body = "0123456789\n".repeat(5000);
        for turn in 0..100 {
            let id = turn.to_string();
            play.transcript.prompt("go on");
            for told in [round(), started(&id), ran(&id, &body), round(), text("Done.")] {
                play.transcript.tell(&told, play.now);
            }
            play.transcript.tell(&ended(Stop::Final, "Done."), play.now);
            play.transcript.take();
            assert!(play.transcript.tail(play.now, 10).is_empty());
            let transcript = &play.transcript;
            assert!(transcript.stream.is_none() && transcript.waiting.is_empty());
            let kept: usize = transcript.outputs().map(|shown| shown.text.len()).sum();
            assert!(kept <= OUTPUTS_BYTES_MAX);
        }
        assert!(play.transcript.shown(100).is_some() && play.transcript.shown(1).is_none());
        assert_eq!(play.transcript.last_answer(), "Done.");
    }

    /// Every event says words of its own, numbered in the order in which they were said.
    #[test]
    fn nothing_is_shown_twice_or_in_another_order() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed % below as u64).unwrap()
        };
        for _ in 0..60 {
            let mut play = Play::new([80, 40, 20][next(3)], Style::plain());
            let mut running: Vec<usize> = Vec::new();
            for word in 1000..1060 {
                let between = ["\n\n", "\n", " ", "\n- ", " **"][next(5)];
                let kind = next(8);
                match kind {
                    // Calls run when the stream has ended, and it goes on when they have.
                    0..=3 if running.is_empty() => play.tell(&match kind {
                        0 => text(&format!("w{word}{between}")),
                        1 => text_end(),
                        2 => reasoning(&format!("w{word}{between}")),
                        _ => retry(true),
                    }),
                    4 => {
                        let call =
                            call(&word.to_string(), "ls", &format!("{{\"path\":\"w{word}\"}}"));
                        play.tell(&Told::ToolStarted { call });
                        running.push(word);
                    }
                    // Behind a stream it would wait for its end.
                    5 | 6 if play.transcript.stream.is_some() => {}
                    5 => play.transcript.notice(Notice::Info, &format!("w{word}")),
                    6 => play.transcript.lines(vec![format!("w{word}")]),
                    _ if !running.is_empty() => {
                        let id = running.remove(next(running.len())).to_string();
                        play.tell(&finished(&id, ToolOutput::ok("(empty)")));
                    }
                    _ => play.tell(&round()),
                }
                play.look();
                let all = play.all().join("\n");
                let words: Vec<&str> = all
                    .split(|c: char| !c.is_ascii_alphanumeric())
                    .filter(|word| word.starts_with("w1") && word.len() == 5)
                    .collect();
                assert!(words.is_sorted_by(|a, b| a < b), "{words:?} in\n{all}");
            }
        }
    }
}

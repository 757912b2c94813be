//! The working line: what a turn is doing, and for how long.

use std::time::Duration;

use super::told::Told;
use crate::model::ModelEvent;
use crate::render::status::clock;
use crate::render::style::{Attrs, Style};
use crate::text;

/// How long the dot has one look.
const PULSE: Duration = Duration::from_millis(500);
/// A heading with more bytes is none.
const HEADING_BYTES_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Working,
    Thinking,
    Responding,
    RunningTools,
    Compacting,
    /// The next attempt begins then.
    Retrying {
        until: Duration,
    },
}

/// Nothing is shown before [`Working::begin`] and after the turn's end.
#[derive(Debug, Default)]
pub struct Working {
    turn: Option<Turn>,
}

#[derive(Debug)]
struct Turn {
    since: Duration,
    label: Label,
    /// The heading of the reasoning, or what the model writes a call of.
    heading: Option<String>,
    /// The line of the reasoning that is not ended.
    line: String,
    /// Calls that have not ended.
    running: usize,
}

impl Working {
    /// A turn was asked for.
    pub fn begin(&mut self, now: Duration) {
        self.turn = Some(Turn {
            since: now,
            label: Label::Working,
            heading: None,
            line: String::new(),
            running: 0,
        });
    }

    /// The conversation is being summed up; no turn need go on.
    pub fn compact(&mut self, now: Duration) {
        if self.turn.is_none() {
            self.begin(now);
        }
        if let Some(turn) = &mut self.turn {
            turn.set(Label::Compacting);
        }
    }

    /// Whatever was going on is over.
    pub fn end(&mut self) {
        self.turn = None;
    }

    pub fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    pub fn tell(&mut self, told: &Told, now: Duration) {
        if let Told::TurnEnded { .. } = told {
            return self.end();
        }
        // Nothing else begins a turn: what comes late must not leave the line on for ever.
        if self.turn.is_none() && matches!(told, Told::RoundStarted { .. }) {
            self.begin(now);
        }
        if let Some(turn) = &mut self.turn {
            turn.tell(told, now);
        }
    }

    /// `• Thinking (12s · Esc to cancel)`; `None` when nothing goes on.
    pub fn line(&self, now: Duration, columns: usize, style: Style) -> Option<String> {
        let turn = self.turn.as_ref()?;
        let pulse = now.as_millis() / PULSE.as_millis() % 2;
        // Without colour the dot is steady.
        let dot = style.paint(if pulse == 0 { Attrs::CYAN } else { Attrs::DIM }, "•");
        let label = text::fit_width(&turn.label(now), columns.saturating_sub(2)).to_owned();
        let left = columns.saturating_sub(2 + text::width(&label));
        let elapsed = clock(now.saturating_sub(turn.since));
        let beside = [format!(" ({elapsed} · Esc to cancel)"), format!(" ({elapsed})")];
        let beside = beside.iter().find(|beside| text::width(beside) <= left);
        let line = match columns {
            0 => String::new(),
            1 => dot,
            _ => format!("{dot} {label}{}", style.dim(beside.map_or("", String::as_str))),
        };
        Some(line)
    }
}

impl Turn {
    fn set(&mut self, label: Label) {
        self.label = label;
        self.heading = None;
        self.line.clear();
    }

    fn tell(&mut self, told: &Told, now: Duration) {
        match told {
            Told::RoundStarted { .. } => {
                self.running = 0;
                self.set(Label::Working);
            }
            Told::Model(event) => self.tell_model(event, now),
            Told::ToolStarted { .. } => {
                self.running += 1;
                self.set(Label::RunningTools);
            }
            Told::ToolFinished { .. } => {
                self.running = self.running.saturating_sub(1);
                if self.running == 0 {
                    self.set(Label::Working);
                }
            }
            Told::Compacting => self.set(Label::Compacting),
            Told::Compacted(_) => self.set(Label::Working),
            Told::Notice(_) | Told::TurnEnded { .. } => {}
        }
    }

    fn tell_model(&mut self, event: &ModelEvent, now: Duration) {
        match event {
            ModelEvent::TextStart | ModelEvent::TextDelta(_) => {
                if self.label != Label::Responding || self.heading.is_some() {
                    self.set(Label::Responding);
                }
            }
            ModelEvent::ReasoningStart => self.set(Label::Thinking),
            ModelEvent::ReasoningDelta(delta) => {
                if self.label != Label::Thinking {
                    self.set(Label::Thinking);
                }
                self.read_reasoning(delta);
            }
            ModelEvent::ToolCallStart { name, .. } => {
                self.set(Label::Responding);
                self.heading = Some(format!("Writing a call of {}", text::visible_line(name)));
            }
            ModelEvent::Retry(retry) => {
                let until = now.saturating_add(Duration::from_millis(retry.delay_millis));
                self.set(Label::Retrying { until });
            }
            ModelEvent::TextIs(_)
            | ModelEvent::TextEnd
            | ModelEvent::ReasoningEnd(_)
            | ModelEvent::ToolCallDelta { .. }
            | ModelEvent::ToolCallEnd { .. }
            | ModelEvent::Usage(_)
            | ModelEvent::Response { .. }
            | ModelEvent::ProviderItem(_)
            | ModelEvent::Metrics(_)
            | ModelEvent::Notice(_) => {}
        }
    }

    /// Keeps the last line of the reasoning that is bold as a whole.
    fn read_reasoning(&mut self, delta: &str) {
        for piece in delta.split_inclusive('\n') {
            // A line that is too long stays so until it ends.
            if self.line.len() <= HEADING_BYTES_MAX {
                self.line.push_str(piece);
            }
            let line = self.line.trim();
            let inner = line.strip_prefix("**").and_then(|rest| rest.strip_suffix("**"));
            if let Some(inner) = inner.filter(|inner| !inner.is_empty() && !inner.contains('*')) {
                self.heading = Some(text::visible_line(inner).into_owned());
            }
            if piece.ends_with('\n') {
                self.line.clear();
            }
        }
    }

    fn label(&self, now: Duration) -> String {
        if let Some(heading) = &self.heading {
            return heading.clone();
        }
        match self.label {
            Label::Working => "Working".to_owned(),
            Label::Thinking => "Thinking".to_owned(),
            Label::Responding => "Responding".to_owned(),
            Label::RunningTools if 1 < self.running => format!("Running {} tools", self.running),
            Label::RunningTools => "Running a tool".to_owned(),
            Label::Compacting => "Compacting".to_owned(),
            Label::Retrying { until } if now < until => {
                // The last second counts as one until it is over.
                format!("Retrying in {} s", (until - now).as_millis().div_ceil(1000))
            }
            Label::Retrying { .. } => "Retrying".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{CallEnd, Outcome, Stop};
    use crate::model::{ErrorKind, ModelError, Retry, ToolCall, Usage};

    const SECOND: Duration = Duration::from_secs(1);

    fn reasoning(text: &str) -> Told {
        Told::Model(ModelEvent::ReasoningDelta(text.to_owned()))
    }

    fn call(id: &str) -> ToolCall {
        let (id, name) = (id.to_owned(), "ls".to_owned());
        ToolCall { id, name, arguments: String::new(), extra: None }
    }

    /// What the line says after each, a second apart.
    fn check(steps: &[(Told, &str)]) {
        let mut working = Working::default();
        assert_eq!(working.line(SECOND, 80, Style::plain()), None);
        let mut now = Duration::ZERO;
        working.begin(now);
        for (told, want) in steps {
            now += SECOND;
            working.tell(told, now);
            let line = working.line(now, 60, Style::plain()).unwrap_or_default();
            assert_eq!(line.split(" (").next().unwrap(), *want, "{told:?}");
        }
    }

    #[test]
    fn the_label_follows_the_turn() {
        let retry = Retry {
            attempt: 1,
            attempts_max: 5,
            delay_millis: 2500,
            error: ModelError::new(ErrorKind::Network, "cut"),
            output_discarded: false,
        };
        let outcome = Outcome {
            stop: Stop::Final,
            answer: String::new(),
            rounds: 1,
            tool_calls: 2,
            usage: Usage::default(),
            changed_files: Vec::new(),
            denied_calls: Vec::new(),
        };
        let finished = |id| Told::ToolFinished { call: call(id), end: CallEnd::default() };
        let write = ModelEvent::ToolCallStart { index: 0, name: "wri\x1bte".to_owned() };
        check(&[
            (Told::RoundStarted { round: 1 }, "• Working"),
            (Told::Model(ModelEvent::ReasoningStart), "• Thinking"),
            (reasoning("**Read"), "• Thinking"),
            (reasoning("ing the code**\n\nIt **is"), "• Reading the code"),
            (reasoning("** long\n**Next\x07**"), "• Next^G"),
            (Told::Model(ModelEvent::Retry(retry)), "• Retrying in 3 s"),
            (Told::Notice("x".to_owned()), "• Retrying in 2 s"),
            (Told::Notice("x".to_owned()), "• Retrying in 1 s"),
            (Told::Notice("x".to_owned()), "• Retrying"),
            (Told::Model(ModelEvent::TextDelta("a".to_owned())), "• Responding"),
            (Told::Model(write), "• Writing a call of wri^[te"),
            (Told::ToolStarted { call: call("1") }, "• Running a tool"),
            (Told::ToolStarted { call: call("2") }, "• Running 2 tools"),
            (finished("2"), "• Running a tool"),
            (finished("1"), "• Working"),
            (Told::TurnEnded { outcome, elapsed: SECOND }, ""),
            (finished("1"), ""),
            (Told::RoundStarted { round: 1 }, "• Working"),
        ]);
    }

    #[test]
    fn what_stands_beside_the_label_gives_way() {
        let mut working = Working::default();
        working.begin(Duration::ZERO);
        working.tell(&reasoning("**界面 everywhere**"), SECOND);
        let at = |columns| working.line(SECOND * 64, columns, Style::plain()).unwrap();
        assert_eq!(at(80), "• 界面 everywhere (1m04s · Esc to cancel)");
        assert_eq!(at(41), "• 界面 everywhere (1m04s · Esc to cancel)");
        assert_eq!(at(40), "• 界面 everywhere (1m04s)");
        assert_eq!(at(20), "• 界面 everywhere");
        assert_eq!(at(5), "• 界");
        assert_eq!(at(1), "•");
        assert_eq!(at(0), "");
    }

    #[test]
    fn the_dot_moves_in_colour_alone() {
        let mut working = Working::default();
        working.compact(Duration::ZERO);
        let at = |millis, style| working.line(Duration::from_millis(millis), 80, style).unwrap();
        let rest = " Compacting\x1b[2m (0s · Esc to cancel)\x1b[0m";
        assert_eq!(at(0, Style::coloured()), format!("\x1b[36m•\x1b[0m{rest}"));
        assert_eq!(at(499, Style::coloured()), format!("\x1b[36m•\x1b[0m{rest}"));
        assert_eq!(at(500, Style::coloured()), format!("\x1b[2m•\x1b[0m{rest}"));
        assert_eq!(at(0, Style::plain()), at(500, Style::plain()));
        working.end();
        assert!(!working.is_busy());
    }
}

//! Shows a run to a person: the answer on stdout, everything else on stderr.
//!
//! A [`Screen`] is driven by [`Show`] values alone and writes to what it is given, so that it is
//! tested without a terminal. It is the only writer of both streams while a turn runs; on a
//! terminal a thread owns it and keeps the status line's clock going.

use std::io::{self, Write};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, select, tick};

use crate::agent::{Event, Observer};
use crate::cancel::{Cancel, Reason};
use crate::model::{ModelEvent, ResultStatus};
use crate::render::call::{call_subject, result_summary};
use crate::render::diff_view;
use crate::render::markdown::Markdown;
use crate::render::status;
use crate::render::style::Style;
use crate::text;

/// How often the status line's clock is looked at.
const TICK: Duration = Duration::from_millis(250);
/// A full queue makes the turn wait: the person's terminal is slower than the model.
const QUEUE: usize = 256;
/// Lines of a command's output that are shown below its call: head and tail.
const OUTPUT_LINES_MAX: usize = 8;
/// Lines of a diff that are shown below its call.
const DIFF_LINES_MAX: usize = 80;

/// What the streams are and how much is to be said.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub out_terminal: bool,
    pub err_terminal: bool,
    pub out_style: Style,
    pub err_style: Style,
    pub columns: usize,
    /// Print assistant text as it arrives rather than the final answer at the end.
    pub stream: bool,
    /// Say nothing but the answer and errors.
    pub quiet: bool,
    /// 1: reasoning, usage and retries in full; the default is 0.
    pub verbose: u8,
    /// The person does not want the answer on stdout at all (JSON goes there).
    pub no_answer: bool,
    /// `TERM=dumb` or no terminal: no line is redrawn.
    pub live: bool,
}

/// What to show, detached from the turn's lifetime.
#[derive(Debug, Clone)]
pub enum Show {
    Status(&'static str),
    Text(String),
    TextEnd,
    Reasoning(String),
    ReasoningEnd,
    ToolStarted,
    ToolFinished {
        name: String,
        subject: String,
        summary: String,
        failed: bool,
        text: String,
    },
    /// Streamed text is void: another attempt follows.
    Discard(String),
    Notice(String),
}

pub struct Screen {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    look: Look,
    markdown: Markdown,
    /// Streamed text of the current block was written and has no line end yet.
    text_open: bool,
    wrote_text: bool,
    reasoning_open: bool,
    status: &'static str,
    status_shown: bool,
    elapsed: Duration,
    /// Why stdout took no more, once it did not.
    lost: Option<io::ErrorKind>,
}

impl Screen {
    pub fn new(look: Look, out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Screen {
        Screen {
            out,
            err,
            look,
            markdown: Markdown::new(look.columns, look.out_style),
            text_open: false,
            wrote_text: false,
            reasoning_open: false,
            status: "",
            status_shown: false,
            elapsed: Duration::ZERO,
            lost: None,
        }
    }

    /// Shows one thing; an error means that stdout is gone (stderr's loss is ignored).
    pub fn show(&mut self, show: &Show) -> io::Result<()> {
        if let Show::Status(label) = show {
            if self.status != *label {
                self.status = label;
                self.elapsed = Duration::ZERO;
                self.draw_status();
            }
            return Ok(());
        }
        let result = self.show_above_status(show);
        self.draw_status();
        result
    }

    fn show_above_status(&mut self, show: &Show) -> io::Result<()> {
        match show {
            Show::Status(_) => {}
            Show::Text(delta) if self.look.stream && !self.look.no_answer => {
                self.end_reasoning();
                return self.write_text(delta);
            }
            Show::Text(_) => self.end_reasoning(),
            Show::TextEnd => return self.end_text(),
            Show::Reasoning(delta) => self.write_reasoning(delta),
            Show::ReasoningEnd => self.end_reasoning(),
            Show::ToolStarted => {
                self.end_reasoning();
                return self.end_text();
            }
            Show::ToolFinished { name, subject, summary, failed, text } => {
                let ended = self.end_text();
                self.say_tool(name, subject, summary, *failed, text);
                return ended;
            }
            Show::Discard(message) => {
                let ended = self.end_text();
                self.say(message);
                return ended;
            }
            Show::Notice(message) => {
                let ended = self.end_text();
                self.say(message);
                return ended;
            }
        }
        Ok(())
    }

    /// Streamed text: rendered blocks on a terminal, bytes as they are elsewhere.
    fn write_text(&mut self, delta: &str) -> io::Result<()> {
        let rendered =
            if self.look.out_terminal { self.markdown.push(delta) } else { delta.to_owned() };
        if rendered.is_empty() {
            return Ok(());
        }
        self.clear_status();
        if !self.text_open && self.wrote_text {
            self.out.write_all(b"\n")?;
        }
        self.text_open = true;
        self.wrote_text = true;
        self.out.write_all(rendered.as_bytes())?;
        self.out.flush()
    }

    fn end_text(&mut self) -> io::Result<()> {
        let rest = if self.look.out_terminal { self.markdown.finish() } else { String::new() };
        if rest.is_empty() && !self.text_open {
            return Ok(());
        }
        self.clear_status();
        if !self.text_open && self.wrote_text {
            self.out.write_all(b"\n")?;
        }
        self.wrote_text = true;
        self.out.write_all(rest.as_bytes())?;
        if !self.look.out_terminal {
            self.out.write_all(b"\n")?;
        }
        self.text_open = false;
        self.out.flush()
    }

    /// Reasoning is shown dim on a terminal, and elsewhere only when asked for.
    fn write_reasoning(&mut self, delta: &str) {
        let wanted = !self.look.quiet && (self.look.err_terminal || self.look.verbose > 0);
        if !wanted {
            return;
        }
        self.clear_status();
        let shown = if self.look.err_terminal { text::visible(delta) } else { delta.into() };
        let dim = self.look.err_style.dim(&shown);
        let _ = self.err.write_all(dim.as_bytes());
        self.reasoning_open = true;
        let _ = self.err.flush();
    }

    fn end_reasoning(&mut self) {
        if self.reasoning_open {
            self.reasoning_open = false;
            let _ = self.err.write_all(b"\n");
        }
    }

    fn say_tool(&mut self, name: &str, subject: &str, summary: &str, failed: bool, output: &str) {
        if self.look.quiet {
            return;
        }
        let style = self.look.err_style;
        let mark = if failed { style.red("•") } else { style.green("•") };
        let head = format!("{mark} {} {subject}", style.bold(name));
        let mut lines = vec![format!("{head} {}", style.dim(&format!("({summary})")))];
        if self.look.err_terminal && !failed {
            match name {
                "edit" | "write" => {
                    if let Some(diff) = output.find("--- ").map(|at| &output[at..]) {
                        let view =
                            diff_view::render(diff, style, self.look.columns, DIFF_LINES_MAX);
                        lines.extend(view.lines().map(str::to_owned));
                    }
                }
                "bash" => {
                    let body = output.split_once("\n\n").map_or("", |(_, body)| body);
                    lines.extend(preview(body, self.look.columns).iter().map(|l| style.dim(l)));
                }
                _ => {}
            }
        }
        self.clear_status();
        for line in lines {
            let _ = writeln!(self.err, "{line}");
        }
        let _ = self.err.flush();
    }

    /// A line for the person on stderr.
    pub fn say(&mut self, message: &str) {
        if self.look.quiet {
            return;
        }
        self.clear_status();
        let shown = if self.look.err_terminal { text::visible(message) } else { message.into() };
        let _ = writeln!(self.err, "etch: {shown}");
        let _ = self.err.flush();
    }

    pub fn tick(&mut self, passed: Duration) {
        let before = self.elapsed.as_secs();
        self.elapsed += passed;
        if self.elapsed.as_secs() != before {
            self.draw_status();
        }
    }

    fn draw_status(&mut self) {
        // Never in the middle of a line that is being streamed to the same terminal.
        let mid_line = self.reasoning_open || (self.text_open && self.look.out_terminal);
        if !self.look.live || self.look.quiet || self.status.is_empty() || mid_line {
            return;
        }
        let line = status::draw(self.status, self.elapsed, self.look.columns, self.look.err_style);
        let _ = self.err.write_all(line.as_bytes());
        let _ = self.err.flush();
        self.status_shown = true;
    }

    fn clear_status(&mut self) {
        if self.status_shown {
            self.status_shown = false;
            let _ = self.err.write_all(status::CLEAR.as_bytes());
            let _ = self.err.flush();
        }
    }

    /// Ends everything that is open: the screen is as a shell expects it.
    pub fn close(&mut self) -> io::Result<()> {
        self.end_reasoning();
        let ended = self.end_text();
        self.status = "";
        self.clear_status();
        ended
    }

    /// Keeps the first failure of stdout, and ends the run by it.
    fn note(&mut self, written: io::Result<()>, cancel: &Cancel) {
        if let Err(error) = written {
            self.lost.get_or_insert(error.kind());
            cancel.cancel(Reason::OutputGone);
        }
    }

    /// Prints the final answer unless it was streamed already. Fails, too, when streaming did.
    pub fn answer(&mut self, answer: &str) -> io::Result<()> {
        if let Some(kind) = self.lost {
            return Err(kind.into());
        }
        if self.look.no_answer || answer.is_empty() || (self.look.stream && self.wrote_text) {
            return Ok(());
        }
        if self.look.out_terminal {
            let body = self.markdown.push(answer);
            self.out.write_all(body.as_bytes())?;
            let rest = self.markdown.finish();
            self.out.write_all(rest.as_bytes())?;
        } else {
            self.out.write_all(answer.as_bytes())?;
            if !answer.ends_with('\n') {
                self.out.write_all(b"\n")?;
            }
        }
        self.out.flush()
    }
}

/// The first and last lines of a command's output, cut to the width.
fn preview(body: &str, columns: usize) -> Vec<String> {
    let lines: Vec<_> = body.lines().filter(|line| !line.trim().is_empty()).collect();
    let cut = |line: &str| {
        let shown = text::visible(line);
        format!("  {}", text::truncate_width(&shown, columns.saturating_sub(2)))
    };
    if lines.len() <= OUTPUT_LINES_MAX {
        return lines.into_iter().map(cut).collect();
    }
    let half = OUTPUT_LINES_MAX / 2;
    let (head, tail) = (&lines[..half], &lines[lines.len() - half..]);
    let left_out = format!("  … {} more lines", lines.len() - OUTPUT_LINES_MAX);
    let shown = head.iter().map(|line| cut(line)).chain([left_out]);
    shown.chain(tail.iter().map(|line| cut(line))).collect()
}

/// The observer of a run for people: turns events into [`Show`]s.
pub struct Presenter {
    target: Target,
    cancel: Cancel,
}

enum Target {
    /// No clock to keep: the turn's thread writes itself.
    Direct(Box<Screen>),
    Thread {
        sender: Sender<Show>,
        thread: JoinHandle<Screen>,
    },
}

impl Presenter {
    /// `cancel` is told when stdout goes away.
    pub fn start(screen: Screen, cancel: &Cancel) -> Presenter {
        let cancel = cancel.clone();
        if !screen.look.live {
            return Presenter { target: Target::Direct(Box::new(screen)), cancel };
        }
        let (sender, shows) = bounded(QUEUE);
        let token = cancel.clone();
        let work = move || run_screen(screen, &shows, &token);
        // Without a thread the run goes on all the same; only the clock stands still.
        match thread::Builder::new().name("screen".to_owned()).spawn(work) {
            Ok(thread) => Presenter { target: Target::Thread { sender, thread }, cancel },
            Err(_) => {
                let look = Look { live: false, ..Look::silent() };
                let screen = Screen::new(look, Box::new(io::stdout()), Box::new(io::stderr()));
                Presenter { target: Target::Direct(Box::new(screen)), cancel }
            }
        }
    }

    fn show(&mut self, show: Show) {
        match &mut self.target {
            Target::Direct(screen) => {
                let shown = screen.show(&show);
                screen.note(shown, &self.cancel);
            }
            Target::Thread { sender, .. } => drop(sender.send(show)),
        }
    }

    /// Waits for what is still to be shown and gives the screen back, closed.
    pub fn finish(self) -> Option<Screen> {
        let mut screen = match self.target {
            Target::Direct(screen) => *screen,
            Target::Thread { sender, thread } => {
                drop(sender);
                thread.join().ok()?
            }
        };
        let closed = screen.close();
        screen.note(closed, &self.cancel);
        Some(screen)
    }
}

impl Look {
    fn silent() -> Look {
        Look {
            out_terminal: false,
            err_terminal: false,
            out_style: Style::plain(),
            err_style: Style::plain(),
            columns: 80,
            stream: false,
            quiet: true,
            verbose: 0,
            no_answer: false,
            live: false,
        }
    }
}

/// Ends when the sender is dropped.
fn run_screen(mut screen: Screen, shows: &Receiver<Show>, cancel: &Cancel) -> Screen {
    let clock = tick(TICK);
    loop {
        select! {
            recv(shows) -> show => match show {
                Ok(show) => {
                    let shown = screen.show(&show);
                    screen.note(shown, cancel);
                }
                Err(_) => return screen,
            },
            recv(clock) -> _ => screen.tick(TICK),
        }
    }
}

impl Observer for Presenter {
    fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Logged { .. } => {}
            Event::RoundStarted { .. } => self.show(Show::Status("working")),
            Event::Model(event) => self.observe_model(event),
            Event::ToolStarted { .. } => {
                self.show(Show::ToolStarted);
                self.show(Show::Status("running tools"));
            }
            Event::ToolFinished { call, end } => {
                let failed = end.output.status != ResultStatus::Ok;
                self.show(Show::ToolFinished {
                    name: call.name.clone(),
                    subject: call_subject(&call.name, &call.arguments, 60),
                    summary: result_summary(&call.name, &end.output.text, failed, 100),
                    failed,
                    text: end.output.text.clone(),
                });
            }
            Event::Notice(message) => self.show(Show::Notice(message.to_owned())),
        }
    }
}

impl Presenter {
    fn observe_model(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::TextStart => self.show(Show::Status("responding")),
            ModelEvent::TextDelta(delta) => self.show(Show::Text(delta.clone())),
            ModelEvent::TextEnd => self.show(Show::TextEnd),
            ModelEvent::ReasoningStart => self.show(Show::Status("thinking")),
            ModelEvent::ReasoningDelta(delta) => self.show(Show::Reasoning(delta.clone())),
            ModelEvent::ReasoningEnd(_) => self.show(Show::ReasoningEnd),
            ModelEvent::Retry(retry) => {
                let void = if retry.output_discarded { " (the text above is void)" } else { "" };
                let message = format!(
                    "attempt {} of {} failed: {}; again in {:.1} s{void}",
                    retry.attempt,
                    retry.attempts_max,
                    retry.error.message,
                    Duration::from_millis(retry.delay_millis).as_secs_f64(),
                );
                self.show(Show::Discard(message));
                self.show(Show::Status("waiting to try again"));
            }
            ModelEvent::Notice(message) => self.show(Show::Notice(message.clone())),
            ModelEvent::ToolCallStart { .. }
            | ModelEvent::ToolCallDelta { .. }
            | ModelEvent::ToolCallEnd { .. }
            | ModelEvent::Usage(_)
            | ModelEvent::Response { .. }
            | ModelEvent::ProviderItem(_)
            | ModelEvent::Metrics(_) => {}
        }
    }
}

//! Shows a run to a person: the answer on stdout, everything else on stderr.
//!
//! A [`Screen`] is driven by [`Show`] values alone and writes to what it is given, so that it is
//! tested without a terminal. It is the only writer of both streams while a turn runs.
//!
//! On a terminal the answer is rendered, parts of different kinds stand apart by a blank line,
//! and a status line stands below whenever no line is begun. Nothing that a model, a tool or a
//! server says reaches a terminal with its control characters. Elsewhere text is passed on as it
//! is, and no line but those that were said stands between.

use std::io::{self, Write};
use std::time::Duration;

use crate::cancel::{Cancel, Reason};
use crate::render::call_view::{Details, Head, State};
use crate::render::markdown::Markdown;
use crate::render::status;
use crate::render::style::Style;
use crate::text;

/// Columns before what belongs to a call.
const INDENT: usize = 2;
/// What the streams are and how much is to be said.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub out_terminal: bool,
    pub err_terminal: bool,
    pub out_style: Style,
    pub err_style: Style,
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

/// The width of the terminal now: it may change at any time.
pub type Columns = Box<dyn Fn() -> usize + Send>;

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

/// What stands on a stream, as far as it decides about the space behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Text,
    Reasoning,
    Tool,
    Notice,
}

pub struct Screen {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    columns: Columns,
    look: Look,
    markdown: Markdown,
    reasoning: Markdown,
    /// Something of the current text, or reasoning, was written.
    text_open: bool,
    reasoning_open: bool,
    /// Stdout, where it is no terminal, is inside a line.
    out_mid_line: bool,
    wrote_text: bool,
    out_last: Option<Part>,
    err_last: Option<Part>,
    status: &'static str,
    /// The status line as it stands on the terminal; empty when none does.
    drawn: String,
    elapsed: Duration,
    /// Why stdout took no more, once it did not.
    lost: Option<io::ErrorKind>,
}

impl Screen {
    pub fn new(
        look: Look,
        columns: Columns,
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
    ) -> Screen {
        let width = columns();
        Screen {
            out,
            err,
            columns,
            look,
            markdown: Markdown::new(width, look.out_style),
            reasoning: Markdown::new(width, look.err_style),
            text_open: false,
            reasoning_open: false,
            out_mid_line: false,
            wrote_text: false,
            out_last: None,
            err_last: None,
            status: "",
            drawn: String::new(),
            elapsed: Duration::ZERO,
            lost: None,
        }
    }

    pub fn look(&self) -> Look {
        self.look
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
            Show::Status(_) => Ok(()),
            Show::Text(delta) => {
                self.end_reasoning();
                if self.look.stream && !self.look.no_answer {
                    self.write_text(delta)
                } else {
                    Ok(())
                }
            }
            Show::TextEnd => self.end_text(),
            Show::Reasoning(delta) => {
                let ended = self.end_text();
                self.write_reasoning(delta);
                ended
            }
            Show::ReasoningEnd => {
                self.end_reasoning();
                Ok(())
            }
            Show::ToolStarted => {
                self.end_reasoning();
                self.end_text()
            }
            Show::ToolFinished { name, subject, summary, failed, text } => {
                self.end_reasoning();
                let ended = self.end_text();
                self.say_tool(name, subject, summary, *failed, text);
                ended
            }
            Show::Discard(message) | Show::Notice(message) => {
                self.end_reasoning();
                let ended = self.end_text();
                self.say(message);
                ended
            }
        }
    }

    /// Streamed text: rendered on a terminal, bytes as they are elsewhere.
    fn write_text(&mut self, delta: &str) -> io::Result<()> {
        if self.look.out_terminal {
            self.markdown.set_columns((self.columns)());
            let rendered = self.markdown.push(delta);
            self.write_out(&rendered)
        } else {
            self.write_out(delta)
        }
    }

    fn write_out(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.clear_status();
        if !self.text_open {
            let needs_blank = self.needs_blank(Part::Text);
            self.note_part(Part::Text);
            self.text_open = true;
            self.wrote_text = true;
            if needs_blank {
                self.out.write_all(b"\n")?;
            }
        }
        self.out_mid_line = !text.ends_with('\n');
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn end_text(&mut self) -> io::Result<()> {
        if self.look.out_terminal {
            let rest = self.markdown.finish();
            self.write_out(&rest)?;
        } else if self.text_open && self.out_mid_line {
            self.write_out("\n")?;
        }
        self.text_open = false;
        Ok(())
    }

    /// Whether a blank line stands before the next part. On a terminal both streams are one.
    fn needs_blank(&self, next: Part) -> bool {
        let is_out = next == Part::Text;
        match if is_out { self.out_last } else { self.err_last } {
            None => false,
            Some(Part::Text) if is_out => true,
            Some(last) => last != next && (is_out || self.look.err_terminal),
        }
    }

    fn note_part(&mut self, part: Part) {
        let is_shared = self.look.out_terminal && self.look.err_terminal;
        if is_shared || part == Part::Text {
            self.out_last = Some(part);
        }
        if is_shared || part != Part::Text {
            self.err_last = Some(part);
        }
    }

    /// Begins a part on stderr.
    fn begin_part(&mut self, part: Part) {
        self.clear_status();
        if self.needs_blank(part) {
            let _ = self.err.write_all(b"\n");
        }
        self.note_part(part);
    }

    /// Reasoning is shown dim on a terminal, and elsewhere only when asked for.
    fn write_reasoning(&mut self, delta: &str) {
        let wanted = !self.look.quiet && (self.look.err_terminal || self.look.verbose > 0);
        if wanted {
            self.reasoning.set_columns((self.columns)());
            let shown = match self.look.err_terminal {
                true => self.reasoning.push(delta),
                false => delta.to_owned(),
            };
            self.write_dim(&shown);
        }
    }

    fn write_dim(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.clear_status();
        if !self.reasoning_open {
            self.reasoning_open = true;
            self.begin_part(Part::Reasoning);
        }
        for line in text.split_inclusive('\n') {
            let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
            let _ = write!(self.err, "{}{end}", self.look.err_style.dim(text));
        }
        let _ = self.err.flush();
    }

    fn end_reasoning(&mut self) {
        if self.look.err_terminal {
            let rest = self.reasoning.finish();
            self.write_dim(&rest);
        } else if self.reasoning_open {
            self.write_dim("\n");
        }
        self.reasoning_open = false;
    }

    fn say_tool(&mut self, name: &str, subject: &str, summary: &str, failed: bool, output: &str) {
        if self.look.quiet {
            return;
        }
        let style = self.look.err_style;
        // Where lines need not fit, nothing is cut and nothing stands below.
        let columns = self.look.err_terminal.then(|| (self.columns)());
        let state = State::ended(failed, summary);
        let mut lines = vec![Head { name, subject, summary, state }.paint(columns, style)];
        if let Some(columns) = columns.filter(|_| !failed) {
            let details = Details::of(name, output, columns.saturating_sub(INDENT), style, "");
            lines.extend(details.lines.iter().map(|line| format!("{:INDENT$}{line}", "")));
        }
        self.begin_part(Part::Tool);
        for line in lines {
            let _ = writeln!(self.err, "{}", line.trim_end());
        }
        let _ = self.err.flush();
    }

    /// A line for the person on stderr.
    pub fn say(&mut self, message: &str) {
        if !self.look.quiet {
            self.complain(message);
        }
    }

    /// A line that even a quiet run does not keep back.
    pub fn complain(&mut self, message: &str) {
        self.begin_part(Part::Notice);
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
        let mid_line =
            self.reasoning.is_mid_line() || (self.look.out_terminal && self.markdown.is_mid_line());
        if !self.look.live || self.look.quiet || self.status.is_empty() || mid_line {
            return;
        }
        let columns = (self.columns)();
        let line = status::draw(self.status, self.elapsed, columns, self.look.err_style);
        if line != self.drawn {
            let _ = self.err.write_all(line.as_bytes());
            let _ = self.err.flush();
            self.drawn = line;
        }
    }

    fn clear_status(&mut self) {
        if !self.drawn.is_empty() {
            self.drawn.clear();
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
    pub fn note(&mut self, written: io::Result<()>, cancel: &Cancel) {
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
        self.write_text(answer)?;
        self.end_text()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Both streams of a screen: each for itself, and together as a terminal gets them.
    #[derive(Clone, Default)]
    struct Streams {
        out: Arc<Mutex<Vec<u8>>>,
        err: Arc<Mutex<Vec<u8>>>,
        both: Arc<Mutex<Vec<u8>>>,
    }

    struct Stream(Arc<Mutex<Vec<u8>>>, Arc<Mutex<Vec<u8>>>);

    impl Write for Stream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            for target in [&self.0, &self.1] {
                target.lock().unwrap().extend_from_slice(bytes);
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Streams {
        fn screen(&self, look: Look, columns: Columns) -> Screen {
            let stream = |own: &Arc<_>| Box::new(Stream(Arc::clone(own), Arc::clone(&self.both)));
            Screen::new(look, columns, stream(&self.out), stream(&self.err))
        }

        fn text(stream: &Arc<Mutex<Vec<u8>>>) -> String {
            String::from_utf8(stream.lock().unwrap().clone()).unwrap()
        }
    }

    fn look(out_terminal: bool, err_terminal: bool) -> Look {
        Look {
            out_terminal,
            err_terminal,
            out_style: Style::plain(),
            err_style: Style::plain(),
            stream: true,
            quiet: false,
            verbose: 0,
            no_answer: false,
            live: err_terminal,
        }
    }

    fn tool(name: &str, summary: &str, text: &str) -> Show {
        Show::ToolFinished {
            name: name.to_owned(),
            subject: "a subject that is long".to_owned(),
            summary: summary.to_owned(),
            failed: false,
            text: text.to_owned(),
        }
    }

    #[track_caller]
    fn play(look: Look, shows: &[Show]) -> Streams {
        let streams = Streams::default();
        let mut screen = streams.screen(look, Box::new(|| 40));
        for show in shows {
            screen.show(show).unwrap();
        }
        screen.close().unwrap();
        streams
    }

    fn shows() -> Vec<Show> {
        vec![
            Show::Reasoning("let me ".into()),
            Show::Reasoning("see".into()),
            Show::Text("\n\nFirst ".into()),
            Show::Text("words\n".into()),
            Show::TextEnd,
            tool("bash", "exit code 1, 4ms", "exit code: 1\n\nstdout:\n\ta\nb\x1b[2J"),
            tool("ls", "9 lines", ""),
            Show::Notice("some notice".into()),
            Show::Text("Last".into()),
            Show::TextEnd,
        ]
    }

    #[test]
    fn parts_stand_apart_on_a_terminal_that_both_streams_share() {
        let streams = play(look(true, true), &shows());
        let want = "let me see\n\nFirst words\n\n• bash a subject tha… (exit code 1, 4ms)\n      a\n  \
            b^[[2J\n• ls a subject that is long (9 lines)\n\netch: some notice\n\nLast\n";
        assert_eq!(Streams::text(&streams.both), want);
    }

    #[test]
    fn a_stream_of_its_own_has_no_space_for_the_other() {
        let streams = play(look(false, true), &shows());
        assert_eq!(Streams::text(&streams.out), "\n\nFirst words\n\nLast\n");
        let err = Streams::text(&streams.err);
        assert!(err.starts_with("let me see\n\n• bash "), "{err}");
        let streams = play(look(false, false), &shows());
        assert_eq!(
            Streams::text(&streams.err),
            "• bash a subject that is long (exit code 1, 4ms)\n\
             • ls a subject that is long (9 lines)\netch: some notice\n"
        );
        assert_eq!(Streams::text(&streams.out), "\n\nFirst words\n\nLast\n");
        let streams = play(Look { quiet: true, ..look(true, false) }, &shows());
        assert_eq!(Streams::text(&streams.both), "First words\n\nLast\n");
    }

    #[test]
    fn the_status_stands_only_below_whole_lines_and_is_drawn_once() {
        let streams = Streams::default();
        let mut screen = streams.screen(look(true, true), Box::new(|| 40));
        let mut step = |show: &Show, want: &str| {
            streams.both.lock().unwrap().clear();
            screen.show(show).unwrap();
            assert_eq!(Streams::text(&streams.both), want, "{show:?}");
        };
        step(&Show::Status("responding"), "\r• responding 0s\x1b[K");
        step(&Show::Status("responding"), "");
        step(&Show::Text("one".into()), "");
        step(&Show::Text(" two".into()), "\r\x1b[Kone");
        step(&Show::Text("\n".into()), " two\n\r• responding 0s\x1b[K");
        step(&Show::Text("```\n".into()), "\r\x1b[K\n```\n\r• responding 0s\x1b[K");
        step(&Show::Text("co".into()), "");
        step(
            &Show::Discard("again".into()),
            "\r\x1b[Kco\n```\n\netch: again\n\r• responding 0s\x1b[K",
        );
        streams.both.lock().unwrap().clear();
        screen.tick(Duration::from_millis(999));
        assert_eq!(Streams::text(&streams.both), "");
        screen.tick(Duration::from_millis(1));
        assert_eq!(Streams::text(&streams.both), "\r• responding 1s\x1b[K");
    }

    #[test]
    fn the_width_is_asked_for_each_time() {
        let width = Arc::new(AtomicUsize::new(40));
        let asked = Arc::clone(&width);
        let streams = Streams::default();
        let columns = Box::new(move || asked.load(Ordering::Relaxed));
        let mut screen = streams.screen(look(true, true), columns);
        let words = Show::Text("one two three four five six\n".into());
        screen.show(&words).unwrap();
        width.store(20, Ordering::Relaxed);
        screen.show(&words).unwrap();
        width.store(9, Ordering::Relaxed);
        screen.show(&Show::Status("thinking")).unwrap();
        screen.show(&tool("ls", "9 lines", "")).unwrap();
        screen.close().unwrap();
        let want = "one two three four five six\none two three four\nfive six\n\
            \r• think…\x1b[K\r\x1b[K\n• ls a s…\n\r• think…\x1b[K\r\x1b[K";
        assert_eq!(Streams::text(&streams.both), want);
    }
}

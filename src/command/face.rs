//! What a run shows: which of the observers it has, and how its end is told.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use super::args::{Color, OutputMode, RunArgs};
use super::json::{Both, JsonLines};
use super::result::RunResult;
use super::screen::{Look, Presenter, Screen};
use super::{exit, out};
use crate::agent::Observer;
use crate::cancel::Cancel;
use crate::host::Host;
use crate::render::style::{self, Style};
use crate::sys;
use crate::text;

/// Narrower than this nothing is laid out.
const COLUMNS_MIN: u16 = 20;

/// The face of one run.
pub struct Face {
    mode: OutputMode,
    look: Look,
    output_file: Option<std::path::PathBuf>,
    presenter: Option<Presenter>,
    json: JsonLines<io::Stdout>,
    cancel: Cancel,
}

impl Face {
    pub fn new(host: &Host, args: &RunArgs, cancel: &Cancel) -> Face {
        let lines = args.output == OutputMode::Json;
        Face {
            mode: args.output,
            look: look(host, args),
            output_file: args.output_file.as_ref().map(|path| host.cwd().join(path)),
            presenter: None,
            json: JsonLines::new(io::stdout(), lines, args.deltas, cancel),
            cancel: cancel.clone(),
        }
    }

    /// A line for the person before or after the turn.
    pub fn say(&self, message: &str) {
        if !self.look.quiet {
            self.complain(message);
        }
    }

    /// A line that even `--quiet` does not keep back.
    fn complain(&self, message: &str) {
        if self.look.err_terminal {
            out::say(&text::visible(message));
        } else {
            out::say(message);
        }
    }

    /// The observer of the turn that begins now.
    pub fn start(&mut self) -> Both<'_> {
        let screen = Screen::new(self.look, Box::new(io::stdout()), Box::new(io::stderr()));
        let presenter = self.presenter.insert(Presenter::start(screen, &self.cancel));
        Both(presenter as &mut dyn Observer, &mut self.json)
    }

    /// Tells the end of the run and returns the process's exit code.
    pub fn end(mut self, mut result: RunResult) -> u8 {
        let screen = self.presenter.take().and_then(Presenter::finish);
        if let Some(path) = &self.output_file
            && let Err(error) = write_file(path, &result.answer)
        {
            let message = format!("cannot write the answer to {}: {error}", path.display());
            self.complain(&message);
            if result.exit == exit::OK {
                result.fail("output_file", message, exit::FAILED);
            }
        }
        if self.mode != OutputMode::Text {
            if result.exit != exit::OK {
                self.tell_error(&result);
            }
            let written = self.json.line(&result.line());
            return if written {
                result.exit
            } else {
                self.stdout_failed(self.json.error(), &result)
            };
        }
        let printed = match screen {
            Some(mut screen) => screen.answer(&result.answer),
            None => Ok(()),
        };
        if result.exit != exit::OK {
            self.tell_error(&result);
        }
        self.tell_session(&result);
        match printed {
            Ok(()) => result.exit,
            Err(error) => self.stdout_failed(Some(error.kind()), &result),
        }
    }

    fn tell_error(&self, result: &RunResult) {
        if let Some(failure) = &result.error {
            self.complain(&match failure.hint.as_str() {
                "" => failure.message.clone(),
                hint => format!("{}; {hint}", failure.message),
            });
        }
    }

    /// On a terminal a run says how to go on from it.
    fn tell_session(&self, result: &RunResult) {
        let Some(id) = &result.session_id else { return };
        if self.look.err_terminal || self.look.verbose > 0 {
            let usage = &result.usage;
            let short = id.get(..8).unwrap_or(id);
            self.say(&format!(
                "session {short} · {} in, {} out · continue with: etch -p --session {short} TEXT",
                text::human_count(usage.input),
                text::human_count(usage.output)
            ));
        }
    }

    /// Stdout took no more. Its reader's leaving is an end of its own; anything else is an error.
    fn stdout_failed(&self, kind: Option<io::ErrorKind>, result: &RunResult) -> u8 {
        match kind {
            Some(io::ErrorKind::BrokenPipe) | None => exit::OUTPUT_GONE,
            Some(kind) => {
                self.complain(&format!("cannot write to standard output: {kind}"));
                if matches!(result.exit, exit::OK | exit::OUTPUT_GONE) {
                    exit::FAILED
                } else {
                    result.exit
                }
            }
        }
    }
}

fn write_file(path: &std::path::Path, answer: &str) -> io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    file.write_all(answer.as_bytes())?;
    if !answer.ends_with('\n') {
        file.write_all(b"\n")?;
    }
    file.flush()
}

fn look(host: &Host, args: &RunArgs) -> Look {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let (out_terminal, err_terminal) = (stdout.is_terminal(), stderr.is_terminal());
    let text = args.output == OutputMode::Text;
    let dumb = host.var("TERM") == Some("dumb");
    let colour = |terminal| {
        let choice = match args.color {
            Color::Auto => style::Choice::Auto,
            Color::Always => style::Choice::Always,
            Color::Never => style::Choice::Never,
        };
        Style::decide(choice, host, terminal)
    };
    let size = if out_terminal {
        sys::terminal_size(stdout.as_fd())
    } else {
        sys::terminal_size(stderr.as_fd())
    };
    let given = host.var("COLUMNS").and_then(|columns| columns.parse().ok());
    let columns = given.or(size.map(|(columns, _)| columns)).unwrap_or(80).max(COLUMNS_MIN);
    Look {
        out_terminal,
        err_terminal,
        out_style: colour(out_terminal),
        err_style: colour(err_terminal),
        columns: usize::from(columns),
        stream: args.stream.unwrap_or(out_terminal),
        quiet: args.quiet,
        verbose: args.verbose,
        no_answer: !text,
        live: err_terminal && !dumb && !args.quiet,
    }
}

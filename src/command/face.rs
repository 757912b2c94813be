//! What a run shows: which of the observers it has, and how its end is told.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use super::args::{Color, OutputMode, RunArgs};
use super::json::{Both, JsonLines};
use super::presenter::Presenter;
use super::result::RunResult;
use super::screen::{Columns, Look, Screen};
use super::{exit, out};
use crate::agent::Observer;
use crate::cancel::Cancel;
use crate::host::Host;
use crate::render::style::{self, Style};
use crate::sys;
use crate::text;

/// The width where there is none to ask for.
const COLUMNS_DEFAULT: usize = 80;

/// The face of one run.
pub struct Face {
    mode: OutputMode,
    look: Look,
    output_file: Option<std::path::PathBuf>,
    go_on: Option<String>,
    host: Arc<Host>,
    presenter: Option<Presenter>,
    json: JsonLines<io::Stdout>,
    cancel: Cancel,
}

impl Face {
    pub fn new(host: &Arc<Host>, args: &RunArgs, cancel: &Cancel) -> Face {
        let lines = args.output == OutputMode::Json;
        let mut json = JsonLines::new(io::stdout(), lines, args.deltas, cancel);
        json.on_terminal = io::stdout().is_terminal();
        Face {
            mode: args.output,
            look: look(host, args),
            output_file: args.output_file.as_ref().map(|path| host.cwd().join(path)),
            go_on: args.go_on.clone(),
            host: Arc::clone(host),
            presenter: None,
            json,
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
        out::say(message);
    }

    /// The observer of the turn that begins now.
    pub fn start(&mut self) -> Both<'_> {
        let (out, err) = (Box::new(io::stdout()), Box::new(io::stderr()));
        let screen = Screen::new(self.look, columns(&self.host, self.look), out, err);
        let presenter = self.presenter.insert(Presenter::start(screen, &self.cancel));
        Both(presenter as &mut dyn Observer, &mut self.json)
    }

    /// Tells the end of the run and returns the process's exit code.
    pub fn end(mut self, mut result: RunResult) -> u8 {
        let mut screen = self.presenter.take().and_then(Presenter::finish);
        // Without an answer the file stays as it is: an older answer is worth more than nothing.
        if let Some(path) = &self.output_file
            && !(result.exit != exit::OK && result.answer.is_empty())
            && let Err(error) = write_file(path, &result.answer)
        {
            let message = format!("cannot write the answer to {}: {error}", path.display());
            if result.exit == exit::OK {
                result.fail("output_file", message, exit::FAILED);
            } else {
                self.tell(screen.as_mut(), &message);
            }
        }
        if self.mode != OutputMode::Text {
            if result.exit != exit::OK {
                self.tell_error(screen.as_mut(), &result);
            }
            let written = self.json.line(&result.line());
            return if written {
                result.exit
            } else {
                self.stdout_failed(self.json.error(), &result)
            };
        }
        let printed = match &mut screen {
            Some(screen) => screen.answer(&result.answer),
            None => Ok(()),
        };
        if result.exit != exit::OK {
            self.tell_error(screen.as_mut(), &result);
        }
        self.tell_session(screen.as_mut(), &result);
        match printed {
            Ok(()) => result.exit,
            Err(error) => self.stdout_failed(Some(error.kind()), &result),
        }
    }

    /// A line at the end: below what the screen shows, or without one.
    fn tell(&self, screen: Option<&mut Screen>, message: &str) {
        match screen {
            Some(screen) => screen.complain(message),
            None => self.complain(message),
        }
    }

    fn tell_error(&self, screen: Option<&mut Screen>, result: &RunResult) {
        if let Some(failure) = &result.error {
            self.tell(screen, &failure.to_string());
        }
    }

    /// A run on a terminal, and one that did not end well, says how to go on from it.
    fn tell_session(&self, screen: Option<&mut Screen>, result: &RunResult) {
        let (Some(id), Some(go_on)) = (&result.session_id, &self.go_on) else { return };
        let is_wanted = self.look.err_terminal || self.look.verbose > 0 || result.exit != exit::OK;
        if is_wanted && !self.look.quiet {
            let usage = &result.usage;
            let short = id.get(..8).unwrap_or(id);
            let message = format!(
                "{} in, {} out · go on with: {go_on} --session {short} TEXT",
                text::human_count(usage.input),
                text::human_count(usage.output)
            );
            self.tell(screen, &message);
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

/// Why an answer could not be written there, asked before anything is spent on one. The file is
/// not touched; what is no regular file may wait for a reader and is not opened.
pub fn check_output_file(path: &std::path::Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if found.is_file() => {
            std::fs::OpenOptions::new().append(true).open(path).map(drop)
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            folder.map_or(Ok(()), |folder| std::fs::metadata(folder.join(".")).map(drop))
        }
        Err(error) => Err(error),
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

impl From<Color> for style::Choice {
    fn from(color: Color) -> style::Choice {
        match color {
            Color::Auto => style::Choice::Auto,
            Color::Always => style::Choice::Always,
            Color::Never => style::Choice::Never,
        }
    }
}

fn look(host: &Host, args: &RunArgs) -> Look {
    let (out_terminal, err_terminal) = (io::stdout().is_terminal(), io::stderr().is_terminal());
    let text = args.output == OutputMode::Text;
    let style = |terminal| Style::decide(args.color.into(), host, terminal);
    Look {
        out_terminal,
        err_terminal,
        out_style: style(out_terminal),
        err_style: style(err_terminal),
        stream: args.stream.unwrap_or(out_terminal),
        quiet: args.quiet,
        verbose: args.verbose,
        no_answer: !text,
        live: err_terminal && !style::is_dumb(host) && !args.quiet,
    }
}

/// The width of the terminal, asked anew each time; `COLUMNS` overrules it.
fn columns(host: &Host, look: Look) -> Columns {
    let given = host.var("COLUMNS").and_then(|columns| columns.parse().ok()).filter(|&n| 0 < n);
    Box::new(move || {
        let of_terminal = || match look.out_terminal {
            true => sys::terminal_size(io::stdout().as_fd()),
            false => sys::terminal_size(io::stderr().as_fd()),
        };
        let size = given.or_else(|| of_terminal().map(|(columns, _)| columns.into()));
        size.filter(|&columns| 0 < columns).unwrap_or(COLUMNS_DEFAULT)
    })
}

//! The chat without a live region: what happens is printed line by line, and each line of
//! standard input is a prompt or a command.
//!
//! For screen readers and terminals that can do no more (`--plain`, `TERM=dumb`), and for input
//! that is no terminal: then every line is a turn of its own, in order, and the end of the input
//! is the end of the chat.

use std::io::{self, BufRead, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, never, select};

use super::footer::Footer;
use super::live::Size;
use super::output::{Output, PATIENCE};
use super::stage::{Effect, Stage};
use super::terminal;
use super::worker::{Said, Start, Worker};
use super::{END_WITHIN, Ended, PANICKED, clipboard, custom};
use crate::agent::Stop;
use crate::cancel::{Cancel, Reason};
use crate::host::Host;
use crate::render::style::Style;
use crate::sys::{self, Signal};

/// A longer line is cut into several.
const LINE_BYTES_MAX: u64 = 8 << 20;
/// Lines have no width of their own here.
const ROWS: usize = 24;

enum Typed {
    Line(String),
    End,
}

/// Runs the chat and returns the exit code: 0, or that of the last turn that did not end well.
/// `is_person`: somebody sits there, and is shown where to type.
pub fn run(start: Start, style: Style, is_person: bool) -> io::Result<Ended> {
    let host = Arc::clone(&start.host);
    let (customs, warnings) = custom::load(&host, start.loaded.project.as_deref());
    let signals = sys::signals()?;
    let size = Size { columns: terminal::size().columns, rows: ROWS };
    let mut stage = Stage::new(size, style, Footer::default(), customs);
    for warning in start.loaded.warnings.iter().chain(&warnings) {
        stage.notice(super::block::Notice::Warn, warning);
    }
    let cancel = start.cancel.clone();
    let (worker, heard) = Worker::start(start)?;
    let (type_in, typed) = bounded(1);
    // It may sit in a read for ever, and ends with the process.
    let reading = thread::Builder::new().name("lines".to_owned());
    drop(reading.spawn(move || read(&type_in))?);
    let mut chat = Chat {
        host,
        stage,
        output: Output::start()?,
        worker: Some(worker),
        heard,
        typed,
        signals,
        cancel,
        is_person,
        is_prompted: false,
        code: None,
        is_pressed: false,
    };
    // After a mistake in here the session is closed as ever.
    let code = catch_unwind(AssertUnwindSafe(|| chat.work())).unwrap_or(PANICKED);
    let failure = chat.stage.take_failure();
    chat.end();
    Ok(Ended { code, failure })
}

fn read(type_in: &Sender<Typed>) {
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stdin).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return drop(type_in.send(Typed::End)),
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        if type_in.send(Typed::Line(text)).is_err() {
            return;
        }
    }
}

struct Chat {
    host: Arc<Host>,
    stage: Stage,
    output: Output,
    worker: Option<Worker>,
    heard: Receiver<Said>,
    typed: Receiver<Typed>,
    signals: Receiver<Signal>,
    /// Ends what is being set up.
    cancel: Cancel,
    is_person: bool,
    /// It was said where to type.
    is_prompted: bool,
    code: Option<u8>,
    /// A signal asked for the end: nobody is waited for.
    is_pressed: bool,
}

impl Chat {
    fn work(&mut self) -> u8 {
        loop {
            self.print();
            if let Some(code) = self.code {
                return code;
            }
            // A line is taken when nothing runs any more, and not before there is a session.
            let is_ready = !self.stage.is_busy() && self.stage.session().is_some();
            if is_ready {
                self.ask();
            }
            let none = never();
            let typed = if is_ready { &self.typed } else { &none };
            select! {
                recv(typed) -> typed => match typed {
                    Ok(Typed::Line(line)) => self.line(line),
                    Ok(Typed::End) | Err(_) => self.code = Some(self.stage.exit_code()),
                },
                recv(self.heard) -> said => match said {
                    Ok(said) => {
                        let effects = self.stage.hear(said, self.host.elapsed());
                        self.perform(effects);
                    }
                    Err(_) => self.code = Some(PANICKED),
                },
                recv(self.signals) -> signal => if let Ok(signal) = signal {
                    self.signal(signal);
                },
            }
        }
    }

    fn ask(&mut self) {
        if self.is_person && !std::mem::replace(&mut self.is_prompted, true) {
            self.write("> ");
        }
    }

    fn line(&mut self, line: String) {
        self.is_prompted = false;
        if line.trim().is_empty() {
            return;
        }
        let effects = self.stage.submit_text(line, self.host.elapsed());
        self.perform(effects);
    }

    fn signal(&mut self, signal: Signal) {
        let reason = match signal {
            Signal::Interrupt if self.is_person => {
                let effects = self.stage.interrupt(self.host.elapsed());
                self.is_prompted = false;
                return self.perform(effects);
            }
            Signal::Interrupt => Reason::Interrupt,
            Signal::Terminate => Reason::Terminate,
            Signal::Hangup => Reason::Hangup,
            Signal::Resized | Signal::Continued => return,
        };
        self.stage.cancel(reason);
        self.code = Some(Stop::Cancelled(reason).exit_code());
        self.is_pressed = true;
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Give(job) => {
                    // At most one waits here.
                    let worker = self.worker.as_ref();
                    let _ = worker.is_some_and(|worker| worker.give(job));
                }
                Effect::Quit(code) => {
                    self.code = Some(if code == 0 { self.stage.exit_code() } else { code });
                }
                Effect::Copy(text) => {
                    let copied = clipboard::copy(&self.host, &text);
                    self.stage.notice(copied.notice, &copied.message);
                }
                Effect::Choose => self.stage.list_choices(),
                Effect::Suspend | Effect::EditDraft(_) | Effect::ReadPaths | Effect::Redraw => {}
            }
        }
    }

    fn print(&mut self) {
        let mut text = String::new();
        for line in self.stage.take_lines() {
            text.push_str(&line);
            text.push('\n');
        }
        if !text.is_empty() && std::mem::take(&mut self.is_prompted) {
            text.insert(0, '\n');
        }
        self.write(&text);
    }

    /// Waits until all is taken by whoever reads it; what signals ask for comes first.
    fn write(&mut self, text: &str) {
        if self.output.is_busy() {
            return;
        }
        if self.output.give(text.as_bytes().to_vec()).is_err() {
            return self.reader_is_gone();
        }
        while self.output.is_busy() && self.code.is_none() {
            select! {
                recv(self.output.written()) -> end => {
                    let end = end.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
                    if self.output.is_written(end).is_err() {
                        self.reader_is_gone();
                    }
                },
                recv(self.signals) -> signal => if let Ok(signal) = signal {
                    self.signal(signal);
                },
            }
        }
    }

    fn reader_is_gone(&mut self) {
        self.stage.cancel(Reason::OutputGone);
        self.code = Some(Stop::Cancelled(Reason::OutputGone).exit_code());
    }

    fn end(mut self) {
        self.cancel.cancel(Reason::User);
        self.stage.cancel(Reason::User);
        if let Some(worker) = self.worker.take() {
            let (stage, host) = (&mut self.stage, &self.host);
            worker.stop(&self.heard, END_WITHIN, &mut |said| {
                drop(stage.hear(said, host.elapsed()));
            });
        }
        let stage = &mut self.stage;
        let lines = stage.take_lines().into_iter().chain(stage.farewell());
        let text: String = lines.map(|line| line + "\n").collect();
        if !self.is_pressed {
            self.code = None;
            self.write(&text);
        }
        if self.is_pressed {
            self.output.end(text.as_bytes(), PATIENCE);
        }
    }
}

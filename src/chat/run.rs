//! The chat on a terminal: the one loop that waits for keys, the session's thread, signals and the
//! clock, and the one place that writes.
//!
//! A key is drawn at once. What streams is drawn some times a second, however many pieces it
//! comes in. While nothing moves there is no timer at all.
//!
//! The loop never waits for the terminal alone. While that takes nothing, nothing is drawn and
//! nothing is taken from the session's thread, which then waits, too; keys, signals and the end are
//! what they always are.

mod away;

use std::io;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvError, Sender, after, bounded, never, select};

use super::block::Notice;
use super::complete::Paths;
use super::footer::{Footer, home_form};
use super::key::{Input, KeyDecoder};
use super::live::Live;
use super::reader::{Reader, Typed};
use super::stage::{Effect, Stage};
use super::terminal::{self, Terminal};
use super::worker::{Said, Start, Worker};
use super::{END_WITHIN, Ended, PANICKED, clipboard, custom};
use crate::agent::Stop;
use crate::cancel::{Cancel, Reason};
use crate::host::Host;
use crate::render::style::Style;
use crate::sys::{self, Signal};
use crate::text::human_bytes;
use crate::workspace::branch::branch;

/// Between two drawings of what streams.
const FRAME: Duration = Duration::from_millis(50);
/// Between two looks at the clock, while something runs.
const TICK: Duration = Duration::from_millis(500);
/// Of what the session's thread tells, at most so much is taken before keys are looked at again.
const TOLD_AT_ONCE: usize = 512;

/// How the chat looks.
pub struct Look {
    pub style: Style,
    /// The terminal lays its lines out anew when its width changes.
    pub reflows: bool,
}

/// Runs the chat and returns the exit code.
pub fn run(start: Start, look: &Look) -> io::Result<Ended> {
    let host = Arc::clone(&start.host);
    let (customs, warnings) = custom::load(&host, start.loaded.project.as_deref());
    let warnings: Vec<String> = start.loaded.warnings.iter().cloned().chain(warnings).collect();
    let signals = sys::signals()?;
    sys::watch_terminal()?;
    let mut terminal = Terminal::open()?;
    let ahead = terminal.enter()?;
    let mut stage = Stage::new(terminal::size(), look.style, footer(&host), customs);
    for warning in warnings {
        stage.notice(Notice::Warn, &warning);
    }
    let cancel = start.cancel.clone();
    let (worker, heard) = Worker::start(start)?;
    let (type_in, typed) = bounded(64);
    let reader = Some(Reader::start(type_in.clone(), ahead)?);
    let size = terminal::size();
    let mut chat = Chat {
        host,
        stage,
        live: Live::new(size, look.reflows),
        decoder: KeyDecoder::default(),
        terminal,
        reader,
        type_in,
        typed,
        early: Vec::new(),
        worker: Some(worker),
        heard,
        signals,
        cancel,
        paths: None,
        path_thread: None,
        drawn_at: None,
        typed_at: Duration::ZERO,
        resumed_at: None,
        edited_at: None,
        is_dirty: true,
        is_late: false,
        is_blank: false,
        clip: None,
        code: None,
        is_pressed: false,
    };
    // After a mistake in here the session is closed and the terminal given back as ever.
    let worked = catch_unwind(AssertUnwindSafe(|| chat.work()));
    chat.code.get_or_insert(PANICKED);
    let failure = chat.stage.take_failure();
    let code = chat.end();
    Ok(Ended { code: if worked.is_ok() { code } else { PANICKED }, failure })
}

fn footer(host: &Host) -> Footer {
    let home = host.home().map(|home| home.to_string_lossy().into_owned());
    Footer {
        cwd: home_form(&host.cwd().to_string_lossy(), home.as_deref()),
        branch: branch(host.cwd()),
        ..Footer::default()
    }
}

struct Chat {
    host: Arc<Host>,
    stage: Stage,
    live: Live,
    decoder: KeyDecoder,
    terminal: Terminal,
    reader: Option<Reader>,
    type_in: Sender<Typed>,
    typed: Receiver<Typed>,
    /// Was typed before the terminal was given away, and not looked at yet.
    early: Vec<Typed>,
    worker: Option<Worker>,
    heard: Receiver<Said>,
    signals: Receiver<Signal>,
    /// Ends what else runs.
    cancel: Cancel,
    paths: Option<Receiver<Paths>>,
    path_thread: Option<JoinHandle<()>>,
    drawn_at: Option<Duration>,
    /// When bytes came the last time.
    typed_at: Duration,
    /// When [`Chat::suspend`] came back the last time.
    resumed_at: Option<Duration>,
    /// When the editor of the draft ended the last time.
    edited_at: Option<Duration>,
    is_dirty: bool,
    /// It was to be drawn, but the terminal took nothing.
    is_late: bool,
    /// The screen is to be blank before the next drawing.
    is_blank: bool,
    /// For the terminal's clipboard, before the next drawing.
    clip: Option<String>,
    /// The chat is over, with this.
    code: Option<u8>,
    /// A signal asked for the end: nobody is waited for.
    is_pressed: bool,
}

impl Chat {
    fn work(&mut self) {
        self.draw();
        while self.code.is_none() {
            for typed in std::mem::take(&mut self.early) {
                self.typed(Ok(typed));
            }
            if self.code.is_some() {
                return;
            }
            let timer = self.wait().map_or_else(never, after);
            let paths = self.paths.clone().unwrap_or_else(never);
            let is_busy = self.terminal.is_busy();
            let heard = if is_busy { never() } else { self.heard.clone() };
            select! {
                recv(paths) -> paths => {
                    self.paths = None;
                    if let Ok(paths) = paths {
                        self.stage.set_paths(paths);
                        self.draw();
                    }
                },
                recv(self.typed) -> typed => self.typed(typed),
                recv(heard) -> said => match said {
                    Ok(said) => self.hear(said),
                    Err(_) => self.code = Some(PANICKED),
                },
                recv(self.terminal.written()) -> end => self.written(end),
                recv(self.signals) -> signal => if let Ok(signal) = signal {
                    self.signal(signal);
                },
                recv(timer) -> _ => self.time(),
            }
        }
    }

    /// Until something has to be done that nobody tells of.
    fn wait(&self) -> Option<Duration> {
        let now = self.host.elapsed();
        let since = now.saturating_sub(self.drawn_at.unwrap_or_default());
        let silence = self.silence_left(now);
        let can_draw = !self.terminal.is_busy();
        let frame = (can_draw && self.is_dirty).then(|| FRAME.saturating_sub(since));
        let tick = (can_draw && self.stage.is_moving()).then(|| TICK.saturating_sub(since));
        [silence, frame, tick].into_iter().flatten().min()
    }

    /// How much longer nothing must be typed for what has begun to be taken as it is. Counted from
    /// the last byte, whatever else happens in between.
    fn silence_left(&self, now: Duration) -> Option<Duration> {
        Some(self.decoder.wait()?.saturating_sub(now.saturating_sub(self.typed_at)))
    }

    fn time(&mut self) {
        let now = self.host.elapsed();
        if self.silence_left(now) == Some(Duration::ZERO) {
            self.typed_at = now;
            let mut inputs = Vec::new();
            self.decoder.idle(&mut inputs);
            self.inputs(inputs);
        }
        self.draw();
    }

    fn typed(&mut self, typed: Result<Typed, RecvError>) {
        match typed {
            Ok(Typed::Bytes(bytes)) => self.type_bytes(&bytes),
            Ok(Typed::Closed) | Err(_) => self.hang_up(),
        }
    }

    fn type_bytes(&mut self, bytes: &[u8]) {
        self.typed_at = self.host.elapsed();
        let mut inputs = Vec::new();
        self.decoder.push(bytes, &mut inputs);
        self.inputs(inputs);
    }

    fn inputs(&mut self, inputs: Vec<Input>) {
        for input in inputs {
            let effects = self.stage.input(input, self.host.elapsed());
            self.perform(effects);
        }
        let cut = self.decoder.take_cut_bytes();
        if cut > 0 {
            let text =
                format!("the paste was too large: {} of it are left out", human_bytes(cut as u64));
            self.stage.notice(Notice::Warn, &text);
        }
        self.draw();
    }

    fn hear(&mut self, said: Said) {
        let now = self.host.elapsed();
        let heard = self.heard.clone();
        for said in iter::once(said).chain(heard.try_iter().take(TOLD_AT_ONCE)) {
            let effects = self.stage.hear(said, now);
            self.perform(effects);
        }
        self.is_dirty = true;
        let is_due = self.drawn_at.is_none_or(|at| FRAME <= now.saturating_sub(at));
        if is_due {
            self.draw();
        }
    }

    fn signal(&mut self, signal: Signal) {
        match signal {
            // Ctrl-C in the draft's editor was the editor's.
            Signal::Interrupt if self.has_just_edited() => {}
            Signal::Interrupt => {
                let effects = self.stage.interrupt(self.host.elapsed());
                self.perform(effects);
                self.draw();
            }
            Signal::Terminate => self.end_by(Reason::Terminate),
            Signal::Hangup => self.hang_up(),
            Signal::Resized => {
                let size = terminal::size();
                self.stage.resize(size);
                self.live.resize(size);
                self.draw();
            }
            Signal::Continued => self.come_back(),
        }
    }

    fn hang_up(&mut self) {
        self.end_by(Reason::Hangup);
    }

    fn end_by(&mut self, reason: Reason) {
        self.stage.cancel(reason);
        self.code = Some(Stop::Cancelled(reason).exit_code());
        self.is_pressed = true;
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Give(job) => {
                    let worker = self.worker.as_ref();
                    if !worker.is_some_and(|worker| worker.give(job)) {
                        self.stage.notice(Notice::Error, "too much waits already");
                    }
                }
                Effect::Quit(code) => self.code = Some(code),
                Effect::Suspend => self.suspend(),
                Effect::EditDraft(text) => self.edit_draft(&text),
                Effect::Copy(text) => self.copy(&text),
                Effect::Choose => self.stage.open_picker(),
                Effect::ReadPaths => self.read_paths(),
                Effect::Redraw => self.is_blank = true,
            }
        }
    }

    /// Writes what has changed, as soon as the terminal takes it. When the chat is over the
    /// terminal may be somebody else's already.
    fn draw(&mut self) {
        if self.code.is_some() {
            return;
        }
        if self.terminal.is_busy() {
            self.is_late = true;
            return;
        }
        let now = self.host.elapsed();
        let mut out = self.clip.take().unwrap_or_default().into_bytes();
        if std::mem::take(&mut self.is_blank) {
            out.extend_from_slice(b"\x1b[H\x1b[2J");
            self.live.forget();
        }
        let frame = self.stage.frame(now);
        let finished = self.stage.take_lines();
        self.live.draw(&finished, frame, &mut out);
        (self.is_dirty, self.is_late) = (false, false);
        self.drawn_at = Some(now);
        if self.terminal.write(out).is_err() {
            self.hang_up();
        }
    }

    /// The terminal has taken all, or is gone.
    fn written(&mut self, end: Result<io::Result<()>, RecvError>) {
        let end = end.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
        if self.terminal.is_written(end).is_err() {
            self.hang_up();
        }
        if self.is_late {
            self.draw();
        }
    }

    /// Reads the tree on a thread of its own: it may be large.
    fn read_paths(&mut self) {
        let (give, take) = bounded(1);
        let (host, cancel) = (Arc::clone(&self.host), self.cancel.clone());
        let work = move || {
            let paths = Paths::read(host.cwd(), &host, &|| cancel.is_cancelled());
            drop(give.send(paths));
        };
        if let Ok(thread) = thread::Builder::new().name("paths".to_owned()).spawn(work) {
            self.paths = Some(take);
            self.path_thread = Some(thread);
        }
    }

    fn copy(&mut self, text: &str) {
        let copied = clipboard::copy(&self.host, text);
        self.clip = copied.sequence;
        self.stage.notice(copied.notice, &copied.message);
    }

    /// Ends the thread, gives the terminal back, and says how to go on; the exit code.
    fn end(mut self) -> u8 {
        self.cancel.cancel(Reason::User);
        self.stage.cancel(Reason::User);
        if let Some(worker) = self.worker.take() {
            let stage = &mut self.stage;
            let host = &self.host;
            worker.stop(&self.heard, END_WITHIN, &mut |said| {
                drop(stage.hear(said, host.elapsed()));
            });
        }
        let mut last = Vec::new();
        let finished = self.stage.take_lines();
        self.live.take_off(&mut last);
        let farewell = self.stage.farewell();
        let blank = farewell.first().map(|_| String::new());
        for line in finished.into_iter().chain(blank).chain(farewell) {
            last.extend_from_slice(line.as_bytes());
            last.extend_from_slice(b"\r\n");
        }
        // A person who leaves has time, and a terminal that stands still goes on.
        if !self.is_pressed && self.flush(last.clone()) {
            last.clear();
        }
        if let Some(reader) = self.reader.take() {
            reader.stop(&self.typed);
        }
        if let Some(thread) = self.path_thread.take() {
            drop(thread.join());
        }
        self.terminal.leave(&last);
        self.code.unwrap_or_default()
    }
}

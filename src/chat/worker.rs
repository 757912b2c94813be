//! The thread that owns the session: it runs turns and answers what is asked about them.
//!
//! Jobs are done one after another, in the order in which they were given; so a command that is
//! typed during a turn waits for its end. What happens is told over a bounded channel: a slow
//! terminal slows the turn, and whoever listens has to go on listening until the thread has ended.
//! Nothing that goes wrong here ends the chat.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, after, bounded, select};

use super::places::{self, Arrived, Found, Place, Which};
use super::report;
use super::told::Told;
use crate::agent::{Conversation, Event, Failure, NotCompacted, Observer};
use crate::cancel::Cancel;
use crate::config::{Loaded, Origin, Overrides, Setting};
use crate::context::report as context;
use crate::harness::{self, Harness, Options, Resume, SessionRequest};
use crate::host::Host;
use crate::model::{Part, Role};
use crate::session::{self, Counters, Way};
use crate::tool::bash::{BashOptions, BashTool};
use crate::tool::{Caller, Tool, ToolContext};
use crate::workspace::Workspace;

/// Told but not yet heard. Full: the turn waits.
const TOLD_MAX: usize = 1024;
/// Jobs that wait; more are not accepted.
const JOBS_MAX: usize = 256;

/// A person may wait as long as they please.
const SHELL_SECONDS_MAX: u64 = 24 * 60 * 60;

/// What a chat is begun with.
pub struct Start {
    pub host: Arc<Host>,
    pub overrides: Overrides,
    pub loaded: Loaded,
    pub resume: Option<Resume>,
    pub fork: bool,
    /// Offer the sessions of the project first.
    pub pick: bool,
    /// False: no file is written.
    pub keep: bool,
    /// With no provider configured, look for a model server on this machine.
    pub probe_local: bool,
    /// Ends whatever is being set up when the chat ends.
    pub cancel: Cancel,
    /// A tool by hand, as the command line does it: its words in, its text out.
    pub tool: fn(&Host, &[String], &Cancel) -> Result<String, String>,
}

/// What the thread is asked to do.
pub enum Job {
    Turn {
        prompt: String,
        cancel: Cancel,
    },
    /// A command line of the person's own.
    Shell {
        line: String,
        cancel: Cancel,
    },
    /// A tool by hand, with its words.
    Tool {
        words: Vec<String>,
        cancel: Cancel,
    },
    /// A summary in the place of all but the latest part.
    Compact {
        /// What it should pay attention to; may be empty.
        focus: String,
        cancel: Cancel,
    },
    Ask(Question),
}

/// What a command wants to know or to change between turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    Status,
    Context,
    /// All that the model sees, into a file.
    Dump(Option<PathBuf>),
    Tools,
    Sessions,
    Diff,
    Auth,
    /// `None`: the choices are wanted.
    Model(Option<String>),
    Effort(String),
    New,
    /// A new session that continues this one.
    Copy,
    /// On from another place of the session.
    Go(Way, Which),
    /// `None`: the choices are wanted.
    Resume(Option<String>),
}

/// What the thread tells.
pub enum Said {
    /// The session that turns belong to from here on.
    Session(Box<Facts>),
    Told(Told),
    /// The turn has room for what was typed meanwhile.
    Steer(Sender<Vec<String>>),
    /// How many tokens the model takes, as far as that is known now.
    Window(Option<u64>),
    Notice(String),
    /// Something did not work; the chat goes on.
    Failed(Failure),
    /// There is no model or no session to begin with: exit code and why.
    Hopeless(u8, Failure),
    /// What a command line of the person's own gave out.
    Output {
        line: String,
        text: String,
    },
    /// The answer to a question, painted by whoever shows it.
    Report(Vec<report::Line>),
    /// Sessions to choose from.
    Sessions(Vec<session::Row>),
    /// Places of the session to choose from.
    Places(Way, Vec<Place>),
    /// The conversation goes on from another place.
    Arrived(Box<Arrived>),
    /// A job is over.
    Done,
}

/// What is known of a session when it is taken up.
pub struct Facts {
    pub id: String,
    /// There is something to go on with later.
    pub is_kept: bool,
    pub model: String,
    pub effort: Option<String>,
    pub auth: String,
    /// How many tokens the model takes, where that is known.
    pub window: Option<u64>,
    pub counters: Counters,
    /// What the person said so far, the oldest first.
    pub prompts: Vec<String>,
    /// The last exchange of a session that was resumed.
    pub last: Option<(String, String)>,
}

/// The running thread.
pub struct Worker {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Starts it; the session is taken up at once, in the background.
    pub fn start(start: Start) -> std::io::Result<(Worker, Receiver<Said>)> {
        let (jobs, todo) = bounded(JOBS_MAX);
        let (said, heard) = bounded(TOLD_MAX);
        let work = move || Desk::new(start, said).work(&todo);
        let thread = thread::Builder::new().name("turn".to_owned()).spawn(work)?;
        Ok((Worker { jobs, thread }, heard))
    }

    /// False: too much waits already.
    pub fn give(&self, job: Job) -> bool {
        self.jobs.try_send(job).is_ok()
    }

    /// Waits for the job at hand, which the caller has cancelled, and tells `last` what is said
    /// meanwhile. What does not end in time is left to the end of the process.
    pub fn stop(self, heard: &Receiver<Said>, limit: Duration, last: &mut dyn FnMut(Said)) {
        drop(self.jobs);
        let end = after(limit);
        loop {
            select! {
                recv(heard) -> said => match said {
                    Ok(said) => last(said),
                    Err(_) => return drop(self.thread.join()),
                },
                recv(end) -> _ => return,
            }
        }
    }
}

/// What the thread has before it.
struct Desk {
    start: Start,
    said: Sender<Said>,
    open: Option<(Harness, Conversation)>,
    /// Changes by commands, on top of the command line's.
    settings: Vec<Setting>,
}

impl Desk {
    fn new(start: Start, said: Sender<Said>) -> Desk {
        Desk { start, said, open: None, settings: Vec::new() }
    }

    fn work(mut self, todo: &Receiver<Job>) {
        let resume = self.start.resume.take();
        let first = self.request(resume, self.start.fork);
        if let Err(error) = self.take_up(&first) {
            self.say(Said::Hopeless(error.exit_code(), error.failure()));
        }
        if self.start.pick {
            // A folder that cannot be listed is told when somebody asks for it.
            drop(self.answer(Question::Resume(None)));
        }
        for job in todo {
            match job {
                Job::Turn { prompt, cancel } => self.turn(&prompt, &cancel),
                Job::Shell { line, cancel } => self.shell(line, &cancel),
                Job::Tool { words, cancel } => self.tool(&words, &cancel),
                Job::Compact { focus, cancel } => self.compact(&focus, &cancel),
                Job::Ask(question) => {
                    if let Err(failure) = self.answer(question) {
                        self.say(Said::Failed(failure));
                    }
                }
            }
            self.say(Said::Done);
        }
    }

    fn say(&self, said: Said) {
        // Nobody listens any more: the chat is ending.
        drop(self.said.send(said));
    }

    /// Closes the session at hand and takes up another one; when that fails the old one stays.
    fn take_up(&mut self, request: &SessionRequest) -> Result<(), harness::Error> {
        let Desk { start, said, .. } = self;
        let options = Options { recording: None, probe_local: start.probe_local };
        let mut notices = Vec::new();
        let say = &mut |line: &str| notices.push(line.to_owned());
        let built =
            Harness::build(&start.host, &start.loaded, options, request, &start.cancel, say);
        for notice in notices {
            drop(said.send(Said::Notice(notice)));
        }
        let (harness, mut conversation) = built?;
        conversation.sync_prompts = true;
        self.say(Said::Session(Box::new(facts(&harness, &conversation))));
        self.open = Some((harness, conversation));
        Ok(())
    }

    fn turn(&mut self, prompt: &str, cancel: &Cancel) {
        let Some((harness, conversation)) = &mut self.open else {
            let message = "there is no model to ask".to_owned();
            return self.say(Said::Failed(Failure::new("config", message)));
        };
        let said = &self.said;
        let was_new = conversation.log.path().is_none();
        conversation.log.entitle(prompt);
        let started = self.start.host.elapsed();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let steering = &mut || steer(said, cancel);
            harness.turn(conversation, prompt, steering, cancel, Relay(said))
        }));
        let elapsed = self.start.host.elapsed().saturating_sub(started);
        match ended {
            Ok(outcome) => self.say(Said::Told(Told::TurnEnded { outcome, elapsed })),
            Err(_) => self.recover(),
        }
        let Some((harness, conversation)) = &self.open else { return };
        // From here on there is a file to come back to; and a turn may have asked the server.
        self.say(match was_new {
            true => Said::Session(Box::new(facts(harness, conversation))),
            false => Said::Window(window(harness)),
        });
    }

    fn shell(&self, line: String, cancel: &Cancel) {
        let host = &self.start.host;
        let workspace = match Workspace::new(host.cwd(), true) {
            Ok(workspace) => workspace,
            Err(error) => {
                let message = format!("cannot work in {}: {error}", host.cwd().display());
                let failure = Failure::new("disk", message);
                return self.say(Said::Failed(failure));
            }
        };
        let options = BashOptions { timeout_seconds: SHELL_SECONDS_MAX, ..BashOptions::default() };
        let options = BashOptions { timeout_seconds_max: SHELL_SECONDS_MAX, ..options };
        let bash = BashTool::new(host, options);
        let cx = ToolContext { workspace: &workspace, host, cancel, caller: Caller::Person };
        let arguments = serde_json::json!({"command": line}).to_string();
        let output = bash.run(&arguments, &cx);
        self.say(Said::Output { line, text: output.text });
    }

    fn tool(&self, words: &[String], cancel: &Cancel) {
        self.say(match (self.start.tool)(&self.start.host, words, cancel) {
            Ok(text) => Said::Report(report::plain(&text)),
            Err(message) => Said::Failed(Failure::new("usage", message)),
        });
    }

    fn compact(&mut self, focus: &str, cancel: &Cancel) {
        let Some((harness, conversation)) = &mut self.open else {
            let message = "there is no session yet".to_owned();
            return self.say(Said::Failed(Failure::new("session", message)));
        };
        let done = harness.compact(conversation, focus, cancel, Relay(&self.said));
        // Every other end was told by the compaction itself.
        match done {
            Err(reason @ NotCompacted::NothingToFold) => {
                self.say(Said::Notice(reason.to_string()));
            }
            Err(NotCompacted::LogFailed(message)) => {
                self.say(Said::Failed(Failure::new("session", message)));
            }
            Ok(_) | Err(NotCompacted::Failed(_) | NotCompacted::Cancelled(_)) => {}
        }
    }

    /// After a panic in the middle of a turn: what is in the log is what counts.
    fn recover(&mut self) {
        let Some((_, conversation)) = self.open.take() else { return };
        let id = conversation.log.id().to_owned();
        drop(conversation);
        let message = "a turn ended by a mistake in etch itself; the session is as its log has it";
        let hint = "please report what happened".to_owned();
        self.say(Said::Failed(Failure { kind: "bug", message: message.to_owned(), hint }));
        if let Err(failure) = self.change_session(Some(Resume::Existing(id)), false) {
            self.say(Said::Failed(failure));
        }
    }

    /// A session to take up; it gets its title with its first prompt.
    fn request(&self, resume: Option<Resume>, fork: bool) -> SessionRequest {
        SessionRequest { resume, fork, keep: self.start.keep, title: String::new() }
    }

    fn answer(&mut self, question: Question) -> Result<(), Failure> {
        let said = match question {
            Question::New => return self.change_session(None, false),
            Question::Resume(Some(wanted)) => return self.resume(wanted),
            Question::Resume(None) => Said::Sessions(self.rows()?),
            Question::Sessions => Said::Report(report::sessions(&self.rows()?)),
            Question::Model(Some(name)) => return self.set("/model", "provider.model", &name),
            Question::Effort(level) => {
                return self.set("/effort", "openai.reasoning_effort", &level);
            }
            Question::Copy => return self.copy(),
            Question::Go(way, which) => self.go(way, &which)?,
            Question::Status => {
                let (harness, conversation) = self.open()?;
                Said::Report(report::status(&self.start.host, harness, conversation))
            }
            Question::Context => {
                let (harness, conversation) = self.open()?;
                let sizes = harness.see(conversation, context::report);
                Said::Report(report::context(&sizes, &harness.instructions().skills))
            }
            Question::Dump(path) => {
                let (harness, conversation) = self.open()?;
                let host = &self.start.host;
                let text = harness.see(conversation, context::dump);
                let dumped = report::dump(host, &text, path.as_deref());
                Said::Report(dumped.map_err(|message| Failure::new("disk", message))?)
            }
            Question::Tools => Said::Report(report::tools(&self.open()?.0)),
            Question::Diff => {
                let diff = report::diff(&self.open()?.1);
                Said::Report(diff.map_err(|message| Failure::new("session", message))?)
            }
            Question::Auth => Said::Report(report::auth(&self.open()?.0)),
            Question::Model(None) => Said::Report(report::model(&self.open()?.0)),
        };
        self.say(said);
        Ok(())
    }

    fn open(&self) -> Result<&(Harness, Conversation), Failure> {
        self.open.as_ref().ok_or_else(|| Failure::new("session", "there is no session yet"))
    }

    fn change_session(&mut self, resume: Option<Resume>, fork: bool) -> Result<(), Failure> {
        let request = self.request(resume, fork);
        self.take_up(&request).map_err(|error| error.failure())
    }

    fn go(&mut self, way: Way, which: &Which) -> Result<Said, Failure> {
        let Some((harness, conversation)) = &mut self.open else {
            return Err(Failure::new("session", "there is no session yet"));
        };
        Ok(match places::go(&self.start.host, harness, conversation, way, which)? {
            Found::Choose(places) => Said::Places(way, places),
            Found::Arrived(arrived) => Said::Arrived(arrived),
        })
    }

    fn copy(&mut self) -> Result<(), Failure> {
        let path = self.open()?.1.log.path().map(|path| path.to_string_lossy().into_owned());
        let path = path.ok_or_else(|| Failure::new("session", "there is nothing to copy yet"))?;
        self.change_session(Some(Resume::Existing(path)), true)
    }

    /// Another session than the one at hand, whose lock is this process's own.
    fn resume(&mut self, wanted: String) -> Result<(), Failure> {
        let store = harness::store(&self.start.host, &self.start.loaded);
        let row = store.find(&wanted).map_err(|error| harness::Error::from(error).failure())?;
        if self.open.as_ref().is_some_and(|(_, open)| open.log.id() == row.id) {
            let message = format!("session {} is the one that is open", row.short_id());
            return Err(Failure::new("session", message));
        }
        self.change_session(Some(Resume::Existing(wanted)), false)
    }

    fn rows(&self) -> Result<Vec<session::Row>, Failure> {
        let store = harness::store(&self.start.host, &self.start.loaded);
        store.list().map_err(|error| harness::Error::from(error).failure())
    }

    /// Changes a setting for the rest of the chat. One that does not hold changes nothing.
    fn set(&mut self, command: &str, key: &str, value: &str) -> Result<(), Failure> {
        let origin = Origin::Flag(command.to_owned());
        let setting = Setting { key: key.to_owned(), value: value.to_owned(), origin };
        let mut settings = self.settings.clone();
        settings.retain(|known| known.key != key);
        settings.push(setting);
        let mut overrides = self.start.overrides.clone();
        overrides.settings.extend(settings.iter().cloned());
        let loaded =
            harness::load(&self.start.host, &overrides).map_err(|error| error.failure())?;
        let Some((_, conversation)) = &self.open else {
            (self.start.loaded, self.settings) = (loaded, settings);
            return Ok(());
        };
        let options = Options { recording: None, probe_local: self.start.probe_local };
        let said = &self.said;
        let say = &mut |line: &str| drop(said.send(Said::Notice(line.to_owned())));
        let harness = Harness::rebuild(
            &self.start.host,
            &loaded,
            options,
            conversation,
            &self.start.cancel,
            say,
        )
        .map_err(|error| error.failure())?;
        self.say(Said::Session(Box::new(facts(&harness, conversation))));
        if let Some(open) = &mut self.open {
            open.0 = harness;
        }
        (self.start.loaded, self.settings) = (loaded, settings);
        Ok(())
    }
}

/// Asks for what was typed; nothing when the turn is being cancelled.
fn steer(said: &Sender<Said>, cancel: &Cancel) -> Vec<String> {
    let (give, take) = bounded(1);
    if said.send(Said::Steer(give)).is_err() {
        return Vec::new();
    }
    select! {
        recv(take) -> texts => texts.unwrap_or_default(),
        recv(cancel.channel()) -> _ => Vec::new(),
    }
}

/// The observer of a turn.
struct Relay<'a>(&'a Sender<Said>);

impl Observer for Relay<'_> {
    fn observe(&mut self, event: Event<'_>) {
        if let Some(told) = Told::of(&event) {
            drop(self.0.send(Said::Told(told)));
        }
    }
}

/// The largest prompt, where that has a limit of its own: a context that the answer has a part of
/// would look roomier than it is.
fn window(harness: &Harness) -> Option<u64> {
    harness.known_window().map(|window| window.input.unwrap_or(window.context))
}

pub(super) fn facts(harness: &Harness, conversation: &Conversation) -> Facts {
    let messages = conversation.projection.messages();
    let text = |parts: &[Part]| {
        let texts = parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    };
    let of = |role: Role| messages.iter().filter(move |message| message.role == role);
    let prompts: Vec<String> = of(Role::User).map(|message| text(&message.parts)).collect();
    let answer =
        of(Role::Assistant).map(|message| text(&message.parts)).rfind(|text| !text.is_empty());
    Facts {
        id: conversation.log.id().to_owned(),
        is_kept: conversation.log.path().is_some(),
        model: harness.model_name().to_owned(),
        effort: harness.reasoning_effort().map(str::to_owned),
        auth: harness.access().mode().to_owned(),
        window: window(harness),
        counters: conversation.projection.counters().clone(),
        last: prompts.last().cloned().zip(Some(answer.unwrap_or_default())),
        prompts,
    }
}

//! The one writer of a session.
//!
//! One event is one line is one `write` on a file opened for append, under an exclusive lock on
//! the file that dies with its owner. After a failed write the log takes no more: nothing is ever
//! glued to a fragment. A fragment found on opening is closed by a newline, never removed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::holder;
use super::lines::check_regular;
use super::read::{self, Event};
use super::replay::{self, Each, Replayed, Sink, Torn};
use super::store::{Row, Store, new_file};
use super::{Error, EventData, LINE_BYTES_MAX, Way};
use crate::host::Host;

/// A session that is being written.
#[derive(Debug)]
pub struct Log {
    id: String,
    /// What the first append writes before its own line.
    plan: Option<Box<Plan>>,
    target: Target,
    /// The last event, which the next one continues.
    tip: Option<String>,
    /// How the file ends, where it does not end with a newline.
    unended: Option<Unended>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Target {
    /// No file: none is kept, or the first append makes it.
    Nowhere,
    Open(Held),
    /// After a failed write.
    Closed(Held),
}

#[derive(Debug)]
struct Plan {
    /// `None` for `--no-session`.
    store: Option<Store>,
    started: EventData,
    title: String,
}

/// The open file with its lock.
#[derive(Debug)]
struct Held {
    file: File,
    path: PathBuf,
    /// The folder's entry may not be on the disk yet.
    is_new: bool,
    /// The file that names this process as the lock's holder.
    note: Option<PathBuf>,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Before the lock goes with the file: whoever takes it next writes its own.
        if let Some(note) = &self.note {
            let _ = std::fs::remove_file(note);
        }
        // Not left to the closing: a child between fork and exec has the file open as well.
        let _ = self.file.unlock();
    }
}

#[derive(Debug, Clone, Copy)]
enum Unended {
    Event,
    Fragment(Torn),
}

/// What an append wrote.
#[derive(Debug, PartialEq, Eq)]
pub struct Appended<'a> {
    pub id: String,
    /// Whole lines, each with its newline: that of the event, before it those that the first
    /// append of a new or repaired session brings about.
    pub lines: &'a str,
}

impl Appended<'_> {
    /// The lines read back, for a projection that follows the log.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        self.lines.lines().filter_map(|line| read::parse(line.as_bytes()).ok())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    r#type: &'static str,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<&'a str>,
    time: &'a str,
    data: &'a EventData,
}

impl Log {
    /// A new session that begins with `started`. Nothing is on the disk until the first append;
    /// `title` is cut as the list needs it.
    pub fn create(store: &Store, host: &Host, started: EventData, title: &str) -> Log {
        let plan = Plan { store: Some(store.clone()), started, title: super::title_of(title) };
        Log::new(host.new_id(), Some(plan), Target::Nowhere)
    }

    /// A session that no file keeps; its lines are made all the same.
    pub fn ephemeral(id: String, started: EventData) -> Log {
        let plan = Plan { store: None, started, title: String::new() };
        Log::new(id, Some(plan), Target::Nowhere)
    }

    /// Takes the writer's lock of an existing session and reads it into `sink` under the lock.
    /// Fails at once when another process holds it. The file is not changed before an append.
    pub fn open(row: &Row, sink: &mut dyn Sink) -> Result<(Log, Replayed), Error> {
        let held = Held::open(&row.path)?;
        let replayed = replay::replay(&row.path, sink)?;
        let mut log = Log::new(row.id.clone(), None, Target::Open(held));
        log.tip.clone_from(&replayed.tip);
        log.unended = match replayed.torn {
            Some(torn) => Some(Unended::Fragment(torn)),
            None => replayed.unended.then_some(Unended::Event),
        };
        Ok((log, replayed))
    }

    fn new(id: String, plan: Option<Plan>, target: Target) -> Log {
        let plan = plan.map(Box::new);
        Log { id, plan, target, tip: None, unended: None, buffer: Vec::new() }
    }

    /// What a list calls a session that has not begun yet; later it has its name.
    pub fn entitle(&mut self, title: &str) {
        if let Some(plan) = &mut self.plan {
            plan.title = super::title_of(title);
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The file, once there is one.
    pub fn path(&self) -> Option<&Path> {
        match &self.target {
            Target::Open(held) | Target::Closed(held) => Some(&held.path),
            Target::Nowhere => None,
        }
    }

    /// The file that there is or that the first append makes.
    pub fn planned_path(&self) -> Option<PathBuf> {
        match self.plan.as_deref() {
            Some(Plan { store, .. }) => Some(store.as_ref()?.session_path(&self.id)),
            None => self.path().map(Path::to_path_buf),
        }
    }

    /// The id of the last event.
    pub fn tip(&self) -> Option<&str> {
        self.tip.as_deref()
    }

    /// Appends one event. When this returns, the system has taken the whole line: it outlives
    /// this process, and after [`Log::sync`] the machine.
    pub fn append(&mut self, host: &Host, data: &EventData) -> Result<Appended<'_>, Error> {
        self.buffer.clear();
        if self.plan.is_some() {
            self.begin(host)?;
        }
        self.repair(host)?;
        let id = self.write_event(host, data)?;
        let lines = std::str::from_utf8(&self.buffer).unwrap_or_default();
        Ok(Appended { id, lines: lines.trim_start_matches('\n') })
    }

    /// Gives all events of the conversation so far, inherited ones first. There are none of a
    /// session that is not kept.
    pub fn each_event(&self, each: &mut dyn FnMut(&Event<'_>)) -> Result<(), Error> {
        match (self.path(), self.planned_origin()) {
            (Some(path), _) => replay::each_event(path, each).map(drop),
            (None, Some((origin, id))) => {
                replay::replay_origin(origin, id, &mut Each(each)).map(drop)
            }
            (None, None) => Ok(()),
        }
    }

    /// Goes on from the event `to` of this session, or one that it inherits: appends a pointer to
    /// it, which the next event continues. Nothing is removed; what is left stays in the file.
    ///
    /// `sink` is given all events of the conversation as it then is. When this fails, nothing is
    /// appended that counts, and what the sink has means nothing.
    pub fn go_to(
        &mut self,
        host: &Host,
        way: Way,
        to: &str,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let replayed = match (self.path(), self.planned_origin()) {
            (Some(path), _) => replay::replay_to(path, to, sink)?,
            (None, Some((origin, id))) => {
                // What came later there is not part of this session.
                let mut is_inherited = false;
                let mut look = |event: &Event<'_>| is_inherited |= event.id == to;
                replay::replay_origin(origin, id, &mut Each(&mut look))?;
                if is_inherited { replay::replay_origin(origin, to, sink)? } else { None }
            }
            (None, None) => return Err(Error::NotKept),
        };
        let Some(replayed) = replayed else { return Err(Error::NoEvent { id: to.to_owned() }) };
        let planned = self.planned_origin().map(|(_, id)| id.to_owned());
        let from_id = self.tip.clone().or(planned);
        self.buffer.clear();
        let mut own = 0;
        if self.plan.is_some() {
            self.begin(host)?;
        } else {
            self.repair(host)?;
            own = self.buffer.len();
            self.tip = replayed.tip;
        }
        let pointer = EventData::SessionPointer { reason: way, target_id: to.to_owned(), from_id };
        self.write_event(host, &pointer)?;
        let lines = std::str::from_utf8(&self.buffer[own..]).unwrap_or_default();
        let lines = Appended { id: String::new(), lines: lines.trim_start_matches('\n') };
        lines.events().for_each(|mut event| sink.event(&mut event));
        // It counts from here on. What the disk has against it, the next prompt will say.
        let _ = self.sync();
        Ok(())
    }

    /// The session that this one will continue: where its file is, and the last inherited event.
    fn planned_origin(&self) -> Option<(&Path, &str)> {
        let plan = self.plan.as_deref().filter(|plan| plan.store.is_some())?;
        match &plan.started {
            EventData::SessionStarted { fork_session_path, fork_event_id, .. } => {
                Some((Path::new(fork_session_path.as_deref()?), fork_event_id.as_deref()?))
            }
            _ => None,
        }
    }

    /// Closes a fragment that was found.
    fn repair(&mut self, host: &Host) -> Result<(), Error> {
        let Some(Unended::Fragment(torn)) = self.unended else { return Ok(()) };
        let repaired = EventData::LogRepaired { line: torn.line, fragment_bytes: torn.bytes };
        self.write_event(host, &repaired).map(drop)
    }

    /// Makes the file, when one is kept, and writes its first event. A file that cannot be made
    /// is tried again by the next append.
    fn begin(&mut self, host: &Host) -> Result<(), Error> {
        let mut naming = None;
        if let Some(Plan { store: Some(store), started, .. }) = self.plan.as_deref() {
            store.create_dir()?;
            if let EventData::SessionStarted { name: Some(name), .. } = started {
                naming = Some(store.claim_name(name)?);
            }
            self.target = Target::Open(Held::create(store, &self.id)?);
        }
        let Some(plan) = self.plan.take() else { return Ok(()) };
        self.write_event(host, &plan.started)?;
        if let (Some(store), Some(path)) = (&plan.store, self.path()) {
            let started = read::parse(self.buffer.trim_ascii_end());
            let created_at = started.map(|event| event.time.into_owned()).unwrap_or_default();
            store.add_row(&row(&self.id, path, created_at, &plan));
        }
        drop(naming); // from here on others find the name
        Ok(())
    }

    /// Makes one line behind what is in the buffer and writes it at once.
    fn write_event(&mut self, host: &Host, data: &EventData) -> Result<String, Error> {
        let start = self.buffer.len();
        if self.unended.is_some() {
            // In the same write: an end for what is there, then the new line.
            self.buffer.push(b'\n');
        }
        let body = self.buffer.len();
        let (id, time) = (host.new_id(), host.now().to_rfc3339());
        let parent_id = self.tip.as_deref();
        let line = Line { r#type: data.kind(), id: &id, parent_id, time: &time, data };
        if let Err(error) = serde_json::to_writer(&mut self.buffer, &line) {
            return Err(self.failed(0, 0, Some(error.into())));
        }
        // Raw JSON from elsewhere may be laid out over lines; inside its strings none can be.
        for byte in &mut self.buffer[body..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        self.buffer.push(b'\n');
        let bytes = self.buffer.len() - body;
        if bytes > LINE_BYTES_MAX {
            self.buffer.truncate(start);
            return Err(Error::TooLarge { kind: data.kind(), bytes, bytes_max: LINE_BYTES_MAX });
        }
        self.write(start)?;
        self.unended = None;
        self.tip = Some(id.clone());
        Ok(id)
    }

    /// Hands the buffer from `start` on to the system in one call.
    fn write(&mut self, start: usize) -> Result<(), Error> {
        let held = match &mut self.target {
            Target::Nowhere => return Ok(()),
            Target::Closed(held) => return Err(Error::Closed { path: held.path.clone() }),
            Target::Open(held) => held,
        };
        let bytes = &self.buffer[start..];
        let length = bytes.len();
        loop {
            match held.file.write(bytes) {
                Ok(written) if written == length => return Ok(()),
                Ok(written) => return Err(self.failed(written, length, None)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(0, length, Some(error))),
            }
        }
    }

    /// Closes the log: the next opening sees what is really there.
    fn failed(&mut self, written: usize, length: usize, source: Option<io::Error>) -> Error {
        let path = self.path().map(Path::to_path_buf).unwrap_or_default();
        self.target = match std::mem::replace(&mut self.target, Target::Nowhere) {
            Target::Open(held) | Target::Closed(held) => Target::Closed(held),
            Target::Nowhere => Target::Nowhere,
        };
        Error::Append { path, written, length, source }
    }

    /// Waits until all that was appended is on the disk; for a new session also its name.
    pub fn sync(&mut self) -> Result<(), Error> {
        let Target::Open(held) = &mut self.target else { return Ok(()) };
        let sync_error = |source| Error::Sync { path: held.path.clone(), source };
        held.file.sync_data().map_err(sync_error)?;
        if std::mem::take(&mut held.is_new)
            && let Some(dir) = held.path.parent()
            && let Ok(dir) = File::open(dir)
        {
            // Some file systems cannot sync a folder; the file's data is safe all the same.
            let _ = dir.sync_all();
        }
        Ok(())
    }
}

fn row(id: &str, path: &Path, created_at: String, plan: &Plan) -> Row {
    let (cwd, name) = match &plan.started {
        EventData::SessionStarted { cwd, name, .. } => (cwd.clone(), name.clone()),
        _ => (String::new(), None),
    };
    let (id, path, title) = (id.to_owned(), path.to_path_buf(), plan.title.clone());
    Row { id, path, created_at, cwd, title, name, parent_session_id: None }
}

/// Writes this process's number, never into what somebody else (a cloned repository) has put in
/// its place: a link to a file elsewhere, a pipe.
fn leave_note(path: &Path) -> io::Result<()> {
    let _ = std::fs::remove_file(path);
    new_file(path)?.write_all(format!("{}\n", std::process::id()).as_bytes())
}

impl Held {
    fn create(store: &Store, id: &str) -> Result<Held, Error> {
        let path = store.session_path(id);
        match new_file(&path) {
            Ok(file) => Held { file, path, is_new: true, note: None }.locked(),
            Err(source) => Err(Error::Create { path, source }),
        }
    }

    fn open(path: &Path) -> Result<Held, Error> {
        let path = path.to_path_buf();
        let opened =
            check_regular(&path).and_then(|()| OpenOptions::new().append(true).open(&path));
        match opened {
            Ok(file) => Held { file, path, is_new: false, note: None }.locked(),
            Err(source) => Err(Error::Open { path, source }),
        }
    }

    /// The lock is on the session file itself, so that no stale lock can exist; the file beside
    /// it only tells others whom to wait for.
    fn locked(mut self) -> Result<Held, Error> {
        let note = self.path.with_extension("lock");
        match self.file.try_lock() {
            Ok(()) => {
                self.note = leave_note(&note).is_ok().then_some(note);
                Ok(self)
            }
            Err(TryLockError::WouldBlock) => {
                let pid = holder::pid(&self.file, &note);
                Err(Error::Locked { path: self.path.clone(), pid })
            }
            // Some network file systems have no locks; refusing to work there helps nobody.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                Ok(self)
            }
            Err(TryLockError::Error(source)) => {
                Err(Error::Open { path: self.path.clone(), source })
            }
        }
    }
}

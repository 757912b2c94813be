//! The events of a session in the order of its parent chain, inherited ones first.
//!
//! The chain runs from the last event of the file back to the root. Nearly every file *is* its
//! chain, so it is read once, on the assumption that each event continues the one before; at the
//! first that does not, the sink starts over and the chain is made out first. A parent that is
//! not in the file (its line is damaged) is taken to be the readable event before.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::Error;
use super::chain::{Chain, Linear};
use super::data::{Data, Started};
use super::lines::{Lines, open_file};
use super::read::{self, Bad, Event};

/// Takes the events of a session one by one.
pub trait Sink {
    /// Forget all: the events come again from the first.
    fn restart(&mut self);
    fn event(&mut self, event: &mut Event<'_>);
}

/// Takes and forgets.
impl Sink for () {
    fn restart(&mut self) {}
    fn event(&mut self, _event: &mut Event<'_>) {}
}

/// The origin of a fork, and the last event that it takes from there.
pub(super) fn origin_of(started: &Started<'_>) -> Option<(PathBuf, String)> {
    let origin = PathBuf::from(started.fork_session_path.as_deref()?);
    Some((origin, started.fork_event_id.as_deref()?.to_owned()))
}

/// Where the origin of the session at `path` is: its folder may have been moved with all sessions.
pub(super) fn find_origin(path: &Path, origin: &Path) -> PathBuf {
    match (path.parent(), origin.file_name()) {
        (Some(dir), Some(name)) if !origin.exists() => dir.join(name),
        _ => origin.to_path_buf(),
    }
}

/// Gives each event to a function, which cannot start over.
pub(super) struct Each<'a>(pub &'a mut dyn FnMut(&Event<'_>));

impl Sink for Each<'_> {
    fn restart(&mut self) {}
    fn event(&mut self, event: &mut Event<'_>) {
        (self.0)(event);
    }
}

/// What a reading found beside the events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// The last event: the parent of the next one.
    pub tip: Option<String>,
    /// Lines of the session's own file, a cut last one included.
    pub lines: u64,
    /// A last line without newline that is no event.
    pub torn: Option<Torn>,
    /// The file ends within a line, be that an event or a fragment.
    pub unended: bool,
    /// For the person, one sentence each; empty for a sound file.
    pub notices: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// From 1.
    pub line: u64,
    pub bytes: u64,
}

/// Reads the session file at `path` into `sink`. Fails when it cannot be read or has no event.
pub fn replay(path: &Path, sink: &mut dyn Sink) -> Result<Replayed, Error> {
    let mut walk = Walk::new(sink, false);
    if walk.file(path, &End::Tip, 0)? == Flow::Branches {
        walk.sink.restart();
        walk = Walk::new(walk.sink, true);
        walk.file(path, &End::Tip, 0)?;
    }
    Ok(walk.finish())
}

/// As [`replay`], for who cannot start over (a printer): the chain is always made out first,
/// which reads the file twice.
pub fn each_event(path: &Path, each: &mut dyn FnMut(&Event<'_>)) -> Result<Replayed, Error> {
    let mut each = Each(each);
    let mut walk = Walk::new(&mut each, true);
    walk.file(path, &End::Tip, 0)?;
    Ok(walk.finish())
}

/// As [`replay`], of the chain that ends at the event `id`, which may be inherited. `None` when it
/// is nowhere; the sink then holds events that mean nothing.
pub(super) fn replay_to(
    path: &Path,
    id: &str,
    sink: &mut dyn Sink,
) -> Result<Option<Replayed>, Error> {
    let mut walk = Walk::new(sink, true);
    walk.sought = Some(id);
    walk.file(path, &End::At(id.to_owned()), 0)?;
    Ok(walk.is_found.then(|| walk.finish()))
}

/// The same for a session that has no file yet and will continue the one at `origin`.
pub(super) fn replay_origin(
    origin: &Path,
    id: &str,
    sink: &mut dyn Sink,
) -> Result<Option<Replayed>, Error> {
    let mut walk = Walk::new(sink, true);
    walk.sought = Some(id);
    walk.file(origin, &End::At(id.to_owned()), 1)?;
    Ok(walk.is_found.then(|| walk.finish()))
}

/// What one line of a file holds; glued lines are found several times under one number.
pub(super) struct Found<'a> {
    pub line: u64,
    pub bytes: u64,
    /// False for a last line that no newline ends.
    pub ended: bool,
    pub parsed: Result<Event<'a>, Bad>,
}

/// Reads the events of a file in file order, with their data or only their heads. Blank lines
/// are nothing.
pub(super) fn each_found(
    path: &Path,
    parse: for<'a> fn(&'a [u8]) -> Result<Event<'a>, Bad>,
    visit: &mut dyn FnMut(Found<'_>) -> ControlFlow<()>,
) -> Result<(), Error> {
    let read_error = |source| Error::Read { path: path.to_path_buf(), source };
    let mut lines = Lines::new(open_file(path).map_err(read_error)?);
    while let Some(line) = lines.next().map_err(read_error)? {
        let (number, length, ended) = (line.number, line.length, line.ended);
        let mut flow = ControlFlow::Continue(());
        let mut give = |parsed: Result<Event<'_>, Bad>| {
            if flow.is_continue() {
                flow = visit(Found { line: number, bytes: length, ended, parsed });
            }
        };
        match line.bytes {
            None => give(Err(Bad::TooLong)),
            Some(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Some(bytes) => match parse(bytes) {
                Err(_) => read::parse_glued(bytes, &mut give),
                Ok(event) => give(Ok(event)),
            },
        }
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

/// Where the part of a file that is wanted ends.
#[derive(Debug, Clone)]
pub(super) enum End {
    Tip,
    /// This event is the last.
    At(String),
    /// This event is the first that is left out; so is all that is not said in messages.
    Before(String),
}

/// Forks of forks of forks: more than this is a circle.
const DEPTH_MAX: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Go,
    /// The wanted part is complete.
    End,
    /// The file is not its own chain, and this walk was not careful.
    Branches,
}

enum Order {
    Linear(Linear),
    Chain(Chain),
}

impl Order {
    /// Where the part ends that a session inherits; `None` when it inherits nothing.
    fn inherited_end(&self, started: &Started<'_>) -> Option<End> {
        if let Order::Chain(Chain { inherited_end: Some(id), .. }) = self {
            return Some(End::At(id.clone()));
        }
        match (&started.fork_event_id, &started.fork_before_event_id) {
            (Some(id), _) => Some(End::At(id.to_string())),
            (None, Some(id)) => Some(End::Before(id.to_string())),
            (None, None) => None,
        }
    }
}

struct Walk<'s> {
    sink: &'s mut dyn Sink,
    /// Make the chain out before reading.
    careful: bool,
    /// An event that is looked for, and whether it was given to the sink.
    sought: Option<&'s str>,
    is_found: bool,
    report: Replayed,
    bad: Vec<(u64, Bad)>,
    misshapen: Vec<u64>,
    repaired: HashSet<u64>,
}

impl<'s> Walk<'s> {
    fn new(sink: &'s mut dyn Sink, careful: bool) -> Walk<'s> {
        let (report, repaired) = (Replayed::default(), HashSet::new());
        let (sought, is_found) = (None, false);
        let (bad, misshapen) = (Vec::new(), Vec::new());
        Walk { sink, careful, sought, is_found, report, bad, misshapen, repaired }
    }

    /// Gives the wanted events of one file to the sink, those it inherits first.
    fn file(&mut self, path: &Path, end: &End, depth: usize) -> Result<Flow, Error> {
        let mut order = Order::Linear(Linear::default());
        if self.careful {
            order = match Chain::of(path, end)? {
                Some(chain) => Order::Chain(chain),
                None => return self.pass_on(path, end, depth),
            };
        }
        let mut flow = Ok(Flow::Go);
        let mut events = 0;
        each_found(path, read::parse, &mut |found| {
            if depth == 0 {
                self.note_line(&found);
            }
            let Ok(mut event) = found.parsed else { return ControlFlow::Continue(()) };
            (event.line, event.inherited) = (found.line, depth > 0);
            events += 1;
            flow = self.step(path, &mut event, end, &mut order, depth);
            match flow {
                Ok(Flow::Go) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        })?;
        match (flow?, end) {
            (Flow::Go, End::Tip) if events == 0 => {
                let first = self.bad.first().map(|(_, bad)| bad.to_string());
                let reason = first.unwrap_or_else(|| match self.report.torn {
                    Some(_) => "its only line was cut off".to_owned(),
                    None => "the file is empty".to_owned(),
                });
                Err(Error::Damaged { path: path.to_path_buf(), reason })
            }
            // The event at which an origin ends was not met: look closer.
            (Flow::Go, End::At(_) | End::Before(_)) if !self.careful => Ok(Flow::Branches),
            (flow, _) => Ok(flow),
        }
    }

    fn step(
        &mut self,
        path: &Path,
        event: &mut Event<'_>,
        end: &End,
        order: &mut Order,
        depth: usize,
    ) -> Result<Flow, Error> {
        let (wanted, otherwise) = match order {
            Order::Chain(chain) => (chain.wants_next(), Flow::Go),
            Order::Linear(linear) => (linear.follows(event), Flow::Branches),
        };
        if !wanted {
            return Ok(otherwise);
        }
        if matches!(end, End::Before(id) if *id == event.id) {
            return Ok(Flow::End);
        }
        if let Data::SessionStarted(started) = &event.data
            && let Some(inherited_end) = order.inherited_end(started)
            && self.inherit(path, started, &inherited_end, depth)? == Flow::Branches
        {
            return Ok(Flow::Branches);
        }
        self.give(event, end, depth);
        let is_last = matches!(end, End::At(id) if *id == event.id);
        Ok(if is_last { Flow::End } else { Flow::Go })
    }

    fn give(&mut self, event: &mut Event<'_>, end: &End, depth: usize) {
        if depth == 0 && !event.id.is_empty() {
            let tip = self.report.tip.get_or_insert_default();
            tip.clear();
            tip.push_str(&event.id);
        }
        self.is_found |= self.sought.is_some_and(|id| id == event.id);
        if matches!(end, End::Tip | End::At(_)) || is_said(&event.data) {
            self.sink.event(event);
        }
    }

    /// The event at which the wanted part ends is not in this file: it may be one that the file
    /// inherits. Of the file itself then only its start is wanted.
    fn pass_on(&mut self, path: &Path, end: &End, depth: usize) -> Result<Flow, Error> {
        let mut passed = Ok(Flow::Go);
        let mut is_fork = false;
        each_found(path, read::parse, &mut |found| {
            let Ok(mut event) = found.parsed else { return ControlFlow::Continue(()) };
            (event.line, event.inherited) = (found.line, depth > 0);
            if let Data::SessionStarted(started) = &event.data
                && started.fork_session_path.is_some()
            {
                is_fork = true;
                passed = self.inherit(path, started, end, depth);
                self.give(&mut event, end, depth);
            }
            ControlFlow::Break(())
        })?;
        if !is_fork {
            self.note_fork(path, "the event it was forked at is not there");
        }
        passed.map(|_| Flow::End)
    }

    /// Gives the events that a session continues, up to `end`, from its origin's file.
    fn inherit(
        &mut self,
        path: &Path,
        started: &Started<'_>,
        end: &End,
        depth: usize,
    ) -> Result<Flow, Error> {
        let Some(origin) = started.fork_session_path.as_deref() else { return Ok(Flow::Go) };
        let origin = find_origin(path, Path::new(origin));
        if depth >= DEPTH_MAX {
            self.note_fork(&origin, "it is a fork of itself");
            return Ok(Flow::Go);
        }
        match self.file(&origin, end, depth + 1) {
            Err(Error::Read { source, .. }) => {
                self.note_fork(&origin, &source.to_string());
                Ok(Flow::Go)
            }
            other => other,
        }
    }

    fn note_fork(&mut self, origin: &Path, reason: &str) {
        let origin = origin.display();
        let text = format!("what came before the fork is missing: {origin}: {reason}");
        self.report.notices.push(text);
    }

    fn note_line(&mut self, found: &Found<'_>) {
        self.report.lines = found.line;
        self.report.unended = !found.ended;
        match &found.parsed {
            Err(bad) if found.ended => self.bad.push((found.line, bad.clone())),
            Err(_) => self.report.torn = Some(Torn { line: found.line, bytes: found.bytes }),
            Ok(Event { data: Data::Repaired(repaired), .. }) => {
                self.repaired.insert(repaired.line);
            }
            Ok(Event { data: Data::Unknown { known_type: true }, .. }) => {
                self.misshapen.push(found.line);
            }
            Ok(_) => {}
        }
    }

    fn finish(mut self) -> Replayed {
        // A fragment that was reported when it was closed is not news.
        let bad: Vec<_> =
            self.bad.iter().filter(|(line, _)| !self.repaired.contains(line)).collect();
        if let Some((line, reason)) = bad.first() {
            let lines: Vec<u64> = bad.iter().map(|(line, _)| *line).collect();
            let text = match lines.len() {
                1 => format!("skipped damaged line {line} of the session ({reason})"),
                count => format!(
                    "skipped {count} damaged lines of the session ({}; the first: {reason})",
                    numbers(&lines)
                ),
            };
            self.report.notices.push(text);
        }
        if !self.misshapen.is_empty() {
            let text =
                format!("events of an unknown shape are not used ({})", numbers(&self.misshapen));
            self.report.notices.push(text);
        }
        if let Some(torn) = self.report.torn {
            self.report.notices.push(format!(
                "the last line of the session was cut off ({} bytes at line {}) and is set aside",
                torn.bytes, torn.line
            ));
        }
        self.report
    }
}

/// `line 3`, or `lines 3, 9, 12, …`.
fn numbers(lines: &[u64]) -> String {
    const SHOWN_MAX: usize = 8;
    let shown: Vec<String> = lines.iter().take(SHOWN_MAX).map(u64::to_string).collect();
    let more = if lines.len() > SHOWN_MAX { ", …" } else { "" };
    format!("line{} {}{more}", if lines.len() == 1 { "" } else { "s" }, shown.join(", "))
}

/// What a child session takes over from the conversation that it was made in.
fn is_said(data: &Data<'_>) -> bool {
    use Data::{Assistant, SessionStarted, Summary, Tool, User};
    matches!(data, SessionStarted(_) | User(_) | Assistant(_) | Tool(_) | Summary(_))
}

//! The wait for a command: its outputs, its end, the clock and the cancellation in one `poll`.
//!
//! The leader is waited for (reaped) last, after its session was killed: until then its id
//! cannot be given to anybody else, so no signal can go astray.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::cancel::{Cancel, Reason};
use crate::process::capture::Capturing;
use crate::process::family::{self, Family};
use crate::process::start::{Started, start};
use crate::process::{Command, EndedBy, Error, Output, Process, Status, Stdin, guard};
use crate::sys::{self, Interest, PollFd};

/// How much is read at once; what a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// How often a pipe is read after everything is over: an escaped writer must not hold us.
const LAST_READS_MAX: usize = 32;
/// How long the end of what was killed is waited for: after a cancellation the prompt must be
/// back, after a time limit a busy machine may take its time.
const CANCEL_WAIT: Duration = Duration::from_millis(40);
const KILL_WAIT: Duration = Duration::from_secs(2);
/// Long enough to be "without limit", short enough to be added to any clock.
const TIMEOUT_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// What is waited for, besides output.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// The command's end, until the time limit.
    Running { until: Instant },
    /// SIGTERM was sent; SIGKILL follows.
    Terminating { until: Instant },
    /// SIGKILL was sent.
    Killed { until: Instant },
    /// The command has ended, a child may still hold its output.
    Draining { until: Instant },
}

impl Phase {
    fn until(self) -> Instant {
        match self {
            Phase::Running { until }
            | Phase::Terminating { until }
            | Phase::Killed { until }
            | Phase::Draining { until } => until,
        }
    }
}

/// What the supervisor does next.
enum Next {
    Wait,
    Enter(Phase),
    Done,
}

pub(super) fn run(command: &Command, cancel: &Cancel) -> Result<Output, Error> {
    cancel.check().map_err(Error::Cancelled)?;
    // The closer owns the write end: cancelling closes it, and `wake` hangs up.
    let (wake, wake_write) = io::pipe().map_err(Error::system("make a pipe"))?;
    let _closer = cancel.on_cancel(move || drop(wake_write));
    let begun = Instant::now();
    let started = start(command)?;
    let mut run = Run::new(command, started, wake)?;
    run.supervise(cancel, begun);
    Ok(run.finish(begun))
}

/// One output, until its end.
struct Stream {
    reader: Option<PipeReader>,
    capturing: Capturing,
}

impl Stream {
    fn new(reader: PipeReader, command: &Command) -> Stream {
        let capturing = Capturing::new(command.head_bytes, command.tail_bytes);
        Stream { reader: Some(reader), capturing }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(PipeReader::as_fd)
    }

    /// Reads once. False when there was nothing, and from the end on.
    fn read(&mut self, buffer: &mut [u8]) -> bool {
        let Some(reader) = &mut self.reader else { return false };
        match reader.read(buffer) {
            Ok(count) if count > 0 => {
                self.capturing.push(&buffer[..count]);
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            Ok(_) | Err(_) => self.reader = None,
        }
        false
    }

    /// As `/proc` shows what this descriptor is open on.
    fn link(&self) -> Option<PathBuf> {
        use std::os::fd::AsRawFd;
        let raw = self.reader.as_ref()?.as_raw_fd();
        std::fs::read_link(format!("/proc/self/fd/{raw}")).ok()
    }
}

/// A descriptor that becomes ready when the leader ends.
///
/// Where there are no process descriptors, a thread waits for the leader (without taking its
/// status) and closes a pipe: no SIGCHLD handler, no repeated asking, and the thread ends with
/// the leader.
fn exit_fd(pid: u32) -> io::Result<OwnedFd> {
    sys::pidfd_open(pid).or_else(|_| exit_pipe(pid))
}

fn exit_pipe(pid: u32) -> io::Result<OwnedFd> {
    let (reader, writer) = io::pipe()?;
    let thread = std::thread::Builder::new().name("exit".to_owned()).stack_size(64 * 1024);
    thread.spawn(move || {
        let _ = sys::wait_keeping(pid);
        drop(writer);
    })?;
    Ok(reader.into())
}

struct Run<'a> {
    command: &'a Command,
    family: Family,
    stdout: Stream,
    stderr: Stream,
    stdin: Option<PipeWriter>,
    stdin_written: usize,
    /// `None` once the leader has ended.
    exit: Option<OwnedFd>,
    /// `None` once the cancellation was seen.
    wake: Option<PipeReader>,
    buffer: Vec<u8>,
    ended_by: Option<EndedBy>,
}

impl<'a> Run<'a> {
    /// A command whose end could not be noticed is ended at once.
    fn new(command: &'a Command, started: Started, wake: PipeReader) -> Result<Run<'a>, Error> {
        let family = started.family;
        let exit = exit_fd(family.leader()).map_err(|source| {
            family.kill();
            guard::forget(family.leader());
            let _ = sys::wait(family.leader());
            Error::System { doing: "wait for a process", source }
        })?;
        Ok(Run {
            command,
            family,
            stdout: Stream::new(started.stdout, command),
            stderr: Stream::new(started.stderr, command),
            stdin: started.stdin,
            stdin_written: 0,
            exit: Some(exit),
            wake: Some(wake),
            buffer: vec![0; READ_BYTES],
            ended_by: None,
        })
    }

    /// Until the command has ended and its output with it, as far as that is waited for.
    fn supervise(&mut self, cancel: &Cancel, begun: Instant) {
        let mut phase = Phase::Running { until: begun + self.command.timeout.min(TIMEOUT_MAX) };
        loop {
            match self.next(phase, cancel) {
                Next::Wait => drop(self.step(phase.until(), &[])),
                Next::Enter(other) => phase = other,
                Next::Done => return,
            }
        }
    }

    /// What to do now, and does what a change of phase brings with it.
    fn next(&mut self, phase: Phase, cancel: &Cancel) -> Next {
        let now = Instant::now();
        let (ended, closed) = (self.exit.is_none(), self.outputs_closed());
        let over = now >= phase.until();
        match phase {
            _ if self.wake.is_none() && !self.is_cancelled() => {
                self.family.kill();
                let reason = cancel.reason().unwrap_or(Reason::User);
                self.ended_by = Some(EndedBy::Cancel(reason));
                Next::Enter(Phase::Killed { until: now + CANCEL_WAIT })
            }
            Phase::Killed { .. } if ended => Next::Done,
            Phase::Running { .. } | Phase::Terminating { .. } | Phase::Draining { .. }
                if ended && closed =>
            {
                Next::Done
            }
            Phase::Running { .. } if ended && self.command.drain.is_some() => {
                let drain = self.command.drain.unwrap_or_default();
                Next::Enter(Phase::Draining { until: now + drain })
            }
            Phase::Running { .. } if over => {
                self.ended_by = Some(EndedBy::Timeout { stopped: self.is_stopped() });
                self.terminate();
                Next::Enter(Phase::Terminating { until: now + self.command.grace })
            }
            Phase::Terminating { .. } if over => {
                self.family.kill();
                Next::Enter(Phase::Killed { until: now + KILL_WAIT })
            }
            Phase::Draining { .. } | Phase::Killed { .. } if over => Next::Done,
            Phase::Running { .. }
            | Phase::Terminating { .. }
            | Phase::Draining { .. }
            | Phase::Killed { .. } => Next::Wait,
        }
    }

    /// Waits for anything to happen, at most until `until`, and handles it. Returns which of
    /// `others` are ready.
    fn step(&mut self, until: Instant, others: &[OwnedFd]) -> Vec<bool> {
        let timeout = until.saturating_duration_since(Instant::now());
        let mut fds = vec![
            PollFd::new(self.stdout.fd(), Interest::Read),
            PollFd::new(self.stderr.fd(), Interest::Read),
            PollFd::new(self.stdin.as_ref().map(PipeWriter::as_fd), Interest::Write),
            PollFd::new(self.exit.as_ref().map(OwnedFd::as_fd), Interest::Read),
            PollFd::new(self.wake.as_ref().map(PipeReader::as_fd), Interest::Read),
        ];
        fds.extend(others.iter().map(|fd| PollFd::new(Some(fd.as_fd()), Interest::Read)));
        let failed = sys::poll(&mut fds, Some(timeout)).is_err();
        let ready: Vec<bool> = fds.iter().map(PollFd::is_ready).collect();
        if ready[0] {
            self.stdout.read(&mut self.buffer);
        }
        if ready[1] {
            self.stderr.read(&mut self.buffer);
        }
        if ready[2] {
            self.feed();
        }
        if ready[3] {
            self.exit = None;
        }
        // A wait that fails (no memory) must not become a loop: that ends the command too.
        if ready[4] || failed {
            self.wake = None;
        }
        ready[5..].to_vec()
    }

    /// Writes what the child takes of its input; closes it at the end or when nobody reads.
    fn feed(&mut self) {
        let (Some(writer), Stdin::Bytes(bytes)) = (&mut self.stdin, &self.command.stdin) else {
            return;
        };
        match writer.write(&bytes[self.stdin_written..]) {
            Ok(count) => self.stdin_written += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Err(_) => self.stdin_written = bytes.len(),
        }
        if self.stdin_written == bytes.len() {
            self.stdin = None;
        }
    }

    fn outputs_closed(&self) -> bool {
        self.stdout.reader.is_none() && self.stderr.reader.is_none()
    }

    fn is_cancelled(&self) -> bool {
        matches!(self.ended_by, Some(EndedBy::Cancel(_)))
    }

    fn is_stopped(&self) -> bool {
        sys::proc_stat(self.family.leader()).is_some_and(|stat| stat.state == 'T')
    }

    /// SIGTERM, and SIGCONT so that what was stopped can follow it.
    fn terminate(&self) {
        self.family.signal(libc::SIGTERM);
        self.family.signal(libc::SIGCONT);
    }

    /// Ends what is left, takes the leader's status, and tells all.
    fn finish(mut self, begun: Instant) -> Output {
        let members = self.family.members();
        let left_running = match self.ended_by {
            None => members.iter().copied().map(family::describe).collect(),
            Some(_) => Vec::new(),
        };
        self.end_members(&members);
        for _ in 0..LAST_READS_MAX {
            let (out, err) =
                (self.stdout.read(&mut self.buffer), self.stderr.read(&mut self.buffer));
            if !out && !err {
                break;
            }
        }
        let escaped = self.escaped();
        let status = self.take_status();
        Output {
            status,
            ended_by: self.ended_by,
            stdout: self.stdout.capturing.finish(),
            stderr: self.stderr.capturing.finish(),
            duration: begun.elapsed(),
            left_running,
            escaped,
        }
    }

    /// Ends the session: gently first when the command ended by itself, then by SIGKILL, and
    /// waits until its members are gone.
    fn end_members(&mut self, members: &[u32]) {
        if members.is_empty() {
            return;
        }
        let mut gone: Vec<OwnedFd> =
            members.iter().filter_map(|pid| sys::pidfd_open(*pid).ok()).collect();
        if self.ended_by.is_none() {
            self.terminate();
            self.wait_for(&mut gone, Instant::now() + self.command.grace);
        }
        self.family.kill();
        let wait = if self.wake.is_none() { CANCEL_WAIT } else { KILL_WAIT };
        self.wait_for(&mut gone, Instant::now() + wait);
    }

    /// Until every process of `gone` has ended; a cancellation cuts it short once.
    fn wait_for(&mut self, gone: &mut Vec<OwnedFd>, until: Instant) {
        let uncancelled = self.wake.is_some();
        while !gone.is_empty() && Instant::now() < until {
            let ready = self.step(until, gone);
            let mut ready = ready.into_iter();
            gone.retain(|_| ready.next() != Some(true));
            if uncancelled && self.wake.is_none() {
                return;
            }
        }
    }

    fn escaped(&self) -> Vec<Process> {
        let links: Vec<_> = [&self.stdout, &self.stderr].iter().filter_map(|s| s.link()).collect();
        let mark = self.command.mark.as_ref().and_then(|name| {
            let mut mark = name.clone();
            mark.push("=");
            mark.push(self.command.env.get(name)?);
            Some(mark)
        });
        self.family.escaped(&links, mark.as_deref())
    }

    /// Takes the leader's status. One that has not ended yet is left to a thread.
    ///
    /// The guard forgets the leader before its id is free for others.
    fn take_status(&mut self) -> Status {
        let pid = self.family.leader();
        // Free where members were looked for in vain; decides where `/proc` is not mounted.
        let _ = sys::kill_group(pid, libc::SIGKILL);
        if self.exit.is_none() {
            guard::forget(pid);
            return sys::wait(pid).map_or(Status::Unknown, status_of);
        }
        let thread = std::thread::Builder::new().name("reaper".to_owned()).stack_size(64 * 1024);
        let _ = thread.spawn(move || {
            let _ = sys::wait_keeping(pid);
            guard::forget(pid);
            let _ = sys::wait(pid);
        });
        Status::Unknown
    }
}

fn status_of(status: ExitStatus) -> Status {
    match (status.code(), status.signal()) {
        (Some(code), _) => Status::Exited(code),
        (None, Some(signal)) => Status::Signalled(signal),
        (None, None) => Status::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn the_end_of_a_process_is_noticed_without_process_descriptors() {
        let mut child = std::process::Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let exit = exit_pipe(child.id()).unwrap();
        let wait = |timeout| {
            let mut fds = [PollFd::new(Some(exit.as_fd()), Interest::Read)];
            sys::poll(&mut fds, Some(timeout)).unwrap()
        };
        assert_eq!(wait(Duration::ZERO), 0);
        drop(child.stdin.take());
        assert_eq!(wait(Duration::from_secs(60)), 1);
        // Its status was left for us.
        assert!(child.wait().unwrap().success());
    }
}

//! The guard: a small process that ends running commands when etch itself is killed.
//!
//! It is the same program started again. Its standard input is a pipe from etch on which every
//! command's child announces itself (`+ID`) before its program runs, and on which etch takes it
//! back (`-ID`). When etch ends, for whatever reason, the pipe closes: what is still announced
//! is killed, and the guard ends. It lives in its own session, holds no other descriptor, has an
//! empty environment, and ignores requests to end.
//!
//! A parent-death signal would not do: it ends only the shell, not what the shell started, and
//! fires when the thread ends that started the child.

use std::ffi::{CString, OsStr};
use std::io::{self, BufRead, PipeWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::process::family::Family;
use crate::sys::{self, Interest, Launch, PollFd};

/// The hidden argument by which the program is told to be a guard.
const ARGUMENT: &str = "--guard-commands";

/// Whether this program's `main` can be a guard; else starting it again would do something else.
static AVAILABLE: AtomicBool = AtomicBool::new(false);
/// One guard per process: the lock is held while it is started, so that there is never a second.
static GUARD: Mutex<State> = Mutex::new(State::Untried);
/// How long [`stop`] waits for a guard that should end at once.
const STOP_WAIT: Duration = Duration::from_millis(100);

enum State {
    Untried,
    /// It could not be started: commands run without.
    Without,
    Running {
        pid: u32,
        pipe: Arc<PipeWriter>,
    },
}

/// For the first line of `main`: does the guard's work and ends, if this process was started to
/// be one. Otherwise returns at once, and commands are guarded from now on.
pub fn main_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|arg| arg == ARGUMENT) && args.next().is_none() {
        sys::set_thread_name(c"etch-guard");
        sys::ignore_signals();
        serve(io::stdin().lock());
        std::process::exit(0);
    }
    AVAILABLE.store(true, Ordering::Relaxed);
}

/// Starts the guard if there is none yet. The first command does it too; doing it before (while
/// an answer is waited for) saves that command the fraction of a millisecond.
pub fn start() {
    let _ = pipe();
}

/// For the last line of `main`: ends the guard and takes its status, so that no ended process
/// stays behind where nobody takes those of orphans. What still runs is killed.
pub fn stop() {
    let state = std::mem::replace(&mut *lock(), State::Without);
    let State::Running { pid, pipe } = state else { return };
    drop(pipe);
    if let Ok(ended) = sys::pidfd_open(pid) {
        let mut fds = [PollFd::new(Some(ended.as_fd()), Interest::Read)];
        let _ = sys::poll(&mut fds, Some(STOP_WAIT));
    }
    let _ = sys::wait_now(pid);
}

/// Where a child announces itself; `None` when there is no guard.
pub(super) fn pipe() -> Option<Arc<PipeWriter>> {
    if !AVAILABLE.load(Ordering::Relaxed) {
        return None;
    }
    let mut state = lock();
    if let State::Untried = *state {
        *state = launch().unwrap_or(State::Without);
    }
    match &*state {
        State::Running { pipe, .. } => Some(Arc::clone(pipe)),
        State::Untried | State::Without => None,
    }
}

/// The command is over and nothing of it is left.
pub(super) fn forget(pid: u32) {
    if let State::Running { pipe, .. } = &*lock() {
        // A guard that was killed protects nothing, but harms nothing either.
        let _ = (&**pipe).write_all(format!("-{pid}\n").as_bytes());
    }
}

/// The state is whole whatever a panicking thread did.
fn lock() -> MutexGuard<'static, State> {
    GUARD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn launch() -> io::Result<State> {
    let (reader, writer) = io::pipe()?;
    // A guard that was stopped must not block etch: the line is lost instead.
    sys::set_nonblocking(writer.as_fd(), true)?;
    let program = match PathBuf::from("/proc/self/exe") {
        path if path.exists() => path,
        _ => std::env::current_exe()?,
    };
    let c_string = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::other);
    let args = [c_string(OsStr::new("etch-guard"))?, c_string(OsStr::new(ARGUMENT))?];
    let launch = Launch {
        program: &c_string(program.as_os_str())?,
        args: &args,
        env: &[],
        cwd: c"/",
        // Nothing of etch's own outputs: whoever reads those must see them end with etch.
        stdio: [reader.as_fd(); 3],
        announce: None,
    };
    let pid = sys::launch(&launch).map_err(|error| error.source)?;
    Ok(State::Running { pid, pipe: Arc::new(writer) })
}

fn serve(lines: impl BufRead) {
    let mut running = Vec::new();
    for line in lines.lines().map_while(Result::ok) {
        let id = line.get(1..).and_then(|id| id.parse::<u32>().ok());
        match (line.as_bytes().first(), id) {
            (Some(b'+'), Some(id)) => running.extend(Family::of(id)),
            (Some(b'-'), Some(id)) => running.retain(|family: &Family| family.leader() != id),
            _ => {}
        }
    }
    for family in running {
        family.kill();
    }
}

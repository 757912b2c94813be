//! A child program from start to end: bounded capture, time limit, cancellation, nothing left.
//!
//! Every command leads a session of its own. So it has no controlling terminal (it cannot read
//! keys or change the terminal's mode through `/dev/tty`), does not get the terminal's Ctrl-C,
//! and everything that it starts can be found and ended, job control groups (`set -m`,
//! `timeout`) included. Only what itself calls `setsid` escapes; that is named, not ended.
//!
//! One thread, no reader threads: [`run`] waits on the outputs, the child's end, the
//! cancellation and the clock at once. It knows no tool and no shell.

mod capture;
mod environment;
mod error;
mod family;
pub mod guard;
mod start;
mod supervise;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use capture::Capture;
pub use environment::environment;
pub use error::Error;

use crate::cancel::{Cancel, Reason};

/// How long the output of a command whose answer is not awaited is waited for after its end.
pub const DRAIN: Duration = Duration::from_millis(100);

/// What to run, complete: nothing is inherited but ignored signals, limits and user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// A path; relative to `cwd`. See [`find_program`] for names.
    pub program: PathBuf,
    /// Without the program's own name.
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: BTreeMap<OsString, OsString>,
    pub stdin: Stdin,
    pub timeout: Duration,
    /// From SIGTERM to SIGKILL, when the time is over or the command left children behind.
    pub grace: Duration,
    /// How long output that a child still holds is waited for after the command's own end;
    /// `None`: until the time limit, which then counts as reached.
    pub drain: Option<Duration>,
    /// How much is kept of the start and of the end of each output.
    pub head_bytes: usize,
    pub tail_bytes: usize,
    /// A variable of `env` that no other program has with the same value: by it processes are
    /// known that left the session and hold no output.
    pub mark: Option<OsString>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stdin {
    /// At its end from the start.
    Null,
    Bytes(Vec<u8>),
}

/// How a command ended and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub status: Status,
    /// Why etch ended it; `None` when it ended by itself.
    pub ended_by: Option<EndedBy>,
    pub stdout: Capture,
    pub stderr: Capture,
    pub duration: Duration,
    /// Children that still ran when the command ended by itself. They were ended.
    pub left_running: Vec<Process>,
    /// What left the session (`setsid`). It still runs.
    pub escaped: Vec<Process>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Exited(i32),
    /// The number of the signal.
    Signalled(i32),
    /// It was killed but had not ended yet; a thread waits for it.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The time limit. `stopped`: it did not run at that moment but was stopped by a signal
    /// (SIGSTOP, SIGTSTP).
    Timeout {
        stopped: bool,
    },
    Cancel(Reason),
}

/// A process that was found beside the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Its command line, cut; its name where that is not known. One line, no control characters.
    pub name: String,
}

/// Runs a command to its end, its time limit, or the cancellation.
///
/// After a cancellation everything of the command's session has got SIGKILL and this returns
/// within 50 ms; a member that the kernel cannot end at once is waited for by a thread.
pub fn run(command: &Command, cancel: &Cancel) -> Result<Output, Error> {
    supervise::run(command, cancel)
}

/// The absolute path of a program: `name` itself when it has a `/` (relative to `cwd`), else the
/// first executable file of that name in `path`, a list as in `PATH`.
///
/// Relative entries of `path` are passed over: a working tree must not choose what is run.
pub fn find_program(name: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(cwd.join(name)).filter(|path| is_executable(path));
    }
    let dirs = std::env::split_paths(path?).filter(|dir| dir.is_absolute());
    dirs.map(|dir| dir.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_absolute_entries_only() {
        let find = |name: &str, path: &str| {
            find_program(OsStr::new(name), Some(OsStr::new(path)), Path::new("/bin"))
        };
        assert_eq!(find("sh", "/nowhere:/bin:/usr/bin"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find("sh", ""), None);
        assert_eq!(find("sh", ".:bin:"), None);
        assert_eq!(find("passwd", "/etc"), None, "a file that is not executable");
        assert_eq!(find("bin", "/"), None, "a directory");
        assert_eq!(find("./sh", "/nowhere"), Some(PathBuf::from("/bin/./sh")));
        assert_eq!(find("/bin/sh", ""), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find_program(OsStr::new("sh"), None, Path::new("/")), None);
    }
}

//! Why a session cannot be found, read or written; every case ends a run with exit code 9.

use std::fmt;
use std::io;
use std::path::PathBuf;

#[derive(Debug)]
pub enum Error {
    /// Nothing in the folder has this id or name.
    NotFound {
        wanted: String,
    },
    /// The same, and a new session cannot have that name either.
    NoName {
        wanted: String,
        reason: &'static str,
    },
    /// Several ids begin like this, or several sessions have this name. At most ten are listed.
    Ambiguous {
        wanted: String,
        matches: Vec<String>,
        count: usize,
    },
    /// `--continue` with no session of this project.
    NoLatest {
        dir: PathBuf,
    },
    Read {
        path: PathBuf,
        source: io::Error,
    },
    /// The file holds not one readable event.
    Damaged {
        path: PathBuf,
        reason: String,
    },
    /// Another process writes this session; its id is known where it left it beside the file.
    Locked {
        path: PathBuf,
        pid: Option<u32>,
    },
    /// Another process has begun a session of the name that this one was about to have.
    NameTaken {
        name: String,
        id: String,
    },
    /// The folder or the file could not be made.
    Create {
        path: PathBuf,
        source: io::Error,
    },
    /// An existing session cannot be opened for writing.
    Open {
        path: PathBuf,
        source: io::Error,
    },
    /// The system took none or only a part of a line.
    Append {
        path: PathBuf,
        written: usize,
        length: usize,
        source: Option<io::Error>,
    },
    /// An earlier append failed; nothing is added behind its fragment.
    Closed {
        path: PathBuf,
    },
    /// One event is longer than a reader accepts.
    TooLarge {
        kind: &'static str,
        bytes: usize,
        bytes_max: usize,
    },
    Sync {
        path: PathBuf,
        source: io::Error,
    },
    /// An event to go on from is nowhere in the session, nor in what it inherits.
    NoEvent {
        id: String,
    },
    /// No file is kept, so there are no events to go back to.
    NotKept,
}

impl Error {
    /// The exit code of a run that ends by this error.
    pub fn exit_code(&self) -> u8 {
        9
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound { wanted } => {
                write!(f, "no session '{wanted}'; run 'etch sessions' to list them")
            }
            Error::NoName { wanted, reason } => write!(
                f,
                "no session '{wanted}', and none can begin under that name: {reason}; run 'etch sessions' to list them"
            ),
            Error::Ambiguous { wanted, matches, count } => {
                let more = if *count > matches.len() { ", …" } else { "" };
                let list = matches.join(", ");
                write!(f, "'{wanted}' matches {count} sessions ({list}{more}); type more of the id")
            }
            Error::NoLatest { dir } => write!(
                f,
                "no session of this project in {}; start one with 'etch -p', or name one with --session",
                dir.display()
            ),
            Error::Read { path, source } => {
                write!(f, "cannot read session {}: {source}", path.display())
            }
            Error::Damaged { path, reason } => write!(
                f,
                "{}: not one readable event: {reason}; restore the file, or remove it",
                path.display()
            ),
            Error::Locked { path, pid } => {
                let holder = match pid {
                    Some(pid) => format!("process {pid}"),
                    None => "another process".to_owned(),
                };
                write!(
                    f,
                    "session {} is in use by {holder}; wait for it, or continue a copy with --fork",
                    path.file_stem().unwrap_or_default().to_string_lossy()
                )
            }
            Error::NameTaken { name, id } => write!(
                f,
                "another process has just begun a session '{name}' ({}); run again to continue it, or take another name",
                id.get(..12).unwrap_or(id)
            ),
            Error::Create { path, source } => write!(
                f,
                "cannot create {}: {source}; use --session-dir DIR, or --no-session to keep no log",
                path.display()
            ),
            Error::Open { path, source } => write!(
                f,
                "cannot write to session {}: {source}; continue a copy with --fork --session-dir DIR",
                path.display()
            ),
            Error::Append { path, written, length, source } => {
                write!(f, "cannot write session {}: ", path.display())?;
                match source {
                    Some(source) => write!(f, "{source}")?,
                    None => write!(f, "only {written} of {length} bytes were taken")?,
                }
                f.write_str("; make room there, then resume it: what was saved before is whole")
            }
            Error::Closed { path } => write!(
                f,
                "session {} takes no more events after a failed write; resume it to go on",
                path.display()
            ),
            Error::TooLarge { kind, bytes, bytes_max } => write!(
                f,
                "a {kind} event of {bytes} bytes is over the limit of {bytes_max}; give the model less at once"
            ),
            Error::NoEvent { id } => {
                write!(f, "there is no event '{id}' in this session to go on from")
            }
            Error::NotKept => {
                f.write_str("no log is kept of this session: there is nothing to go back in")
            }
            Error::Sync { path, source } => {
                write!(
                    f,
                    "cannot sync session {} to the disk: {source}; look after the disk, or use --session-dir DIR",
                    path.display()
                )
            }
        }
    }
}

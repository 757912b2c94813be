//! Why a command could not be run at all.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::cancel::Cancelled;

#[derive(Debug)]
pub enum Error {
    ProgramNotFound {
        program: PathBuf,
    },
    /// The file is there, but what its first line (or its header) names is not.
    InterpreterNotFound {
        program: PathBuf,
    },
    Directory {
        cwd: PathBuf,
        source: io::Error,
    },
    /// A NUL byte in an argument, a variable or a path.
    Nul {
        place: &'static str,
    },
    Start {
        program: PathBuf,
        source: io::Error,
    },
    /// Pipes or waiting failed: the process or the system is out of something.
    System {
        doing: &'static str,
        source: io::Error,
    },
    /// It was cancelled before it started.
    Cancelled(Cancelled),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::ProgramNotFound { program } => {
                write!(f, "program not found: {}", program.display())
            }
            Error::InterpreterNotFound { program } => {
                write!(
                    f,
                    "cannot start {}: the interpreter or loader that it names does not exist",
                    program.display()
                )
            }
            Error::Directory { cwd, source } => {
                write!(f, "cannot run in the directory {}: {source}", cwd.display())
            }
            Error::Nul { place } => write!(f, "a NUL byte in {place}: no program can be given one"),
            Error::Start { program, source } => {
                write!(f, "cannot start {}: {source}", program.display())
            }
            Error::System { doing, source } => write!(f, "cannot {doing}: {source}"),
            Error::Cancelled(cancelled) => write!(f, "{cancelled}"),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    pub(super) fn system(doing: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::System { doing, source }
    }
}

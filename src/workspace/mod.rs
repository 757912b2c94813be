//! The working tree: path policy, walking, ignore rules, atomic writes, what has been read.
//!
//! This file owns the policy: from a path as a model wrote it to the file that is meant, or the
//! reason why not. Symlinks are followed before the containment check, so a link never leads
//! further than its target may. What it does not promise: between the check and the use another
//! process may swap a directory for a link (nothing here holds directory descriptors). Whoever
//! can do that in the working tree can already write there.

pub mod atomic;
pub mod branch;
pub mod encoding;
pub mod glob;
pub mod identity;
pub mod ignore;
pub mod lookalike;
pub mod names;
pub mod reads;
mod resolve;
pub mod walk;

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The tree that a run works in: the directory etch was started in (or `-C DIR`). File tools
/// write only below it and read outside it only when the person allowed that.
pub struct Workspace {
    root: PathBuf,
    read_outside: bool,
    /// Folders that may be read wherever they lie, canonical.
    readable: Vec<PathBuf>,
    reads: reads::Reads,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// A path after policy: symlinks resolved (of the existing part), inside the tree or allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub absolute: PathBuf,
    /// For messages and results: relative to the root with `/`, reversible for odd names.
    pub shown: String,
}

/// Why a path is refused; the text is for the model: what, where, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError(pub String);

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Workspace {
    /// `root` must exist; it may itself be a symlink.
    pub fn new(root: &Path, read_outside: bool) -> io::Result<Workspace> {
        Ok(Workspace {
            root: root.canonicalize()?,
            read_outside,
            readable: Vec::new(),
            reads: reads::Reads::default(),
        })
    }

    /// Lets file tools read below `dir` although it lies outside or inside `.etch`: folders that
    /// the prompt itself names, such as skills. A folder that does not exist changes nothing.
    pub fn allow_reading(&mut self, dir: &Path) {
        if let Ok(dir) = dir.canonicalize() {
            self.readable.push(dir);
        }
    }

    /// What the model has seen of the tree in this run.
    pub fn reads(&self) -> &reads::Reads {
        &self.reads
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file that `path` means, or why it is refused.
    ///
    /// Relative paths are relative to the root; `~` is a plain name, but none that a write makes. For reading the file must
    /// exist; a name that is not there but has exactly one lookalike (another apostrophe, space
    /// or accent form) means that one. For writing nothing is guessed and the last components may
    /// be missing.
    pub fn resolve(&self, path: &str, access: Access) -> Result<Resolved, PathError> {
        resolve::resolve(self, path, access)
    }

    /// A path for messages and results: relative to the root when below it, else absolute. What
    /// this prints, [`Workspace::resolve`] reads back.
    pub fn shown(&self, absolute: &Path) -> String {
        match absolute.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => names::shown(below),
            Err(_) => names::shown(absolute),
        }
    }
}

/// Names that belong to git or etch, on any file system's idea of letter case.
pub fn is_internal(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case(".etch")
}

/// The metadata of a regular file (links followed), else what it is instead. Opens nothing, so
/// that a pipe without a writer or a terminal is neither waited for nor touched.
pub fn regular_file(path: &Path) -> Result<Metadata, PathError> {
    let metadata = fs::metadata(path).map_err(|error| PathError(reason(&error)))?;
    refuse_special(metadata.file_type())?;
    Ok(metadata)
}

/// Opens a regular file for reading; everything else is refused before and, should it have been
/// swapped meanwhile, after opening. Never blocks.
pub fn open_regular(path: &Path) -> Result<(File, Metadata), PathError> {
    regular_file(path)?;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let opened = options.open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) = opened.map_err(|error| PathError(reason(&error)))?;
    refuse_special(metadata.file_type())?;
    Ok((file, metadata))
}

fn refuse_special(kind: FileType) -> Result<(), PathError> {
    let what = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => return Err(PathError("is a directory".to_owned())),
        _ if kind.is_fifo() => "pipe",
        _ if kind.is_socket() => "socket",
        _ if kind.is_char_device() || kind.is_block_device() => "device",
        _ => "unknown kind",
    };
    Err(PathError(format!("not a regular file ({what})")))
}

/// An error of the platform in words, without its number.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => {
            let text = error.to_string();
            let end = text.find(" (os error").unwrap_or(text.len());
            text[..end].to_lowercase()
        }
    }
}

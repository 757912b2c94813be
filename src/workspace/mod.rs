//! The working tree: path policy, walking, ignore rules, atomic writes, what has been read.

use std::fmt;
use std::path::{Path, PathBuf};

/// The tree that a run works in: the directory etch was started in (or `-C DIR`). File tools
/// write only below it and read outside it only when the person allowed that.
pub struct Workspace {
    root: PathBuf,
    read_outside: bool,
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
    pub fn new(root: &Path, read_outside: bool) -> std::io::Result<Workspace> {
        Ok(Workspace { root: root.canonicalize()?, read_outside })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn resolve(&self, path: &str, access: Access) -> Result<Resolved, PathError> {
        let _ = (access, self.read_outside);
        Err(PathError(path.to_owned()))
    }
}

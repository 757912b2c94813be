//! From files, environment and flags to one [`Config`].

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::config::error::place;
use crate::config::tables::{Faults, HOOK_EVENTS, TABLES, Table, Tables, read_rows};
use crate::config::value::{Bases, found, from_text, from_toml};
use crate::config::{
    Config, Error, Key, Origin, Overrides, Place, Setting, Trust, TrustState, TrustStore, Value,
    keys, rules, unknown,
};
use crate::host::Host;
use crate::toml::{self, Data, Position};
use crate::workspace;

/// Two keys that say the same thing in two ways: setting one unsets the other.
const EXCLUSIVE: [&str; 2] = ["prompt.system_prompt", "prompt.system_prompt_file"];

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    pub path: PathBuf,
    /// The user's own file always is.
    pub is_trusted: bool,
}

/// A setting of a project's file that was not applied, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// `table.key`, or the name of a repeatable table.
    pub key: String,
    pub path: PathBuf,
    /// Counts from 1.
    pub line: usize,
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
pub fn load(host: &Host, table: &[Key], overrides: &Overrides) -> Result<Loaded, Vec<Error>> {
    let mut loader = Loader::new(host, table);
    if !overrides.no_files {
        loader.add_user();
        if let Some(path) = project_file(host) {
            loader.add_project(&path, overrides.trust_project);
        }
    }
    let (environment, flags): (Vec<_>, Vec<_>) = overrides
        .settings
        .iter()
        .partition(|setting| matches!(setting.origin, Origin::Environment(_)));
    for setting in environment.into_iter().chain(flags) {
        loader.add_setting(setting);
    }
    loader.finish()
}

/// What is wrong with a project's file, were it trusted.
pub(crate) fn check_project_file(
    host: &Host,
    table: &[Key],
    path: &Path,
    content: &[u8],
) -> Vec<Error> {
    let mut loader = Loader::new(host, table);
    loader.add_user();
    loader.add_content(path, content, TrustState::Trusted, true);
    loader.finish().map_or_else(|errors| errors, |loaded| loaded.faults)
}

/// The project's file: the nearest `.etch/config.toml` at or above the working directory and
/// below home.
pub fn project_file(host: &Host) -> Option<PathBuf> {
    let home = host.home();
    let real_home = home.and_then(|home| home.canonicalize().ok());
    host.cwd()
        .ancestors()
        .take_while(|dir| Some(*dir) != home && Some(*dir) != real_home.as_deref())
        .map(|dir| dir.join(".etch/config.toml"))
        .find(|path| path.is_file())
}

/// The content; `None` when there is no such file.
pub(crate) fn read_file(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let whole = |message: String| Error {
        place: Place::File { path: path.to_owned(), line: 0, column: 0 },
        message,
    };
    if std::fs::symlink_metadata(path).is_err_and(|error| {
        matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
    }) {
        return Ok(None);
    }
    let (file, _) = workspace::open_regular(path).map_err(|reason| {
        whole(format!("cannot be read: {reason}; --no-config goes without it"))
    })?;
    let mut bytes = Vec::new();
    match file.take(toml::BYTES_MAX as u64 + 1).read_to_end(&mut bytes) {
        Ok(_) => Ok(Some(bytes)), // a longer one is refused by the parser
        Err(error) => Err(whole(format!("cannot be read: {}", workspace::reason(&error)))),
    }
}

/// The file that is being read.
struct Source<'a> {
    path: &'a Path,
    state: TrustState,
    is_project: bool,
    /// The folder that holds its `.etch`.
    folder: &'a Path,
    /// Which of [`EXCLUSIVE`] it has set.
    exclusive: Vec<&'static str>,
}

impl Source<'_> {
    fn is_trusted(&self) -> bool {
        self.state == TrustState::Trusted
    }
}

struct Loader<'a> {
    host: &'a Host,
    table: &'a [Key],
    /// What [`crate::config::Kind::ProjectPath`] is relative to.
    root: PathBuf,
    loaded: Loaded,
    errors: Vec<Error>,
    unknown: Vec<Error>,
}

impl<'a> Loader<'a> {
    fn new(host: &'a Host, table: &'a [Key]) -> Loader<'a> {
        let project = host.project_root();
        let root = project.clone().unwrap_or_else(|| host.cwd().to_owned());
        let mut loaded = Loaded { project, ..Loaded::default() };
        for key in table {
            if let Some(value) = key.default_value() {
                loaded.config.set(key, value, Origin::Default);
            }
        }
        Loader { host, table, root, loaded, errors: Vec::new(), unknown: Vec::new() }
    }

    fn add_user(&mut self) {
        let Some(home) = self.host.home() else { return };
        let path = home.join(".etch/config.toml");
        match read_file(&path) {
            Ok(Some(content)) => self.add_content(&path, &content, TrustState::Trusted, false),
            Ok(None) => {}
            Err(error) => self.errors.push(error),
        }
    }

    fn add_project(&mut self, path: &Path, trust_for_this_run: bool) {
        match read_file(path) {
            Ok(Some(content)) if trust_for_this_run => {
                self.add_content(path, &content, TrustState::Trusted, true);
            }
            Ok(Some(content)) => {
                let store = TrustStore::open(self.host);
                self.loaded.warnings.extend(store.warnings.iter().cloned());
                self.add_content(path, &content, store.state(path, &content), true);
            }
            Ok(None) => {}
            Err(error) => self.errors.push(error),
        }
    }

    fn add_content(&mut self, path: &Path, content: &[u8], state: TrustState, is_project: bool) {
        let is_trusted = state == TrustState::Trusted;
        self.loaded.files.push(SourceFile { path: path.to_owned(), is_trusted });
        let document = match toml::parse(content) {
            Ok(document) => document,
            Err(error) => {
                self.errors.push(Error { place: place(path, error.at), message: error.message });
                return;
            }
        };
        let folder = path.ancestors().nth(2).unwrap_or(Path::new("/"));
        let mut source = Source { path, state, is_project, folder, exclusive: Vec::new() };
        let ignored_before = self.loaded.ignored.len();
        self.walk(&document.root, "", &mut source);
        let ignored = &self.loaded.ignored[ignored_before..];
        self.loaded.warnings.extend(notice(&source, ignored));
    }

    /// Everything below a table; `prefix` is its name with a dot, or empty.
    fn walk(&mut self, table: &toml::Table, prefix: &str, source: &mut Source<'_>) {
        for (name, value) in table.iter() {
            let full = format!("{prefix}{name}");
            let inside = format!("{full}.");
            let at = table.key_at(name).unwrap_or(value.at);
            if let Some(rows) = TABLES.iter().find(|rows| rows.name == full) {
                self.add_rows(rows, value, source);
            } else if let Some(key) = self.table.iter().find(|key| key.name == full) {
                self.add_value(key, value, source);
            } else if self.table.iter().any(|key| key.name.starts_with(&inside)) {
                match &value.data {
                    Data::Table(inner) => self.walk(inner, &inside, source),
                    _ => {
                        let message = format!(
                            "{full}: wanted a table, found {}; write [{full}]",
                            found(value)
                        );
                        self.errors.push(Error { place: place(source.path, value.at), message });
                    }
                }
            } else {
                let is_table = matches!(value.data, Data::Table(_))
                    || value
                        .as_list()
                        .is_some_and(|list| list.iter().any(|item| item.as_table().is_some()));
                let message = unknown::message(&full, is_table, self.table);
                self.unknown.push(Error { place: place(source.path, at), message });
            }
        }
    }

    fn bases<'b>(&'b self, source: &'b Source<'_>) -> Bases<'b> {
        Bases {
            base: source.folder,
            fallback: source.path.parent(),
            project: &self.root,
            home: self.host.home(),
        }
    }

    fn add_rows(&mut self, table: &'static Table, value: &toml::Value, source: &Source<'_>) {
        let mut errors = Vec::new();
        let mut rows = Vec::new();
        {
            let bases = self.bases(source);
            let mut faults = Faults { path: source.path, errors: &mut errors };
            match &value.data {
                // `[hooks]` for `[[hooks]]` has keys where events would stand.
                Data::Table(groups)
                    if table.grouped_by.is_some()
                        && !groups.iter().any(|(name, _)| is_field(table, name)) =>
                {
                    for (group, value) in groups.iter() {
                        let at = groups.key_at(group).unwrap_or(value.at);
                        if HOOK_EVENTS.contains(&group) {
                            rows.extend(read_rows(table, Some(group), value, &bases, &mut faults));
                        } else {
                            faults.add(at, unknown_group(table, group));
                        }
                    }
                }
                _ => rows = read_rows(table, None, value, &bases, &mut faults),
            }
        }
        // The file's order, also between `[[hooks.A]]` and `[[hooks.B]]`.
        rows.sort_by_key(|row| match row.origin {
            Origin::File { line, .. } => line,
            _ => 0,
        });
        let mut tables = Tables::default();
        tables.add(table, rows);
        rules::check_rows(&tables, &mut errors);
        if source.is_trusted() {
            self.errors.extend(errors);
            self.loaded.tables.add(table, tables.rows(table).to_vec());
            return;
        }
        let lines = tables.rows(table).iter().filter(|row| !row.is_disabled());
        for row in lines {
            if let Origin::File { line, .. } = row.origin {
                self.ignore(table.name, Position { line, column: 1 }, source);
            }
        }
        if !errors.is_empty() && tables.rows(table).is_empty() {
            self.ignore(table.name, value.at, source);
        }
        self.loaded.faults.extend(errors);
    }

    fn ignore(&mut self, key: &str, at: Position, source: &Source<'_>) {
        self.loaded.ignored.push(Ignored {
            key: key.to_owned(),
            path: source.path.to_owned(),
            line: at.line,
        });
    }

    fn add_value(&mut self, key: &Key, value: &toml::Value, source: &mut Source<'_>) {
        let read = from_toml(key.kind, value, &self.bases(source))
            .and_then(|read| self.check_file(key, read))
            .and_then(|read| check_exclusive(key, read, source));
        let counts = match key.trust {
            Trust::Own => !source.is_project,
            Trust::User => source.is_trusted(),
            Trust::Downward | Trust::Anyone => true,
        };
        match read {
            Ok(read) => {
                if let Some(read) = self.within_trust(key, read, value.at, source) {
                    let origin = Origin::File { path: source.path.to_owned(), line: value.at.line };
                    self.set(key, read, origin);
                }
            }
            Err(message) => {
                let message = format!("{}: {message}", key.name);
                let error = Error { place: place(source.path, value.at), message };
                if counts {
                    self.errors.push(error);
                } else {
                    self.ignore(key.name, value.at, source);
                    self.loaded.faults.push(error);
                }
            }
        }
    }

    /// A prompt that cannot be read is an error where it is named, not a surprise in the run.
    fn check_file(&self, key: &Key, value: Value) -> Result<Value, String> {
        match &value {
            Value::Path(path) if key.name == keys::PROMPT_SYSTEM_PROMPT_FILE.name => {
                rules::check_prompt_file(path).map(|()| value)
            }
            _ => Ok(value),
        }
    }

    /// What a file may set of `value`: all, a part, or nothing. The rest is noted as ignored.
    fn within_trust(
        &mut self,
        key: &Key,
        value: Value,
        at: Position,
        source: &Source<'_>,
    ) -> Option<Value> {
        if !source.is_project {
            return Some(value);
        }
        let current = self.loaded.config.get(key.name).map(|(current, _)| current);
        if current == Some(&value) {
            return Some(value);
        }
        if let (Trust::Downward, Value::List(list)) = (key.trust, &value) {
            let allowed = match current {
                Some(Value::List(current)) => current,
                _ => return Some(value),
            };
            let kept: Vec<String> =
                list.iter().filter(|item| allowed.contains(item)).cloned().collect();
            if kept.len() < list.len() {
                self.ignore(key.name, at, source);
            }
            return Some(Value::List(kept));
        }
        let is_allowed = (source.is_trusted() && key.trust != Trust::Own)
            || match key.trust {
                Trust::Own | Trust::User => false,
                Trust::Downward => match (&value, current) {
                    (Value::Int(int), Some(Value::Int(current))) => int <= current,
                    (Value::Int(_), None) | (Value::Bool(false), _) => true,
                    _ => false,
                },
                // A file's text is sent to the model: it must be the project's own.
                Trust::Anyone => match &value {
                    Value::Path(path) => is_within(path, source.folder),
                    _ => true,
                },
            };
        if is_allowed {
            return Some(value);
        }
        self.ignore(key.name, at, source);
        None
    }

    fn add_setting(&mut self, setting: &Setting) {
        let here = match &setting.origin {
            Origin::Environment(name) => Place::Environment(name.clone()),
            Origin::Flag(flag) => Place::Flag(flag.clone()),
            Origin::File { .. } | Origin::Default => Place::Flag(setting.key.clone()),
        };
        let Some(key) = self.table.iter().find(|key| key.name == setting.key) else {
            let is_rows = |table: &&&Table| {
                setting.key == table.name || setting.key.starts_with(&format!("{}.", table.name))
            };
            let message = match TABLES.iter().find(is_rows) {
                Some(rows) => format!("[[{}]] is written in a file only", rows.name),
                None => unknown::message(&setting.key, false, self.table),
            };
            self.errors.push(Error { place: here, message });
            return;
        };
        let bases = Bases {
            base: self.host.cwd(),
            fallback: None,
            project: self.host.cwd(),
            home: self.host.home(),
        };
        let read = from_text(key.kind, &setting.value, &bases);
        match read.and_then(|read| self.check_file(key, read)) {
            Ok(value) => self.set(key, value, setting.origin.clone()),
            Err(message) => self.errors.push(Error { place: here, message }),
        }
    }

    fn set(&mut self, key: &Key, value: Value, origin: Origin) {
        if EXCLUSIVE.contains(&key.name) {
            for other in EXCLUSIVE.iter().filter(|other| **other != key.name) {
                self.loaded.config.unset(other);
            }
        }
        self.loaded.config.set(key, value, origin);
    }

    fn finish(mut self) -> Result<Loaded, Vec<Error>> {
        rules::check_merged(&self.loaded, &mut self.errors);
        if !self.errors.is_empty() {
            // Whoever has to look at the file anyway is told of everything in it.
            self.errors.append(&mut self.unknown);
            return Err(self.errors);
        }
        if let Some(first) = self.unknown.first() {
            let more = match self.unknown.len() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more: etch config check)"),
            };
            self.loaded.warnings.push(format!("{first}{more}"));
        }
        self.loaded.faults.append(&mut self.unknown);
        Ok(self.loaded)
    }
}

fn check_exclusive(key: &Key, value: Value, source: &mut Source<'_>) -> Result<Value, String> {
    if EXCLUSIVE.contains(&key.name) {
        if let Some(other) = source.exclusive.first() {
            return Err(format!("{other} is set too; keep one of them"));
        }
        source.exclusive.push(key.name);
    }
    Ok(value)
}

fn is_field(table: &Table, name: &str) -> bool {
    table.fields.iter().any(|field| field.name == name)
}

fn unknown_group(table: &Table, group: &str) -> String {
    let near = crate::config::error::nearest(group, HOOK_EVENTS.iter().copied());
    let hint = match near {
        Some(near) => format!("did you mean [[{}.{near}]]?", table.name),
        None => format!("the events are {}", HOOK_EVENTS.join(", ")),
    };
    format!("unknown event [[{}.{group}]]; {hint}", table.name)
}

/// Whether a file lies below a folder once every link is followed.
fn is_within(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

/// What of a project's file a run does not use, in one line.
fn notice(source: &Source<'_>, ignored: &[Ignored]) -> Option<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for item in ignored {
        match counts.iter_mut().find(|(key, _)| *key == item.key) {
            Some((_, count)) => *count += 1,
            None => counts.push((&item.key, 1)),
        }
    }
    if counts.is_empty() {
        return None;
    }
    let is_rows = |key: &str| TABLES.iter().any(|table| table.name == key);
    let names: Vec<String> = counts
        .iter()
        .map(
            |(key, count)| {
                if is_rows(key) { format!("[[{key}]] ({count})") } else { (*key).to_owned() }
            },
        )
        .collect();
    let (path, names) = (source.path.display(), names.join(", "));
    Some(match source.state {
        TrustState::Trusted => format!("{path}: ignored, for a project cannot widen it: {names}"),
        TrustState::Unknown => format!(
            "{path} is not trusted; ignored: {names} ('etch trust' accepts the file, --trust for one run)"
        ),
        TrustState::Changed => format!(
            "{path} changed since it was trusted; ignored: {names} ('etch trust' accepts it again, --trust for one run)"
        ),
    })
}

//! The second stage of the command line: typed arguments of each command.
//!
//! A value comes from a flag or, where the table says so, from its `ETCH_*` variable; each
//! setting that overrides the configuration keeps which of the two it was. Nothing is read from
//! disk here.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use super::commands::Cmd;
use super::flags::{Flag, Takes, flags_of};
use super::parse::{Typed, Usage, list_or, nearest};
use super::trust::Action;

use crate::config::{Origin, Overrides, Setting};
use crate::host::Host;

/// Everything that a prompt run is asked for.
pub struct RunArgs {
    pub prompt: PromptSource,
    pub stdin: StdinMode,
    /// `-f`, in the order given; relative to the working directory.
    pub files: Vec<PathBuf>,
    pub session: SessionChoice,
    pub fork: bool,
    pub no_session: bool,
    /// Every flag that is a setting: provider, model, key, `--session-dir`, `--max-tool-rounds`,
    /// `--tools`, `--read-outside`, and `-c`.
    pub overrides: Overrides,
    pub output: OutputMode,
    pub deltas: bool,
    /// Instead of a run.
    pub print_request: bool,
    pub output_file: Option<PathBuf>,
    pub quiet: bool,
    /// How often `-v` was given.
    pub verbose: u8,
    pub color: Color,
    /// `None`: as the terminal decides.
    pub stream: Option<bool>,
    pub timeout: Option<Duration>,
    /// How a command line begins that goes on from this run; `None` where that makes no sense.
    pub go_on: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptSource {
    Text(String),
    /// The whole of standard input is the prompt.
    Stdin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinMode {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    New,
    /// The start of an id, or a name; a name that no session has begins one.
    Id(String),
    /// The same, but there must be one.
    Existing(String),
    /// The newest of this project.
    Continue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    Text,
    /// The log's lines, then `run.result`.
    Json,
    /// Only `run.result`.
    JsonResult,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// `etch chat`, and `etch resume` without a prompt.
pub struct ChatArgs {
    pub session: SessionChoice,
    pub fork: bool,
    pub no_session: bool,
    pub overrides: Overrides,
    pub color: Color,
    /// Lines alone, no live region.
    pub plain: bool,
}

/// `etch compact`.
pub struct CompactArgs {
    pub session: SessionChoice,
    /// What the summary should pay attention to; may be empty.
    pub instructions: String,
    pub json: bool,
    pub overrides: Overrides,
}

/// `etch context`.
pub struct ContextArgs {
    /// `None`: the newest.
    pub session: Option<String>,
    pub json: bool,
    /// Where the whole text goes; an empty path is standard output.
    pub dump: Option<PathBuf>,
    pub color: Color,
    pub overrides: Overrides,
}

/// `etch config ACTION`.
pub struct ConfigArgs {
    /// `check`, `show` or `schema`.
    pub action: String,
    pub effective: bool,
    pub origin: bool,
    pub overrides: Overrides,
}

/// `etch auth ACTION`.
pub struct AuthArgs {
    /// One of [`super::commands::AUTH_ACTIONS`].
    pub action: String,
    /// What to import.
    pub path: Option<PathBuf>,
    pub browser: bool,
    pub json: bool,
    pub overrides: Overrides,
}

/// `etch tool NAME …`.
#[derive(Debug)]
pub struct ToolArgs {
    /// `None`: list the tools.
    pub name: Option<String>,
    pub words: Vec<String>,
    /// The tool's flags that were given, by name.
    pub given: Vec<(&'static str, Option<String>)>,
    pub json: bool,
    pub read_outside: bool,
}

/// A flag's value with where it came from.
struct Found {
    value: Option<OsString>,
    origin: Origin,
    /// For messages: `--timeout` or `ETCH_TIMEOUT`.
    shown: String,
}

/// Reads flags of one command, falling back to the environment.
struct Reader<'a> {
    typed: &'a Typed,
    host: &'a Host,
}

/// Flags that exclude each other; one that is typed also silences the variables of the others.
const EXCLUSIVE: &[&[&str]] = &[
    &["session", "continue", "no-session"],
    &["fork", "no-session"],
    &["json", "json-result"],
    &["stream", "no-stream"],
    &["quiet", "verbose"],
    &["print-request", "json-result"],
    &["print-request", "deltas"],
    &["print-request", "output"],
];

impl<'a> Reader<'a> {
    fn new(typed: &'a Typed, host: &'a Host) -> Result<Reader<'a>, Usage> {
        let reader = Reader { typed, host };
        for group in EXCLUSIVE {
            let given: Vec<_> = group.iter().filter(|name| reader.is_typed(name)).collect();
            if let [first, second, ..] = given.as_slice() {
                return Err(Usage(format!("'--{first}' and '--{second}' exclude each other")));
            }
        }
        Ok(reader)
    }

    fn is_typed(&self, name: &str) -> bool {
        self.typed.flags.iter().any(|given| given.flag.name == name)
    }

    fn flag(&self, name: &str) -> Option<&'static Flag> {
        flags_of(self.typed.cmd).find(|flag| flag.name == name)
    }

    /// Every occurrence of a flag, or else the variable's value.
    fn all(&self, name: &str) -> Vec<Found> {
        let typed = self.typed.flags.iter().filter(|given| given.flag.name == name);
        let found: Vec<_> = typed
            .map(|given| Found {
                value: given.value.clone(),
                origin: Origin::Flag(format!("--{name}")),
                shown: format!("--{name}"),
            })
            .collect();
        if found.is_empty() { self.variable(name).into_iter().collect() } else { found }
    }

    fn one(&self, name: &str) -> Option<Found> {
        self.all(name).pop()
    }

    fn variable(&self, name: &str) -> Option<Found> {
        let flag = self.flag(name).filter(|flag| flag.env)?;
        let silenced = EXCLUSIVE
            .iter()
            .any(|group| group.contains(&name) && group.iter().any(|other| self.is_typed(other)));
        if silenced {
            return None;
        }
        let variable = flag.variable();
        let value = self.host.vars().find(|(name, _)| *name == OsStr::new(&variable))?.1;
        (!value.is_empty()).then(|| Found {
            value: Some(value.to_owned()),
            origin: Origin::Environment(variable.clone()),
            shown: variable,
        })
    }

    /// A flag's text, checked against its choices.
    fn text(&self, name: &str) -> Result<Option<String>, Usage> {
        self.one(name).map(|found| self.text_of(name, &found)).transpose()
    }

    fn text_of(&self, name: &str, found: &Found) -> Result<String, Usage> {
        let shown = &found.shown;
        let value = found.value.as_deref().unwrap_or_default();
        let text = value
            .to_str()
            .ok_or_else(|| Usage(format!("the value of '{shown}' is not valid UTF-8")))?;
        let choices = self.flag(name).map_or(&[][..], |flag| flag.choices);
        if !choices.is_empty() && !choices.contains(&text) {
            let near = match nearest(text, choices.iter().copied()) {
                Some(near) => format!("; did you mean '{near}'?"),
                None if name == "provider" => {
                    "; any server that speaks OpenAI's protocol is openai with its --base-url"
                        .to_owned()
                }
                None => String::new(),
            };
            return Err(Usage(format!("'{shown}' is {}, not '{text}'{near}", list_or(choices))));
        }
        Ok(text.to_owned())
    }

    fn path(&self, name: &str) -> Result<Option<PathBuf>, Usage> {
        Ok(self.paths(name)?.pop())
    }

    fn paths(&self, name: &str) -> Result<Vec<PathBuf>, Usage> {
        let read = |found: Found| match found.value {
            Some(value) if !value.is_empty() => Ok(PathBuf::from(value)),
            _ => Err(Usage(format!("'{}' needs a path", found.shown))),
        };
        self.all(name).into_iter().map(read).collect()
    }

    /// A switch, or its variable as a yes or no.
    fn switch(&self, name: &str) -> Result<bool, Usage> {
        match self.one(name) {
            None => Ok(false),
            Some(Found { value: None, .. }) => Ok(true),
            Some(found) => yes_or_no(&self.text_of(name, &found)?, &found.shown),
        }
    }

    /// How often a switch was given; its variable holds a number, or a yes or no.
    fn count(&self, name: &str) -> Result<u8, Usage> {
        let found = self.all(name);
        if let [Found { value: Some(_), .. }] = found.as_slice() {
            let text = self.text_of(name, &found[0])?;
            if let Ok(count) = text.parse::<u8>() {
                return Ok(count);
            }
            return Ok(u8::from(yes_or_no(&text, &found[0].shown)?));
        }
        Ok(u8::try_from(found.len()).unwrap_or(u8::MAX))
    }
}

fn yes_or_no(text: &str, shown: &str) -> Result<bool, Usage> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(Usage(format!("'{shown}' is 1 or 0, not '{text}'"))),
    }
}

/// Seconds, or a number with `ms`, `s`, `m` or `h`.
pub fn duration(text: &str, shown: &str) -> Result<Duration, Usage> {
    let wrong = || Usage(format!("'{shown}' is a time such as 90, 90s, 10m or 1h, not '{text}'"));
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(wrong()),
    }
}

/// `-C DIR` or its variable.
pub fn directory(typed: &Typed, host: &Host) -> Result<Option<PathBuf>, Usage> {
    Reader { typed, host }.path("directory")
}

/// The settings of a command that has no struct of its own.
pub fn overrides_of(typed: &Typed, host: &Host) -> Result<Overrides, Usage> {
    overrides(&Reader::new(typed, host)?)
}

/// A switch of a command that has no struct of its own.
pub fn switch(typed: &Typed, host: &Host, name: &str) -> Result<bool, Usage> {
    Reader::new(typed, host)?.switch(name)
}

pub fn color(typed: &Typed, host: &Host) -> Result<Color, Usage> {
    Ok(match Reader::new(typed, host)?.text("color")?.as_deref() {
        Some("always") => Color::Always,
        Some("never") => Color::Never,
        _ => Color::Auto,
    })
}

/// A positional as text.
pub fn positional(typed: &Typed, idx: usize) -> Result<Option<String>, Usage> {
    let Some(word) = typed.positionals.get(idx) else { return Ok(None) };
    let text = word.to_str().ok_or_else(|| {
        Usage(format!("the argument '{}' is not valid UTF-8", word.to_string_lossy()))
    })?;
    Ok(Some(text.to_owned()))
}

/// The arguments of `-p`, and of `resume` with `-p`.
pub fn run(typed: &Typed, host: &Host) -> Result<RunArgs, Usage> {
    let reader = Reader::new(typed, host)?;
    let no_session = reader.switch("no-session")?;
    let session = session_choice(typed, &reader)?;
    let fork = fork(&reader, &session)?;
    let output = match (reader.switch("json")?, reader.switch("json-result")?) {
        (_, true) => OutputMode::JsonResult,
        (true, _) => OutputMode::Json,
        _ => OutputMode::Text,
    };
    let deltas = reader.switch("deltas")?;
    if deltas && output != OutputMode::Json && reader.is_typed("deltas") {
        return Err(Usage::new("'--deltas' adds to --json: give both"));
    }
    let stdin = match reader.text("stdin")?.as_deref() {
        Some("always") => StdinMode::Always,
        Some("never") => StdinMode::Never,
        _ => StdinMode::Auto,
    };
    let stream = match (reader.switch("stream")?, reader.switch("no-stream")?) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let time = |found: Found| duration(&reader.text_of("timeout", &found)?, &found.shown);
    let timeout = reader.one("timeout").map(time).transpose()?;
    Ok(RunArgs {
        prompt: prompt(typed, stdin)?,
        stdin,
        files: reader.paths("file")?,
        session,
        fork,
        no_session,
        overrides: overrides(&reader)?,
        output,
        deltas: deltas && output == OutputMode::Json,
        print_request: reader.switch("print-request")?,
        output_file: reader.path("output")?,
        quiet: reader.switch("quiet")?,
        verbose: reader.count("verbose")?,
        color: color(typed, host)?,
        stream,
        timeout,
        go_on: Some(go_on(typed)),
    })
}

pub fn chat(typed: &Typed, host: &Host) -> Result<ChatArgs, Usage> {
    let reader = Reader::new(typed, host)?;
    let session = session_choice(typed, &reader)?;
    let fork = fork(&reader, &session)?;
    Ok(ChatArgs {
        session,
        fork,
        no_session: reader.switch("no-session")?,
        overrides: overrides(&reader)?,
        color: color(typed, host)?,
        plain: reader.switch("plain")?,
    })
}

pub fn context(typed: &Typed, host: &Host) -> Result<ContextArgs, Usage> {
    let reader = Reader::new(typed, host)?;
    let dump = match reader.one("dump") {
        Some(found) => Some(PathBuf::from(found.value.unwrap_or_default())),
        None => None,
    };
    Ok(ContextArgs {
        session: positional(typed, 0)?,
        json: reader.switch("json")?,
        dump,
        color: color(typed, host)?,
        overrides: overrides(&reader)?,
    })
}

pub fn compact(typed: &Typed, host: &Host) -> Result<CompactArgs, Usage> {
    let reader = Reader::new(typed, host)?;
    let session = match session_choice(typed, &reader)? {
        SessionChoice::New => {
            return Err(Usage("which session? --session ID, or --continue".to_owned()));
        }
        // None is begun for the sake of a summary.
        SessionChoice::Id(wanted) => SessionChoice::Existing(wanted),
        other => other,
    };
    Ok(CompactArgs {
        session,
        instructions: reader.text("instructions")?.unwrap_or_default(),
        json: reader.switch("json")?,
        overrides: overrides(&reader)?,
    })
}

/// `etch -p` with the flags that say where, as they were typed.
fn go_on(typed: &Typed) -> String {
    let mut line = "etch".to_owned();
    for (name, spelled) in [("directory", "-C"), ("prompt", "-p"), ("session-dir", "--session-dir")]
    {
        let Some(given) = typed.flags.iter().find(|given| given.flag.name == name) else {
            continue;
        };
        line.push_str(&format!(" {spelled}"));
        if name != "prompt" {
            let value = given.value.as_deref().unwrap_or_default().to_string_lossy();
            line.push_str(&format!(" {}", shell_word(&value)));
        }
    }
    line
}

/// A word for a person to copy into a shell.
fn shell_word(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")).into(),
    }
}

fn prompt(typed: &Typed, stdin: StdinMode) -> Result<PromptSource, Usage> {
    let given = typed.flags.iter().find(|given| given.flag.name == "prompt");
    let Some(given) = given else {
        return Err(Usage::new(
            "no prompt: give one with -p \"TEXT\", or a command ('etch help' lists them)",
        ));
    };
    let late = if typed.cmd == Cmd::Run { positional(typed, 0)? } else { None };
    let text = match &given.value {
        Some(value) => Some(
            value.to_str().ok_or_else(|| Usage::new("the prompt is not valid UTF-8"))?.to_owned(),
        ),
        None => late,
    };
    match text.as_deref() {
        None | Some("-") if stdin == StdinMode::Never => {
            Err(Usage::new("'--stdin never' leaves no prompt to read: give one with -p \"TEXT\""))
        }
        None | Some("-") => Ok(PromptSource::Stdin),
        Some(text) if text.trim().is_empty() => {
            Err(Usage::new("the prompt is empty: give one with -p \"TEXT\""))
        }
        Some(text) => Ok(PromptSource::Text(text.to_owned())),
    }
}

fn session_choice(typed: &Typed, reader: &Reader<'_>) -> Result<SessionChoice, Usage> {
    if typed.cmd == Cmd::Resume {
        let id = positional(typed, 0)?;
        return Ok(id.map_or(SessionChoice::Continue, SessionChoice::Existing));
    }
    if reader.switch("continue")? {
        return Ok(SessionChoice::Continue);
    }
    match reader.text("session")? {
        Some(id) if id.is_empty() => Err(Usage::new("'--session' needs an id or a name")),
        Some(id) => Ok(SessionChoice::Id(id)),
        None => Ok(SessionChoice::New),
    }
}

fn fork(reader: &Reader<'_>, session: &SessionChoice) -> Result<bool, Usage> {
    let fork = reader.switch("fork")?;
    match fork && *session == SessionChoice::New {
        true => Err(Usage::new("'--fork' needs a session: give --session ID or --continue, too")),
        false => Ok(fork),
    }
}

/// The overrides: `-c` first, then flags, so that the more particular one wins.
fn overrides(reader: &Reader<'_>) -> Result<Overrides, Usage> {
    let mut overrides = Overrides {
        no_files: reader.switch("no-config")?,
        trust_project: reader.switch("trust")?,
        settings: Vec::new(),
    };
    for found in reader.all("set") {
        let text = reader.text_of("set", &found)?;
        match &found.origin {
            // The variable may hold several, one a line.
            Origin::Environment(_) => {
                for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
                    let (key, value) = line.split_once('=').ok_or_else(|| {
                        Usage(format!("'{}' is KEY=VALUE, not '{line}'", found.shown))
                    })?;
                    overrides.settings.push(Setting {
                        key: key.trim().to_owned(),
                        value: value.to_owned(),
                        origin: found.origin.clone(),
                    });
                }
            }
            _ => overrides.add_assignment(&text).map_err(Usage)?,
        }
    }
    for flag in flags_of(reader.typed.cmd).filter(|flag| !flag.key.is_empty()) {
        let Some(found) = reader.one(flag.name) else { continue };
        let value = match flag.takes {
            Takes::Nothing => reader.switch(flag.name)?.to_string(),
            _ => setting_value(flag, reader.text_of(flag.name, &found)?, reader.host),
        };
        overrides.settings.push(Setting { key: flag.key.to_owned(), value, origin: found.origin });
    }
    Ok(overrides)
}

fn setting_value(flag: &Flag, text: String, host: &Host) -> String {
    match flag.name {
        // As typed: relative to where the person is, not to the project.
        "session-dir" => host.cwd().join(text).to_string_lossy().into_owned(),
        "tools" if text == "none" => "[]".to_owned(),
        _ => text,
    }
}

pub fn config(typed: &Typed, host: &Host) -> Result<ConfigArgs, Usage> {
    let reader = Reader::new(typed, host)?;
    let args = ConfigArgs {
        action: positional(typed, 0)?.unwrap_or_default(),
        effective: reader.switch("effective")?,
        origin: reader.switch("origin")?,
        overrides: overrides(&reader)?,
    };
    let show_only = [("effective", args.effective), ("origin", args.origin)];
    match show_only.iter().find(|(_, given)| *given && args.action != "show") {
        Some((name, _)) => Err(Usage(format!("'--{name}' belongs to 'etch config show'"))),
        None => Ok(args),
    }
}

/// `etch trust`: what to do, and with which project.
pub fn trust(typed: &Typed, host: &Host) -> Result<(Action, Option<PathBuf>), Usage> {
    let reader = Reader::new(typed, host)?;
    let action = match (reader.switch("list")?, reader.switch("remove")?) {
        (true, true) => return Err(Usage::new("'--list' and '--remove' exclude each other")),
        (true, false) => Action::List,
        (false, true) => Action::Remove,
        (false, false) => Action::Accept,
    };
    Ok((action, positional(typed, 0)?.map(PathBuf::from)))
}

/// The arguments of `etch auth`.
pub fn auth(typed: &Typed, host: &Host) -> Result<AuthArgs, Usage> {
    let reader = Reader::new(typed, host)?;
    let args = AuthArgs {
        action: positional(typed, 0)?.unwrap_or_default(),
        path: positional(typed, 1)?.map(PathBuf::from),
        browser: reader.switch("browser")?,
        json: reader.switch("json")?,
        overrides: overrides(&reader)?,
    };
    let misplaced = [
        (args.path.is_some(), "PATH", "import"),
        (args.browser, "--browser", "login"),
        (args.json, "--json", "status"),
    ];
    match misplaced.iter().find(|(given, _, action)| *given && args.action != *action) {
        Some((_, name, action)) => Err(Usage(format!("'{name}' belongs to 'etch auth {action}'"))),
        None => Ok(args),
    }
}

pub fn tool(typed: &Typed, host: &Host) -> Result<ToolArgs, Usage> {
    let reader = Reader::new(typed, host)?;
    let mut words = Vec::new();
    for idx in 1..typed.positionals.len() {
        words.extend(positional(typed, idx)?);
    }
    let mut given = Vec::new();
    for item in &typed.flags {
        let outside = matches!(item.flag.name, "json" | "read-outside" | "directory" | "help");
        if outside {
            continue;
        }
        let value = match item.flag.takes {
            Takes::Nothing => None,
            _ => reader.text(item.flag.name)?,
        };
        given.push((item.flag.name, value));
    }
    Ok(ToolArgs {
        name: positional(typed, 0)?,
        words,
        given,
        json: reader.switch("json")?,
        read_outside: reader.switch("read-outside")?,
    })
}

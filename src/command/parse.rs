//! The first stage of the command line: what was typed, checked against the tables.
//!
//! Pure: a list of words in, [`Typed`] or a [`Usage`] error out; no environment, no file. What a
//! value means is decided later, in `args`.

use std::ffi::OsString;
use std::fmt;

use lexopt::{Arg, Parser};

use super::commands::{self, COMMANDS, Cmd};
use super::flags::{FLAGS, Flag, Takes, flags_of};
use crate::config;

/// What was typed, and nothing else.
#[derive(Debug)]
pub struct Typed {
    pub cmd: Cmd,
    /// In the order typed.
    pub flags: Vec<Given>,
    pub positionals: Vec<OsString>,
    /// Help was asked for, with or without a command.
    pub help: bool,
}

/// One flag that was typed.
#[derive(Debug)]
pub struct Given {
    pub flag: &'static Flag,
    /// `None` for a switch, and for `-p` with nothing after it.
    pub value: Option<OsString>,
}

/// Wrong usage: one line that says what is wrong and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Usage {
    pub fn new(message: impl Into<String>) -> Usage {
        Usage(message.into())
    }
}

/// A flag as typed, before it is known whether the command takes it.
struct Loose {
    /// As the person wrote it: `--model` or `-o`.
    spelled: String,
    name: &'static str,
    value: Option<OsString>,
}

/// Reads the words after the program's name.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Typed, Usage> {
    let mut parser = Parser::from_args(words);
    let mut state = State { command: None, flags: Vec::new(), positionals: Vec::new() };
    loop {
        if state.rest_is_raw() {
            let rest = parser.raw_args().map_err(lexopt_error)?;
            state.positionals.extend(rest);
            break;
        }
        let Some(arg) = parser.next().map_err(lexopt_error)? else { break };
        let spelled = match arg {
            Arg::Value(word) => {
                state.word(word)?;
                continue;
            }
            Arg::Long(name) => format!("--{name}"),
            Arg::Short(name) => format!("-{name}"),
        };
        let flag = lookup(&spelled, state.command)?;
        let value = take_value(&mut parser, flag, &spelled)?;
        state.flags.push(Loose { spelled, name: flag.name, value });
    }
    state.finish()
}

struct State {
    command: Option<Cmd>,
    flags: Vec<Loose>,
    positionals: Vec<OsString>,
}

impl State {
    /// The words of a shell command are not ours to read: `etch tool bash ls -la`.
    fn rest_is_raw(&self) -> bool {
        self.command == Some(Cmd::Tool)
            && self.positionals.len() == 2
            && self.positionals[0] == "bash"
    }

    fn has(&self, name: &str) -> bool {
        self.flags.iter().any(|flag| flag.name == name)
    }

    fn word(&mut self, word: OsString) -> Result<(), Usage> {
        if self.command.is_some() || self.has("prompt") {
            self.positionals.push(word);
            return Ok(());
        }
        let shown = word.to_string_lossy();
        match commands::by_name(&shown) {
            Some(row) => self.command = Some(row.cmd),
            None => return Err(unknown_command(&shown)),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Typed, Usage> {
        let help = self.has("help");
        if self.command.is_none() && self.has("version") {
            self.command = Some(Cmd::Version);
            self.flags.retain(|flag| flag.name != "version");
        }
        // `etch` alone, and `etch --help`, are the overview.
        let bare = self.command.is_none() && !self.has("prompt");
        if bare && (help || self.flags.is_empty()) {
            let positionals = Vec::new();
            return Ok(Typed { cmd: Cmd::Help, flags: Vec::new(), positionals, help: false });
        }
        let cmd = self.command.unwrap_or(Cmd::Run);
        let mut flags: Vec<Given> = Vec::with_capacity(self.flags.len());
        for loose in self.flags {
            let flag = flags_of(cmd).find(|flag| flag.name == loose.name);
            let flag = flag.ok_or_else(|| wrong_command(&loose.spelled, loose.name, cmd))?;
            if !repeats(flag.name) && flags.iter().any(|given| std::ptr::eq(given.flag, flag)) {
                return Err(Usage(format!("'{}' is given twice; keep one", loose.spelled)));
            }
            flags.push(Given { flag, value: loose.value });
        }
        let typed = Typed { cmd, flags, positionals: self.positionals, help };
        if !help {
            check_positionals(&typed)?;
        }
        Ok(typed)
    }
}

fn check_positionals(typed: &Typed) -> Result<(), Usage> {
    let row = commands::command(typed.cmd);
    let given = &typed.positionals;
    for (idx, positional) in row.positionals.iter().enumerate() {
        let Some(word) = given.get(idx) else {
            if positional.required {
                let wanted = match positional.choices {
                    [] => positional.name.to_owned(),
                    choices => list_or(choices),
                };
                return Err(Usage(format!("'etch {}' needs {wanted}", row.name)));
            }
            break;
        };
        let word = word.to_string_lossy();
        if !positional.choices.is_empty() && !positional.choices.contains(&&*word) {
            let known = list_or(positional.choices);
            return Err(Usage(format!("'etch {} {word}' does not exist; use {known}", row.name)));
        }
    }
    let many = row.positionals.last().is_some_and(|last| last.many);
    // The text of `-p` may follow other flags: `etch -p --json "text"`.
    let late_prompt = typed.cmd == Cmd::Run && typed.prompt_is_open();
    let most = row.positionals.len() + usize::from(late_prompt);
    match given.get(most) {
        Some(word) if !many => {
            let word = word.to_string_lossy();
            let advice = match typed.cmd {
                Cmd::Run | Cmd::Resume => "; put the whole prompt in quotes after -p".to_owned(),
                _ => format!("; see 'etch help {}'", row.name),
            };
            Err(Usage(format!("unexpected argument '{word}'{advice}")))
        }
        _ => Ok(()),
    }
}

impl Typed {
    /// `-p` was given without a text.
    pub fn prompt_is_open(&self) -> bool {
        self.flags.iter().any(|given| given.flag.name == "prompt" && given.value.is_none())
    }
}

/// Whether a flag may be given more than once.
pub fn repeats(name: &str) -> bool {
    matches!(name, "file" | "set" | "verbose" | "help")
}

/// The row of a flag as typed. Which of several rows of one name is decided later.
fn lookup(spelled: &str, command: Option<Cmd>) -> Result<&'static Flag, Usage> {
    let found = FLAGS.iter().find(|flag| match spelled.strip_prefix("--") {
        Some(long) => flag.name == long,
        None => flag.short.is_some_and(|short| spelled.chars().nth(1) == Some(short)),
    });
    found.ok_or_else(|| unknown_flag(spelled, command))
}

fn take_value(parser: &mut Parser, flag: &Flag, spelled: &str) -> Result<Option<OsString>, Usage> {
    if flag.takes == Takes::Nothing && !spelled.starts_with("--") {
        // What follows in `-qp` or `-vv` are further flags.
        return Ok(None);
    }
    let attached = parser.optional_value();
    match (flag.takes, attached) {
        (Takes::Nothing, None) => Ok(None),
        (Takes::Nothing, Some(value)) => {
            let value = value.to_string_lossy();
            Err(Usage(format!("'{spelled}' takes no value, but '{value}' is given")))
        }
        (_, Some(value)) => Ok(Some(value)),
        (Takes::Value(name), None) => match parser.value() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Usage(format!("'{spelled}' needs a value: {spelled} {name}"))),
        },
        (Takes::Optional(_), None) => {
            let mut rest = parser.raw_args().map_err(lexopt_error)?;
            match rest.peek() {
                Some(word) if !looks_like_flag(&word.to_string_lossy()) => Ok(rest.next()),
                _ => Ok(None),
            }
        }
    }
}

/// Whether the word after `-p` is a flag rather than its text. A text that begins with a dash
/// and has a blank in it is a text; `-p=TEXT` takes every text.
fn looks_like_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && !word.contains(char::is_whitespace)
}

fn lexopt_error(error: lexopt::Error) -> Usage {
    Usage(error.to_string())
}

fn unknown_command(word: &str) -> Usage {
    let names = COMMANDS.iter().map(|row| row.name).filter(|name| *name != "-p");
    let advice = if word.contains(char::is_whitespace) || word == "run" {
        "to run a prompt: etch -p \"TEXT\"".to_owned()
    } else if let Some(near) = nearest(word, names) {
        format!("did you mean '{near}'?")
    } else {
        "'etch help' lists the commands; to run a prompt: etch -p \"TEXT\"".to_owned()
    };
    Usage(format!("unknown command '{word}'; {advice}"))
}

fn unknown_flag(spelled: &str, command: Option<Cmd>) -> Usage {
    let known = |flag: &&Flag| command.is_none_or(|cmd| flag.on.contains(&cmd));
    let word = spelled.trim_start_matches('-');
    let near = if spelled.starts_with("--") {
        nearest(word, FLAGS.iter().filter(known).map(|flag| flag.name))
            .or_else(|| nearest(word, FLAGS.iter().map(|flag| flag.name)))
    } else {
        None
    };
    let topic = command.map_or("run", topic);
    let advice = match near {
        Some(near) => format!("did you mean '--{near}'?"),
        None => format!("'etch help {topic}' lists them"),
    };
    Usage(format!("unknown flag '{spelled}'; {advice}"))
}

fn wrong_command(spelled: &str, name: &str, cmd: Cmd) -> Usage {
    let owners: Vec<_> = FLAGS
        .iter()
        .filter(|flag| flag.name == name)
        .flat_map(|flag| flag.on)
        .map(|cmd| format!("'etch {}'", commands::command(*cmd).name))
        .collect();
    let own = commands::command(cmd).name;
    if cmd == Cmd::Run {
        return Usage(format!("'{spelled}' is no flag of a prompt; it belongs to {}", owners[0]));
    }
    let owners = match owners.as_slice() {
        [first, second, ..] => format!("{first} and {second}"),
        _ => owners.concat(),
    };
    Usage(format!("'{spelled}' is no flag of 'etch {own}'; it belongs to {owners}"))
}

/// The name under which `help` knows a command.
pub fn topic(cmd: Cmd) -> &'static str {
    if cmd == Cmd::Run { "run" } else { commands::command(cmd).name }
}

/// `a, b or c`.
pub fn list_or(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The name that `word` most likely means: a close one, or one that it begins.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let begun = |name: &&str| word.len() >= 3 && name.starts_with(word);
    config::nearest(word, names.clone()).or_else(|| names.clone().find(begun))
}

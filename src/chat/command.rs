//! Slash commands: one table of them, and what a typed line means.

use std::path::PathBuf;

use super::places::Which;
use super::worker::Question;
use crate::config;
use crate::session::Way;

/// One command as `/help` and completion show it.
pub struct Command {
    pub name: &'static str,
    /// As help shows them; empty for none.
    pub arguments: &'static str,
    pub about: &'static str,
}

const fn command(name: &'static str, arguments: &'static str, about: &'static str) -> Command {
    Command { name, arguments, about }
}

/// In the order in which help lists them.
pub const COMMANDS: &[Command] = &[
    command("help", "", "this list, and the keys"),
    command("status", "", "the session, its model and what it took"),
    command("context", "[dump [FILE]]", "what the model sees, by layers; into a file"),
    command("compact", "[FOCUS]", "summarise all but the latest part, to make room"),
    command("tools", "", "the tools that the model may use"),
    command("tool", "NAME WORDS…", "run a tool by hand, as etch tool does"),
    command("model", "[NAME]", "which model answers; another one from here on"),
    command("effort", "LEVEL", "how long the model may think"),
    command("new", "", "begin a new session"),
    command("resume", "[ID]", "go on with another session"),
    command("sessions", "", "the sessions of this project"),
    command("rewind", "[N]", "back before an earlier prompt, to say something else"),
    command("fork", "[N | new]", "on from another place of this session; new: in a copy of it"),
    command("show", "[N]", "a collapsed output in full"),
    command("diff", "", "what tools changed in this session"),
    command("copy", "", "the last answer to the clipboard"),
    command("auth", "", "how the server is told who asks"),
    command("exit", "", "leave; /quit, too"),
];

/// What a line that begins with a slash asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Help,
    Exit,
    Copy,
    /// The number of an output; 0 is the last one.
    Show(usize),
    Question(Question),
    /// A tool by hand, with its words.
    Tool(Vec<String>),
    /// A summary, and what it should pay attention to.
    Compact(String),
    /// A command of the person's own.
    Custom {
        name: String,
        arguments: String,
    },
}

/// Whether a line is a command: a path such as `/etc/hosts` is none.
pub fn is_command(line: &str) -> bool {
    let Some(rest) = line.strip_prefix('/') else { return false };
    let word = rest.split_whitespace().next().unwrap_or_default();
    !rest.starts_with(char::is_whitespace)
        && !word.is_empty()
        && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'))
}

/// Reads a line for which [`is_command`] holds; `custom` are the names of the person's own.
pub fn parse(line: &str, custom: &[String]) -> Result<Asked, String> {
    let rest = line.trim().strip_prefix('/').unwrap_or(line);
    let (name, arguments) = match rest.split_once(char::is_whitespace) {
        Some((name, arguments)) => (name, arguments.trim()),
        None => (rest, ""),
    };
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let question = match name {
        "help" => return Ok(Asked::Help),
        "exit" | "quit" => return Ok(Asked::Exit),
        "copy" => return Ok(Asked::Copy),
        "show" => return show(arguments),
        "status" => Question::Status,
        "context" => match arguments.strip_prefix("dump") {
            Some(path) if path.is_empty() || path.starts_with(' ') => {
                Question::Dump(some(path.trim()).map(PathBuf::from))
            }
            _ if arguments.is_empty() => Question::Context,
            _ => return Err("it is /context, or /context dump [FILE]".to_owned()),
        },
        "compact" => return Ok(Asked::Compact(arguments.to_owned())),
        "tools" => Question::Tools,
        "tool" => return Ok(Asked::Tool(words(arguments)?)),
        "model" => Question::Model(some(arguments)),
        "effort" if arguments.is_empty() => {
            return Err("say which: /effort low, medium, high, …".to_owned());
        }
        "effort" => Question::Effort(arguments.to_owned()),
        "new" => Question::New,
        "resume" => Question::Resume(some(arguments)),
        "sessions" => Question::Sessions,
        "rewind" => Question::Go(Way::Rewind, which(arguments, "/rewind, or /rewind N")?),
        "fork" if arguments == "new" => Question::Copy,
        "fork" => Question::Go(Way::Fork, which(arguments, "/fork, /fork N, or /fork new")?),
        "diff" => Question::Diff,
        "auth" => Question::Auth,
        _ if custom.iter().any(|known| known == name) => {
            let (name, arguments) = (name.to_owned(), arguments.to_owned());
            return Ok(Asked::Custom { name, arguments });
        }
        _ => return Err(unknown(name, custom)),
    };
    Ok(Asked::Question(question))
}

fn show(arguments: &str) -> Result<Asked, String> {
    match arguments {
        "" => Ok(Asked::Show(0)),
        number => match number.parse() {
            Ok(number) => Ok(Asked::Show(number)),
            Err(_) => Err(format!("/show takes the number of an output, not '{number}'")),
        },
    }
}

fn which(arguments: &str, usage: &str) -> Result<Which, String> {
    match arguments.parse() {
        _ if arguments.is_empty() => Ok(Which::Any),
        Ok(number) => Ok(Which::Number(number)),
        Err(_) => Err(format!("it is {usage}")),
    }
}

fn unknown(name: &str, custom: &[String]) -> String {
    let names =
        COMMANDS.iter().map(|command| command.name).chain(custom.iter().map(String::as_str));
    let begun = names.clone().find(|known| name.len() >= 2 && known.starts_with(name));
    match config::nearest(name, names).or(begun) {
        Some(near) => format!("unknown command /{name}; did you mean /{near}?"),
        None => format!("unknown command /{name}; /help lists them"),
    }
}

/// Words as a shell has them: quotes of both kinds and backslashes.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_no_commands() {
        for (line, want) in [
            ("/help", true),
            ("/my-own arg", true),
            ("/nonsense", true),
            ("/etc/hosts is what?", false),
            ("/ a", false),
            ("/", false),
            ("// comment", false),
            ("what is /help", false),
        ] {
            assert_eq!(is_command(line), want, "{line}");
        }
    }

    #[test]
    fn lines_mean_what_the_table_says() {
        let custom = ["review".to_owned()];
        let check = |line: &str, want: Result<Asked, &str>| {
            assert_eq!(parse(line, &custom), want.map_err(str::to_owned), "{line}");
        };
        let ask = |question| Ok(Asked::Question(question));
        check("/help", Ok(Asked::Help));
        check("/quit ", Ok(Asked::Exit));
        check("/show", Ok(Asked::Show(0)));
        check("/show 3", Ok(Asked::Show(3)));
        check("/show x", Err("/show takes the number of an output, not 'x'"));
        check("/context", ask(Question::Context));
        check("/context dump", ask(Question::Dump(None)));
        check("/context dump a b", ask(Question::Dump(Some("a b".into()))));
        check("/context dumb", Err("it is /context, or /context dump [FILE]"));
        check("/model", ask(Question::Model(None)));
        check("/model  gpt-5 ", ask(Question::Model(Some("gpt-5".into()))));
        check("/effort", Err("say which: /effort low, medium, high, …"));
        let go = |way, which| ask(Question::Go(way, which));
        check("/rewind", go(Way::Rewind, Which::Any));
        check("/rewind 2", go(Way::Rewind, Which::Number(2)));
        check("/rewind all", Err("it is /rewind, or /rewind N"));
        check("/fork", go(Way::Fork, Which::Any));
        check("/fork 12", go(Way::Fork, Which::Number(12)));
        check("/fork new", ask(Question::Copy));
        check("/fork -1", Err("it is /fork, /fork N, or /fork new"));
        check("/resume 4f2a", ask(Question::Resume(Some("4f2a".into()))));
        check("/tool read 'a b.txt'", Ok(Asked::Tool(vec!["read".into(), "a b.txt".into()])));
        check("/tool read 'a", Err("a quote is not closed"));
        let own = Asked::Custom { name: "review".into(), arguments: "all of it".into() };
        check("/review all of it", Ok(own));
        check("/revew", Err("unknown command /revew; did you mean /review?"));
        check("/stat", Err("unknown command /stat; did you mean /status?"));
        check("/zzz", Err("unknown command /zzz; /help lists them"));
    }

    #[test]
    fn every_command_of_the_table_is_understood() {
        for command in COMMANDS {
            let line = format!("/{} low", command.name);
            let parsed = parse(&line, &[]).or_else(|_| parse(&format!("/{}", command.name), &[]));
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
    }
}

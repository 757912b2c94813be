//! `etch help`: made from the tables of commands and flags.

use super::commands::{self, COMMANDS, Cmd, Command};
use super::exit;
use super::flags::{Flag, Group, Takes, flags_of};
use super::out::Out;
use super::parse::{Typed, Usage, nearest, topic};

const WIDTH: usize = 78;
/// Where the explanation of a flag begins.
const FLAG_COLUMN: usize = 28;

pub fn run(typed: &Typed, out: Out) -> Result<u8, Usage> {
    let Some(name) = super::args::positional(typed, 0)? else {
        return Ok(overview(out));
    };
    match find(&name) {
        Some(cmd) => Ok(command(cmd, out)),
        None => {
            let advice = match nearest(&name, COMMANDS.iter().map(|row| topic(row.cmd))) {
                Some(near) => format!("did you mean '{near}'?"),
                None => "'etch help' lists the commands".to_owned(),
            };
            Err(Usage(format!("no help on '{name}'; {advice}")))
        }
    }
}

fn find(name: &str) -> Option<Cmd> {
    let row = COMMANDS.iter().find(|row| row.name == name || topic(row.cmd) == name)?;
    Some(row.cmd)
}

fn overview(mut out: Out) -> u8 {
    out.text(
        "etch: a coding agent in one small binary\n\n\
         Usage:\n  \
         etch -p TEXT [FLAGS]\n  \
         etch COMMAND [ARGUMENTS] [FLAGS]\n\n\
         Commands:\n",
    );
    for row in COMMANDS {
        let name = if row.cmd == Cmd::Run { "-p TEXT" } else { row.name };
        out.line(&format!("  {name:<12} {}", row.about));
    }
    out.text("\nExamples:\n");
    for (line, what) in commands::command(Cmd::Run).examples {
        out.line(&format!("  {line}\n      {what}"));
    }
    out.text(
        "\n'etch help run' lists the flags of a prompt, 'etch help NAME' those of others.\n\
         First time? 'etch demo' shows a real run without a key or a network.\n",
    );
    out.finish(exit::OK)
}

/// `etch help CMD`, and `--help` after a command.
pub fn command(cmd: Cmd, mut out: Out) -> u8 {
    let row = commands::command(cmd);
    out.text(&format!("etch {}: {}\n\n", topic(cmd), row.about));
    out.text(&format!("Usage:\n  {}\n\n{}\n", usage(row), row.details));
    for group in Group::ALL {
        let flags: Vec<_> = flags_of(cmd).filter(|flag| flag.group == group).collect();
        if flags.is_empty() {
            continue;
        }
        out.text(&format!("\n{}:\n", group.title()));
        for flag in flags {
            out.text(&flag_lines(flag));
        }
    }
    if !row.examples.is_empty() {
        out.text("\nExamples:\n");
        for (line, what) in row.examples {
            let what = if what.is_empty() { String::new() } else { format!("\n      {what}") };
            out.line(&format!("  {line}{what}"));
        }
    }
    out.finish(exit::OK)
}

/// `etch show [ID] [FLAGS]`.
pub fn usage(row: &Command) -> String {
    let mut line = match row.cmd {
        Cmd::Run => "etch -p [TEXT]".to_owned(),
        Cmd::Resume => "etch resume [ID] [-p TEXT]".to_owned(),
        _ => format!("etch {}", row.name),
    };
    if row.cmd != Cmd::Resume {
        for positional in row.positionals {
            let name = match positional.choices {
                [] => positional.name.to_owned(),
                choices => choices.join("|"),
            };
            let name = if positional.many { format!("{name}...") } else { name };
            line += &if positional.required { format!(" {name}") } else { format!(" [{name}]") };
        }
    }
    line + " [FLAGS]"
}

/// `-o, --output FILE`.
pub fn spelling(flag: &Flag) -> String {
    let short = flag.short.map_or("    ".to_owned(), |short| format!("-{short}, "));
    let value = match flag.takes {
        Takes::Nothing => String::new(),
        Takes::Value(name) => format!(" {name}"),
        Takes::Optional(name) => format!(" [{name}]"),
    };
    format!("{short}--{}{value}", flag.name)
}

/// What help and the man page say of a flag: its text, then its choices where the text does not
/// name them.
pub fn description(flag: &Flag) -> String {
    let named = flag.choices.iter().all(|choice| flag.doc.contains(choice));
    if named {
        return flag.doc.to_owned();
    }
    format!("{} One of {}.", flag.doc, flag.choices.join(", "))
}

fn flag_lines(flag: &Flag) -> String {
    let head = format!("  {}", spelling(flag));
    let body = wrap(&description(flag), FLAG_COLUMN, WIDTH);
    if head.len() + 2 > FLAG_COLUMN {
        return format!("{head}\n{}{body}\n", " ".repeat(FLAG_COLUMN));
    }
    format!("{head:<FLAG_COLUMN$}{body}\n")
}

/// Breaks words into lines of at most `width` columns; lines after the first are indented.
pub fn wrap(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut column = indent;
    for word in text.split_whitespace() {
        let fits = column + 1 + word.len() <= width;
        if column > indent && fits {
            out.push(' ');
            column += 1;
        } else if column > indent {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

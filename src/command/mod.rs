//! The command line: one table of commands and flags, one file a command.
//!
//! [`main`] takes the words after the program's name and gives back the exit code. Parsing is
//! pure ([`parse`]), values come from flags and `ETCH_*` variables ([`args`]), and each command
//! gets its own struct. Standard output carries the result, standard error the rest.

pub mod args;
pub mod attach;
mod auth;
mod chat;
pub mod commands;
pub mod config;
pub mod exit;
pub mod flags;
pub mod out;
pub mod parse;
pub mod run;
pub mod stdin;
pub mod trust;

mod compact;
mod completion;
mod context;
mod demo;
mod explain;
mod face;
mod help;
mod interrupt;
mod json;
mod man;
mod panics;
mod presenter;
mod reader;
mod request;
mod result;
mod schema;
mod screen;
mod sessions;
mod show;
mod tool;
mod version;

use std::ffi::OsString;

use commands::Cmd;
use out::{Out, say};
use parse::{Typed, Usage};

use crate::harness;
use crate::host::Host;

/// Runs the command that `words` name and returns its exit code.
pub fn main(words: Vec<OsString>) -> u8 {
    // Before anything else is set up: asking for the version does no work.
    if words.len() == 1 && (words[0] == "--version" || words[0] == "-V") {
        return version::text(Out::stdout());
    }
    crate::sys::survive_file_size_limit();
    let words = match words.is_empty() && chat::is_person() {
        true => vec!["chat".into()],
        false => words,
    };
    let done = parse::parse(words).and_then(|typed| {
        let mut host = Host::from_process();
        if let Some(dir) = args::directory(&typed, &host)? {
            host = enter(&dir)?;
        }
        dispatch(&typed, host)
    });
    done.unwrap_or_else(|usage| {
        say(&usage.to_string());
        exit::USAGE
    })
}

/// `-C DIR`: everything that follows, children included, happens in that directory.
fn enter(dir: &std::path::Path) -> Result<Host, Usage> {
    std::env::set_current_dir(dir)
        .map_err(|error| Usage(format!("cannot work in '{}': {error}", dir.display())))?;
    Ok(Host::from_process())
}

fn dispatch(typed: &Typed, host: Host) -> Result<u8, Usage> {
    if typed.help {
        return Ok(help::command(typed.cmd, Out::stdout()));
    }
    Ok(match typed.cmd {
        Cmd::Chat => chat::run(host, typed)?,
        Cmd::Resume if !typed.flags.iter().any(|given| given.flag.name == "prompt") => {
            chat::run(host, typed)?
        }
        Cmd::Run | Cmd::Resume => {
            let args = args::run(typed, &host)?;
            if args.print_request { request::run(host, &args) } else { run::run(host, &args) }
        }
        Cmd::Compact => {
            let args = args::compact(typed, &host)?;
            compact::run(host, &args)
        }
        Cmd::Context => {
            let args = args::context(typed, &host)?;
            context::run(host, &args)
        }
        Cmd::Sessions => sessions::run(typed, &host)?,
        Cmd::Show | Cmd::Status => show::run(typed, &host)?,
        Cmd::Tool => tool::run(&args::tool(typed, &host)?, &host)?,
        Cmd::Config => {
            let args = args::config(typed, &host)?;
            config::run(&args, &host, &harness::keys(), crate::tool::NAMES).print(Out::stdout())
        }
        Cmd::Trust => {
            let (action, path) = args::trust(typed, &host)?;
            trust::run(&host, &harness::keys(), action, path.as_deref()).print(Out::stdout())
        }
        Cmd::Auth => {
            let args = args::auth(typed, &host)?;
            auth::run(host, &args)
        }
        Cmd::Demo => demo::run(host),
        Cmd::Explain => explain::run(args::positional(typed, 0)?.as_deref(), Out::stdout())?,
        Cmd::Schema => schema::run(&args::positional(typed, 0)?.unwrap_or_default(), Out::stdout()),
        Cmd::Completion => {
            completion::run(&args::positional(typed, 0)?.unwrap_or_default(), Out::stdout())
        }
        Cmd::Man => man::run(Out::stdout()),
        Cmd::Help => help::run(typed, Out::stdout())?,
        Cmd::Version => version::run(args::switch(typed, &host, "json")?, Out::stdout()),
    })
}

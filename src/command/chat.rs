//! `etch chat`, `etch` alone on a terminal, and `etch resume` without a prompt.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::sync::Arc;

use super::args::{self, ChatArgs, SessionChoice};
use super::out::say;
use super::parse::{Typed, Usage};
use super::{exit, panics, parse, run, tool};
use crate::agent::Stop;
use crate::cancel::Cancel;
use crate::chat::run::Look;
use crate::chat::worker::Start;
use crate::chat::{self, Ended};
use crate::harness;
use crate::host::Host;
use crate::render::style::{self, Style};

/// Whether somebody sits at a terminal that both ways go to.
pub fn is_person() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Runs the chat and returns the exit code.
pub fn run(host: Host, typed: &Typed) -> Result<u8, Usage> {
    let args = args::chat(typed, &host)?;
    let host = Arc::new(host);
    let loaded = harness::check_depth(&host).and_then(|()| harness::load(&host, &args.overrides));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            say(&error.failure().to_string());
            return Ok(error.exit_code());
        }
    };
    let is_person = is_person();
    let style = Style::decide(args.color.into(), &host, io::stdout().is_terminal());
    let reflows = reflows(&host);
    let is_plain = args.plain || !is_person || style::is_dumb(&host);
    let ChatArgs { session, fork, no_session, overrides, .. } = args;
    // Which one is a question to a person; a script means the newest.
    let pick = is_person
        && !is_plain
        && typed.cmd == super::commands::Cmd::Resume
        && session == SessionChoice::Continue;
    let start = Start {
        overrides,
        loaded,
        resume: if pick { None } else { run::resume(&session) },
        pick,
        fork,
        keep: !no_session,
        probe_local: is_person,
        cancel: Cancel::new(),
        tool: by_hand,
        host,
    };
    panics::keep_messages();
    let ended = match is_plain {
        true => chat::lines::run(start, style, is_person),
        false => chat::run::run(start, &Look { style, reflows }),
    };
    Ok(match ended {
        Ok(Ended { code, failure }) => {
            let mistake = || Stop::Panicked(panics::last_message()).failure();
            let failure = failure.or_else(|| (code == exit::INTERNAL).then(mistake).flatten());
            failure.iter().for_each(|failure| say(&failure.to_string()));
            code
        }
        Err(error) => {
            say(&format!("cannot use this terminal: {error}; --plain may do"));
            exit::FAILED
        }
    })
}

/// Whether the terminal lays out its lines anew when its width changes. Those that do not say who
/// they are mostly do; XTerm, the console and GNU screen do not.
fn reflows(host: &Host) -> bool {
    let is_set = |name: &str| host.var(name).is_some_and(|value| !value.is_empty());
    if is_set("TMUX") {
        return true;
    }
    let term = host.var("TERM").unwrap_or_default();
    !(is_set("XTERM_VERSION")
        || is_set("STY")
        || term.starts_with("linux")
        || term.starts_with("vt"))
}

/// `/tool`: the words of `etch tool` and what it prints.
fn by_hand(host: &Host, words: &[String], cancel: &Cancel) -> Result<String, String> {
    let words = std::iter::once("tool").chain(words.iter().map(String::as_str));
    let typed = parse::parse(words.map(OsString::from)).map_err(|usage| usage.to_string())?;
    let args = args::tool(&typed, host).map_err(|usage| usage.to_string())?;
    tool::by_hand(&args, host, cancel).map_err(|usage| usage.to_string())
}

//! `etch show`: one session as text or as the JSON array of its events, or what it took.

mod stats;
mod transcript;

use std::borrow::Cow;
use std::io::{self, IsTerminal};

use super::args;
use super::commands::Cmd;
use super::exit;
use super::out::{Out, say};
use super::parse::{Typed, Usage};
use super::sessions;
use crate::host::Host;
use crate::render;
use crate::session::{self, Error, Row};
use crate::text::visible;
use transcript::{Style, Transcript};

pub fn run(typed: &Typed, host: &Host) -> Result<u8, Usage> {
    let json = args::switch(typed, host, "json")?;
    let full = typed.cmd == Cmd::Show && args::switch(typed, host, "full")?;
    // `etch status` is the sums alone.
    let with_stats = typed.cmd == Cmd::Status || args::switch(typed, host, "stats")?;
    let color = args::color(typed, host)?;
    let wanted = args::positional(typed, 0)?;
    let store = match sessions::store(typed, host)? {
        Ok(store) => store,
        Err(code) => return Ok(code),
    };
    let found = match &wanted {
        Some(id) => store.find(id),
        None => store.latest(host),
    };
    let mut out = Out::stdout();
    let printed = found.and_then(|row| {
        let on_terminal = io::stdout().is_terminal();
        let colored = render::style::Style::decide(color.into(), host, on_terminal).is_coloured();
        match (with_stats, json) {
            (true, true) => stats::json(&row, &mut out),
            (true, false) => stats::text(&row, colored, &mut out),
            (false, true) => print_json(&row, &mut out),
            (false, false) => print_text(&row, Style { colored, full }, on_terminal, &mut out),
        }
    });
    let code = match printed {
        Ok(()) => exit::OK,
        Err(error) => {
            say(&error.to_string());
            error.exit_code()
        }
    };
    Ok(out.finish(code))
}

/// Each event as its line stands in the log, in the order of the conversation.
fn print_json(row: &Row, out: &mut Out) -> Result<(), Error> {
    let mut first = true;
    let replayed = session::each_event(&row.path, &mut |event| {
        out.text(if first { "[\n" } else { ",\n" });
        out.json(event.raw);
        first = false;
    })?;
    out.text("\n]\n");
    replayed.notices.iter().for_each(|notice| say(notice));
    Ok(())
}

fn print_text(row: &Row, style: Style, on_terminal: bool, out: &mut Out) -> Result<(), Error> {
    let mut transcript = Transcript::new(style);
    let mut block = String::new();
    let mut print = |block: &mut String| {
        out.text(block);
        block.clear();
    };
    // On a terminal no control character of a model or a tool has an effect.
    let clean = |text: &str| -> String {
        match if on_terminal { visible(text) } else { Cow::Borrowed(text) } {
            Cow::Borrowed(text) => text.to_owned(),
            Cow::Owned(text) => text,
        }
    };
    transcript.head(row, &clean, &mut block);
    print(&mut block);
    let replayed = session::each_event(&row.path, &mut |event| {
        transcript.event(event, &clean, &mut block);
        print(&mut block);
    })?;
    transcript.end(&mut block);
    print(&mut block);
    replayed.notices.iter().for_each(|notice| say(notice));
    Ok(())
}

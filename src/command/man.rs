//! The manual page as roff, made from the tables.

use std::fmt::Write;

use super::commands::{COMMANDS, Cmd};
use super::exit::{self, EXITS};
use super::flags::{Flag, Group, flags_of};
use super::help::{description, usage};
use super::out::Out;

pub fn run(mut out: Out) -> u8 {
    out.text(&page());
    out.finish(exit::OK)
}

fn page() -> String {
    let mut page = String::new();
    let _ =
        writeln!(page, ".TH ETCH 1 \"\" \"etch {}\" \"User Commands\"", env!("CARGO_PKG_VERSION"));
    page.push_str(".SH NAME\netch \\- a coding agent in one small binary\n.SH SYNOPSIS\n");
    for row in COMMANDS {
        let _ = writeln!(page, ".br\n{}", bold_program(&usage(row)));
    }
    page.push_str(".SH DESCRIPTION\n");
    let what = "etch sends a prompt to a model, runs the tools that the model asks for in the \
                working directory, and prints the answer. Everything that shaped the model's next \
                turn is in an append-only log that can be read and continued. Standard output \
                carries the result, standard error the rest.";
    let _ = writeln!(page, "{}", text(what));
    page.push_str(".SH COMMANDS\n");
    for row in COMMANDS {
        let _ = writeln!(page, ".SS {}", text(&format!("etch {}", row.name)));
        let _ = writeln!(page, "{}", paragraphs(row.details));
        for group in Group::ALL {
            // The flags of a prompt are listed once, below.
            for flag in flags_of(row.cmd).filter(|flag| flag.group == group) {
                let of_run = row.cmd != Cmd::Run && flag.on.contains(&Cmd::Run);
                if !of_run {
                    page.push_str(&flag_entry(flag));
                }
            }
        }
    }
    page.push_str(".SH EXIT STATUS\n");
    for exit in EXITS {
        let _ = writeln!(
            page,
            ".TP\n\\fB{}\\fR\n{}. {}",
            exit.code,
            text(exit.meaning),
            text(exit.advice)
        );
    }
    page.push_str(&environment());
    page.push_str(FILES);
    page
}

fn environment() -> String {
    let mut page = String::from(".SH ENVIRONMENT\n");
    for flag in flags_of(Cmd::Run).filter(|flag| flag.env) {
        let _ = writeln!(
            page,
            ".TP\n\\fB{}\\fR\nAs \\fB{}\\fR.",
            flag.variable(),
            text(&format!("--{}", flag.name))
        );
    }
    for (names, what) in [
        ("OPENAI_API_KEY", "The key for OpenAI, or for the server that --base-url names."),
        ("OPENROUTER_API_KEY", "The key for OpenRouter; it goes nowhere else."),
        ("HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "How servers are reached."),
        ("SSL_CERT_FILE", "Certificates to trust in place of the built-in ones."),
        (
            "NO_COLOR, CLICOLOR, CLICOLOR_FORCE, TERM",
            "Whether there are colours; TERM=dumb has none.",
        ),
        ("XDG_STATE_HOME", "Where sessions outside a project and trusted hashes are kept."),
    ] {
        let _ = writeln!(page, ".TP\n\\fB{names}\\fR\n{}", text(what));
    }
    page
}

const FILES: &str = ".SH FILES\n\
.TP\n\\fI~/.etch/config.toml\\fR\nThe configuration of this user.\n\
.TP\n\\fI.etch/config.toml\\fR\nThe configuration of a project, within what it may set.\n\
.TP\n\\fI.etch/sessions/\\fR\nThe sessions of a project, one file of JSON lines each.\n";

fn flag_entry(flag: &Flag) -> String {
    let value = match flag.value_name() {
        None => String::new(),
        Some(name) => format!(" \\fI{}\\fR", text(name)),
    };
    let short = flag.short.map_or(String::new(), |short| format!("\\fB\\-{short}\\fR, "));
    let long = text(&format!("--{}", flag.name));
    format!(".TP\n{short}\\fB{long}\\fR{value}\n{}\n", text(&description(flag)))
}

/// `etch show [ID]` with the program's name in bold.
fn bold_program(line: &str) -> String {
    format!("\\fBetch\\fR{}", text(line.strip_prefix("etch").unwrap_or(line)))
}

/// Text that roff does not take for a request, with dashes that can be copied.
fn text(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-").replace('`', "\\(ga");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

/// Paragraphs between empty lines; lines that are set out keep their breaks.
fn paragraphs(details: &str) -> String {
    let mut page = String::new();
    for (idx, block) in details.split("\n\n").enumerate() {
        if idx > 0 {
            page.push_str(".PP\n");
        }
        let set_out = block.lines().any(|line| line.contains("  "));
        if set_out {
            page.push_str(".nf\n");
        }
        for line in block.lines() {
            let _ = writeln!(page, "{}", text(line));
        }
        if set_out {
            page.push_str(".fi\n");
        }
    }
    page.trim_end().to_owned()
}

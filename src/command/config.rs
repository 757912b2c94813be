//! `etch config check | show | schema`.
//!
//! Each answers with a [`Report`]: what to print where, and the exit code.

use super::args::ConfigArgs;
use super::exit;
use super::flags::{FLAGS, Flag};
use super::out::{Out, say};
use super::parse::nearest;
use crate::config::show::Options;
use crate::config::tables::{TABLES, Table};
use crate::config::{self, Error, Key, Loaded, Overrides, Value, check_tool_names};
use crate::harness;
use crate::host::Host;

/// What a command has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// For standard output: whole lines.
    pub text: String,
    /// For standard error: one line each.
    pub messages: Vec<String>,
    pub code: u8,
}

impl Report {
    pub fn print(self, mut out: Out) -> u8 {
        for message in &self.messages {
            say(message);
        }
        out.foreign(&self.text);
        out.finish(self.code)
    }
}

pub fn run(args: &ConfigArgs, host: &Host, keys: &[Key], tools: &[&str]) -> Report {
    match args.action.as_str() {
        "schema" => schema(keys),
        "show" => {
            let options = Options { effective: args.effective, origin: args.origin };
            show(host, keys, &args.overrides, options)
        }
        _ => {
            let mut report = check(host, keys, &args.overrides, tools);
            report.messages.extend(unknown_variables(host));
            report
        }
    }
}

/// Variables that look like etch's own and mean nothing to it: others may have set them, so this
/// is a word and no mistake.
fn unknown_variables(host: &Host) -> Vec<String> {
    let flags = FLAGS.iter().filter(|flag| flag.env).map(Flag::variable);
    let own = [harness::DEPTH_VARIABLE, harness::SESSION_VARIABLE].map(str::to_owned);
    let known: Vec<String> = flags.chain(own).collect();
    let vars = host.vars().filter_map(|(name, _)| name.to_str());
    vars.filter(|name| name.starts_with("ETCH_") && !known.iter().any(|known| known == name))
        .map(|name| match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("{name} means nothing to etch; did you mean {near}?"),
            None => format!("{name} means nothing to etch; 'etch help run' lists the flags"),
        })
        .collect()
}

pub fn schema(keys: &[Key]) -> Report {
    Report { text: config::schema::schema(keys), messages: Vec::new(), code: exit::OK }
}

/// Prints what is set. Warnings go to standard error, as in a run.
pub fn show(host: &Host, keys: &[Key], overrides: &Overrides, options: Options) -> Report {
    match config::load(host, keys, overrides) {
        Ok(loaded) => Report {
            text: config::show::show(&loaded, keys, options),
            messages: loaded.warnings,
            code: exit::OK,
        },
        Err(errors) => failed(&errors),
    }
}

/// Every mistake of the files, also those that a run would live with. `tools`: the names of all
/// built-in tools; empty when they are not to be checked.
pub fn check(host: &Host, keys: &[Key], overrides: &Overrides, tools: &[&str]) -> Report {
    let loaded = match config::load(host, keys, overrides) {
        Ok(loaded) => loaded,
        Err(errors) => return failed(&errors),
    };
    let mut errors = loaded.faults.clone();
    if !tools.is_empty() {
        errors.extend(check_tool_names(&loaded, tools));
    }
    if !errors.is_empty() {
        return failed(&errors);
    }
    let mut text = match loaded.files.as_slice() {
        [] => "no config found\n".to_owned(),
        files => {
            let paths: Vec<_> = files.iter().map(|file| file.path.display().to_string()).collect();
            format!("config ok: {}\n", paths.join(" + "))
        }
    };
    text.push_str(&summary(&loaded));
    Report { text, messages: loaded.warnings, code: exit::OK }
}

/// A wrong flag alone is wrong usage; anything else is a wrong configuration.
fn failed(errors: &[Error]) -> Report {
    let code = if errors.iter().all(Error::is_usage) { exit::USAGE } else { exit::CONFIG };
    let mut messages: Vec<String> = errors.iter().map(Error::to_string).collect();
    messages.dedup();
    Report { text: String::new(), messages, code }
}

/// One line: what would answer, and how much is attached.
fn summary(loaded: &Loaded) -> String {
    let mut facts = Vec::new();
    for (what, key) in
        [("provider", "provider.name"), ("model", "provider.model"), ("api", "openai.api")]
    {
        if let Some((Value::Text(text), _)) = loaded.config.get(key) {
            facts.push(format!("{what} {text}"));
        }
    }
    for table in TABLES {
        facts.push(count(table, loaded));
    }
    format!("{}\n", facts.join(", "))
}

fn count(table: &Table, loaded: &Loaded) -> String {
    let rows = loaded.tables.rows(table);
    let disabled = rows.iter().filter(|row| row.is_disabled()).count();
    let name = if table.name == "subagents.profile" { "subagents" } else { table.name };
    match disabled {
        0 => format!("{name} {}", rows.len()),
        _ => format!("{name} {} ({disabled} disabled)", rows.len() - disabled),
    }
}

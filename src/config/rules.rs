//! What must be true of several fields, rows or keys together.

use std::path::{Path, PathBuf};

use crate::config::error::nearest;
use crate::config::tables::{Row, Tables};
use crate::config::{Error, Loaded, Origin, Place, Value, keys};

/// Compiled size of a hook's matcher; one that needs more is a mistake.
const MATCHER_BYTES_MAX: usize = 1 << 20;

/// An error at a row or a key.
fn error(origin: &Origin, message: String) -> Error {
    let place = match origin {
        Origin::File { path, line } => Place::File { path: path.clone(), line: *line, column: 1 },
        Origin::Environment(name) => Place::Environment(name.clone()),
        Origin::Flag(flag) => Place::Flag(flag.clone()),
        Origin::Default => Place::File { path: PathBuf::new(), line: 0, column: 0 },
    };
    Error { place, message }
}

/// The rules of single rows: of one file, before it is known whether they count.
pub(crate) fn check_rows(tables: &Tables, errors: &mut Vec<Error>) {
    for hook in &tables.hooks {
        check_matcher(hook, errors);
    }
    for plugin in &tables.plugins {
        for name in plugin.list("env").iter().filter(|name| !is_variable(name)) {
            let message = format!("plugins.env: '{name}' is not a name of a variable");
            errors.push(error(&plugin.origin, message));
        }
    }
    for profile in &tables.profiles {
        if profile.get("system_prompt").is_some() && profile.get("system_prompt_file").is_some() {
            let message = "subagents.profile: set system_prompt or system_prompt_file, not both";
            errors.push(error(&profile.origin, message.to_owned()));
        }
        if let Some(path) = profile.path("system_prompt_file")
            && let Err(reason) = check_prompt_file(path)
        {
            let message = format!("subagents.profile.system_prompt_file: {reason}");
            errors.push(error(&profile.origin, message));
        }
    }
}

fn check_matcher(hook: &Row, errors: &mut Vec<Error>) {
    if let Err(reason) = matcher(hook.text("matcher").unwrap_or_default()) {
        errors.push(error(&hook.origin, format!("hooks.matcher: {reason}")));
    }
}

/// A hook's matcher; `None`: it matches all. The error says what is wrong with it.
pub(crate) fn matcher(text: &str) -> Result<Option<regex::Regex>, String> {
    if matches!(text, "" | "*") {
        return Ok(None);
    }
    let built = regex::RegexBuilder::new(text).size_limit(MATCHER_BYTES_MAX).build();
    built.map(Some).map_err(|reason| {
        let reason = reason.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("'{text}' is not a regular expression: {reason}")
    })
}

fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a prompt can be read from there.
pub(crate) fn check_prompt_file(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err(format!("{} is not a regular file", path.display())),
        Err(error) => {
            Err(format!("{} cannot be read: {}", path.display(), crate::workspace::reason(&error)))
        }
    }
}

/// The rules of the whole: after every source was merged.
pub(crate) fn check_merged(loaded: &Loaded, errors: &mut Vec<Error>) {
    let Tables { plugins, profiles, .. } = &loaded.tables;
    check_unique("plugins", plugins, errors);
    check_unique("subagents.profile", profiles, errors);
    let config = &loaded.config;
    if config.flag(&keys::SUBAGENTS_ENABLED)
        && profiles.iter().all(Row::is_disabled)
        && let Some(origin) = config.origin(&keys::SUBAGENTS_ENABLED)
    {
        let message = "subagents.enabled: there is no [[subagents.profile]] that is not disabled";
        errors.push(error(origin, message.to_owned()));
    }
    let text = |name: &str| match config.get(name) {
        Some((Value::Text(text), _)) => Some(text.as_str()),
        _ => None,
    };
    for profile in profiles.iter().filter(|profile| !profile.is_disabled()) {
        let provider = profile.text("provider").or(text("provider.name"));
        if provider == Some("openai")
            && profile.text("model").is_none()
            && text("provider.model").is_none()
        {
            let message = "subagents.profile.model: missing, and provider.model is not set either";
            errors.push(error(&profile.origin, message.to_owned()));
        }
    }
}

fn check_unique(table: &str, rows: &[Row], errors: &mut Vec<Error>) {
    for (idx, row) in rows.iter().enumerate() {
        let name = row.text("name").filter(|_| !row.is_disabled());
        let same = |other: &&Row| !other.is_disabled() && other.text("name") == name;
        if let Some(name) = name
            && let Some(first) = rows[..idx].iter().find(same)
        {
            let message = format!("{table}.name: '{name}' is taken by the one at {}", first.origin);
            errors.push(error(&row.origin, message));
        }
    }
}

/// Tool names in the settings that no tool has: `config check` refuses them when `known` is all
/// there can be (plugins bring their own).
pub fn check_tool_names(loaded: &Loaded, known: &[&str]) -> Vec<Error> {
    let mut errors = Vec::new();
    if loaded.tables.plugins.iter().any(|plugin| !plugin.is_disabled()) {
        return errors;
    }
    let mut check = |what: &str, names: &[String], origin: &Origin| {
        for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("there are {}", known.join(", ")),
            };
            // Of a flag it is clear what it is about.
            let what = match origin {
                Origin::File { .. } => format!("{what}: "),
                Origin::Default | Origin::Environment(_) | Origin::Flag(_) => String::new(),
            };
            errors.push(error(origin, format!("{what}there is no tool '{name}'; {hint}")));
        }
    };
    if let (Some(names), Some(origin)) =
        (loaded.config.list(&keys::TOOLS_ALLOW), loaded.config.origin(&keys::TOOLS_ALLOW))
    {
        check(keys::TOOLS_ALLOW.name, names, origin);
    }
    for profile in loaded.tables.profiles.iter().filter(|profile| !profile.is_disabled()) {
        // `task` starts further subagents: a tool that only they make.
        let names: Vec<String> =
            profile.list("allowed_tools").iter().filter(|name| *name != "task").cloned().collect();
        check("subagents.profile.allowed_tools", &names, &profile.origin);
    }
    errors
}

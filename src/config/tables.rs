//! Repeatable tables (hooks, plugins, subagent profiles): their fields, and their rows as data.
//!
//! Whoever runs them reads the rows; here they are described and their fields read. What must be
//! true of several fields or rows together is in `rules`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::error::{nearest, place};
use crate::config::value::{Bases, found, from_text, from_toml};
use crate::config::{Error, Kind, Origin, Value};
use crate::toml::{self, Data, Position};

/// What starts the commands of `[[hooks]]`.
pub const HOOK_EVENTS: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "TurnStart",
    "TurnComplete",
    "ContextBuild",
    "PreToolUse",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
];

/// One field of a repeatable table.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// As for a key.
    pub default: Option<&'static str>,
    /// Must be there and not empty, unless the row is disabled.
    pub is_required: bool,
    pub doc: &'static str,
}

/// A repeatable table.
#[derive(Debug)]
pub struct Table {
    /// As in `[[name]]`.
    pub name: &'static str,
    /// A field whose value may stand in the header instead: `[[hooks.PreToolUse]]`.
    pub grouped_by: Option<&'static str>,
    pub doc: &'static str,
    pub fields: &'static [Field],
}

const fn field(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field { name, kind, default: None, is_required: false, doc }
}

const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field { is_required: true, ..field(name, kind, doc) }
}

const fn preset(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Field {
    Field { default: Some(default), ..field(name, kind, doc) }
}

const TIMEOUT: Kind = Kind::Int { min: 1, max: 86_400 };
const COUNT: Kind = Kind::Int { min: 1, max: 1_000_000_000 };

pub static HOOKS: Table = Table {
    name: "hooks",
    grouped_by: Some("event"),
    doc: "A command that is run at a point of the turn. Its event may also stand in the header: \
          `[[hooks.PreToolUse]]`.",
    fields: &[
        required("event", Kind::Choice(HOOK_EVENTS), "When the command runs."),
        field(
            "matcher",
            Kind::Text,
            "A regular expression for the tool, reason or trigger. Empty or `*`: all.",
        ),
        required("command", Kind::Text, "A command line for the shell."),
        preset("timeout_seconds", TIMEOUT, "30", "The longest that the command may take."),
        preset("disabled", Kind::Bool, "false", "Keep the entry, do not use it."),
    ],
};

pub static PLUGINS: Table = Table {
    name: "plugins",
    grouped_by: None,
    doc: "A program that offers further tools.",
    fields: &[
        required("name", Kind::Text, "What it is called in messages; unique."),
        required("command", Kind::Text, "A command line for the shell."),
        preset("timeout_seconds", TIMEOUT, "30", "The longest that its start or a call may take."),
        preset("env", Kind::List, "[]", "Names of environment variables that it gets."),
        preset("disabled", Kind::Bool, "false", "Keep the entry, do not use it."),
    ],
};

pub static PROFILES: Table = Table {
    name: "subagents.profile",
    grouped_by: None,
    doc: "A kind of subagent that the model may start. What is unset is as in the main run.",
    fields: &[
        required("name", Kind::Text, "What the model calls it; unique."),
        required("description", Kind::Text, "What it is for, told to the model."),
        required("allowed_tools", Kind::List, "The only tools that it may use."),
        field(
            "provider",
            Kind::Choice(&["echo", "replay", "openai", "local"]),
            "As `provider.name`.",
        ),
        field("model", Kind::Text, "As `provider.model`."),
        field("base_url", Kind::Url, "As `openai.base_url`."),
        field("openai_api", Kind::Choice(&["chat", "responses"]), "As `openai.api`."),
        field(
            "reasoning_effort",
            Kind::Choice(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
            "As `openai.reasoning_effort`.",
        ),
        field(
            "reasoning_summary",
            Kind::Choice(&["auto", "concise", "detailed"]),
            "As `openai.reasoning_summary`.",
        ),
        field("system_prompt", Kind::Text, "Its own instructions."),
        field(
            "system_prompt_file",
            Kind::Path,
            "A file with its own instructions. Not together with `system_prompt`.",
        ),
        field(
            "max_tool_rounds",
            Kind::Int { min: 1, max: 100_000 },
            "As `session.max_tool_rounds`.",
        ),
        field("keep_messages", COUNT, "As `session.keep_messages`."),
        field("auto_compact", Kind::Bool, "As `context.auto_compact`."),
        field("auto_compact_threshold_tokens", COUNT, "As the key of `[context]`."),
        field("keep_recent_tokens", COUNT, "As the key of `[context]`."),
        preset("disabled", Kind::Bool, "false", "Keep the entry, do not use it."),
    ],
};

/// All repeatable tables.
pub static TABLES: [&Table; 3] = [&HOOKS, &PLUGINS, &PROFILES];

impl Table {
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    pub fn default_value(&self) -> Option<Value> {
        let nowhere = Path::new("");
        let bases = Bases { base: nowhere, fallback: None, project: nowhere, home: None };
        from_text(self.kind, self.default?, &bases).ok()
    }
}

/// One `[[table]]` of a file: the fields that it sets, and defaults for the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Of the `[[table]]` line.
    pub origin: Origin,
    values: BTreeMap<&'static str, Value>,
    set: Vec<&'static str>,
}

impl Row {
    /// A set field, or its default.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.values.get(field)
    }

    pub fn text(&self, field: &str) -> Option<&str> {
        match self.get(field) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub fn path(&self, field: &str) -> Option<&Path> {
        match self.get(field) {
            Some(Value::Path(path)) => Some(path),
            _ => None,
        }
    }

    pub fn int(&self, field: &str) -> Option<i64> {
        match self.get(field) {
            Some(Value::Int(int)) => Some(*int),
            _ => None,
        }
    }

    pub fn list(&self, field: &str) -> &[String] {
        match self.get(field) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }

    pub fn is_disabled(&self) -> bool {
        self.get("disabled") == Some(&Value::Bool(true))
    }

    /// The fields that the file itself sets, in its order.
    pub fn set_fields(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.set.iter().filter_map(|name| Some((*name, self.values.get(name)?)))
    }
}

/// The rows of every repeatable table, in the order of the files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tables {
    pub hooks: Vec<Row>,
    pub plugins: Vec<Row>,
    pub profiles: Vec<Row>,
}

impl Tables {
    pub fn rows(&self, table: &Table) -> &[Row] {
        match table.name {
            "hooks" => &self.hooks,
            "plugins" => &self.plugins,
            _ => &self.profiles,
        }
    }

    pub(crate) fn add(&mut self, table: &Table, rows: Vec<Row>) {
        match table.name {
            "hooks" => self.hooks.extend(rows),
            "plugins" => self.plugins.extend(rows),
            _ => self.profiles.extend(rows),
        }
    }
}

/// Where errors of a file are put.
pub(crate) struct Faults<'a> {
    pub path: &'a Path,
    pub errors: &'a mut Vec<Error>,
}

impl Faults<'_> {
    pub fn add(&mut self, at: Position, message: String) {
        self.errors.push(Error { place: place(self.path, at), message });
    }
}

/// Reads the rows of `[[table]]`, or of `[[table.VALUE]]` where `group` is that value.
pub(crate) fn read_rows(
    table: &'static Table,
    group: Option<&str>,
    value: &toml::Value,
    bases: &Bases<'_>,
    faults: &mut Faults<'_>,
) -> Vec<Row> {
    let header = match group {
        Some(group) => format!("{}.{group}", table.name),
        None => table.name.to_owned(),
    };
    let Some(items) = value.as_list() else {
        let message = format!("{header}: wanted [[{header}]], found {}", found(value));
        faults.add(value.at, message);
        return Vec::new();
    };
    let mut rows = Vec::new();
    for item in items {
        match &item.data {
            Data::Table(fields) => {
                rows.extend(read_row(table, &header, group, item.at, fields, bases, faults));
            }
            _ => {
                faults.add(item.at, format!("{header}: wanted [[{header}]], found {}", found(item)))
            }
        }
    }
    rows
}

fn read_row(
    table: &'static Table,
    header: &str,
    group: Option<&str>,
    at: Position,
    fields: &toml::Table,
    bases: &Bases<'_>,
    faults: &mut Faults<'_>,
) -> Option<Row> {
    let errors_before = faults.errors.len();
    let origin = Origin::File { path: faults.path.to_owned(), line: at.line };
    let mut row = Row { origin, values: BTreeMap::new(), set: Vec::new() };
    if let (Some(name), Some(group)) = (table.grouped_by, group) {
        row.values.insert(name, Value::Text(group.to_owned()));
        row.set.push(name);
    }
    for (name, value) in fields.iter() {
        let Some(field) = table.field(name) else {
            let hint = match nearest(name, table.fields.iter().map(|field| field.name)) {
                Some(near) => format!("did you mean '{near}'?"),
                None => {
                    let all: Vec<&str> = table.fields.iter().map(|field| field.name).collect();
                    format!("it has {}", all.join(", "))
                }
            };
            let at = fields.key_at(name).unwrap_or(value.at);
            faults.add(at, format!("unknown key '{name}' in [[{header}]]; {hint}"));
            continue;
        };
        match from_toml(field.kind, value, bases) {
            Ok(read) => {
                if row.values.get(field.name).is_some_and(|group| *group != read) {
                    let message = format!("{header}.{name}: differs from the header [[{header}]]");
                    faults.add(value.at, message);
                }
                row.values.insert(field.name, read);
                if !row.set.contains(&field.name) {
                    row.set.push(field.name);
                }
            }
            Err(message) => faults.add(value.at, format!("{header}.{name}: {message}")),
        }
    }
    let is_empty = |value: Option<&Value>| match value {
        Some(Value::Text(text)) => text.trim().is_empty(),
        Some(Value::List(list)) => list.is_empty(),
        Some(_) => false,
        None => true,
    };
    for field in table.fields {
        if field.is_required && !row.is_disabled() && is_empty(row.values.get(field.name)) {
            // A field that is there but wrong has its own error.
            if fields.get(field.name).is_none() || row.set.contains(&field.name) {
                let message = format!(
                    "{header}.{}: missing; set it, or disabled = true for the whole entry",
                    field.name
                );
                faults.add(at, message);
            }
        }
        if !row.values.contains_key(field.name)
            && let Some(default) = field.default_value()
        {
            row.values.insert(field.name, default);
        }
    }
    (faults.errors.len() == errors_before).then_some(row)
}

//! The JSON Schema of a configuration file, for editors and for models that write one.

use serde_json::{Map, Value as Json, json};

use crate::config::tables::{HOOK_EVENTS, TABLES, Table};
use crate::config::{Key, Kind, Value};

/// A scheme or none, a host, a port, a path; blanks around it.
const URL_PATTERN: &str = concat!(
    r"^\s*([Hh][Tt][Tt][Pp][Ss]?://)?",
    r"([^/:@\s\[]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?([/?#]\S*)?\s*$"
);

/// The schema, indented, with a final line end; the same bytes for the same table.
pub fn schema(keys: &[Key]) -> String {
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "etch configuration",
        "description": "~/.etch/config.toml, and .etch/config.toml of a project",
        "type": "object",
        "additionalProperties": false,
        "properties": {},
    });
    for key in keys.iter().filter(|key| key.kind != Kind::Secret) {
        let value = value_schema(key.kind, key.doc, key.default_value());
        put(&mut root, key.name, value);
    }
    for table in TABLES {
        put(&mut root, table.name, rows_schema(table));
    }
    let mut text = serde_json::to_string_pretty(&root).unwrap_or_default();
    text.push('\n');
    text
}

/// Puts a schema at a dotted name and makes the tables above it.
fn put(table: &mut Json, name: &str, schema: Json) {
    match name.split_once('.') {
        None => table["properties"][name] = schema,
        Some((first, rest)) => {
            let inner = &mut table["properties"][first];
            if inner.is_null() {
                *inner = json!({
                    "type": "object", "additionalProperties": false, "properties": {}
                });
            }
            put(inner, rest, schema);
        }
    }
}

fn value_schema(kind: Kind, doc: &str, default: Option<Value>) -> Json {
    let mut schema = match kind {
        Kind::Text | Kind::Path | Kind::ProjectPath | Kind::Secret => json!({ "type": "string" }),
        Kind::Url => json!({ "type": "string", "pattern": URL_PATTERN }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Int { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Choice(choices) => json!({ "type": "string", "enum": choices }),
        Kind::List => json!({ "type": "array", "items": { "type": "string" } }),
    };
    schema["description"] = doc.into();
    if let Some(default) = default {
        schema["default"] = match default {
            Value::Text(text) => text.into(),
            Value::Path(path) => path.to_string_lossy().into(),
            Value::Bool(flag) => flag.into(),
            Value::Int(int) => int.into(),
            Value::List(list) => list.into(),
            Value::Secret(_) => Json::Null,
        };
    }
    schema
}

fn rows_schema(table: &Table) -> Json {
    let rows = |grouped: bool| json!({ "type": "array", "items": row_schema(table, grouped) });
    let mut schema = match table.grouped_by {
        None => rows(false),
        Some(_) => {
            let events: Map<String, Json> =
                HOOK_EVENTS.iter().map(|event| ((*event).to_owned(), rows(true))).collect();
            let grouped = json!({
                "type": "object", "additionalProperties": false, "properties": events
            });
            json!({ "anyOf": [rows(false), grouped] })
        }
    };
    schema["description"] = table.doc.into();
    schema
}

/// One row; `grouped` rows have one of their fields in the header.
fn row_schema(table: &Table, grouped: bool) -> Json {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in table.fields {
        let value = value_schema(field.kind, field.doc, field.default_value());
        properties.insert(field.name.to_owned(), value);
        if field.is_required && !(grouped && table.grouped_by == Some(field.name)) {
            required.push(field.name);
        }
    }
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "anyOf": [
            { "required": required },
            { "required": ["disabled"], "properties": { "disabled": { "const": true } } },
        ],
    })
}

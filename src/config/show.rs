//! Settings as a configuration file: what is set, or all that is in force, and by whom.

use std::fmt::Write;

use crate::config::tables::{Row, TABLES, Table};
use crate::config::{Key, Kind, Loaded, Origin, Value};

#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Defaults too, and what has none is named.
    pub effective: bool,
    /// A comment behind each value says who set it.
    pub origin: bool,
}

/// TOML that loads again and means the same.
pub fn show(loaded: &Loaded, keys: &[Key], options: Options) -> String {
    let mut out = String::new();
    for table in tables_in_order(keys) {
        let mut body = String::new();
        for key in keys.iter().filter(|key| key.table() == table) {
            match loaded.config.get(key.name) {
                Some((_, Origin::Default)) if !options.effective => {}
                Some((value, origin)) => {
                    body.push_str(&line(key.leaf(), key.kind, value));
                    end_line(&mut body, options.origin.then_some(origin));
                }
                None if options.effective => {
                    let _ = writeln!(body, "# {} is not set", key.leaf());
                }
                None => {}
            }
        }
        if !body.is_empty() {
            let _ = write!(out, "{}[{table}]\n{body}", separator(&out));
        }
    }
    for table in TABLES {
        for row in loaded.tables.rows(table) {
            show_row(&mut out, table, row, options);
        }
    }
    if out.is_empty() {
        out.push_str("# nothing is set; --effective shows the defaults\n");
    }
    out
}

fn show_row(out: &mut String, table: &Table, row: &Row, options: Options) {
    let _ = write!(out, "{}[[{}]]", separator(out), table.name);
    end_line(out, options.origin.then_some(&row.origin));
    let set: Vec<&str> = row.set_fields().map(|(name, _)| name).collect();
    for field in table.fields {
        match row.get(field.name) {
            Some(value) if options.effective || set.contains(&field.name) => {
                out.push_str(&line(field.name, field.kind, value));
                out.push('\n');
            }
            _ => {}
        }
    }
}

fn line(name: &str, kind: Kind, value: &Value) -> String {
    // A secret would not load from a file: it is only said to be there.
    let comment = if kind == Kind::Secret { "# " } else { "" };
    format!("{comment}{name} = {}", value.to_toml())
}

fn end_line(out: &mut String, origin: Option<&Origin>) {
    if let Some(origin) = origin {
        let _ = write!(out, "  # {origin}");
    }
    out.push('\n');
}

fn separator(out: &str) -> &'static str {
    if out.is_empty() { "" } else { "\n" }
}

/// The tables of the keys, in the order in which they first appear.
pub fn tables_in_order(keys: &[Key]) -> Vec<&'static str> {
    let mut tables = Vec::new();
    for key in keys {
        if !tables.contains(&key.table()) {
            tables.push(key.table());
        }
    }
    tables
}

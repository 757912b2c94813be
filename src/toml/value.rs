//! What a file holds: a tree of tables whose every key and value knows its place.

use std::collections::BTreeMap;
use std::fmt;

/// A place in the file; both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Why a file is refused. Prints as `line:column: what, and what to do`; callers put the path
/// and a colon before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub at: Position,
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.at.line, self.at.column, self.message)
    }
}

impl std::error::Error for Error {}

/// A parsed file.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub root: Table,
}

impl Document {
    /// The value at a path like `provider.model`; names are the parts between dots.
    pub fn get(&self, path: &str) -> Option<&Value> {
        let mut parts = path.split('.');
        let mut value = self.root.get(parts.next()?)?;
        for part in parts {
            value = value.as_table()?.get(part)?;
        }
        Some(value)
    }

    /// Every value that is no table, in the order of the tables and keys of the file, with its
    /// path: `provider.model`. Lists are one value, lists of tables too.
    pub fn leaves(&self) -> Vec<(String, &Value)> {
        let mut leaves = Vec::new();
        collect_leaves(&self.root, "", &mut leaves);
        leaves
    }
}

fn collect_leaves<'d>(table: &'d Table, path: &str, leaves: &mut Vec<(String, &'d Value)>) {
    for (key, value) in table.iter() {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match &value.data {
            Data::Table(inner) => collect_leaves(inner, &path, leaves),
            _ => leaves.push((path, value)),
        }
    }
}

/// A value with the place where it starts (a table: where its header or its first key stands).
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    pub at: Position,
    pub data: Data,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Value>),
    Table(Table),
}

impl Value {
    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_int(&self) -> Option<i64> {
        match self.data {
            Data::Int(int) => Some(int),
            _ => None,
        }
    }

    /// A float, or an integer as one.
    pub fn as_float(&self) -> Option<f64> {
        match self.data {
            Data::Float(float) => Some(float),
            Data::Int(int) => Some(int as f64),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.data {
            Data::Bool(bool) => Some(bool),
            _ => None,
        }
    }

    /// A list, also one of tables, by `[[name]]` or `[{…}]`.
    pub fn as_list(&self) -> Option<&[Value]> {
        match &self.data {
            Data::List(list) => Some(list),
            _ => None,
        }
    }

    pub fn as_table(&self) -> Option<&Table> {
        match &self.data {
            Data::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The kind in words for messages: `expected a number, found text`.
    pub fn kind(&self) -> &'static str {
        match self.data {
            Data::Text(_) => "text",
            Data::Int(_) => "a number",
            Data::Float(_) => "a number with a fraction",
            Data::Bool(_) => "true or false",
            Data::List(_) => "a list",
            Data::Table(_) => "a table",
        }
    }
}

/// How a table came to be, which decides what may still be added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Made {
    /// As a parent in another table's header: a header of its own may follow.
    #[default]
    Implied,
    ByHeader,
    /// As a parent in a dotted key: further dotted keys may follow.
    ByDots,
    /// Braces: nothing may follow.
    Inline,
}

/// Keys with values, in the order of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    entries: Vec<Entry>,
    index: BTreeMap<String, usize>,
    pub(super) made: Made,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    /// Where the key stands.
    pub(super) at: Position,
    pub(super) value: Value,
    /// A list that further `[[headers]]` may lengthen.
    pub(super) is_growing: bool,
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.index.get(key).map(|&idx| &self.entries[idx].value)
    }

    /// Where the key itself stands.
    pub fn key_at(&self, key: &str) -> Option<Position> {
        self.index.get(key).map(|&idx| self.entries[idx].at)
    }

    /// Keys and values in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|entry| (entry.key.as_str(), &entry.value))
    }

    /// The keys in the order of the file: of the root table, the top-level keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.key.as_str())
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn made(made: Made) -> Table {
        Table { made, ..Table::default() }
    }

    pub(super) fn position(&self, key: &str) -> Option<usize> {
        self.index.get(key).copied()
    }

    pub(super) fn entry_mut(&mut self, idx: usize) -> &mut Entry {
        &mut self.entries[idx]
    }

    /// The key must be new.
    pub(super) fn insert(
        &mut self,
        key: &str,
        at: Position,
        value: Value,
        is_growing: bool,
    ) -> &mut Entry {
        let idx = self.entries.len();
        self.index.insert(key.to_owned(), idx);
        self.entries.push(Entry { key: key.to_owned(), at, value, is_growing });
        &mut self.entries[idx]
    }
}

//! Repeatable tables (hooks, plugins, subagent profiles): their fields, and their rows as data.
//!
//! Whoever runs them reads the rows; here they are only checked.

use std::collections::BTreeMap;

use crate::config::{Origin, Value};

/// One `[[table]]` of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Of the `[[table]]` line.
    pub origin: Origin,
    pub(crate) values: BTreeMap<&'static str, Value>,
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

    pub fn int(&self, field: &str) -> Option<i64> {
        match self.get(field) {
            Some(Value::Int(int)) => Some(*int),
            _ => None,
        }
    }

    pub fn is_disabled(&self) -> bool {
        self.get("disabled") == Some(&Value::Bool(true))
    }
}

/// The rows of every repeatable table, in the order of the files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tables {
    pub hooks: Vec<Row>,
    pub plugins: Vec<Row>,
    pub profiles: Vec<Row>,
}

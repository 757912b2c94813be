//! The shape of a field: for the model as JSON Schema, for messages in words.

use std::fmt::Write as _;

/// The subset of JSON Schema that arguments use.
#[derive(Debug, Clone, PartialEq)]
pub enum Schema {
    String,
    Integer,
    Boolean,
    Array(Box<Schema>),
    Object(Vec<Property>),
}

/// A named field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    pub name: &'static str,
    pub schema: Schema,
    /// For the model; empty where the name says it all.
    pub doc: &'static str,
    pub is_required: bool,
}

impl Schema {
    /// Compact JSON; properties stand in order of definition, which models follow.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, "");
        out
    }

    fn write(&self, out: &mut String, doc: &str) {
        let kind = match self {
            Schema::String => "string",
            Schema::Integer => "integer",
            Schema::Boolean => "boolean",
            Schema::Array(_) => "array",
            Schema::Object(_) => "object",
        };
        let _ = write!(out, "{{\"type\":\"{kind}\"");
        if !doc.is_empty() {
            let _ = write!(out, ",\"description\":{}", serde_json::Value::from(doc));
        }
        match self {
            Schema::String | Schema::Integer | Schema::Boolean => {}
            Schema::Array(item) => {
                out.push_str(",\"items\":");
                item.write(out, "");
            }
            Schema::Object(properties) => write_properties(out, properties),
        }
        out.push('}');
    }

    /// In words: `a list, each item an object with path, offset, limit`.
    pub fn describe(&self) -> String {
        match self {
            Schema::String => "a string".to_owned(),
            Schema::Integer => "a whole number from 0".to_owned(),
            Schema::Boolean => "true or false".to_owned(),
            Schema::Array(item) => format!("a list, each item {}", item.describe()),
            Schema::Object(properties) => {
                let names: Vec<_> = properties.iter().map(|property| property.name).collect();
                format!("an object with {}", names.join(", "))
            }
        }
    }
}

fn write_properties(out: &mut String, properties: &[Property]) {
    out.push_str(",\"properties\":{");
    for (idx, property) in properties.iter().enumerate() {
        let comma = if idx == 0 { "" } else { "," };
        let _ = write!(out, "{comma}\"{}\":", property.name);
        property.schema.write(out, property.doc);
    }
    out.push('}');
    let required = properties.iter().filter(|property| property.is_required);
    let required: Vec<_> = required.map(|property| format!("\"{}\"", property.name)).collect();
    if !required.is_empty() {
        let _ = write!(out, ",\"required\":[{}]", required.join(","));
    }
}

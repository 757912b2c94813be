//! Typed tool arguments: one definition gives the struct, its JSON Schema and its parser.
//!
//! The parser forgives what models commonly get wrong and what can be read in one way only: a
//! number written as a string, one value where a list is expected, `null` for "not given", an
//! empty argument text for `{}`. Everything else is an error that names the field and the shape.

use serde_json::{Map, Value};

/// A type that can be a field of tool arguments.
pub trait Field: Sized {
    /// Its JSON Schema without the description.
    fn schema() -> Value;

    /// Reads it; `field` is its path for messages (`edits[2].oldText`).
    fn from_value(value: Value, field: &str) -> Result<Self, String>;

    /// What it is when the call does not give it; an error when it must be given.
    fn missing(field: &str) -> Result<Self, String> {
        Err(format!("'{field}' is missing: it must be {}", describe(&Self::schema())))
    }

    /// Whether the schema lists it under `required`.
    const REQUIRED: bool = true;
}

/// A set of named fields: the arguments of a tool, or an object inside them.
pub trait Arguments: Sized {
    fn object_schema() -> Value;
    fn from_object(object: Map<String, Value>, field: &str) -> Result<Self, String>;

    /// Reads a call's argument text.
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let value = if text.is_empty() {
            Value::Object(Map::new())
        } else {
            serde_json::from_str(text)
                .map_err(|error| format!("the arguments are no valid JSON: {error}"))?
        };
        match value {
            Value::Object(object) => Self::from_object(object, ""),
            Value::Null => Self::from_object(Map::new(), ""),
            // An object inside a string: some servers encode twice.
            Value::String(inner) => match serde_json::from_str(&inner) {
                Ok(Value::Object(object)) => Self::from_object(object, ""),
                _ => Err("the arguments must be a JSON object, not a string".to_owned()),
            },
            other => Err(format!("the arguments must be a JSON object, not {}", kind_of(&other))),
        }
    }
}

/// Defines a struct of tool arguments. Each field has a type that implements [`Field`] and a
/// description for the schema; `"wireName"` renames it.
///
/// ```ignore
/// arguments! {
///     /// Arguments of `read`.
///     pub struct ReadArguments {
///         path: Option<String> = "File to read.",
///         line_numbers("lineNumbers"): Option<bool> = "Number the lines (true).",
///     }
/// }
/// ```
#[macro_export]
macro_rules! arguments {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($field:ident $(($wire:literal))? : $type:ty = $doc:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name { $(pub $field: $type),* }

        impl $crate::tool::arguments::Arguments for $name {
            fn object_schema() -> serde_json::Value {
                use $crate::tool::arguments::{Field, object_schema, wire_name};
                object_schema(&[$((
                    wire_name(stringify!($field), &[$($wire)?]),
                    <$type as Field>::schema(),
                    $doc,
                    <$type as Field>::REQUIRED,
                )),*])
            }

            fn from_object(
                mut object: serde_json::Map<String, serde_json::Value>,
                field: &str,
            ) -> Result<Self, String> {
                use $crate::tool::arguments::{refuse_unknown, take, wire_name};
                let names = [$(wire_name(stringify!($field), &[$($wire)?])),*];
                refuse_unknown(&object, &names, field)?;
                Ok(Self {
                    $($field: take(&mut object, wire_name(stringify!($field), &[$($wire)?]), field)?),*
                })
            }
        }

        impl $crate::tool::arguments::Field for $name {
            fn schema() -> serde_json::Value {
                <$name as $crate::tool::arguments::Arguments>::object_schema()
            }

            fn from_value(value: serde_json::Value, field: &str) -> Result<Self, String> {
                use $crate::tool::arguments::{Arguments, wrong_shape};
                match value {
                    serde_json::Value::Object(object) => Self::from_object(object, field),
                    other => Err(wrong_shape::<Self>(field, &other)),
                }
            }
        }
    };
}

/// The name on the wire: the given one, else the field's own.
#[doc(hidden)]
pub fn wire_name(field: &'static str, given: &[&'static str]) -> &'static str {
    given.first().copied().unwrap_or(field)
}

/// An object schema with its properties in order of definition.
///
/// It is composed as text by [`schema_text`]; here as a value for reading.
#[doc(hidden)]
pub fn object_schema(fields: &[(&str, Value, &str, bool)]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, schema, doc, is_required) in fields {
        let mut schema = schema.clone();
        if let (Value::Object(map), false) = (&mut schema, doc.is_empty()) {
            map.insert("description".to_owned(), Value::String((*doc).to_owned()));
        }
        properties.insert((*name).to_owned(), schema);
        if *is_required {
            required.push(Value::String((*name).to_owned()));
        }
    }
    let mut object = Map::new();
    object.insert("type".to_owned(), Value::String("object".to_owned()));
    object.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        object.insert("required".to_owned(), Value::Array(required));
    }
    Value::Object(object)
}

/// The schema of `A` as compact JSON: the same bytes in every run.
pub fn schema_text<A: Arguments>() -> String {
    A::object_schema().to_string()
}

#[doc(hidden)]
pub fn take<F: Field>(
    object: &mut Map<String, Value>,
    name: &str,
    parent: &str,
) -> Result<F, String> {
    let path = join(parent, name);
    match object.remove(name) {
        None | Some(Value::Null) => F::missing(&path),
        Some(value) => F::from_value(value, &path),
    }
}

/// An unknown field is an error: dropping it would do something else than was asked for.
#[doc(hidden)]
pub fn refuse_unknown(
    object: &Map<String, Value>,
    names: &[&str],
    parent: &str,
) -> Result<(), String> {
    for (name, value) in object {
        if !names.contains(&name.as_str()) && !value.is_null() {
            return Err(format!(
                "'{}' is no argument; known are {}",
                join(parent, name),
                names.join(", ")
            ));
        }
    }
    Ok(())
}

#[doc(hidden)]
pub fn wrong_shape<F: Field>(field: &str, value: &Value) -> String {
    format!("'{field}' must be {}, not {}", describe(&F::schema()), kind_of(value))
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A schema in words: `a list of objects with path, offset, limit`.
fn describe(schema: &Value) -> String {
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => "a string".to_owned(),
        Some("integer") => "a whole number from 0".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => {
            let item = schema.get("items").map(describe).unwrap_or_default();
            format!("a list, each item {item}")
        }
        Some("object") => {
            let names = schema.get("properties").and_then(Value::as_object);
            let names: Vec<_> =
                names.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            format!("an object with {}", names.join(", "))
        }
        _ => "of another type".to_owned(),
    }
}

impl Field for String {
    fn schema() -> Value {
        serde_json::json!({"type": "string"})
    }

    fn from_value(value: Value, field: &str) -> Result<String, String> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(wrong_shape::<String>(field, &other)),
        }
    }
}

impl Field for u64 {
    fn schema() -> Value {
        serde_json::json!({"type": "integer"})
    }

    /// Whole numbers from 0; negative ones count as 0, as "use the default" does.
    fn from_value(value: Value, field: &str) -> Result<u64, String> {
        let number = match &value {
            Value::Number(number) => Some(number.clone()),
            Value::String(text) => text.trim().parse::<serde_json::Number>().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| wrong_shape::<u64>(field, &value))?;
        if let Some(whole) = number.as_u64() {
            return Ok(whole);
        }
        match number.as_f64() {
            Some(float) if float < 0.0 => Ok(0),
            // Below 2^53 a whole float is exact.
            Some(float) if float.fract() == 0.0 && float < 9_007_199_254_740_992.0 => {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let whole = float as u64;
                Ok(whole)
            }
            _ => Err(format!("'{field}' must be a whole number, not {number}")),
        }
    }
}

impl Field for bool {
    fn schema() -> Value {
        serde_json::json!({"type": "boolean"})
    }

    fn from_value(value: Value, field: &str) -> Result<bool, String> {
        match &value {
            Value::Bool(flag) => Ok(*flag),
            Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            other => Err(wrong_shape::<bool>(field, other)),
        }
    }
}

impl<F: Field> Field for Option<F> {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        F::schema()
    }

    fn from_value(value: Value, field: &str) -> Result<Option<F>, String> {
        F::from_value(value, field).map(Some)
    }

    fn missing(_field: &str) -> Result<Option<F>, String> {
        Ok(None)
    }
}

impl<F: Field> Field for Vec<F> {
    fn schema() -> Value {
        serde_json::json!({"type": "array", "items": F::schema()})
    }

    fn from_value(value: Value, field: &str) -> Result<Vec<F>, String> {
        let items = match value {
            Value::Array(items) => items,
            // A list that was encoded as a string.
            Value::String(text) if text.trim_start().starts_with('[') => {
                match serde_json::from_str(&text) {
                    Ok(Value::Array(items)) => items,
                    _ => vec![Value::String(text)],
                }
            }
            one => vec![one],
        };
        let read = |(idx, item)| F::from_value(item, &format!("{field}[{idx}]"));
        items.into_iter().enumerate().map(read).collect()
    }
}

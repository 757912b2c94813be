//! What a field can be, and how each kind is read.

use serde_json::Value;

use crate::tool::arguments::schema::Schema;
use crate::tool::arguments::{lenient, wrong_shape};

/// A type that can be a field of tool arguments.
pub trait Field: Sized {
    /// Its shape without the description.
    fn schema() -> Schema;

    /// Reads it; `field` is its path for messages (`edits[2].oldText`).
    fn from_value(value: Value, field: &str) -> Result<Self, String>;

    /// What it is when the call does not give it; an error when it must be given.
    fn missing(field: &str) -> Result<Self, String> {
        Err(format!("'{field}' is missing: it must be {}", Self::schema().describe()))
    }

    /// Whether the schema lists it under `required`.
    const REQUIRED: bool = true;
}

impl Field for String {
    fn schema() -> Schema {
        Schema::String
    }

    fn from_value(value: Value, field: &str) -> Result<String, String> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(wrong_shape::<String>(field, &other)),
        }
    }
}

impl Field for u64 {
    fn schema() -> Schema {
        Schema::Integer
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
    fn schema() -> Schema {
        Schema::Boolean
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

    fn schema() -> Schema {
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
    fn schema() -> Schema {
        Schema::Array(Box::new(F::schema()))
    }

    fn from_value(value: Value, field: &str) -> Result<Vec<F>, String> {
        let items = match value {
            Value::Array(items) => items,
            // A list that was encoded as a string.
            Value::String(text) if text.trim_start().starts_with('[') => match lenient(&text) {
                Some(Value::Array(items)) => items,
                _ => vec![Value::String(text)],
            },
            one => vec![one],
        };
        let read = |(idx, item)| F::from_value(item, &format!("{field}[{idx}]"));
        items.into_iter().enumerate().map(read).collect()
    }
}

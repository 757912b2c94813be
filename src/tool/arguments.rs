//! Typed tool arguments: one definition gives the struct, its JSON Schema and its parser.
//!
//! The parser forgives what models commonly get wrong and what can be read in one way only: a
//! number written as a string, one value where a list is expected, a list or an object encoded as
//! a string, `null` for "not given", an empty text for `{}`, another spelling of a name
//! (`old_text`), raw line breaks inside JSON strings. Everything else is an error that names the
//! field and the shape. A text that ends too early is never completed: it was cut.

mod field;
mod schema;

pub use field::Field;
pub use schema::{Property, Schema};

use serde_json::{Map, Value};

/// A set of named fields: the arguments of a tool, or an object inside them.
pub trait Arguments: Sized {
    /// The fields in order of definition.
    fn properties() -> Vec<Property>;

    /// Reads an object; `field` is its path for messages, empty for the arguments themselves.
    fn from_object(object: Map<String, Value>, field: &str) -> Result<Self, String>;

    /// Reads a call's argument text.
    fn parse(text: &str) -> Result<Self, String> {
        Self::from_object(object(text)?, "")
    }
}

/// The schema of `A` as compact JSON, properties in order of definition: the same bytes in every
/// run.
pub fn schema_text<A: Arguments>() -> String {
    Schema::Object(A::properties()).to_json()
}

/// A call's argument text as an object, before any field is looked at. For tools that have their
/// own forms to recover; the rest is [`Arguments::parse`].
pub fn object(text: &str) -> Result<Map<String, Value>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Map::new());
    }
    match read_json(text)? {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Map::new()),
        // An object inside a string: some servers encode twice.
        Value::String(inner) => match lenient(&inner) {
            Some(Value::Object(object)) => Ok(object),
            _ => Err("the arguments must be a JSON object, not a string".to_owned()),
        },
        other => Err(format!("the arguments must be a JSON object, not {}", kind_of(&other))),
    }
}

fn read_json(text: &str) -> Result<Value, String> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if error.is_eof() {
        return Err(
            "the arguments are cut off: their JSON ends before it is complete, probably at \
            the output limit; nothing was done: send it again in smaller pieces"
                .to_owned(),
        );
    }
    lenient(text).ok_or_else(|| format!("the arguments are no valid JSON: {error}"))
}

/// JSON, also with raw control characters inside its strings.
pub(crate) fn lenient(text: &str) -> Option<Value> {
    let exact = serde_json::from_str(text).ok();
    exact.or_else(|| serde_json::from_str(&escape_controls(text)?).ok())
}

/// The text with raw control characters inside its strings escaped; `None` if there are none.
fn escape_controls(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut in_string, mut after_backslash, mut changed) = (false, false, false);
    for c in text.chars() {
        match c {
            _ if after_backslash => after_backslash = false,
            '\\' => after_backslash = in_string,
            '"' => in_string = !in_string,
            '\0'..='\x1f' if in_string => {
                changed = true;
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    changed.then_some(out)
}

/// Defines a struct of tool arguments. Each field has a type that implements [`Field`] and a
/// description for the schema; the first string in parentheses is its name on the wire, further
/// ones are other names that are understood.
///
/// ```ignore
/// arguments! {
///     /// Arguments of `read`.
///     pub struct ReadArguments {
///         path("path", "filename"): Option<String> = "File to read.",
///         line_numbers("lineNumbers"): Option<bool> = "Number the lines (true).",
///     }
/// }
/// ```
#[macro_export]
macro_rules! arguments {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($field:ident $(($wire:literal $(, $alias:literal)*))? : $type:ty = $doc:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name { $(pub $field: $type),* }

        impl $crate::tool::arguments::Arguments for $name {
            fn properties() -> Vec<$crate::tool::arguments::Property> {
                use $crate::tool::arguments::{Field, Property, wire_name};
                vec![$(Property {
                    name: wire_name(stringify!($field), &[$($wire)?]),
                    schema: <$type as Field>::schema(),
                    doc: $doc,
                    is_required: <$type as Field>::REQUIRED,
                }),*]
            }

            fn from_object(
                object: serde_json::Map<String, serde_json::Value>,
                field: &str,
            ) -> Result<Self, String> {
                use $crate::tool::arguments::{known, take, wire_name};
                let names: &[(&str, &[&str])] = &[$((
                    wire_name(stringify!($field), &[$($wire)?]),
                    &[$($($alias),*)?],
                )),*];
                let mut object = known(object, names, field)?;
                Ok(Self {
                    $($field: take(&mut object, wire_name(stringify!($field), &[$($wire)?]), field)?),*
                })
            }
        }

        impl $crate::tool::arguments::Field for $name {
            fn schema() -> $crate::tool::arguments::Schema {
                $crate::tool::arguments::Schema::Object(
                    <$name as $crate::tool::arguments::Arguments>::properties(),
                )
            }

            fn from_value(value: serde_json::Value, field: &str) -> Result<Self, String> {
                use $crate::tool::arguments::{Arguments, inner_object};
                Self::from_object(inner_object::<Self>(value, field)?, field)
            }
        }
    };
}

pub use arguments;

/// The name on the wire: the given one, else the field's own.
#[doc(hidden)]
pub fn wire_name(field: &'static str, given: &[&'static str]) -> &'static str {
    given.first().copied().unwrap_or(field)
}

/// What models say of a call beside its arguments, as other programs ask them to. It asks for
/// nothing.
const REMARKS: &[&str] = &["description", "explanation"];

/// The object with every name in its known spelling. An unknown field is an error: dropping it
/// would do something else than was asked for.
#[doc(hidden)]
pub fn known(
    object: Map<String, Value>,
    names: &[(&str, &[&str])],
    parent: &str,
) -> Result<Map<String, Value>, String> {
    let (mut out, odd): (Map<_, _>, Vec<_>) = {
        let (exact, odd): (Vec<_>, Vec<_>) =
            object.into_iter().partition(|(name, _)| names.iter().any(|(known, _)| known == name));
        (exact.into_iter().collect(), odd)
    };
    for (name, value) in odd {
        let folded = fold(&name);
        let meant = names.iter().find(|(known, aliases)| {
            fold(known) == folded || aliases.iter().any(|alias| fold(alias) == folded)
        });
        match meant {
            _ if value.is_null() => {}
            // Given twice under two names: which one is meant cannot be known.
            Some((known, _)) if out.get(*known).is_none_or(Value::is_null) => {
                out.insert((*known).to_owned(), value);
            }
            None if parent.is_empty() && value.is_string() && REMARKS.contains(&name.as_str()) => {}
            _ => {
                let known: Vec<_> = names.iter().map(|(known, _)| *known).collect();
                return Err(format!(
                    "'{}' is no argument; known are {}",
                    join(parent, &name),
                    known.join(", ")
                ));
            }
        }
    }
    Ok(out)
}

/// `old_text`, `old-text` and `OldText` are one name.
fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect()
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

/// An object as a field's value, also when it was encoded as a string.
#[doc(hidden)]
pub fn inner_object<F: Field>(value: Value, field: &str) -> Result<Map<String, Value>, String> {
    let value = match value {
        Value::String(text) if text.trim_start().starts_with('{') => {
            lenient(&text).unwrap_or(Value::String(text))
        }
        other => other,
    };
    match value {
        Value::Object(object) => Ok(object),
        other => Err(wrong_shape::<F>(field, &other)),
    }
}

pub(crate) fn wrong_shape<F: Field>(field: &str, value: &Value) -> String {
    format!("'{field}' must be {}, not {}", F::schema().describe(), kind_of(value))
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

#[cfg(test)]
mod tests {
    use super::*;

    arguments! {
        struct Inner {
            path("path", "file"): String = "",
            limit: Option<u64> = "",
        }
    }

    arguments! {
        struct Outer {
            name: String = "Its name.",
            line_numbers("lineNumbers"): Option<bool> = "",
            count: Option<u64> = "How many.",
            parts: Option<Vec<Inner>> = "",
        }
    }

    fn outer(name: &str) -> Outer {
        Outer { name: name.to_owned(), line_numbers: None, count: None, parts: None }
    }

    fn inner(path: &str) -> Inner {
        Inner { path: path.to_owned(), limit: None }
    }

    #[test]
    fn the_schema_lists_the_fields_in_order() {
        assert_eq!(
            schema_text::<Outer>(),
            r#"{"type":"object","properties":{"name":{"type":"string","description":"Its name."},"#
                .to_owned()
                + r#""lineNumbers":{"type":"boolean"},"#
                + r#""count":{"type":"integer","description":"How many."},"#
                + r#""parts":{"type":"array","items":{"type":"object","properties":"#
                + r#"{"path":{"type":"string"},"limit":{"type":"integer"}},"required":["path"]}}},"#
                + r#""required":["name"]}"#
        );
    }

    #[track_caller]
    fn check(text: &str, want: Result<Outer, &str>) {
        assert_eq!(Outer::parse(text), want.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn what_can_be_read_in_one_way_is_read() {
        let full = Outer {
            line_numbers: Some(false),
            count: Some(7),
            parts: Some(vec![inner("a"), Inner { limit: Some(2), ..inner("b") }]),
            ..outer("x")
        };
        for text in [
            r#"{"name":"x","lineNumbers":false,"count":7,"parts":[{"path":"a"},{"path":"b","limit":2}]}"#,
            r#"{"name":"x","line_numbers":"False","count":"7","parts":"[{\"path\":\"a\"},{\"path\":\"b\",\"limit\":2}]"}"#,
            r#"{"Name":"x","LINE-NUMBERS":false,"count":7.0,"parts":["{\"file\":\"a\"}",{"path":"b","limit":"2","offset":null}]}"#,
            "\"{\\\"name\\\":\\\"x\\\",\\\"lineNumbers\\\":false,\\\"count\\\":7,\\\"parts\\\":[{\\\"path\\\":\\\"a\\\"},{\\\"path\\\":\\\"b\\\",\\\"limit\\\":2}]}\"",
        ] {
            check(text, Ok(full.clone()));
        }
        let one = Outer { parts: Some(vec![inner("a")]), count: Some(0), ..outer("x") };
        check(r#" {"name":"x","parts":{"path":"a"},"count":-3} "#, Ok(one));
        check("{\"name\":\"x\",\"count\":null}\n", Ok(outer("x")));
        check(r#"{"name":"x","description":"why","explanation":"more"}"#, Ok(outer("x")));
        check(
            "{\"name\":\"two\nlines,\ta \\\"tab\\\" \\\\\"}",
            Ok(outer("two\nlines,\ta \"tab\" \\")),
        );
    }

    #[test]
    fn everything_else_names_the_field_and_the_shape() {
        check("", Err("'name' is missing: it must be a string"));
        check("null", Err("'name' is missing: it must be a string"));
        check(r#"{"name":null}"#, Err("'name' is missing: it must be a string"));
        check(r#"{"name":3}"#, Err("'name' must be a string, not a number"));
        check(r#"{"name":["x"]}"#, Err("'name' must be a string, not a list"));
        check(
            r#"{"name":"x","count":"many"}"#,
            Err("'count' must be a whole number from 0, not a string"),
        );
        check(r#"{"name":"x","count":1.5}"#, Err("'count' must be a whole number, not 1.5"));
        check(
            r#"{"name":"x","lineNumbers":"maybe"}"#,
            Err("'lineNumbers' must be true or false, not a string"),
        );
        check(
            r#"{"name":"x","parts":[{"path":"a"},7]}"#,
            Err("'parts[1]' must be an object with path, limit, not a number"),
        );
        check(
            r#"{"name":"x","parts":[{"path":"a"},{"limit":7}]}"#,
            Err("'parts[1].path' is missing: it must be a string"),
        );
        check(
            r#"{"name":"x","parts":[{"path":"a","depth":7}]}"#,
            Err("'parts[0].depth' is no argument; known are path, limit"),
        );
        check(
            r#"{"name":"x","parts":[{"path":"a","file":"b"}]}"#,
            Err("'parts[0].file' is no argument; known are path, limit"),
        );
        check(
            r#"{"name":"x","description":["why"]}"#,
            Err("'description' is no argument; known are name, lineNumbers, count, parts"),
        );
        check("[1]", Err("the arguments must be a JSON object, not a list"));
        check("\"x\"", Err("the arguments must be a JSON object, not a string"));
        check(
            r#"{"name" "x"}"#,
            Err("the arguments are no valid JSON: expected `:` at line 1 column 9"),
        );
    }

    /// Whatever the place of the cut, nothing is completed and nothing is guessed.
    #[test]
    fn cut_arguments_are_refused_at_every_cut() {
        let text = r#"{"name":"n.md","parts":[{"path":"line 1\n\u00e9"}],"count":12}"#;
        for cut in 1..text.len() {
            let error = Outer::parse(&text[..cut]).unwrap_err();
            assert!(error.starts_with("the arguments are cut off"), "{}: {error}", &text[..cut]);
        }
        // Also where a raw line break precedes the cut.
        let error = Outer::parse("{\"name\":\"a\nb").unwrap_err();
        assert!(error.contains("no valid JSON"), "{error}");
    }
}

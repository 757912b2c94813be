//! The sample file, the reference page and the schema follow the table of keys.
//!
//! `UPDATE_FIXTURES=1` writes what is made from the table; the text around it is written by hand.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use etch::config::show::tables_in_order;
use etch::config::tables::{Field, PROFILES, TABLES};
use etch::config::{self, Key, Kind, Overrides, Trust, Value};
use etch::harness;
use etch::host::Host;
use serde_json::Value as Json;

use crate::support::command::{Place, TempDir, words};
use crate::support::schema;

const COLUMNS: usize = 80;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The keys that a file may hold.
fn file_keys() -> Vec<Key> {
    harness::keys().into_iter().filter(|key| key.kind != Kind::Secret).collect()
}

#[track_caller]
fn check_made(name: &str, want: &str) {
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        fs::write(file(name), want).unwrap();
        return;
    }
    let got = fs::read_to_string(file(name)).unwrap_or_default();
    for (idx, (got, want)) in got.lines().zip(want.lines()).enumerate() {
        assert_eq!(got, want, "{name}:{}; UPDATE_FIXTURES=1 writes it anew", idx + 1);
    }
    assert!(got == want, "{name} ends too early or too late; UPDATE_FIXTURES=1 writes it anew");
}

fn comment(out: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(out, "{line}");
            line = String::from("#");
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(out, "{line}");
}

/// A value that somebody could write, for what has no default.
fn example(kind: Kind) -> String {
    match kind {
        Kind::Text => "\"...\"".to_owned(),
        Kind::Path | Kind::ProjectPath => "\"path/to/it\"".to_owned(),
        Kind::Url => "\"http://127.0.0.1:8080/v1\"".to_owned(),
        Kind::Bool => "true".to_owned(),
        Kind::Int { min, .. } => min.to_string(),
        Kind::Choice(choices) => format!("\"{}\"", choices[0]),
        Kind::List => "[\"read\", \"grep\"]".to_owned(),
        Kind::Secret => String::new(),
    }
}

/// What the reader has to know beyond the type: bounds and choices.
fn range(kind: Kind) -> String {
    match kind {
        Kind::Int { .. } | Kind::Choice(_) => format!(" Wants {}.", kind.in_words()),
        _ => String::new(),
    }
}

fn field_of(key: &Key) -> Field {
    Field {
        name: key.leaf(),
        kind: key.kind,
        default: key.default,
        is_required: false,
        doc: key.doc,
    }
}

fn entry(out: &mut String, field: &Field) {
    let required = if field.is_required { " Required." } else { "" };
    comment(out, &format!("{}{}{required}", field.doc, range(field.kind)));
    match field.default_value() {
        Some(value) => writeln!(out, "#{} = {}", field.name, value.to_toml()),
        None => writeln!(out, "#{} = {}", field.name, example(field.kind)),
    }
    .unwrap();
}

fn sample() -> String {
    let mut out = String::new();
    comment(
        &mut out,
        "Every setting of etch. What is commented out shows the default, or an example where there \
         is none. Yours, for all projects: ~/.etch/config.toml. A project's: .etch/config.toml at \
         its root; what it may set before you trust it is in docs/configuration.md.",
    );
    out.push_str("#\n");
    out.push_str("# etch config check                      finds mistakes\n");
    out.push_str("# etch config show --effective --origin  says what is in force, and why\n");
    let keys = file_keys();
    for table in tables_in_order(&keys) {
        let _ = write!(out, "\n[{table}]\n");
        for key in keys.iter().filter(|key| key.table() == table) {
            out.push('\n');
            entry(&mut out, &field_of(key));
        }
    }
    for table in TABLES {
        out.push('\n');
        comment(&mut out, table.doc);
        let _ = writeln!(out, "#[[{}]]", table.name);
        for field in table.fields {
            out.push('\n');
            entry(&mut out, field);
        }
    }
    out
}

#[test]
fn the_sample_file_has_every_key_with_its_default() {
    check_made("sample-config.toml", &sample());
}

/// The settings of a file with this text, by `config check` without any other file.
fn load(text: &str) -> config::Loaded {
    let home = TempDir::new();
    home.write(".etch/config.toml", text);
    home.write("path/to/it", "prompt");
    let host = Host::fixed().with_home(home.path()).with_cwd(home.path());
    let loaded = config::load(&host, &harness::keys(), &Overrides::default());
    loaded.unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"))
}

#[test]
fn the_sample_file_loads_as_it_is_and_with_each_line_in_use() {
    let sample = fs::read_to_string(file("sample-config.toml")).unwrap();
    let plain = load(&sample);
    assert_eq!(plain.faults, []);
    for key in harness::keys() {
        let got = plain.config.get(key.name).map(|(value, _)| value.clone());
        assert_eq!(got, key.default_value(), "{}: as it is the file changes nothing", key.name);
    }
    // Each setting alone, under its table.
    let mut table = String::new();
    let mut lines = 0;
    for line in sample.lines() {
        if line.starts_with('[') || line.starts_with("#[[") {
            table = line.trim_start_matches('#').to_owned();
            continue;
        }
        let setting =
            line.strip_prefix('#').filter(|rest| !rest.starts_with(' ') && !rest.is_empty());
        let Some(setting) = setting else { continue };
        // Rows have required fields: `disabled` stands in for them.
        let disabled = if table.starts_with("[[") && !setting.starts_with("disabled") {
            "\ndisabled = true"
        } else {
            ""
        };
        // An example that another setting has to be there for.
        if setting == "disabled = false" {
            continue;
        }
        let loaded = load(&format!("{table}\n{setting}{disabled}\n"));
        assert_eq!(loaded.faults, [], "{table} {setting}");
        lines += 1;
    }
    assert!(lines > harness::keys().len(), "{lines}");
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn row(field: &Field, last: &str) -> String {
    let default = match field.default_value() {
        Some(value) => format!("`{}`", value.to_toml()),
        None => String::new(),
    };
    let wants = field.kind.in_words();
    let cells =
        [format!("`{}`", field.name), wants, default, last.to_owned(), field.doc.to_owned()];
    format!("| {} |\n", cells.map(|text| cell(&text)).join(" | "))
}

fn reference() -> String {
    let mut out = String::new();
    let keys = file_keys();
    for table in tables_in_order(&keys) {
        let _ = write!(
            out,
            "### `[{table}]`\n\n| key | wants | default | a project not trusted | |\n|---|---|---|---|---|\n"
        );
        for key in keys.iter().filter(|key| key.table() == table) {
            let trust = match (key.trust, key.kind) {
                (Trust::Own, _) => "never",
                (Trust::User, _) => "no",
                (Trust::Anyone, Kind::Path | Kind::ProjectPath) => "within the project",
                (Trust::Anyone, _) => "yes",
                (Trust::Downward, Kind::List) => "shorter",
                (Trust::Downward, _) => "lower",
            };
            out.push_str(&row(&field_of(key), trust));
        }
        out.push('\n');
    }
    for table in TABLES {
        let _ = write!(
            out,
            "### `[[{}]]`\n\n{} Not in a project that is not trusted.\n\n| key | wants | default | | |\n|---|---|---|---|---|\n",
            table.name, table.doc
        );
        for field in table.fields {
            out.push_str(&row(field, if field.is_required { "required" } else { "" }));
        }
        out.push('\n');
    }
    out
}

#[test]
fn the_page_describes_every_key() {
    const NAME: &str = "docs/configuration.md";
    const START: &str = "<!-- made from the table of keys -->\n\n";
    const END: &str = "<!-- end -->\n";
    let page = fs::read_to_string(file(NAME)).unwrap();
    let (before, rest) = page.split_once(START).expect("the page has the start mark");
    let (_, after) = rest.split_once(END).expect("the page has the end mark");
    check_made(NAME, &format!("{before}{START}{}{END}{after}", reference()));
}

#[test]
fn a_profile_takes_what_the_keys_of_the_main_run_take() {
    let pairs = [
        ("provider", "provider.name"),
        ("base_url", "openai.base_url"),
        ("openai_api", "openai.api"),
        ("reasoning_effort", "openai.reasoning_effort"),
        ("reasoning_summary", "openai.reasoning_summary"),
        ("max_tool_rounds", "session.max_tool_rounds"),
        ("keep_messages", "session.keep_messages"),
        ("auto_compact_threshold_tokens", "context.auto_compact_threshold_tokens"),
        ("keep_recent_tokens", "context.keep_recent_tokens"),
    ];
    for (field, key) in pairs {
        let known = harness::keys().into_iter().find(|known| known.name == key).unwrap();
        assert_eq!(PROFILES.field(field).unwrap().kind, known.kind, "{field}");
    }
}

#[test]
fn the_schema_describes_what_loads_and_refuses_what_does_not() {
    let ran = Place::new().etch(words("config schema")).run().exits(0);
    let root: Json = serde_json::from_str(ran.out()).unwrap();
    assert_eq!(ran.stderr, "");
    for key in file_keys() {
        let (table, leaf) = key.name.rsplit_once('.').unwrap();
        let mut at = &root;
        for part in table.split('.') {
            at = &at["properties"][part];
        }
        let found = &at["properties"][leaf];
        assert_eq!(found["description"], key.doc, "{}", key.name);
        let default = match key.default_value() {
            None => Json::Null,
            Some(Value::Int(int)) => int.into(),
            Some(Value::Bool(flag)) => flag.into(),
            Some(Value::List(list)) => list.into(),
            Some(Value::Text(text)) => text.into(),
            Some(Value::Path(path)) => path.to_string_lossy().into(),
            Some(Value::Secret(_)) => panic!("no secret has a default"),
        };
        assert_eq!(found["default"], default, "{}", key.name);
    }
    let check = |config: Json, fits: bool| {
        let checked = schema::check(&root, &config);
        assert_eq!(checked.is_ok(), fits, "{config}: {checked:?}");
    };
    let hook = serde_json::json!({ "command": "x" });
    let profile = serde_json::json!({ "name": "a", "description": "b", "allowed_tools": ["ls"] });
    check(serde_json::json!({}), true);
    check(serde_json::json!({ "session": { "max_tool_rounds": 3 } }), true);
    check(serde_json::json!({ "session": { "max_tool_rounds": 0 } }), false);
    check(serde_json::json!({ "session": { "max_tool_rounds": "3" } }), false);
    check(serde_json::json!({ "session": { "rounds": 3 } }), false);
    check(serde_json::json!({ "prompt": { "system_prompt": "x" } }), true);
    for (url, fits) in [
        ("http://h/v1", true),
        (" https://[::1]:8080/v1/ ", true),
        ("localhost:11434", true),
        ("ftp://h", false),
        ("http://u@h", false),
        ("http://", false),
    ] {
        check(serde_json::json!({ "openai": { "base_url": url } }), fits);
    }
    check(serde_json::json!({ "sesion": {} }), false);
    check(serde_json::json!({ "hooks": { "PreToolUse": [hook] } }), true);
    check(serde_json::json!({ "hooks": { "PreTool": [hook] } }), false);
    check(serde_json::json!({ "hooks": [hook] }), false);
    check(serde_json::json!({ "hooks": [{ "event": "TurnStart", "command": "x" }] }), true);
    check(serde_json::json!({ "plugins": [{ "name": "x" }] }), false);
    check(serde_json::json!({ "plugins": [{ "name": "x", "disabled": true }] }), true);
    check(serde_json::json!({ "subagents": { "enabled": true, "profile": [profile] } }), true);
    check(serde_json::json!({ "subagents": { "profile": { "name": "a" } } }), false);
}

//! The page `docs/log.md` against the program: examples, fields and exit codes.

use super::*;
use std::collections::BTreeSet;

use etch::command::exit::EXITS;
use etch::model::{Metrics, Opaque, Reasoning, Usage};
use etch::session::{Fold, NewSummary};
use serde_json::Value;

use crate::support::schema;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn schema_of(name: &str) -> Value {
    serde_json::from_str(&read(&format!("src/command/schema/{name}.json"))).unwrap()
}

/// The section of every event, by its type.
fn sections(page: &str) -> Vec<(String, String)> {
    let events = page.split("\n## Events\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let section = |text: &str| {
        let (head, body) = text.split_once('\n').unwrap();
        (head.trim_matches('`').to_owned(), body.to_owned())
    };
    events.split("\n### ").skip(1).map(section).collect()
}

/// What the examples are made of: a session in which everything happens.
fn everything() -> Vec<EventData> {
    let raw = |json: &str| serde_json::value::RawValue::from_string(json.into()).unwrap();
    let reasoning = Reasoning {
        text: "I should read it.".into(),
        field: "reasoning_content".into(),
        provider: "openai".into(),
        model: "qwen".into(),
    };
    let item = Opaque {
        provider: "openai".into(),
        model: "qwen".into(),
        item: raw(r#"{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA"}"#),
        at: 0,
    };
    let call = ToolCall {
        id: "call_a".into(),
        name: "read".into(),
        arguments: r#"{"path":"a.txt"}"#.into(),
        extra: None,
    };
    let parts = [Part::Text("Looking.".into()), Part::ToolCall(call)];
    let result = ToolResult {
        call_id: "call_a".into(),
        name: "read".into(),
        text: "1 | alpha".into(),
        status: etch::model::ResultStatus::Ok,
    };
    let usage = Usage { input: 100, cached_input: 40, output: 20, total: 120, ..Usage::default() };
    let metrics = Metrics {
        transport: "http".into(),
        requests: 1,
        request_bytes: 7714,
        response_bytes: 2013,
        input_messages: 2,
        tool_count: 7,
        time_to_headers_millis: 31,
        time_to_first_event_millis: 84,
        ..Metrics::default()
    };
    vec![
        EventData::user("what is in a.txt?"),
        EventData::reasoning(&reasoning),
        EventData::provider_item(&item),
        EventData::assistant(&parts, "openai", "qwen", Finish::ToolCalls),
        EventData::ModelUsage(usage),
        EventData::ModelResponse {
            provider_response_id: "chatcmpl-1".into(),
            model: "qwen-7b".into(),
        },
        EventData::ModelMetrics(metrics),
        EventData::tool(&result, &[], 2),
        EventData::ToolDenied {
            tool_call_id: "call_b".into(),
            name: "bash".into(),
            reason: "not among the tools of this run".into(),
            hook: None,
        },
        EventData::ModelRetry {
            attempt: 1,
            attempts_max: 4,
            delay_millis: 500,
            kind: "overloaded",
            message: "try later".into(),
            status: Some(529),
            output_discarded: false,
        },
        EventData::ModelChanged { provider: "openai".into(), model: "qwen-14b".into() },
        EventData::TurnStopped {
            stop: "cancelled",
            kind: Some("cancelled"),
            message: "interrupted".into(),
            partial: "I would beg".into(),
        },
        EventData::LogRepaired { line: 14, fragment_bytes: 211 },
        EventData::ContextSummary(Box::new(NewSummary {
            summary: "## Goal\nread a.txt".into(),
            range_start_id: "id-0003".into(),
            range_end_id: "id-0003".into(),
            first_kept_event_id: Some("id-0004".into()),
            request: Some("what is in a.txt?".into()),
            model: "qwen".into(),
            trigger: "manual",
            tokens_before: 5600,
            tokens_after: 2100,
            read_files: vec!["a.txt".into()],
            ..NewSummary::default()
        })),
        EventData::ContextFolded {
            results: vec![Fold {
                event_id: "id-0010".into(),
                stub: "[folded: a.txt was changed later; read it again if needed]".into(),
            }],
            tokens_before: 20_100,
            tokens_after: 11_900,
        },
        EventData::CompactionFailed {
            trigger: "auto",
            reason: "the model wrote an empty summary".into(),
            usage: None,
            metrics: None,
        },
        EventData::ModelWindow {
            provider: "openai".into(),
            model: "qwen".into(),
            context_tokens: 32_768,
        },
    ]
}

#[test]
fn every_example_is_the_line_that_is_written() {
    let host = Host::fixed();
    let mut log = Log::ephemeral(host.new_id(), started("/work"));
    let mut lines = Vec::new();
    for event in everything() {
        lines.extend(log.append(&host, &event).unwrap().lines.lines().map(str::to_owned));
    }
    let page = read("docs/log.md");
    let sections = sections(&page);
    let mut wrong = Vec::new();
    for line in &lines {
        let kind = etch::session::parse(line.as_bytes()).unwrap().kind.into_owned();
        let section = sections.iter().find(|(name, _)| *name == kind);
        let example = format!("```json\n{line}\n```");
        if !section.is_some_and(|(_, body)| body.contains(&example)) {
            wrong.push(line.as_str());
        }
    }
    assert!(wrong.is_empty(), "not in docs/log.md:\n{}", wrong.join("\n"));
    // A pointer has an example of its own.
    assert_eq!(lines.len() + 1, sections.len());
}

#[test]
fn the_example_of_a_pointer_is_the_line_that_is_written() {
    let temp = TempDir::new();
    let host = Host::fixed();
    let mut log = Log::create(&Store::open(temp.path()), &host, started("/work"), "t");
    let mut append = |event| log.append(&host, &event).unwrap().id;
    append(EventData::user("one"));
    let end = append(answers("1"));
    append(EventData::user("two"));
    append(answers("2"));
    log.go_to(&host, etch::session::Way::Rewind, &end, &mut ()).unwrap();
    let written = fs::read_to_string(log.path().unwrap()).unwrap();
    let line = written.lines().next_back().unwrap();
    assert!(read("docs/log.md").contains(&format!("```json\n{line}\n```")), "{line}");
}

#[test]
fn every_type_and_field_is_described_and_every_example_fits_the_schema() {
    let page = read("docs/log.md");
    let schema = schema_of("events");
    let mut described = BTreeSet::new();
    for (kind, body) in sections(&page) {
        let variants = schema["anyOf"].as_array().unwrap();
        let variant = variants.iter().find(|v| v["properties"]["type"]["const"] == kind.as_str());
        let data = &variant.unwrap_or_else(|| panic!("no type '{kind}'"))["properties"]["data"];
        let data = data.get("$ref").map_or(data, |_| &schema["$defs"]["usage"]);
        for field in data["properties"].as_object().unwrap().keys() {
            let named = body.contains(&format!("`{field}`")) || field == "content";
            assert!(named, "docs/log.md says nothing of '{field}' of {kind}");
        }
        let example = body.split("```json\n").nth(1).unwrap().split('\n').next().unwrap();
        let line: Value = serde_json::from_str(example).unwrap();
        assert_eq!(line["type"], kind.as_str());
        assert_eq!(schema::check(&schema, &line), Ok(()), "{example}");
        described.insert(kind);
    }
    // The one line that is no event.
    let delta = page.lines().find(|line| line.starts_with("{\"type\":\"model.delta\"")).unwrap();
    assert_eq!(schema::check(&schema, &serde_json::from_str(delta).unwrap()), Ok(()));
    described.insert("model.delta".to_owned());
    let typed = |variant: &Value| Some(variant["properties"]["type"]["const"].as_str()?.to_owned());
    let known: BTreeSet<String> =
        schema["anyOf"].as_array().unwrap().iter().filter_map(typed).collect();
    assert_eq!(described, known);
}

/// The rows of the table that begins with `head`, cell by cell.
fn table<'a>(page: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let (_, rest) = page.split_once(head).unwrap_or_else(|| panic!("no table {head}"));
    let rows = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn the_result_line_is_described_field_by_field() {
    let page = read("docs/log.md");
    let schema = schema_of("result");
    let rows = table(&page, "| field of `run.result` | |");
    let described: BTreeSet<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    let fields = schema["properties"].as_object().unwrap().keys().map(String::as_str);
    assert_eq!(described, fields.collect());
    let example = page.lines().find(|line| line.starts_with("{\"type\":\"run.result\"")).unwrap();
    assert_eq!(schema::check(&schema, &serde_json::from_str(example).unwrap()), Ok(()));
}

/// What a table says: each code with the words of its last cell.
fn codes(rows: &[Vec<&str>]) -> Vec<(u8, BTreeSet<String>)> {
    let mut codes = Vec::new();
    for row in rows {
        let stops: BTreeSet<String> =
            row.last().unwrap().split([',', '`', ' ']).map(str::to_owned).collect();
        for code in row[0].split([',', '/']) {
            codes.push((code.trim().parse().unwrap(), stops.clone()));
        }
    }
    codes.sort();
    codes
}

#[test]
fn every_page_has_the_exit_codes_of_the_program() {
    let words = |text: &str| text.split([',', '`', ' ']).map(str::to_owned).collect();
    let want: Vec<(u8, BTreeSet<String>)> =
        EXITS.iter().map(|exit| (exit.code, words(exit.stop))).collect();
    let clean = |codes: Vec<(u8, BTreeSet<String>)>| -> Vec<(u8, Vec<String>)> {
        let filled = |set: BTreeSet<String>| set.into_iter().filter(|w| !w.is_empty()).collect();
        codes.into_iter().map(|(code, stops)| (code, filled(stops))).collect()
    };
    let page = read("docs/log.md");
    assert_eq!(clean(codes(&table(&page, "| code | meaning | `stop` |"))), clean(want.clone()));
    let readme = read("README.md");
    let listed = codes(&table(&readme, "| code | meaning |"));
    let numbers = |codes: &[(u8, BTreeSet<String>)]| -> Vec<u8> {
        codes.iter().map(|(code, _)| *code).collect()
    };
    assert_eq!(numbers(&listed), numbers(&want));
    // Every stop has its place in the schema of the result line.
    let stops: BTreeSet<String> = clean(want).into_iter().flat_map(|(_, stops)| stops).collect();
    let known = schema_of("result")["properties"]["stop"]["enum"].clone();
    let known: BTreeSet<String> = serde_json::from_value(known).unwrap();
    assert_eq!(stops, known);
}

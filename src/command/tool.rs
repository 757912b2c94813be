//! `etch tool`: one of the model's tools, run by a person.
//!
//! Flags and words become the JSON arguments that a model would write; the tool itself reads
//! them. Needs neither a configuration nor a network. Exit code 0 when the tool did its work, 1
//! when it reports an error.

use std::io::Read;

use serde_json::{Map, Value, json};

use super::args::{ToolArgs, duration};
use super::out::{Out, say};
use super::parse::{Usage, list_or, nearest};
use super::{exit, interrupt};
use crate::agent::Stop;
use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::ResultStatus;
use crate::policy::{self, Decision, Limits};
use crate::tool::bash::{BashOptions, BashTool};
use crate::tool::{self, Caller, Registry, Tool, ToolContext, ToolOutput};
use crate::workspace::Workspace;

/// How the command line of one tool becomes its arguments.
struct Shape {
    name: &'static str,
    /// Fields of the words in order; how many of them are required.
    words: &'static [&'static str],
    words_required: usize,
    /// Which flags it takes, with their fields.
    flags: &'static [(&'static str, &'static str)],
}

const SHAPES: &[Shape] = &[
    Shape {
        name: "bash",
        words: &["command"],
        words_required: 1,
        flags: &[("timeout", "timeoutSeconds")],
    },
    Shape {
        name: "edit",
        words: &["path"],
        words_required: 1,
        flags: &[("old", "oldText"), ("new", "newText"), ("dry-run", "dryRun")],
    },
    Shape {
        name: "find",
        words: &["query", "path"],
        words_required: 0,
        flags: &[
            ("glob", "glob"),
            ("hidden", "hidden"),
            ("no-ignore", "ignored"),
            ("limit", "limit"),
        ],
    },
    Shape {
        name: "grep",
        words: &["pattern", "path"],
        words_required: 1,
        flags: &[
            ("regex", "regex"),
            ("ignore-case", "ignoreCase"),
            ("glob", "glob"),
            ("context", "context"),
            ("hidden", "hidden"),
            ("no-ignore", "ignored"),
            ("limit", "limit"),
        ],
    },
    Shape { name: "ls", words: &["path"], words_required: 0, flags: &[("limit", "limit")] },
    Shape {
        name: "read",
        words: &["path"],
        words_required: 1,
        flags: &[("offset", "offset"), ("limit", "limit")],
    },
    Shape { name: "write", words: &["path"], words_required: 1, flags: &[("content", "content")] },
];

/// A person may wait as long as they please; a model may not.
const BASH_SECONDS_MAX: u64 = 24 * 60 * 60;

/// The most that `--content -` and `--args -` read.
const STDIN_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub fn run(args: &ToolArgs, host: &Host) -> Result<u8, Usage> {
    let registry = registry(host)?;
    let Some(name) = &args.name else {
        return Ok(list(&registry, args.json));
    };
    let Some(tool) = registry.get(name) else {
        let names: Vec<_> = registry.iter().map(|tool| tool.spec().name.as_str()).collect();
        return Err(unknown(name, &names));
    };
    let arguments = arguments(name, args)?;
    let workspace = workspace(args, host)?;
    let cancel = Cancel::new();
    // Ends the call, not the process: what the tool started is ended with it.
    interrupt::watch(&cancel);
    let cx = ToolContext { workspace: &workspace, host, cancel: &cancel, caller: Caller::Person };
    let output = call(tool, &arguments, &cx, args.read_outside);
    let code = match cancel.reason() {
        Some(reason) => Stop::Cancelled(reason).exit_code(),
        None if output.status != ResultStatus::Ok => exit::FAILED,
        None => exit::OK,
    };
    Ok(print(&output, args.json, code))
}

/// What a tool gives out, for who prints it elsewhere.
pub fn by_hand(args: &ToolArgs, host: &Host, cancel: &Cancel) -> Result<String, Usage> {
    let registry = registry(host)?;
    let names: Vec<_> = registry.iter().map(|tool| tool.spec().name.as_str()).collect();
    let Some(name) = &args.name else {
        return Err(Usage(format!("say which: {}", list_or(&names))));
    };
    let tool = registry.get(name).ok_or_else(|| unknown(name, &names))?;
    // Somebody else reads it: it is where the next prompts come from.
    if let Some((flag, _)) = args.given.iter().find(|(flag, value)| is_stdin(flag, value)) {
        return Err(Usage(format!("'--{flag} -' would take the chat's own input; give the text")));
    }
    let arguments = arguments(name, args)?;
    let workspace = workspace(args, host)?;
    let cx = ToolContext { workspace: &workspace, host, cancel, caller: Caller::Person };
    Ok(call(tool, &arguments, &cx, args.read_outside).text)
}

fn unknown(name: &str, names: &[&str]) -> Usage {
    let advice = match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("there are {}", names.join(", ")),
    };
    Usage(format!("unknown tool '{name}'; {advice}"))
}

fn workspace(args: &ToolArgs, host: &Host) -> Result<Workspace, Usage> {
    Workspace::new(host.cwd(), args.read_outside)
        .map_err(|error| Usage(format!("cannot work in '{}': {error}", host.cwd().display())))
}

fn registry(host: &Host) -> Result<Registry, Usage> {
    let options = BashOptions { timeout_seconds_max: BASH_SECONDS_MAX, ..BashOptions::default() };
    Registry::new(tool::built_in(BashTool::new(host, options))).map_err(Usage)
}

/// The same way that a model's call takes: what it needs, whether that is allowed, the run.
fn call(tool: &dyn Tool, arguments: &str, cx: &ToolContext<'_>, read_outside: bool) -> ToolOutput {
    let plan = match tool.plan(arguments, cx) {
        Ok(plan) => plan,
        Err(message) => return ToolOutput::error(message),
    };
    let limits = Limits { tools: None, root: cx.workspace.root(), read_outside, readable: &[] };
    match policy::decide(&tool.spec().name, &plan, &limits) {
        Decision::Allow => tool.run(arguments, cx),
        Decision::Deny(reason) => ToolOutput::error(reason),
    }
}

fn print(output: &ToolOutput, json: bool, code: u8) -> u8 {
    let mut out = Out::stdout();
    if json {
        let value = json!({
            "text": output.text,
            "status": output.status,
            "changed": output.changed,
        });
        out.json(&value.to_string());
        out.line("");
        return out.finish(code);
    }
    match output.text.strip_prefix("tool error: ") {
        Some(message) => say(message.trim_end()),
        None => {
            out.foreign(&output.text);
            if !output.text.ends_with('\n') {
                out.text("\n");
            }
        }
    }
    out.finish(code)
}

fn list(registry: &Registry, json: bool) -> u8 {
    let mut out = Out::stdout();
    if json {
        let tools: Vec<_> = registry
            .iter()
            .map(|tool| {
                let spec = tool.spec();
                let parameters: Value =
                    serde_json::from_str(&spec.parameters).unwrap_or(Value::Null);
                json!({
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": parameters,
                    "source": tool.source(),
                })
            })
            .collect();
        out.line(&Value::Array(tools).to_string());
    } else {
        for tool in registry.iter() {
            let spec = tool.spec();
            let body = super::help::wrap(&spec.description, 8, 78);
            out.line(&format!("{:<7} {body}", spec.name));
        }
    }
    out.finish(exit::OK)
}

/// The call's arguments as JSON text.
fn arguments(name: &str, args: &ToolArgs) -> Result<String, Usage> {
    if let Some((_, Some(text))) = args.given.iter().find(|(flag, _)| *flag == "args") {
        if let Some((other, _)) = args.given.iter().find(|(flag, _)| *flag != "args") {
            return Err(Usage(format!(
                "'--args' has all arguments: put those of '--{other}' in it"
            )));
        }
        if let Some(word) = args.words.first() {
            return Err(Usage(format!("'--args' has all arguments: put '{word}' in it")));
        }
        return if text == "-" { read_stdin() } else { Ok(text.clone()) };
    }
    let Some(shape) = SHAPES.iter().find(|shape| shape.name == name) else {
        return match args.words.as_slice() {
            [] => Ok("{}".to_owned()),
            [json] => Ok(json.clone()),
            [_, more, ..] => {
                Err(Usage(format!("unexpected argument '{more}': '{name}' takes one JSON object")))
            }
        };
    };
    let mut object = words(shape, &args.words)?;
    for (flag, value) in &args.given {
        let field = shape.flags.iter().find(|(known, _)| known == flag).map(|(_, field)| *field);
        let field = field.ok_or_else(|| wrong_flag(flag, shape))?;
        object.insert(field.to_owned(), flag_value(flag, value.as_deref())?);
    }
    if shape.name == "write" && !object.contains_key("content") {
        return Err(Usage::new("'etch tool write' needs --content TEXT, or --content - for stdin"));
    }
    if shape.name == "edit" {
        nest_edit(&mut object)?;
    }
    Ok(Value::Object(object).to_string())
}

fn words(shape: &Shape, words: &[String]) -> Result<Map<String, Value>, Usage> {
    let mut object = Map::new();
    if words.len() < shape.words_required {
        let missing = shape.words[words.len()].to_uppercase();
        return Err(Usage(format!("'etch tool {}' needs {missing}", shape.name)));
    }
    if shape.name == "bash" {
        object.insert("command".to_owned(), Value::String(words.join(" ")));
        return Ok(object);
    }
    if let Some(word) = words.get(shape.words.len()) {
        return Err(Usage(format!("unexpected argument '{word}'; see 'etch help tool'")));
    }
    for (field, word) in shape.words.iter().zip(words) {
        object.insert((*field).to_owned(), Value::String(word.clone()));
    }
    Ok(object)
}

fn wrong_flag(flag: &str, shape: &Shape) -> Usage {
    let owners: Vec<_> = SHAPES
        .iter()
        .filter(|other| other.flags.iter().any(|(known, _)| *known == flag))
        .map(|other| other.name)
        .collect();
    Usage(format!("'--{flag}' is no argument of '{}', but of {}", shape.name, list_or(&owners)))
}

fn flag_value(flag: &str, value: Option<&str>) -> Result<Value, Usage> {
    let Some(value) = value else { return Ok(Value::Bool(true)) };
    match flag {
        "limit" | "offset" | "context" => match value.parse::<u64>() {
            Ok(number) => Ok(number.into()),
            Err(_) => Err(Usage(format!("'--{flag}' is a whole number, not '{value}'"))),
        },
        // The tool counts in whole seconds.
        "timeout" => {
            let time = duration(value, "--timeout")?;
            Ok(time.as_secs().max(1).into())
        }
        "content" if value == "-" => read_stdin().map(Value::String),
        _ => Ok(Value::String(value.to_owned())),
    }
}

/// One edit from `--old` and `--new`.
fn nest_edit(object: &mut Map<String, Value>) -> Result<(), Usage> {
    match (object.remove("oldText"), object.remove("newText")) {
        (Some(old), Some(new)) => {
            object.insert("edits".to_owned(), json!([{"oldText": old, "newText": new}]));
            Ok(())
        }
        _ => Err(Usage::new("'etch tool edit' needs --old TEXT and --new TEXT")),
    }
}

fn is_stdin(flag: &str, value: &Option<String>) -> bool {
    matches!(flag, "args" | "content") && value.as_deref() == Some("-")
}

fn read_stdin() -> Result<String, Usage> {
    let mut bytes = Vec::new();
    let stdin = std::io::stdin().lock();
    stdin
        .take(STDIN_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Usage(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > STDIN_BYTES_MAX {
        return Err(Usage::new("standard input is longer than 64 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| Usage::new("standard input is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, words: &[&str], given: &[(&'static str, Option<&str>)], want: &str) {
        let args = ToolArgs {
            name: Some(name.to_owned()),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            given: given.iter().map(|(flag, value)| (*flag, value.map(str::to_owned))).collect(),
            json: false,
            read_outside: false,
        };
        let got = arguments(name, &args).unwrap_or_else(|usage| usage.to_string());
        assert_eq!(got, want);
    }

    #[test]
    fn words_and_flags_become_the_arguments_of_a_call() {
        check("ls", &[], &[], "{}");
        check(
            "find",
            &[],
            &[("hidden", None), ("no-ignore", None)],
            r#"{"hidden":true,"ignored":true}"#,
        );
        check("read", &["a"], &[("offset", Some("3"))], r#"{"offset":3,"path":"a"}"#);
        check(
            "grep",
            &["x", "src"],
            &[("regex", None)],
            r#"{"path":"src","pattern":"x","regex":true}"#,
        );
        check(
            "bash",
            &["echo", "a  b"],
            &[("timeout", Some("2m"))],
            r#"{"command":"echo a  b","timeoutSeconds":120}"#,
        );
        check(
            "edit",
            &["f"],
            &[("old", Some("a")), ("new", Some("")), ("dry-run", None)],
            r#"{"dryRun":true,"edits":[{"newText":"","oldText":"a"}],"path":"f"}"#,
        );
        check("read", &[], &[("args", Some(r#"{"path":"a"}"#))], r#"{"path":"a"}"#);
        check("clock", &[r#"{"zone":1}"#], &[], r#"{"zone":1}"#);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        check("read", &[], &[], "'etch tool read' needs PATH");
        check("read", &["a", "b"], &[], "unexpected argument 'b'; see 'etch help tool'");
        check(
            "read",
            &["a"],
            &[("old", Some("x"))],
            "'--old' is no argument of 'read', but of edit",
        );
        check("read", &["a"], &[("limit", Some("x"))], "'--limit' is a whole number, not 'x'");
        check(
            "edit",
            &["a"],
            &[("old", Some("x"))],
            "'etch tool edit' needs --old TEXT and --new TEXT",
        );
        check(
            "write",
            &["a"],
            &[],
            "'etch tool write' needs --content TEXT, or --content - for stdin",
        );
        check("ls", &["a"], &[("args", Some("{}"))], "'--args' has all arguments: put 'a' in it");
    }

    #[test]
    fn every_shape_is_a_built_in_tool() {
        let names: Vec<_> = SHAPES.iter().map(|shape| shape.name).collect();
        assert_eq!(names, tool::NAMES);
    }
}

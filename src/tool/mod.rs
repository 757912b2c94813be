//! The `Tool` trait, its context, the registry, and the built-in tools, one file each.
//!
//! A tool never decides whether it may run and never talks to the person: it says in
//! [`Tool::plan`] what a call needs, and returns text for the model from [`Tool::run`]. Failures
//! are results, not errors of the turn.

pub mod arguments;
pub mod bash;
pub mod change;
pub mod edit;
pub mod find;
pub mod grep;
pub mod ls;
pub mod read;
mod search;
pub mod write;

use std::time::Duration;

use crate::cancel::Cancel;
use crate::host::Host;
use crate::model::{ResultStatus, ToolSpec};
use crate::workspace::Workspace;

/// How a call may overlap with its neighbours in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// Changes nothing: runs beside other read-only and isolated calls.
    ReadOnly,
    /// Changes only what is its own: runs beside others.
    Isolated,
    /// A barrier: runs alone.
    Serial,
}

/// What a call needs that a person may want to refuse. Paths are absolute and resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    Read(std::path::PathBuf),
    Write(std::path::PathBuf),
    /// Runs a command line in a shell.
    Shell(String),
}

/// What is known of a call before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub overlap: Overlap,
    /// Calls with the same lane never overlap, whatever their group.
    pub lane: Option<String>,
    /// Everything the call needs. A mutating call names at least one `Write` or `Shell`.
    pub needs: Vec<Need>,
}

impl Plan {
    /// A call that needs nothing.
    pub fn nothing() -> Plan {
        Plan { overlap: Overlap::ReadOnly, lane: None, needs: Vec::new() }
    }
}

/// Who asked for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A model: read-before-edit applies, output limits apply.
    Model,
    /// A person, by `etch tool`.
    Person,
}

/// What a call may use.
pub struct ToolContext<'a> {
    pub workspace: &'a Workspace,
    pub host: &'a Host,
    pub cancel: &'a Cancel,
    pub caller: Caller,
}

/// A call's result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// For the model: plain text, bounded by the tool's own limit, never empty.
    pub text: String,
    pub status: ResultStatus,
    /// Files that were changed, relative to the working directory, with `/`.
    pub changed: Vec<String>,
}

impl ToolOutput {
    pub fn ok(text: impl Into<String>) -> ToolOutput {
        ToolOutput { text: text.into(), status: ResultStatus::Ok, changed: Vec::new() }
    }

    /// A failure as data for the model: `tool error: ` and what happened, where, what to do.
    pub fn error(message: impl std::fmt::Display) -> ToolOutput {
        ToolOutput {
            text: format!("tool error: {message}"),
            status: ResultStatus::Error,
            changed: Vec::new(),
        }
    }

    pub fn interrupted() -> ToolOutput {
        ToolOutput {
            text: "tool error: interrupted before it finished".to_owned(),
            status: ResultStatus::Interrupted,
            changed: Vec::new(),
        }
    }
}

/// A tool that a model can call.
pub trait Tool: Send + Sync {
    /// Name, description and JSON Schema; the same text on every call and in every run.
    fn spec(&self) -> &ToolSpec;

    /// Where the tool comes from: `built-in`, or a plugin's name.
    fn source(&self) -> &str {
        "built-in"
    }

    /// The longest a call may take, beside what its own arguments say.
    fn timeout(&self) -> Duration;

    /// The most text, in bytes, that a result has.
    fn output_bytes_max(&self) -> usize;

    /// What the call needs, or why its arguments are wrong (text for the model, without the
    /// `tool error: ` prefix). Reads the file system at most to resolve paths.
    fn plan(&self, arguments: &str, cx: &ToolContext<'_>) -> Result<Plan, String>;

    /// Runs the call. Blocks at most until `cx.cancel` closes plus 50 ms, or the timeout.
    fn run(&self, arguments: &str, cx: &ToolContext<'_>) -> ToolOutput;
}

/// The names of [`built_in`] tools, sorted.
pub const NAMES: &[&str] = &["bash", "edit", "find", "grep", "ls", "read", "write"];

/// The tools that every etch has; how commands run is for the caller to say.
pub fn built_in(bash: bash::BashTool) -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(bash),
        Box::new(edit::EditTool::default()),
        Box::new(find::FindTool::default()),
        Box::new(grep::GrepTool::default()),
        Box::new(ls::LsTool::default()),
        Box::new(read::ReadTool::default()),
        Box::new(write::WriteTool::default()),
    ]
}

/// The tools of a run, sorted by name.
pub struct Registry {
    tools: Vec<Box<dyn Tool>>,
}

impl Registry {
    /// Fails on a duplicate or illegal name.
    pub fn new(mut tools: Vec<Box<dyn Tool>>) -> Result<Registry, String> {
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        for pair in tools.windows(2) {
            if pair[0].spec().name == pair[1].spec().name {
                return Err(format!("two tools are named '{}'", pair[0].spec().name));
            }
        }
        for tool in &tools {
            let name = &tool.spec().name;
            let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            if name.is_empty() || name.len() > 64 || !name.bytes().all(legal) {
                return Err(format!("'{name}' is no tool name: use 1 to 64 of A-Z a-z 0-9 _ -"));
            }
        }
        Ok(Registry { tools })
    }

    pub fn get(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.spec().name == name).map(|tool| &**tool)
    }

    pub fn iter(&self) -> impl Iterator<Item = &dyn Tool> {
        self.tools.iter().map(|tool| &**tool)
    }

    pub fn specs(&self) -> Vec<ToolSpec> {
        self.iter().map(|tool| tool.spec().clone()).collect()
    }
}

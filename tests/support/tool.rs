//! Built-in tools called in a folder of the test's own, as a model or a person would.

use std::path::{Path, PathBuf};

use etch::cancel::Cancel;
use etch::host::Host;
use etch::model::ResultStatus;
use etch::tool::edit::EditTool;
use etch::tool::find::FindTool;
use etch::tool::grep::GrepTool;
use etch::tool::ls::LsTool;
use etch::tool::read::ReadTool;
use etch::tool::write::WriteTool;
use etch::tool::{Caller, Plan, Registry, Tool, ToolContext, ToolOutput};
use etch::workspace::Workspace;
use serde_json::Value;

use crate::support::command::TempDir;

/// The tools that list, search, read and change files.
pub fn file_tools() -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(EditTool::default()),
        Box::new(FindTool::default()),
        Box::new(GrepTool::default()),
        Box::new(LsTool::default()),
        Box::new(ReadTool::default()),
        Box::new(WriteTool::default()),
    ]
}

/// A working tree and what a run has seen of it.
pub struct Tree {
    /// Holds `code`, which is the tree; everything else in it is outside.
    pub dir: TempDir,
    pub workspace: Workspace,
    pub cancel: Cancel,
    host: Host,
    tools: Registry,
}

impl Tree {
    pub fn new() -> Tree {
        Tree::with(false)
    }

    /// One whose file tools may read everywhere.
    pub fn reading_outside() -> Tree {
        Tree::with(true)
    }

    fn with(read_outside: bool) -> Tree {
        let dir = TempDir::new();
        let work = dir.path().join("code");
        std::fs::create_dir(&work).unwrap();
        Tree {
            workspace: Workspace::new(&work, read_outside).unwrap(),
            cancel: Cancel::new(),
            host: Host::fixed().with_cwd(work),
            tools: Registry::new(file_tools()).unwrap(),
            dir,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.workspace.root().join(name)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.dir.write(&format!("code/{name}"), content)
    }

    /// The bytes of a file, made readable.
    pub fn bytes(&self, name: &str) -> String {
        std::fs::read(self.path(name)).unwrap().escape_ascii().to_string()
    }

    /// A call by the model with this JSON text.
    pub fn call(&self, tool: &str, arguments: &str) -> ToolOutput {
        self.call_by(Caller::Model, tool, arguments)
    }

    pub fn call_by(&self, caller: Caller, tool: &str, arguments: &str) -> ToolOutput {
        let cx = self.context(caller);
        let tool = self.tools.get(tool).unwrap();
        match tool.plan(arguments, &cx) {
            Ok(_) => {
                let output = tool.run(arguments, &cx);
                assert!(output.text.len() <= tool.output_bytes_max(), "{}", output.text.len());
                output
            }
            Err(message) => ToolOutput::error(message),
        }
    }

    pub fn plan(&self, tool: &str, arguments: Value) -> Result<Plan, String> {
        self.tools.get(tool).unwrap().plan(&arguments.to_string(), &self.context(Caller::Model))
    }

    fn context(&self, caller: Caller) -> ToolContext<'_> {
        ToolContext { workspace: &self.workspace, host: &self.host, cancel: &self.cancel, caller }
    }

    /// The text of a call that must succeed.
    #[track_caller]
    pub fn ok(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, &arguments.to_string());
        assert_eq!(output.status, ResultStatus::Ok, "{arguments}: {}", output.text);
        output.text
    }

    /// The message of a call that must fail.
    #[track_caller]
    pub fn error(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, &arguments.to_string());
        assert_eq!(output.status, ResultStatus::Error, "{arguments}: {}", output.text);
        assert_eq!(output.changed, Vec::<String>::new());
        let text = output.text.strip_prefix("tool error: ");
        text.unwrap_or_else(|| panic!("{}", output.text)).to_owned()
    }

    /// Lets the model have read a file.
    #[track_caller]
    pub fn read(&self, name: &str) {
        self.ok("read", serde_json::json!({"path": name, "limit": 1}));
    }
}

/// Names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

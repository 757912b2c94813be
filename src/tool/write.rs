//! The tool `write`: a file's whole content, in place of what stood there.
//!
//! A file that the model has not read, or that changed since, is not replaced: what would be
//! lost was never seen. An empty file and one that already has the content are no loss.

use std::time::Duration;

use crate::model::ToolSpec;
use crate::text;
use crate::tool::arguments::{Arguments, arguments, schema_text};
use crate::tool::change::{self, Before, DIFF_BYTES_MAX, FILE_BYTES_MAX};
use crate::tool::{Need, Overlap, Plan, Tool, ToolContext, ToolOutput};
use crate::workspace::Access;
use crate::workspace::atomic::Expect;
use crate::workspace::identity::Stamp;

arguments! {
    /// Arguments of `write`.
    pub struct WriteArguments {
        path("path", "filePath", "file", "filename"): String = "",
        content("content", "contents", "text"): String = "",
    }
}

pub struct WriteTool {
    spec: ToolSpec,
}

impl Default for WriteTool {
    fn default() -> WriteTool {
        WriteTool {
            spec: ToolSpec {
                name: "write".to_owned(),
                description: "Create a file, or replace all of one that you have read. Makes \
                              missing folders. To change a part use edit."
                    .to_owned(),
                parameters: schema_text::<WriteArguments>(),
            },
        }
    }
}

impl Tool for WriteTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn output_bytes_max(&self) -> usize {
        DIFF_BYTES_MAX + 4 * 1024
    }

    fn plan(&self, arguments: &str, cx: &ToolContext<'_>) -> Result<Plan, String> {
        let arguments = WriteArguments::parse(arguments)?;
        let resolved = cx.workspace.resolve(&arguments.path, Access::Write);
        let needs = vec![Need::Write(resolved.map_err(|error| error.0)?.absolute)];
        Ok(Plan { overlap: Overlap::Serial, lane: None, needs })
    }

    fn run(&self, arguments: &str, cx: &ToolContext<'_>) -> ToolOutput {
        let written = WriteArguments::parse(arguments).and_then(|arguments| write(&arguments, cx));
        written.unwrap_or_else(ToolOutput::error)
    }
}

fn write(arguments: &WriteArguments, cx: &ToolContext<'_>) -> Result<ToolOutput, String> {
    let resolved = cx.workspace.resolve(&arguments.path, Access::Write).map_err(|error| error.0)?;
    let shown = &resolved.shown;
    let content = arguments.content.as_bytes();
    let (expect, diff) = match change::load(&resolved)? {
        Before::Absent => (Expect::Absent, String::new()),
        Before::Large(id) => {
            change::check_seen(cx, &resolved, Stamp::Identity(id))?;
            let limit = text::human_bytes(FILE_BYTES_MAX);
            (Expect::Same(id), format!("\n\n[no diff: the old file was over {limit}]"))
        }
        Before::File(old) => {
            let stamp = Stamp::of(&old.bytes, old.id);
            if old.bytes == content {
                cx.workspace.reads().note(&resolved.absolute, stamp);
                let text =
                    format!("{shown} already has exactly this content; nothing was written.");
                return Ok(ToolOutput::ok(text));
            }
            if !old.bytes.is_empty() {
                change::check_seen(cx, &resolved, stamp)?;
            }
            (Expect::Same(old.id), change::diff_text(cx, &resolved, &old.bytes, content))
        }
    };
    let how = change::store(cx, &resolved, content, expect)?;
    let bytes = text::plural(content.len() as u64, "byte");
    let remark = change::remark(how);
    let text = format!("Successfully wrote {bytes} to {shown}{remark}.{diff}");
    Ok(ToolOutput { changed: vec![resolved.shown], ..ToolOutput::ok(text) })
}

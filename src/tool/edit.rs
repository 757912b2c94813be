//! The tool `edit`: exact replacements in one file.
//!
//! Every old text must stand exactly once in the original (or everywhere, with `replaceAll`);
//! all are located in the original before anything is replaced, and either all apply or none.
//! Outside the replaced spans every byte stays. What does not fit is explained, never bent.

mod explain;
mod fold;
mod locate;

use std::time::Duration;

use crate::model::ToolSpec;
use crate::text;
use crate::tool::arguments::{Arguments, arguments, object, schema_text};
use crate::tool::change::{self, Before, DIFF_BYTES_MAX, FILE_BYTES_MAX};
use crate::tool::{Need, Overlap, Plan, Tool, ToolContext, ToolOutput};
use crate::workspace::Access;
use crate::workspace::atomic::Expect;
use crate::workspace::encoding::judge;
use crate::workspace::identity::Stamp;
use explain::explain;
use locate::{Misfit, Wanted, locate, splice};
use serde_json::{Map, Value};

arguments! {
    /// Arguments of `edit`.
    pub struct EditArguments {
        path("path", "filePath", "file", "filename"): String = "",
        edits: Vec<Replacement> = "All are found in the original; no overlaps",
        dry_run("dryRun"): Option<bool> = "Only show the diff",
    }
}

arguments! {
    /// One replacement.
    pub struct Replacement {
        old_text("oldText", "oldString", "oldStr", "old", "search"): String
            = "Exact text, must stand once in the file",
        new_text("newText", "newString", "newStr", "new", "replace", "replacement"): String = "",
        replace_all("replaceAll", "all"): Option<bool> = "Every match",
    }
}

impl Replacement {
    fn wanted(&self) -> Wanted<'_> {
        let all = self.replace_all == Some(true);
        Wanted { old: &self.old_text, new: &self.new_text, all }
    }
}

pub struct EditTool {
    spec: ToolSpec,
}

impl Default for EditTool {
    fn default() -> EditTool {
        EditTool {
            spec: ToolSpec {
                name: "edit".to_owned(),
                description: "Replace exact text in a file that you have read. oldText is the \
                              file's own text without line numbers, with enough lines around to \
                              be unique."
                    .to_owned(),
                parameters: schema_text::<EditArguments>(),
            },
        }
    }
}

/// The fields of one replacement given beside `path` mean one edit.
fn recover(object: &mut Map<String, Value>) {
    if object.contains_key("edits") {
        return;
    }
    let own = |name: &str| {
        let name = name.replace(['_', '-'], "").to_ascii_lowercase();
        ["path", "filepath", "file", "filename", "dryrun"].contains(&name.as_str())
    };
    let names: Vec<_> = object.keys().filter(|name| !own(name)).cloned().collect();
    let fields = names.into_iter().filter_map(|name| object.remove_entry(&name));
    let replacement: Map<_, _> = fields.collect();
    if !replacement.is_empty() {
        object.insert("edits".to_owned(), Value::Array(vec![Value::Object(replacement)]));
    }
}

fn parse(arguments: &str) -> Result<EditArguments, String> {
    let mut object = object(arguments)?;
    recover(&mut object);
    let arguments = EditArguments::from_object(object, "")?;
    if arguments.edits.is_empty() {
        return Err(
            "at least one edit is required: 'edits' is a list of objects with oldText and \
                    newText"
                .to_owned(),
        );
    }
    Ok(arguments)
}

impl Tool for EditTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn output_bytes_max(&self) -> usize {
        DIFF_BYTES_MAX + 8 * 1024
    }

    fn plan(&self, arguments: &str, cx: &ToolContext<'_>) -> Result<Plan, String> {
        let arguments = parse(arguments)?;
        let resolved = cx.workspace.resolve(&arguments.path, Access::Write);
        let path = resolved.map_err(|error| error.0)?.absolute;
        let (overlap, need) = match arguments.dry_run {
            Some(true) => (Overlap::ReadOnly, Need::Read(path)),
            _ => (Overlap::Serial, Need::Write(path)),
        };
        Ok(Plan { overlap, lane: None, needs: vec![need] })
    }

    fn run(&self, arguments: &str, cx: &ToolContext<'_>) -> ToolOutput {
        let edited = parse(arguments).and_then(|arguments| edit(&arguments, cx));
        edited.unwrap_or_else(ToolOutput::error)
    }
}

fn edit(arguments: &EditArguments, cx: &ToolContext<'_>) -> Result<ToolOutput, String> {
    let resolved = cx.workspace.resolve(&arguments.path, Access::Write).map_err(|error| error.0)?;
    let shown = &resolved.shown;
    let old = match change::load(&resolved)? {
        Before::File(old) => old,
        Before::Absent => {
            return Err(format!("{shown} does not exist: edit changes a file, write creates one"));
        }
        Before::Large(id) => {
            let [size, limit] = [id.len, FILE_BYTES_MAX].map(text::human_bytes);
            return Err(format!(
                "{shown} has {size}, more than edit holds in memory ({limit}): change it with bash"
            ));
        }
    };
    judge(&old.bytes)
        .map_err(|why| format!("{shown} is {why}, so it was not edited; {}", why.advice()))?;
    change::check_seen(cx, &resolved, Stamp::of(&old.bytes, old.id))?;
    let wanted: Vec<Wanted<'_>> = arguments.edits.iter().map(Replacement::wanted).collect();
    let regions = locate(&old.bytes, &wanted)
        .map_err(|misfit| format!("{shown}: {}", describe(&misfit, &old.bytes, &wanted)))?;
    let new = splice(&old.bytes, &regions);
    if new == old.bytes {
        return Err(format!("{shown}: edit produced no changes: newText is the same as oldText"));
    }
    let count = text::plural(wanted.len() as u64, "edit");
    let diff = change::diff_text(cx, &resolved, &old.bytes, &new);
    if arguments.dry_run == Some(true) {
        return Ok(ToolOutput::ok(format!("Previewed {count} for {shown}.{diff}")));
    }
    let how = change::store(cx, &resolved, &new, Expect::Same(old.id))?;
    let remark = change::remark(how);
    let text = format!("Successfully applied {count} to {shown}{remark}.{diff}");
    Ok(ToolOutput { changed: vec![resolved.shown], ..ToolOutput::ok(text) })
}

/// A misfit in words; edits are counted from 1 there.
fn describe(misfit: &Misfit, original: &[u8], wanted: &[Wanted<'_>]) -> String {
    match misfit {
        Misfit::Empty { edit_idx } => format!(
            "edit {} oldText must not be empty: send the exact text to replace (to insert, a line \
             that stands there and the same line with the new text; to replace the whole file, \
             write)",
            edit_idx + 1
        ),
        Misfit::Blank { edit_idx } => format!(
            "edit {} oldText must include non-whitespace context: send the lines around the place",
            edit_idx + 1
        ),
        Misfit::NotFound { edit_idx } => {
            let Wanted { old, new, .. } = wanted[*edit_idx];
            format!("edit {} oldText was not found{}", edit_idx + 1, explain(original, old, new))
        }
        Misfit::Ambiguous { edit_idx, lines, more } => {
            let count = lines.len() as u64 + more;
            let mut lines = lines.clone();
            lines.dedup();
            let list = lines.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            let s = if lines.len() == 1 { "" } else { "s" };
            let more = if *more > 0 { format!(" and {more} more") } else { String::new() };
            format!(
                "edit {} oldText is ambiguous: it matches {count} places (line{s} {list}{more}); \
                 include more surrounding lines, or set replaceAll",
                edit_idx + 1
            )
        }
        Misfit::Overlap { first_idx, second_idx, line } => format!(
            "edits {} and {} overlap at line {line}: send them as one edit",
            first_idx + 1,
            second_idx + 1
        ),
    }
}

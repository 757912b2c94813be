//! The tool `ls`: the names in a folder, whatever ignore rules say, sorted without regard to case.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use crate::model::ToolSpec;
use crate::sys::dir::Dir;
use crate::text;
use crate::tool::arguments::{Arguments, arguments, schema_text};
use crate::tool::{Need, Overlap, Plan, Tool, ToolContext, ToolOutput};
use crate::workspace::walk::{Kind, kind_of};
use crate::workspace::{Access, Resolved, is_internal, names, reason};

const ENTRIES_DEFAULT: u64 = 500;
/// What one result may list: names have at most 255 bytes, four times that when escaped.
const OUTPUT_BYTES_MAX: usize = 50 * 1024;
const BUFFER_BYTES: usize = 32 * 1024;

arguments! {
    /// Arguments of `ls`.
    pub struct LsArguments {
        path("path", "dir", "directory", "folder"): Option<String> = "",
        limit: Option<u64> = "",
    }
}

pub struct LsTool {
    spec: ToolSpec,
}

impl Default for LsTool {
    fn default() -> LsTool {
        LsTool {
            spec: ToolSpec {
                name: "ls".to_owned(),
                description: "List one folder.".to_owned(),
                parameters: schema_text::<LsArguments>(),
            },
        }
    }
}

impl LsArguments {
    fn resolve(&self, cx: &ToolContext<'_>) -> Result<Resolved, String> {
        let path = self.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".");
        cx.workspace.resolve(path, Access::Read).map_err(|error| error.0)
    }
}

impl Tool for LsTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn output_bytes_max(&self) -> usize {
        OUTPUT_BYTES_MAX + 1024
    }

    fn plan(&self, arguments: &str, cx: &ToolContext<'_>) -> Result<Plan, String> {
        let resolved = LsArguments::parse(arguments)?.resolve(cx)?;
        let needs = vec![Need::Read(resolved.absolute)];
        Ok(Plan { overlap: Overlap::ReadOnly, lane: None, needs })
    }

    fn run(&self, arguments: &str, cx: &ToolContext<'_>) -> ToolOutput {
        match LsArguments::parse(arguments).and_then(|arguments| list(&arguments, cx)) {
            Ok(text) => ToolOutput::ok(text),
            Err(_) if cx.cancel.is_cancelled() => ToolOutput::interrupted(),
            Err(message) => ToolOutput::error(message),
        }
    }
}

fn list(arguments: &LsArguments, cx: &ToolContext<'_>) -> Result<String, String> {
    let limit = arguments.limit.filter(|&n| n > 0).unwrap_or(ENTRIES_DEFAULT);
    let resolved = arguments.resolve(cx)?;
    if !resolved.absolute.is_dir() {
        return Err(format!("{} is not a directory", resolved.shown));
    }
    let listing = read(&resolved, usize::try_from(limit).unwrap_or(usize::MAX), cx)?;
    let mut text = String::new();
    let mut listed = 0;
    for (name, kind) in &listing.first {
        let mut line = names::shown_name(OsStr::from_bytes(name));
        line.push_str(if *kind == Kind::Dir { "/\n" } else { "\n" });
        if text.len() + line.len() > OUTPUT_BYTES_MAX {
            break;
        }
        text.push_str(&line);
        listed += 1;
    }
    if listing.count == 0 {
        text.push_str("(empty directory)\n");
    }
    let more = listing.count - listed;
    if more > 0 {
        text.push_str(&format!("(truncated {})\n", text::plural(more, "more entry")));
    }
    if listing.internal > 0 {
        let entries = text::plural(listing.internal, "internal entry");
        text.push_str(&format!("(skipped {entries})\n"));
    }
    text.pop();
    Ok(text)
}

struct Listing {
    /// The first entries in the order of the listing.
    first: Vec<(Vec<u8>, Kind)>,
    /// All but the internal ones.
    count: u64,
    internal: u64,
}

/// Holds little more than what is listed, however large the folder is.
fn read(folder: &Resolved, limit: usize, cx: &ToolContext<'_>) -> Result<Listing, String> {
    let failed = |error| format!("{}: {}", folder.shown, reason(&error));
    let dir = Dir::open(&folder.absolute).map_err(failed)?;
    let mut listing = Listing { first: Vec::new(), count: 0, internal: 0 };
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        cx.cancel.check().map_err(|cancelled| cancelled.to_string())?;
        let entries = dir.read(&mut buffer).map_err(failed)?;
        if entries.is_empty() {
            break;
        }
        for (name, kind) in entries {
            let name = name.to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if is_internal(OsStr::from_bytes(name)) {
                listing.internal += 1;
                continue;
            }
            let kind = match kind {
                Kind::Unknown => kind_of(&folder.absolute.join(OsStr::from_bytes(name))),
                known => known,
            };
            listing.count += 1;
            listing.first.push((name.to_vec(), kind));
        }
        if listing.first.len() / 2 > limit {
            listing.first.select_nth_unstable_by(limit, |a, b| order(&a.0, &b.0));
            listing.first.truncate(limit);
        }
    }
    listing.first.sort_unstable_by(|a, b| order(&a.0, &b.0));
    listing.first.truncate(limit);
    Ok(listing)
}

/// Without regard to case; names that differ only by it keep the order of their bytes.
fn order(a: &[u8], b: &[u8]) -> Ordering {
    let fold = |name: &[u8]| String::from_utf8_lossy(name).to_lowercase();
    let folded = if a.is_ascii() && b.is_ascii() {
        let lower = u8::to_ascii_lowercase;
        a.iter().map(lower).cmp(b.iter().map(lower))
    } else {
        fold(a).cmp(&fold(b))
    };
    folded.then_with(|| a.cmp(b))
}

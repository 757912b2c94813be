//! What the tools that change files share: the old content, the right to change it, the write,
//! and the diff that is shown for it.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use crate::diff::{FileChange, diff};
use crate::tool::{Caller, ToolContext};
use crate::workspace::atomic::{self, Expect, How, InPlace, Options};
use crate::workspace::encoding::judge;
use crate::workspace::identity::{FileId, Stamp};
use crate::workspace::reads::Seen;
use crate::workspace::{Resolved, open_regular, reason};

/// Larger files are not held in memory.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Of the diff in a result.
pub const DIFF_BYTES_MAX: usize = 20 * 1024;

/// A file as it was found.
pub struct Old {
    pub bytes: Vec<u8>,
    pub id: FileId,
}

/// What stands at a path before a change.
pub enum Before {
    Absent,
    File(Old),
    /// Over [`FILE_BYTES_MAX`]; not loaded.
    Large(FileId),
}

/// Loads the file, if there is one. Everything but a regular file is refused by name.
pub fn load(resolved: &Resolved) -> Result<Before, String> {
    let shown = &resolved.shown;
    if let Err(error) = fs::symlink_metadata(&resolved.absolute)
        && error.kind() == std::io::ErrorKind::NotFound
    {
        return Ok(Before::Absent);
    }
    let opened = open_regular(&resolved.absolute);
    let (file, metadata) = opened.map_err(|error| format!("{shown}: {error}"))?;
    let id = FileId::of(&metadata);
    if FILE_BYTES_MAX < id.len {
        return Ok(Before::Large(id));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(id.len).unwrap_or(0) + 1);
    // A file that grows while it is read is found out when its state is compared.
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("{shown}: cannot read it: {}", reason(&error)))?;
    Ok(Before::File(Old { bytes, id }))
}

/// Whether the model may change a file in this state: it has read it in this run, and it is
/// still what it read. A person may always.
pub fn check_seen(cx: &ToolContext<'_>, resolved: &Resolved, now: Stamp) -> Result<(), String> {
    if cx.caller == Caller::Person {
        return Ok(());
    }
    let shown = &resolved.shown;
    match cx.workspace.reads().compare(&resolved.absolute, now) {
        Seen::Same => Ok(()),
        Seen::Never => Err(format!(
            "{shown} exists and was not read in this run: read it first (the part in question is \
             enough), then send this again"
        )),
        Seen::Changed => Err(format!(
            "{shown} changed on disk since it was read: read it again, then send this again"
        )),
    }
}

/// Writes the content if the file is still as expected, and remembers it as seen.
pub fn store(
    cx: &ToolContext<'_>,
    resolved: &Resolved,
    content: &[u8],
    expect: Expect,
) -> Result<How, String> {
    let options = Options { expect, ..Options::default() };
    let written = atomic::write(&resolved.absolute, content, &options)
        .map_err(|error| format!("cannot write {}: {error}", resolved.shown))?;
    cx.workspace.reads().note(&resolved.absolute, Stamp::of(content, written.id));
    Ok(written.how)
}

/// A remark for a write that did not go the usual way; empty for one that did.
pub fn remark(how: How) -> String {
    match how {
        How::Created | How::Replaced => String::new(),
        How::InPlace(InPlace::HardLinks(count)) => {
            format!(" (in place: the file has {count} hard links, all of them changed)")
        }
        How::InPlace(InPlace::Owner) => " (in place: the file has another owner)".to_owned(),
        How::InPlace(InPlace::Folder) => {
            " (in place: its folder does not allow new files)".to_owned()
        }
        How::InPlace(InPlace::MountPoint) => " (in place: it is a mount point)".to_owned(),
    }
}

/// The bounded diff, with a blank line before it; empty when nothing can be shown.
pub fn diff_text(cx: &ToolContext<'_>, resolved: &Resolved, old: &[u8], new: &[u8]) -> String {
    if judge(old).is_err() || judge(new).is_err() {
        return "\n\n[no diff: not text]".to_owned();
    }
    let root = cx.workspace.root();
    let path: &Path = resolved.absolute.strip_prefix(root).unwrap_or(&resolved.absolute);
    let text = diff(old, new).unified_text(path, FileChange::Modified, DIFF_BYTES_MAX);
    match text.trim_end_matches('\n') {
        "" => String::new(),
        text => format!("\n\n{text}"),
    }
}

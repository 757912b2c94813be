//! What `grep` and `find` share: where to look, and what to say of what was left out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::cancel::Reason;
use crate::text;
use crate::tool::{Need, Overlap, Plan, ToolContext, ToolOutput};
use crate::workspace::glob::Glob;
use crate::workspace::ignore::layers::UserFiles;
use crate::workspace::walk::{self, DEPTH_MAX, Options, Skipped, Visit, order};
use crate::workspace::{Access, regular_file};

pub const ROOTS_MAX: usize = 8;
/// Of one result.
pub const OUTPUT_BYTES_MAX: usize = 50 * 1024;
/// Unreadable entries that are named in one result.
const UNREADABLE_NAMED_MAX: usize = 5;

/// Where to look: folders and files, links followed.
#[derive(Debug, Default)]
pub struct Roots {
    pub paths: Vec<PathBuf>,
    /// Roots that cannot be looked at, with the reasons.
    pub refused: Vec<String>,
}

impl Roots {
    /// Fails when none of the paths can be looked at.
    pub fn resolve(asked: &[String], cx: &ToolContext<'_>) -> Result<Roots, String> {
        if asked.len() > ROOTS_MAX {
            return Err(format!("{} paths; at most {ROOTS_MAX} per call", asked.len()));
        }
        let mut roots = Roots::default();
        for text in asked {
            match root(text, cx) {
                Ok(path) => roots.paths.push(path),
                Err(reason) => match several(text, cx) {
                    Some(paths) => roots.paths.extend(paths),
                    None => roots.refused.push(reason),
                },
            }
        }
        if roots.paths.is_empty() { Err(roots.refused.join("; ")) } else { Ok(roots) }
    }
}

fn root(text: &str, cx: &ToolContext<'_>) -> Result<PathBuf, String> {
    let resolved = cx.workspace.resolve(text, Access::Read).map_err(|error| error.0)?;
    if !resolved.absolute.is_dir() {
        regular_file(&resolved.absolute).map_err(|error| format!("{}: {error}", resolved.shown))?;
    }
    Ok(resolved.absolute)
}

/// Several paths in one text, as models write them; only if that is no path and each of them is.
fn several(text: &str, cx: &ToolContext<'_>) -> Option<Vec<PathBuf>> {
    let parts = text.split(|c: char| c.is_whitespace() || c == ',');
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    if !(2..=ROOTS_MAX).contains(&parts.len()) {
        return None;
    }
    parts.into_iter().map(|part| root(part, cx).ok()).collect()
}

/// Visits what the rules, and the call's two exceptions from them, let through.
pub fn walk<V: Visit>(
    roots: &Roots,
    hidden: Option<bool>,
    ignored: Option<bool>,
    visit: &V,
    cx: &ToolContext<'_>,
) -> (Vec<V::Worker>, Skipped) {
    let options = Options {
        hidden: hidden.unwrap_or(false),
        ignored: ignored.unwrap_or(false),
        base: cx.workspace.root(),
        user: &UserFiles::of(cx.host),
        stop: &|| cx.cancel.is_cancelled(),
    };
    walk::walk(&roots.paths, &options, visit)
}

/// Whether a pattern selects a path, which it may be meant for from the root of the search or
/// from the working directory.
pub fn selects(glob: &Glob, from_root: &[u8], path: &[u8], cx: &ToolContext<'_>) -> bool {
    let below_cwd = || {
        let cwd = cx.workspace.root().as_os_str().as_bytes();
        path.strip_prefix(cwd).and_then(|rest| rest.strip_prefix(b"/"))
    };
    match glob.has_path().then(below_cwd).flatten() {
        Some(from_cwd) if glob.is_negated() => glob.selects(from_root) && glob.selects(from_cwd),
        Some(from_cwd) => glob.selects(from_root) || glob.selects(from_cwd),
        None => glob.selects(from_root),
    }
}

/// A path as results print it and as every tool reads it back.
pub fn shown(path: &[u8], cx: &ToolContext<'_>) -> String {
    cx.workspace.shown(Path::new(OsStr::from_bytes(path)))
}

/// Lines in parentheses for what could not be looked at, up to where the search ended.
pub fn notices(
    roots: &Roots,
    skipped: &Skipped,
    end: Option<&[u8]>,
    cx: &ToolContext<'_>,
) -> Vec<String> {
    let mut out: Vec<_> =
        roots.refused.iter().map(|reason| format!("(not searched: {reason})")).collect();
    let before_end = |path: &[u8]| end.is_none_or(|end| order(path, end).is_lt());
    let named: Vec<_> = skipped.unreadable.iter().filter(|(path, _)| before_end(path)).collect();
    let count = match end {
        None => skipped.unreadable_count,
        Some(_) => named.len() as u64,
    };
    if count > 0 {
        let names = named.iter().take(UNREADABLE_NAMED_MAX);
        let names: Vec<_> =
            names.map(|(path, reason)| format!("{}: {reason}", shown(path, cx))).collect();
        let more = count - names.len() as u64;
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        out.push(format!("(could not read {count}: {}{more})", names.join("; ")));
    }
    if skipped.stopped {
        out.push("(stopped at the time limit: the rest was not searched)".to_owned());
    }
    if end.is_none() && skipped.too_deep > 0 {
        let folders = text::plural(skipped.too_deep, "folder");
        out.push(format!("(skipped {folders} below {DEPTH_MAX} levels)"));
    }
    out
}

/// What a search needs: to read below its roots, beside others.
pub fn plan(roots: Roots) -> Plan {
    let needs = roots.paths.into_iter().map(Need::Read).collect();
    Plan { overlap: Overlap::ReadOnly, lane: None, needs }
}

/// The result of a search that was not cancelled from outside. At the end of its time it tells
/// what it has.
pub fn output(found: Result<String, String>, cx: &ToolContext<'_>) -> ToolOutput {
    match found {
        Ok(_) if cx.cancel.reason().is_some_and(|reason| reason != Reason::Timeout) => {
            ToolOutput::interrupted()
        }
        Ok(text) => ToolOutput::ok(text),
        Err(message) => ToolOutput::error(message),
    }
}

/// What a capped search says of the matches that it does not show; it may be `open` how many more
/// there are.
pub fn at_least(more: u64, open: bool) -> String {
    let at_least = if open { "at least " } else { "" };
    let matches = text::plural(more, "more match");
    format!("({at_least}{matches}: narrow the search or raise limit)")
}

/// What to try when nothing was found although something was left out by the rules.
pub fn left_out(skipped: &Skipped) -> Option<String> {
    let mut parts = Vec::new();
    for (count, name) in [(skipped.hidden, "hidden"), (skipped.ignored, "ignored")] {
        if count > 0 {
            parts.push(format!("{count} {name} ({name}=true)"));
        }
    }
    (!parts.is_empty()).then(|| format!("(left out: {})", parts.join(", ")))
}

//! The tool `grep`: matching lines of files, in path order.
//!
//! Results are the same whatever the threads do: files come in path order, and a search that has
//! enough ends there. Each file shows a bounded number of matches, so that one noisy file does not
//! hide the others; a file that is named itself may use the whole limit.

mod lines;
mod pattern;

use std::time::Duration;

use serde_json::Value;

use crate::model::ToolSpec;
use crate::text;
use crate::tool::arguments::{Arguments, arguments, object, schema_text};
use crate::tool::search::{self, Roots};
use crate::tool::{Plan, Tool, ToolContext, ToolOutput};
use crate::workspace::glob::Glob;
use crate::workspace::walk::first::{Bound, BoundCopy};
use crate::workspace::walk::{Entry, Kind, Skipped, Visit, order};
use lines::{Ask, Found, Outcome, Row, Searcher};
use pattern::{Pattern, looks_like_regex};

const MATCHES_DEFAULT: u64 = 100;
const MATCHES_MAX: u64 = 1_000;
/// Of one file among several.
const FILE_MATCHES_MAX: u64 = 20;
const CONTEXT_MAX: u64 = 5;

arguments! {
    /// Arguments of `grep`.
    pub struct GrepArguments {
        pattern("pattern", "query", "search", "regexp"): String = "",
        regex("regex", "isRegex", "isRegexp"): Option<bool> = "Else plain text",
        ignore_case("ignoreCase", "caseInsensitive", "-i"): Option<bool> = "",
        path("path", "dir", "directory", "file"): Option<String> = "",
        paths: Option<Vec<String>> = "Up to 8, instead of path",
        glob("glob", "include"): Option<String> = "Such as *.rs or src/**/*.{ts,tsx}",
        context("context", "-C"): Option<u64> = "Lines around, up to 5",
        hidden: Option<bool> = "",
        ignored("ignored", "noIgnore"): Option<bool> = "",
        limit("limit", "maxResults", "headLimit"): Option<u64> = "",
    }
}

pub struct GrepTool {
    spec: ToolSpec,
}

impl Default for GrepTool {
    fn default() -> GrepTool {
        GrepTool {
            spec: ToolSpec {
                name: "grep".to_owned(),
                description: "Search file contents line by line. Leaves out binary, hidden and \
                              git-ignored files unless asked."
                    .to_owned(),
                parameters: schema_text::<GrepArguments>(),
            },
        }
    }
}

impl GrepArguments {
    /// A list as `path` can mean only one thing.
    fn read(arguments: &str) -> Result<GrepArguments, String> {
        let mut object = object(arguments)?;
        if let (Some(Value::Array(_)), None) = (object.get("path"), object.get("paths")) {
            let paths = object.remove("path").unwrap_or_default();
            object.insert("paths".to_owned(), paths);
        }
        GrepArguments::from_object(object, "")
    }

    fn roots(&self, cx: &ToolContext<'_>) -> Result<Roots, String> {
        match self.paths.as_deref() {
            Some(paths) if !paths.is_empty() => Roots::resolve(paths, cx),
            _ => {
                let path = self.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".");
                Roots::resolve(&[path.to_owned()], cx)
            }
        }
    }
}

impl Tool for GrepTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn output_bytes_max(&self) -> usize {
        search::OUTPUT_BYTES_MAX + 4 * 1024
    }

    fn plan(&self, arguments: &str, cx: &ToolContext<'_>) -> Result<Plan, String> {
        Ok(search::plan(GrepArguments::read(arguments)?.roots(cx)?))
    }

    fn run(&self, arguments: &str, cx: &ToolContext<'_>) -> ToolOutput {
        let found = GrepArguments::read(arguments).and_then(|arguments| grep(&arguments, cx));
        search::output(found, cx)
    }
}

fn grep(arguments: &GrepArguments, cx: &ToolContext<'_>) -> Result<String, String> {
    let regex = arguments.regex.unwrap_or(false);
    let ignore_case = arguments.ignore_case.unwrap_or(false);
    let pattern = Pattern::new(&arguments.pattern, regex, ignore_case)?;
    let glob = arguments.glob.as_deref().filter(|glob| !glob.is_empty());
    let glob = glob.map(Glob::new).transpose()?;
    let roots = arguments.roots(cx)?;
    let limit = arguments.limit.filter(|&n| n > 0).unwrap_or(MATCHES_DEFAULT).min(MATCHES_MAX);
    let context = arguments.context.unwrap_or(0).min(CONTEXT_MAX);
    let contents = Contents {
        pattern: &pattern,
        glob: glob.as_ref(),
        context: usize::try_from(context).unwrap_or(0),
        limit,
        bound: Bound::default(),
        cx,
    };
    let (workers, mut skipped) =
        search::walk(&roots, arguments.hidden, arguments.ignored, &contents, cx);
    let mut files = Vec::new();
    let mut seen = Seen::default();
    for worker in workers {
        files.extend(worker.files);
        seen.add(&worker.seen);
        skipped.merge(worker.skipped);
    }
    let end = cut(&mut files, limit);
    let mut text = String::new();
    let more = write_rows(&mut text, &files, limit, context, cx);
    let mut notices = Vec::new();
    if files.is_empty() {
        notices.extend(nothing_found(arguments, glob.is_some(), &seen));
        notices.extend(search::left_out(&skipped));
    }
    if more > 0 {
        let is_open = end.is_some() || files.iter().any(|file| file.found.is_count_open);
        notices.push(search::at_least(more, is_open));
    }
    if end.is_none() && seen.binary > 0 {
        notices.push(format!("(skipped {})", text::plural(seen.binary, "binary file")));
    }
    notices.extend(search::notices(&roots, &skipped, end.as_deref(), cx));
    text.push_str(&notices.join("\n"));
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Why that may be so, where the call itself may be the reason.
fn nothing_found(arguments: &GrepArguments, has_glob: bool, seen: &Seen) -> Vec<String> {
    let is_text = !arguments.regex.unwrap_or(false);
    let mut out = vec!["(no matches)".to_owned()];
    if is_text && looks_like_regex(&arguments.pattern) {
        out.push("(searched as plain text; regex=true for an expression)".to_owned());
    }
    if has_glob && seen.searched + seen.binary == 0 {
        out.push("(no file that the glob selects)".to_owned());
    }
    out
}

/// Writes what may be shown and returns how many matches are not.
fn write_rows(
    text: &mut String,
    files: &[FileHits],
    limit: u64,
    context: u64,
    cx: &ToolContext<'_>,
) -> u64 {
    let mut left = limit;
    let mut more = 0;
    for file in files {
        let path = search::shown(&file.path, cx);
        let mut before = None;
        let mut shown = 0;
        for row in first_rows(&file.found.rows, left, context) {
            let mark = if row.is_hit { ':' } else { '-' };
            let line = format!("{path}{mark}{}{mark}{}\n", row.number, row.text);
            if text.len() + line.len() > search::OUTPUT_BYTES_MAX {
                left = 0;
                break;
            }
            if context > 0 && before != Some(row.number - 1) && !text.is_empty() {
                text.push_str("--\n");
            }
            text.push_str(&line);
            before = Some(row.number);
            shown += u64::from(row.is_hit);
        }
        left = left.saturating_sub(shown);
        let rest = file.found.count - shown;
        if rest > 0 && left > 0 {
            let at_least = if file.found.is_count_open { "at least " } else { "" };
            text.push_str(&format!("{path}: {at_least}{}\n", text::plural(rest, "more match")));
        } else {
            more += rest;
        }
    }
    more
}

/// The rows of the first so many matches.
fn first_rows(rows: &[Row], hits: u64, context: u64) -> &[Row] {
    let hit_at = |nth: u64| {
        let mut hits = rows.iter().enumerate().filter(|(_, row)| row.is_hit);
        hits.nth(usize::try_from(nth).unwrap_or(usize::MAX)).map(|(idx, row)| (idx, row.number))
    };
    let Some((next, _)) = hit_at(hits) else { return rows };
    let Some((_, last)) = hits.checked_sub(1).and_then(hit_at) else { return &[] };
    let rows = &rows[..next];
    &rows[..rows.partition_point(|row| row.number <= last + context)]
}

/// Sorts, drops what lies behind the file that fills the limit, and returns its path if there is
/// more than the limit shows.
fn cut(files: &mut Vec<FileHits>, limit: u64) -> Option<Vec<u8>> {
    // A file that was also named itself has more to show.
    files.sort_unstable_by(|a, b| order(&a.path, &b.path).then(b.shown.cmp(&a.shown)));
    files.dedup_by(|a, b| a.path == b.path);
    let (mut shown, mut count) = (0, 0);
    for idx in 0..files.len() {
        shown += files[idx].shown;
        count += files[idx].found.count;
        if shown >= limit && count > limit {
            files.truncate(idx + 1);
            return Some(files[idx].path.clone());
        }
    }
    None
}

struct FileHits {
    path: Vec<u8>,
    /// Matches among the rows.
    shown: u64,
    found: Found,
}

/// Files that were looked into.
#[derive(Default)]
struct Seen {
    searched: u64,
    binary: u64,
}

impl Seen {
    fn add(&mut self, other: &Seen) {
        self.searched += other.searched;
        self.binary += other.binary;
    }
}

/// Searches what a walk meets.
struct Contents<'a> {
    pattern: &'a Pattern,
    glob: Option<&'a Glob>,
    context: usize,
    limit: u64,
    bound: Bound,
    cx: &'a ToolContext<'a>,
}

struct Worker {
    /// A copy of its own: the memory of an expression is not shared between threads.
    pattern: Pattern,
    searcher: Searcher,
    files: Vec<FileHits>,
    bound: BoundCopy,
    seen: Seen,
    skipped: Skipped,
}

impl Visit for Contents<'_> {
    type Worker = Worker;
    const FILES_PER_JOB: usize = 64;

    fn worker(&self) -> Worker {
        Worker {
            pattern: self.pattern.clone(),
            searcher: Searcher::default(),
            files: Vec::new(),
            bound: BoundCopy::default(),
            seen: Seen::default(),
            skipped: Skipped::default(),
        }
    }

    fn visit(&self, worker: &mut Worker, entry: &Entry<'_>) {
        let selects = |glob| search::selects(glob, entry.relative(), entry.path, self.cx);
        if entry.kind != Kind::File
            || !(entry.is_root() || self.glob.is_none_or(selects))
            || !self.bound.admits(&mut worker.bound, entry.path)
            || self.cx.cancel.is_cancelled()
        {
            return;
        }
        let hits_max = if entry.is_root() { self.limit } else { self.limit.min(FILE_MATCHES_MAX) };
        let ask = Ask { pattern: &worker.pattern, context: self.context, hits_max };
        let outcome =
            entry.open().and_then(|file| worker.searcher.search(file, ask, self.cx.cancel));
        match outcome {
            Ok(Outcome::Text(found)) => {
                worker.seen.searched += 1;
                if found.count > 0 {
                    let shown = found.count.min(hits_max);
                    worker.files.push(FileHits { path: entry.path.to_vec(), shown, found });
                    self.forget(worker);
                }
            }
            Ok(Outcome::Binary) => worker.seen.binary += 1,
            Err(error) => worker.skipped.unreadable(entry.path, &error),
        }
        worker.searcher.shrink();
    }

    fn is_needed(&self, worker: &mut Worker, path: &[u8]) -> bool {
        self.bound.admits(&mut worker.bound, path)
    }
}

impl Contents<'_> {
    /// Once a thread alone has enough, nothing behind that counts any more.
    fn forget(&self, worker: &mut Worker) {
        let count: u64 = worker.files.iter().map(|file| file.found.count).sum();
        if count > self.limit
            && let Some(end) = cut(&mut worker.files, self.limit)
        {
            self.bound.lower(&end);
        }
    }
}

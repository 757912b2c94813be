//! The tool `find`: paths by a part of their name or by a pattern, in path order.

use std::time::Duration;

use memchr::memmem::Finder;

use crate::model::ToolSpec;
use crate::tool::arguments::{Arguments, arguments, schema_text};
use crate::tool::search::{self, Roots};
use crate::tool::{Plan, Tool, ToolContext, ToolOutput};
use crate::workspace::glob::Glob;
use crate::workspace::walk::first::{Bound, BoundCopy};
use crate::workspace::walk::{Entry, Kind, Visit, order};

const MATCHES_DEFAULT: u64 = 500;
const MATCHES_MAX: u64 = 5_000;
/// A thread gathers this many more than needed before it sorts and forgets the rest.
const SLACK: usize = 1024;

arguments! {
    /// Arguments of `find`.
    pub struct FindArguments {
        query("query", "pattern", "name"): Option<String> = "Part of the path, any case",
        glob("glob", "include"): Option<String> = "",
        path("path", "dir", "directory"): Option<String> = "",
        hidden: Option<bool> = "",
        ignored("ignored", "noIgnore"): Option<bool> = "",
        limit("limit", "maxResults"): Option<u64> = "",
    }
}

pub struct FindTool {
    spec: ToolSpec,
}

impl Default for FindTool {
    fn default() -> FindTool {
        FindTool {
            spec: ToolSpec {
                name: "find".to_owned(),
                description: "Find files and folders by name. Leaves out hidden and git-ignored \
                              ones unless asked."
                    .to_owned(),
                parameters: schema_text::<FindArguments>(),
            },
        }
    }
}

impl FindArguments {
    fn roots(&self, cx: &ToolContext<'_>) -> Result<Roots, String> {
        let path = self.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".");
        Roots::resolve(&[path.to_owned()], cx)
    }
}

impl Tool for FindTool {
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
        Ok(search::plan(FindArguments::parse(arguments)?.roots(cx)?))
    }

    fn run(&self, arguments: &str, cx: &ToolContext<'_>) -> ToolOutput {
        let found = FindArguments::parse(arguments).and_then(|arguments| find(&arguments, cx));
        search::output(found, cx)
    }
}

fn find(arguments: &FindArguments, cx: &ToolContext<'_>) -> Result<String, String> {
    let roots = arguments.roots(cx)?;
    let limit = arguments.limit.filter(|&n| n > 0).unwrap_or(MATCHES_DEFAULT).min(MATCHES_MAX);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let visit = Names {
        wanted: Wanted::new(arguments)?,
        // One more than is shown: whether there are more is then known.
        keep: limit + 1,
        bound: Bound::default(),
        cx,
    };
    let (workers, skipped) = search::walk(&roots, arguments.hidden, arguments.ignored, &visit, cx);
    let mut found: Vec<_> = workers.into_iter().flat_map(|worker| worker.found).collect();
    first(&mut found, visit.keep);

    let mut text = String::new();
    let mut listed = 0;
    for hit in found.iter().take(limit) {
        let mut line = search::shown(&hit.path, cx);
        line.push_str(if hit.is_dir { "/\n" } else { "\n" });
        if text.len() + line.len() > search::OUTPUT_BYTES_MAX {
            break;
        }
        text.push_str(&line);
        listed += 1;
    }
    let end = found.get(listed).map(|hit| hit.path.as_slice());
    let mut notices = Vec::new();
    if end.is_some() {
        notices.push(search::at_least((found.len() - listed) as u64, true));
    }
    if found.is_empty() {
        notices.push("(no matches)".to_owned());
        notices.extend(search::left_out(&skipped));
    }
    notices.extend(search::notices(&roots, &skipped, end, cx));
    text.push_str(&notices.join("\n"));
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Which paths are wanted.
struct Wanted {
    /// Lower case.
    part: Finder<'static>,
    /// The query as a pattern, when it looks like one; lower case.
    pattern: Option<Glob>,
    glob: Option<Glob>,
}

impl Wanted {
    fn new(arguments: &FindArguments) -> Result<Wanted, String> {
        let query = arguments.query.as_deref().unwrap_or_default();
        let lower = query.to_lowercase();
        let looks_like_pattern = query.contains(['*', '?', '[', '{']);
        let glob = arguments.glob.as_deref().filter(|glob| !glob.is_empty());
        Ok(Wanted {
            part: Finder::new(&lower).into_owned(),
            pattern: if looks_like_pattern { Glob::new(&lower).ok() } else { None },
            glob: glob.map(Glob::new).transpose()?,
        })
    }

    fn has(&self, entry: &Entry<'_>, lower: &mut Vec<u8>, cx: &ToolContext<'_>) -> bool {
        let relative = entry.relative();
        let selects = |glob| search::selects(glob, relative, entry.path, cx);
        if !self.glob.as_ref().is_none_or(selects) {
            return false;
        }
        if self.part.needle().is_empty() {
            return true;
        }
        lower.clear();
        if relative.is_ascii() {
            lower.extend(relative.iter().map(u8::to_ascii_lowercase));
        } else {
            lower.extend_from_slice(String::from_utf8_lossy(relative).to_lowercase().as_bytes());
        }
        self.part.find(lower).is_some()
            || self.pattern.as_ref().is_some_and(|pattern| pattern.selects(lower))
    }
}

struct Found {
    path: Vec<u8>,
    is_dir: bool,
}

/// Sorts, and forgets all but the first `keep`.
fn first(found: &mut Vec<Found>, keep: usize) {
    found.sort_unstable_by(|a, b| order(&a.path, &b.path));
    found.dedup_by(|a, b| a.path == b.path);
    found.truncate(keep);
}

/// Gathers the first matches of a walk.
struct Names<'a> {
    wanted: Wanted,
    keep: usize,
    bound: Bound,
    cx: &'a ToolContext<'a>,
}

#[derive(Default)]
struct Worker {
    found: Vec<Found>,
    bound: BoundCopy,
    lower: Vec<u8>,
}

impl Visit for Names<'_> {
    type Worker = Worker;
    const FILES_PER_JOB: usize = 4096;

    fn worker(&self) -> Worker {
        Worker::default()
    }

    fn visit(&self, worker: &mut Worker, entry: &Entry<'_>) {
        if !self.wanted.has(entry, &mut worker.lower, self.cx)
            || !self.bound.admits(&mut worker.bound, entry.path)
        {
            return;
        }
        let is_dir = entry.kind == Kind::Dir;
        worker.found.push(Found { path: entry.path.to_vec(), is_dir });
        if worker.found.len() >= 2 * self.keep + SLACK {
            first(&mut worker.found, self.keep);
            if let Some(last) = worker.found.get(self.keep - 1) {
                self.bound.lower(&last.path);
            }
        }
    }

    fn is_needed(&self, worker: &mut Worker, path: &[u8]) -> bool {
        self.bound.admits(&mut worker.bound, path)
    }
}

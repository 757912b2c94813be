//! The tool `read`: lines of files, numbered, bounded, in one call up to eight files.
//!
//! It streams: two lines of a huge file cost their bytes and the counting of what stands before
//! them. Small files are read to their end, which makes the number of their lines known and lets
//! a later edit tell by content whether they changed; of larger ones only what is shown is read,
//! and no total is claimed.

mod window;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::time::Duration;

use crate::model::{ResultStatus, ToolSpec};
use crate::text;
use crate::tool::arguments::{Arguments, arguments, lenient, object, schema_text};
use crate::tool::{Need, Overlap, Plan, Tool, ToolContext, ToolOutput};
use crate::workspace::encoding::{HEAD_BYTES, judge};
use crate::workspace::identity::{ContentHash, FileId, HASHED_BYTES_MAX, Stamp};
use crate::workspace::{Access, Resolved, open_regular, reason};
use serde_json::{Map, Value};
use window::{Ask, BadBytes, End, Scan, Window};

const LINES_MAX: u64 = 2_000;
/// Of one file.
const BYTES_MAX: usize = 50 * 1024;
/// Of all files of one call.
const BATCH_BYTES_MAX: usize = 120 * 1024;
const FILES_MAX: usize = 8;
/// A file whose share of the batch would be smaller than this is left to another call.
const SHARE_BYTES_MIN: usize = 1024;
const CHUNK_BYTES: usize = 128 * 1024;

arguments! {
    /// Arguments of `read`.
    pub struct ReadArguments {
        path("path", "filePath", "file", "filename"): Option<String> = "",
        offset: Option<u64> = "First line, from 1",
        limit: Option<u64> = "Lines (2000)",
        column: Option<u64> = "First byte within a line too long to show",
        line_numbers("lineNumbers"): Option<bool> = "",
        files: Option<Vec<FileRange>> = "Up to 8 at once, instead of path",
    }
}

arguments! {
    /// One of several files to read.
    pub struct FileRange {
        path("path", "filePath", "file", "filename"): String = "",
        offset: Option<u64> = "",
        limit: Option<u64> = "",
        line_numbers("lineNumbers"): Option<bool> = "",
    }
}

pub struct ReadTool {
    spec: ToolSpec,
}

impl Default for ReadTool {
    fn default() -> ReadTool {
        ReadTool {
            spec: ToolSpec {
                name: "read".to_owned(),
                description: "Read text files: numbered lines, at most 2000 or 50 KB each."
                    .to_owned(),
                parameters: schema_text::<ReadArguments>(),
            },
        }
    }
}

/// One file and the part of it that is wanted; every default filled in.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    path: String,
    offset: u64,
    limit: u64,
    column: u64,
    line_numbers: bool,
}

#[derive(Debug, PartialEq)]
enum Wish {
    One(Wanted),
    Batch(Vec<Wanted>),
}

/// Fills in what a number of 0 or none means.
fn wanted(range: FileRange, column: Option<u64>) -> Wanted {
    let or = |number: Option<u64>, default| number.filter(|&n| n > 0).unwrap_or(default);
    Wanted {
        path: range.path,
        offset: or(range.offset, 1),
        limit: or(range.limit, LINES_MAX).min(LINES_MAX),
        column: or(column, 1),
        line_numbers: range.line_numbers.unwrap_or(true),
    }
}

/// Paths alone where `files` has objects, a list as `path`, and `paths`, can mean only one thing.
fn recover(object: &mut Map<String, Value>) {
    let as_range = |value: Value| match value {
        Value::String(path) if !path.trim_start().starts_with('{') => {
            Value::Object(Map::from_iter([("path".to_owned(), Value::String(path))]))
        }
        other => other,
    };
    for name in ["path", "paths"] {
        let is_list = name == "paths" || object.get(name).is_some_and(Value::is_array);
        if is_list
            && !object.contains_key("files")
            && let Some(paths) = object.remove(name)
        {
            object.insert("files".to_owned(), paths);
        }
    }
    let Some(files) = object.get_mut("files") else { return };
    if let Some(list @ Value::Array(_)) = files.as_str().and_then(lenient) {
        *files = list;
    }
    match files {
        Value::Array(items) => {
            let ranges = std::mem::take(items).into_iter().map(as_range);
            *items = ranges.collect();
        }
        one => *one = as_range(one.take()),
    }
}

fn parse(arguments: &str) -> Result<Wish, String> {
    let mut object = object(arguments)?;
    recover(&mut object);
    let arguments = ReadArguments::from_object(object, "")?;
    if let Some(files) = arguments.files.filter(|files| !files.is_empty()) {
        if FILES_MAX < files.len() {
            return Err(format!("'files' has {} files; at most {FILES_MAX} per call", files.len()));
        }
        return Ok(Wish::Batch(files.into_iter().map(|file| wanted(file, None)).collect()));
    }
    let (offset, limit) = (arguments.offset, arguments.limit);
    let path = arguments.path.filter(|path| !path.is_empty()).ok_or(
        "'path' is missing: it must be a string (or give 'files', a list of objects with path)",
    )?;
    let range = FileRange { path, offset, limit, line_numbers: arguments.line_numbers };
    Ok(Wish::One(wanted(range, arguments.column)))
}

impl Tool for ReadTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn output_bytes_max(&self) -> usize {
        BATCH_BYTES_MAX + 8 * 1024
    }

    fn plan(&self, arguments: &str, cx: &ToolContext<'_>) -> Result<Plan, String> {
        let resolve = |wanted: &Wanted| {
            let resolved = cx.workspace.resolve(&wanted.path, Access::Read);
            resolved.map(|resolved| Need::Read(resolved.absolute)).map_err(|error| error.0)
        };
        let needs = match parse(arguments)? {
            Wish::One(one) => vec![resolve(&one)?],
            // A refused path of several is an error of its own block.
            Wish::Batch(files) => files.iter().filter_map(|file| resolve(file).ok()).collect(),
        };
        Ok(Plan { overlap: Overlap::ReadOnly, lane: None, needs })
    }

    fn run(&self, arguments: &str, cx: &ToolContext<'_>) -> ToolOutput {
        match parse(arguments) {
            Ok(Wish::One(wanted)) => match read(&wanted, BYTES_MAX, cx) {
                Ok(text) => ToolOutput::ok(text),
                Err(_) if cx.cancel.is_cancelled() => ToolOutput::interrupted(),
                Err(message) => ToolOutput::error(message),
            },
            Ok(Wish::Batch(files)) => read_batch(&files, cx),
            Err(message) => ToolOutput::error(message),
        }
    }
}

fn read_batch(files: &[Wanted], cx: &ToolContext<'_>) -> ToolOutput {
    let mut blocks = Vec::new();
    let mut failed = 0;
    let mut left = BATCH_BYTES_MAX;
    let mut unread = Vec::new();
    for file in files {
        if cx.cancel.is_cancelled() {
            return ToolOutput::interrupted();
        }
        if left < SHARE_BYTES_MIN {
            unread.push(format!("{} (offset={})", file.path, file.offset));
            continue;
        }
        let body = read(file, BYTES_MAX.min(left), cx).unwrap_or_else(|message| {
            failed += 1;
            format!("error: {message}")
        });
        left = left.saturating_sub(body.len());
        let Wanted { path, offset, limit, .. } = file;
        blocks.push(format!("--- {path} (offset={offset}, limit={limit}) ---\n{body}"));
    }
    let all_failed = failed == files.len();
    if failed > 0 {
        blocks.insert(0, format!("[{failed} of {} files could not be read]", files.len()));
    }
    if !unread.is_empty() {
        let limit = text::human_bytes(BATCH_BYTES_MAX as u64);
        let unread = unread.join(", ");
        blocks.push(format!("[Limit of {limit} for one call reached. Not read: {unread}.]"));
    }
    let status = if all_failed { ResultStatus::Error } else { ResultStatus::Ok };
    ToolOutput { text: blocks.join("\n\n"), status, changed: Vec::new() }
}

/// The text of one file's window with its hint, or why there is none.
fn read(wanted: &Wanted, bytes_max: usize, cx: &ToolContext<'_>) -> Result<String, String> {
    let resolved = cx.workspace.resolve(&wanted.path, Access::Read).map_err(|error| error.0)?;
    let shown = &resolved.shown;
    let (file, metadata) =
        open_regular(&resolved.absolute).map_err(|error| format!("{shown}: {error}"))?;
    let id = FileId::of(&metadata);
    let last_line = wanted.offset.saturating_add(wanted.limit);
    let ask = Ask {
        offset: wanted.offset,
        lines_max: wanted.limit,
        column: wanted.column,
        bytes_max,
        prefix_bytes: if wanted.line_numbers { last_line.to_string().len() + 3 } else { 0 },
    };
    let (window, stamp) = scan(file, id, ask, &resolved, cx)?;
    let text = render(&window, wanted, bytes_max, shown)?;
    cx.workspace.reads().note(&resolved.absolute, stamp);
    Ok(text)
}

/// Reads as much of the file as the window and the file's stamp need.
fn scan(
    mut file: File,
    id: FileId,
    ask: Ask,
    resolved: &Resolved,
    cx: &ToolContext<'_>,
) -> Result<(Window, Stamp), String> {
    let shown = &resolved.shown;
    let mut buffer = vec![0; CHUNK_BYTES.min(usize::try_from(id.len).unwrap_or(usize::MAX) + 1)];
    if buffer.len() < HEAD_BYTES {
        // Files of the kernel say that they are empty.
        buffer.resize(HEAD_BYTES, 0);
    }
    let mut scan = Scan::new(ask);
    let mut hash = ContentHash::default();
    let mut is_hashed = id.len <= HASHED_BYTES_MAX;
    let mut is_head = true;
    loop {
        cx.cancel.check().map_err(|cancelled| cancelled.to_string())?;
        let got = fill(&mut file, &mut buffer)
            .map_err(|error| format!("{shown}: cannot read it: {}", reason(&error)))?;
        let bytes = &buffer[..got];
        if std::mem::take(&mut is_head) {
            judge(bytes).map_err(|why| {
                format!("{shown} is {why}, so it cannot be shown; {}", why.advice())
            })?;
        }
        scan.push(bytes);
        if is_hashed {
            hash.update(bytes);
            // It grew while it was read, or never ends.
            is_hashed = hash.len() <= HASHED_BYTES_MAX;
        }
        let is_whole = got < buffer.len();
        if is_whole || (scan.is_done() && !is_hashed) {
            let stamp = if is_hashed { hash.stamp() } else { Stamp::Identity(id) };
            return Ok((scan.finish(is_whole), stamp));
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn render(
    window: &Window,
    wanted: &Wanted,
    bytes_max: usize,
    shown: &str,
) -> Result<String, String> {
    let first = window.first_line;
    if let End::ColumnBeyond { line_bytes } = window.end {
        let column = wanted.column;
        return Err(format!(
            "{shown}: column {column} is beyond the end of line {first} ({})",
            text::plural(line_bytes, "byte")
        ));
    }
    if window.lines.is_empty() {
        return match window.lines_total {
            Some(0) => Ok("(empty file)".to_owned()),
            total => Err(format!(
                "{shown}: offset {first} is beyond end of file ({} total)",
                text::plural(total.unwrap_or(0), "line")
            )),
        };
    }
    let next = first + window.lines.len() as u64;
    let mut out = String::new();
    let width = (next - 1).to_string().len();
    for (number, line) in (first..).zip(&window.lines) {
        let _ = match wanted.line_numbers {
            true => writeln!(out, "{number:>width$} | {line}"),
            false => writeln!(out, "{line}"),
        };
    }
    let notices = [bad_notice(window.bad), end_notice(window, next, bytes_max)];
    for notice in notices.into_iter().flatten() {
        let _ = write!(out, "\n[{notice}]");
    }
    if out.ends_with('\n') {
        out.pop();
    }
    if out.is_empty() {
        // One empty line without its number.
        out.push_str("(empty line)");
    }
    Ok(out)
}

fn bad_notice(bad: Option<BadBytes>) -> Option<String> {
    let BadBytes { count, line, byte, guess } = bad?;
    let (bytes, are) = (text::plural(count, "byte"), if count == 1 { "is" } else { "are" });
    Some(format!(
        "{bytes} here {are} not UTF-8 and shown as \\xNN, first 0x{byte:02x} on line {line}; {guess}."
    ))
}

fn end_notice(window: &Window, next: u64, bytes_max: usize) -> Option<String> {
    let first = window.first_line;
    let total = window.lines_total;
    match window.end {
        End::File | End::ColumnBeyond { .. } => None,
        End::Lines => {
            let more = match total.map(|total| total.saturating_sub(next - 1)) {
                Some(1) => "1 more line".to_owned(),
                Some(left) => format!("{left} more lines"),
                None => "More lines".to_owned(),
            };
            Some(format!("{more} in file. Use offset={next} to continue."))
        }
        End::Bytes => {
            let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
            let (last, limit) = (next - 1, text::human_bytes(bytes_max as u64));
            Some(format!(
                "Showing lines {first}-{last}{of} ({limit} limit). Use offset={next} to continue."
            ))
        }
        End::Cut { from, to, line_bytes } => Some(format!(
            "Line {first} is {line_bytes} bytes long; bytes {}-{to} are shown. Use offset={first} \
             column={} to continue it, offset={next} for the next line, or grep for a window \
             around a match.",
            from + 1,
            to + 1
        )),
    }
}

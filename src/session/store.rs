//! A folder of sessions: where it is, what is in it, finding one.
//!
//! The truth is in the session files; `index.jsonl` only saves opening each of them. A row that
//! is missing or torn costs the look at one file's head, a row without its file is nothing.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Error;
use super::head;
use super::lines::open_file;
use crate::host::{Host, Timestamp};
use crate::sys;

/// As much of the index is read; sessions whose rows come behind it are found by their heads.
const INDEX_BYTES_MAX: u64 = 64 << 20;

/// One session as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub id: String,
    pub path: PathBuf,
    /// RFC 3339.
    #[serde(default)]
    pub created_at: String,
    #[serde(default)]
    pub cwd: String,
    #[serde(default)]
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The session whose model started this one as a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<String>,
}

impl Row {
    /// The id as people see it: its first eight characters.
    pub fn short_id(&self) -> &str {
        self.id.get(..8).unwrap_or(&self.id)
    }

    /// What to call it: its name, else its title.
    pub fn label(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.title)
    }

    /// When it began: date, hour and minute (UTC), always of the same width.
    pub fn minute(&self) -> String {
        match Timestamp::parse(&self.created_at).map(Timestamp::to_rfc3339) {
            Some(time) => time.chars().take(16).collect::<String>().replace('T', " "),
            None => "unknown time    ".to_owned(),
        }
    }
}

/// Where sessions live by default: `.etch/sessions` at the root of the project; the user's state
/// directory when there is no project or its tree cannot be written.
pub fn default_dir(host: &Host, project_root: Option<&Path>) -> PathBuf {
    let state = host.state_dir().map(|dir| dir.join("sessions"));
    let local = project_root.unwrap_or_else(|| host.cwd()).join(".etch/sessions");
    match (project_root, state) {
        (Some(_), Some(state)) if !can_hold(&local) => state,
        (Some(_), _) | (None, None) => local,
        (None, Some(state)) => state,
    }
}

/// Whether files can be made in `dir`, or `dir` itself can.
fn can_hold(dir: &Path) -> bool {
    let existing = dir.ancestors().find(|dir| dir.exists());
    existing.is_some_and(|dir| dir.is_dir() && sys::can_write(dir))
}

/// A folder of sessions. It need not exist until the first event of the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// Touches nothing.
    pub fn open(dir: impl Into<PathBuf>) -> Store {
        Store { dir: dir.into() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn session_path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.jsonl"))
    }

    fn index_path(&self) -> PathBuf {
        self.dir.join("index.jsonl")
    }

    /// All sessions, the newest last. A folder that is not there has none.
    pub fn list(&self) -> Result<Vec<Row>, Error> {
        let mut files = self.session_files()?;
        let mut rows = Vec::new();
        for mut row in self.index_rows() {
            if files.remove(&row.id).is_some() {
                row.path = self.session_path(&row.id);
                rows.push(row);
            } else if !row.path.starts_with(&self.dir) && row.path.is_file() {
                rows.push(row);
            }
        }
        rows.extend(files.into_values().filter_map(|path| head::row_of(&path)));
        rows.sort_by(|a, b| (&a.created_at, &a.id).cmp(&(&b.created_at, &b.id)));
        rows.dedup_by(|a, b| a.id == b.id);
        Ok(rows)
    }

    /// The session files of the folder by id.
    fn session_files(&self) -> Result<BTreeMap<String, PathBuf>, Error> {
        let read_error = |source| Error::Read { path: self.dir.clone(), source };
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            entries => entries.map_err(read_error)?,
        };
        let mut files = BTreeMap::new();
        for entry in entries {
            let path = entry.map_err(read_error)?.path();
            let is_log = path.extension().is_some_and(|ext| ext == "jsonl");
            if let Some(id) = path.file_stem().and_then(|stem| stem.to_str())
                && is_log
                && id != "index"
            {
                files.insert(id.to_owned(), path);
            }
        }
        Ok(files)
    }

    /// The readable rows; the last of several with one id.
    fn index_rows(&self) -> Vec<Row> {
        let mut bytes = Vec::new();
        // No index, or one that cannot be read, only costs time.
        if let Ok(file) = open_file(&self.index_path()) {
            let _ = file.take(INDEX_BYTES_MAX).read_to_end(&mut bytes);
        }
        let mut rows = BTreeMap::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let line = std::str::from_utf8(line).unwrap_or_default();
            if let Ok(row) = serde_json::from_str::<Row>(line) {
                rows.insert(row.id.clone(), row);
            }
        }
        rows.into_values().collect()
    }

    /// The session that `wanted` means: a whole id, a name, the beginning of one id only, or the
    /// path of a session file.
    pub fn find(&self, wanted: &str) -> Result<Row, Error> {
        let not_found = || Error::NotFound { wanted: wanted.to_owned() };
        if wanted.contains('/') || wanted.ends_with(".jsonl") {
            return head::row_of(Path::new(wanted)).ok_or_else(not_found);
        }
        let mut rows = self.list()?;
        if let Some(at) = rows.iter().position(|row| row.id == wanted) {
            return Ok(rows.swap_remove(at));
        }
        let by_name = |row: &Row| row.name.as_deref() == Some(wanted);
        let mut matches: Vec<Row> = rows.iter().filter(|row| by_name(row)).cloned().collect();
        if matches.is_empty() && !wanted.is_empty() {
            let lower = wanted.to_ascii_lowercase();
            rows.retain(|row| row.id.starts_with(&lower));
            matches = rows;
        }
        match (matches.len(), matches.pop()) {
            (1, Some(row)) => Ok(row),
            (count, Some(last)) => {
                let shown = matches.iter().chain([&last]).rev().take(10);
                let matches = shown.map(|row| row.id.get(..12).unwrap_or(&row.id).to_owned());
                Err(Error::Ambiguous {
                    wanted: wanted.to_owned(),
                    matches: matches.collect(),
                    count,
                })
            }
            (_, None) => self.unlisted(wanted).ok_or_else(not_found),
        }
    }

    /// The one session file of this id whose head tells nothing: whoever opens it is told what is
    /// wrong with it, or finds what stands behind the damage.
    fn unlisted(&self, wanted: &str) -> Option<Row> {
        let lower = wanted.to_ascii_lowercase();
        let is_id = |id: &str| id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let files = self.session_files().ok()?.into_iter();
        let mut begun = files.filter(|(id, _)| is_id(id) && id.starts_with(&lower));
        if lower.is_empty() {
            return None;
        }
        let (id, path) = begun.next()?;
        begun.next().is_none().then(|| Row {
            id,
            path,
            created_at: String::new(),
            cwd: String::new(),
            title: super::title_of(""),
            name: None,
            parent_session_id: None,
        })
    }

    /// The session of this project, or without a project of this directory, that was written to
    /// last. Subagents' sessions are nobody's last.
    pub fn latest(&self, host: &Host) -> Result<Row, Error> {
        let root = host.project_root();
        // As sessions write it: a path that is no UTF-8 is known by what is shown of it.
        let shown = |path: &Path| PathBuf::from(path.to_string_lossy().into_owned());
        let (cwd, shown_root) = (shown(host.cwd()), root.as_deref().map(shown));
        let here = |row: &Row| match &root {
            // The folder is the project's own: it may have been moved since.
            Some(root) if self.dir.starts_with(root) => true,
            Some(_) => {
                shown_root.as_ref().is_some_and(|root| Path::new(&row.cwd).starts_with(root))
            }
            None => Path::new(&row.cwd) == cwd,
        };
        let written = |row: &Row| {
            let modified = fs::metadata(&row.path).and_then(|meta| meta.modified());
            modified.unwrap_or(SystemTime::UNIX_EPOCH)
        };
        let rows = self.list()?.into_iter();
        let candidates = rows.filter(|row| row.parent_session_id.is_none() && here(row));
        // Of equal times the newest session, which is the last.
        candidates.max_by_key(written).ok_or_else(|| Error::NoLatest { dir: self.dir.clone() })
    }

    /// Makes the index anew from the heads of all sessions; how many there are.
    pub fn rebuild_index(&self, host: &Host) -> Result<usize, Error> {
        let files = self.session_files()?;
        if files.is_empty() {
            return Ok(0);
        }
        let mut rows: Vec<Row> = files.values().filter_map(|path| head::row_of(path)).collect();
        rows.sort_by(|a, b| (&a.created_at, &a.id).cmp(&(&b.created_at, &b.id)));
        let mut text = String::new();
        for row in &rows {
            text.push_str(&row_line(row));
        }
        let temporary = self.dir.join(format!(".index-{}", host.new_id()));
        let write = || {
            new_file(&temporary)?.write_all(text.as_bytes())?;
            fs::rename(&temporary, self.index_path())
        };
        write().map_err(|source| {
            let _ = fs::remove_file(&temporary);
            Error::Create { path: self.index_path(), source }
        })?;
        Ok(rows.len())
    }

    /// Makes the folder, closed to others and ignored by git.
    pub(super) fn create_dir(&self) -> Result<(), Error> {
        let create_error = |source| Error::Create { path: self.dir.clone(), source };
        if self.dir.is_dir() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(create_error)?;
        match new_file(&self.dir.join(".gitignore")) {
            Ok(mut file) => file.write_all(b"*\n").map_err(create_error),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(create_error(error)),
        }
    }

    /// Makes sure that no session has this name, and that none gets it before what is returned is
    /// dropped. Two processes that begin a session of one name at the same time would else make
    /// it ambiguous for good.
    pub(super) fn claim_name(&self, name: &str) -> Result<Option<File>, Error> {
        // Some file systems lock no folders; there the look at the list is all there is.
        let folder = File::open(&self.dir).ok().filter(|folder| folder.lock().is_ok());
        let taken = self.list()?.into_iter().find(|row| row.name.as_deref() == Some(name));
        match taken {
            Some(row) => Err(Error::NameTaken { name: name.to_owned(), id: row.id }),
            None => Ok(folder),
        }
    }

    /// Adds a row. Failing to is no failure: the list finds the session without it.
    pub(super) fn add_row(&self, row: &Row) {
        // A cloned repository decides what its files are: nothing is written through a link.
        let open = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(self.index_path());
        let Ok(mut file) = open else { return };
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return;
        }
        let line = row_line(row);
        // A torn last row must not swallow this one.
        let line = if ends_open(&mut file) { format!("\n{line}") } else { line };
        let _ = file.write(line.as_bytes());
    }
}

/// Whether the file's last byte is something else than a newline.
fn ends_open(file: &mut File) -> bool {
    use std::io::{Seek, SeekFrom};
    let mut last = [b'\n'];
    file.seek(SeekFrom::End(-1)).is_ok() && file.read_exact(&mut last).is_ok() && last != *b"\n"
}

fn row_line(row: &Row) -> String {
    // Only a path that is no UTF-8 cannot be written.
    let mut line = serde_json::to_string(row).unwrap_or_default();
    line.push('\n');
    line
}

/// A new file for nobody else's eyes.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
}

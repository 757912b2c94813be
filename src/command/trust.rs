//! `etch trust [--list | --remove] [PATH]`: accepting a project's configuration file.

use std::path::{Path, PathBuf};

use super::config::Report;
use super::exit;
use crate::config::{self, Key, TrustState, TrustStore};
use crate::host::Host;
use crate::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Accept,
    List,
    Remove,
}

/// `path` is a project's folder or its file; without it, the project of the working directory.
pub fn run(host: &Host, keys: &[Key], action: Action, path: Option<&Path>) -> Report {
    let mut store = TrustStore::open(host);
    let done = match action {
        Action::Accept => accept(host, keys, &mut store, path),
        Action::List => Ok(list(&store)),
        Action::Remove => remove(host, &mut store, path),
    };
    let mut report = done.unwrap_or_else(|report| report);
    report.messages.splice(0..0, std::mem::take(&mut store.warnings));
    report
}

fn failed(code: u8, message: String) -> Report {
    Report { text: String::new(), messages: vec![message], code }
}

fn file_of(host: &Host, path: Option<&Path>) -> Option<PathBuf> {
    let Some(path) = path else { return config::project_file(host) };
    let path = host.cwd().join(path);
    Some(if path.is_dir() { path.join(".etch/config.toml") } else { path })
}

fn none_here(host: &Host) -> Report {
    let message = format!(
        "no .etch/config.toml at or above {}: there is nothing to trust",
        host.cwd().display()
    );
    failed(exit::USAGE, message)
}

/// Shows the file, refuses a broken one, and records exactly the bytes that were shown.
fn accept(
    host: &Host,
    keys: &[Key],
    store: &mut TrustStore,
    path: Option<&Path>,
) -> Result<Report, Report> {
    let path = file_of(host, path).ok_or_else(|| none_here(host))?;
    let content = match config::read_file(&path) {
        Ok(Some(content)) => content,
        Ok(None) => {
            return Err(failed(exit::USAGE, format!("{}: there is no such file", path.display())));
        }
        Err(error) => return Err(failed(exit::CONFIG, error.to_string())),
    };
    let folder = path.ancestors().nth(2).unwrap_or(Path::new("/"));
    let before = store.state(&path, &content);
    let errors = config::check_project_file(host, keys, &path, &content);
    if !errors.is_empty() {
        let mut messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
        messages.push("not trusted: correct the file first".to_owned());
        return Err(Report { text: String::new(), messages, code: exit::CONFIG });
    }
    if before == TrustState::Trusted {
        let text = format!("already trusted: {}\n", path.display());
        return Ok(Report { text, messages: Vec::new(), code: exit::OK });
    }
    let record =
        store.accept(host, &path, &content).map_err(|reason| failed(exit::FAILED, reason))?;
    let shown = String::from_utf8_lossy(&content);
    let text = format!(
        "{}\n\ntrusted: {} (sha256 {})\nIt counts for everything below {} until one byte of it changes; 'etch trust --remove' takes it back.\n",
        text::visible(shown.trim_end()),
        record.path.display(),
        record.sha256.get(..12).unwrap_or_default(),
        folder.display(),
    );
    Ok(Report { text, messages: Vec::new(), code: exit::OK })
}

/// One line a file: its state now, when it was accepted, where it is.
fn list(store: &TrustStore) -> Report {
    let mut text = String::new();
    for record in store.records() {
        let state = match config::read_file(&record.path) {
            Ok(Some(content)) => match store.state(&record.path, &content) {
                TrustState::Trusted => "trusted",
                TrustState::Changed | TrustState::Unknown => "changed",
            },
            Ok(None) => "missing",
            Err(_) => "unreadable",
        };
        let day = record.time.get(..10).unwrap_or_default();
        text.push_str(&format!("{state:<10}  {day}  {}\n", record.path.display()));
    }
    if text.is_empty() {
        text.push_str("no project is trusted\n");
    }
    Report { text, messages: Vec::new(), code: exit::OK }
}

fn remove(host: &Host, store: &mut TrustStore, path: Option<&Path>) -> Result<Report, Report> {
    let path = file_of(host, path).ok_or_else(|| none_here(host))?;
    match store.remove(&path) {
        Ok(true) => {
            let text = format!("no longer trusted: {}\n", path.display());
            Ok(Report { text, messages: Vec::new(), code: exit::OK })
        }
        Ok(false) => {
            let message = format!(
                "{}: it was not trusted; 'etch trust --list' shows what is",
                path.display()
            );
            Err(failed(exit::USAGE, message))
        }
        Err(reason) => Err(failed(exit::FAILED, reason)),
    }
}

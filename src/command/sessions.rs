//! `etch sessions`: what sessions there are.

use std::path::PathBuf;

use super::args;
use super::exit;
use super::out::{Out, say};
use super::parse::{Typed, Usage};
use crate::config::{self, keys};
use crate::host::Host;
use crate::session::{Row, Store, default_dir};
use crate::text::visible;

pub fn run(typed: &Typed, host: &Host) -> Result<u8, Usage> {
    let json = args::switch(typed, host, "json")?;
    let store = match store(typed, host)? {
        Ok(store) => store,
        Err(code) => return Ok(code),
    };
    let rows = match store.list() {
        Ok(rows) => rows,
        Err(error) => {
            say(&error.to_string());
            return Ok(error.exit_code());
        }
    };
    let mut out = Out::stdout();
    if json {
        print_json(&rows, &mut out);
    } else if rows.is_empty() {
        out.line("no sessions");
    } else {
        for row in &rows {
            out.line(&line(row));
        }
    }
    Ok(out.finish(exit::OK))
}

/// Where the sessions of this directory are: `--session-dir`, else as configured, else of the
/// project. The error is an exit code whose message was said. Only that one key is read, so that
/// mistakes elsewhere in a file do not hide the sessions.
pub fn store(typed: &Typed, host: &Host) -> Result<Result<Store, u8>, Usage> {
    let overrides = args::overrides_of(typed, host)?;
    match config::load(host, &[keys::SESSION_DIR], &overrides) {
        Ok(loaded) => {
            let dir = loaded.config.path(&keys::SESSION_DIR).map(ToOwned::to_owned);
            let project = loaded.project.as_deref();
            Ok(Ok(Store::open(dir.unwrap_or_else(|| default_dir(host, project)))))
        }
        Err(errors) => {
            for error in &errors {
                say(&error.to_string());
            }
            Ok(Err(if errors.iter().all(config::Error::is_usage) {
                exit::USAGE
            } else {
                exit::CONFIG
            }))
        }
    }
}

/// `2026-01-01 00:00  4f2a91c0  make the failing test pass`.
fn line(row: &Row) -> String {
    let time = row.minute();
    let name = row.name.as_deref().map(|name| format!("[{name}] ")).unwrap_or_default();
    let child = if row.parent_session_id.is_some() { "(subagent) " } else { "" };
    let title = visible(&format!("{name}{child}{}", row.title)).replace(['\n', '\t'], " ");
    format!("{time}  {}  {title}", row.short_id())
}

/// An array with one row a line.
fn print_json(rows: &[Row], out: &mut Out) {
    out.text("[");
    for (idx, row) in rows.iter().enumerate() {
        out.text(if idx == 0 { "\n" } else { ",\n" });
        // JSON has no place for bytes that are no UTF-8; the id finds the session all the same.
        let path = PathBuf::from(row.path.to_string_lossy().into_owned());
        let row = Row { path, ..row.clone() };
        out.json(&serde_json::to_string(&row).unwrap_or_default());
    }
    out.line(if rows.is_empty() { "]" } else { "\n]" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line_whatever_its_title() {
        let row = Row {
            id: "4f2a91c0aaaabbbbccccddddeeeeffff".to_owned(),
            path: "/s/x.jsonl".into(),
            created_at: "2026-01-01T10:20:30.5Z".to_owned(),
            cwd: "/".to_owned(),
            title: "fix\n\u{1b}[2Jit".to_owned(),
            name: Some("nightly".to_owned()),
            parent_session_id: None,
        };
        assert_eq!(line(&row), "2026-01-01 10:20  4f2a91c0  [nightly] fix ^[[2Jit");
        let child = Row { name: None, parent_session_id: Some("x".into()), ..row };
        assert_eq!(line(&child), "2026-01-01 10:20  4f2a91c0  (subagent) fix ^[[2Jit");
        let odd = Row { created_at: "yesterday".into(), title: "t".into(), ..child };
        assert_eq!(line(&odd), "unknown time      4f2a91c0  (subagent) t");
    }
}

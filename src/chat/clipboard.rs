//! `/copy`: the last answer to the terminal's clipboard (OSC 52) and into a file, since nobody
//! knows whether the terminal took it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::block::Notice;
use crate::host::Host;

/// Terminals drop longer sequences.
const SEQUENCE_BYTES_MAX: usize = 74_000;

pub struct Copied {
    /// For the terminal.
    pub sequence: Option<String>,
    pub notice: Notice,
    pub message: String,
}

pub fn copy(host: &Host, text: &str) -> Copied {
    let sequence = format!("\x1b]52;c;{}\x07", STANDARD.encode(text));
    let sequence = Some(sequence).filter(|sequence| sequence.len() <= SEQUENCE_BYTES_MAX);
    let sent = if sequence.is_some() {
        "to the clipboard, where the terminal allows it"
    } else {
        "too long for the clipboard"
    };
    let (notice, message) = match write(host, text) {
        Ok(path) => (Notice::Info, format!("copied: {sent}; also in {}", path.display())),
        Err(error) => (Notice::Warn, format!("{sent}; no file could be written: {error}")),
    };
    Copied { sequence, notice, message }
}

fn write(host: &Host, text: &str) -> io::Result<PathBuf> {
    let dir = host.state_dir().unwrap_or_else(|| host.temp_dir().to_owned());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    let path = dir.join("answer.md");
    replace(&path, text)?;
    Ok(path)
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

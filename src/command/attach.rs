//! The user's message: the prompt, then attached input and files under headings.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::args::{PromptSource, RunArgs};
use super::stdin::{self, Attached, Say};
use crate::cancel::{Cancel, Cancelled};
use crate::host::Host;
use crate::session::ATTACHED;
use crate::text::{escape_name, human_bytes, plural};

/// How much text all files of one prompt may have.
const FILES_BYTES_MAX: usize = 1024 * 1024;

/// Why there is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Wrong usage: exit 2.
    Usage(String),
    Cancelled(Cancelled),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(message) => f.write_str(message),
            Error::Cancelled(cancelled) => cancelled.fmt(f),
        }
    }
}

impl From<stdin::Error> for Error {
    fn from(error: stdin::Error) -> Error {
        match error {
            stdin::Error::Usage(message) => Error::Usage(message),
            stdin::Error::Cancelled(cancelled) => Error::Cancelled(cancelled),
        }
    }
}

/// Composes the message. Blocks on standard input as [`stdin`] says; notices go to `say`.
pub fn prompt(host: &Host, args: &RunArgs, cancel: &Cancel, say: Say<'_>) -> Result<String, Error> {
    // Files first: a wrong name is told at once, not after a wait.
    let files = files(&args.files, host, cancel)?;
    let (mut message, input) = match &args.prompt {
        PromptSource::Text(text) => (text.clone(), stdin::attached(args.stdin, host, cancel, say)?),
        PromptSource::Stdin => (stdin::prompt(args.stdin, host, cancel, say)?, None),
    };
    if let Some(input) = input {
        append(&mut message, "standard input", &input);
    }
    for (name, file) in files {
        append(&mut message, &format!("file {name}"), &file);
    }
    Ok(message)
}

fn files(
    paths: &[std::path::PathBuf],
    host: &Host,
    cancel: &Cancel,
) -> Result<Vec<(String, Attached)>, Error> {
    let mut files = Vec::new();
    let mut total = 0;
    for path in paths {
        let name = escape_name(path.as_os_str().as_encoded_bytes()).into_owned();
        if path == Path::new("-") {
            let message = "'-f -': what is piped in is attached without it; leave it out";
            return Err(Error::Usage(message.to_owned()));
        }
        let full = host.cwd().join(path);
        let file =
            open(&full).map_err(|error| Error::Usage(format!("cannot read '{name}': {error}")))?;
        let text = stdin::file(file, &name, host, cancel)?;
        total += text.text.len();
        files.push((name, text));
    }
    if total > FILES_BYTES_MAX {
        return Err(Error::Usage(format!(
            "{} have {} together, more than the {} that -f attaches: name them in the prompt \
             instead, the model reads the parts it needs",
            plural(files.len() as u64, "file"),
            human_bytes(total as u64),
            human_bytes(FILES_BYTES_MAX as u64)
        )));
    }
    Ok(files)
}

/// Opens a file without waiting: not for the other end of a pipe either, which could last for
/// ever and could not be cancelled. Reading waits.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().read(true).custom_flags(flags).open(path)
}

/// Adds a text under its heading, with what has to be said about it.
fn append(message: &mut String, heading: &str, attached: &Attached) {
    message.push_str(&format!("\n\n{ATTACHED}{heading} ---\n"));
    for note in &attached.notes {
        message.push_str(&format!("[{note}]\n"));
    }
    message.push_str(&attached.text);
    if !attached.text.ends_with('\n') && !attached.text.is_empty() {
        message.push('\n');
    }
    message.push_str(&format!("--- end of {heading} ---"));
}

//! The draft in a program of the person's own: `$VISUAL`, `$EDITOR`, else `vi`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded, select};

use crate::host::Host;
use crate::sys::{self, Signal};

/// A longer draft is not read back.
const DRAFT_BYTES_MAX: u64 = 8 << 20;

/// A program that is asked to end has so much time for it.
const END_WITHIN: Duration = Duration::from_millis(500);

/// How it ended.
pub enum Edited {
    /// The draft is this now.
    Text(String),
    /// It stays as it was; why, as a line for the person.
    Failed(String),
    /// This signal asked for the end of the chat, and so the program was asked, too.
    Ended(Signal),
}

/// Waits until the program has ended; it has the terminal meanwhile. What it left in the file
/// becomes the draft. A Ctrl-C is the program's own matter.
pub fn edit(host: &Host, text: &str, signals: &Receiver<Signal>) -> Edited {
    let path = host.temp_dir().join(format!("etch-draft-{}.md", host.new_id()));
    let edited = match write(&path, text) {
        Ok(()) => ask(host, &path, signals),
        Err(message) => Edited::Failed(message),
    };
    // It may never have been there.
    drop(fs::remove_file(&path));
    edited
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn ask(host: &Host, path: &Path, signals: &Receiver<Signal>) -> Edited {
    let set = |name: &str| host.var(name).filter(|value| !value.trim().is_empty());
    let program = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or("vi");
    // By a shell: the variable may hold arguments.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("exec {program} \"$1\"")).arg("etch").arg(path);
    let ended = command.current_dir(host.cwd()).spawn().and_then(|child| wait(child, signals));
    let read = match ended {
        Err(error) => Err(format!("cannot run {program}: {error}")),
        Ok(Err(signal)) => return Edited::Ended(signal),
        Ok(Ok(status)) if status.success() => read_back(path),
        Ok(Ok(status)) => Err(match status.code() {
            // As the shell has it.
            Some(127) => format!("no program '{program}' was found; set EDITOR to one"),
            _ => format!("{program} ended with {status}: the draft is as it was"),
        }),
    };
    read.map_or_else(Edited::Failed, Edited::Text)
}

/// Its status, or the signal that asks for the end of all.
fn wait(mut child: Child, signals: &Receiver<Signal>) -> io::Result<Result<ExitStatus, Signal>> {
    let pid = child.id();
    let (end, ended) = bounded(1);
    let work = move || drop(end.send(child.wait()));
    thread::Builder::new().name("editor".to_owned()).spawn(work)?;
    loop {
        select! {
            recv(ended) -> status => {
                return status.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map(Ok);
            },
            recv(signals) -> signal => {
                let (signal, number) = match signal {
                    Ok(signal @ Signal::Terminate) => (signal, libc::SIGTERM),
                    Ok(signal @ Signal::Hangup) => (signal, libc::SIGHUP),
                    Ok(Signal::Interrupt | Signal::Resized | Signal::Continued) | Err(_) => continue,
                };
                // It may have ended just now.
                drop(sys::kill(pid, number));
                drop(ended.recv_timeout(END_WITHIN));
                return Ok(Err(signal));
            },
        }
    }
}

fn read_back(path: &Path) -> Result<String, String> {
    let size = fs::metadata(path).map(|metadata| metadata.len());
    if size.is_ok_and(|size| size > DRAFT_BYTES_MAX) {
        return Err(format!(
            "the draft is larger than {} MiB now: it is as it was",
            DRAFT_BYTES_MAX >> 20
        ));
    }
    let text = fs::read(path).map_err(|error| format!("cannot read the draft back: {error}"))?;
    let text =
        String::from_utf8(text).map_err(|_| "the draft is not UTF-8 now: it is as it was")?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

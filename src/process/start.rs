//! From a [`Command`] to a running child and our ends of its pipes.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use crate::process::family::Family;
use crate::process::{Command, Error, Stdin, guard};
use crate::sys::{self, Launch, LaunchError, LaunchStage};

/// What a file without a `#!` line is run by, as shells do it.
const SCRIPT_SHELL: &str = "/bin/sh";

pub(super) struct Started {
    pub(super) family: Family,
    pub(super) stdin: Option<PipeWriter>,
    pub(super) stdout: PipeReader,
    pub(super) stderr: PipeReader,
}

/// Starts the command. All our ends are non-blocking.
pub(super) fn start(command: &Command) -> Result<Started, Error> {
    let no_pipe = Error::system("make a pipe");
    let (stdin, stdin_write) = stdin_for(&command.stdin).map_err(&no_pipe)?;
    let (stdout, stdout_write) = io::pipe().map_err(&no_pipe)?;
    let (stderr, stderr_write) = io::pipe().map_err(&no_pipe)?;
    for fd in [stdout.as_fd(), stderr.as_fd()] {
        sys::set_nonblocking(fd, true).map_err(&no_pipe)?;
    }
    if let Some(writer) = &stdin_write {
        sys::set_nonblocking(writer.as_fd(), true).map_err(&no_pipe)?;
    }
    let program = command.cwd.join(&command.program);
    let mut args = vec![c_string(command.program.as_os_str(), "the program's path")?];
    for arg in &command.args {
        args.push(c_string(arg, "an argument")?);
    }
    let env: Result<Vec<_>, _> =
        command.env.iter().map(|(name, value)| variable(name, value)).collect();
    let guard = guard::pipe();
    let mut launch = Launch {
        program: &c_string(program.as_os_str(), "the program's path")?,
        args: &args,
        env: &env?,
        cwd: &c_string(command.cwd.as_os_str(), "the directory's path")?,
        stdio: [stdin.as_fd(), stdout_write.as_fd(), stderr_write.as_fd()],
        announce: guard.as_deref().map(PipeWriter::as_fd),
    };
    let started = match sys::launch(&launch) {
        Err(error) if error.source.raw_os_error() == Some(libc::ENOEXEC) => {
            let shell = c_string(OsStr::new(SCRIPT_SHELL), "the program's path")?;
            let mut script = vec![shell.clone(), launch.program.to_owned()];
            script.extend_from_slice(&args[1..]);
            (launch.program, launch.args) = (&shell, &script);
            sys::launch(&launch)
        }
        other => other,
    };
    let pid = started.map_err(|error| explain(error, command))?;
    let family = Family::of(pid).ok_or_else(|| Error::System {
        doing: "start another process",
        source: io::Error::other("the kernel named no process"),
    })?;
    Ok(Started { family, stdin: stdin_write, stdout, stderr })
}

/// The child's standard input and our end of it.
///
/// Nothing to read is `/dev/null`, because programs that search "the standard input if it is a
/// pipe, else the directory" must see no pipe; an empty pipe where there is no `/dev/null`.
fn stdin_for(stdin: &Stdin) -> io::Result<(OwnedFd, Option<PipeWriter>)> {
    if *stdin == Stdin::Null
        && let Ok(null) = File::open("/dev/null")
    {
        return Ok((null.into(), None));
    }
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), matches!(stdin, Stdin::Bytes(_)).then_some(writer)))
}

fn variable(name: &OsStr, value: &OsStr) -> Result<CString, Error> {
    let mut text = OsString::from(name);
    text.push("=");
    text.push(value);
    c_string(&text, "an environment variable")
}

fn c_string(text: &OsStr, place: &'static str) -> Result<CString, Error> {
    CString::new(OsString::from(text).into_vec()).map_err(|_| Error::Nul { place })
}

fn explain(error: LaunchError, command: &Command) -> Error {
    let LaunchError { stage, source } = error;
    let program = command.cwd.join(&command.program);
    let missing = source.kind() == io::ErrorKind::NotFound;
    match stage {
        LaunchStage::Directory => Error::Directory { cwd: command.cwd.clone(), source },
        LaunchStage::Program if missing && program.exists() => {
            Error::InterpreterNotFound { program }
        }
        LaunchStage::Program if missing => Error::ProgramNotFound { program },
        LaunchStage::Program => Error::Start { program, source },
        LaunchStage::Clone => Error::System { doing: "start another process", source },
        LaunchStage::Descriptors => Error::System { doing: "connect a process", source },
    }
}

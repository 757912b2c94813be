//! One hook from its envelope to its answer: a shell, one line of JSON in, bounded text out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::reply::{self, Reply};
use super::{Error, Failed, Hook};
use crate::cancel::{Cancel, Cancelled};
use crate::process::{self, Capture, Command, EndedBy, Output, Status, Stdin};
use crate::text::{self, human_bytes};

/// Of the form of the envelope.
const VERSION: u32 = 1;
const SHELL: &str = "/bin/sh";
/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_millis(150);
/// Of standard output, and of standard error. A whole conversation fits.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How much of the output a message holds when the hook wrote no diagnostics.
const SHOWN_BYTES_MAX: usize = 300;

/// What every hook of a run gets beside its event.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Where hooks run, absolute.
    pub cwd: PathBuf,
    /// Their whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// As in [`Command::mark`].
    pub mark: Option<OsString>,
}

/// A hook that ran, however it ended.
#[derive(Debug)]
pub struct Ran {
    /// `None`: it could not be started.
    pub output: Option<Output>,
    pub reply: Result<Reply, Error>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    version: u32,
    event: &'a str,
    cwd: &'a str,
    payload: &'a Value,
}

/// Runs one hook to its end: until its command has ended and nothing writes any more, its time
/// limit, or the cancellation.
pub fn run(hook: &Hook, setup: &Setup, payload: &Value, cancel: &Cancel) -> Ran {
    let cwd = setup.cwd.to_string_lossy();
    let envelope = Envelope { version: VERSION, event: hook.event.name(), cwd: &cwd, payload };
    let mut input = match serde_json::to_vec(&envelope) {
        Ok(input) => input,
        Err(error) => {
            let fault = format!("its input cannot be written: {error}");
            return Ran { output: None, reply: Err(failed(hook, fault, String::new())) };
        }
    };
    input.push(b'\n');
    let command = Command {
        program: PathBuf::from(SHELL),
        args: vec!["-c".into(), hook.command.as_str().into()],
        cwd: setup.cwd.clone(),
        env: setup.env.clone(),
        stdin: Stdin::Bytes(input),
        timeout: hook.timeout,
        grace: GRACE,
        // A child that still writes may write the answer.
        drain: None,
        head_bytes: OUTPUT_BYTES_MAX,
        tail_bytes: 0,
        mark: setup.mark.clone(),
    };
    match process::run(&command, cancel) {
        Ok(output) => {
            let reply = judge(hook, &output);
            Ran { output: Some(output), reply }
        }
        Err(process::Error::Cancelled(Cancelled(reason))) => {
            Ran { output: None, reply: Err(Error::Cancelled(reason)) }
        }
        Err(error) => {
            Ran { output: None, reply: Err(failed(hook, error.to_string(), String::new())) }
        }
    }
}

/// The one table of outcomes, as `docs/hooks.md` has it.
fn judge(hook: &Hook, output: &Output) -> Result<Reply, Error> {
    let fault = match (output.ended_by, output.status) {
        (Some(EndedBy::Cancel(reason)), _) => return Err(Error::Cancelled(reason)),
        (Some(EndedBy::Timeout { stopped }), status) => timed_out(hook, stopped, status),
        (None, Status::Exited(0)) if output.stdout.elided_bytes > 0 => format!(
            "it wrote {}, and at most {} are read",
            human_bytes(output.stdout.total_bytes()),
            human_bytes(OUTPUT_BYTES_MAX as u64)
        ),
        (None, Status::Exited(0)) => match reply::parse(hook.event, &output.stdout.head) {
            Ok(reply) => return Ok(reply),
            Err(fault) => fault,
        },
        (None, Status::Exited(code)) => format!("exit code {code}"),
        (None, Status::Signalled(number)) => format!("it was ended by signal {number}"),
        (None, Status::Unknown) => "how it ended is not known".to_owned(),
    };
    Err(failed(hook, fault, said(output)))
}

fn timed_out(hook: &Hook, stopped: bool, status: Status) -> String {
    let seconds = hook.timeout.as_secs();
    let more = match status {
        _ if stopped => "; it did not run any more, a signal had stopped it",
        Status::Exited(0) => "; it had ended, but what it started still held its output",
        _ => "",
    };
    format!("timed out after {seconds} s{more}")
}

/// Its diagnostics; without any, the start of its output.
fn said(output: &Output) -> String {
    let errors = words(&output.stderr);
    if !errors.is_empty() {
        return errors;
    }
    let written = words(&output.stdout);
    match written.len() <= SHOWN_BYTES_MAX {
        true => written,
        false => format!("{}…", text::floor_char(&written, SHOWN_BYTES_MAX)),
    }
}

/// What a program wrote, as text for people.
pub fn words(capture: &Capture) -> String {
    let text = text::decode_lossy(&capture.head);
    text::strip_ansi(&text).trim().to_owned()
}

fn failed(hook: &Hook, fault: String, said: String) -> Error {
    Error::Failed(Failed {
        event: hook.event,
        place: hook.place.clone(),
        command: hook.command.clone(),
        fault,
        said,
    })
}

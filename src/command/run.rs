//! `etch -p`: one prompt, one turn, one exit code.
//!
//! Whatever happens on the way, a JSON run ends with exactly one `run.result` line whose `exit`
//! is the process's; a text run puts the answer on stdout and every other word on stderr.

use std::io::{self, IsTerminal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::args::{RunArgs, SessionChoice};
use super::face::{self, Face};
use super::interrupt::{self, Deadline};
use super::result::RunResult;
use super::{attach, panics, reader};
use crate::agent::{self, Failure, Stop};
use crate::cancel::{Cancel, Cancelled};
use crate::harness::{self, Harness, Options, Resume, SessionRequest};
use crate::host::Host;
use crate::workspace::reason;

/// Runs one prompt and returns the exit code.
pub fn run(host: Host, args: &RunArgs) -> u8 {
    run_with(&Arc::new(host), args, None)
}

/// The same with a recorded model in place of the configured one.
pub fn run_with(host: &Arc<Host>, args: &RunArgs, recording: Option<Vec<Vec<u8>>>) -> u8 {
    panics::keep_messages();
    let started = host.elapsed();
    let cancel = Cancel::new();
    interrupt::watch(&cancel);
    let _watch = reader::watch(&cancel);
    let deadline = args.timeout.map(|limit| Deadline::start(limit, &cancel));
    let mut face = Face::new(host, args, &cancel);
    let ended = catch_unwind(AssertUnwindSafe(|| turn(host, args, recording, &cancel, &mut face)));
    drop(deadline);
    let passed = host.elapsed().saturating_sub(started);
    let millis = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
    let result = match ended {
        Ok(Ok(Turn { outcome, session_id, auth })) => {
            RunResult::of_turn(outcome, session_id, auth, millis)
        }
        Ok(Err(Early { stop, exit, failure })) => RunResult::early(stop, exit, failure, millis),
        Err(_) => RunResult::panicked(panics::last_message(), millis),
    };
    face.end(result)
}

/// A turn that ran.
struct Turn {
    outcome: agent::Outcome,
    session_id: Option<String>,
    auth: &'static str,
}

/// A run that ended before its turn began.
pub struct Early {
    stop: &'static str,
    pub exit: u8,
    pub failure: Failure,
}

impl Early {
    pub fn usage(message: String) -> Early {
        let failure = Failure { kind: "usage", message, hint: String::new() };
        Early { stop: "error", exit: super::exit::USAGE, failure }
    }
}

impl From<harness::Error> for Early {
    fn from(error: harness::Error) -> Early {
        Early { stop: error.stop(), exit: error.exit_code(), failure: error.failure() }
    }
}

impl From<Cancelled> for Early {
    fn from(Cancelled(reason): Cancelled) -> Early {
        let stop = Stop::Cancelled(reason);
        let failure = Failure {
            kind: stop.as_str(),
            message: Cancelled(reason).to_string(),
            hint: "nothing was sent".to_owned(),
        };
        Early { stop: stop.as_str(), exit: stop.exit_code(), failure }
    }
}

impl From<attach::Error> for Early {
    fn from(error: attach::Error) -> Early {
        match error {
            attach::Error::Cancelled(cancelled) => cancelled.into(),
            attach::Error::Usage(message) => Early::usage(message),
        }
    }
}

/// Everything up to the turn's end.
fn turn(
    host: &Arc<Host>,
    args: &RunArgs,
    recording: Option<Vec<Vec<u8>>>,
    cancel: &Cancel,
    face: &mut Face,
) -> Result<Turn, Early> {
    harness::check_depth(host)?;
    let loaded = harness::load(host, &args.overrides)?;
    for warning in &loaded.warnings {
        face.say(warning);
    }
    if let Some(path) = &args.output_file {
        face::check_output_file(&host.cwd().join(path)).map_err(|error| {
            let name = path.display();
            Early::usage(format!("-o: cannot write to {name}: {}", reason(&error)))
        })?;
    }
    let prompt = attach::prompt(host, args, cancel, &mut |line| face.say(line))?;
    cancel.check()?;
    let options = Options { recording, probe_local: is_person() };
    let request = SessionRequest {
        resume: resume(&args.session),
        fork: args.fork,
        keep: !args.no_session,
        title: prompt.clone(),
    };
    let say = &mut |line: &str| face.say(line);
    let (harness, mut conversation) =
        Harness::build(host, &loaded, options, &request, cancel, say)?;
    cancel.check()?;
    if args.verbose > 0 {
        face.say(&format!("auth: {}", harness.access().describe()));
    }
    let outcome = {
        let observer = face.start();
        harness.turn(&mut conversation, &prompt, &mut Vec::new, cancel, observer)
    };
    // Without a file there is nothing to go on with.
    let session_id = conversation.log.path().map(|_| conversation.log.id().to_owned());
    // The process ends now. To give back every message of a long session first is a tenth of the
    // time that a run on it takes.
    std::mem::forget(conversation.projection);
    Ok(Turn { outcome, session_id, auth: harness.access().mode() })
}

/// Only a person is helped by a model server that happens to run here.
pub fn is_person() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

pub fn resume(choice: &SessionChoice) -> Option<Resume> {
    match choice {
        SessionChoice::New => None,
        SessionChoice::Id(wanted) => Some(Resume::Named(wanted.clone())),
        SessionChoice::Existing(wanted) => Some(Resume::Existing(wanted.clone())),
        SessionChoice::Continue => Some(Resume::Latest),
    }
}

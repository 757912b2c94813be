//! `etch compact`: a stored session is summarised, so that its next turn begins with more room.

use std::sync::Arc;

use super::args::CompactArgs;
use super::out::{Out, say};
use super::{exit, interrupt, panics, run};
use crate::agent::{Compacted, Event, NotCompacted, Observer, Stop};
use crate::cancel::Cancel;
use crate::harness::{self, Harness, Options, SessionRequest};
use crate::host::Host;
use crate::model::ModelEvent;

/// Compacts the session and returns the exit code. Nothing to do is no failure.
pub fn run(host: Host, args: &CompactArgs) -> u8 {
    panics::keep_messages();
    let host = Arc::new(host);
    let cancel = Cancel::new();
    interrupt::watch(&cancel);
    let (session_id, result) = match compact(&host, args, &cancel) {
        Ok(done) => done,
        Err(error) => {
            say(&error.failure().to_string());
            return error.exit_code();
        }
    };
    match result {
        Ok(compacted) => print(&session_id, &compacted, args.json),
        Err(reason) => {
            say(&reason.to_string());
            match reason {
                NotCompacted::NothingToFold => exit::OK,
                NotCompacted::Failed(_) => exit::FAILED,
                NotCompacted::Cancelled(reason) => Stop::Cancelled(reason).exit_code(),
                NotCompacted::LogFailed(message) => Stop::LogFailed(message).exit_code(),
            }
        }
    }
}

fn compact(
    host: &Arc<Host>,
    args: &CompactArgs,
    cancel: &Cancel,
) -> Result<(String, Result<Compacted, NotCompacted>), harness::Error> {
    let loaded = harness::load(host, &args.overrides)?;
    loaded.warnings.iter().for_each(|warning| say(warning));
    let options = Options { recording: None, probe_local: run::is_person() };
    let request = SessionRequest {
        resume: run::resume(&args.session),
        fork: false,
        keep: true,
        title: String::new(),
    };
    let tell = &mut |line: &str| say(line);
    let (harness, mut conversation) =
        Harness::build(host, &loaded, options, &request, cancel, tell)?;
    let result = harness.compact(&mut conversation, &args.instructions, cancel, Notices);
    Ok((conversation.log.id().to_owned(), result))
}

fn print(session_id: &str, done: &Compacted, json: bool) -> u8 {
    let mut out = Out::stdout();
    if json {
        let object = serde_json::json!({
            "sessionId": session_id,
            "summaryEventId": done.summary_id,
            "tokensBefore": done.tokens_before,
            "tokensAfter": done.tokens_after,
        });
        out.json(&object.to_string());
        out.text("\n");
    } else {
        let short = session_id.get(..8).unwrap_or(session_id);
        let (before, after) = (done.tokens_before, done.tokens_after);
        out.line(&format!("compacted session {short}: ~{before} to ~{after} tokens"));
        out.line(&format!("summary event: {}", done.summary_id));
    }
    out.finish(exit::OK)
}

/// What a person should know while they wait.
struct Notices;

impl Observer for Notices {
    fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Model(ModelEvent::Retry(retry)) => say(&retry.to_string()),
            Event::Model(ModelEvent::Notice(message)) => say(message),
            Event::Notice(message) => say(message),
            Event::Logged { .. }
            | Event::RoundStarted { .. }
            | Event::Model(_)
            | Event::ToolStarted { .. }
            | Event::ToolFinished { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionEnded(_) => {}
        }
    }
}

//! `--print-request`: what a run would send first, for people who want to see what the model sees.
//!
//! Everything up to the request is a run's own code. Nothing is sent to the model, no token is
//! renewed, and nothing is written; a session that another process holds can be looked at, too.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::args::{OutputMode, RunArgs};
use super::out::{Out, say};
use super::run::{Early, is_person, resume};
use super::{attach, interrupt};
use crate::cancel::Cancel;
use crate::config::Row;
use crate::harness::{self, Harness, Options, SessionRequest};
use crate::hook::HookEvent;
use crate::host::Host;
use crate::model::Preview;

/// Prints the request and returns the exit code.
pub fn run(host: Host, args: &RunArgs) -> u8 {
    match preview(&Arc::new(host), args) {
        Ok(preview) => print(&preview, args.output == OutputMode::Json, Out::stdout()),
        Err(Early { exit, failure, .. }) => {
            say(&failure.to_string());
            exit
        }
    }
}

fn preview(host: &Arc<Host>, args: &RunArgs) -> Result<Preview, Early> {
    let cancel = Cancel::new();
    interrupt::watch(&cancel);
    let tell = &mut |line: &str| {
        if !args.quiet {
            say(line);
        }
    };
    let loaded = harness::load(host, &args.overrides)?;
    loaded.warnings.iter().for_each(|warning| tell(warning));
    if loaded.tables.hooks.iter().any(changes_request) {
        tell("hooks do not run here: what they change in a request is not shown");
    }
    let prompt = attach::prompt(host, args, &cancel, tell)?;
    let request = SessionRequest {
        resume: resume(&args.session),
        fork: args.fork,
        keep: false,
        title: String::new(),
    };
    let options = Options { recording: None, probe_local: is_person() };
    let (harness, conversation) = Harness::build(host, &loaded, options, &request, &cancel, tell)?;
    cancel.check()?;
    harness.preview(&conversation, &prompt).ok_or_else(|| {
        Early::usage("--print-request: this provider sends no request anywhere".to_owned())
    })
}

fn changes_request(hook: &Row) -> bool {
    let event = hook.text("event").and_then(HookEvent::by_name);
    let changes = matches!(event, Some(HookEvent::UserPromptSubmit | HookEvent::ContextBuild));
    changes && !hook.is_disabled()
}

/// As HTTP writes it, the body in its very bytes; or as one line of JSON.
fn print(preview: &Preview, json: bool, mut out: Out) -> u8 {
    let Preview { method, url, headers, body } = preview;
    if json {
        let headers: serde_json::Map<_, _> =
            headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        let raw = serde_json::from_str::<&RawValue>(body).ok();
        let object = Object { method, url, headers: &headers, body: raw };
        out.json(&serde_json::to_string(&object).unwrap_or_default());
        out.text("\n");
    } else {
        out.foreign(&format!("{method} {url}\n"));
        for (name, value) in headers {
            out.foreign(&format!("{name}: {value}\n"));
        }
        out.text("\n");
        out.json(body);
        out.text("\n");
    }
    out.finish(super::exit::OK)
}

#[derive(serde::Serialize)]
struct Object<'a> {
    method: &'a str,
    url: &'a str,
    headers: &'a serde_json::Map<String, serde_json::Value>,
    body: Option<&'a RawValue>,
}

//! `etch demo`: a real run with a recorded model. Everything but the model is real: the files,
//! the tools, the shell, the log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::{Color, OutputMode, PromptSource, RunArgs, SessionChoice, StdinMode};
use super::out::say;
use super::{exit, run};
use crate::config::{Origin, Overrides, Setting};
use crate::host::Host;

const PROMPT: &str = "make the failing test pass";

/// The broken repository: path and content.
const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("../../fixtures/demo/workspace/README.md")),
    ("lib/price.sh", include_str!("../../fixtures/demo/workspace/lib/price.sh")),
    ("test.sh", include_str!("../../fixtures/demo/workspace/test.sh")),
];

/// What the model said when this was recorded, one stream per request.
const STREAMS: &[&[u8]] = &[
    include_bytes!("../../fixtures/demo/response-1.sse"),
    include_bytes!("../../fixtures/demo/response-2.sse"),
    include_bytes!("../../fixtures/demo/response-3.sse"),
    include_bytes!("../../fixtures/demo/response-4.sse"),
    include_bytes!("../../fixtures/demo/response-5.sse"),
];

/// Runs the demo and returns its exit code: that of the run.
pub fn run(host: Host) -> u8 {
    let dir = match copy_repository(&host) {
        Ok(dir) => dir,
        Err((path, error)) => {
            say(&format!("cannot write the demo to {}: {error}", path.display()));
            return exit::FAILED;
        }
    };
    say(&format!("a small repository with a failing test is in {}", dir.display()));
    say(&format!("a recorded model repairs it; no network is used: etch -p \"{PROMPT}\""));
    let sessions = dir.join(".etch/sessions");
    let args = arguments(&sessions);
    let recording = STREAMS.iter().map(|stream| stream.to_vec()).collect();
    let code = run::run_with(&Arc::new(host.with_cwd(&dir)), &args, Some(recording));
    if code == exit::OK {
        say_next(&dir);
    }
    code
}

fn arguments(sessions: &Path) -> RunArgs {
    let session_dir = Setting {
        key: "session.dir".to_owned(),
        value: sessions.to_string_lossy().into_owned(),
        origin: Origin::Flag("--session-dir".to_owned()),
    };
    RunArgs {
        prompt: PromptSource::Text(PROMPT.to_owned()),
        stdin: StdinMode::Never,
        files: Vec::new(),
        session: SessionChoice::New,
        fork: false,
        no_session: false,
        overrides: Overrides { no_files: true, trust_project: false, settings: vec![session_dir] },
        output: OutputMode::Text,
        deltas: false,
        print_request: false,
        output_file: None,
        quiet: false,
        verbose: 0,
        color: Color::Auto,
        stream: None,
        timeout: None,
        // It is over, and elsewhere; what comes next is said in other words.
        go_on: None,
    }
}

fn copy_repository(host: &Host) -> Result<PathBuf, (PathBuf, io::Error)> {
    let id = host.new_id();
    let name = format!("etch-demo-{}", id.get(..8).unwrap_or(&id));
    let dir = host.temp_dir().join(name);
    for (name, content) in FILES {
        let path = dir.join(name);
        let folder = path.parent().unwrap_or(&dir);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, content))
            .map_err(|error| (path.clone(), error))?;
    }
    Ok(dir)
}

fn say_next(dir: &Path) {
    let dir = dir.display();
    say("done. Look at what it did, or do the same with a real model in your own repository:");
    for (command, what) in [
        (format!("cd {dir} && sh test.sh"), "the test, now passing"),
        (format!("etch show --session-dir {dir}/.etch/sessions"), "the log of this run"),
        (format!("etch -p \"{PROMPT}\" --provider local"), "a model server on this machine"),
        (
            format!("OPENAI_API_KEY=... etch -p \"{PROMPT}\" --provider openai --model NAME"),
            "a hosted model",
        ),
    ] {
        say(&format!("  {command}\n            {what}"));
    }
}

//! Recorded answers of Responses servers: what each of them means, however it is cut.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use etch::host::Host;
use etch::model::{ModelEvent, Request};
use etch::provider::openai::responses::reader::{self, Origin};

use crate::support::model::{tools, user};

/// Events and outcome as text, one line each.
fn read(pieces: &[&[u8]]) -> String {
    let (tools, messages) = (tools(), [user("12345678")]);
    let request = Request {
        model: "m",
        system: &[],
        messages: &messages,
        tools: &tools,
        session_id: "s",
        reasoning_effort: None,
        reasoning_summary: None,
        max_output_tokens: None,
    };
    let origin = Origin { provider: "p", authority: "host", repeats_reasoning: false };
    let mut reader = reader::new(&request, origin);
    let mut shown = String::new();
    let mut sink = |event: ModelEvent| writeln!(shown, "{event:?}").unwrap();
    let mut result = Ok(());
    for piece in pieces {
        result = result.and_then(|()| reader.push(piece, &mut sink));
    }
    let unknown = reader.unknown_events();
    let outcome = match result {
        Ok(()) => reader.finish(&Host::fixed(), &mut sink),
        Err(error) => Err(error),
    };
    if unknown > 0 {
        writeln!(shown, "unknown events: {unknown}").unwrap();
    }
    match outcome {
        Ok(finish) => writeln!(shown, "finish: {}", finish.as_str()).unwrap(),
        Err(error) => {
            let again = if error.retryable { "try again" } else { "final" };
            let wait = error.retry_after.map(|wait| format!(" in {wait:?}")).unwrap_or_default();
            let kind = error.kind.as_str();
            writeln!(shown, "error: {kind} ({again}{wait}): {error}").unwrap();
        }
    }
    shown
}

fn streams() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/responses");
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "sse"));
    paths.sort();
    assert!(paths.len() >= 140, "{} streams", paths.len());
    paths
}

/// `UPDATE_FIXTURES=1` in the environment writes what is read: look at the difference.
#[test]
fn every_recorded_answer_means_what_its_golden_file_says_however_it_is_cut() {
    let mut wrong = Vec::new();
    for path in streams() {
        let bytes = fs::read(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let got = read(&[&bytes]);
        let want_path = path.with_extension("want");
        if std::env::var_os("UPDATE_FIXTURES").is_some() {
            fs::write(&want_path, &got).unwrap();
        }
        let want = fs::read_to_string(&want_path).unwrap_or_default();
        if got != want {
            wrong.push(format!("{name}: got\n{got}want\n{want}"));
            continue;
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        if read(&single) != want {
            wrong.push(format!("{name}: byte by byte it is\n{}want\n{want}", read(&single)));
        }
        for cut in (0..bytes.len()).step_by(53) {
            let (one, two) = bytes.split_at(cut);
            if read(&[one, two]) != want {
                wrong.push(format!("{name}: cut at {cut} it is\n{}", read(&[one, two])));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

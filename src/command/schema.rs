//! `etch schema`: the JSON Schemas of what etch writes and reads.

use super::exit;
use super::out::Out;
use crate::config;
use crate::harness;

/// One line of a session or of `--json`.
const EVENTS: &str = include_str!("schema/events.json");
/// The `run.result` line.
const RESULT: &str = include_str!("schema/result.json");

pub fn run(what: &str, mut out: Out) -> u8 {
    match what {
        "events" => out.text(EVENTS),
        "result" => out.text(RESULT),
        _ => out.text(&config::schema::schema(&harness::keys())),
    };
    out.finish(exit::OK)
}

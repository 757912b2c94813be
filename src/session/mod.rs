//! The append-only log: event types, one writer, reading, the index.
//!
//! One session is one file of JSON lines, one event a line, one `write` an append. The log is
//! the protocol: `--json` prints these lines, `show --json` prints them again, a resumed turn is
//! projected from them. No line is ever rewritten; a torn last line is repaired by appending.

mod event;

pub use event::{ContentPart, EventData};

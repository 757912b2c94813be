//! The append-only log: event types, one writer, reading, the index.
//!
//! One session is one file of JSON lines, one event a line, one `write` an append. The log is
//! the protocol: `--json` prints these lines, `show --json` prints them again, a resumed turn is
//! projected from them. No line is ever rewritten; a torn last line is repaired by appending.

mod calls;
mod chain;
mod data;
mod error;
mod event;
mod head;
mod holder;
mod lines;
mod log;
mod points;
mod read;
mod replay;
mod status;
mod store;

pub use calls::{Calls, Ended, ModelCall, Retried};
pub use chain::hash_id;
pub use data::{
    AssistantMessage, Call, Changed, CompactionFailed, Content, Data, Denied, Folded, PartRef,
    Pointer, ProviderItem, ReasoningData, Repaired, ResponseData, RetryData, Started, Stopped,
    Summary, Text, ToolMessage, UserMessage, Window,
};
pub use error::Error;
pub use event::{ContentPart, EventData, Fold, NewSummary, Way};
pub use head::{ATTACHED, title_of};
pub use lines::LINE_BYTES_MAX;
pub use log::{Appended, Log};
pub use points::{Left, Points, Prompt, points};
pub use read::{Bad, Event, parse};
pub use replay::{Replayed, Sink, Torn, each_event, replay};
pub use status::Counters;
pub use store::{Row, Store, default_dir};

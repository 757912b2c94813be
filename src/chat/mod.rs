//! The chat: a line-oriented terminal that stays native.
//!
//! Finished lines belong to the terminal's own scrollback and are written once; only a small live
//! region below them is drawn again. Keys and the kernel's events go in, painted lines and bytes
//! come out: everything between is pure and is tested without a terminal. It depends on what the
//! kernel tells of a turn and on nothing else of it.

pub mod block;
pub mod clipboard;
pub mod command;
pub mod complete;
pub mod custom;
pub mod draft;
pub mod editor;
pub mod footer;
pub mod key;
pub mod lines;
pub mod list;
pub mod live;
pub mod output;
pub mod outputs;
pub mod picker;
pub mod places;
pub mod reader;
pub mod report;
pub mod run;
pub mod stage;
pub mod stream;
pub mod tally;
pub mod terminal;
pub mod told;
pub mod transcript;
pub mod worker;
pub mod working;

use std::time::Duration;

use crate::agent::Failure;

/// After its end was asked for, the chat is gone by then.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The exit code after a mistake in the chat itself.
const PANICKED: u8 = 70;

/// How a chat ended.
pub struct Ended {
    pub code: u8,
    /// Why it could not even begin.
    pub failure: Option<Failure>,
}

//! The chat: a line-oriented terminal that stays native.
//!
//! Finished lines belong to the terminal's own scrollback and are written once; only a small live
//! region below them is drawn again. Keys and the kernel's events go in, painted lines and bytes
//! come out: everything between is pure and is tested without a terminal. It depends on what the
//! kernel tells of a turn and on nothing else of it.

pub mod block;
pub mod command;
pub mod complete;
pub mod editor;
pub mod footer;
pub mod key;
pub mod list;
pub mod live;
pub mod outputs;
pub mod picker;
pub mod report;
pub mod stream;
pub mod tally;
pub mod told;
pub mod transcript;
pub mod worker;
pub mod working;

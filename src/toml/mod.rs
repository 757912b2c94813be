//! The part of TOML that settings are written in: bytes in, values with their places out.
//!
//! Read: comments, `[tables]`, `[[arrays of tables]]`, bare, quoted and dotted keys, inline tables,
//! lists over several lines with a last comma, all four kinds of strings, integers (also `1_000`,
//! `0x1f`, `0o17`, `0b1`), floats, booleans, LF and CRLF, a byte order mark. The escapes `\e` and
//! `\xHH` and line ends within inline tables are those of TOML 1.1.
//!
//! Refused by name: dates and times. Everything else that is not TOML is an error that says where
//! it stands and what to write instead; a key or a table that is given twice names the first one.
//! Nothing is skipped: an ignored setting would be a lie to its author. It knows no key by name.
//!
//! Limits: [`BYTES_MAX`] for a file, [`DEPTH_MAX`] for what is nested. Work is linear in the input.

mod parse;
mod scalar;
mod scan;
mod value;

pub use parse::parse;
pub use value::{Data, Document, Error, Position, Table, Value};

/// A larger file is no settings file.
pub const BYTES_MAX: usize = 4 << 20;

/// How deep tables and lists may be nested, and how many parts a key may have.
pub const DEPTH_MAX: usize = 64;

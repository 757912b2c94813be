//! etch: a coding-agent harness in one small static binary.
//!
//! The modules below are floors: each may use only modules listed above it, as `tests/tidy.rs`
//! checks edge by edge. The kernel (everything up to `harness`) knows no terminal; `render`,
//! `chat` and `command` are its faces.

// Floor 0: no knowledge of anything but the platform and plain data.
pub mod cancel;
pub mod diff;
pub mod host;
pub mod sys;
pub mod text;
pub mod toml;
// Floor 1: the world outside: children, the working tree, the wire.
pub mod process;
pub mod wire;
pub mod workspace;
// Floor 2: what a model is.
pub mod model;
// Floor 3: settings and the log.
pub mod config;
pub mod session;
// Floor 4: adapters and tools.
pub mod hook;
pub mod policy;
pub mod provider;
pub mod tool;
// Floor 5: what the model sees.
pub mod context;
// Floor 6: the turn.
pub mod agent;
// Floor 7: assembly.
pub mod harness;
// Floor 8: the faces.
pub mod chat;
pub mod command;
pub mod render;

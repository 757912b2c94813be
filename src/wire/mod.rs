//! The wire: framing (pure) and connections that can be cut from another thread.
//!
//! Knows nothing of models. [`http`] asks and gets one answer; whoever needs an answer asks a
//! [`Transport`], so that recorded bytes take the same way as live ones. [`websocket`] holds a
//! connection on which both sides speak.

mod dial;
mod frames;
pub mod http;
mod names;
pub mod proxy;
mod socket;
pub mod sse;
mod target;
mod tls;
mod transport;
mod upgrade;
pub mod url;
pub mod websocket;

pub use transport::{
    Body, Call, Header, Phase, Recorded, Reply, Transport, WireError, WireErrorKind,
};

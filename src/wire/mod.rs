//! The wire: framing (pure) and connections that can be cut from another thread.
//!
//! Knows nothing of models. [`http`] is the only code that speaks HTTP; whoever needs an answer
//! asks a [`Transport`], so that recorded bytes take the same way as live ones.

pub mod http;
pub mod proxy;
pub mod sse;
mod tls;
mod transport;
pub mod url;

pub use transport::{
    Body, Call, Header, Phase, Recorded, Reply, Transport, WireError, WireErrorKind,
};

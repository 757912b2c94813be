//! OpenAI's protocols, as the compatible world really speaks them.

pub mod access;
pub mod answer;
pub mod auth;
mod calls;
pub mod chat;
mod chunk;
pub mod endpoint;
pub mod exchange;
pub mod models;
pub mod reader;
pub mod request;
pub mod responses;
mod surrogate;
mod think;
pub(super) mod usage;

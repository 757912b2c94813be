//! What the scenario modules share: scripted servers and the checks that they hold requests to.
#![allow(dead_code)]

pub mod alone;
pub mod chat;
pub mod command;
pub mod golden;
pub mod history;
pub mod issuer;
pub mod model;
pub mod pty;
pub mod random;
pub mod relay;
pub mod responses;
pub mod responses_rules;
pub mod schema;
pub mod server;
pub mod session;
pub mod talk;
pub mod tls;
pub mod tokens;
pub mod tool;

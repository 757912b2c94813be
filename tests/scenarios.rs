//! Everything that a user would notice, the real binary included: one module per capability.
// A test that cannot go on says so by panicking.
#![allow(clippy::unwrap_used)]

mod support;

mod agent;
mod auth;
mod bash;
mod chat;
mod chat_endurance;
mod chat_page;
mod chat_screens;
mod chat_stalled;
mod cli;
mod compaction;
mod config;
mod config_docs;
mod context_view;
mod contract;
mod diff;
mod docs;
mod edit;
mod fuzz;
mod hooks;
mod ignore_rules;
mod instructions;
mod print_request;
mod process;
mod provider;
mod read;
mod rewind;
mod screen;
mod search;
mod session;
mod show_stats;
mod stats;
mod stdin;
mod terminal;
mod tidy;
mod tokens;
mod toml;
mod transcripts;
mod transports;
mod trouble;
mod turns;
mod wire;
mod wire_tls;
mod wire_ws;
mod write;

//! Providers against scripted servers: what a person notices of how a model is called.

mod answers;
mod cancel;
mod errors;
mod requests;
mod responses;
mod responses_streams;
mod retries;
mod socket;

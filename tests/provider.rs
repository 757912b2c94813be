//! Providers against scripted servers: what a person notices of how a model is called.

mod answers;
mod cancel;
mod errors;
mod limits;
mod requests;
mod responses;
mod responses_errors;
mod responses_streams;
mod retries;
mod socket;
mod window;

use crate::support::server::Server;

/// How often a model was asked, over whatever transport.
fn requests_of(server: &Server) -> usize {
    let seen = server.seen();
    let posted = seen.iter().filter(|seen| seen.path.ends_with("/responses"));
    posted.filter(|seen| seen.method == "POST").count()
        + server.messages().len().max(seen.iter().filter(|seen| seen.method == "GET").count())
}

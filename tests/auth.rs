//! Signing in with a subscription: the ways to get it, its renewal, and where it may go.

mod login;
mod places;
mod renewal;
mod secrets;

use std::path::PathBuf;

use crate::support::command::Place;

/// Where a sign-in is kept.
fn file(place: &Place) -> PathBuf {
    place.home.path().join(".etch/auth/openai.json")
}

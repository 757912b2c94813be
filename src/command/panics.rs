//! Bugs in etch: their message is kept for the result instead of being printed by the runtime.

use std::panic;
use std::sync::{Mutex, PoisonError};

static LAST: Mutex<String> = Mutex::new(String::new());

/// From now on a panic prints nothing; whoever catches it asks for [`last_message`].
pub fn keep_messages() {
    panic::set_hook(Box::new(|info| {
        let what = info.payload_as_str().unwrap_or("a failure without a message");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = format!("{what} ({place})");
    }));
}

/// What the last panic said, and where it was.
pub fn last_message() -> String {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

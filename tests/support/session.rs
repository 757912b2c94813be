//! Pieces of session logs.

use etch::session::EventData;

/// The start event of a session in a directory.
pub fn started(cwd: &str) -> EventData {
    EventData::SessionStarted {
        cwd: cwd.into(),
        version: "0.1.0".into(),
        name: None,
        fork_session_path: None,
        fork_event_id: None,
    }
}

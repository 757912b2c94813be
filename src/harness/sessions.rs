//! Which session a turn belongs to: a new one, a resumed one, or a fork.

use std::path::PathBuf;

use super::{Error, Say};
use crate::agent::Conversation;
use crate::config::{Loaded, keys};
use crate::context::project::Projection;
use crate::host::Host;
use crate::session::{self, EventData, Log, Row, Store};

/// Which session a turn belongs to.
pub struct SessionRequest {
    pub resume: Option<Resume>,
    /// Continue a new session that points at the resumed one.
    pub fork: bool,
    /// False: no file is written, not even that of a resumed session.
    pub keep: bool,
    /// The first prompt, for the list of sessions.
    pub title: String,
}

pub enum Resume {
    /// The start of an id, or a name; a name that no session has begins one.
    Named(String),
    /// The start of an id, or a name, of a session that there is.
    Existing(String),
    /// The one of this project that was written to last.
    Latest,
}

/// Where the sessions of this run are kept.
pub fn store(host: &Host, loaded: &Loaded) -> Store {
    let dir = loaded.config.path(&keys::SESSION_DIR).map(PathBuf::from);
    Store::open(dir.unwrap_or_else(|| session::default_dir(host, loaded.project.as_deref())))
}

/// Begins or resumes the session. Nothing is on the disk of a new one before its first event.
pub fn open(
    host: &Host,
    loaded: &Loaded,
    request: &SessionRequest,
    say: Say<'_>,
) -> Result<Conversation, Error> {
    let store = store(host, loaded);
    let mut name = None;
    let row = match &request.resume {
        None => None,
        Some(Resume::Latest) => Some(store.latest(host)?),
        Some(Resume::Existing(wanted)) => Some(store.find(wanted)?),
        Some(Resume::Named(wanted)) => match store.find(wanted) {
            Ok(row) => Some(row),
            // A name that is not in use yet begins a session of that name.
            Err(session::Error::NotFound { .. }) if !request.fork => {
                check_new_name(wanted)?;
                name = Some(wanted.clone());
                None
            }
            Err(error) => return Err(error.into()),
        },
    };
    let mut projection = Projection::new();
    let begin = |started: EventData| {
        if request.keep {
            Log::create(&store, host, started, &request.title)
        } else {
            Log::ephemeral(host.new_id(), started)
        }
    };
    let log = match row {
        None => begin(started(host, name, None)),
        Some(row) if request.fork => {
            let origin = fork_point(&row, &mut projection, say)?;
            begin(started(host, None, Some(origin)))
        }
        Some(row) if !request.keep => {
            let origin = fork_point(&row, &mut projection, say)?;
            Log::ephemeral(row.id, started(host, None, Some(origin)))
        }
        Some(row) => {
            let (log, replayed) = Log::open(&row, &mut projection)?;
            replayed.notices.iter().for_each(|notice| say(notice));
            log
        }
    };
    projection.settle();
    Ok(Conversation::new(log, projection))
}

/// Reads the origin of a fork into the projection; its absolute path and last event.
fn fork_point(
    row: &Row,
    projection: &mut Projection,
    say: Say<'_>,
) -> Result<(String, String), Error> {
    let replayed = session::replay(&row.path, projection)?;
    replayed.notices.iter().for_each(|notice| say(notice));
    let path = row.path.canonicalize().unwrap_or_else(|_| row.path.clone());
    Ok((path.to_string_lossy().into_owned(), replayed.tip.unwrap_or_default()))
}

fn started(host: &Host, name: Option<String>, origin: Option<(String, String)>) -> EventData {
    let (fork_session_path, fork_event_id) = origin.unzip();
    EventData::SessionStarted {
        cwd: host.cwd().to_string_lossy().into_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name,
        fork_session_path,
        fork_event_id,
    }
}

/// A name that nobody could take for an id: no hexadecimal number, no path.
fn check_new_name(wanted: &str) -> Result<(), session::Error> {
    let legal = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    let reason = if wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        "digits and a to f alone are the start of an id"
    } else if wanted.len() > 64 {
        "a name has at most 64 bytes"
    } else if !wanted.chars().all(legal) {
        "a name has letters, digits, blanks and -_. only"
    } else {
        return Ok(());
    };
    Err(session::Error::NoName { wanted: wanted.to_owned(), reason })
}

//! The session log through its files: written, cut, damaged, contested, resumed, listed.

use std::fs;
use std::path::{Path, PathBuf};

use etch::context::project::Projection;
use etch::host::Host;
use etch::model::{Finish, Part, Role, ToolCall, ToolResult};
use etch::session::{EventData, Log, Replayed, Row, Store, replay};

use crate::support::command::TempDir;
use crate::support::session::started;

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: "read".into(),
        arguments: "{\"path\":\"a\"}".into(),
        extra: None,
    }
}

fn asks(calls: &[&str]) -> EventData {
    let parts: Vec<Part> = calls.iter().map(|id| Part::ToolCall(call(id))).collect();
    EventData::assistant(&parts, "p", "m", Finish::ToolCalls)
}

fn answers(text: &str) -> EventData {
    EventData::assistant(&[Part::Text(text.into())], "p", "m", Finish::Stop)
}

fn result(id: &str, text: &str) -> EventData {
    let result = ToolResult {
        call_id: id.into(),
        name: "read".into(),
        text: text.into(),
        status: etch::model::ResultStatus::Ok,
    };
    EventData::tool(&result, &[], 0)
}

/// A conversation on one line a message: `user: …`, `assistant: text +read(c1)`, `tool c1: …`.
fn said(projection: &Projection) -> Vec<String> {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::ToolCall(call) => format!("+{}({})", call.name, call.id),
        Part::ToolResult(result) => {
            format!("{} {:?}: {}", result.call_id, result.status, result.text)
        }
        Part::Reasoning(reasoning) => format!("<{}>", reasoning.text),
        Part::Opaque(opaque) => format!("[{} {}]", opaque.provider, opaque.item.get()),
        Part::Image { .. } => "image".to_owned(),
    };
    let messages = projection.messages().iter();
    messages
        .map(|message| {
            let parts: Vec<String> = message.parts.iter().map(part).collect();
            format!("{}: {}", message.role.as_str(), parts.join(" "))
        })
        .collect()
}

fn project(path: &Path) -> (Projection, Replayed) {
    let mut projection = Projection::new();
    let replayed = replay(path, &mut projection).unwrap();
    projection.settle();
    (projection, replayed)
}

#[test]
fn a_new_session_is_written_with_its_first_event_and_read_back() {
    let temp = TempDir::new();
    let host = Host::fixed();
    let store = Store::open(temp.path().join("a/sessions"));
    let mut log = Log::create(&store, &host, started("/work"), "Fix  the\ntest");
    assert_eq!((store.list().unwrap(), temp.path().join("a").exists()), (vec![], false));
    let lines = log.append(&host, &EventData::user("Fix  the\ntest")).unwrap().lines.to_owned();
    let path = log.path().unwrap().to_path_buf();
    assert_eq!(fs::read_to_string(&path).unwrap(), lines);
    assert_eq!(
        lines,
        "{\"type\":\"session.started\",\"id\":\"id-0002\",\"time\":\"2026-01-01T00:00:00Z\",\
         \"data\":{\"cwd\":\"/work\",\"version\":\"0.1.0\"}}\n\
         {\"type\":\"message.user\",\"id\":\"id-0003\",\"parentId\":\"id-0002\",\
         \"time\":\"2026-01-01T00:00:01Z\",\
         \"data\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Fix  the\\ntest\"}]}}\n"
    );
    let row = Row {
        id: "id-0001".into(),
        path,
        created_at: "2026-01-01T00:00:00Z".into(),
        cwd: "/work".into(),
        title: "Fix the test".into(),
        name: None,
        parent_session_id: None,
    };
    assert_eq!(store.list().unwrap(), [row]);
}

mod append;
mod damage;
mod foreign;
mod kill;
mod list;
mod lock;
mod long;
mod page;
mod pointer;
mod projection;
mod run;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sessions").join(name)
}

/// A session with `events` behind its start, in `dir`.
fn write_session(dir: &Path, events: &[EventData]) -> PathBuf {
    let host = Host::from_process();
    let mut log = Log::create(&Store::open(dir), &host, started("/work"), "title");
    for event in events {
        log.append(&host, event).unwrap();
    }
    log.path().unwrap().to_path_buf()
}

fn row_of(path: &Path) -> Row {
    Store::open(path.parent().unwrap()).find(path.to_str().unwrap()).unwrap()
}

/// Resumes the session, adds `events`, and closes it again.
fn resume_and_add(path: &Path, events: &[EventData]) -> Replayed {
    let host = Host::from_process();
    let (mut log, replayed) = Log::open(&row_of(path), &mut ()).unwrap();
    for event in events {
        log.append(&host, event).unwrap();
    }
    log.sync().unwrap();
    replayed
}

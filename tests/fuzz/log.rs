//! Any file as a session: it is read without harm, its conversation is one that servers accept,
//! and what is appended stands behind what was there.

use std::fs;
use std::path::Path;

use etch::context::project::Projection;
use etch::host::Host;
use etch::model::{Part, Role};
use etch::session::{EventData, Log, Store, each_event, replay};

use crate::fuzz::fuzz;
use crate::support::command::TempDir;

/// Each call has exactly one result, right behind its message and in call order.
fn check(projection: &Projection) {
    let mut waiting: Vec<&str> = Vec::new();
    for message in projection.messages() {
        if message.role != Role::Tool {
            assert!(waiting.is_empty(), "{waiting:?} without results");
        }
        for part in &message.parts {
            match part {
                Part::ToolCall(call) => waiting.push(&call.id),
                Part::ToolResult(result) => assert_eq!(result.call_id, waiting.remove(0)),
                _ => {}
            }
        }
        assert!(!message.parts.is_empty());
    }
    assert!(waiting.is_empty(), "{waiting:?} without results");
}

fn conversation(path: &Path) -> Projection {
    let mut projection = Projection::new();
    replay(path, &mut projection).unwrap();
    projection.settle();
    projection
}

fn seeds() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sessions");
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = paths.iter().filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
    let mut seeds: Vec<_> = files.map(|path| fs::read(path).unwrap()).collect();
    let page = include_str!("../../docs/log.md");
    let examples = page.lines().filter(|line| line.starts_with("{\"type\":"));
    seeds.push(examples.map(|line| format!("{line}\n")).collect::<String>().into_bytes());
    seeds
}

#[test]
fn a_session_file() {
    let temp = TempDir::new();
    let path = temp.path().join("a.jsonl");
    let tokens = [
        "\n",
        "\r\n",
        "\0\0\0",
        "\u{feff}",
        "\\u0000",
        "\\ud800",
        "{\"type\":\"",
        "\"parentId\":\"id-0003\",",
        "\"parentId\":null,",
        "\"id\":\"\",",
        "\"data\":null",
        "\"data\":[]",
        "\"content\":\"text\"",
        "\"content\":[]",
        "\"forkSessionPath\":\"a.jsonl\",\"forkEventId\":\"id-0004\"",
        "\"firstKeptEventId\":\"id-0006\"",
        "\"toolCalls\":[{\"id\":\"\",\"name\":\"x\",\"arguments\":\"{}\"}]",
        "{\"type\":\"tool_call\",\"id\":\"call_a\",\"name\":\"\",\"arguments\":7}",
        "[[[[[[[[[[[[[[[[",
        "1e999",
        "-9223372036854775809",
    ];
    let host = Host::from_process();
    fuzz("a session file", seeds(), &tokens, |bytes| {
        fs::write(&path, bytes).unwrap();
        let mut projection = Projection::new();
        let replayed = match replay(&path, &mut projection) {
            Ok(replayed) => replayed,
            Err(error) => {
                assert!(each_event(&path, &mut |_| {}).is_err(), "{error}");
                return (0, 0, String::new(), error.exit_code().into());
            }
        };
        projection.settle();
        check(&projection);
        let mut count = 0_usize;
        let again = each_event(&path, &mut |_| count += 1).unwrap();
        assert_eq!((&again.notices, &again.tip), (&replayed.notices, &replayed.tip));
        // One event more: it is the last of the chain, and what was there is there.
        let before = projection.messages().to_vec();
        let row = Store::open(temp.path()).find(path.to_str().unwrap()).unwrap();
        let (mut log, _) = Log::open(&row, &mut ()).unwrap();
        let id = log.append(&host, &EventData::user("and then?")).unwrap().id;
        drop(log);
        assert!(fs::read(&path).unwrap().starts_with(bytes));
        let after = conversation(&path);
        check(&after);
        let (last, rest) = after.messages().split_last().unwrap();
        assert_eq!(last.parts, [Part::Text("and then?".into())]);
        assert_eq!(rest, before);
        let reread = replay(&path, &mut ()).unwrap();
        assert_eq!((reread.tip, reread.torn.is_some(), reread.unended), (Some(id), false, false));
        let first = replayed.notices.first().map(|notice| notice.chars().take(20).collect());
        (projection.messages().len(), count, first.unwrap_or_default(), replayed.notices.len())
    });
}

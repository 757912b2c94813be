//! Going on from an earlier event: what is read then, by this process and by the next one.

use std::collections::HashMap;

use super::*;
use etch::session::{Error, Way, points};

use crate::support::random::Random;

/// A session that is being written, what it should be, and what it was after each event.
struct Tale {
    host: Host,
    log: Log,
    /// The messages of the conversation in their order.
    now: Vec<EventData>,
    /// The same at each event.
    then: HashMap<String, Vec<EventData>>,
}

impl Tale {
    fn new(dir: &Path) -> Tale {
        let host = Host::from_process();
        let log = Log::create(&Store::open(dir), &host, started("/work"), "title");
        Tale { host, log, now: Vec::new(), then: HashMap::new() }
    }

    fn say(&mut self, data: EventData) -> String {
        let appended = self.log.append(&self.host, &data).unwrap();
        for event in appended.events() {
            // A start, in front of what is said.
            self.then.insert(event.id.to_string(), self.now.clone());
        }
        let id = appended.id;
        self.now.push(data);
        self.then.insert(id.clone(), self.now.clone());
        id
    }

    fn turn(&mut self, prompt: &str) -> String {
        self.say(EventData::user(prompt));
        self.say(answers(&format!("to {prompt}")))
    }

    /// What the log gives on its way is what the file is read as later.
    #[track_caller]
    fn go_to(&mut self, to: &str) -> Vec<String> {
        let mut projection = Projection::new();
        self.log.go_to(&self.host, Way::Rewind, to, &mut projection).unwrap();
        projection.settle();
        self.now = self.then[to].clone();
        self.then.insert(self.log.tip().unwrap().to_owned(), self.now.clone());
        let (read, replayed) = project(self.log.path().unwrap());
        assert_eq!(projection.messages(), read.messages());
        assert_eq!(projection.counters(), read.counters());
        assert_eq!(replayed.tip.as_deref(), self.log.tip());
        said(&projection)
    }

    fn said(&self) -> Vec<String> {
        said(&project(self.log.path().unwrap()).0)
    }

    fn before(&self, prompt: &str) -> String {
        let points = points(&self.log).unwrap();
        let found = points.prompts.iter().find(|each| each.text == prompt);
        found.unwrap_or_else(|| panic!("no {prompt} in {points:?}")).before.clone().unwrap()
    }

    fn prompts(&self) -> Vec<String> {
        points(&self.log).unwrap().prompts.into_iter().map(|prompt| prompt.text).collect()
    }

    fn left(&self) -> Vec<(String, String)> {
        let left = points(&self.log).unwrap().left;
        left.into_iter().map(|left| (left.id, left.prompt)).collect()
    }

    /// A session that continues this one, which ends here.
    fn forked(self) -> Tale {
        let path = self.log.path().unwrap();
        let started = EventData::SessionStarted {
            cwd: "/work".into(),
            version: "0.1.0".into(),
            name: None,
            fork_session_path: Some(path.to_str().unwrap().into()),
            fork_event_id: self.log.tip().map(str::to_owned),
        };
        let log = Log::create(&Store::open(path.parent().unwrap()), &self.host, started, "t");
        Tale { log, ..self }
    }
}

#[test]
fn a_place_before_a_prompt_is_gone_back_to_and_nothing_is_removed() {
    let temp = TempDir::new();
    let mut tale = Tale::new(temp.path());
    let one = tale.turn("one");
    let two = tale.turn("two");
    let path = tale.log.path().unwrap().to_path_buf();
    let whole = fs::read_to_string(&path).unwrap();
    assert_eq!(tale.prompts(), ["one", "two"]);
    assert_eq!((tale.before("two"), tale.left()), (one.clone(), vec![]));
    assert_eq!(tale.go_to(&one), ["user: one", "assistant: to one"]);
    let after = fs::read_to_string(&path).unwrap();
    let added = after.strip_prefix(&whole).expect("only added to");
    let pointer: serde_json::Value = serde_json::from_str(added).unwrap();
    assert_eq!(pointer["type"], "session.pointer");
    assert_eq!(pointer["parentId"], one.as_str());
    assert_eq!(
        pointer["data"],
        serde_json::json!({"reason": "rewind", "targetId": one, "fromId": two})
    );
    tale.turn("other");
    assert_eq!(tale.prompts(), ["one", "other"]);
    assert_eq!(tale.left(), [(two.clone(), "two".to_owned())]);
    // And to what was left; the last that was left stands last.
    let three = tale.turn("three");
    assert_eq!(tale.go_to(&two).last().unwrap(), "assistant: to two");
    assert_eq!(tale.left(), [(three.clone(), "three".to_owned())]);
    tale.go_to(&one);
    assert_eq!(
        tale.left(),
        [(three, "three".to_owned()), (two, "two".to_owned())],
        "what was left twice is one place"
    );
}

#[test]
fn the_start_of_a_session_is_a_place_as_well() {
    let temp = TempDir::new();
    let mut tale = Tale::new(temp.path());
    tale.turn("one");
    let start = tale.before("one");
    assert_eq!(tale.go_to(&start), Vec::<String>::new());
    tale.turn("instead");
    assert_eq!(tale.said(), ["user: instead", "assistant: to instead"]);
    assert_eq!(tale.left().len(), 1);
}

#[test]
fn steering_begins_no_turn_and_a_prompt_after_a_killed_one_does() {
    let temp = TempDir::new();
    let mut tale = Tale::new(temp.path());
    for event in [
        EventData::user("go"),
        asks(&["a", "b"]),
        result("a", "1"),
        result("b", "2"),
        EventData::user("and that"),
        EventData::user("and this"),
        asks(&["c", "d"]),
        result("c", "3"),
        // Killed here.
        EventData::user("go on"),
        answers("done"),
        EventData::user("more"),
    ] {
        tale.say(event);
    }
    assert_eq!(tale.prompts(), ["go", "go on", "more"]);
    let back = tale.before("go on");
    let said = tale.go_to(&back);
    assert!(said.last().unwrap().starts_with("tool: d Interrupted"), "{said:?}");
}

#[test]
fn what_is_nowhere_is_refused_and_changes_nothing() {
    let temp = TempDir::new();
    let mut tale = Tale::new(temp.path());
    tale.turn("one");
    let before = fs::read(tale.log.path().unwrap()).unwrap();
    for wanted in ["nosuch", ""] {
        let refused = tale.log.go_to(&tale.host, Way::Fork, wanted, &mut ()).unwrap_err();
        assert!(matches!(&refused, Error::NoEvent { id } if id == wanted), "{refused}");
    }
    assert_eq!(fs::read(tale.log.path().unwrap()).unwrap(), before);
    tale.turn("two");
    assert_eq!(tale.said().len(), 4);
    let host = Host::from_process();
    let mut unkept = Log::ephemeral("x".into(), started("/work"));
    let id = unkept.append(&host, &EventData::user("one")).unwrap().id;
    let refused = unkept.go_to(&host, Way::Fork, &id, &mut ()).unwrap_err();
    assert!(matches!(refused, Error::NotKept), "{refused}");
    assert_eq!(points(&unkept).unwrap(), etch::session::Points::default());
}

#[test]
fn a_torn_last_line_is_closed_before_and_a_torn_pointer_is_nothing() {
    let temp = TempDir::new();
    let mut tale = Tale::new(temp.path());
    let one = tale.turn("one");
    tale.turn("two");
    let path = tale.log.path().unwrap().to_path_buf();
    drop(tale);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    let host = Host::from_process();
    let (mut log, _) = Log::open(&row_of(&path), &mut ()).unwrap();
    let mut projection = Projection::new();
    log.go_to(&host, Way::Rewind, &one, &mut projection).unwrap();
    drop(log);
    let (read, replayed) = project(&path);
    assert_eq!(said(&read), ["user: one", "assistant: to one"]);
    assert_eq!((replayed.notices, read.counters()), (vec![], projection.counters()));
    // Cut anywhere within the pointer: the conversation is what it was.
    let pointed = fs::read(&path).unwrap();
    let start = pointed[..pointed.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in [start + 1, start + 40, pointed.len() - 2] {
        fs::write(&path, &pointed[..cut]).unwrap();
        resume_and_add(&path, &[EventData::user("next")]);
        let said = said(&project(&path).0);
        assert_eq!(said, ["user: one", "assistant: to one", "user: two", "user: next"], "{cut}");
    }
}

#[test]
fn a_fork_goes_back_into_what_it_inherits_and_on_from_its_end_again() {
    let temp = TempDir::new();
    let mut origin = Tale::new(temp.path());
    let one = origin.turn("one");
    origin.turn("two");
    let left = origin.turn("left");
    let two = origin.before("left");
    origin.go_to(&two);
    origin.turn("three");
    let origin_file = origin.log.path().unwrap().to_path_buf();
    let whole = fs::read(&origin_file).unwrap();
    // Before the fork has a file of its own.
    let mut fork = origin.forked();
    assert_eq!(fork.prompts(), ["one", "two", "three"]);
    let refused = fork.log.go_to(&fork.host, Way::Rewind, &left, &mut ()).unwrap_err();
    assert!(matches!(refused, Error::NoEvent { .. }), "what the origin left is not inherited");
    let back = fork.before("two");
    assert_eq!((back.as_str(), fork.go_to(&back).len()), (one.as_str(), 2));
    assert_eq!(fork.prompts(), ["one"]);
    let ends = fork.left();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0].1, "three");
    let four = fork.turn("four");
    assert_eq!(fork.said()[2..], ["user: four", "assistant: to four"]);
    assert_eq!(fork.go_to(&ends[0].0).last().unwrap(), "assistant: to three");
    assert_eq!(fork.left(), [(four.clone(), "four".to_owned())]);
    fork.go_to(&four);
    // A fork of the fork: what both inherit, and the middle one's own.
    let mut third = fork.forked();
    third.turn("five");
    assert_eq!(third.prompts(), ["one", "four", "five"]);
    let back = third.before("four");
    assert_eq!(third.go_to(&back), ["user: one", "assistant: to one"]);
    assert_eq!(third.go_to(&four).len(), 4);
    assert_eq!(third.go_to(&one).len(), 2);
    third.turn("six");
    assert_eq!(third.prompts(), ["one", "six"]);
    assert_eq!(fs::read(&origin_file).unwrap(), whole, "the origin is not touched");
}

#[test]
fn before_a_summary_all_of_the_conversation_is_there_again() {
    let temp = TempDir::new();
    let path = temp.write("go.jsonl", fs::read(fixture("go-summary.jsonl")).unwrap());
    let host = Host::from_process();
    let (mut log, _) = Log::open(&row_of(&path), &mut ()).unwrap();
    let points = points(&log).unwrap();
    let prompts: Vec<&str> = points.prompts.iter().map(|prompt| prompt.text.as_str()).collect();
    assert_eq!(prompts, ["read a.txt", "now b.txt", "and c.txt?", "thanks"]);
    let mut go = |idx: usize| {
        let mut projection = Projection::new();
        let before = points.prompts[idx].before.as_deref().unwrap();
        log.go_to(&host, Way::Rewind, before, &mut projection).unwrap();
        assert_eq!(projection.messages(), project(&path).0.messages());
        said(&projection)
    };
    assert_eq!(
        go(1),
        [
            "user: read a.txt",
            "assistant: +read(c1)",
            "tool: c1 Ok: 1 | alpha",
            "assistant: It says alpha.",
        ]
    );
    let first = go(2);
    assert!(first[0].ends_with("read files\n\n## Files\n### Read\n- a.txt"), "{first:?}");
    assert_eq!(first[1..], ["user: now b.txt", "assistant: It is empty."]);
    assert!(go(3)[0].ends_with("## Goal\nread more files"));
}

/// Whatever is said, left, gone back to and forked: what is read is what a file would hold in
/// which nothing else ever happened.
#[test]
fn any_way_through_a_session_reads_like_a_straight_one() {
    for seed in 1..=12_u64 {
        let temp = TempDir::new();
        let mut random = Random(seed * 0x9e37_79b9);
        let mut tale = Tale::new(temp.path());
        for step in 0..40 {
            match random.below(10) {
                0..=2 => drop(tale.turn(&format!("p{step}"))),
                3 => {
                    tale.say(EventData::user(format!("p{step}")));
                    tale.say(asks(&["a", "b"]));
                    tale.say(result("a", "1"));
                    tale.say(result("b", "2"));
                    tale.say(answers("done"));
                }
                4 if tale.log.path().is_some() => tale = tale.forked(),
                5..=7 => {
                    let points = points(&tale.log).unwrap();
                    if let Some(prompt) = points.prompts.get(random.below(points.prompts.len())) {
                        tale.go_to(prompt.before.as_deref().unwrap());
                    }
                }
                _ => {
                    let left = tale.left();
                    if let Some((id, _)) = left.get(random.below(left.len())) {
                        tale.go_to(id);
                    }
                }
            }
            let Some(path) = tale.log.path() else { continue };
            let straight = TempDir::new();
            let want = match tale.now.as_slice() {
                [] => Vec::new(),
                now => said(&project(&write_session(straight.path(), now)).0),
            };
            let (projection, replayed) = project(path);
            assert_eq!(said(&projection), want, "seed {seed}, step {step}");
            assert_eq!(replayed.notices, Vec::<String>::new(), "seed {seed}, step {step}");
        }
    }
}

#[test]
fn logs_with_pointers_are_read_along_their_chain() {
    let (projection, replayed) = project(&fixture("pointer.jsonl"));
    assert_eq!(
        said(&projection),
        [
            "user: what is in a.txt?",
            "assistant: It says alpha.",
            "user: change it to beta",
            "assistant: +edit(c1)",
            "tool: c1 Ok: Edited a.txt (+1 -1)",
            "assistant: Changed.",
            "user: is it beta?",
            "assistant: It is beta.",
        ]
    );
    assert_eq!((replayed.notices, replayed.tip.as_deref()), (vec![], Some("p18")));
    // The fork went back into what it inherits; its origin is found beside it.
    let (projection, replayed) = project(&fixture("pointer-fork.jsonl"));
    let said = said(&projection);
    assert_eq!(
        said[4..],
        [
            "tool: c1 Ok: Edited a.txt (+1 -1)",
            "assistant: Changed.",
            "user: show me a.txt",
            "assistant: beta",
        ]
    );
    assert_eq!(replayed.notices, Vec::<String>::new());
}

#[test]
fn what_was_left_is_named_by_its_last_prompt_and_the_time_it_was_left_at() {
    let temp = TempDir::new();
    for name in ["pointer.jsonl", "pointer-fork.jsonl"] {
        temp.write(name, fs::read(fixture(name)).unwrap());
    }
    let left = |name: &str| {
        let (log, _) = Log::open(&row_of(&temp.path().join(name)), &mut ()).unwrap();
        let left = points(&log).unwrap().left.into_iter();
        left.map(|left| (left.id, left.prompt, left.time)).collect::<Vec<_>>()
    };
    let place = |id: &str, prompt: &str, time: &str| (id.into(), prompt.into(), time.into());
    assert_eq!(left("pointer.jsonl"), [place("p15", "and b.txt?", "2026-07-01T09:16:00Z")]);
    assert_eq!(
        left("pointer-fork.jsonl"),
        [place("q03", "and now?", "2026-07-01T09:04:00Z")],
        "the end of what is inherited is on the way to it"
    );
}

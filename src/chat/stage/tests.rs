//! Keys and events in, effects and what is on the screen out.

use std::collections::HashSet;

use super::*;
use crate::agent::Outcome;
use crate::chat::places::{Arrived, Place};
use crate::model::{ErrorKind, ModelError, ModelEvent, Usage};

const NOW: Duration = Duration::from_secs(100);

fn stage() -> Stage {
    let footer = Footer { cwd: "~/code".to_owned(), ..Footer::default() };
    let mut stage = Stage::new(Size { columns: 60, rows: 20 }, Style::plain(), footer, Vec::new());
    assert!(stage.hear(Said::Session(Box::new(facts())), NOW).is_empty());
    stage
}

fn facts() -> Facts {
    Facts {
        id: "4f2a91c0".repeat(4),
        is_kept: true,
        model: "m".to_owned(),
        effort: None,
        auth: "api_key".to_owned(),
        window: Some(128_000),
        counters: session::Counters::default(),
        prompts: Vec::new(),
        last: None,
    }
}

fn press(stage: &mut Stage, press: Press) -> Vec<Effect> {
    stage.input(Input::Press(press), NOW)
}

fn type_text(stage: &mut Stage, text: &str) -> Vec<Effect> {
    text.chars().flat_map(|c| press(stage, Press::plain(Key::Char(c)))).collect()
}

fn enter(stage: &mut Stage, text: &str) -> Vec<Effect> {
    let mut effects = type_text(stage, text);
    // A list of commands would take the key; a person sees it.
    stage.completion = None;
    effects.extend(press(stage, Press::plain(Key::Enter)));
    effects
}

/// What the effects ask of the session's thread and the world.
fn asked(effects: &[Effect]) -> Vec<String> {
    let shown = |effect: &Effect| match effect {
        Effect::Give(Job::Turn { prompt, .. }) => format!("turn: {prompt}"),
        Effect::Give(Job::Shell { line, .. }) => format!("shell: {line}"),
        Effect::Give(Job::Tool { words, .. }) => format!("tool: {}", words.join(" ")),
        Effect::Give(Job::Compact { focus, .. }) => format!("compact {focus}"),
        Effect::Give(Job::Ask(question)) => format!("ask: {question:?}"),
        Effect::Quit(code) => format!("quit {code}"),
        Effect::Suspend => "suspend".to_owned(),
        Effect::EditDraft(text) => format!("edit: {text}"),
        Effect::Copy(text) => format!("copy: {text}"),
        Effect::Choose => "choose".to_owned(),
        Effect::ReadPaths => "read paths".to_owned(),
        Effect::Redraw => "redraw".to_owned(),
    };
    effects.iter().map(shown).collect()
}

fn ended(stop: Stop) -> Said {
    let outcome = Outcome {
        stop,
        answer: String::new(),
        rounds: 1,
        tool_calls: 0,
        usage: Usage::default(),
        changed_files: Vec::new(),
        denied_calls: Vec::new(),
    };
    Said::Told(Told::TurnEnded { outcome, elapsed: Duration::from_secs(1) })
}

fn end(stage: &mut Stage, stop: Stop) -> Vec<String> {
    let mut effects = stage.hear(ended(stop), NOW);
    effects.extend(stage.hear(Said::Done, NOW));
    asked(&effects)
}

fn is_cancelled(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| match effect {
        Effect::Give(
            Job::Turn { cancel, .. } | Job::Shell { cancel, .. } | Job::Tool { cancel, .. },
        ) => cancel.is_cancelled(),
        _ => false,
    })
}

fn screen(stage: &mut Stage) -> String {
    let frame = stage.frame(NOW);
    let mut rows = stage.take_lines();
    rows.extend(frame.rows);
    rows.join("\n")
}

#[test]
fn a_prompt_is_a_turn_and_what_follows_waits_for_it() {
    let mut stage = stage();
    assert_eq!(asked(&enter(&mut stage, "one")), ["turn: one"]);
    assert_eq!(asked(&enter(&mut stage, "two")), Vec::<String>::new());
    assert_eq!(asked(&enter(&mut stage, "three")), Vec::<String>::new());
    let shown = screen(&mut stage);
    assert!(shown.contains("> one") && shown.contains("waits: two"), "{shown}");
    // Leftovers of a turn that had no room for them are one prompt.
    assert_eq!(end(&mut stage, Stop::Final), ["turn: two\n\nthree"]);
    assert_eq!(end(&mut stage, Stop::Final), Vec::<String>::new());
    assert!(!stage.is_busy() && !stage.is_moving());
}

#[test]
fn a_running_turn_is_steered_up_to_the_first_command() {
    let mut stage = stage();
    enter(&mut stage, "go");
    for text in ["first", "second", "/status", "third"] {
        assert!(enter(&mut stage, text).is_empty(), "{text}");
    }
    let steer = |stage: &mut Stage| {
        let (give, take) = crossbeam_channel::bounded(1);
        stage.hear(Said::Steer(give), NOW);
        take.recv().expect("an answer")
    };
    assert_eq!(steer(&mut stage), ["first", "second"]);
    assert_eq!(steer(&mut stage), Vec::<String>::new());
    assert_eq!(end(&mut stage, Stop::Final), ["ask: Status"]);
    assert_eq!(asked(&stage.hear(Said::Done, NOW)), ["turn: third"]);
}

#[test]
fn a_turn_that_failed_gives_back_what_waited() {
    for stop in [
        Stop::Failed(ModelError::new(ErrorKind::Network, "gone")),
        Stop::Cancelled(Reason::User),
        Stop::RoundLimit { limit: 3 },
    ] {
        let mut stage = stage();
        enter(&mut stage, "go");
        enter(&mut stage, "two");
        enter(&mut stage, "/status");
        type_text(&mut stage, "draft");
        assert_eq!(end(&mut stage, stop), Vec::<String>::new());
        assert_eq!(stage.editor.text(), "two\n/status\ndraft");
        // And the next prompt works.
        stage.editor.set("");
        assert_eq!(asked(&enter(&mut stage, "again")), ["turn: again"]);
    }
}

#[test]
fn what_waits_can_be_taken_back() {
    let mut stage = stage();
    enter(&mut stage, "go");
    enter(&mut stage, "one");
    enter(&mut stage, "two");
    press(&mut stage, Press::plain(Key::Up));
    assert_eq!(stage.editor.text(), "two");
    assert_eq!(end(&mut stage, Stop::Final), ["turn: one"]);
    assert_eq!(stage.editor.text(), "two", "the draft stays where it is");
}

#[test]
fn escape_and_control_c_stop_the_turn_and_keep_the_draft() {
    for key in [Press::plain(Key::Escape), Press::ctrl('c')] {
        let mut stage = stage();
        let effects = enter(&mut stage, "go");
        type_text(&mut stage, "abc");
        assert!(press(&mut stage, key).is_empty());
        assert!(is_cancelled(&effects), "{key:?}");
        assert_eq!(stage.editor.text(), "abc");
        // Without a turn the same key empties the draft, which undo brings back.
        end(&mut stage, Stop::Cancelled(Reason::User));
        press(&mut stage, Press::plain(Key::Left));
        press(&mut stage, key);
        assert!(stage.editor.is_empty());
        stage.editor.undo();
        assert_eq!(stage.editor.text(), "abc");
    }
}

#[test]
fn control_c_twice_leaves_and_once_does_not() {
    let mut stage = stage();
    assert!(press(&mut stage, Press::ctrl('c')).is_empty());
    let late = stage.input(Input::Press(Press::ctrl('c')), NOW + TWICE);
    assert_eq!(asked(&late), Vec::<String>::new());
    let soon = stage.input(Input::Press(Press::ctrl('c')), NOW + TWICE + TWICE / 2);
    assert_eq!(asked(&soon), ["quit 0"]);
}

#[test]
fn the_end_of_input_waits_behind_what_is_there() {
    let mut stage = stage();
    assert_eq!(asked(&press(&mut stage, Press::ctrl('d'))), ["quit 0"]);
    let mut stage = self::stage();
    enter(&mut stage, "go");
    enter(&mut stage, "more");
    assert_eq!(asked(&press(&mut stage, Press::ctrl('d'))), Vec::<String>::new());
    assert_eq!(end(&mut stage, Stop::Final), ["turn: more"]);
    assert_eq!(end(&mut stage, Stop::Final), ["quit 0"]);
    let mut stage = self::stage();
    type_text(&mut stage, "ab");
    assert!(press(&mut stage, Press::ctrl('d')).is_empty());
    assert_eq!(stage.editor.text(), "ab");
}

#[test]
fn the_output_of_an_own_command_goes_along_once() {
    let mut stage = stage();
    assert_eq!(asked(&enter(&mut stage, "!ls -l")), ["shell: ls -l"]);
    let output = Said::Output { line: "ls -l".to_owned(), text: "a.txt".to_owned() };
    stage.hear(output, NOW);
    stage.hear(Said::Done, NOW);
    let want = "turn: what is it?\n\nOutput of the command `ls -l`:\n\na.txt";
    assert_eq!(asked(&enter(&mut stage, "what is it?")), [want]);
    end(&mut stage, Stop::Final);
    assert_eq!(asked(&enter(&mut stage, "next")), ["turn: next"]);
}

#[test]
fn unknown_commands_and_paths_are_told_apart() {
    let mut stage = stage();
    assert!(enter(&mut stage, "/stauts").is_empty());
    let shown = screen(&mut stage);
    assert!(shown.contains("unknown command /stauts; did you mean /status?"), "{shown}");
    assert_eq!(
        asked(&enter(&mut stage, "/etc/hosts: what is it")),
        ["turn: /etc/hosts: what is it"]
    );
}

#[test]
fn a_command_is_completed_by_tab_and_taken_by_enter() {
    let mut stage = stage();
    type_text(&mut stage, "/stat");
    assert!(screen(&mut stage).contains("/status "));
    press(&mut stage, Press::plain(Key::Tab));
    assert_eq!(stage.editor.text().trim(), "/status");
    assert_eq!(asked(&press(&mut stage, Press::plain(Key::Enter))), ["ask: Status"]);
    // What was closed stays closed for the word.
    type_text(&mut stage, "/sta");
    press(&mut stage, Press::plain(Key::Escape));
    type_text(&mut stage, "t");
    assert!(stage.completion.is_none());
}

#[test]
fn paths_are_asked_for_once_and_offered() {
    let mut stage = stage();
    assert_eq!(asked(&type_text(&mut stage, "see @")), ["read paths"]);
    stage.set_paths(Paths::of(["src/", "src/main.rs"]));
    assert_eq!(asked(&type_text(&mut stage, "mai")), Vec::<String>::new());
    press(&mut stage, Press::plain(Key::Tab));
    assert_eq!(stage.editor.text().trim(), "see @src/main.rs");
}

#[test]
fn the_history_is_searched_from_its_end() {
    let mut stage = stage();
    for text in ["fix the test", "write docs", "fix the build"] {
        enter(&mut stage, text);
        end(&mut stage, Stop::Final);
    }
    press(&mut stage, Press::ctrl('r'));
    type_text(&mut stage, "fix");
    assert!(screen(&mut stage).contains("search fix: fix the build"));
    press(&mut stage, Press::ctrl('r'));
    assert!(screen(&mut stage).contains("search fix: fix the test"));
    assert!(press(&mut stage, Press::plain(Key::Enter)).is_empty(), "it can be read first");
    assert_eq!(stage.editor.text(), "fix the test");
}

#[test]
fn the_frame_fits_every_screen() {
    for columns in [1, 2, 5, 20, 200] {
        for rows in [1, 2, 3, 5, 8, 50] {
            let mut stage = stage();
            stage.resize(Size { columns, rows });
            enter(&mut stage, "go");
            let text = "word ".repeat(100);
            stage.hear(Said::Told(Told::Model(ModelEvent::TextDelta(text))), NOW);
            enter(&mut stage, "this waits");
            type_text(&mut stage, "a draft of some length 界界");
            let frame = stage.frame(NOW);
            let limit = rows.saturating_sub(1).max(1);
            assert!(frame.rows.len() <= limit, "{columns}x{rows}: {:?}", frame.rows);
            assert!(frame.cursor.0 < frame.rows.len(), "{columns}x{rows}: {:?}", frame.cursor);
            for row in &frame.rows {
                let width = crate::render::style::painted_width(row);
                assert!(width <= columns, "{columns}x{rows}: {row:?}");
            }
        }
    }
}

#[test]
fn escape_stops_commands_too_and_nothing_goes_on_behind_them() {
    for (line, want) in
        [("!sleep 9", "shell: sleep 9"), ("/tool bash 'sleep 9'", "tool: bash sleep 9")]
    {
        let mut stage = stage();
        let effects = enter(&mut stage, line);
        assert_eq!(asked(&effects), [want]);
        assert!(stage.is_moving(), "{line}");
        enter(&mut stage, "next");
        press(&mut stage, Press::plain(Key::Escape));
        assert!(is_cancelled(&effects), "{line}");
        let output = Said::Output { line: line.to_owned(), text: "stopped".to_owned() };
        stage.hear(output, NOW);
        assert_eq!(asked(&stage.hear(Said::Done, NOW)), Vec::<String>::new(), "{line}");
        assert_eq!(stage.editor.text(), "next");
    }
}

#[test]
fn a_list_goes_with_what_was_typed() {
    let mut stage = stage();
    let effects = enter(&mut stage, "go");
    type_text(&mut stage, "/status");
    assert!(stage.completion.is_some());
    // What is typed in full is sent; Escape then is the turn's.
    press(&mut stage, Press::plain(Key::Enter));
    assert!(stage.completion.is_none());
    press(&mut stage, Press::plain(Key::Escape));
    assert!(is_cancelled(&effects));

    type_text(&mut stage, "/st");
    assert!(stage.completion.is_some());
    press(&mut stage, Press::ctrl('c'));
    assert!(stage.completion.is_none());
}

#[test]
fn how_full_the_context_is_follows_what_is_known_of_the_model() {
    let mut stage = stage();
    let usage = Usage { input: 6_400, output: 0, total: 6_400, ..Usage::default() };
    stage.hear(Said::Told(Told::Model(ModelEvent::Usage(usage))), NOW);
    assert!(screen(&mut stage).contains("context 5% of 128.0k"), "{}", screen(&mut stage));
    stage.hear(Said::Window(Some(64_000)), NOW);
    assert!(screen(&mut stage).contains("context 10% of 64.0k"), "{}", screen(&mut stage));
    stage.hear(Said::Window(None), NOW);
    assert!(screen(&mut stage).contains("context 6.4k"), "{}", screen(&mut stage));
}

#[test]
fn a_turn_whose_end_is_seen_is_not_stopped_again() {
    let mut stage = stage();
    enter(&mut stage, "go");
    type_text(&mut stage, "draft");
    stage.hear(ended(Stop::Cancelled(Reason::User)), NOW);
    press(&mut stage, Press::ctrl('c'));
    assert!(stage.editor.is_empty());
    stage.hear(Said::Done, NOW);
    assert_eq!(asked(&enter(&mut stage, "next")), ["turn: next"]);
}

fn places() -> Vec<Place> {
    let place = |key: &str, text: &str| Place::new(key, text, "12:03");
    vec![place("u2", "the second prompt"), place("u1", "the first prompt")]
}

fn arrived(prompt: Option<&str>, prompts: &[&str]) -> Said {
    let mut facts = facts();
    facts.prompts = prompts.iter().map(|&prompt| prompt.to_owned()).collect();
    facts.last = facts.prompts.last().map(|last| (last.clone(), "answer of then".to_owned()));
    Said::Arrived(Box::new(Arrived {
        way: if prompt.is_some() { Way::Rewind } else { Way::Fork },
        facts,
        calls: HashSet::new(),
        prompt: prompt.map(str::to_owned),
        notices: vec![(Notice::Info, "somewhere else".to_owned())],
    }))
}

#[test]
fn a_place_is_chosen_from_a_list_that_typing_filters() {
    let mut stage = stage();
    assert_eq!(asked(&enter(&mut stage, "/rewind")), ["ask: Go(Rewind, Any)"]);
    assert_eq!(asked(&stage.hear(Said::Places(Way::Rewind, places()), NOW)), ["choose"]);
    stage.open_picker();
    assert!(stage.hear(Said::Done, NOW).is_empty());
    let shown = screen(&mut stage);
    assert!(shown.contains("back before: \n> the second prompt  12:03\n  the first"), "{shown}");
    type_text(&mut stage, "first");
    let chosen = press(&mut stage, Press::plain(Key::Enter));
    assert_eq!(asked(&chosen), ["ask: Go(Rewind, Key(\"u1\"))"]);
    assert!(stage.hear(arrived(Some("the first\nprompt"), &[]), NOW).is_empty());
    assert_eq!(stage.editor.text(), "the first\nprompt");
    assert!(screen(&mut stage).contains("somewhere else"));
    // What is sent now is a turn as always.
    stage.hear(Said::Done, NOW);
    assert_eq!(asked(&press(&mut stage, Press::plain(Key::Enter))), ["turn: the first\nprompt"]);
}

#[test]
fn a_list_that_is_left_changes_nothing() {
    for key in [Press::plain(Key::Escape), Press::ctrl('c')] {
        let mut stage = stage();
        enter(&mut stage, "/fork");
        stage.hear(Said::Places(Way::Fork, places()), NOW);
        stage.open_picker();
        stage.hear(Said::Done, NOW);
        assert!(press(&mut stage, key).is_empty());
        assert!(stage.editor.is_empty() && !stage.is_busy() && stage.picker.is_none());
    }
}

#[test]
fn what_waits_behind_a_list_is_not_sent_while_one_chooses() {
    let mut stage = stage();
    enter(&mut stage, "go");
    for text in ["/rewind", "then this"] {
        assert!(enter(&mut stage, text).is_empty(), "{text}");
    }
    assert_eq!(end(&mut stage, Stop::Final), ["ask: Go(Rewind, Any)"]);
    stage.hear(Said::Places(Way::Rewind, places()), NOW);
    stage.open_picker();
    assert!(stage.hear(Said::Done, NOW).is_empty());
    assert_eq!(stage.editor.text(), "then this");
}

#[test]
fn at_another_place_the_history_and_the_last_answer_are_those_of_there() {
    let mut stage = stage();
    stage.hear(arrived(None, &["one", "two"]), NOW);
    let shown = screen(&mut stage);
    assert!(shown.contains("somewhere else") && shown.contains("> two"), "{shown}");
    assert!(shown.contains("answer of then"), "{shown}");
    assert_eq!(asked(&enter(&mut stage, "/copy")), ["copy: answer of then"]);
    press(&mut stage, Press::plain(Key::Up));
    assert_eq!(stage.editor.text(), "/copy");
    // A list of commands would take the key.
    stage.completion = None;
    press(&mut stage, Press::plain(Key::Up));
    assert_eq!(stage.editor.text(), "two");
    // A draft is not lost by what comes back to be changed.
    stage.editor.set("a draft");
    stage.hear(arrived(Some("two"), &["one"]), NOW);
    assert_eq!(stage.editor.text(), "two\na draft");
    assert_eq!(asked(&enter(&mut stage, "")), ["turn: two\na draft"]);
}

#[test]
fn by_lines_places_have_numbers() {
    let mut stage = stage();
    stage.hear(Said::Places(Way::Fork, places()), NOW);
    stage.list_choices();
    let shown = stage.take_lines().join("\n");
    let rows: Vec<String> =
        shown.lines().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let want = [
        "on from the end of",
        "1 the second prompt 12:03",
        "2 the first prompt 12:03",
        "/fork N goes on from the end of N",
    ];
    assert!(rows.ends_with(&want.map(str::to_owned)), "{shown}");
    stage.open_picker();
    assert!(stage.picker.is_none());
}

/// Text of others in every place that shows some.
#[test]
fn no_text_from_outside_acts_on_the_terminal() {
    const NASTY: &str = "N\x1b[2J\x1b]0;t\x07\u{9b}31m\u{202e}\r\x7fE";
    let nasty = || NASTY.to_owned();
    let footer = Footer { cwd: nasty(), branch: Some(nasty()), ..Footer::default() };
    let mut stage = Stage::new(Size { columns: 200, rows: 60 }, Style::plain(), footer, Vec::new());
    let facts = Facts {
        id: "4f2a91c0".repeat(4),
        is_kept: true,
        model: nasty(),
        effort: Some(nasty()),
        window: None,
        auth: nasty(),
        counters: session::Counters::default(),
        prompts: vec![nasty()],
        last: Some((nasty(), nasty())),
    };
    let call = || crate::model::ToolCall {
        id: "c".into(),
        name: nasty(),
        arguments: nasty(),
        extra: None,
    };
    let failure = || Failure { kind: "disk", message: nasty(), hint: nasty() };
    let error = ModelError { hint: nasty(), ..ModelError::new(ErrorKind::Server, nasty()) };
    let retry = crate::model::Retry {
        attempt: 1,
        attempts_max: 2,
        delay_millis: 1,
        error: error.clone(),
        output_discarded: true,
    };
    let row = session::Row {
        id: "b1".repeat(16),
        path: "/x".into(),
        created_at: nasty(),
        cwd: nasty(),
        title: nasty(),
        name: Some(nasty()),
        parent_session_id: None,
    };
    let model = |event| Said::Told(Told::Model(event));
    let mut said = vec![
        Said::Session(Box::new(facts)),
        Said::Notice(nasty()),
        Said::Failed(failure()),
        Said::Told(Told::Notice(nasty())),
        Said::Output { line: nasty(), text: nasty() },
        Said::Report(report::plain(NASTY)),
        Said::Report(vec![
            report::Line::Title(nasty()),
            report::Line::Row(nasty(), nasty()),
            report::Line::Whole(nasty(), nasty()),
            report::Line::Diff(format!(
                "--- a/{NASTY}\n+++ b/{NASTY}\n@@ -1 +1 @@\n-{NASTY}\n+{NASTY}\n"
            )),
        ]),
        model(ModelEvent::Notice(nasty())),
        model(ModelEvent::Retry(retry)),
        model(ModelEvent::ReasoningDelta(format!("**{NASTY}** {NASTY}"))),
        model(ModelEvent::TextDelta(format!(
            "# {NASTY}\n\n`{NASTY}`\n\n```{NASTY}\n{NASTY}\n```\n"
        ))),
        model(ModelEvent::ToolCallStart { index: 0, name: nasty() }),
        Said::Told(Told::ToolStarted { call: call() }),
        ended(Stop::Failed(error)),
        Said::Done,
        Said::Sessions(vec![row]),
    ];
    let mut shown = Vec::new();
    let mut look = |stage: &mut Stage| {
        shown.extend(stage.take_lines());
        shown.extend(stage.frame(NOW).rows);
    };
    type_text(&mut stage, "a");
    stage.input(Input::Paste(nasty()), NOW);
    press(&mut stage, Press::plain(Key::Enter));
    press(&mut stage, Press::ctrl('r'));
    stage.input(Input::Paste(nasty()), NOW);
    for said in said.drain(..) {
        stage.hear(said, NOW);
        look(&mut stage);
    }
    stage.open_picker();
    look(&mut stage);
    press(&mut stage, Press::plain(Key::Escape));
    stage.set_draft(&format!("/{NASTY}"));
    look(&mut stage);
    press(&mut stage, Press::plain(Key::Enter));
    look(&mut stage);
    assert!(shown.iter().filter(|line| line.contains("^[[2J")).count() > 20, "{shown:#?}");
    for line in shown {
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
    }
}

//! Command hooks: programs of the person's own that watch, change or refuse what a turn does.
//!
//! A hook is a command line of the configuration, run by `/bin/sh` in the working directory: one
//! line of JSON in, nothing or one JSON object out. The hooks of an event run one after the other
//! in the order of the files, each on what the one before left. Whatever goes wrong in one is an
//! error of what it guards: nothing passes because a guard is broken.
//!
//! Hooks of a project that is not trusted are not among the rows that come here. Without hooks
//! every call here returns at once and nothing is made.

mod calls;
mod error;
mod event;
mod messages;
mod reply;
mod run;

pub use calls::{CompactRange, PreCompact, Scene, Start, TurnEnd, Verdict};
pub use error::{Error, Failed, one_line};
pub use event::{HookEvent, at, text_at};
pub use reply::Reply;
pub use run::{Ran, Setup, words};

use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use crate::cancel::Cancel;
use crate::config::{self, Row};

/// One row of `[[hooks]]`.
#[derive(Debug, Clone)]
pub struct Hook {
    pub event: HookEvent,
    /// As written; `None`: matches all.
    pub matcher: Option<Regex>,
    pub command: String,
    pub timeout: Duration,
    /// Where it stands: `FILE:LINE`.
    pub place: String,
}

impl Hook {
    /// A row that is to be used; `None` for one that is disabled. The error is that of a matcher.
    pub fn of(row: &Row) -> Result<Option<Hook>, String> {
        let event = row.text("event").and_then(HookEvent::by_name);
        let (Some(event), Some(command), false) = (event, row.text("command"), row.is_disabled())
        else {
            return Ok(None);
        };
        let place = row.origin.to_string();
        let matcher = match event.subject() {
            Some(_) => config::matcher(row.text("matcher").unwrap_or_default())
                .map_err(|reason| format!("{place}: {reason}"))?,
            None => None,
        };
        let seconds = row.int("timeout_seconds").and_then(|seconds| u64::try_from(seconds).ok());
        let timeout = Duration::from_secs(seconds.unwrap_or(30));
        Ok(Some(Hook { event, matcher, command: command.to_owned(), timeout, place }))
    }

    /// Whether it is for a payload whose tool, reason or trigger is `subject`.
    pub fn is_for(&self, subject: &str) -> bool {
        self.matcher.as_ref().is_none_or(|matcher| matcher.is_match(subject))
    }
}

/// The hooks of a run.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    hooks: Vec<Hook>,
    setup: Setup,
}

/// A no, and whose it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub reason: String,
    /// The line of the configuration.
    pub place: String,
}

/// What the hooks of an event left of its payload.
#[derive(Debug)]
struct Outcome {
    payload: Value,
    is_changed: bool,
    block: Option<Block>,
}

impl Hooks {
    /// The hooks of the rows, disabled ones left out. `setup` is asked for only if there are any.
    pub fn new(rows: &[Row], setup: impl FnOnce() -> Setup) -> Result<Hooks, String> {
        let mut hooks = Vec::new();
        for row in rows {
            hooks.extend(Hook::of(row)?);
        }
        let setup = if hooks.is_empty() { Setup::default() } else { setup() };
        Ok(Hooks { hooks, setup })
    }

    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// Whether any hook is there for an event, whatever its matcher says.
    pub fn has(&self, event: HookEvent) -> bool {
        self.of(event).next().is_some()
    }

    /// The hooks of an event, in order.
    pub fn of(&self, event: HookEvent) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().filter(move |hook| hook.event == event)
    }

    /// Whether a hook is there for this tool, reason or trigger.
    fn has_for(&self, event: HookEvent, subject: &str) -> bool {
        self.of(event).any(|hook| hook.is_for(subject))
    }

    /// Runs one hook and puts what it changes into the payload.
    pub fn step(&self, hook: &Hook, payload: &mut Value, cancel: &Cancel) -> Ran {
        let ran = run::run(hook, &self.setup, payload, cancel);
        if let Ok(reply) = &ran.reply {
            for (change, value) in &reply.changes {
                put(payload, change.path, value.clone());
            }
        }
        ran
    }

    /// Runs every hook that is for this payload, until one says no or fails.
    fn run(&self, event: HookEvent, mut payload: Value, cancel: &Cancel) -> Result<Outcome, Error> {
        let subject = event.subject().map(|path| text_at(&payload, path).to_owned());
        let subject = subject.unwrap_or_default();
        let mut is_changed = false;
        for hook in self.of(event).filter(|hook| hook.is_for(&subject)) {
            let reply = self.step(hook, &mut payload, cancel).reply?;
            is_changed |= !reply.changes.is_empty();
            if let Some(reason) = reply.block {
                let block = Some(Block { reason, place: hook.place.clone() });
                return Ok(Outcome { payload, is_changed, block });
            }
        }
        Ok(Outcome { payload, is_changed, block: None })
    }
}

fn put(payload: &mut Value, path: &[&str], value: Value) {
    let Some((name, objects)) = path.split_last() else { return };
    let inner = objects.iter().try_fold(payload, |value, name| value.get_mut(name));
    if let Some(Value::Object(fields)) = inner {
        fields.insert((*name).to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Reason;
    use crate::model::{Message, Role, ToolCall};
    use std::time::Instant;

    fn hook(event: HookEvent, matcher: &str, command: &str, line: usize) -> Hook {
        Hook {
            event,
            matcher: config::matcher(matcher).unwrap(),
            command: command.to_owned(),
            timeout: Duration::from_secs(60),
            place: format!("config.toml:{line}"),
        }
    }

    fn hooks(rows: &[(HookEvent, &str, &str)]) -> Hooks {
        let rows = rows.iter().enumerate();
        let hooks =
            rows.map(|(idx, (event, matcher, command))| hook(*event, matcher, command, idx));
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        let setup = Setup { cwd: "/".into(), env: [path].into(), mark: None };
        Hooks { hooks: hooks.collect(), setup }
    }

    fn scene(cancel: &Cancel) -> Scene<'_> {
        Scene { session_path: Some("s.jsonl"), session_id: "s1", cancel }
    }

    fn call(name: &str, arguments: &str) -> ToolCall {
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        ToolCall { id: "c1".to_owned(), name, arguments, extra: None }
    }

    /// A command that answers with what it got, told by a field.
    fn echo(field: &str, sed: &str) -> String {
        format!(r#"sed -E 's/.*"{field}":"([^"]*)".*/{sed}/'"#)
    }

    #[test]
    fn each_hook_sees_what_the_one_before_left() {
        use HookEvent::{TurnStart, UserPromptSubmit};
        let add = |text: &str| echo("prompt", &format!(r#"{{"prompt":"\1{text}"}}"#));
        let (a, b) = (add("a"), add("b"));
        let cancel = Cancel::new();
        let submit = |rows: &[(HookEvent, &str, &str)]| {
            hooks(rows).user_prompt_submit(&scene(&cancel), "x").unwrap()
        };
        // Of an event without a subject, a matcher says nothing.
        let rows =
            [(UserPromptSubmit, "", &*a), (TurnStart, "", "exit 1"), (UserPromptSubmit, "", "")];
        assert_eq!(submit(&rows), Verdict::Changed("xa".to_owned()));
        let rows = [(UserPromptSubmit, "", &*a), (UserPromptSubmit, "", &*b)];
        assert_eq!(submit(&rows), Verdict::Changed("xab".to_owned()));
        let no = r#"echo '{"block":true,"reason":"no"}'"#;
        let rows = [
            (UserPromptSubmit, "", "cat >/dev/null"),
            (UserPromptSubmit, "", no),
            (UserPromptSubmit, "", "exit 1"),
        ];
        let block = Block { reason: "no".to_owned(), place: "config.toml:1".to_owned() };
        assert_eq!(submit(&rows), Verdict::Blocked(block));
        assert_eq!(submit(&[(UserPromptSubmit, "", "cat >/dev/null")]), Verdict::Unchanged);
    }

    #[test]
    fn matchers_are_held_against_the_tool_the_reason_or_the_trigger() {
        use HookEvent::*;
        let cancel = Cancel::new();
        let fails = |event, matcher: &str, subject: &str| {
            let hooks = hooks(&[(event, matcher, "exit 3")]);
            let scene = scene(&cancel);
            let start = if subject == "new" { Start::New } else { Start::Resume };
            match event {
                PreToolUse => hooks.pre_tool_use(&scene, &call(subject, "{}")).is_err(),
                PostToolUse => {
                    hooks.post_tool_use(&scene, &call(subject, "{}"), "", false).is_err()
                }
                SessionStart => hooks.session_start(&scene, start).is_err(),
                PostCompact => hooks.post_compact(&scene, subject, "", "", "").is_err(),
                _ => {
                    let range = CompactRange {
                        trigger: subject,
                        range_start_id: "",
                        range_end_id: "",
                        first_kept_event_id: "",
                    };
                    hooks.pre_compact(&scene, &range).is_err()
                }
            }
        };
        for (event, matcher, subject, want) in [
            (PreToolUse, "", "bash", true),
            (PreToolUse, "*", "bash", true),
            (PreToolUse, "bash|edit", "edit", true),
            (PreToolUse, "bash|edit", "read", false),
            (PreToolUse, "^rea", "read", true),
            (PreToolUse, "ea", "read", true),
            (PreToolUse, "^ea", "read", false),
            (PostToolUse, "read", "read", true),
            (PostToolUse, "read", "ls", false),
            (SessionStart, "new", "new", true),
            (SessionStart, "new", "resume", false),
            (SessionStart, "resume", "resume", true),
            (PreCompact, "manual", "manual", true),
            (PreCompact, "manual", "auto", false),
            (PostCompact, "auto", "auto", true),
            (PostCompact, "auto", "manual", false),
        ] {
            assert_eq!(fails(event, matcher, subject), want, "{event:?} {matcher} {subject}");
        }
    }

    #[test]
    fn compaction_can_be_refused_and_its_summary_supplied() {
        let range = CompactRange {
            trigger: "auto",
            range_start_id: "e1",
            range_end_id: "e7",
            first_kept_event_id: "e8",
        };
        let cancel = Cancel::new();
        let before = |command: &str| {
            let hooks = hooks(&[(HookEvent::PreCompact, "", command)]);
            hooks.pre_compact(&scene(&cancel), &range).unwrap()
        };
        assert_eq!(before("cat >/dev/null"), PreCompact::default());
        let said = before(r#"echo '{"summary":"Goal"}'"#);
        assert_eq!(said, PreCompact { block: None, summary: Some("Goal".to_owned()) });
        let block = before(r#"echo '{"block":true,"reason":"later"}'"#).block.unwrap();
        assert_eq!((&*block.reason, &*block.place), ("later", "config.toml:0"));
        // The whole of what they get.
        let line = |payload: &str, event: &str| {
            format!(r#"{{"version":1,"event":"{event}","cwd":"/","payload":{payload}}}"#)
        };
        let is = |line: &str| format!("read -r line; [ \"$line\" = '{line}' ]");
        let want = line(
            r#"{"firstKeptEventId":"e8","rangeEndId":"e7","rangeStartId":"e1","sessionPath":"s.jsonl","trigger":"auto"}"#,
            "PreCompact",
        );
        assert_eq!(before(&is(&want)), PreCompact::default());
        let want = line(
            r#"{"firstKeptEventId":"e8","sessionPath":"s.jsonl","summary":"S","summaryEventId":"e9","trigger":"manual"}"#,
            "PostCompact",
        );
        let after = hooks(&[(HookEvent::PostCompact, "", &is(&want))]);
        after.post_compact(&scene(&cancel), "manual", "e9", "e8", "S").unwrap();
    }

    #[test]
    fn a_failure_names_hook_place_and_words_and_ends_the_chain() {
        let cancel = Cancel::new();
        let fault = |command: &str, limit: Duration| {
            let mut hooks = hooks(&[
                (HookEvent::PreToolUse, "", command),
                (HookEvent::PreToolUse, "", "echo '{\"block\":true}'"),
            ]);
            hooks.hooks[0].timeout = limit;
            match hooks.pre_tool_use(&scene(&cancel), &call("bash", "{}")) {
                Err(error) => error.to_string(),
                Ok(verdict) => panic!("{command}: {verdict:?}"),
            }
        };
        let check = |command: &str, want: &str| {
            let head = format!("config.toml:0: the PreToolUse hook '{command}' failed: ");
            assert_eq!(fault(command, Duration::from_secs(60)), format!("{head}{want}"));
        };
        check("echo denied; exit 1", "exit code 1; it said: denied");
        check("echo no >&2; echo x; exit 2", "exit code 2; it said: no");
        check("kill -9 $$", "it was ended by signal 9");
        check("echo 7", "its output is a number, not a JSON object; it said: 7");
        check(
            "echo '{\"block\":tr'",
            "its output is not one JSON object: EOF while parsing a value at line 1 column 11; it said: {\"block\":tr",
        );
        check("printf 'a\\0\\377b' >&2; exit 1", "exit code 1; it said: a\\xffb");
        let late = fault("cat; sleep 60", Duration::from_secs(1));
        assert!(late.contains("failed: timed out after 1 s; it said: {"), "{late}");
    }

    #[test]
    fn output_without_end_is_no_answer() {
        let cancel = Cancel::new();
        let much = hooks(&[(HookEvent::TurnStart, "", "head -c 50000000 /dev/zero")]);
        let error = much.turn_start(&scene(&cancel), "e1", "x").unwrap_err().to_string();
        assert!(error.contains("failed: it wrote 47.7MB, and at most 16.0MB are read"), "{error}");
    }

    #[test]
    fn nobody_has_to_read_a_large_input_and_a_cancelled_hook_ends_at_once() {
        let cancel = Cancel::new();
        let prompt = "x".repeat(1024 * 1024);
        let unread = hooks(&[(HookEvent::UserPromptSubmit, "", "exit 0")]);
        assert_eq!(unread.user_prompt_submit(&scene(&cancel), &prompt), Ok(Verdict::Unchanged));
        let read = hooks(&[(HookEvent::UserPromptSubmit, "", "[ $(wc -c) -gt 1048576 ]")]);
        assert_eq!(read.user_prompt_submit(&scene(&cancel), &prompt), Ok(Verdict::Unchanged));
        let slow = hooks(&[(HookEvent::UserPromptSubmit, "", "sleep 60")]);
        let begun = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| cancel.cancel(Reason::User));
            let got = slow.user_prompt_submit(&scene(&cancel), &prompt);
            assert_eq!(got, Err(Error::Cancelled(Reason::User)));
        });
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn the_conversation_comes_back_changed_or_not_at_all() {
        let cancel = Cancel::new();
        let build = |command: &str| {
            let hooks = hooks(&[(HookEvent::ContextBuild, "", command)]);
            let system = [Message::text(Role::System, "s")];
            hooks.context_build(&scene(&cancel), 0, &system, &[Message::text(Role::User, "u")])
        };
        assert_eq!(build("cat >/dev/null"), Ok(None));
        let said = build(r#"echo '{"messages":[{"role":"user","content":"v"}]}'"#);
        assert_eq!(said, Ok(Some(vec![Message::text(Role::User, "v")])));
        let error = build(r#"echo '{"messages":[]}'"#).unwrap_err().to_string();
        assert!(error.contains("failed: 'messages' is empty; it said: {"), "{error}");
    }
}

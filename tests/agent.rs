//! The turn loop with a scripted model and toy tools: order, barriers, results, ends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use etch::agent::{Agent, Conversation, Event, Observer, Outcome, Stop, run_turn};
use etch::cancel::{Cancel, Reason};
use etch::context::project::Projection;
use etch::hook::Hooks;
use etch::host::Host;
use etch::model::{
    ErrorKind, Finish, Message, Model, ModelError, ModelEvent, Part, Request, Retry, Role,
    ToolCall, ToolSpec, Usage,
};
use etch::policy::Decision;
use etch::session::Log;
use etch::tool::{Need, Overlap, Plan, Registry, Tool, ToolContext, ToolOutput};
use etch::workspace::Workspace;
use serde_json::Value;

use crate::support::command::TempDir;
use crate::support::session::started;

type Reply = (Vec<ModelEvent>, Result<Finish, ModelError>);

/// Plays replies in order and keeps what it was asked.
struct Script {
    replies: Mutex<VecDeque<Reply>>,
    seen: Mutex<Vec<Vec<Message>>>,
}

impl Model for Script {
    fn provider(&self) -> &str {
        "script"
    }

    fn stream(
        &self,
        request: &Request<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(ModelEvent),
    ) -> Result<Finish, ModelError> {
        self.seen.lock().unwrap().push(request.messages.to_vec());
        let (events, result) = self.replies.lock().unwrap().pop_front().expect("a reply");
        events.into_iter().for_each(sink);
        match cancel.reason() {
            Some(_) => Err(ModelError::new(ErrorKind::Cancelled, "cancelled")),
            None => result,
        }
    }
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::TextDelta(text.to_owned())
}

fn call(id: &str, name: &str, arguments: &str) -> ModelEvent {
    let (id, name, arguments) = (id.to_owned(), name.to_owned(), arguments.to_owned());
    ModelEvent::ToolCallEnd { index: 0, call: ToolCall { id, name, arguments, extra: None } }
}

fn wants(calls: &[ModelEvent]) -> Reply {
    (calls.to_vec(), Ok(Finish::ToolCalls))
}

fn answers(answer: &str) -> Reply {
    (vec![text(answer)], Ok(Finish::Stop))
}

type Action = Box<dyn Fn(&str, &ToolContext<'_>) -> ToolOutput + Send + Sync>;

struct Toy {
    spec: ToolSpec,
    overlap: Overlap,
    action: Action,
}

impl Tool for Toy {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn output_bytes_max(&self) -> usize {
        1000
    }

    fn plan(&self, arguments: &str, _cx: &ToolContext<'_>) -> Result<Plan, String> {
        if arguments.contains("bad") {
            return Err("'x' must be a number".to_owned());
        }
        Ok(Plan { overlap: self.overlap, lane: None, needs: vec![Need::Shell("x".to_owned())] })
    }

    fn run(&self, arguments: &str, cx: &ToolContext<'_>) -> ToolOutput {
        (self.action)(arguments, cx)
    }
}

fn toy(
    name: &str,
    overlap: Overlap,
    action: impl Fn(&str, &ToolContext<'_>) -> ToolOutput + Send + Sync + 'static,
) -> Box<dyn Tool> {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: name.to_owned(),
        parameters: "{}".to_owned(),
    };
    Box::new(Toy { spec, overlap, action: Box::new(action) })
}

fn says(text: &'static str) -> impl Fn(&str, &ToolContext<'_>) -> ToolOutput {
    move |_, _| ToolOutput::ok(text)
}

/// Keeps the log's lines and the order in which calls ended.
#[derive(Default)]
struct Watch {
    lines: Vec<Value>,
    ended: Vec<String>,
    cancel_at_tool: Option<Cancel>,
}

impl Observer for Watch {
    fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Logged { line } => self.lines.push(serde_json::from_str(line).unwrap()),
            Event::ToolFinished { call, .. } => {
                self.ended.push(call.id.clone());
                if let Some(cancel) = &self.cancel_at_tool {
                    cancel.cancel(Reason::Interrupt);
                }
            }
            _ => {}
        }
    }
}

impl Watch {
    fn kinds(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
    }

    /// `(call id, status, text)` of every result in the log.
    fn results(&self) -> Vec<(String, String, String)> {
        let tools = self.lines.iter().filter(|line| line["type"] == "message.tool");
        let read = |line: &Value| {
            let data = &line["data"];
            let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (part(&data["toolCallId"]), part(&data["status"]), part(&data["content"][0]["text"]))
        };
        tools.map(read).collect()
    }
}

struct Run {
    outcome: Outcome,
    watch: Watch,
    seen: Vec<Vec<Message>>,
    conversation: Conversation,
}

struct Setup {
    tools: Vec<Box<dyn Tool>>,
    replies: Vec<Reply>,
    rounds_max: u32,
    deny: &'static [&'static str],
    steering: Vec<Vec<String>>,
    hooks: Hooks,
    cancel: Cancel,
    cancel_at_tool: bool,
}

impl Setup {
    fn new(tools: Vec<Box<dyn Tool>>, replies: Vec<Reply>) -> Setup {
        Setup {
            tools,
            replies,
            rounds_max: 32,
            deny: &[],
            steering: Vec::new(),
            hooks: Hooks::default(),
            cancel: Cancel::new(),
            cancel_at_tool: false,
        }
    }

    fn run(self) -> Run {
        let place = TempDir::new();
        let host = Host::fixed();
        let workspace = Workspace::new(place.path(), false).unwrap();
        let tools = Registry::new(self.tools).unwrap();
        let model =
            Script { replies: Mutex::new(self.replies.into()), seen: Mutex::new(Vec::new()) };
        let deny = self.deny;
        let agent = Agent {
            host: &host,
            model: &model,
            model_name: "m",
            reasoning_effort: None,
            reasoning_summary: None,
            max_output_tokens: None,
            window: &|_, _| None,
            context: &etch::context::budget::Settings::default(),
            tools: &tools,
            workspace: &workspace,
            decide: &move |name, _plan| match deny.contains(&name) {
                true => Decision::Deny("not in this run".to_owned()),
                false => Decision::Allow,
            },
            redact: &|text| text.to_owned(),
            hooks: &self.hooks,
            system: &[],
            rounds_max: self.rounds_max,
        };
        let log = Log::ephemeral(host.new_id(), started("/w"));
        let mut conversation = Conversation::new(log, Projection::new());
        let mut watch = Watch {
            cancel_at_tool: self.cancel_at_tool.then(|| self.cancel.clone()),
            ..Watch::default()
        };
        let mut steering = VecDeque::from(self.steering);
        let outcome = run_turn(
            &agent,
            &mut conversation,
            "go",
            &mut || steering.pop_front().unwrap_or_default(),
            &self.cancel,
            &mut watch,
        );
        let seen = model.seen.into_inner().unwrap();
        Run { outcome, watch, seen, conversation }
    }
}

#[test]
fn a_turn_logs_every_step_in_order_and_answers() {
    let tools = vec![toy("look", Overlap::ReadOnly, says("seen"))];
    let usage = ModelEvent::Usage(Usage { input: 5, ..Usage::default() });
    let first =
        (vec![text("Let me look."), call("c1", "look", "{}"), usage], Ok(Finish::ToolCalls));
    let run = Setup::new(tools, vec![first, answers("Done.")]).run();
    assert_eq!(run.outcome.stop, Stop::Final);
    assert_eq!((run.outcome.answer.as_str(), run.outcome.rounds), ("Done.", 2));
    assert_eq!((run.outcome.tool_calls, run.outcome.usage.input), (1, 5));
    let want = "session.started message.user message.assistant model.usage message.tool \
                message.assistant";
    assert_eq!(run.watch.kinds().join(" "), want);
    // The second request holds the call and its result, in this order.
    let roles: Vec<_> = run.seen[1].iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(run.seen[1][1].parts.len(), 2);
}

#[test]
fn a_call_ends_at_its_tools_limits_of_time_and_size() {
    let waits = |_: &str, cx: &ToolContext<'_>| {
        assert!(cx.cancel.channel().recv().is_err());
        ToolOutput::interrupted()
    };
    let floods = |_: &str, _: &ToolContext<'_>| ToolOutput::ok("line\n".repeat(1_000));
    let tools =
        vec![toy("wait", Overlap::ReadOnly, waits), toy("flood", Overlap::ReadOnly, floods)];
    let calls = wants(&[call("c1", "wait", "{}"), call("c2", "flood", "{}")]);
    let run = Setup::new(tools, vec![calls, answers("Done.")]).run();
    assert_eq!(run.outcome.stop, Stop::Final);
    let results = run.watch.results();
    let late = "tool error: 'wait' took longer than 1 s";
    assert_eq!(results[0], ("c1".to_owned(), "error".to_owned(), late.to_owned()));
    let (_, status, text) = &results[1];
    assert_eq!(status, "ok");
    assert!(text.len() <= 1_000 && text.contains("left out"), "{text}");
}

#[test]
fn read_only_calls_overlap_and_results_stay_in_call_order() {
    // Both calls must be running at once for either to end.
    let meet = Arc::new(Barrier::new(2));
    let tools = vec![toy("look", Overlap::ReadOnly, move |arguments, _| {
        meet.wait();
        ToolOutput::ok(format!("result {arguments}"))
    })];
    let calls = [call("a", "look", "1"), call("b", "look", "2")];
    let run = Setup::new(tools, vec![wants(&calls), answers("ok")]).run();
    let results: Vec<_> = run.watch.results().into_iter().map(|(id, _, text)| (id, text)).collect();
    assert_eq!(results, [("a".into(), "result 1".into()), ("b".into(), "result 2".into())]);
    assert_eq!(run.watch.ended.len(), 2);
}

#[test]
fn a_serial_call_is_a_barrier_between_groups() {
    let running = Arc::new(AtomicUsize::new(0));
    let tracked = |name: &str, overlap| {
        let running = Arc::clone(&running);
        let alone = overlap == Overlap::Serial;
        toy(name, overlap, move |_, _| {
            let before = running.fetch_add(1, Ordering::SeqCst);
            std::thread::yield_now();
            let now = running.fetch_sub(1, Ordering::SeqCst);
            let shared = alone && (before != 0 || now != 1);
            ToolOutput::ok(if shared { "not alone" } else { "fine" })
        })
    };
    let tools = vec![tracked("look", Overlap::ReadOnly), tracked("write", Overlap::Serial)];
    let names = ["look", "look", "write", "look", "write", "write", "look"];
    let calls: Vec<_> =
        names.iter().enumerate().map(|(i, name)| call(&format!("c{i}"), name, "{}")).collect();
    let run = Setup::new(tools, vec![wants(&calls), answers("ok")]).run();
    let ids: Vec<_> = run.watch.results().into_iter().map(|(id, _, text)| (id, text)).collect();
    let want: Vec<_> = (0..7).map(|i| (format!("c{i}"), "fine".to_owned())).collect();
    assert_eq!(ids, want);
}

#[test]
fn every_call_gets_a_result_whatever_is_wrong_with_it() {
    let tools = vec![
        toy("fine", Overlap::ReadOnly, says("yes")),
        toy("silent", Overlap::ReadOnly, says("")),
        toy("broken", Overlap::Serial, |_, _| panic!("inside")),
        toy("refused", Overlap::Serial, says("never")),
    ];
    let calls = [
        call("1", "fine", "{}"),
        call("2", "nosuch", "{}"),
        call("3", "fine", "bad"),
        call("4", "broken", "{}"),
        call("5", "refused", "{}"),
        call("6", "silent", "{}"),
    ];
    let mut setup = Setup::new(tools, vec![wants(&calls), answers("ok")]);
    setup.deny = &["refused"];
    let run = setup.run();
    let result = |id: &str, status: &str, text: &str| (id.into(), status.into(), text.into());
    let unknown = "tool error: unknown tool \"nosuch\"; there are: broken, fine, refused, silent";
    let inside = "tool error: the tool failed inside; this is a bug in etch, not in your call";
    assert_eq!(
        run.watch.results(),
        [
            result("1", "ok", "yes"),
            result("2", "error", unknown),
            result("3", "error", "tool error: 'x' must be a number"),
            result("4", "error", inside),
            result("5", "denied", "tool error: denied: not in this run"),
            result("6", "ok", "(no output)"),
        ]
    );
    assert_eq!(run.outcome.stop, Stop::Final);
    assert_eq!(run.outcome.denied_calls.len(), 1);
    assert!(run.watch.kinds().contains(&"tool.denied"));
}

#[test]
fn an_answer_right_after_nothing_but_refusals_is_a_denied_run() {
    let tools = vec![toy("refused", Overlap::Serial, says("never"))];
    let replies = vec![wants(&[call("1", "refused", "{}")]), answers("I could not do it.")];
    let mut setup = Setup::new(tools, replies);
    setup.deny = &["refused"];
    let run = setup.run();
    assert_eq!((run.outcome.stop.exit_code(), run.outcome.stop.as_str()), (4, "denied"));
    assert_eq!(run.outcome.answer, "I could not do it.");
}

#[test]
fn calls_of_a_cut_answer_never_run_and_the_model_hears_why() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let tools = vec![toy("write", Overlap::Serial, move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        ToolOutput::ok("written")
    })];
    let cut = (vec![call("1", "write", "{\"content\":\"half")], Ok(Finish::Length));
    let run = Setup::new(tools, vec![cut, answers("In pieces then.")]).run();
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(run.outcome.stop, Stop::Final);
    let results = run.watch.results();
    assert_eq!((results.len(), results[0].1.as_str()), (1, "error"));
    assert!(results[0].2.contains("output limit cut your answer"), "{}", results[0].2);
}

#[test]
fn ends_without_an_answer_are_no_success() {
    let error = |kind| Err(ModelError::new(kind, "boom"));
    let cases: Vec<(Reply, &str, u8)> = vec![
        ((vec![], Ok(Finish::Stop)), "error", 1),
        ((vec![text(" \n")], Ok(Finish::Stop)), "error", 1),
        ((vec![text("half")], Ok(Finish::Length)), "truncated", 1),
        ((vec![], Ok(Finish::ContentFilter)), "refused", 1),
        ((vec![text("No.")], Ok(Finish::Refusal)), "refused", 1),
        ((vec![text("half")], error(ErrorKind::Server)), "error", 1),
        ((vec![], error(ErrorKind::Auth)), "error", 3),
        ((vec![], error(ErrorKind::Network)), "network", 8),
    ];
    for (reply, stop, exit) in cases {
        let shown = format!("{reply:?}");
        let run = Setup::new(Vec::new(), vec![reply]).run();
        let got = (run.outcome.stop.as_str(), run.outcome.stop.exit_code());
        assert_eq!(got, (stop, exit), "{shown}");
        assert!(run.outcome.stop.failure().is_some());
        assert_eq!(run.watch.kinds().last(), Some(&"turn.stopped"), "{shown}");
    }
}

#[test]
fn the_round_limit_is_a_stop_that_keeps_everything() {
    let tools = vec![toy("count", Overlap::Serial, |arguments, _| ToolOutput::ok(arguments))];
    let replies = (0..3).map(|i| wants(&[call(&format!("c{i}"), "count", &i.to_string())]));
    let mut setup = Setup::new(tools, replies.collect());
    setup.rounds_max = 3;
    let run = setup.run();
    assert_eq!(run.outcome.stop, Stop::RoundLimit { limit: 3 });
    assert_eq!((run.outcome.stop.exit_code(), run.outcome.rounds), (5, 3));
    assert_eq!(run.watch.results().len(), 3);
    assert_eq!(run.conversation.projection.messages().len(), 7);
}

#[test]
fn the_same_call_with_the_same_result_five_times_ends_the_turn() {
    let tools = vec![toy("look", Overlap::ReadOnly, says("same"))];
    let replies = (0..9).map(|i| wants(&[call(&format!("c{i}"), "look", "{}")]));
    let run = Setup::new(tools, replies.collect()).run();
    assert_eq!(run.outcome.stop, Stop::Repeated { name: "look".to_owned(), times: 5 });
    assert_eq!(run.outcome.rounds, 5);
}

#[test]
fn an_answer_that_the_output_limit_cuts_five_times_alike_ends_the_turn() {
    let tools = vec![toy("write", Overlap::Serial, says("written"))];
    let cut =
        |i| (vec![call(&format!("c{i}"), "write", "{\"content\":\"half")], Ok(Finish::Length));
    let run = Setup::new(tools, (0..9).map(cut).collect()).run();
    assert_eq!(run.outcome.stop, Stop::Repeated { name: "write".to_owned(), times: 5 });
    assert_eq!(run.outcome.rounds, 5);
    assert_eq!(run.watch.results().len(), 5);
}

#[test]
fn a_cancelled_batch_still_answers_every_call() {
    let tools = vec![toy("slow", Overlap::Serial, says("done"))];
    let calls: Vec<_> = (0..3).map(|i| call(&format!("c{i}"), "slow", &i.to_string())).collect();
    let mut setup = Setup::new(tools, vec![wants(&calls)]);
    setup.cancel_at_tool = true;
    let run = setup.run();
    assert_eq!(run.outcome.stop, Stop::Cancelled(Reason::Interrupt));
    let statuses: Vec<_> = run.watch.results().into_iter().map(|(_, status, _)| status).collect();
    assert_eq!(statuses, ["ok", "interrupted", "interrupted"]);
    assert_eq!(run.watch.kinds().last(), Some(&"turn.stopped"));
    let last = run.conversation.projection.messages().last().map(|message| message.role);
    assert_eq!(last, Some(Role::Tool));
}

#[test]
fn what_was_typed_meanwhile_is_admitted_after_the_batch_and_only_there() {
    use Role::{Assistant, Tool as Result, User};
    let tools = vec![toy("look", Overlap::ReadOnly, |arguments, _| ToolOutput::ok(arguments))];
    let replies = vec![
        wants(&[call("1", "look", "1"), call("2", "look", "2")]),
        wants(&[call("3", "look", "3")]),
        answers("ok"),
    ];
    let mut setup = Setup::new(tools, replies);
    setup.steering = vec![vec!["also this".to_owned()], vec![]];
    let run = setup.run();
    let roles = |idx: usize| -> Vec<Role> { run.seen[idx].iter().map(|m| m.role).collect() };
    assert_eq!(roles(1), [User, Assistant, Result, Result, User]);
    assert_eq!(roles(2), [User, Assistant, Result, Result, User, Assistant, Result]);
}

#[test]
fn a_retry_is_logged_and_leaves_nothing_of_the_failed_attempt() {
    let retry = ModelEvent::Retry(Retry {
        attempt: 1,
        attempts_max: 5,
        delay_millis: 10,
        error: ModelError::new(ErrorKind::Overloaded, "busy").with_status(503),
        output_discarded: true,
    });
    let reply = (vec![text("hal"), retry, text("whole")], Ok(Finish::Stop));
    let run = Setup::new(Vec::new(), vec![reply]).run();
    assert_eq!(run.outcome.answer, "whole");
    let retry = run.watch.lines.iter().find(|line| line["type"] == "model.retry").unwrap();
    assert_eq!(retry["data"]["kind"], "overloaded");
    assert_eq!(retry["data"]["status"], 503);
    let said = run.conversation.projection.messages()[1].parts.clone();
    assert_eq!(said, [Part::Text("whole".to_owned())]);
}

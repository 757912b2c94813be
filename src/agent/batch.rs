//! Runs the calls of one answer: groups, barriers and lanes; one result per call, in call order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded, unbounded};

use super::hooks::Gate;
use super::{Agent, Event, Observer};
use crate::cancel::{Cancel, Never, Reason};
use crate::model::{ResultStatus, ToolCall};
use crate::policy::Decision;
use crate::text;
use crate::tool::{self, Caller, Overlap, Plan, Tool, ToolContext, ToolOutput};

/// The most calls of one group that run at the same time; more wait for a free thread.
const CONCURRENT_MAX: usize = 8;

/// What a tool has beyond its timeout to end in its own way.
const OWN_END: Duration = Duration::from_secs(1);

/// A call's result with the time it took. `denied` holds the reason of a refusal.
#[derive(Debug, Clone, Default)]
pub struct CallEnd {
    pub output: ToolOutput,
    pub elapsed: Duration,
    pub denied: Option<String>,
    /// The hook that refused it: its line in the configuration.
    pub hook: Option<String>,
}

/// The calls of one lane, or one call without a lane: its name, and index and tool of each.
type Lane<'a> = (Option<String>, Vec<(usize, &'a dyn Tool)>);

/// What is to be done with a call, decided before anything of its group runs.
enum Prepared<'a> {
    Run {
        tool: &'a dyn Tool,
        plan: Plan,
    },
    /// Nothing to run: the result is known (unknown tool, bad arguments, refused).
    Known(CallEnd),
}

impl Prepared<'_> {
    fn is_barrier(&self) -> bool {
        matches!(self, Prepared::Run { plan, .. } if plan.overlap == Overlap::Serial)
    }
}

/// Runs `calls` and gives `done` each group's results, in call order, as soon as the group has
/// ended; `done` returns false to run no further group (the rest is reported as interrupted).
pub fn run_calls(
    agent: &Agent<'_>,
    calls: &[ToolCall],
    gate: &mut Gate,
    cancel: &Cancel,
    observer: &mut dyn Observer,
    done: &mut dyn FnMut(&ToolCall, &CallEnd, &mut dyn Observer) -> bool,
) {
    let mut go_on = true;
    let mut next = 0;
    while next < calls.len() {
        // Planned group by group: an earlier call may create what a later one's path names.
        let first = prepare(agent, &calls[next], gate.veto(next), cancel);
        let mut group = vec![first];
        while !group[0].is_barrier() && next + group.len() < calls.len() {
            let idx = next + group.len();
            let prepared = prepare(agent, &calls[idx], gate.veto(idx), cancel);
            if prepared.is_barrier() {
                break;
            }
            group.push(prepared);
        }
        let members = &calls[next..next + group.len()];
        let ends = if go_on && !cancel.is_cancelled() {
            run_group(agent, members, group, gate, cancel, observer)
        } else {
            let interrupted =
                || CallEnd { output: ToolOutput::interrupted(), ..CallEnd::default() };
            members.iter().map(|_| interrupted()).collect()
        };
        for (call, end) in members.iter().zip(&ends) {
            go_on &= done(call, end, observer);
        }
        go_on &= gate.failed.is_none();
        next += members.len();
    }
}

fn prepare<'a>(
    agent: &Agent<'a>,
    call: &ToolCall,
    veto: Option<CallEnd>,
    cancel: &Cancel,
) -> Prepared<'a> {
    if let Some(end) = veto {
        return Prepared::Known(end);
    }
    let known = |output| Prepared::Known(CallEnd { output, ..CallEnd::default() });
    let denied = |reason: String| {
        let mut output = ToolOutput::error(format!("denied: {reason}"));
        output.status = ResultStatus::Denied;
        Prepared::Known(CallEnd { output, denied: Some(reason), ..CallEnd::default() })
    };
    let Some(tool) = agent.tools.get(&call.name) else {
        // One that this run was not given is refused; the model does not make it up.
        if tool::NAMES.contains(&call.name.as_str())
            && let Decision::Deny(reason) = (agent.decide)(&call.name, &Plan::nothing())
        {
            return denied(reason);
        }
        let names: Vec<_> = agent.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        let known_names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let message = format!("unknown tool \"{}\"; there are: {known_names}", call.name);
        return known(ToolOutput::error(message));
    };
    let cx = context(agent, cancel);
    let plan = match guarded(|| tool.plan(&call.arguments, &cx)) {
        Ok(Ok(plan)) => plan,
        Ok(Err(message)) => return known(ToolOutput::error(message)),
        Err(output) => return known(output),
    };
    match (agent.decide)(&call.name, &plan) {
        Decision::Allow => Prepared::Run { tool, plan },
        Decision::Deny(reason) => denied(reason),
    }
}

fn context<'a>(agent: &Agent<'a>, cancel: &'a Cancel) -> ToolContext<'a> {
    ToolContext { workspace: agent.workspace, host: agent.host, cancel, caller: Caller::Model }
}

fn run_group(
    agent: &Agent<'_>,
    calls: &[ToolCall],
    group: Vec<Prepared<'_>>,
    gate: &mut Gate,
    cancel: &Cancel,
    observer: &mut dyn Observer,
) -> Vec<CallEnd> {
    let mut ends: Vec<CallEnd> = Vec::with_capacity(group.len());
    // Calls of one lane queue on one thread; each call without a lane has its own.
    let mut queues: Vec<Lane<'_>> = Vec::new();
    for (idx, prepared) in group.into_iter().enumerate() {
        observer.observe(Event::ToolStarted { call: &calls[idx] });
        match prepared {
            Prepared::Known(mut end) => {
                gate.ended(agent, &calls[idx], &mut end, cancel);
                observer.observe(Event::ToolFinished { call: &calls[idx], end: &end });
                ends.push(end);
            }
            Prepared::Run { tool, plan } => {
                ends.push(CallEnd::default());
                let lane = queues.iter_mut().find(|(lane, _)| lane.is_some() && *lane == plan.lane);
                match lane {
                    Some((_, queue)) => queue.push((idx, tool)),
                    None => queues.push((plan.lane, vec![(idx, tool)])),
                }
            }
        }
    }
    if queues.len() == 1 {
        // One thread would only wait for the other.
        for (idx, tool) in queues.remove(0).1 {
            let mut end = run_one(agent, tool, &calls[idx], cancel);
            gate.ended(agent, &calls[idx], &mut end, cancel);
            observer.observe(Event::ToolFinished { call: &calls[idx], end: &end });
            ends[idx] = end;
        }
        return ends;
    }
    let (work, queue) = unbounded();
    let threads = queues.len().min(CONCURRENT_MAX);
    queues.into_iter().for_each(|(_, lane)| drop(work.send(lane)));
    drop(work);
    thread::scope(|scope| {
        let (ended, results) = unbounded();
        for _ in 0..threads {
            let (queue, ended): (_, Sender<(usize, CallEnd)>) = (queue.clone(), ended.clone());
            scope.spawn(move || {
                for (idx, tool) in queue.iter().flatten() {
                    let _ = ended.send((idx, run_one(agent, tool, &calls[idx], cancel)));
                }
            });
        }
        drop(ended);
        for (idx, mut end) in results {
            // One after the other, while other calls go on.
            gate.ended(agent, &calls[idx], &mut end, cancel);
            observer.observe(Event::ToolFinished { call: &calls[idx], end: &end });
            ends[idx] = end;
        }
    });
    ends
}

/// Runs a call within the limits that its tool states, whether or not the tool keeps them itself.
fn run_one(agent: &Agent<'_>, tool: &dyn Tool, call: &ToolCall, cancel: &Cancel) -> CallEnd {
    let start = agent.host.elapsed();
    let own = &cancel.child();
    let run = || guarded(|| tool.run(&call.arguments, &context(agent, own)));
    let mut output = within(tool.timeout(), own, run).unwrap_or_else(|output| output);
    let is_late = own.is_cancelled() && !cancel.is_cancelled();
    if is_late && output.status == ResultStatus::Interrupted {
        let seconds = tool.timeout().as_secs();
        output = ToolOutput::error(format!("'{}' took longer than {seconds} s", call.name));
    }
    // Before the cut, which could leave a part that nobody would recognise.
    output.text = (agent.redact)(&output.text);
    if output.text.is_empty() {
        output.text.push_str("(no output)");
    }
    let bytes_max = tool.output_bytes_max();
    if output.text.len() > bytes_max {
        output.text = text::head_tail(&output.text, bytes_max).into_owned();
    }
    let elapsed = agent.host.elapsed().saturating_sub(start);
    CallEnd { output, elapsed, ..CallEnd::default() }
}

/// Runs `action` and cancels the token if that takes longer than `limit`.
fn within<T>(limit: Duration, cancel: &Cancel, action: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (running, ended) = bounded::<Never>(0);
        scope.spawn(move || {
            let ended = ended.recv_timeout(limit.saturating_add(OWN_END));
            if matches!(ended, Err(RecvTimeoutError::Timeout)) {
                cancel.cancel(Reason::Timeout);
            }
        });
        let result = action();
        drop(running);
        result
    })
}

/// A panic in a tool is that call's error, never the end of the run.
fn guarded<T>(action: impl FnOnce() -> T) -> Result<T, ToolOutput> {
    catch_unwind(AssertUnwindSafe(action)).map_err(|_| {
        ToolOutput::error("the tool failed inside; this is a bug in etch, not in your call")
    })
}

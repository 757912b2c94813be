//! Folding: results that are no longer needed become one line each, the cheapest to lose first.
//!
//! What was sent stays as it was, byte for byte, until a prompt is full. Then enough is folded at
//! once to make it pay for the cache that is lost, or nothing. Pure: the plan is written to the
//! log, and the projection follows that.

use std::collections::{HashMap, HashSet};

use crate::context::compact::{Keep, cut, paths};
use crate::context::tokens;
use crate::model::{Message, Part, ResultStatus, ToolCall, ToolResult};
use crate::text::{human_bytes, plural, visible_line};

/// Begins every stub.
const MARK: &str = "[folded: ";
/// Smaller results are not worth a line about them.
const WORTH: u64 = 64;
/// A result is bulky from here on.
const BULKY: u64 = 256;
const FIRST_LINE_MAX: usize = 120;

/// A result that is to be folded: the index of its message, and the line that stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stub {
    pub at: usize,
    pub text: String,
}

/// A call with its result.
struct Pair<'m> {
    at: usize,
    call: &'m ToolCall,
    result: &'m ToolResult,
    cost: u64,
}

/// Stubs that save at least `excess` tokens, in the order of the conversation; `None` when that
/// much cannot be saved. The last `keep` tokens of the conversation stay as they are.
pub fn plan(messages: &[Message], costs: &[u64], keep: u64, excess: u64) -> Option<Vec<Stub>> {
    let recent = cut(messages, costs, 0, Keep::Tokens(keep))?;
    let pairs = pairs(messages, costs);
    let old = || pairs.iter().filter(|pair| pair.at < recent && WORTH < pair.cost);
    let mut chosen: HashMap<usize, Stub> = HashMap::new();
    let mut saved = 0;
    let mut choose = |pair: &Pair<'_>, text: String| {
        let stub = Stub { at: pair.at, text };
        if saved < excess && !chosen.contains_key(&pair.at) {
            saved += pair.cost.saturating_sub(tokens::of_message(&stub.as_message(pair.result)));
            chosen.insert(pair.at, stub);
        }
    };
    let stale = stale_reads(&pairs);
    for pair in old() {
        if let Some(reason) = stale.get(&pair.at) {
            choose(pair, format!("{MARK}{reason}]"));
        }
    }
    let mut seen = HashSet::new();
    let mut repeated = HashSet::new();
    for pair in pairs.iter().rev() {
        if !seen.insert((&pair.call.name, &pair.call.arguments)) {
            repeated.insert(pair.at);
        }
    }
    for pair in old().filter(|pair| repeated.contains(&pair.at)) {
        choose(pair, format!("{MARK}the same call was made again later]"));
    }
    for pair in old().filter(|pair| BULKY < pair.cost) {
        choose(pair, bulky(&pair.result.text));
    }
    if saved < excess {
        return None;
    }
    let mut stubs: Vec<Stub> = chosen.into_values().collect();
    stubs.sort_by_key(|stub| stub.at);
    Some(stubs)
}

impl Stub {
    fn as_message(&self, result: &ToolResult) -> Message {
        let text = self.text.clone();
        let part = Part::ToolResult(ToolResult { text, ..result.clone() });
        Message { role: crate::model::Role::Tool, parts: vec![part] }
    }
}

/// The results that are no stub yet, with their calls.
fn pairs<'m>(messages: &'m [Message], costs: &[u64]) -> Vec<Pair<'m>> {
    let mut calls: &[Part] = &[];
    let mut pairs = Vec::new();
    for (at, (message, cost)) in messages.iter().zip(costs).enumerate() {
        let [Part::ToolResult(result)] = message.parts.as_slice() else {
            calls = &message.parts;
            continue;
        };
        let call = calls.iter().find_map(|part| match part {
            Part::ToolCall(call) if call.id == result.call_id => Some(call),
            _ => None,
        });
        if let Some(call) = call
            && !result.text.starts_with(MARK)
        {
            pairs.push(Pair { at, call, result, cost: *cost });
        }
    }
    pairs
}

/// Reads of files that were changed or read again since, all of them by the same call.
fn stale_reads(pairs: &[Pair<'_>]) -> HashMap<usize, String> {
    let mut changed: HashSet<String> = HashSet::new();
    // What later reads saw: a whole file, or exactly this part.
    let mut whole: HashSet<String> = HashSet::new();
    let mut stale = HashMap::new();
    for pair in pairs.iter().rev().filter(|pair| pair.result.status == ResultStatus::Ok) {
        let paths = paths(&pair.call.arguments);
        match pair.call.name.as_str() {
            "write" | "edit" => changed.extend(paths),
            "read" if !paths.is_empty() => {
                let is_stale = |path: &String| changed.contains(path) || whole.contains(path);
                if paths.iter().all(is_stale) {
                    let what = if paths.iter().any(|path| changed.contains(path)) {
                        "changed"
                    } else {
                        "read again"
                    };
                    let names = paths.join(", ");
                    let names = visible_line(&names);
                    let reason = format!("{names} was {what} later; read it again if needed");
                    stale.insert(pair.at, reason);
                }
                if is_whole(&pair.call.arguments) {
                    whole.extend(paths);
                }
            }
            _ => {}
        }
    }
    stale
}

/// Whether a read asked for files from start to end.
fn is_whole(arguments: &str) -> bool {
    !arguments.contains("\"offset\"") && !arguments.contains("\"limit\"")
}

/// The first line of a long result, and how much followed.
fn bulky(text: &str) -> String {
    let first = visible_line(text.lines().find(|line| !line.trim().is_empty()).unwrap_or(""));
    let first = crate::text::floor_char(&first, FIRST_LINE_MAX);
    let lines = plural(text.lines().count() as u64, "line");
    let bytes = human_bytes(text.len() as u64);
    format!("{MARK}{lines}, {bytes}, that began: {first} … Call again to see them]")
}

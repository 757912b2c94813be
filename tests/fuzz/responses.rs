//! Any bytes as a Responses stream: its events come in order and in pairs, they are the same
//! however it is cut and whether it comes as a body or as whole messages, and there is no more of
//! them than of the stream.

use std::collections::HashMap;

use etch::host::Host;
use etch::model::{Finish, ModelError, ModelEvent, Request};
use etch::provider::openai::responses::reader::{self, Answer, Assemble, Origin};
use etch::wire::sse::{Decoder, Event, SseError};

use crate::fuzz::{cuts, fuzz, recorded_streams};
use crate::support::model::{tools, user};

/// Pieces that the protocol gives meaning to.
pub const TOKENS: &[&str] = &[
    "\n\n",
    "data: ",
    "data: [DONE]\n\n",
    "event: response.completed\n",
    "{\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}",
    "{\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"usage\":null}}",
    "{\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}",
    "{\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"}}}",
    "{\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"item_id\":\"m\",\"delta\":\"a\"}",
    "{\"type\":\"response.output_text.done\",\"output_index\":0,\"content_index\":0,\"item_id\":\"m\",\"text\":\"a\"}",
    "{\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\"}}",
    "{\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"id\":\"f\",\"call_id\":\"c1\",\"name\":\"read\",\"arguments\":\"{}\"}}",
    "{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[],\"encrypted_content\":\"x\"}}",
    "{\"type\":\"response.function_call_arguments.delta\",\"output_index\":1,\"item_id\":\"f\",\"delta\":\"{\"}",
    "{\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"summary_index\":0,\"delta\":\"hm\"}",
    "{\"type\":\"response.refusal.delta\",\"output_index\":0,\"delta\":\"no\"}",
    "{\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"x\"}",
    "\"output_index\":1,",
    "\"output_index\":null,",
    "\"item_id\":\"\",",
    "\"type\":\"web_search_call\"",
    "\"type\":\"custom_tool_call\",\"input\":\"x\"",
    "\"call_id\":\"c1\",",
    "\"call_id\":\"\",",
    "\"name\":\"write\",",
    "\"arguments\":\"{\\\"path\\\":\"",
    "\"arguments\":{}",
    "\"encrypted_content\":null",
    "\"output\":[],",
    "\"error\":{\"message\":\"x\"},",
    "\"usage\":{\"input_tokens\":18446744073709551615,\"output_tokens\":1},",
    "null",
    "1e999",
    "\\ud800",
    "\\u0000",
    "[[[[",
    "}",
    "]",
    "\"",
    ",",
    "{\"type\":\"codex.rate_limits\",\"rate_limits\":{\"primary\":{\"used_percent\":100}}}",
    "\"resets_at\":1e30,",
    "\"summary_index\":1,",
    "\"phase\":\"commentary\",",
];

const ORIGIN: Origin<'_> = Origin { provider: "p", authority: "host", repeats_reasoning: false };

/// What one answer came to: one finish or one error, and the events before it.
struct Read {
    events: Vec<ModelEvent>,
    outcome: Result<Finish, ModelError>,
}

fn asked<T>(ask: impl FnOnce(&Request<'_>) -> T) -> T {
    let (tools, messages) = (tools(), [user("12345678")]);
    ask(&Request {
        model: "m",
        system: &[],
        messages: &messages,
        tools: &tools,
        session_id: "s",
        reasoning_effort: None,
        reasoning_summary: None,
        max_output_tokens: None,
    })
}

/// As a body in these pieces.
fn read(pieces: &[&[u8]]) -> Read {
    asked(|request| {
        let mut events = Vec::new();
        let mut sink = |event| events.push(event);
        let mut reader = reader::new(request, ORIGIN);
        let mut pieces = pieces.iter();
        let outcome = loop {
            match pieces.next() {
                Some(piece) => match reader.push(piece, &mut sink) {
                    Ok(()) if reader.is_done() => break reader.finish(&Host::fixed(), &mut sink),
                    Ok(()) => {}
                    Err(error) => break Err(error),
                },
                None => break reader.finish(&Host::fixed(), &mut sink),
            }
        };
        Read { events, outcome }
    })
}

/// The data of each event, as messages of a socket; `None` where a body means something else: no
/// stream of events at all, one that cannot be decoded or is cut in an event, names of events.
fn messages(bytes: &[u8]) -> Option<Vec<String>> {
    let lead = bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if b"{[<\xef\xbb\xbf".contains(lead) {
        return None;
    }
    let mut messages = Vec::new();
    let mut has_names = false;
    let mut each = |event: Event<'_>| -> Result<(), SseError> {
        has_names |= event.name == "error";
        messages.push(event.data.to_owned());
        Ok(())
    };
    let mut decoder = Decoder::default();
    decoder.push(bytes, &mut each).ok()?;
    decoder.finish(&mut each).ok()?;
    (!has_names && bytes.ends_with(b"\n\n")).then_some(messages)
}

/// As whole messages.
fn assemble(messages: &[String]) -> Option<Read> {
    asked(|request| {
        let mut events = Vec::new();
        let mut sink = |event| events.push(event);
        let mut answer = Answer::new(request, ORIGIN);
        for data in messages {
            if answer.is_done() {
                break;
            }
            if let Err(error) = answer.event(Event { name: "", data }, &mut sink) {
                return Some(Read { events, outcome: Err(error) });
            }
        }
        // A body without any answer is told by its text.
        let begun = answer.has_begun();
        let outcome = answer.finish(&Host::fixed(), &mut sink);
        begun.then_some(Read { events, outcome })
    })
}

/// Runs and calls begin and end one by one; nothing belongs to what is not open.
fn check_pairs(read: &Read) {
    let mut open = None;
    let mut calls: HashMap<usize, bool> = HashMap::new();
    let mut parts = 0;
    for event in &read.events {
        match event {
            ModelEvent::TextStart | ModelEvent::ReasoningStart => {
                assert_eq!(open, None);
                open = Some(matches!(event, ModelEvent::TextStart));
                parts += usize::from(open == Some(true));
            }
            ModelEvent::TextDelta(_) | ModelEvent::TextIs(_) => assert_eq!(open, Some(true)),
            ModelEvent::ReasoningDelta(_) => assert_eq!(open, Some(false)),
            ModelEvent::TextEnd => assert_eq!(open.take(), Some(true)),
            ModelEvent::ReasoningEnd(_) => assert_eq!(open.take(), Some(false)),
            ModelEvent::ToolCallStart { index, .. } => {
                assert_eq!(*index, calls.len());
                calls.insert(*index, true);
            }
            ModelEvent::ToolCallDelta { index, .. } => assert_eq!(calls.get(index), Some(&true)),
            ModelEvent::ToolCallEnd { index, call } => {
                assert_eq!(calls.insert(*index, false), Some(true));
                assert!(!call.id.is_empty() && !call.name.is_empty());
                parts += 1;
            }
            ModelEvent::ProviderItem(item) => assert!(item.at <= parts, "{} {parts}", item.at),
            _ => {}
        }
    }
    if let Ok(finish) = read.outcome {
        assert_eq!(open, None);
        let cut = finish == Finish::Length;
        assert!(cut || calls.values().all(|open| !open), "{finish:?}");
        if matches!(finish, Finish::Stop | Finish::ToolCalls) {
            assert_eq!(finish == Finish::ToolCalls, !calls.is_empty());
        }
    }
}

fn bytes_of(event: &ModelEvent) -> usize {
    match event {
        ModelEvent::TextDelta(text) | ModelEvent::TextIs(text) => text.len(),
        ModelEvent::ReasoningDelta(text) => text.len(),
        ModelEvent::ReasoningEnd(reasoning) => reasoning.text.len(),
        ModelEvent::ToolCallStart { name, .. } => name.len(),
        ModelEvent::ToolCallDelta { arguments, .. } => arguments.len(),
        ModelEvent::ToolCallEnd { call, .. } => call.name.len() + call.arguments.len(),
        ModelEvent::ProviderItem(item) => item.item.get().len(),
        _ => 0,
    }
}

/// The pieces in which a body that is no answer came decide how much of it is quoted.
fn shown(read: &Read) -> String {
    let outcome = format!("{:?}", read.outcome);
    let end = outcome.find(" sent no answer but this: ").unwrap_or(outcome.len());
    format!("{:?} {}", read.events, &outcome[..end])
}

#[test]
fn a_responses_stream() {
    fuzz("a Responses stream", recorded_streams("responses"), TOKENS, |bytes| {
        let whole = read(&[bytes]);
        check_pairs(&whole);
        let given: usize = whole.events.iter().map(bytes_of).sum();
        assert!(given <= 4 * bytes.len() + 1000, "{given}");
        for pieces in cuts(bytes) {
            assert_eq!(shown(&read(&pieces)), shown(&whole));
        }
        if let Some(read) = messages(bytes).as_deref().and_then(assemble) {
            assert_eq!(shown(&read), shown(&whole));
        }
        let outcome = match &whole.outcome {
            Ok(finish) => finish.as_str().to_owned(),
            Err(error) => format!("{} {}", error.kind.as_str(), error.retryable),
        };
        let kinds: Vec<_> = whole.events.iter().map(std::mem::discriminant).take(12).collect();
        (outcome, kinds)
    });
}

//! Token counts in the many forms in which servers report them.

use crate::model::{Message, Part, Request, Usage};
use crate::provider::openai::chunk::UsageWire;

/// Bytes of text per token, where a server counts nothing: the usual rough measure.
const BYTES_PER_TOKEN: usize = 4;

/// The last report that counts anything; reports in the middle of a stream grow, and some
/// servers send zeros behind them.
#[derive(Debug, Default)]
pub struct Counter {
    last: Option<UsageWire>,
    /// The cached part of the input as one server's timings tell it.
    pub cached_by_timings: u64,
}

impl Counter {
    pub fn take(&mut self, usage: UsageWire) {
        if counts(&usage) || self.last.is_none() {
            self.last = Some(usage);
        }
    }

    /// Whether the server has counted anything yet.
    pub fn has_any(&self) -> bool {
        self.last.as_ref().is_some_and(counts)
    }

    /// The counts of the whole call; estimated when the server reported none.
    pub fn total(&self, request: &Request<'_>, output_bytes: usize) -> Usage {
        let Some(wire) = self.last else { return estimate(request, output_bytes) };
        let input = wire.prompt_tokens.unwrap_or(0);
        let cached = wire
            .prompt_tokens_details
            .and_then(|details| details.cached_tokens)
            .or(wire.prompt_cache_hit_tokens)
            .or(wire.cached_tokens)
            .unwrap_or(self.cached_by_timings);
        let mut output = wire.completion_tokens.unwrap_or(0);
        let details = wire.completion_tokens_details.unwrap_or_default();
        let reasoning = details.reasoning_tokens.unwrap_or(0);
        // Some count reasoning beside the completion instead of in it: their total gives it away.
        if reasoning > 0
            && wire.total_tokens == Some(input.saturating_add(output).saturating_add(reasoning))
        {
            output = output.saturating_add(reasoning);
        }
        Usage {
            input,
            cached_input: cached.min(input),
            output,
            reasoning_output: reasoning,
            total: input.saturating_add(output),
            cost: wire.cost,
            estimated: false,
        }
    }
}

fn counts(usage: &UsageWire) -> bool {
    usage.prompt_tokens.unwrap_or(0) > 0 || usage.completion_tokens.unwrap_or(0) > 0
}

/// Counts from the bytes of the text, where a server reports none.
pub fn estimate(request: &Request<'_>, output_bytes: usize) -> Usage {
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX);
    let tools = request.tools.iter();
    let tool_bytes =
        tools.map(|tool| tool.name.len() + tool.description.len() + tool.parameters.len());
    let messages = message_bytes(request.system) + message_bytes(request.messages);
    let (input, output) = (tokens(messages + tool_bytes.sum::<usize>()), tokens(output_bytes));
    Usage { input, output, total: input + output, estimated: true, ..Usage::default() }
}

/// Bytes of the text that a model sees of these messages.
pub fn message_bytes(messages: &[Message]) -> usize {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let bytes = parts.map(|part| match part {
        Part::Text(text) => text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => result.text.len(),
        Part::Image { .. } | Part::Reasoning(_) | Part::Opaque(_) => 0,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;

    fn request(messages: &[Message]) -> Request<'_> {
        Request {
            model: "m",
            system: &[],
            messages,
            tools: &[],
            session_id: "s",
            reasoning_effort: None,
            reasoning_summary: None,
            max_output_tokens: None,
        }
    }

    #[track_caller]
    fn check(reports: &[&str], want: Usage) {
        let mut counter = Counter::default();
        for report in reports {
            counter.take(serde_json::from_str(report).unwrap());
        }
        assert_eq!(counter.total(&request(&[]), 0), want, "{reports:?}");
    }

    #[test]
    fn every_vendors_cached_tokens_are_found() {
        let want = Usage { input: 10, cached_input: 4, output: 2, total: 12, ..Usage::default() };
        for cached in [
            r#""prompt_tokens_details":{"cached_tokens":4}"#,
            r#""prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6"#,
            r#""cached_tokens":4"#,
        ] {
            let report = format!(r#"{{"prompt_tokens":10,"completion_tokens":2,{cached}}}"#);
            check(&[&report], want);
        }
        let more = r#"{"prompt_tokens":3,"completion_tokens":2,"cached_tokens":9}"#;
        let want = Usage { input: 3, cached_input: 3, output: 2, total: 5, ..Usage::default() };
        check(&[more], want);
    }

    #[test]
    fn the_last_report_that_counts_wins_and_none_is_summed() {
        let want = Usage { input: 10, output: 5, total: 15, ..Usage::default() };
        check(
            &[
                r#"{"prompt_tokens":10,"completion_tokens":1}"#,
                r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":999}"#,
                r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#,
            ],
            want,
        );
    }

    #[test]
    fn reasoning_is_part_of_the_output_wherever_it_is_counted() {
        let want = Usage {
            input: 10,
            output: 25,
            reasoning_output: 20,
            total: 35,
            cost: Some(0.5),
            ..Usage::default()
        };
        let details = r#""completion_tokens_details":{"reasoning_tokens":20},"cost":0.5"#;
        let inside =
            format!(r#"{{"prompt_tokens":10,"completion_tokens":25,"total_tokens":35,{details}}}"#);
        let beside =
            format!(r#"{{"prompt_tokens":10,"completion_tokens":5,"total_tokens":35,{details}}}"#);
        check(&[&inside], want);
        check(&[&beside], want);
    }

    #[test]
    fn without_a_report_the_counts_are_marked_as_estimates() {
        let messages = [Message::text(Role::User, "12345678")];
        let want = Usage { input: 2, output: 1, total: 3, estimated: true, ..Usage::default() };
        assert_eq!(Counter::default().total(&request(&messages), 3), want);
    }
}

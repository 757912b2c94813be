//! How much a model takes in: the size of its context, and who says so.

use serde::{Deserialize, Serialize};

/// Of the context, the part that is at most kept free for the answer.
const ANSWER_PART_MAX: u64 = 4;

/// Sizes in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Prompt and answer together; at least 1.
    pub context: u64,
    /// The largest prompt, where it is smaller than what the answer leaves.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input: Option<u64>,
    /// The longest answer, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<u64>,
    pub source: WindowSource,
}

/// Who says how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowSource {
    /// The person, by `context.window_tokens`.
    Configured,
    /// The server, asked for it.
    Server,
    /// The server, in refusing a prompt.
    Overflow,
    /// The table that comes with etch.
    Table,
}

impl WindowSource {
    /// The name in logs and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            WindowSource::Configured => "configured",
            WindowSource::Server => "server",
            WindowSource::Overflow => "overflow",
            WindowSource::Table => "table",
        }
    }

    /// The same for people, behind a size.
    pub fn sentence(self) -> &'static str {
        match self {
            WindowSource::Configured => "as context.window_tokens says",
            WindowSource::Server => "as the server says",
            WindowSource::Overflow => "as the server said when it refused a prompt",
            WindowSource::Table => "by the table that comes with etch",
        }
    }
}

impl Window {
    /// A window of which only the whole size is known.
    pub fn new(context: u64, source: WindowSource) -> Window {
        Window { context: context.max(1), input: None, output: None, source }
    }

    /// The largest prompt, with `reserve` tokens kept free for the answer: fewer where the model
    /// cannot give as many, and never more than a quarter of the context. At least 1.
    pub fn prompt_max(&self, reserve: u64) -> u64 {
        let answer = self.output.filter(|output| 0 < *output).unwrap_or(reserve).min(reserve);
        let rest = self.context - answer.min(self.context / ANSWER_PART_MAX);
        let input = self.input.filter(|input| 0 < *input).unwrap_or(rest);
        input.min(rest).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_leaves_room_for_the_answer() {
        let check = |context, input, output, want: u64| {
            let window = Window { input, output, ..Window::new(context, WindowSource::Table) };
            assert_eq!(window.prompt_max(16_384), want, "{window:?}");
        };
        check(400_000, Some(272_000), Some(128_000), 272_000);
        check(128_000, None, None, 111_616);
        check(128_000, None, Some(4_096), 123_904);
        check(128_000, None, Some(128_000), 111_616);
        check(128_000, Some(200_000), Some(0), 111_616);
        check(128_000, Some(0), None, 111_616);
        // A small window is not given away to the answer.
        check(4_096, None, None, 3_072);
        check(8_192, None, Some(1_000), 7_192);
        check(10, None, None, 8);
        check(1, None, None, 1);
        check(0, None, None, 1);
        assert_eq!(Window::new(1_000, WindowSource::Server).prompt_max(0), 1_000);
        let largest = Window::new(u64::MAX, WindowSource::Server);
        assert_eq!(largest.prompt_max(u64::MAX), u64::MAX - u64::MAX / 4);
    }

    #[test]
    fn a_window_is_read_back_as_it_was_written() {
        let window = Window { output: Some(9), ..Window::new(100, WindowSource::Overflow) };
        let text = serde_json::to_string(&window).unwrap();
        assert_eq!(text, r#"{"context":100,"output":9,"source":"overflow"}"#);
        assert_eq!(serde_json::from_str::<Window>(&text).unwrap(), window);
    }
}

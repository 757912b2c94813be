//! The sizes of the models that are served in the open: what is known without asking anybody.
//!
//! As their makers published them up to July 2026. A name that is not here is better than a wrong
//! size: of a family whose members differ, the smallest size stands at the family's name, and a
//! model that nobody could look up is left out.

use crate::model::{Window, WindowSource};

/// Who may serve a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weights {
    /// Its maker and those who resell it: the size is the same wherever it is served.
    Closed,
    /// Anybody, with any context that fits the machine.
    Open,
}
use Weights::{Closed, Open};

/// The start of a name up to a border of a word; context, largest prompt, longest answer. Zero:
/// no limit of its own.
type Row = (&'static str, Weights, u64, u64, u64);

const ROWS: &[Row] = &[
    // OpenAI
    ("gpt-3-5-turbo", Closed, 16_385, 0, 4_096),
    ("gpt-4", Closed, 8_192, 0, 8_192),
    ("gpt-4-turbo", Closed, 128_000, 0, 4_096),
    ("gpt-4-1", Closed, 1_047_576, 0, 32_768),
    ("gpt-4o", Closed, 128_000, 0, 16_384),
    ("gpt-4o-2024-05-13", Closed, 128_000, 0, 4_096),
    ("chatgpt-4o", Closed, 128_000, 0, 16_384),
    ("gpt-5", Closed, 400_000, 272_000, 128_000),
    ("gpt-5-1-chat", Closed, 128_000, 0, 16_384),
    ("gpt-5-2-chat", Closed, 128_000, 0, 16_384),
    ("gpt-5-3-chat", Closed, 128_000, 0, 16_384),
    ("gpt-5-3-codex-spark", Closed, 128_000, 100_000, 32_000),
    ("gpt-5-4", Closed, 1_050_000, 922_000, 128_000),
    ("gpt-5-4-mini", Closed, 400_000, 272_000, 128_000),
    ("gpt-5-4-nano", Closed, 400_000, 272_000, 128_000),
    ("gpt-5-5", Closed, 1_050_000, 922_000, 128_000),
    ("codex-mini", Closed, 200_000, 0, 100_000),
    ("o1", Closed, 200_000, 0, 100_000),
    ("o1-mini", Closed, 128_000, 0, 65_536),
    ("o1-preview", Closed, 128_000, 0, 32_768),
    ("o3", Closed, 200_000, 0, 100_000),
    ("o4-mini", Closed, 200_000, 0, 100_000),
    ("gpt-oss", Open, 131_072, 0, 32_768),
    // Anthropic
    ("claude", Closed, 200_000, 0, 0),
    ("claude-opus-4-6", Closed, 1_000_000, 0, 128_000),
    ("claude-opus-4-7", Closed, 1_000_000, 0, 128_000),
    ("claude-opus-4-8", Closed, 1_000_000, 0, 128_000),
    ("claude-sonnet-4-6", Closed, 1_000_000, 0, 64_000),
    ("claude-sonnet-5", Closed, 1_000_000, 0, 128_000),
    // Google: the first figure is what goes in.
    ("gemini-2-0-flash", Closed, 1_048_576, 0, 8_192),
    ("gemini-2-5-pro", Closed, 1_048_576, 0, 65_536),
    ("gemini-2-5-flash", Closed, 1_048_576, 0, 65_536),
    ("gemini-2-5-flash-image", Closed, 32_768, 0, 32_768),
    ("gemini-3-pro", Closed, 1_048_576, 0, 65_536),
    ("gemini-3-pro-image", Closed, 131_072, 0, 32_768),
    ("gemini-3-flash", Closed, 1_048_576, 0, 65_536),
    ("gemini-3-1-pro", Closed, 1_048_576, 0, 65_536),
    ("gemini-3-1-flash-lite", Closed, 1_048_576, 0, 65_536),
    ("gemini-3-1-flash-image", Closed, 65_536, 0, 65_536),
    ("gemini-3-5-flash", Closed, 1_048_576, 0, 65_536),
    ("gemini-flash-latest", Closed, 1_048_576, 0, 65_536),
    ("gemini-flash-lite-latest", Closed, 1_048_576, 0, 65_536),
    ("gemma-4", Open, 262_144, 0, 32_768),
    // xAI
    ("grok-4-20", Closed, 1_000_000, 0, 30_000),
    ("grok-4-3", Closed, 1_000_000, 0, 30_000),
    ("grok-build", Closed, 256_000, 0, 0),
    // DeepSeek
    ("deepseek-r1", Open, 128_000, 0, 32_768),
    ("deepseek-v4", Open, 1_000_000, 0, 384_000),
    // Alibaba
    ("qwen3", Open, 131_072, 0, 16_384),
    ("qwen3-coder", Open, 262_144, 0, 65_536),
    ("qwen3-coder-flash", Closed, 1_000_000, 0, 65_536),
    ("qwen3-coder-plus", Closed, 1_048_576, 0, 65_536),
    ("qwen3-max", Closed, 262_144, 0, 65_536),
    ("qwen3-5", Open, 262_144, 0, 65_536),
    ("qwen3-5-plus", Closed, 1_000_000, 0, 65_536),
    ("qwen3-6", Open, 262_144, 0, 65_536),
    ("qwen3-6-plus", Closed, 1_000_000, 0, 65_536),
    ("qwen3-6-flash", Closed, 1_000_000, 0, 65_536),
    ("qwen3-7-max", Closed, 1_000_000, 0, 65_536),
    ("qwen3-7-plus", Closed, 1_000_000, 0, 64_000),
    // Z.ai
    ("glm-4-5", Open, 131_072, 0, 98_304),
    ("glm-4-6", Open, 204_800, 0, 131_072),
    ("glm-4-6v", Open, 128_000, 0, 32_768),
    ("glm-4-7", Open, 200_000, 0, 131_072),
    ("glm-5", Open, 200_000, 0, 131_072),
    ("glm-5-2", Open, 1_000_000, 0, 131_072),
    // Moonshot
    ("kimi-k2", Open, 131_072, 0, 0),
    ("kimi-k2-0905", Open, 262_144, 0, 0),
    ("kimi-k2-thinking", Open, 262_144, 0, 0),
    ("kimi-k2-turbo", Open, 262_144, 0, 0),
    ("kimi-k2-5", Open, 262_144, 0, 0),
    ("kimi-k2-6", Open, 262_144, 0, 0),
    ("kimi-k2-7", Open, 262_144, 0, 0),
    // Mistral
    ("codestral", Open, 256_000, 0, 0),
    ("devstral-small", Open, 128_000, 0, 0),
    ("devstral-medium", Open, 128_000, 0, 0),
    ("devstral-2512", Open, 262_144, 0, 0),
    ("devstral-medium-latest", Open, 262_144, 0, 0),
    ("magistral", Open, 128_000, 0, 0),
    ("mistral-large", Open, 131_072, 0, 0),
    ("mistral-large-2512", Open, 262_144, 0, 0),
    ("mistral-large-latest", Open, 262_144, 0, 0),
    ("mistral-medium", Open, 131_072, 0, 0),
    ("mistral-medium-2508", Open, 262_144, 0, 0),
    ("mistral-medium-2604", Open, 262_144, 0, 0),
    ("mistral-medium-latest", Open, 262_144, 0, 0),
    ("mistral-small", Open, 128_000, 0, 0),
    ("mistral-small-2603", Open, 256_000, 0, 0),
    ("mistral-small-latest", Open, 256_000, 0, 0),
    // Meta and MiniMax
    ("llama-3-3-70b", Open, 128_000, 0, 0),
    ("llama-4-maverick", Open, 1_000_000, 0, 0),
    ("minimax-m2", Open, 196_608, 0, 128_000),
];

/// What is known of a model of this name, as its maker or a reseller serves it.
pub fn hosted(model: &str) -> Option<Window> {
    find(model).map(window)
}

/// What is known of it wherever it is served: nothing of a model that anybody can run, with any
/// context.
pub fn anywhere(model: &str) -> Option<Window> {
    find(model).filter(|row| row.1 == Closed).map(window)
}

fn window(row: &Row) -> Window {
    let (_, _, context, input, output) = *row;
    let some = |size: u64| Some(size).filter(|size| *size != 0);
    Window { input: some(input), output: some(output), ..Window::new(context, WindowSource::Table) }
}

/// The row with the longest start of the model's name, in which the vendor's name and the form
/// of a version (`4.5`, `4-5`) do not matter.
fn find(model: &str) -> Option<&'static Row> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.to_ascii_lowercase().replace(['.', '_', '@', ':'], "-");
    let is_start = |row: &&Row| {
        let rest = name.strip_prefix(row.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    ROWS.iter().filter(is_start).max_by_key(|row| row.0.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_the_longest_start_of_its_name() {
        let check = |model: &str, want: Option<(u64, u64, u64)>| {
            let got = hosted(model).map(|window| {
                (window.context, window.input.unwrap_or(0), window.output.unwrap_or(0))
            });
            assert_eq!(got, want, "{model}");
        };
        let gpt_5 = Some((400_000, 272_000, 128_000));
        for model in ["gpt-5", "gpt-5-mini", "gpt-5.1-codex-max", "gpt-5.2", "openai/gpt-5:nitro"] {
            check(model, gpt_5);
        }
        check("gpt-5.3-codex-spark", Some((128_000, 100_000, 32_000)));
        check("gpt-5.2-chat-latest", Some((128_000, 0, 16_384)));
        check("gpt-5.4", Some((1_050_000, 922_000, 128_000)));
        check("gpt-5.4-mini-2026-03-17", gpt_5);
        check("gpt-4.1-mini", Some((1_047_576, 0, 32_768)));
        // A date is no version.
        check("gpt-4-1106-preview", Some((8_192, 0, 8_192)));
        check("gpt-4o-mini", Some((128_000, 0, 16_384)));
        check("o3-mini", Some((200_000, 0, 100_000)));
        check("o1-mini", Some((128_000, 0, 65_536)));
        check("anthropic/claude-sonnet-4.5", Some((200_000, 0, 0)));
        check("claude-opus-4-8", Some((1_000_000, 0, 128_000)));
        check("anthropic/claude-opus-4.6", Some((1_000_000, 0, 128_000)));
        check("google/gemini-2.5-pro", Some((1_048_576, 0, 65_536)));
        check("deepseek/deepseek-v4-pro", Some((1_000_000, 0, 384_000)));
        check("accounts/fireworks/models/GLM-4.6", Some((204_800, 0, 131_072)));
        check("Qwen/Qwen3-Coder-480B-A35B-Instruct", Some((262_144, 0, 65_536)));
        check("qwen3:8b", Some((131_072, 0, 16_384)));
        for unknown in ["", "m", "gpt", "gpt-50", "gpt-6", "o", "llama", "qwen", "my-gpt-5"] {
            check(unknown, None);
        }
    }

    #[test]
    fn what_anybody_can_run_is_known_only_where_it_is_hosted() {
        assert!(anywhere("gpt-5").is_some() && anywhere("claude-opus-4-8").is_some());
        for model in ["qwen3:8b", "gpt-oss:20b", "meta-llama/llama-3.3-70b-instruct"] {
            assert!(hosted(model).is_some() && anywhere(model).is_none(), "{model}");
        }
    }

    #[test]
    fn every_row_can_be_reached_and_makes_sense() {
        for row in ROWS {
            assert_eq!(find(row.0), Some(row), "{} stands there twice, or is misspelt", row.0);
            let window = window(row);
            let largest = window.prompt_max(16_384);
            assert!(window.context / 2 <= largest && largest <= window.context, "{}", row.0);
            assert!(window.input.is_none_or(|input| input < window.context), "{}", row.0);
            assert!(window.output.is_none_or(|output| output <= window.context), "{}", row.0);
        }
    }
}

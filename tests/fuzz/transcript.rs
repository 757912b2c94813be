//! What a chat shows of turns in which everything that others say is hostile.

use std::time::Duration;

use etch::agent::{CallEnd, Outcome, Stop};
use etch::cancel::Reason;
use etch::chat::block::Notice;
use etch::chat::told::Told;
use etch::chat::transcript::Transcript;
use etch::model::{ErrorKind, ModelError, ModelEvent, Retry, ToolCall, Usage};
use etch::render::style::{Style, painted_width};
use etch::text::decode_lossy;
use etch::tool::ToolOutput;

use super::render::assert_harmless;
use crate::fuzz::fuzz;

const BYTES_MAX: usize = 1000;
/// Between two events; the byte behind it says which.
const NEXT: u8 = 0x1f;

#[test]
fn transcripts_of_turns() {
    let seeds = [
        "\x1ftSome *text*\n\n- a\x1ft\n```\n\tcode\x1fs1 ls\x1fs2 bash\x1ff2exit code: 0\n\nstdout:\n\x1b[2Ja\r\n\x1ff1x\x1fe",
        "\x1fr**Head**\n\x1ft| a | b |\n|--|--|\n| 1 | 2 |\x1fv\x1ftagain\x1fnnote \x07\x1fpdo\n it\x1fw0\x1fe",
        "\x1fs1 edit\x1ff1Done.\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\x1fs2 write\x1fd2old text \u{9b}m\nx\x1fe",
    ];
    let tokens = [
        "\x1ft",
        "\x1fr",
        "\x1fn",
        "\x1fp",
        "\x1fs",
        "\x1ff",
        "\x1fd",
        "\x1fv",
        "\x1fw",
        "\x1fe",
        "\x1fi",
        "\n",
        "\t",
        "\r",
        "\x1b[",
        "界",
        "👩\u{200d}💻",
        "\u{301}",
        "```",
        "https://",
        "\u{202e}",
    ];
    fuzz("transcript", seeds.map(|seed| seed.as_bytes().to_vec()), &tokens, |bytes| {
        let bytes = &bytes[..bytes.len().min(BYTES_MAX)];
        let style = if bytes.len() % 3 == 0 { Style::plain() } else { Style::coloured() };
        let mut columns = 1 + bytes.len() % 90;
        let mut transcript = Transcript::new(columns, style);
        let (mut finished, mut tails) = (0, 0);
        for event in bytes.split(|byte| *byte == NEXT) {
            let Some((&kind, rest)) = event.split_first() else { continue };
            if kind == b'w' {
                columns = 1 + rest.first().map_or(0, |byte| usize::from(*byte) % 90);
                transcript.set_columns(columns);
            }
            play(&mut transcript, kind, &decode_lossy(rest));
            for line in transcript.take() {
                assert_harmless(&line);
                assert!(!line.contains(['\n', '\t']), "{line:?}");
                finished += 1;
            }
            let tail = transcript.tail(Duration::ZERO, 10);
            assert!(tail.len() <= 10);
            for row in &tail {
                assert_harmless(row);
                assert!(painted_width(row) <= columns, "{columns}: {row:?}");
            }
            tails += tail.len();
        }
        play(&mut transcript, b'e', "");
        assert!(transcript.tail(Duration::ZERO, 10).is_empty());
        (finished.min(30), tails.min(30), columns / 20)
    });
}

fn play(transcript: &mut Transcript, kind: u8, text: &str) {
    let model = |event| Told::Model(event);
    let told = match kind {
        b't' => model(ModelEvent::TextDelta(text.to_owned())),
        b'i' => model(ModelEvent::TextIs(text.to_owned())),
        b'r' => model(ModelEvent::ReasoningDelta(text.to_owned())),
        b'n' => return transcript.notice(Notice::Warn, text),
        b'p' => return transcript.prompt(text),
        b'v' => model(ModelEvent::Retry(Retry {
            attempt: 1,
            attempts_max: 2,
            delay_millis: 1,
            error: ModelError::new(ErrorKind::Network, text),
            output_discarded: true,
        })),
        b's' => Told::ToolStarted { call: call(text) },
        b'f' => finished(text, ToolOutput::ok),
        b'd' => finished(text, ToolOutput::error),
        b'e' => Told::TurnEnded {
            outcome: Outcome {
                stop: Stop::Cancelled(Reason::User),
                answer: text.to_owned(),
                rounds: 0,
                tool_calls: 0,
                usage: Usage::default(),
                changed_files: Vec::new(),
                denied_calls: Vec::new(),
            },
            elapsed: Duration::ZERO,
        },
        _ => Told::RoundStarted { round: 1 },
    };
    transcript.tell(&told, Duration::ZERO);
}

/// `ID NAME`, in whatever is there.
fn call(text: &str) -> ToolCall {
    let mut chars = text.chars();
    let id = chars.next().map(String::from).unwrap_or_default();
    let name = chars.as_str().trim().to_owned();
    let arguments = serde_json::json!({ "path": text, "command": text }).to_string();
    ToolCall { id, name, arguments, extra: None }
}

fn finished(text: &str, output: fn(String) -> ToolOutput) -> Told {
    let call = call(text);
    let end = CallEnd { output: output(text.to_owned()), ..CallEnd::default() };
    Told::ToolFinished { call, end }
}

//! Answers of a model and diffs on their way to a terminal.

use etch::render::diff_view;
use etch::render::markdown::Markdown;
use etch::render::style::{Style, painted_width};
use etch::text::{decode_lossy, floor_char};

use crate::fuzz::fuzz;

/// Each input is rendered many times.
const BYTES_MAX: usize = 1000;

/// Nothing of it but colours acts on a terminal.
pub fn assert_harmless(shown: &str) {
    let mut parts = shown.split("\x1b[");
    let mut bare = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (codes, text) = part.split_once('m').unwrap();
        assert!(codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'), "{codes:?}");
        bare.push_str(text);
    }
    assert!(!bare.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{bare:?}");
}

#[test]
fn rendering_of_answers() {
    let seeds = [
        "# Title\n\nSome *words* and **more `code`** [link](http://a/b).\n\n- a\n  1. b\n- [x] c\n",
        "| a | b |\n|:-:|--:|\n| `c` | long words in here |\n\n> quote\n> > more\n\n---\n",
        "text\n```rust\nfn main() {}\n\tx\n```\n~~~\n~~~\n    code\n\n\\* &amp; <b> ~~gone~~ https://x.org/a_b\n",
        "界面很好，**粗体。**下一个👩\u{200d}💻 e\u{301}\r\n\x1b[2J\u{9b}m\u{202e}\n",
    ];
    let tokens = [
        "*", "**", "_", "`", "```", "~~~", "~~", "# ", "- ", "1. ", "> ", "|", "|--|", "[", "](",
        ")", "![", "<", ">", "\\", "&lt;", "---\n", "\n\n", "\n", "    ", "\t", "https://", "\r",
        "\x1b[", "\u{301}", "界",
    ];
    fuzz("render", seeds.map(|seed| seed.as_bytes().to_vec()), &tokens, |bytes| {
        let bytes = &bytes[..bytes.len().min(BYTES_MAX)];
        let text = decode_lossy(bytes);
        let columns = 20 + bytes.len() % 70;
        let style = if bytes.len() % 3 == 0 { Style::plain() } else { Style::coloured() };
        let whole = |text: &str| {
            let mut markdown = Markdown::new(columns, style);
            markdown.push(text) + &markdown.finish()
        };
        let want = whole(&text);
        assert_harmless(&want);
        // In pieces, by words and by lines; what is shown for a part is what it would be alone.
        let (mut words, mut lines) =
            (Markdown::new(columns, style), Markdown::by_lines(columns, style));
        let (mut by_words, mut by_lines) = (String::new(), String::new());
        let mut at = 0;
        while at < text.len() {
            let step = 4 + bytes[at % bytes.len()] as usize % 40;
            let piece = floor_char(&text[at..], step);
            at += piece.len();
            by_words.push_str(&words.push(piece));
            by_lines.push_str(&lines.push(piece));
            if at % 16 == 0 {
                assert_eq!(format!("{by_lines}{}", lines.tail()), whole(&text[..at]));
            }
        }
        by_words.push_str(&words.finish());
        by_lines.push_str(&lines.finish());
        assert_eq!(by_words, want);
        assert_eq!(by_lines, want);
        (want.lines().count().min(40), want.matches('\x1b').count().min(40), want.len() % 4)
    });
}

#[test]
fn rendering_of_diffs() {
    let seeds = [
        "--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n a\n-b\n+c\n+\td\n \n@@ -9 +10 @@\n-x\n\\ No newline at end of file\n+y\r\n",
    ];
    let tokens = [
        "@@ -",
        " +",
        " @@",
        "\n",
        "--- ",
        "+++ ",
        ",",
        "18446744073709551615",
        "0",
        "-",
        "+",
        "\\ ",
        "\t",
        "界",
    ];
    fuzz("diff view", seeds.map(|seed| seed.as_bytes().to_vec()), &tokens, |bytes| {
        let text = decode_lossy(bytes);
        let columns = bytes.len() % 100;
        let shown = diff_view::render(&text, Style::coloured(), columns, 20, "");
        assert_harmless(&shown);
        assert!(shown.lines().count() <= 21);
        assert!(shown.lines().all(|line| painted_width(line) <= columns), "{columns}: {shown:?}");
        (shown.lines().count(), columns / 10, diff_view::find(&text).is_some())
    });
}

//! Program output on its way to the model and to a terminal.

use etch::text::{clusters, decode_lossy, head_tail, strip_ansi, truncate_width, visible, width};

use crate::fuzz::fuzz;

#[test]
fn cleaning_of_output() {
    let seeds = [
        b"\x1b[31mred\x1b[0m\x1b]0;title\x07 plain\r\n".to_vec(),
        b"10%\r20%\r\x1b[Kdone\n\x1bPq#0~~\x1b\\x\x08\x08y".to_vec(),
        "👩\u{200d}💻 🇩🇪🇫🇷 e\u{301} क्षि กำ 界 \u{202e}x\u{2069} “q” · \u{9b}1m".as_bytes().to_vec(),
        b"bad \xff\xe7\x95 bytes\0".to_vec(),
    ];
    let tokens = [
        "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b\\", "\x07", "\r", "\n", "\r\n", "\x08", "\u{9b}",
        "\u{9c}", "\u{90}", "\x1b[K", "\x1b[2K", "\x1b[1G", "\x18", "\u{200d}", "\u{fe0f}", "🇩",
        "\u{301}",
    ];
    fuzz("clean", seeds, &tokens, |bytes| {
        let text = decode_lossy(bytes);
        let stripped = strip_ansi(&text);
        assert!(!stripped.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
        assert!(stripped.len() <= text.len());
        assert_eq!(strip_ansi(&stripped), stripped);
        let shown = visible(&text);
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
        assert_eq!(clusters(&text).collect::<String>(), text);
        let columns = bytes.len() % 100;
        assert!(width(&truncate_width(&text, columns)) <= columns);
        assert!(head_tail(&text, bytes.len() / 2).len() <= bytes.len() / 2);
        (
            stripped.len() * 8 / (text.len() + 1),
            shown.len() * 4 / (text.len() + 1),
            width(&text) % 16,
        )
    });
}

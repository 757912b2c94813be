//! Cutting text to a number of bytes without breaking a character or hiding that it was cut.

use std::borrow::Cow;

use crate::text::plural;

/// The longest start of `text` that has at most `bytes_max` bytes and ends between characters.
pub fn floor_char(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let mut end = bytes_max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The longest end of `text` that has at most `bytes_max` bytes and starts between characters.
pub fn ceil_char(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let mut start = text.len() - bytes_max;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The words that stand where text was left out.
pub fn elided(bytes: u64, lines: u64) -> String {
    match lines {
        0 => format!("[... {} left out ...]", plural(bytes, "byte")),
        _ => format!("[... {} in {} left out ...]", plural(bytes, "byte"), plural(lines, "line")),
    }
}

/// Room for the longest marker with its two line ends.
const MARKER_BYTES_MAX: usize = 80;

/// At most `bytes_max` bytes of `text`: its start, a line that says what is missing, its end.
///
/// Cuts fall on line ends where that keeps at least half of a side. With less room than a
/// marker needs, only the start is returned.
pub fn head_tail(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    if bytes_max < MARKER_BYTES_MAX {
        return Cow::Borrowed(floor_char(text, bytes_max));
    }
    let side_bytes = (bytes_max - MARKER_BYTES_MAX) / 2;
    let mut head = whole_lines_head(floor_char(text, side_bytes));
    if text[head.len()..].starts_with('\n') {
        head = &text[..=head.len()];
    }
    let tail = whole_lines_tail(ceil_char(text, side_bytes));
    let gap = &text[head.len()..text.len() - tail.len()];
    let lines = memchr::memchr_iter(b'\n', gap.as_bytes()).count() as u64;
    let mut out = String::with_capacity(bytes_max);
    out.push_str(head);
    if !head.is_empty() && !head.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&elided(gap.len() as u64, lines));
    out.push('\n');
    out.push_str(tail);
    Cow::Owned(out)
}

fn whole_lines_head(head: &str) -> &str {
    match memchr::memrchr(b'\n', head.as_bytes()) {
        Some(at) if head.len() / 2 <= at + 1 => &head[..=at],
        _ => head,
    }
}

fn whole_lines_tail(tail: &str) -> &str {
    match memchr::memchr(b'\n', tail.as_bytes()) {
        // A line end that is the very last byte leaves nothing.
        Some(at) if at < tail.len() / 2 => &tail[at + 1..],
        _ => tail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floor_and_ceil_never_split_a_character() {
        let text = "a界🦀é";
        let floors: Vec<_> = (0..=text.len()).map(|max| floor_char(text, max)).collect();
        assert_eq!(
            floors,
            ["", "a", "a", "a", "a界", "a界", "a界", "a界", "a界🦀", "a界🦀", "a界🦀é"]
        );
        let ceils: Vec<_> = (0..=text.len()).map(|max| ceil_char(text, max)).collect();
        assert_eq!(ceils, ["", "", "é", "é", "é", "é", "🦀é", "🦀é", "🦀é", "界🦀é", "a界🦀é"]);
    }

    #[test]
    fn head_and_tail_stand_on_whole_lines_around_a_count() {
        let text: String = (0..100).map(|n| format!("line {n:02}\n")).collect();
        assert_eq!(
            head_tail(&text, 130),
            "line 00\nline 01\nline 02\n[... 752 bytes in 94 lines left out ...]\n\
             line 97\nline 98\nline 99\n"
        );
    }

    #[test]
    fn text_without_lines_is_cut_between_characters() {
        let cut = head_tail(&"界".repeat(100), 100).into_owned();
        assert_eq!(cut, "界界界\n[... 282 bytes left out ...]\n界界界");
        assert_eq!(head_tail("short", 5), "short");
        assert_eq!(head_tail("shorter", 5), "short");
    }

    #[test]
    fn what_is_kept_and_what_is_counted_add_up() {
        let text: String = (0..40).map(|n| "é\n".repeat(n % 3) + "wide 界 text ").collect();
        for bytes_max in 0..=text.len() + 1 {
            let cut = head_tail(&text, bytes_max);
            assert!(cut.len() <= bytes_max, "{bytes_max}: {}", cut.len());
            if let Some((head, rest)) = cut.split_once("[... ") {
                let (count, rest) = rest.split_once(" byte").unwrap();
                let tail = rest.split_once("...]\n").unwrap().1;
                let head = if text.starts_with(head) { head } else { &head[..head.len() - 1] };
                assert!(text.starts_with(head) && text.ends_with(tail), "{bytes_max}: {cut}");
                let missing = text.len() - head.len() - tail.len();
                assert_eq!(count, missing.to_string(), "{bytes_max}: {cut}");
            }
        }
    }
}

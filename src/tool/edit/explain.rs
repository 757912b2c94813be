//! Why an old text was not found: what differs at the place that was meant, or what is nearest.
//!
//! Linear in the file, bounded in what it says. It only explains: nothing is matched tolerantly.

use std::collections::HashMap;
use std::fmt::Write as _;

use memchr::memmem;

use crate::text;
use crate::tool::edit::fold::{Skeleton, compare};
use crate::tool::edit::locate::line_numbers;

/// As many real lines are quoted, and as much of each.
const QUOTED_LINES_MAX: usize = 12;
const QUOTED_BYTES_MAX: usize = 300;
/// Beyond this much of a file nothing is searched for.
const SEARCHED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// As many old lines with the same text take part in finding the nearest place.
const SAME_LINES_MAX: usize = 4;

/// What to say after "oldText was not found": begins with `; ` or `: `, ends without a break.
pub fn explain(content: &[u8], old: &str, new: &str) -> String {
    let content = &content[..content.len().min(SEARCHED_BYTES_MAX)];
    let applied = already_applied(content, new);
    if let Some(text) = other_form(content, old) {
        return text + &applied;
    }
    let (file, wanted) = (Skeleton::of(content), Skeleton::of(old.as_bytes()));
    if wanted.bytes.is_empty() {
        return "; it has only invisible characters".to_owned();
    }
    let ends_line = old[old.trim_end().len()..].contains('\n');
    let is_place = |start: &usize| !ends_line || file.is_line_end(start + wanted.bytes.len());
    let mut places = memmem::find_iter(&file.bytes, &wanted.bytes).filter(is_place);
    if let Some(start) = places.next() {
        let place = file.place(content, start, wanted.bytes.len());
        return reads_alike(content, old, place, places.take(99).count()) + &applied;
    }
    match nearest(&file, &wanted) {
        Some(first_idx) => {
            let count = wanted.lines_count().min(QUOTED_LINES_MAX);
            let quoted = quote(content, first_idx, count);
            format!("{applied}; the nearest lines are:\n{quoted}")
        }
        None => format!("{applied}; nothing like it is in the file: read it again"),
    }
}

/// A note when the edit seems to have been made before.
fn already_applied(content: &[u8], new: &str) -> String {
    let new = new.trim();
    // Short texts stand in many places for other reasons.
    match memmem::find(content, new.as_bytes()) {
        Some(at) if 8 <= new.len() => {
            let line = line_numbers(content, std::iter::once(at))[0];
            format!(" (newText already stands at line {line})")
        }
        _ => String::new(),
    }
}

/// The old text in a form that a model takes from elsewhere: with the numbers that `read` shows,
/// or escaped once too often.
fn other_form(content: &[u8], old: &str) -> Option<String> {
    let find = |text: &str| {
        let at = memmem::find(content, text.as_bytes())?;
        Some(line_numbers(content, std::iter::once(at))[0])
    };
    if let Some(bare) = without_numbers(old)
        && let Some(line) = find(&bare)
    {
        return Some(format!(
            " with its line numbers, which are not in the file; without them it stands at line {line}"
        ));
    }
    let unescaped = unescaped(old)?;
    let line = find(&unescaped)?;
    Some(format!(
        "; it is escaped once too often: the text at line {line} has plain line breaks, tabs or \
         quotes where oldText has a backslash"
    ))
}

/// The lines without `12 | ` before each; `None` when one has no number.
fn without_numbers(old: &str) -> Option<String> {
    let bare = |line: &str| {
        let rest = line.trim_start();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let rest = rest.get(digits..).filter(|_| digits > 0)?;
        rest.strip_prefix(" | ").or(rest.strip_prefix(" |")).map(str::to_owned)
    };
    let lines: Option<Vec<_>> = old.trim_end().lines().map(bare).collect();
    lines.map(|lines| lines.join("\n")).filter(|text| !text.trim().is_empty())
}

fn unescaped(old: &str) -> Option<String> {
    if !["\\n", "\\t", "\\\"", "\\'"].iter().any(|escape| old.contains(escape)) {
        return None;
    }
    let mut out = String::with_capacity(old.len());
    let mut chars = old.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    Some(out)
}

/// The place that reads like the old text, and what differs there.
fn reads_alike(content: &[u8], old: &str, place: (usize, usize), others: usize) -> String {
    let (start, end) = widened(content, old, place);
    let region = &content[start..end];
    let (found, point) = compare(region, old.as_bytes());
    let lines = line_numbers(content, [start, end].into_iter());
    let (first, last) = (lines[0], lines[1]);
    let span = match first == last {
        true => format!("line {first} differs"),
        false => format!("lines {first}-{last} differ"),
    };
    let kinds = match found.is_empty() {
        // Blanks at its end that the file does not have there.
        true => "whitespace at its start or end".to_owned(),
        false => found.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "),
    };
    let mut out = format!("; {span} from it only in {kinds}");
    if let Some(point) = point {
        let line = line_numbers(content, std::iter::once(start + point.at + point.first.len()))[0];
        let (file, old) = (literal(point.first), literal(point.second));
        let _ = write!(out, " (first at line {line}: the file has {file}, oldText has {old})");
    }
    if others > 0 {
        let _ = write!(out, ", and {} more", text::plural(others as u64, "place"));
    }
    let first_idx = usize::try_from(first - 1).unwrap_or(0);
    let count = usize::try_from(last - first + 1).unwrap_or(1).min(QUOTED_LINES_MAX);
    let _ = write!(out, ":\n{}", quote(content, first_idx, count));
    out.push_str("\nSend oldText exactly as it stands there.");
    out
}

/// The region with the blanks before it that face those at the start of the old text.
fn widened(content: &[u8], old: &str, (start, end): (usize, usize)) -> (usize, usize) {
    let lead = &old[..old.len() - old.trim_start().len()];
    if lead.is_empty() {
        return (start, end);
    }
    let mut breaks = lead.matches('\n').count();
    let mut begin = start;
    while begin > 0 {
        match content[begin - 1] {
            b' ' | b'\t' | b'\r' => {}
            b'\n' if breaks > 0 => breaks -= 1,
            _ => break,
        }
        begin -= 1;
    }
    (begin, end)
}

/// A short piece in quotes, with everything special visible.
fn literal(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(40)];
    match std::str::from_utf8(cut) {
        Ok(text) => {
            let escape = |c: char| match c {
                '\n' | '\r' | '\t' | '"' | '\\' => c.escape_default().to_string(),
                c if c.is_ascii_graphic() || c == ' ' => c.to_string(),
                c if c.is_whitespace() || c.is_control() => c.escape_unicode().to_string(),
                c if !c.is_alphanumeric() => format!("{c} (U+{:04X})", u32::from(c)),
                c => c.to_string(),
            };
            format!("\"{}\"", text.chars().map(escape).collect::<String>())
        }
        Err(_) => format!("\"{}\"", cut.escape_ascii()),
    }
}

/// Real lines with their numbers, as `read` shows them, each cut to a bound.
fn quote(content: &[u8], first_idx: usize, count: usize) -> String {
    let lines = content.split(|&byte| byte == b'\n').enumerate().skip(first_idx).take(count);
    let width = (first_idx + count).to_string().len();
    let mut out = String::new();
    for (idx, line) in lines {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = text::decode_lossy(&line[..line.len().min(2 * QUOTED_BYTES_MAX)]).into_owned();
        let cut = text::floor_char(&line, QUOTED_BYTES_MAX);
        let mark = if cut.len() < line.len() { " [cut]" } else { "" };
        let newline = if out.is_empty() { "" } else { "\n" };
        let _ = write!(out, "{newline}{:>width$} | {cut}{mark}", idx + 1);
    }
    out
}

/// The first line, from 0, of the place that has most in common with the wanted text.
fn nearest(file: &Skeleton, wanted: &Skeleton) -> Option<usize> {
    let (place, common) = by_equal_lines(file, wanted).unzip();
    let total = wanted.bytes.len();
    // Half of the text in whole lines is more than any likeness of one line.
    if common.is_some_and(|common| total <= 2 * common) {
        return place;
    }
    by_likeness(file, wanted).or(place.filter(|_| common.is_some_and(|c| total <= 5 * c)))
}

/// Each line that stands in both votes, by its length, for where the text would begin.
fn by_equal_lines(file: &Skeleton, wanted: &Skeleton) -> Option<(usize, usize)> {
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for idx in 0..wanted.lines_count() {
        let line = wanted.line(idx);
        if 3 <= line.len() {
            let same = places.entry(line).or_default();
            if same.len() < SAME_LINES_MAX {
                same.push(idx);
            }
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for idx in 0..file.lines_count() {
        let Some(same) = places.get(file.line(idx)) else { continue };
        for wanted_idx in same {
            if let Some(begin) = idx.checked_sub(*wanted_idx) {
                *votes.entry(begin).or_default() += file.line(idx).len();
            }
        }
    }
    // The most votes; of equal ones the first place.
    votes.into_iter().max_by_key(|&(begin, common)| (common, std::cmp::Reverse(begin)))
}

/// The place whose line has most three-byte pieces in common with the longest wanted line.
fn by_likeness(file: &Skeleton, wanted: &Skeleton) -> Option<usize> {
    let anchor_idx = (0..wanted.lines_count()).max_by_key(|&idx| wanted.line(idx).len())?;
    let anchor = wanted.line(anchor_idx);
    let anchor = &anchor[..anchor.len().min(2 * QUOTED_BYTES_MAX)];
    if anchor.len() < 5 {
        return None;
    }
    let mut known = vec![0_u64; 1 << 10];
    let slot = |piece: &[u8]| {
        let number = u32::from_le_bytes([piece[0], piece[1], piece[2], 0]);
        (number.wrapping_mul(0x9e37_79b1) >> 16) as usize
    };
    for piece in anchor.windows(3) {
        known[slot(piece) / 64] |= 1 << (slot(piece) % 64);
    }
    let mut best = (0, 0);
    for idx in 0..file.lines_count() {
        let line = file.line(idx);
        let line = &line[..line.len().min(4 * QUOTED_BYTES_MAX)];
        let is_known = |piece: &&[u8]| known[slot(piece) / 64] & (1 << (slot(piece) % 64)) != 0;
        let hits = line.windows(3).filter(is_known).count();
        // Twice the common part over both lengths, in per mille.
        let score = 2_000 * hits / (anchor.len() + line.len()).max(1);
        if best.0 < score {
            best = (score, idx);
        }
    }
    (550 <= best.0).then_some(best.1.saturating_sub(anchor_idx))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn main() {\n\tlet s = send('k'); // done\n\tif s {\n\t\tstop();\n\t}\n}\n";

    #[track_caller]
    fn check(content: &str, old: &str, want: &str) {
        assert_eq!(explain(content.as_bytes(), old, "short"), want);
    }

    #[test]
    fn a_place_that_reads_alike_is_quoted_with_what_differs() {
        check(
            FILE,
            "if s {\n    stop();",
            "; lines 3-4 differ from it only in indentation (first at line 4: the file has \
             \"\\n\\t\\t\", oldText has \"\\n    \"):\n3 | \tif s {\n4 | \t\tstop();\n\
             Send oldText exactly as it stands there.",
        );
        check(
            FILE,
            "send(\u{2018}k\u{2019})",
            "; line 2 differs from it only in quotes (first at line 2: the file has \"'\", oldText \
             has \"\u{2018} (U+2018)\"):\n2 | \tlet s = send('k'); // done\n\
             Send oldText exactly as it stands there.",
        );
        check(
            FILE,
            "    let s = send('k');",
            "; line 2 differs from it only in indentation (first at line 2: the file has \"\\t\", \
             oldText has \"    \"):\n2 | \tlet s = send('k'); // done\n\
             Send oldText exactly as it stands there.",
        );
        check(
            "a\nb c\nd\nb  c\n",
            "b   c",
            "; line 2 differs from it only in whitespace within a line (first at line 2: the file \
             has \" \", oldText has \"   \"), and 1 place more:\n2 | b c\n\
             Send oldText exactly as it stands there.",
        );
        check(
            FILE,
            "stop();  ",
            "; line 4 differs from it only in whitespace at its start or end:\n4 | \t\tstop();\n\
             Send oldText exactly as it stands there.",
        );
    }

    #[test]
    fn forms_from_elsewhere_are_recognised() {
        check(
            FILE,
            "3 | \tif s {\n4 | \t\tstop();",
            " with its line numbers, which are not in the file; without them it stands at line 3",
        );
        check(
            FILE,
            "if s {\\n\\t\\tstop();",
            "; it is escaped once too often: the text at line 3 has plain line breaks, tabs or \
             quotes where oldText has a backslash",
        );
        let applied = explain(FILE.as_bytes(), "is_not_there_at_all", "send('k'); // done");
        assert_eq!(
            applied,
            " (newText already stands at line 2); nothing like it is in the file: read it again"
        );
    }

    #[test]
    fn the_nearest_lines_are_shown_with_their_numbers() {
        check(
            FILE,
            "\tif s {\n\t\tstop(1);\n\t}\n}",
            "; the nearest lines are:\n3 | \tif s {\n4 | \t\tstop();\n5 | \t}\n6 | }",
        );
        check(
            FILE,
            "let s = sent('k'); // done",
            "; the nearest lines are:\n2 | \tlet s = send('k'); // done",
        );
        check(FILE, "entirely different text", "; nothing like it is in the file: read it again");
        check("", "a", "; nothing like it is in the file: read it again");
        check("abc", "\u{200b}", "; it has only invisible characters");
    }

    #[test]
    fn what_is_said_is_bounded() {
        let line = format!("{}\n", "x\u{754c}".repeat(2_000));
        let content = line.repeat(100);
        let old = line.repeat(50).replace('x', "X");
        let said = explain(content.as_bytes(), &old, "");
        assert!(said.len() < 6_000, "{}", said.len());
        let old = line.repeat(50).replace('x', "y");
        assert!(explain(content.as_bytes(), &old, "").len() < 6_000);
    }
}

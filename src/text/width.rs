//! Width on a terminal, and the units a cursor moves by.
//!
//! The rule: text is a row of clusters (what a reader takes for one character), and its width is
//! the sum of theirs. A cluster that is an emoji, joined from however many, takes 2 columns; any
//! other takes what the widths of its characters add up to. Ambiguous characters take 1, control
//! characters 0: callers expand tabs. The character table is that of the crate `unicode-width`.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns that `text` takes; line ends and tabs count 0.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.bytes().filter(|byte| !byte.is_ascii_control()).count();
    }
    clusters(text).map(cluster_width).sum()
}

/// The width of one item of [`clusters`].
pub fn cluster_width(cluster: &str) -> usize {
    let mut chars = cluster.chars();
    let (Some(first), second) = (chars.next(), chars.next()) else { return 0 };
    if second.is_none() || first.is_control() {
        return char_width(first);
    }
    let is_emoji = is_pictograph(first) || is_regional(first) || cluster.contains('\u{fe0f}');
    match cluster.width() {
        width if is_emoji => width.min(2),
        width => width,
    }
}

fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The longest start of `text` that fits into `columns`, in whole clusters.
pub fn fit_width(text: &str, columns: usize) -> &str {
    let mut left = columns;
    let mut end = 0;
    for cluster in clusters(text) {
        let Some(rest) = left.checked_sub(cluster_width(cluster)) else { break };
        left = rest;
        end += cluster.len();
    }
    &text[..end]
}

/// `text`, or as much of it as fits into `columns` with a `…` that says so.
pub fn truncate_width(text: &str, columns: usize) -> Cow<'_, str> {
    let fitting = fit_width(text, columns);
    if fitting.len() == text.len() {
        return Cow::Borrowed(text);
    }
    match columns.checked_sub(1) {
        None => Cow::Borrowed(fitting),
        Some(columns) => Cow::Owned(format!("{}…", fit_width(fitting, columns))),
    }
}

/// The user-perceived characters of `text`, in order and without gaps: a base with its marks,
/// an emoji with its joiners, a flag, a syllable with its vowel signs, CR LF.
///
/// Follows the default rules of UAX #29, except that characters without width (a zero width
/// space) belong to what stands before them, so that each step of a cursor is seen.
pub fn clusters(text: &str) -> Clusters<'_> {
    Clusters { rest: text }
}

#[derive(Debug, Clone)]
pub struct Clusters<'a> {
    rest: &'a str,
}

impl<'a> Clusters<'a> {
    /// What has not been given out yet.
    pub fn as_str(&self) -> &'a str {
        self.rest
    }
}

impl<'a> Iterator for Clusters<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let end = cluster_length(self.rest)?;
        let (cluster, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(cluster)
    }
}

/// The last of the [`clusters`] of `text`; looks back no further than it must.
pub fn last_cluster(text: &str) -> Option<&str> {
    clusters(&text[sure_start(text)..]).last()
}

/// The first end of a cluster of `text` at or after `at`, which must be a character boundary.
pub fn ceil_cluster(text: &str, at: usize) -> usize {
    let mut end = sure_start(&text[..at]);
    let mut clusters = clusters(&text[end..]);
    while end < at {
        let Some(cluster) = clusters.next() else { break };
        end += cluster.len();
    }
    end
}

/// The last place before the end of `text` where a cluster starts, whatever stands before it.
fn sure_start(text: &str) -> usize {
    let mut start = 0;
    let mut after: Option<char> = None;
    for (at, c) in text.char_indices().rev() {
        // As if it could join with the most that it ever joins with.
        let most = Before { last: c, is_pictograph: true, is_half_flag: is_regional(c) };
        if after.is_some_and(|after| !joins(most, after)) {
            return start;
        }
        (start, after) = (at, Some(c));
    }
    start
}

/// Bytes of the first cluster; `None` for no text.
fn cluster_length(text: &str) -> Option<usize> {
    if let [first, second, ..] = text.as_bytes()
        && first.is_ascii_graphic()
        && second.is_ascii()
    {
        return Some(1);
    }
    let mut chars = text.char_indices();
    let (_, first) = chars.next()?;
    let mut state = Before {
        last: first,
        is_pictograph: is_pictograph(first),
        is_half_flag: is_regional(first),
    };
    for (at, c) in chars {
        if !joins(state, c) {
            return Some(at);
        }
        state = Before {
            last: c,
            is_pictograph: state.is_pictograph || is_pictograph(c),
            is_half_flag: false,
        };
    }
    Some(text.len())
}

/// What of a cluster decides whether the next character belongs to it.
#[derive(Clone, Copy)]
struct Before {
    last: char,
    is_pictograph: bool,
    /// One regional indicator and nothing else.
    is_half_flag: bool,
}

fn joins(before: Before, c: char) -> bool {
    let last = before.last;
    if last.is_control() || c.is_control() {
        return last == '\r' && c == '\n';
    }
    if c.is_ascii() {
        return false;
    }
    if char_width(c) == 0 || is_skin_tone(c) || is_spacing_mark(c) {
        return true;
    }
    match last {
        '\u{200d}' if before.is_pictograph && is_pictograph(c) => true,
        _ if before.is_half_flag => is_regional(c),
        _ => is_conjunct(last, c) || is_hangul_start(last, c),
    }
}

fn is_regional(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

/// The extended pictographs, in a few ranges that hold little else.
fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2194}'..='\u{21aa}' | '\u{231a}'..='\u{23ff}' | '\u{24c2}'
        | '\u{25aa}'..='\u{25fe}' | '\u{2600}'..='\u{27bf}' | '\u{2934}'..='\u{2935}'
        | '\u{2b05}'..='\u{2b55}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1f1e5}' | '\u{1f201}'..='\u{1f3fa}' | '\u{1f400}'..='\u{1faff}')
}

/// A consonant behind a sign that joins it to the one before, as in Devanagari.
fn is_conjunct(last: char, c: char) -> bool {
    let joining = ['\u{94d}', '\u{9cd}', '\u{acd}', '\u{b4d}', '\u{c4d}', '\u{d4d}'];
    // Each of these scripts has a block of 128, with the consonants from 0x15 to 0x39.
    joining.contains(&last)
        && u32::from(c) & !0x7f == u32::from(last) & !0x7f
        && (0x15..=0x39).contains(&(u32::from(c) & 0x7f))
}

/// A syllable behind a leading consonant.
fn is_hangul_start(last: char, c: char) -> bool {
    let leads = |c| matches!(c, '\u{1100}'..='\u{115f}' | '\u{a960}'..='\u{a97c}');
    leads(last) && (leads(c) || matches!(c, '\u{ac00}'..='\u{d7a3}'))
}

fn is_spacing_mark(c: char) -> bool {
    let code = u32::from(c);
    if !(0x903..0x10000).contains(&code) {
        return false;
    }
    let after = SPACING_MARKS.partition_point(|&(_, last)| u32::from(last) < code);
    SPACING_MARKS.get(after).is_some_and(|&(first, _)| u32::from(first) <= code)
}

/// Marks that take a column and still belong to the character before: the general category Mc
/// of the basic plane, and the Thai and Lao AM.
#[rustfmt::skip]
const SPACING_MARKS: &[(u16, u16)] = &[
    (0x0903, 0x0903), (0x093b, 0x093b), (0x093e, 0x0940), (0x0949, 0x094c), (0x094e, 0x094f),
    (0x0982, 0x0983), (0x09be, 0x09c0), (0x09c7, 0x09c8), (0x09cb, 0x09cc), (0x09d7, 0x09d7),
    (0x0a03, 0x0a03), (0x0a3e, 0x0a40), (0x0a83, 0x0a83), (0x0abe, 0x0ac0), (0x0ac9, 0x0ac9),
    (0x0acb, 0x0acc), (0x0b02, 0x0b03), (0x0b3e, 0x0b3e), (0x0b40, 0x0b40), (0x0b47, 0x0b48),
    (0x0b4b, 0x0b4c), (0x0b57, 0x0b57), (0x0bbe, 0x0bbf), (0x0bc1, 0x0bc2), (0x0bc6, 0x0bc8),
    (0x0bca, 0x0bcc), (0x0bd7, 0x0bd7), (0x0c01, 0x0c03), (0x0c41, 0x0c44), (0x0c82, 0x0c83),
    (0x0cbe, 0x0cbe), (0x0cc0, 0x0cc4), (0x0cc7, 0x0cc8), (0x0cca, 0x0ccb), (0x0cd5, 0x0cd6),
    (0x0d02, 0x0d03), (0x0d3e, 0x0d40), (0x0d46, 0x0d48), (0x0d4a, 0x0d4c), (0x0d57, 0x0d57),
    (0x0d82, 0x0d83), (0x0dcf, 0x0dd1), (0x0dd8, 0x0ddf), (0x0df2, 0x0df3), (0x0e33, 0x0e33),
    (0x0eb3, 0x0eb3), (0x0f3e, 0x0f3f), (0x0f7f, 0x0f7f), (0x102b, 0x102c), (0x1031, 0x1031),
    (0x1038, 0x1038), (0x103b, 0x103c), (0x1056, 0x1057), (0x1062, 0x1064), (0x1067, 0x106d),
    (0x1083, 0x1084), (0x1087, 0x108c), (0x108f, 0x108f), (0x109a, 0x109c), (0x1715, 0x1715),
    (0x1734, 0x1734), (0x17b6, 0x17b6), (0x17be, 0x17c5), (0x17c7, 0x17c8), (0x1923, 0x1926),
    (0x1929, 0x192b), (0x1930, 0x1931), (0x1933, 0x1938), (0x1a19, 0x1a1a), (0x1a55, 0x1a55),
    (0x1a57, 0x1a57), (0x1a61, 0x1a61), (0x1a63, 0x1a64), (0x1a6d, 0x1a72), (0x1b04, 0x1b04),
    (0x1b35, 0x1b35), (0x1b3b, 0x1b3b), (0x1b3d, 0x1b41), (0x1b43, 0x1b44), (0x1b82, 0x1b82),
    (0x1ba1, 0x1ba1), (0x1ba6, 0x1ba7), (0x1baa, 0x1baa), (0x1be7, 0x1be7), (0x1bea, 0x1bec),
    (0x1bee, 0x1bee), (0x1bf2, 0x1bf3), (0x1c24, 0x1c2b), (0x1c34, 0x1c35), (0x1ce1, 0x1ce1),
    (0x1cf7, 0x1cf7), (0x302e, 0x302f), (0xa823, 0xa824), (0xa827, 0xa827), (0xa880, 0xa881),
    (0xa8b4, 0xa8c3), (0xa952, 0xa953), (0xa983, 0xa983), (0xa9b4, 0xa9b5), (0xa9ba, 0xa9bb),
    (0xa9be, 0xa9c0), (0xaa2f, 0xaa30), (0xaa33, 0xaa34), (0xaa4d, 0xaa4d), (0xaa7b, 0xaa7b),
    (0xaa7d, 0xaa7d), (0xaaeb, 0xaaeb), (0xaaee, 0xaaef), (0xaaf5, 0xaaf5), (0xabe3, 0xabe4),
    (0xabe6, 0xabe7), (0xabe9, 0xabea), (0xabec, 0xabec),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Clusters separated by `|`, and the width of all.
    #[track_caller]
    fn check(text: &str, want: &str, columns: usize) {
        assert_eq!(clusters(text).collect::<Vec<_>>().join("|"), want);
        assert_eq!(width(text), columns, "{text:?}");
    }

    #[test]
    fn a_cluster_is_what_a_reader_takes_for_one() {
        check("", "", 0);
        check("abc", "a|b|c", 3);
        check("界面x", "界|面|x", 5);
        check("a\tb\n", "a|\t|b|\n", 2);
        check("a\r\nb\r\rc", "a|\r\n|b|\r|\r|c", 3);
        // Emoji: with selector, joined, flags, skin tones, keycaps, tags.
        check("❤\u{fe0f}x", "❤\u{fe0f}|x", 3);
        check("❤x", "❤|x", 2);
        check("👩\u{200d}💻!", "👩\u{200d}💻|!", 3);
        check("👨\u{200d}👩\u{200d}👧\u{200d}👦", "👨\u{200d}👩\u{200d}👧\u{200d}👦", 2);
        check("🧑\u{200d}🚒🪁", "🧑\u{200d}🚒|🪁", 4);
        check("🇩🇪🇫🇷🇨", "🇩🇪|🇫🇷|🇨", 5);
        check("👍🏽👍", "👍🏽|👍", 4);
        check("👩🏽\u{200d}💻", "👩🏽\u{200d}💻", 2);
        check("1\u{fe0f}\u{20e3}2", "1\u{fe0f}\u{20e3}|2", 3);
        check("🏴\u{e0067}\u{e0062}\u{e007f}x", "🏴\u{e0067}\u{e0062}\u{e007f}|x", 3);
        // Marks, above and beside.
        check("e\u{301}x", "e\u{301}|x", 2);
        check("กำก", "กำ|ก", 3);
        check("क्षिx", "क्षि|x", 4);
        check("நி", "நி", 2);
        check("각가", "각|가", 4);
        check("\u{1100}\u{1161}\u{11a8}x", "\u{1100}\u{1161}\u{11a8}|x", 3);
        // Without width, alone or between.
        check("\u{301}", "\u{301}", 0);
        check("\u{200b}a\u{200b}b", "\u{200b}|a\u{200b}|b", 2);
        check("\n\u{301}a", "\n|\u{301}|a", 1);
        check("\u{200d}🪁", "\u{200d}|🪁", 2);
        check("a\u{200d}b", "a\u{200d}|b", 2);
        check("±±", "±|±", 2);
    }

    #[test]
    fn clusters_cover_the_text_and_a_cut_between_them_changes_nothing() {
        let pieces = [
            "a", "\r", "\n", "界", "e\u{301}", "\u{301}", "👩", "\u{200d}", "💻", "\u{fe0f}", "🇩",
            "🏽", "क", "\u{94d}", "ि", "\u{200b}", "\u{ad}", "\u{1100}", "가", "±", "\0",
        ];
        let mut texts = vec![String::new()];
        for _ in 0..3 {
            let grown = |text: &String| pieces.map(|piece| format!("{text}{piece}"));
            texts.extend(texts.iter().flat_map(grown).collect::<Vec<_>>());
        }
        for text in texts {
            let parts: Vec<_> = clusters(&text).collect();
            assert_eq!(parts.concat(), text);
            let mut end = 0;
            for (count, part) in parts.iter().enumerate() {
                assert!(!part.is_empty());
                end += part.len();
                assert_eq!(clusters(&text[..end]).count(), count + 1, "{text:?}");
                assert_eq!(clusters(&text[end..]).count(), parts.len() - count - 1, "{text:?}");
                assert_eq!(last_cluster(&text[..end]), Some(*part), "{text:?}");
                for (inside, _) in part.char_indices().skip(1) {
                    let at = end - part.len() + inside;
                    assert_eq!(ceil_cluster(&text, at), end, "{text:?} from {at}");
                }
                assert_eq!(ceil_cluster(&text, end), end, "{text:?}");
            }
            assert_eq!(ceil_cluster(&text, 0), 0);
            let columns = width(&text);
            assert_eq!(fit_width(&text, columns), text);
            for less in 0..columns {
                let cut = truncate_width(&text, less);
                assert!(width(&cut) <= less, "{text:?} in {less}: {cut:?}");
            }
        }
    }

    #[test]
    fn truncation_says_so_and_never_splits() {
        let table = [
            ("hello", 5, "hello"),
            ("hello", 4, "hel…"),
            ("hello", 1, "…"),
            ("hello", 0, ""),
            ("界面界", 5, "界面…"),
            ("界面界", 4, "界…"),
            ("a👩\u{200d}💻b", 3, "a…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
        ];
        for (text, columns, want) in table {
            assert_eq!(truncate_width(text, columns), want, "{text:?} in {columns}");
        }
    }

    #[test]
    fn the_mark_table_is_sorted() {
        for pair in SPACING_MARKS.windows(2) {
            assert!(pair[0].1 < pair[1].0);
        }
        assert!(SPACING_MARKS.iter().all(|&(first, last)| first <= last));
    }
}

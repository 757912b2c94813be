//! Lines no wider than the terminal, made of painted text as it comes.
//!
//! A word is written when its end is known, so that what was written never moves. Words end at
//! blanks and between wide characters (East Asian text has no blanks), except before closing and
//! behind opening punctuation. A word that is wider than a line is cut at the width; one that
//! holds `://` is left whole on a line of its own, so that it can be copied: the terminal wraps it.
//! Every word turns its attributes off behind it: nothing is left on between two writes.

use super::inline::Sink;
use crate::render::style::{Attrs, Style};
use crate::text;

/// A cluster with more bytes is taken for several; the longest real ones have about 40.
const CLUSTER_BYTES_MAX: usize = 64;
/// A word with more bytes is written in pieces.
const WORD_BYTES_MAX: usize = 4096;

/// What stands before the text of a line.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefix {
    /// Painted.
    pub text: String,
    pub columns: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Wrap {
    pub columns: usize,
    pub style: Style,
    /// Lines must not be wider than the columns, whatever is in them.
    pub cuts_addresses: bool,
    out: String,
    /// Before the next line, and before those behind it.
    first: Option<Prefix>,
    rest: Prefix,
    /// Nothing was written on this line, not even its prefix.
    at_line_start: bool,
    column: usize,
    has_text: bool,
    blanks: usize,
    blank_attrs: Attrs,
    word: Vec<(Attrs, String)>,
    word_columns: usize,
    word_bytes: usize,
    /// The word goes on with what was written last: no line may end between.
    is_glued: bool,
    /// The last cluster of the word.
    last: Option<char>,
    /// A cluster that the next characters may still join.
    tail: String,
    tail_attrs: Attrs,
}

impl Wrap {
    pub fn new(columns: usize, style: Style) -> Wrap {
        Wrap {
            columns,
            style,
            cuts_addresses: false,
            out: String::new(),
            first: None,
            rest: Prefix::default(),
            at_line_start: true,
            column: 0,
            has_text: false,
            blanks: 0,
            blank_attrs: Attrs::NONE,
            word: Vec::new(),
            word_columns: 0,
            word_bytes: 0,
            is_glued: false,
            last: None,
            tail: String::new(),
            tail_attrs: Attrs::NONE,
        }
    }

    /// What was written since the last call.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Whether the written text ends inside a line.
    pub fn is_mid_line(&self) -> bool {
        !self.at_line_start
    }

    /// Sets what stands before the next line and before those that follow.
    pub fn begin(&mut self, first: Prefix, rest: Prefix) {
        self.end_line_if_open();
        self.first = Some(first);
        self.rest = rest;
    }

    /// Columns for text on a line.
    pub fn room(&self) -> usize {
        self.columns.saturating_sub(self.rest.columns).max(1)
    }

    fn flow(&mut self, attrs: Attrs, text: &str) {
        let joined;
        let mut rest = text;
        if !self.tail.is_empty() && !text.is_empty() {
            if self.tail_attrs != attrs || self.tail.is_ascii() && text.as_bytes()[0].is_ascii() {
                self.settle();
            } else {
                joined = std::mem::take(&mut self.tail) + text;
                rest = &joined;
            }
        }
        while !rest.is_empty() {
            if rest.starts_with([' ', '\t']) {
                self.blank(attrs);
                rest = &rest[1..];
                continue;
            }
            let window = text::floor_char(rest, CLUSTER_BYTES_MAX);
            let cluster = text::clusters(window).next().unwrap_or(window);
            if cluster.len() == rest.len() && rest.len() < CLUSTER_BYTES_MAX {
                cluster.clone_into(&mut self.tail);
                self.tail_attrs = attrs;
                return;
            }
            self.cluster(attrs, cluster);
            rest = &rest[cluster.len()..];
        }
    }

    /// Nothing can join the last cluster any more.
    fn settle(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            self.cluster(self.tail_attrs, &tail);
        }
    }

    fn blank(&mut self, attrs: Attrs) {
        self.settle();
        self.write_word();
        self.is_glued = false;
        self.blanks += 1;
        self.blank_attrs = attrs;
    }

    fn cluster(&mut self, attrs: Attrs, cluster: &str) {
        let columns = text::cluster_width(cluster);
        let first = cluster.chars().next();
        if let (Some(before), Some(first)) = (self.last, first)
            && may_break(before, first)
        {
            self.write_word();
            self.is_glued = false;
        }
        if self.room() < self.word_columns + columns && !self.is_address() {
            self.write_word();
            self.is_glued = false;
        } else if WORD_BYTES_MAX < self.word_bytes {
            self.write_word();
            self.is_glued = true;
        }
        match self.word.last_mut() {
            Some((last, text)) if *last == attrs => text.push_str(cluster),
            _ => self.word.push((attrs, cluster.to_owned())),
        }
        self.word_columns += columns;
        self.word_bytes += cluster.len();
        self.last = first;
    }

    /// Whether the word is to be left whole.
    fn is_address(&self) -> bool {
        let holds_address = || self.word.iter().any(|(_, text)| text.contains("://"));
        self.is_glued || !self.cuts_addresses && holds_address()
    }

    fn write_word(&mut self) {
        self.last = None;
        if self.word.is_empty() {
            return;
        }
        let blanks = if self.has_text { self.blanks } else { 0 };
        if self.has_text
            && !self.is_glued
            && self.columns < self.column + blanks + self.word_columns
        {
            self.write_line_end();
        } else if 0 < blanks {
            // Only lines are seen on a blank.
            let attrs = self.blank_attrs.only(Attrs::UNDERLINE.with(Attrs::STRIKE));
            self.style.paint_to(&mut self.out, attrs, &" ".repeat(blanks));
            self.column += blanks;
        }
        self.blanks = 0;
        self.write_prefix();
        for (attrs, text) in std::mem::take(&mut self.word) {
            self.style.paint_to(&mut self.out, attrs, &text);
        }
        self.column += self.word_columns;
        self.has_text = true;
        (self.word_columns, self.word_bytes) = (0, 0);
    }

    fn write_prefix(&mut self) {
        if self.at_line_start {
            let prefix = self.first.take();
            let prefix = prefix.as_ref().unwrap_or(&self.rest);
            self.out.push_str(&prefix.text);
            self.column = prefix.columns;
            self.at_line_start = false;
        }
    }

    fn write_line_end(&mut self) {
        let end = self.out.trim_end_matches(' ').len();
        // The last write may have been given out already: only blanks of this one can go.
        if !self.has_text {
            self.out.truncate(end);
        }
        self.out.push('\n');
        self.at_line_start = true;
        self.column = 0;
        self.has_text = false;
        self.is_glued = false;
    }

    /// Ends the line, even one that has nothing but its prefix.
    pub fn end_line(&mut self) {
        self.settle();
        self.write_word();
        self.write_prefix();
        self.write_line_end();
        self.blanks = 0;
    }

    pub fn end_line_if_open(&mut self) {
        self.settle();
        self.write_word();
        if !self.at_line_start {
            self.write_line_end();
        }
        self.blanks = 0;
    }

    /// One line as it is, however wide.
    pub fn whole_line(&mut self, attrs: Attrs, text: &str) {
        self.end_line_if_open();
        self.write_prefix();
        self.style.paint_to(&mut self.out, attrs, text);
        self.has_text = !text.is_empty();
        self.write_line_end();
    }

    /// One line that was painted and measured already.
    pub fn painted_line(&mut self, text: &str) {
        self.write_prefix();
        self.out.push_str(text);
        self.has_text = true;
        self.write_line_end();
    }

    /// A line with nothing but what stands before the others.
    pub fn empty_line(&mut self) {
        let prefix = self.rest.text.clone();
        self.blank_line(&prefix);
    }

    /// A line with nothing but this prefix.
    pub fn blank_line(&mut self, prefix: &str) {
        self.end_line_if_open();
        self.out.push_str(prefix.trim_end_matches(' '));
        self.out.push('\n');
    }

    /// Whether the marker of an item waits for its text.
    pub fn has_marker(&self) -> bool {
        self.first.as_ref().is_some_and(|first| first.text != self.rest.text)
    }

    /// Writes the marker of an item that has no text.
    pub fn flush_marker(&mut self) {
        if self.has_marker() {
            self.end_line();
        }
    }
}

impl Sink for Wrap {
    /// Text that flows; `\n` ends the line.
    fn text(&mut self, attrs: Attrs, text: &str) {
        let mut lines = text.split('\n');
        self.flow(attrs, lines.next().unwrap_or_default());
        for line in lines {
            self.end_line();
            self.flow(attrs, line);
        }
    }
}

/// Whether a line may end between two neighbours inside a word.
fn may_break(before: char, after: char) -> bool {
    const CLOSING: &str = "、。，．）」』】〕〉》！？：；…ー々ゝ’”·,.!?:;)]}'\"%";
    const OPENING: &str = "（「『【〔〈《“‘([{'\"";
    let is_wide = |c: char| '\u{2e80}' <= c && text::cluster_width(c.encode_utf8(&mut [0; 4])) == 2;
    (is_wide(before) || is_wide(after)) && !CLOSING.contains(after) && !OPENING.contains(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::style::painted_width;

    /// The lines of a text in so many columns, whatever the pieces that it comes in.
    #[track_caller]
    fn check(text: &str, columns: usize, want: &str) {
        for cut in (0..=text.len()).filter(|&cut| text.is_char_boundary(cut)) {
            let mut wrap = Wrap::new(columns, Style::coloured());
            wrap.text(Attrs::NONE, &text[..cut]);
            wrap.text(Attrs::NONE, &text[cut..]);
            wrap.end_line_if_open();
            assert_eq!(wrap.take().trim_end().replace('\n', "|"), want, "{text:?} cut at {cut}");
        }
    }

    #[test]
    fn lines_end_between_words() {
        check("", 10, "");
        check("one two three", 8, "one two|three");
        check("one two three", 7, "one two|three");
        check("one two three", 6, "one|two|three");
        check("one   two", 80, "one   two");
        check("one   two", 5, "one|two");
        check("  one ", 80, "one");
        check("a\nb\n\nc", 80, "a|b||c");
        check("abcdefghij kl", 4, "abcd|efgh|ij|kl");
        check("xy abcdefghij", 4, "xy|abcd|efgh|ij");
        check("go https://a.example/long now", 8, "go|https://a.example/long|now");
    }

    #[test]
    fn wide_text_and_joined_characters_keep_their_columns() {
        check("界面界面", 5, "界面|界面");
        check("界面。界", 4, "界|面。|界");
        check("a（界）b", 4, "a|（界|）b");
        check("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}e\u{301}|e\u{301}");
        check("👩\u{200d}💻 👩\u{200d}💻", 4, "👩\u{200d}💻|👩\u{200d}💻");
        check("🇩🇪🇫🇷", 2, "🇩🇪|🇫🇷");
    }

    #[test]
    fn a_word_is_written_when_it_ends_and_leaves_nothing_on() {
        let mut wrap = Wrap::new(12, Style::coloured());
        let bold = Attrs::BOLD;
        wrap.begin(
            Prefix { text: "• ".into(), columns: 2 },
            Prefix { text: "  ".into(), columns: 2 },
        );
        wrap.text(bold, "he");
        assert_eq!(wrap.take(), "");
        wrap.text(Attrs::NONE, "llo ");
        assert_eq!(wrap.take(), "• \x1b[1mhe\x1b[0mllo");
        assert!(wrap.is_mid_line());
        wrap.text(bold.with(Attrs::UNDERLINE), "wo rld ");
        assert_eq!(wrap.take(), " \x1b[1;4mwo\x1b[0m\n  \x1b[1;4mrld\x1b[0m");
        wrap.end_line_if_open();
        assert_eq!(wrap.take(), "\n");
        assert!(!wrap.is_mid_line());
    }

    #[test]
    fn endless_clusters_and_words_are_bounded() {
        for piece in ["\u{301}", "\u{200b}", "x", "👩\u{200d}"] {
            let text = format!("a{}", piece.repeat(20_000));
            let mut whole = Wrap::new(20, Style::plain());
            whole.text(Attrs::NONE, &text);
            whole.end_line_if_open();
            let mut single = Wrap::new(20, Style::plain());
            for c in text.chars() {
                single.text(Attrs::NONE, c.encode_utf8(&mut [0; 4]));
            }
            single.end_line_if_open();
            let whole = whole.take();
            assert_eq!(single.take(), whole);
            assert!(whole.lines().all(|line| painted_width(line) <= 20), "{piece:?}");
        }
    }
}

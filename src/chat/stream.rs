//! Assistant text, or reasoning, as it arrives: finished lines, and the part that may change.
//!
//! However the text is cut, the finished lines and the last tail together are the same.

use crate::render::line;
use crate::render::markdown::Markdown;
use crate::render::style::Style;

/// Columns before every line of a block.
pub const INDENT: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Reasoning,
}

#[derive(Debug)]
pub struct Stream {
    pub kind: Kind,
    style: Style,
    markdown: Markdown,
    /// What was pushed, of text alone.
    text: String,
    /// A line was given out.
    begun: bool,
}

impl Stream {
    pub fn new(kind: Kind, columns: usize, style: Style) -> Stream {
        let markdown = Markdown::by_lines(columns.saturating_sub(INDENT), style);
        Stream { kind, style, markdown, text: String::new(), begun: false }
    }

    /// The width of the lines that are not begun.
    pub fn set_columns(&mut self, columns: usize) {
        self.markdown.set_columns(columns.saturating_sub(INDENT));
    }

    /// The lines that are finished now.
    pub fn push(&mut self, delta: &str) -> Vec<String> {
        if self.kind == Kind::Text {
            self.text.push_str(delta);
        }
        let lines = self.markdown.push(delta);
        self.give_out(&lines)
    }

    /// The lines that were open.
    pub fn finish(&mut self) -> Vec<String> {
        let lines = self.markdown.finish();
        self.give_out(&lines)
    }

    /// The lines that [`Stream::finish`] would give now.
    pub fn tail(&self) -> Vec<String> {
        self.paint(&self.markdown.tail())
    }

    /// Whether a line was given out before.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// All text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn give_out(&mut self, lines: &str) -> Vec<String> {
        let painted = self.paint(lines);
        self.begun |= !painted.is_empty();
        painted
    }

    fn paint(&self, lines: &str) -> Vec<String> {
        let paint = |(idx, text): (usize, &str)| {
            // Told apart without colour, too.
            let mark = match self.kind {
                _ if 0 < idx || self.begun => "  ",
                Kind::Text => "• ",
                Kind::Reasoning => "◦ ",
            };
            let shown = format!("{mark}{}", line::expand_tabs(text));
            match self.kind {
                Kind::Text => shown.trim_end_matches(' ').to_owned(),
                Kind::Reasoning => self.style.dim(shown.trim_end_matches(' ')),
            }
        };
        lines.lines().enumerate().map(paint).collect()
    }
}

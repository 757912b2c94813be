//! Blocks: lines in, laid out text out.

use super::inline::{Inline, Sink};
use super::start::{self, Container, Kind, Marker, Open, Start, skipped};
use super::table::Table;
use super::wrap::{Prefix, Wrap};
use crate::render::style::{Attrs, Style};
use crate::text;

/// Widest rule.
const RULE_COLUMNS_MAX: usize = 80;

/// The block that is open inside of all containers.
#[derive(Debug, Clone)]
enum Leaf {
    Nothing,
    Paragraph,
    Fence {
        mark: char,
        length: usize,
        indent: usize,
    },
    /// Blank lines inside of it belong to it only when more code follows.
    IndentedCode {
        blank_lines: usize,
    },
    /// A line that is the header of a table if the next one is a row of dashes.
    Header {
        line: String,
        in_paragraph: bool,
    },
    Table(Table),
}

/// What the current line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Not known yet.
    Start,
    /// Text of the open paragraph, passed on as it comes.
    Flowing,
    /// Read when it is complete.
    Whole(Kind),
}

/// What a block was, for the space around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Was {
    Nothing,
    Text,
    /// Stands apart from what is around it.
    Apart,
}

/// A container with what is shown for it.
#[derive(Debug, Clone)]
struct Level {
    container: Container,
    /// The number of an ordered item as it is shown.
    number: u64,
    /// Not written yet.
    marker: Option<String>,
    columns: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Blocks {
    pub wrap: Wrap,
    inline: Inline,
    levels: Vec<Level>,
    leaf: Leaf,
    line: Line,
    /// The current line as far as it was not passed on.
    buffer: String,
    /// Containers that begin with the next block.
    opened: usize,
    /// A blank line was read since the last block.
    is_apart: bool,
    was: Was,
}

impl Blocks {
    pub fn new(columns: usize, style: Style) -> Blocks {
        Blocks {
            wrap: Wrap::new(columns, style),
            inline: Inline::new(style, Attrs::NONE),
            levels: Vec::new(),
            leaf: Leaf::Nothing,
            line: Line::Start,
            buffer: String::new(),
            opened: 0,
            is_apart: false,
            was: Was::Nothing,
        }
    }

    /// Text without control characters but `\n` and tabs.
    pub fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            match piece.strip_suffix('\n') {
                Some(end) => {
                    self.add(end, true);
                    self.end_line();
                }
                None => self.add(piece, false),
            }
        }
    }

    /// Ends the document.
    pub fn finish(&mut self) {
        if !self.buffer.is_empty() || self.line != Line::Start {
            self.add("", true);
            self.end_line();
        }
        self.close(0);
    }

    /// More of the current line; with `is_complete`, its last part.
    fn add(&mut self, text: &str, is_complete: bool) {
        if self.line == Line::Flowing {
            return self.inline.push(text, &mut self.wrap);
        }
        self.buffer.push_str(text);
        if self.line == Line::Start {
            self.start_line(is_complete);
        }
    }

    fn start_line(&mut self, is_complete: bool) {
        let is_fence = matches!(self.leaf, Leaf::Fence { .. });
        if is_fence && !is_complete {
            return;
        }
        let Some(mut start) = self.read_start(is_complete) else { return };
        if let Leaf::Header { .. } = self.leaf {
            match self.try_table(&start, is_complete) {
                None => return,
                Some(true) => {
                    self.buffer.clear();
                    self.line = Line::Whole(Kind::Blank);
                    return;
                }
                Some(false) => {
                    self.header_is_text();
                    // The line now stands behind a paragraph.
                    let Some(again) = self.read_start(is_complete) else { return };
                    start = again;
                }
            }
        }
        self.apply(start);
    }

    fn read_start(&self, is_complete: bool) -> Option<Start> {
        let containers: Vec<_> = self.levels.iter().map(|level| level.container).collect();
        let open = match self.leaf {
            Leaf::Paragraph | Leaf::Header { in_paragraph: true, .. } => Open::Paragraph,
            Leaf::Fence { .. } => Open::Fence,
            _ => Open::Nothing,
        };
        start::read(&self.buffer, is_complete, &containers, open, self.depth_max())
    }

    /// Containers that leave room for text.
    fn depth_max(&self) -> usize {
        (self.wrap.columns / 6).clamp(3, start::DEPTH_MAX)
    }

    /// Whether this line makes the one before the header of a table; `None`: more is needed.
    fn try_table(&mut self, start: &Start, is_complete: bool) -> Option<bool> {
        let rest = self.buffer[start.at..].trim_start();
        let may_be = start.matched == self.levels.len()
            && start.opened.is_empty()
            && matches!(start.kind, Kind::Row | Kind::Text)
            && rest.starts_with(['|', ':', '-']);
        if !may_be {
            return Some(false);
        }
        if !is_complete {
            return None;
        }
        let Leaf::Header { line, .. } = &self.leaf else { return Some(false) };
        let Some(table) = Table::begin(line, rest) else { return Some(false) };
        self.end_leaf_before_table();
        self.begin_block(Was::Apart);
        self.leaf = Leaf::Table(table);
        Some(true)
    }

    fn end_leaf_before_table(&mut self) {
        if let Leaf::Header { in_paragraph: true, .. } = self.leaf {
            self.leaf = Leaf::Paragraph;
            self.end_leaf();
        }
    }

    /// The line that was kept is no header.
    fn header_is_text(&mut self) {
        let Leaf::Header { line, in_paragraph } =
            std::mem::replace(&mut self.leaf, Leaf::Paragraph)
        else {
            return;
        };
        if !in_paragraph {
            self.begin_block(Was::Text);
        }
        self.inline.push(&line, &mut self.wrap);
        self.inline.push("\n", &mut self.wrap);
    }

    /// Acts on the start of a line.
    fn apply(&mut self, start: Start) {
        self.buffer.replace_range(..start.at, &" ".repeat(start.blanks));
        let in_paragraph = matches!(self.leaf, Leaf::Paragraph);
        let is_whole = start.matched == self.levels.len();
        if in_paragraph && start.opened.is_empty() && start.kind == Kind::Text {
            // Text goes on with a paragraph even where the marks of its containers are missing.
            return self.flow();
        }
        if start.kind == Kind::Blank && start.opened.is_empty() {
            return self.blank_line(&start);
        }
        let goes_on = is_whole
            && start.opened.is_empty()
            && match (&self.leaf, start.kind) {
                (Leaf::Fence { .. }, Kind::Code)
                | (Leaf::IndentedCode { .. }, Kind::IndentedCode)
                | (Leaf::Table(_), Kind::Row) => true,
                (Leaf::Paragraph, Kind::Row) => {
                    self.line = Line::Whole(Kind::Row);
                    return;
                }
                _ => false,
            };
        if goes_on {
            self.line = Line::Whole(start.kind);
            return;
        }
        let replaced = self.levels.get(start.matched).cloned();
        self.close(start.matched);
        self.opened = start.opened.len();
        let is_item = |level: &Level| level.container != Container::Quote;
        if 0 < self.opened && replaced.as_ref().is_some_and(is_item) {
            // Items of one list stand together, whatever is in them.
            self.was = Was::Text;
        }
        for (idx, container) in start.opened.into_iter().enumerate() {
            let before = replaced.as_ref().filter(|_| idx == 0);
            self.open(container, before);
        }
        self.begin_leaf(start.kind);
    }

    fn begin_leaf(&mut self, kind: Kind) {
        match kind {
            Kind::Text => {
                self.begin_block(Was::Text);
                self.leaf = Leaf::Paragraph;
                return self.flow();
            }
            Kind::Heading(_) => {
                // Apart from what is before it, but not from what is below.
                self.begin_block(Was::Apart);
                self.was = Was::Text;
            }
            Kind::Fence { .. } => self.begin_block(Was::Apart),
            Kind::Rule => {
                self.begin_block(Was::Apart);
                self.write_rule();
                self.buffer.clear();
            }
            Kind::IndentedCode => {
                self.begin_block(Was::Text);
                self.leaf = Leaf::IndentedCode { blank_lines: 0 };
            }
            Kind::Blank => self.begin_block(Was::Text),
            Kind::Row | Kind::Code => {}
        }
        self.line = Line::Whole(kind);
    }

    fn flow(&mut self) {
        self.line = Line::Flowing;
        let text = std::mem::take(&mut self.buffer);
        self.inline.push(&text, &mut self.wrap);
    }

    fn blank_line(&mut self, start: &Start) {
        self.buffer.clear();
        self.line = Line::Whole(Kind::Blank);
        if let Leaf::IndentedCode { blank_lines } = &mut self.leaf {
            *blank_lines += 1;
            return;
        }
        self.end_leaf();
        let left = self.levels[start.matched..].iter();
        if left.clone().any(|level| level.container == Container::Quote) {
            self.close(start.matched);
        }
        self.is_apart = true;
    }

    /// Reads the line that ends here.
    fn end_line(&mut self) {
        let line = std::mem::replace(&mut self.line, Line::Start);
        let text = std::mem::take(&mut self.buffer);
        match line {
            Line::Start | Line::Whole(Kind::Blank | Kind::Text | Kind::Rule) => {}
            Line::Flowing => self.inline.push("\n", &mut self.wrap),
            Line::Whole(Kind::Heading(level)) => self.write_heading(level, &text),
            Line::Whole(Kind::Fence { mark, length, indent }) => {
                let fence = mark.to_string().repeat(length.min(8));
                self.write_fence(&format!("{fence}{}", text.trim()));
                self.leaf = Leaf::Fence { mark, length, indent };
            }
            Line::Whole(Kind::Code) => self.code_line(&text),
            Line::Whole(Kind::IndentedCode) => {
                if let Leaf::IndentedCode { blank_lines } = &mut self.leaf {
                    for _ in 0..std::mem::take(blank_lines) {
                        self.wrap.empty_line();
                    }
                }
                self.wrap.whole_line(Attrs::NONE, &format!("    {text}"));
            }
            Line::Whole(Kind::Row) => match &mut self.leaf {
                Leaf::Table(table) => table.push(&text, &mut self.wrap),
                leaf => {
                    let in_paragraph = matches!(leaf, Leaf::Paragraph);
                    *leaf = Leaf::Header { line: text, in_paragraph };
                }
            },
        }
    }

    fn code_line(&mut self, text: &str) {
        let Leaf::Fence { mark, length, indent } = self.leaf else { return };
        let inner = &text[skipped(text, 3)..];
        let run = inner.trim_end();
        let is_end = length <= run.chars().count() && run.chars().all(|c| c == mark);
        if is_end {
            self.end_leaf();
        } else {
            self.wrap.whole_line(Attrs::NONE, &text[skipped(text, indent)..]);
        }
    }

    fn write_heading(&mut self, level: usize, text: &str) {
        let text = text.trim();
        let bare = text.trim_end_matches('#');
        let text = if bare.is_empty() || bare.ends_with(' ') { bare.trim_end() } else { text };
        let style = self.wrap.style;
        if !style.is_coloured() {
            self.wrap.text(Attrs::NONE, &"#".repeat(level));
            self.wrap.text(Attrs::NONE, " ");
        }
        let attrs = match level {
            1 => Attrs::BOLD.with(Attrs::UNDERLINE),
            2 => Attrs::BOLD,
            _ => Attrs::BOLD.with(Attrs::ITALIC),
        };
        Inline::all(text, style, attrs, &mut self.wrap);
        self.wrap.end_line_if_open();
    }

    fn write_fence(&mut self, text: &str) {
        let text = text::truncate_width(text, self.wrap.room()).into_owned();
        self.wrap.whole_line(Attrs::DIM, &text);
    }

    fn write_rule(&mut self) {
        let rule = match self.wrap.style.is_coloured() {
            true => "─".repeat(self.wrap.room().min(RULE_COLUMNS_MAX)),
            false => "---".to_owned(),
        };
        self.wrap.whole_line(Attrs::DIM, &rule);
    }

    /// Ends the open leaf and the containers behind the first `depth`.
    fn close(&mut self, depth: usize) {
        if let Leaf::Header { .. } = self.leaf {
            self.header_is_text();
        }
        self.end_leaf();
        if depth < self.levels.len() {
            self.wrap.flush_marker();
            self.levels.truncate(depth);
        }
    }

    fn end_leaf(&mut self) {
        match std::mem::replace(&mut self.leaf, Leaf::Nothing) {
            Leaf::Nothing => {}
            Leaf::IndentedCode { blank_lines } => self.is_apart |= 0 < blank_lines,
            Leaf::Paragraph => {
                self.inline.finish(&mut self.wrap);
                self.wrap.end_line_if_open();
            }
            Leaf::Fence { mark, length, .. } => {
                self.write_fence(&mark.to_string().repeat(length.min(8)));
            }
            header @ Leaf::Header { .. } => {
                self.leaf = header;
                self.header_is_text();
                self.end_leaf();
            }
            Leaf::Table(mut table) => table.write(&mut self.wrap),
        }
    }

    /// Opens a container; `before` is the one that stood in its place.
    fn open(&mut self, container: Container, before: Option<&Level>) {
        let is_coloured = self.wrap.style.is_coloured();
        let mut number = 0;
        let marker = match container {
            Container::Quote => None,
            Container::Item { task: Some(is_done), .. } => {
                Some(if is_done { "[x] " } else { "[ ] " }.to_owned())
            }
            Container::Item { marker: Marker::Bullet(_), .. } => Some(match is_coloured {
                false => "- ".to_owned(),
                true if self.bullets() % 2 == 1 => "◦ ".to_owned(),
                true => "• ".to_owned(),
            }),
            Container::Item { marker: Marker::Ordered(start, sign), .. } => {
                number = match before.map(|level| (level.container, level.number)) {
                    Some((Container::Item { marker: Marker::Ordered(_, same), .. }, last))
                        if same == sign =>
                    {
                        last.saturating_add(1)
                    }
                    _ => start,
                };
                Some(format!("{number}{sign} "))
            }
        };
        let columns = marker.as_deref().map_or(2, text::width);
        self.levels.push(Level { container, number, marker, columns });
    }

    /// Bullets around the place.
    fn bullets(&self) -> usize {
        let is_bullet =
            |container| matches!(container, Container::Item { marker: Marker::Bullet(_), .. });
        self.levels.iter().filter(|level| is_bullet(level.container)).count()
    }

    /// Space before a block, and what stands before its lines.
    fn begin_block(&mut self, is: Was) {
        let opened = std::mem::take(&mut self.opened);
        let outer = self.levels.len() - opened;
        let in_item = |level: &Level| level.container != Container::Quote;
        let needs_space = is == Was::Apart && opened == 0 || self.was == Was::Apart;
        let is_forced = needs_space && !self.levels[..outer].iter().any(in_item);
        // Or right behind the marker of its item.
        let is_first = self.was == Was::Nothing || opened == 0 && self.wrap.has_marker();
        if !is_first && (self.is_apart || is_forced) {
            let prefix = self.prefix(outer, false);
            self.wrap.blank_line(&prefix.text);
        }
        self.is_apart = false;
        self.was = is;
        if 0 < opened || !self.wrap.has_marker() {
            self.wrap.flush_marker();
            let first = self.prefix(self.levels.len(), true);
            let rest = self.prefix(self.levels.len(), false);
            self.wrap.begin(first, rest);
        }
    }

    /// What stands before a line inside of so many containers. Markers are given once.
    fn prefix(&mut self, depth: usize, with_markers: bool) -> Prefix {
        let style = self.wrap.style;
        let mut prefix = Prefix::default();
        for level in &mut self.levels[..depth] {
            let marker = if with_markers { level.marker.take() } else { None };
            prefix.columns += level.columns;
            match (level.container, marker) {
                (Container::Quote, _) if style.is_coloured() => {
                    prefix.text.push_str(&style.dim("│"));
                    prefix.text.push(' ');
                }
                (Container::Quote, _) => prefix.text.push_str("> "),
                (Container::Item { task: Some(true), .. }, Some(marker)) => {
                    prefix.text.push_str(&style.green(marker.trim_end()));
                    prefix.text.push(' ');
                }
                (_, Some(marker)) => prefix.text.push_str(&marker),
                (_, None) => prefix.text.push_str(&" ".repeat(level.columns)),
            }
        }
        prefix
    }
}

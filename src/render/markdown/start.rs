//! What the start of a line says: which containers it goes on with, which it opens, and what
//! kind of block its text belongs to.
//!
//! A line may still be growing. Then a start that could become something else is not decided;
//! once it is, more text changes nothing, so that the answer never depends on where the text was
//! cut. A start that is undecided for too long is taken for complete.

use crate::text;

/// Bytes of one line after which its start is decided by what there is.
const START_BYTES_MAX: usize = 1000;
/// Containers inside each other; deeper ones are text.
pub(super) const DEPTH_MAX: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Bullet(char),
    /// The number and the sign behind it.
    Ordered(u64, char),
}

/// What a line has to continue to belong to an open block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Quote,
    /// Where the marker and the content stand, in columns of the surrounding block.
    Item {
        marker: Marker,
        marker_at: usize,
        content_at: usize,
        task: Option<bool>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Blank,
    /// The text of a paragraph, from here on.
    Text,
    /// Of level 1 to 6.
    Heading(usize),
    Fence {
        mark: char,
        length: usize,
        indent: usize,
    },
    Rule,
    /// May be a row of a table.
    Row,
    IndentedCode,
    /// A line inside of a fence.
    Code,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// How many of the open containers the line goes on with.
    pub matched: usize,
    pub opened: Vec<Container>,
    pub kind: Kind,
    /// Where the content starts, in bytes.
    pub at: usize,
    /// Columns of a tab that belong to the content; its other columns were passed.
    pub blanks: usize,
}

/// The open block that decides how a line is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    Nothing,
    Paragraph,
    Fence,
}

/// Not decided: more text is needed.
struct More;

/// Reads the start of `line`; `None` as long as it could become something else.
///
/// `depth_max` is the number of containers that there may be.
pub(super) fn read(
    line: &str,
    is_complete: bool,
    containers: &[Container],
    open: Open,
    depth_max: usize,
) -> Option<Start> {
    // The same bytes decide, however much of the line came at once.
    let known = text::floor_char(line, START_BYTES_MAX);
    let is_complete = is_complete || known.len() < line.len();
    let line = known;
    let mut cursor = Cursor { line, at: 0, blanks: 0, is_complete };
    cursor.start(containers, open, depth_max).ok()
}

struct Cursor<'a> {
    line: &'a str,
    at: usize,
    /// What is left of a tab before `at`.
    blanks: usize,
    is_complete: bool,
}

impl Cursor<'_> {
    fn rest(&self) -> &str {
        &self.line[self.at..]
    }

    /// Columns of white space ahead; an error when there may come more.
    fn indent(&self) -> Result<usize, More> {
        let rest = self.rest();
        let end = match rest.find(|c| c != ' ' && c != '\t') {
            Some(end) => end,
            None if self.is_complete => rest.len(),
            None => return Err(More),
        };
        let here = column(&self.line[..self.at]);
        Ok(self.blanks + column(&self.line[..self.at + end]) - here)
    }

    fn is_blank(&self) -> bool {
        self.rest().trim_matches([' ', '\t']).is_empty()
    }

    /// Passes white space of at most so many columns.
    fn skip(&mut self, columns: usize) {
        let from_tab = self.blanks.min(columns);
        self.blanks -= from_tab;
        let mut left = columns - from_tab;
        let mut here = column(&self.line[..self.at]);
        while 0 < left && self.rest().starts_with([' ', '\t']) {
            let end = if self.rest().starts_with('\t') { next_stop(here) } else { here + 1 };
            self.at += 1;
            let passed = left.min(end - here);
            self.blanks = end - here - passed;
            left -= passed;
            here = end;
        }
    }

    fn start(
        &mut self,
        containers: &[Container],
        open: Open,
        depth_max: usize,
    ) -> Result<Start, More> {
        let matched = self.match_containers(containers, open)?;
        let mut start = Start { matched, opened: Vec::new(), kind: Kind::Code, at: 0, blanks: 0 };
        let is_whole = matched == containers.len();
        // Code inside an item is often indented too little: only its fence ends it.
        let goes_on = containers[matched..].iter().all(|left| *left != Container::Quote);
        if open == Open::Fence && goes_on {
            start.matched = containers.len();
            (start.at, start.blanks) = (self.at, self.blanks);
            return Ok(start);
        }
        let mut in_paragraph = open == Open::Paragraph;
        start.kind = loop {
            let indent = self.indent()?;
            if self.is_blank() {
                break Kind::Blank;
            }
            if 4 <= indent && !in_paragraph {
                self.skip(4);
                break Kind::IndentedCode;
            }
            if 4 <= indent {
                self.skip(usize::MAX);
                break Kind::Text;
            }
            self.skip(indent);
            // An item of another list, or a word at the start of a line?
            let interrupts = in_paragraph && is_whole && start.opened.is_empty();
            let depth = matched + start.opened.len();
            match self.container(indent, interrupts, depth < depth_max)? {
                Some(container) => start.opened.push(container),
                None => break self.leaf(indent)?,
            }
            in_paragraph = false;
        };
        (start.at, start.blanks) = (self.at, self.blanks);
        Ok(start)
    }

    fn match_containers(&mut self, containers: &[Container], open: Open) -> Result<usize, More> {
        for (idx, container) in containers.iter().enumerate() {
            let indent = self.indent()?;
            match *container {
                Container::Quote => {
                    let before = (self.at, self.blanks);
                    self.skip(indent.min(3));
                    if !self.rest().starts_with('>') {
                        (self.at, self.blanks) = before;
                        return Ok(idx);
                    }
                    self.quote_mark()?;
                }
                // A blank line belongs to every open item.
                Container::Item { .. } if self.is_blank() => {}
                Container::Item { content_at, .. } if content_at <= indent => self.skip(content_at),
                // A list below an item is often indented too little.
                Container::Item { marker_at, .. }
                    if marker_at + 2 <= indent && open != Open::Fence =>
                {
                    let before = (self.at, self.blanks);
                    self.skip(indent);
                    if self.marker()?.is_none() {
                        (self.at, self.blanks) = before;
                        return Ok(idx);
                    }
                }
                Container::Item { .. } => return Ok(idx),
            }
        }
        Ok(containers.len())
    }

    /// Passes `>` and one blank behind it.
    fn quote_mark(&mut self) -> Result<(), More> {
        if self.rest().len() == 1 && !self.is_complete {
            return Err(More);
        }
        self.at += 1;
        self.skip(1);
        Ok(())
    }

    /// Passes the mark of a container that begins here.
    fn container(
        &mut self,
        indent: usize,
        interrupts: bool,
        is_allowed: bool,
    ) -> Result<Option<Container>, More> {
        if !is_allowed {
            return Ok(None);
        }
        if self.rest().starts_with('>') {
            self.quote_mark()?;
            return Ok(Some(Container::Quote));
        }
        if self.is_rule()? {
            return Ok(None);
        }
        let Some((marker, length)) = self.marker()? else { return Ok(None) };
        if interrupts && matches!(marker, Marker::Ordered(2.., _)) {
            return Ok(None);
        }
        let before = (self.at, self.blanks);
        self.at += length;
        let blanks = self.indent()?;
        if self.is_blank() {
            if interrupts {
                (self.at, self.blanks) = before;
                return Ok(None);
            }
            self.at = self.line.len();
            let content_at = indent + length + 1;
            return Ok(Some(Container::Item { marker, marker_at: indent, content_at, task: None }));
        }
        // With five blanks or more, code begins behind the first.
        let blanks = if blanks <= 4 { blanks } else { 1 };
        self.skip(blanks);
        let content_at = indent + length + blanks;
        let task = self.task()?;
        Ok(Some(Container::Item { marker, marker_at: indent, content_at, task }))
    }

    /// The mark of a list item and its bytes; it is not passed.
    fn marker(&self) -> Result<Option<(Marker, usize)>, More> {
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let mark = rest[digits..].chars().next();
        let (marker, length) = match (digits, mark) {
            (0, Some(mark @ ('-' | '+' | '*'))) => (Marker::Bullet(mark), 1),
            // Longer numbers are more often years or amounts.
            (1..=3, Some(mark @ ('.' | ')'))) => {
                let number = rest[..digits].parse().unwrap_or(0);
                (Marker::Ordered(number, mark), digits + 1)
            }
            (1..=3, None) if !self.is_complete => return Err(More),
            _ => return Ok(None),
        };
        match rest.as_bytes().get(length) {
            Some(b' ' | b'\t') => Ok(Some((marker, length))),
            Some(_) => Ok(None),
            None if self.is_complete => Ok(Some((marker, length))),
            None => Err(More),
        }
    }

    /// Passes the box of a task.
    fn task(&mut self) -> Result<Option<bool>, More> {
        for (mark, is_done) in [("[ ] ", false), ("[x] ", true), ("[X] ", true)] {
            let rest = self.rest();
            if rest.starts_with(mark) {
                self.at += mark.len();
                return Ok(Some(is_done));
            }
            if mark.starts_with(rest) && !self.is_complete {
                return Err(More);
            }
        }
        Ok(None)
    }

    fn is_rule(&self) -> Result<bool, More> {
        let rest = self.rest();
        let Some(mark @ ('-' | '*' | '_')) = rest.chars().next() else { return Ok(false) };
        if rest.contains(|c| c != mark && c != ' ' && c != '\t') {
            return Ok(false);
        }
        if !self.is_complete {
            return Err(More);
        }
        Ok(3 <= rest.chars().filter(|c| *c == mark).count())
    }

    fn leaf(&mut self, indent: usize) -> Result<Kind, More> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Kind::Blank) };
        let run = rest.chars().take_while(|c| *c == first).count();
        let behind = rest[run * first.len_utf8()..].chars().next();
        if matches!(first, '#' | '`' | '~') && behind.is_none() && !self.is_complete {
            return Err(More);
        }
        match first {
            '#' if run <= 6 && matches!(behind, None | Some(' ' | '\t')) => {
                self.at += run;
                Ok(Kind::Heading(run))
            }
            '`' if 3 <= run => {
                // Code within a line may look like a fence at first.
                if rest[run..].contains('`') {
                    return Ok(Kind::Text);
                }
                if !self.is_complete {
                    return Err(More);
                }
                Ok(self.fence(first, run, indent))
            }
            '~' if 3 <= run => Ok(self.fence(first, run, indent)),
            '|' => Ok(Kind::Row),
            '-' | '*' | '_' if self.is_rule()? => Ok(Kind::Rule),
            _ => Ok(Kind::Text),
        }
    }

    fn fence(&mut self, mark: char, length: usize, indent: usize) -> Kind {
        self.at += length;
        Kind::Fence { mark, length, indent }
    }
}

/// The column behind the marks and blanks at the start of a line.
fn column(prefix: &str) -> usize {
    let step = |column, byte| if byte == b'\t' { next_stop(column) } else { column + 1 };
    prefix.bytes().fold(0, step)
}

/// Tab stops are four columns apart.
fn next_stop(column: usize) -> usize {
    (column / 4 + 1) * 4
}

/// Bytes of the blanks at the start of `text`, at most so many.
pub(super) fn skipped(text: &str, blanks_max: usize) -> usize {
    text.bytes().take(blanks_max).take_while(|byte| *byte == b' ').count()
}

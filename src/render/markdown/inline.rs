//! The text of a paragraph as it comes: code, links, emphasis.
//!
//! Text goes on to the lines as soon as no later mark can change how it looks. Behind a mark
//! that may open emphasis it waits for the closing one, for the paragraph's end, or for so many
//! bytes that the mark is taken for a plain sign. Without colours emphasis is shown by its
//! marks, so nothing waits for it.

use std::collections::VecDeque;

use super::scan::{Marks, Token, scan};
use crate::render::style::{Attrs, Style};

/// Emphasis closes at most so many bytes behind its opening mark.
const EMPHASIS_BYTES_MAX: usize = 500;
/// Links inside of links: an image is one.
const LINK_DEPTH_MAX: usize = 2;

/// Takes text in the order in which it stands.
pub(super) trait Sink {
    fn text(&mut self, attrs: Attrs, text: &str);
}

impl Sink for Vec<(Attrs, String)> {
    fn text(&mut self, attrs: Attrs, text: &str) {
        self.push((attrs, text.to_owned()));
    }
}

#[derive(Debug, Clone)]
pub(super) struct Inline {
    style: Style,
    /// Added to everything.
    attrs: Attrs,
    /// What is not a token yet, and where it starts in the paragraph.
    source: String,
    at: usize,
    /// The character before it.
    before: char,
    held: VecDeque<Piece>,
    link_depth: usize,
}

#[derive(Debug, Clone)]
struct Piece {
    at: usize,
    attrs: Attrs,
    text: String,
    /// Marks that may still open emphasis; the text is what is left of them.
    opening: Option<Marks>,
}

impl Inline {
    pub fn new(style: Style, attrs: Attrs) -> Inline {
        Inline {
            style,
            attrs,
            source: String::new(),
            at: 0,
            before: ' ',
            held: VecDeque::new(),
            link_depth: 0,
        }
    }

    /// Adds text; `\n` is a line end inside of the paragraph.
    pub fn push(&mut self, text: &str, sink: &mut dyn Sink) {
        self.source.push_str(text);
        self.advance(false, sink);
    }

    /// Ends the paragraph.
    pub fn finish(&mut self, sink: &mut dyn Sink) {
        self.advance(true, sink);
        for piece in std::mem::take(&mut self.held) {
            sink.text(piece.attrs.with(self.attrs), &piece.text);
        }
        *self = Inline { link_depth: self.link_depth, ..Inline::new(self.style, self.attrs) };
    }

    /// A whole text.
    pub fn all(text: &str, style: Style, attrs: Attrs, sink: &mut dyn Sink) {
        let mut inline = Inline::new(style, attrs);
        inline.push(text, sink);
        inline.finish(sink);
    }

    fn advance(&mut self, is_end: bool, sink: &mut dyn Sink) {
        let source = std::mem::take(&mut self.source);
        let mut at = 0;
        while let Some((length, token)) = scan(&source[at..], self.before, is_end) {
            self.token(token, sink);
            at += length;
            self.at += length;
            self.before = source[..at].chars().next_back().unwrap_or(' ');
        }
        self.source = source[at..].to_owned();
    }

    fn token(&mut self, token: Token<'_>, sink: &mut dyn Sink) {
        match token {
            Token::Text(text) => self.piece(Attrs::NONE, text, sink),
            Token::Char(c) => self.piece(Attrs::NONE, c.encode_utf8(&mut [0; 4]), sink),
            Token::LineEnd => self.piece(Attrs::NONE, "\n", sink),
            Token::Code(code, ticks) => self.code(code, ticks, sink),
            Token::Address(address) => self.piece(Attrs::UNDERLINE, address, sink),
            Token::Link { text, address } => self.link(text, address, sink),
            Token::Marks(marks) if self.style.is_coloured() => self.marks(marks),
            Token::Marks(marks) => {
                self.piece(Attrs::NONE, &marks.mark.to_string().repeat(marks.count), sink);
            }
        }
        self.release(sink);
    }

    fn piece(&mut self, attrs: Attrs, text: &str, sink: &mut dyn Sink) {
        if self.held.is_empty() {
            sink.text(attrs.with(self.attrs), text);
        } else {
            let text = text.to_owned();
            self.held.push_back(Piece { at: self.at, attrs, text, opening: None });
        }
    }

    /// Code is shown by its colour, or else by its backticks.
    fn code(&mut self, code: &str, ticks: usize, sink: &mut dyn Sink) {
        let code = code.replace('\n', " ");
        if !self.style.is_coloured() {
            return self.piece(Attrs::NONE, &code, sink);
        }
        let inner = &code[ticks..code.len() - ticks];
        let trimmed = inner.strip_prefix(' ').and_then(|inner| inner.strip_suffix(' '));
        let inner = trimmed.filter(|_| !inner.trim().is_empty()).unwrap_or(inner);
        self.piece(Attrs::CYAN, inner, sink);
    }

    /// The text, and the address behind it unless they are the same.
    fn link(&mut self, text: &str, address: &str, sink: &mut dyn Sink) {
        let text = if text.trim().is_empty() { "link" } else { text };
        if self.link_depth < LINK_DEPTH_MAX {
            let mut parts = Vec::new();
            let mut inline = Inline::new(self.style, Attrs::UNDERLINE);
            inline.link_depth = self.link_depth + 1;
            inline.push(text, &mut parts);
            inline.finish(&mut parts);
            for (attrs, text) in parts {
                self.piece(attrs, &text, sink);
            }
        } else {
            self.piece(Attrs::UNDERLINE, text, sink);
        }
        let is_same = text.trim_matches('`') == address
            || address.strip_prefix("mailto:").is_some_and(|mail| mail == text);
        if !address.is_empty() && !is_same {
            self.piece(Attrs::NONE, " ", sink);
            self.piece(Attrs::DIM, &format!("({address})"), sink);
        }
    }

    /// Closes what these marks can close, and keeps what is left of them.
    fn marks(&mut self, mut marks: Marks) {
        self.expire();
        while marks.closes && 0 < marks.count {
            let opening = self
                .held
                .iter()
                .rposition(|piece| piece.opening.is_some_and(|opening| is_pair(opening, marks)));
            let Some(idx) = opening else { break };
            self.close(idx, &mut marks);
        }
        if 0 < marks.count {
            let text = marks.mark.to_string().repeat(marks.count);
            let opening = marks.opens.then_some(marks);
            self.held.push_back(Piece { at: self.at, attrs: Attrs::NONE, text, opening });
        }
    }

    fn close(&mut self, idx: usize, marks: &mut Marks) {
        let Some(mut opening) = self.held[idx].opening else { return };
        let count = if 2 <= opening.count && 2 <= marks.count { 2 } else { 1 };
        let attrs = match (marks.mark, count) {
            ('~', _) => Attrs::STRIKE,
            (_, 2) => Attrs::BOLD,
            _ => Attrs::ITALIC,
        };
        for piece in self.held.iter_mut().skip(idx + 1) {
            piece.attrs = piece.attrs.with(attrs);
            piece.opening = None;
        }
        opening.count -= count;
        marks.count -= count;
        let piece = &mut self.held[idx];
        piece.text.truncate(opening.count);
        piece.opening = (0 < opening.count).then_some(opening);
    }

    /// Marks that stand too far back open nothing any more.
    fn expire(&mut self) {
        for piece in &mut self.held {
            if self.at <= piece.at + EMPHASIS_BYTES_MAX {
                break;
            }
            piece.opening = None;
        }
    }

    /// Gives out what no mark can change any more.
    fn release(&mut self, sink: &mut dyn Sink) {
        self.expire();
        while let Some(piece) = self.held.front()
            && piece.opening.is_none()
        {
            sink.text(piece.attrs.with(self.attrs), &piece.text);
            self.held.pop_front();
        }
    }
}

/// Whether these marks close those.
fn is_pair(opening: Marks, closing: Marks) -> bool {
    // `*a**b*` is not closed in its middle.
    let is_uneven = (opening.closes || closing.opens)
        && (opening.count + closing.count).is_multiple_of(3)
        && !(opening.count.is_multiple_of(3) && closing.count.is_multiple_of(3));
    opening.mark == closing.mark && !is_uneven
}

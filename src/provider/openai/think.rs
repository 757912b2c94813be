//! Splits reasoning in tags (`<think>…</think>`) off the start of an answer's text.
//!
//! Only an answer that starts with the tag is split; tags later in the text, in code for
//! example, are text. A tag may be cut by deltas anywhere. Where a server's template opens the
//! tag itself, so that only the closing one shows up, the text stays as it is.

const TAGS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>")];

/// Blanks before a tag; behind more of them it is text.
const LEAD_BYTES_MAX: usize = 256;

/// The name that reasoning from tags carries in place of a wire field.
pub const FIELD: &str = "<think>";

#[derive(Debug, PartialEq)]
pub enum Piece {
    Text(String),
    Reasoning(String),
}

#[derive(Debug)]
enum State {
    /// Held: nothing but what may still become a tag.
    Start(String),
    /// Inside; held: a possible start of the closing tag.
    Inside {
        close: &'static str,
        held: String,
    },
    /// Behind the closing tag: blank lines before the answer are dropped.
    Behind,
    Text,
}

#[derive(Debug)]
pub struct Splitter(State);

impl Default for Splitter {
    fn default() -> Splitter {
        Splitter(State::Start(String::new()))
    }
}

impl Splitter {
    /// A splitter that takes everything for text.
    pub fn off() -> Splitter {
        Splitter(State::Text)
    }

    /// True: every further piece is text as it is.
    pub fn is_text(&self) -> bool {
        matches!(self.0, State::Text)
    }

    pub fn push(&mut self, delta: &str, out: &mut Vec<Piece>) {
        match &mut self.0 {
            State::Text => text(delta, out),
            State::Start(held) => {
                held.push_str(delta);
                let begun = held.trim_start();
                let leads = held.len() - begun.len() > LEAD_BYTES_MAX;
                let tag = TAGS.iter().find(|(open, _)| begun.starts_with(open));
                if let (Some((open, close)), false) = (tag, leads) {
                    let rest = begun[open.len()..].to_owned();
                    self.0 = State::Inside { close, held: String::new() };
                    self.push(&rest, out);
                } else if leads || !TAGS.iter().any(|(open, _)| open.starts_with(begun)) {
                    let held = std::mem::take(held);
                    self.0 = State::Text;
                    text(&held, out);
                }
            }
            State::Inside { close, held } => {
                held.push_str(delta);
                if let Some(at) = held.find(*close) {
                    reasoning(&held[..at], out);
                    let rest = held[at + close.len()..].to_owned();
                    self.0 = State::Behind;
                    self.push(&rest, out);
                } else {
                    let keep = tag_start(held, close);
                    let free: String = held.drain(..held.len() - keep).collect();
                    reasoning(&free, out);
                }
            }
            State::Behind => {
                let rest = delta.trim_start();
                if !rest.is_empty() {
                    self.0 = State::Text;
                    text(rest, out);
                }
            }
        }
    }

    /// The end of the answer: what was held is what it looked like.
    pub fn finish(&mut self, out: &mut Vec<Piece>) {
        match std::mem::replace(&mut self.0, State::Text) {
            State::Start(held) => text(&held, out),
            State::Inside { held, .. } => reasoning(&held, out),
            State::Behind | State::Text => {}
        }
    }
}

fn text(piece: &str, out: &mut Vec<Piece>) {
    if !piece.is_empty() {
        out.push(Piece::Text(piece.to_owned()));
    }
}

fn reasoning(piece: &str, out: &mut Vec<Piece>) {
    if !piece.is_empty() {
        out.push(Piece::Reasoning(piece.to_owned()));
    }
}

/// The length of the longest end of `text` that is a start of `tag`.
fn tag_start(text: &str, tag: &str) -> usize {
    let longest = (tag.len() - 1).min(text.len());
    (1..=longest).rev().find(|len| text.as_bytes().ends_with(&tag.as_bytes()[..*len])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let (mut splitter, mut out) = (Splitter::default(), Vec::new());
        for piece in pieces {
            splitter.push(piece, &mut out);
        }
        splitter.finish(&mut out);
        let (mut thought, mut answer) = (String::new(), String::new());
        for piece in out {
            match piece {
                Piece::Text(piece) => answer.push_str(&piece),
                Piece::Reasoning(piece) => thought.push_str(&piece),
            }
        }
        (thought, answer)
    }

    #[track_caller]
    fn check(whole: &str, thought: &str, answer: &str) {
        let want = (thought.to_owned(), answer.to_owned());
        for (cut, _) in whole.char_indices() {
            let (one, two) = whole.split_at(cut);
            assert_eq!(split(&[one, two]), want, "{whole:?} cut at {cut}");
        }
        let chars: Vec<String> = whole.chars().map(String::from).collect();
        let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
        assert_eq!(split(&chars), want, "{whole:?} by characters");
    }

    #[test]
    fn a_leading_tag_is_reasoning_and_a_later_one_is_text() {
        check("<think>a < b </thin é</think>\n\nyes", "a < b </thin é", "yes");
        check(" \n<thinking>x</thinking>y", "x", "y");
        check("<thought>x</thought>", "x", "");
        check("<think>never closed </thi", "never closed </thi", "");
        check("see <think>no</think>", "", "see <think>no</think>");
        check("<thin", "", "<thin");
        check("<b>bold</b>", "", "<b>bold</b>");
        check("  lead", "", "  lead");
        let late = format!("{}<think>x</think>", "\n".repeat(LEAD_BYTES_MAX + 1));
        check(&late, "", &late);
        check("a</think>b", "", "a</think>b");
        check("<think></think>ok <think>x</think>", "", "ok <think>x</think>");
    }
}

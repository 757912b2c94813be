//! Outputs that were shown in part, kept for `/show`: the newest, up to a bound.

use std::collections::{HashSet, VecDeque};

use super::stream::INDENT;
use crate::render::style::{Attrs, Style};
use crate::render::{diff_view, line};
use crate::text;

/// Of all that is kept.
pub const OUTPUTS_BYTES_MAX: usize = 4 << 20;
/// Of one output; a longer one loses its middle.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// What a call gave out, as a person may ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Calls of a chat count from 1.
    pub number: usize,
    /// The model's id of the call.
    pub call_id: String,
    pub name: String,
    pub subject: String,
    pub text: String,
}

impl Shown {
    /// All of it, painted; only a diff's lines are cut to the width.
    pub fn lines(&self, columns: usize, style: Style) -> Vec<String> {
        let inner = columns.saturating_sub(INDENT);
        let mut head = style.paint(Attrs::BOLD, &text::visible_line(&self.name));
        if !self.subject.is_empty() {
            head.push_str(&format!(" {}", text::visible_line(&self.subject)));
        }
        let mut lines = vec![format!("• {head}")];
        let mut before = self.text.as_str();
        let mut diff = String::new();
        if matches!(self.name.as_str(), "edit" | "write")
            && let Some(found) = diff_view::find(&self.text)
        {
            before = &self.text[..self.text.len() - found.len()];
            diff = diff_view::render(found, style, inner, usize::MAX, "");
        }
        let body = line::wrap(before.trim_end_matches(['\n', '\r']), inner);
        let body = body.iter().map(String::as_str).chain(diff.lines());
        lines.extend(body.map(|line| format!("{:INDENT$}{line}", "").trim_end().to_owned()));
        lines
    }
}

#[derive(Debug, Default)]
pub struct Outputs {
    kept: VecDeque<Shown>,
    /// Numbers of those that do not belong to the conversation any more.
    left: HashSet<usize>,
    bytes: usize,
}

impl Outputs {
    pub fn keep(&mut self, mut shown: Shown) {
        if OUTPUT_BYTES_MAX < shown.text.len() {
            shown.text = text::head_tail(&shown.text, OUTPUT_BYTES_MAX).into_owned();
        }
        self.bytes += shown.text.len();
        self.kept.push_back(shown);
        while OUTPUTS_BYTES_MAX < self.bytes
            && let Some(oldest) = self.kept.pop_front()
        {
            self.bytes -= oldest.text.len();
            self.left.remove(&oldest.number);
        }
    }

    /// From here on only the outputs of these calls belong to the conversation.
    pub fn leave_all_but(&mut self, calls: &HashSet<String>) {
        let left = self.kept.iter().filter(|shown| !calls.contains(&shown.call_id));
        self.left = left.map(|shown| shown.number).collect();
    }

    /// The number of the last one of the conversation, 0 for none.
    pub fn last(&self) -> usize {
        let mut numbers = self.kept.iter().rev().map(|shown| shown.number);
        numbers.find(|number| !self.left.contains(number)).unwrap_or(0)
    }

    pub fn get(&self, number: usize) -> Option<&Shown> {
        self.kept.iter().find(|shown| shown.number == number)
    }

    /// From the oldest on.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Shown> {
        self.kept.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(number: usize, text: String) -> Shown {
        let (call_id, name) = (format!("c{number}"), "bash".to_owned());
        Shown { number, call_id, name, subject: "x\x1b".to_owned(), text }
    }

    #[test]
    fn the_last_one_is_of_the_conversation_and_any_can_be_had_by_its_number() {
        let mut outputs = Outputs::default();
        (1..=3).for_each(|number| outputs.keep(shown(number, "x".to_owned())));
        assert_eq!(outputs.last(), 3);
        outputs.leave_all_but(&["c1".to_owned()].into());
        assert_eq!((outputs.last(), outputs.get(3).is_some()), (1, true));
        outputs.keep(shown(4, "x".to_owned()));
        assert_eq!(outputs.last(), 4);
        // Taken up again.
        outputs.leave_all_but(&["c1".to_owned(), "c2".to_owned()].into());
        assert_eq!(outputs.last(), 2);
        outputs.leave_all_but(&HashSet::new());
        assert_eq!(outputs.last(), 0);
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut outputs = Outputs::default();
        for number in 1..=100 {
            outputs.keep(shown(number, "line\n".repeat(20_000)));
            let bytes: usize = outputs.iter().map(|shown| shown.text.len()).sum();
            assert!(bytes <= OUTPUTS_BYTES_MAX);
        }
        assert_eq!(outputs.iter().next().map(|shown| shown.number), Some(60));
        assert!(outputs.get(59).is_none() && outputs.get(100).is_some());
        outputs.keep(shown(101, "x".repeat(3 << 20)));
        let text = &outputs.get(101).unwrap().text;
        assert!(text.len() <= OUTPUT_BYTES_MAX && text.contains(" left out "), "{}", text.len());
    }

    #[test]
    fn an_output_is_shown_whole_and_harmless() {
        let text = format!("{}\n\tb\r\n\x1b[2Jc\n\n", "a".repeat(15));
        let lines = shown(1, text).lines(12, Style::plain());
        assert_eq!(lines, ["• bash x^[", "  aaaaaaaaaa", "  aaaaa", "      b", "  ^[[2Jc"]);
        let text = "Done.\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n".to_owned();
        let edit = Shown { name: "edit".to_owned(), ..shown(1, text) };
        assert_eq!(
            edit.lines(80, Style::plain()),
            ["• edit x^[", "  Done.", "  1   - a", "    1 + b"]
        );
    }
}

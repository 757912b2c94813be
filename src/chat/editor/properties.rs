//! Whatever keys come: the rules hold, and the editor does what simpler code does.

use super::*;
use crate::chat::editor::tests::{state, type_keys};
use crate::render::style::painted_width;
use crate::text;

fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |bound| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    }
}

const NASTY: [&str; 25] = [
    "\u{202e}", "a", "b ", " ", "\t", "<C-j>", "<C-j>", "界", "e", "\u{301}", "👩", "\u{200d}",
    "💻", "\u{fe0f}", "🇩", "🇪", "🏽", "क", "\u{94d}", "ि", "\u{200b}", "\u{ad}", "word", "-", "가",
];
const MOVES: [&str; 16] = [
    "<Left>",
    "<Right>",
    "<Up>",
    "<Down>",
    "<Home>",
    "<End>",
    "<C-Left>",
    "<C-Right>",
    "<C-Home>",
    "<C-End>",
    "<C-p>",
    "<C-n>",
    "<Left>",
    "<Left>",
    "<Right>",
    "<Up>",
];
const CHANGES: [&str; 13] = [
    "<BS>", "<BS>", "<Del>", "<C-w>", "<M-BS>", "<M-d>", "<C-k>", "<C-u>", "<C-y>", "<C-_>",
    "<BS>", "<Del>", "<C-_>",
];

fn random_keys(below: &mut impl FnMut(usize) -> usize) -> &'static str {
    match below(10) {
        0..=4 => NASTY[below(NASTY.len())],
        5..=7 => MOVES[below(MOVES.len())],
        _ => CHANGES[below(CHANGES.len())],
    }
}

/// What holds after every key.
fn check_always(editor: &Editor, (columns, rows_max): (usize, usize), about: &str) {
    let (draft, cursor) = (editor.buffer.text(), editor.buffer.cursor());
    let mut ends = vec![0];
    ends.extend(text::clusters(draft).scan(0, |end, cluster| {
        *end += cluster.len();
        Some(*end)
    }));
    assert!(ends.contains(&cursor), "{cursor} within a cluster of {draft:?}: {about}");

    let view = editor.view(columns, rows_max, "> ", Style::plain());
    assert!(view.rows.len() <= rows_max.max(1), "{about}");
    for row in &view.rows {
        assert!(painted_width(row) <= columns, "{row:?} in {columns}: {about}");
        assert_eq!(text::visible_line(row), *row, "{about}");
    }
    let (row, column) = view.cursor;
    let before = text::fit_width(&view.rows[row], column);
    assert_eq!(text::width(before), column, "within a cluster of {view:?}: {about}");
    assert!(row < view.rows.len() && column < columns, "{view:?}: {about}");

    // What is remembered of the layout is what a new layout says.
    let mut fresh = Rows::default();
    let indent = if 6 <= columns { 2 } else { 0 };
    fresh.set_columns(columns - indent);
    let mut kept = editor.rows.borrow_mut();
    for row in 0.. {
        let range = fresh.range(editor.draft(), row);
        assert_eq!(kept.range(editor.draft(), row), range, "{draft:?} in {columns}: {about}");
        let Some(range) = range else { break };
        assert!(!range.is_empty() || range.end == draft.len(), "{draft:?}: {about}");
    }
}

#[test]
fn no_sequence_of_keys_breaks_the_rules() {
    for seed in 1..=400 {
        let mut below = random(seed * 0x9e37_79b9);
        let mut editor = Editor::default();
        editor.history().seed(["earlier prompt", "two\nlines 界"]);
        let size = ([1, 2, 3, 7, 12, 40][below(6)], [1, 2, 3, 8][below(4)]);
        let mut keys = String::new();
        for _ in 0..60 {
            let next = random_keys(&mut below);
            keys.push_str(next);
            type_keys(&mut editor, next);
            if below(40) == 0 {
                editor.paste(&"pasted\n".repeat(11));
                keys.push_str("<paste>");
            }
            check_always(&editor, size, &format!("seed {seed}: {keys}"));
        }
        // Back to the beginning.
        while editor.undo() {
            check_always(&editor, size, &format!("seed {seed}: {keys} undone"));
        }
        assert_eq!(state(&editor), "|", "seed {seed}: {keys}");
    }
}

/// The same by a plain list of clusters that is cut anew after each key.
struct Model {
    text: String,
    /// Clusters before the cursor.
    before: usize,
}

impl Model {
    fn clusters(&self) -> Vec<&str> {
        text::clusters(&self.text).collect()
    }

    fn at(&self) -> usize {
        self.clusters()[..self.before].concat().len()
    }

    fn replace(&mut self, range: Range<usize>, with: &str) {
        let end = range.start + with.len();
        self.text.replace_range(range, with);
        let mut length = 0;
        let within = |cluster: &&str| {
            length += cluster.len();
            length - cluster.len() < end
        };
        self.before = text::clusters(&self.text).take_while(within).count();
    }

    fn press(&mut self, key: &str) {
        let (at, count) = (self.at(), self.clusters().len());
        let length = |idx: usize| self.clusters()[idx].len();
        match key {
            "<Left>" => self.before = self.before.saturating_sub(1),
            "<Right>" => self.before = (self.before + 1).min(count),
            "<C-Home>" => self.before = 0,
            "<C-End>" => self.before = count,
            "<BS>" if self.before == 0 => {}
            "<BS>" => self.replace(at - length(self.before - 1)..at, ""),
            "<Del>" if self.before == count => {}
            "<Del>" => self.replace(at..at + length(self.before), ""),
            "<C-j>" => self.replace(at..at, "\n"),
            typed => {
                for c in typed.chars() {
                    let at = self.at();
                    self.replace(at..at, &c.to_string());
                }
            }
        }
    }
}

#[test]
fn the_editor_does_what_a_simple_model_does() {
    let moves = ["<Left>", "<Right>", "<Left>", "<C-Home>", "<C-End>", "<BS>", "<BS>", "<Del>"];
    for seed in 1..=600 {
        let mut below = random(seed * 0x9e37_79b9);
        let mut editor = Editor::default();
        let mut model = Model { text: String::new(), before: 0 };
        let mut keys = String::new();
        for _ in 0..50 {
            let next = match below(2) {
                0 => NASTY[below(NASTY.len())],
                _ => moves[below(moves.len())],
            };
            keys.push_str(next);
            type_keys(&mut editor, next);
            model.press(next);
            let (before, after) = model.text.split_at(model.at());
            assert_eq!(state(&editor), format!("{before}|{after}"), "seed {seed}: {keys}");
        }
    }
}

#[test]
fn a_large_draft_stays_whole_and_editable() {
    let line = "some words in a line that is a little longer than the screen, 界面 é\n";
    for large in [line.repeat(15_000), "x".repeat(1_000_000), "界".repeat(300_000)] {
        let mut editor = Editor::default();
        editor.set(&large);
        let view = editor.view(80, 10, "> ", Style::plain());
        assert_eq!((view.rows.len(), view.cursor.0), (10, 9));
        for _ in 0..100 {
            type_keys(&mut editor, "ab <Left><Up><BS>c<Down>");
            editor.view(80, 10, "> ", Style::plain());
        }
        while editor.undo() {}
        type_keys(&mut editor, "<C-_>");
        assert!(editor.is_empty());
        editor.set(&large);
        assert!(editor.take() == large);
    }
}

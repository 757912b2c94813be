//! What of a draft stands on the screen: painted rows and where the cursor is in them.

use std::ops::Range;

use crate::chat::editor::rows::{Draft, Rows, cell};
use crate::render::style::{Style, painted_width};
use crate::text;

/// Columns that text has at least; a prompt that leaves less is left out.
const TEXT_COLUMNS_MIN: usize = 4;

/// Painted lines and the place of the cursor in them: row and column, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub rows: Vec<String>,
    pub cursor: (usize, usize),
}

/// The room for a view, and how it is painted.
pub(super) struct Canvas<'a> {
    pub columns: usize,
    /// At least 1.
    pub rows_max: usize,
    pub prompt: &'a str,
    pub style: Style,
}

/// Paints at most `rows_max` rows, the cursor's among them. `top` is where the
/// rows of the view before began; it moves no further than the cursor and the end force it to.
pub(super) fn view(
    draft: Draft<'_>,
    cursor: usize,
    rows: &mut Rows,
    top: &mut usize,
    canvas: &Canvas<'_>,
) -> View {
    let columns = canvas.columns.max(1);
    let prompt_columns = painted_width(canvas.prompt);
    let is_roomy = prompt_columns + TEXT_COLUMNS_MIN <= columns;
    let (prompt, indent) = if is_roomy { (canvas.prompt, prompt_columns) } else { ("", 0) };
    rows.set_columns(columns - indent);

    let cursor_row = rows.row_of(draft, cursor);
    let first = first_row(draft, (cursor, cursor_row), rows, *top, canvas.rows_max);
    let ranges: Vec<Range<usize>> =
        (first..first + canvas.rows_max).map_while(|row| rows.range(draft, row)).collect();
    *top = ranges.first().map_or(0, |range| range.start);

    let is_cut = ranges.last().is_some_and(|range| range.end < draft.text.len());
    let painted = ranges.iter().enumerate().map(|(idx, range)| {
        let more = (idx == 0 && 0 < first) || (idx + 1 == ranges.len() && is_cut);
        let mut line = match first + idx {
            0 => prompt.to_owned(),
            _ if more && 0 < indent => canvas.style.dim("…") + &" ".repeat(indent - 1),
            _ => " ".repeat(indent),
        };
        paint(draft, range.clone(), rows.text_columns(), canvas.style, &mut line);
        line
    });
    let painted = painted.collect();
    let start = ranges.get(cursor_row - first).map_or(cursor, |range| range.start);
    let column = indent + rows.column_of(draft, start, cursor);
    View { rows: painted, cursor: (cursor_row - first, column) }
}

/// The first row of the view.
fn first_row(
    draft: Draft<'_>,
    (cursor, cursor_row): (usize, usize),
    rows: &mut Rows,
    top: usize,
    rows_max: usize,
) -> usize {
    let before = rows.row_of(draft, top.min(cursor));
    let mut first = before.clamp((cursor_row + 1).saturating_sub(rows_max), cursor_row);
    // No rows are left empty at the end while there are some above.
    while 0 < first && rows.range(draft, first + rows_max - 1).is_none() {
        first -= 1;
    }
    first
}

fn paint(
    draft: Draft<'_>,
    range: Range<usize>,
    columns_max: usize,
    style: Style,
    line: &mut String,
) {
    let mut column = 0;
    for cluster in text::clusters(&draft.text[range]) {
        let cell = cell(cluster, column, columns_max, draft.chips);
        match cell.is_stand_in {
            true => line.push_str(&style.cyan(&cell.text)),
            false => line.push_str(&cell.text),
        }
        column += cell.columns;
    }
}

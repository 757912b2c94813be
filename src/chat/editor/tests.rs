//! Keys in, text and cursor out.

use super::*;
use crate::chat::key::Mods;
use crate::text;

/// `<C-a>`, `<M-b>`, `<S-Enter>`, `<Left>` and alike; every other character as it is typed.
fn presses(keys: &str) -> Vec<Press> {
    let mut out = Vec::new();
    let mut rest = keys;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let (press, left) = match named.and_then(|(name, left)| Some((named_press(name)?, left))) {
            Some(named) => named,
            None => (Press { key: Key::Char(c), mods: Mods::NONE }, &rest[c.len_utf8()..]),
        };
        out.push(press);
        rest = left;
    }
    out
}

fn named_press(name: &str) -> Option<Press> {
    let (mut name, mut mods) = (name, Mods::NONE);
    for (prefix, one) in [("C-", Mods::CTRL), ("M-", Mods::ALT), ("S-", Mods::SHIFT)] {
        if let Some(rest) = name.strip_prefix(prefix) {
            (name, mods) = (rest, mods.with(one));
        }
    }
    let key = match name {
        "Left" => Key::Left,
        "Right" => Key::Right,
        "Up" => Key::Up,
        "Down" => Key::Down,
        "Home" => Key::Home,
        "End" => Key::End,
        "BS" => Key::Backspace,
        "Del" => Key::Delete,
        "Enter" => Key::Enter,
        "Tab" => Key::Tab,
        "Esc" => Key::Escape,
        "lt" => Key::Char('<'),
        "gt" => Key::Char('>'),
        _ => Key::Char(name.chars().next().filter(|c| name.len() == c.len_utf8())?),
    };
    Some(Press { key, mods })
}

/// What the last press said. A tab comes as pasted text: as a key it completes.
pub fn type_keys(editor: &mut Editor, keys: &str) -> bool {
    let mut meant = true;
    for press in presses(keys) {
        match press.key {
            Key::Char('\t') => editor.insert("\t"),
            _ => meant = editor.press(press),
        }
    }
    meant
}

/// The draft with `|` where the cursor is.
pub fn state(editor: &Editor) -> String {
    let draft = editor.buffer.text();
    let (before, after) = draft.split_at(editor.buffer.cursor());
    format!("{}|{}", editor.chips.expand(before), editor.chips.expand(after))
}

fn typed(keys: &str) -> Editor {
    let mut editor = Editor::default();
    type_keys(&mut editor, keys);
    editor
}

#[track_caller]
fn check(keys: &str, want: &str) {
    assert_eq!(state(&typed(keys)), want, "{keys}");
}

#[test]
fn keys_edit_as_people_are_used_to() {
    let table = [
        ("abc", "abc|"),
        ("abc<Left><Left>x", "ax|bc"),
        ("abc<C-b><C-b><C-f>x", "abx|c"),
        ("abc<Home>x<End>y", "xabcy|"),
        ("abc<C-a>x<C-e>y", "xabcy|"),
        ("one two<M-b>x", "one x|two"),
        ("one two<C-Left><C-Left>x", "x|one two"),
        ("one two<Home><M-f>x", "onex| two"),
        ("one two<Home><C-Right><C-Right>x", "one twox|"),
        ("a<C-j>b<S-Enter>c<M-Enter>d", "a\nb\nc\nd|"),
        ("ab<C-j>cd<C-a>x<C-Home>y<C-End>z", "yab\nxcdz|"),
        ("ab<C-j>cd<M-lt>y<M-gt>z", "yab\ncdz|"),
        // Deleting.
        ("abc<BS>", "ab|"),
        ("abc<C-h>", "ab|"),
        ("<BS>", "|"),
        ("abc<Home><Del>", "|bc"),
        ("abc<Home><C-d>", "|bc"),
        ("a<C-j>b<Home><BS>", "a|b"),
        ("ls a-b<C-w>", "ls |"),
        ("ls a-b<M-BS>", "ls a-|"),
        ("one two<Home><M-d>", "| two"),
        ("one two<Home><C-Del>x", "x| two"),
        ("one two<M-b><C-k>", "one |"),
        ("one two<M-b><C-u>", "|two"),
        ("a<C-j>b<C-u><C-u>", "a|"),
        ("a<C-j>b<C-Home><C-e><C-k>", "a|b"),
        // Putting back.
        ("one two<C-w><C-a><C-y>", "two|one "),
        ("one two three<C-w><C-w><C-y><C-y>", "one two threetwo three|"),
        ("one two<Home><M-d><M-d><C-y>", "one two|"),
        ("one two<Home><C-Right><C-k><C-u><C-y>", "one two|"),
        ("one<C-w>two<C-w><C-y>", "two|"),
        ("one<C-w><C-w><C-y>", "one|"),
        ("<C-y>", "|"),
        // Undoing.
        ("one two<C-_>", "one |"),
        ("one two<C-_><C-7><C-/>", "|"),
        ("one<C-w><C-_>", "one|"),
        ("one two<BS><BS><C-_>", "one two|"),
        ("ab<Left>x<C-_>", "a|b"),
        ("ab<C-j>c<C-_>", "ab\n|"),
        ("ab<C-_>c<C-_>", "|"),
        // Capital letters may come with Shift.
        ("a<S-B>", "aB|"),
    ];
    for (keys, want) in table {
        check(keys, want);
    }
}

#[test]
fn keys_that_are_not_the_editors_are_given_back() {
    for keys in ["<Enter>", "<Tab>", "<S-Tab>", "<Esc>", "<C-c>", "<C-d>", "<C-l>", "<C-o>"] {
        assert!(!type_keys(&mut Editor::default(), keys), "{keys}");
    }
    for keys in ["<C-r>", "<C-z>", "<C-x>", "<C-M-a>", "<M-x>", "<Up>", "<Down>", "<C-Up>"] {
        let mut editor = Editor::default();
        assert!(!type_keys(&mut editor, keys), "{keys}");
        assert_eq!(state(&editor), "|");
    }
    for keys in ["d", "x<C-d>", "<M-d>", "<Del>", "<BS>", "<Left>", "<C-k>", "<C-_>", "<S-Enter>"] {
        assert!(type_keys(&mut Editor::default(), keys), "{keys}");
    }
}

#[test]
fn one_key_moves_over_and_deletes_what_is_seen_as_one() {
    let units = [
        "❤\u{fe0f}",
        "👩\u{200d}💻",
        "🇩🇪",
        "👍🏽",
        "e\u{301}",
        "กำ",
        "ที่",
        "क्षि",
        "नि",
        "🧑\u{200d}🚒",
        "🪁",
        "±",
        "界",
        "a\u{200b}",
        "a\u{ad}",
        "각",
    ];
    for unit in units {
        check(&format!("{unit}<BS>x"), "x|");
        check(&format!("{unit}<Left><Del>x"), "x|");
        check(&format!("a{unit}b<Left><BS>x"), "ax|b");
        check(&format!("{unit}{unit}<Left><BS>x"), &format!("x|{unit}"));
        check(&format!("a{unit}b<Home><Right><Del>x"), "ax|b");
    }
    check("🧑\u{200d}🚒🪁<Left><BS>x", "x|🪁");
    check("🪁🧑\u{200d}🚒<Left><BS>x", "x|🧑\u{200d}🚒");
    // Alone, these are units of their own and can be deleted as such.
    for unit in ["\u{301}", "\u{200b}", "\u{200d}", "\u{ad}", "\u{fe0f}", "🇩", "🏽"] {
        check(unit, &format!("{unit}|"));
        check(&format!("{unit}<BS>x"), "x|");
        check(&format!("{unit}<Left><Del>x"), "x|");
    }
}

#[test]
fn rows_are_walked_in_the_column_where_the_walk_began() {
    let mut editor = Editor::default();
    editor.set("first line\nx\n\tthird 界界界界 longer");
    editor.view(20, 9, "> ", Style::plain());
    type_keys(&mut editor, "<C-Home><C-Right>");
    assert_eq!(state(&editor), "first| line\nx\n\tthird 界界界界 longer");
    type_keys(&mut editor, "<Down>");
    assert_eq!(state(&editor), "first line\nx|\n\tthird 界界界界 longer");
    type_keys(&mut editor, "<Down>");
    assert_eq!(state(&editor), "first line\nx\n\tt|hird 界界界界 longer");
    type_keys(&mut editor, "<Down>");
    assert_eq!(state(&editor), "first line\nx\n\tthird 界界界界 lo|nger");
    type_keys(&mut editor, "<C-p><C-p><C-p>");
    assert_eq!(state(&editor), "first| line\nx\n\tthird 界界界界 longer");
    assert!(type_keys(&mut editor, "<End><C-n>"));
    assert_eq!(state(&editor), "first line\nx|\n\tthird 界界界界 longer");
}

#[test]
fn up_and_down_recall_prompts_and_keep_the_draft() {
    let mut editor = Editor::default();
    editor.history().seed(["one", "two\nlines", "three"]);
    type_keys(&mut editor, "draft<Left><Up>");
    assert_eq!(state(&editor), "three|");
    type_keys(&mut editor, "<Up><Up>");
    assert_eq!(state(&editor), "one|");
    assert!(!type_keys(&mut editor, "<Up>"));
    type_keys(&mut editor, "<Down>");
    assert_eq!(state(&editor), "two\nlines|");
    // Once the cursor was moved, rows come first.
    type_keys(&mut editor, "<Left><Up>");
    assert_eq!(state(&editor), "two|\nlines");
    type_keys(&mut editor, "<Up>");
    assert_eq!(state(&editor), "one|");
    type_keys(&mut editor, "<Down><Down><Down>");
    assert_eq!(state(&editor), "draft|");
    assert!(!type_keys(&mut editor, "<Down>"));
    // What is sent is the newest.
    assert_eq!(editor.take(), "draft");
    assert_eq!(state(&editor), "|");
    assert!(!editor.undo());
    type_keys(&mut editor, "<Up>");
    assert_eq!(state(&editor), "draft|");
}

#[test]
fn a_recall_can_be_undone() {
    let mut editor = Editor::default();
    editor.history().seed(["one", "two"]);
    type_keys(&mut editor, "dra<C-p><C-p><C-_>");
    assert_eq!(state(&editor), "dra|");
    type_keys(&mut editor, "ft<Up>");
    assert_eq!(state(&editor), "two|");
    editor.set("from outside\r\n");
    assert_eq!(state(&editor), "from outside\n|");
    type_keys(&mut editor, "<C-_><C-_>");
    assert_eq!(state(&editor), "draft|");
}

#[test]
fn large_pastes_are_one_unit_until_they_are_sent() {
    let large: String = (1..=120).map(|n| format!("line {n}\r\n")).collect();
    let clean = large.replace('\r', "");
    let mut editor = typed("see : ok<Left><Left><Left><Left>");
    editor.paste(&large);
    let view = editor.view(40, 5, "> ", Style::plain());
    assert_eq!(view.rows, ["> see [pasted 120 lines]: ok"]);
    assert_eq!(view.cursor, (0, 24));
    assert_eq!(editor.text(), format!("see {clean}: ok"));
    // Over it, away with it, and back.
    type_keys(&mut editor, "<Left>x<Right><BS>");
    assert_eq!(state(&editor), "see x|: ok");
    type_keys(&mut editor, "<C-_>");
    assert_eq!(state(&editor), format!("see x{clean}|: ok"));
    type_keys(&mut editor, "<C-u><C-e> <C-y>");
    assert_eq!(editor.text(), format!(": ok see x{clean}"));
    // A walk through the history and back keeps it folded.
    editor.history().seed(["earlier"]);
    type_keys(&mut editor, "<Up><Down>");
    let view = editor.view(40, 5, "> ", Style::plain());
    assert_eq!(view.rows, ["> : ok see x[pasted 120 lines]"]);
    assert_eq!(editor.take(), format!(": ok see x{clean}"));
    // What was killed outlives the draft.
    type_keys(&mut editor, "<C-y>");
    assert_eq!(editor.text(), format!("see x{clean}"));
    editor.paste("small\nenough");
    assert!(editor.text().ends_with("small\nenough"));
}

#[test]
fn completion_exchanges_what_stands_before_the_cursor() {
    let mut editor = typed("see @src/m now<M-b><Left>");
    assert_eq!(editor.before_cursor(), "see @src/m");
    editor.replace_before_cursor(6, "@src/main.rs ");
    assert_eq!(state(&editor), "see @src/main.rs | now");
    type_keys(&mut editor, "<C-_>");
    assert_eq!(state(&editor), "see @src/m| now");
    editor.replace_before_cursor(1000, "é");
    assert_eq!(state(&editor), "é| now");
    editor.replace_before_cursor(1, "");
    assert_eq!(state(&editor), "| now");
}

#[track_caller]
fn check_view(editor: &Editor, columns: usize, rows_max: usize, want: &[&str]) {
    let mut view = editor.view(columns, rows_max, "> ", Style::plain());
    let (row, column) = view.cursor;
    let before = text::fit_width(&view.rows[row], column).len();
    assert!(text::width(&view.rows[row][..before]) == column, "{view:?}");
    view.rows[row].insert(before, '|');
    assert_eq!(view.rows, want);
}

#[test]
fn the_view_shows_the_cursor_where_it_is() {
    check_view(&typed(""), 10, 3, &["> |"]);
    check_view(&typed("hello world"), 10, 3, &["> hello ", "  world|"]);
    check_view(&typed("hello world<Home>"), 10, 3, &["> |hello ", "  world"]);
    check_view(&typed("hello world<M-b>"), 10, 3, &["> hello ", "  |world"]);
    check_view(&typed("abcdefg"), 10, 3, &["> abcdefg|"]);
    check_view(&typed("abcdefgh"), 10, 3, &["> abcdefg", "  h|"]);
    check_view(&typed("a<C-j>"), 10, 3, &["> a", "  |"]);
    check_view(&typed("界👩\u{200d}💻e\u{301}<Left>"), 10, 3, &["> 界👩\u{200d}💻|e\u{301}"]);
    check_view(&typed("\u{301}<C-j>e\u{301}"), 20, 3, &["> \\u{301}", "  e\u{301}|"]);
    // No room for the prompt.
    check_view(&typed("abc"), 5, 3, &["abc|"]);
    check_view(&typed("ab"), 1, 3, &["a", "|b"]);
    check_view(&typed("界"), 1, 3, &["|…"]);
    let mut editor = Editor::default();
    editor.set("a\tb\x1b[31mc");
    check_view(&editor, 30, 3, &["> a   b^[[31mc|"]);
    let view = editor.view(30, 3, "> ", Style::coloured());
    assert_eq!(view.rows, ["> a   b\x1b[36m^[\x1b[0m[31mc"]);
}

#[test]
fn the_view_moves_no_further_than_it_must() {
    let mut editor = Editor::default();
    editor.set("1\n2\n3\n4\n5\n6\n7");
    check_view(&editor, 10, 3, &["… 5", "  6", "  7|"]);
    type_keys(&mut editor, "<Up><Up>");
    check_view(&editor, 10, 3, &["… 5|", "  6", "  7"]);
    type_keys(&mut editor, "<Up>");
    check_view(&editor, 10, 3, &["… 4|", "  5", "… 6"]);
    type_keys(&mut editor, "<Down><Down><Down>");
    check_view(&editor, 10, 3, &["… 5", "  6", "  7|"]);
    // The end does not leave empty rows, another width keeps the cursor.
    type_keys(&mut editor, "<BS><BS>");
    check_view(&editor, 10, 3, &["… 4", "  5", "  6|"]);
    check_view(&editor, 10, 5, &["… 2", "  3", "  4", "  5", "  6|"]);
    check_view(&editor, 10, 9, &["> 1", "  2", "  3", "  4", "  5", "  6|"]);
    type_keys(&mut editor, "<C-Home>");
    check_view(&editor, 10, 2, &["> |1", "… 2"]);
    check_view(&editor, 10, 0, &["> |1"]);
}

//! Markdown for a terminal, rendered as it arrives.
//!
//! What was given out never changes: the output only grows, nothing is printed twice and no line
//! jumps. So text comes out as soon as nothing behind it can change how it looks:
//!
//! - a paragraph word by word; behind a mark that may open emphasis, code or a link, the words
//!   wait for its partner, but only for a bounded stretch of text;
//! - headings, code and rules line by line;
//! - a table when it ends, or after so many rows that they tell the widths.
//!
//! However the text is cut into pieces, the whole output is the same; work and memory are linear
//! in it.
//!
//! The language is CommonMark with the tables, tasks, strike-through and addresses of GitHub,
//! except where it has to look ahead without bounds, and where models write something else:
//!
//! - a line end inside a paragraph is kept;
//! - a line of dashes below text is a rule, and one of `=` is text: they make no heading;
//! - rows of tables begin with `|`; links by reference and HTML are shown as text;
//! - a list below an item may be indented by two columns, whatever the item's marker;
//! - a fence inside an item ends with its fence, even where the code is indented too little.
//!
//! Control characters and bidi overrides are made visible before anything else. No line is wider
//! than the terminal, except code and words that hold `://`: these are left whole, so that they
//! can be copied. Without colours the marks of emphasis and code stay: the output is text that
//! reads as Markdown.

mod blocks;
mod entity;
mod inline;
mod scan;
mod start;
mod table;
mod wrap;

use super::style::Style;
use crate::text;
use blocks::Blocks;

/// Narrower than this nothing is laid out.
const COLUMNS_MIN: usize = 16;

/// One document after the other.
#[derive(Debug, Clone)]
pub struct Markdown {
    columns: usize,
    style: Style,
    blocks: Blocks,
    /// The last piece ended with a CR, which may be half of a line end.
    after_cr: bool,
    /// Give out whole lines only; the begun one waits here.
    begun: Option<String>,
}

impl Markdown {
    /// Gives out words as they come.
    pub fn new(columns: usize, style: Style) -> Markdown {
        let columns = columns.max(COLUMNS_MIN);
        let blocks = Blocks::new(columns, style);
        Markdown { columns, style, blocks, after_cr: false, begun: None }
    }

    /// Gives out finished lines; what is still open is shown by [`Markdown::tail`].
    pub fn by_lines(columns: usize, style: Style) -> Markdown {
        Markdown { begun: Some(String::new()), ..Markdown::new(columns, style) }
    }

    /// Takes more of the text; returns what of the output is final now.
    pub fn push(&mut self, text: &str) -> String {
        let with_cr;
        let mut text = text;
        if self.after_cr && !text.is_empty() {
            with_cr = format!("\r{text}");
            text = &with_cr;
            self.after_cr = false;
        }
        if let Some(before) = text.strip_suffix('\r') {
            self.after_cr = true;
            text = before;
        }
        match text.contains('\r') {
            true => self.blocks.push(&text::visible(&text.replace("\r\n", "\n"))),
            false => self.blocks.push(&text::visible(text)),
        }
        self.take()
    }

    /// Ends the document; returns the rest of it. The next text begins a new one.
    pub fn finish(&mut self) -> String {
        self.blocks.finish();
        let mut rest = self.begun.as_mut().map(std::mem::take).unwrap_or_default();
        rest.push_str(&self.blocks.wrap.take());
        self.blocks = Blocks::new(self.columns, self.style);
        self.after_cr = false;
        rest
    }

    /// What [`Markdown::finish`] would give now: the part that may still change.
    pub fn tail(&self) -> String {
        self.clone().finish()
    }

    /// Whether the output so far ends inside a line.
    pub fn is_mid_line(&self) -> bool {
        self.begun.is_none() && self.blocks.wrap.is_mid_line()
    }

    /// The terminal's width from the next line on.
    pub fn set_columns(&mut self, columns: usize) {
        self.columns = columns.max(COLUMNS_MIN);
        self.blocks.wrap.columns = self.columns;
    }

    fn take(&mut self) -> String {
        let text = self.blocks.wrap.take();
        let Some(begun) = &mut self.begun else { return text };
        begun.push_str(&text);
        match begun.rfind('\n') {
            Some(end) => {
                let rest = begun.split_off(end + 1);
                std::mem::replace(begun, rest)
            }
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::render::style::painted_width;

    const PLAIN: fn() -> Style = Style::plain;
    const COLOURED: fn() -> Style = Style::coloured;

    fn whole(text: &str, columns: usize, style: Style) -> String {
        let mut markdown = Markdown::new(columns, style);
        let mut out = markdown.push(text);
        out.push_str(&markdown.finish());
        out
    }

    /// The output in one piece, which must be that of every cut into two and of single characters.
    fn render(text: &str, columns: usize, style: Style) -> String {
        let want = whole(text, columns, style);
        let mut by_lines = Markdown::by_lines(columns, style);
        let mut lines = String::new();
        let mut single = Markdown::new(columns, style);
        let mut out = String::new();
        for c in text.chars() {
            out.push_str(&single.push(c.encode_utf8(&mut [0; 4])));
            lines.push_str(&by_lines.push(c.encode_utf8(&mut [0; 4])));
            assert!(lines.is_empty() || lines.ends_with('\n'));
        }
        lines.push_str(&by_lines.tail());
        out.push_str(&single.finish());
        assert_eq!(out, want, "by characters: {text:?}");
        assert_eq!(lines, want, "by lines: {text:?}");
        let cuts: Vec<_> = (0..text.len()).filter(|&cut| text.is_char_boundary(cut)).collect();
        // All cuts of short texts, some of long ones.
        for &cut in cuts.iter().step_by(1 + cuts.len() / 200) {
            let mut markdown = Markdown::new(columns, style);
            let mut out = markdown.push(&text[..cut]);
            out.push_str(&markdown.push(&text[cut..]));
            out.push_str(&markdown.finish());
            assert_eq!(out, want, "cut at {cut}: {text:?}");
        }
        want
    }

    /// Plain output, `¶` for a line end.
    #[track_caller]
    fn plain(text: &str, want: &str) {
        let shown = render(text, 40, PLAIN());
        assert_eq!(shown.trim_end_matches('\n').replace('\n', "¶"), want, "{text:?}");
        assert!(shown.is_empty() || shown.ends_with('\n') && !shown.ends_with("\n\n"), "{shown:?}");
    }

    /// Coloured output: `{b:text}` for what is painted.
    #[track_caller]
    fn painted(text: &str, want: &str) {
        let shown = render(text, 40, COLOURED());
        let shown = shown.trim_end_matches('\n').replace('\n', "¶").replace("\x1b[0m", "}");
        let mut out = String::new();
        let mut parts = shown.split("\x1b[");
        out.push_str(parts.next().unwrap());
        for part in parts {
            let (codes, text) = part.split_once('m').unwrap();
            let names: String = codes
                .split(';')
                .map(|code| match code {
                    "1" => "b",
                    "2" => "d",
                    "3" => "i",
                    "4" => "u",
                    "9" => "s",
                    "32" => "g",
                    "36" => "c",
                    other => panic!("unexpected code {other}"),
                })
                .collect();
            out.push_str(&format!("{{{names}:{text}"));
        }
        assert_eq!(out, want, "{text:?}");
    }

    #[test]
    fn paragraphs_keep_their_lines_and_stand_apart() {
        plain("", "");
        plain("\n\n", "");
        plain("one", "one");
        plain("one\ntwo  \nthree\\\nfour\n\n\n\nfive", "one¶two¶three¶four¶¶five");
        plain("a b\n---\nc\n===", "a b¶¶---¶¶c¶===");
        plain("   a\n       b", "a¶b");
        plain("\u{feff}x\r\ny\r\n\r\nz", "\u{feff}x¶y¶¶z");
        plain(
            "123456789 123456789 123456789 123456789 1",
            "123456789 123456789 123456789 123456789¶1",
        );
    }

    #[test]
    fn headings_lists_and_quotes() {
        plain("# One #\ntext\n## Two\n### C#", "# One¶text¶¶## Two¶¶### C#");
        plain("#no\n#######no\n#", "#no¶#######no¶¶#");
        plain("- a\n- b\n\n- c\n* d", "- a¶- b¶¶- c¶- d");
        plain("- a\n  - b\n    - c\n- d", "- a¶  - b¶    - c¶- d");
        plain("- a\n    - b\n        - c", "- a¶  - b¶    - c");
        plain("1. a\n  - b\n2. c", "1. a¶   - b¶2. c");
        plain("1. a\n\n   more\n\n1. b\n1. c", "1. a¶¶   more¶¶2. b¶3. c");
        plain("7) a\n8) b\n\nend", "7) a¶8) b¶¶end");
        plain("- [ ] a\n- [x] b\n- [y] c\n- []", "[ ] a¶[x] b¶- [y] c¶- []");
        plain("-\n- a\n-\n  b\n-", "-¶- a¶- b¶-");
        plain("- a\nlazy\n\nout", "- a¶  lazy¶¶out");
        plain("> a\nlazy\n> b\n>\n> c\n\nd", "> a¶> lazy¶> b¶>¶> c¶¶d");
        plain("> - a\n>   b\n> > c", "> - a¶>   b¶> > c");
        plain("- > a\n  > b\n- c", "- > a¶  > b¶- c");
        plain("the\n1986. year\n1. one", "the¶1986. year¶1. one");
        plain("x\n-5 or +3\n- y", "x¶-5 or +3¶- y");
        plain("- a\n\n      code\n\n  b", "- a¶¶      code¶¶  b");
        plain("1. a\n   ```\n   x\n   ```\n2. b", "1. a¶   ```¶   x¶   ```¶2. b");
        plain("- - a\n  - b", "- - a¶  - b");
        plain("- # h\n- b", "- # h¶- b");
        plain("-\ta\n\tb\n1.\tc", "- a¶  b¶1. c");
    }

    #[test]
    fn code_is_left_alone() {
        plain(
            "a\n```rust\nfn *x*() {\n\t&amp;\n\n}\n```\nb",
            "a¶¶```rust¶fn *x*() {¶\t&amp;¶¶}¶```¶¶b",
        );
        plain("~~~~\n```\n~~~\n~~~~~\nx", "~~~~¶```¶~~~¶~~~~¶¶x");
        plain("```\nunclosed", "```¶unclosed¶```");
        plain("```", "```¶```");
        plain("```a`b\n```", "```a`b¶¶```¶```");
        plain("  ```\n  a\n    b\n c\n  ```", "```¶a¶  b¶c¶```");
        plain("- a\n  ```\nb\n  ```\n- c", "- a¶  ```¶  b¶  ```¶- c");
        plain("> ```\n> a\nb", "> ```¶> a¶> ```¶¶b");
        plain("    a\n      b\n\n\n    c\n\nd", "    a¶      b¶¶¶    c¶¶d");
        plain("\ta", "    a");
        let long = "x".repeat(100);
        plain(&format!("```\n{long}\n```"), &format!("```¶{long}¶```"));
        plain(&format!("see https://{long} now"), &format!("see¶https://{long}¶now"));
    }

    #[test]
    fn marks_become_attributes() {
        painted("*a* **b** ***c*** ~~d~~ `e`", "{i:a} {b:b} {bi:c} {s:d} {c:e}");
        painted("_a_ __b__ snake_case_name", "{i:a} {b:b} snake_case_name");
        painted("**a *b* c**", "{b:a} {bi:b} {b:c}");
        painted("*a **b***", "{i:a} {bi:b}");
        painted("***a** b*", "{bi:a} {i:b}");
        painted("f(*args, **kwargs) 2 * 3 * 4", "f(*args, **kwargs) 2 * 3 * 4");
        painted("un**frigging**believable", "un{b:frigging}believable");
        painted("**open\n\n*b*", "**open¶¶{i:b}");
        painted("**a\nb**", "{b:a}¶{b:b}");
        painted("``a ` b`` `d", "{c:a} {c:`} {c:b} `d");
        painted("` a ` `` ` `` `  `", "{c:a} {c:`}");
        painted("`*a*` *`b`*", "{c:*a*} {ic:b}");
        painted("\\*a\\* \\a &lt;b&gt; &copy; &nope; &#27;", "*a* \\a <b> © &nope; &#27;");
        painted("**中文。**后", "{b:中}{b:文。}后");
        painted("~5 to ~10", "~5 to ~10");
        painted("# A *b* `c`", "{bu:A}{u: }{biu:b}{u: }{buc:c}");
        painted("## B\n### C", "{b:B}¶¶{bi:C}");
        painted("- [x] **a**\n  - b", "{g:[x]} {b:a}¶    ◦ b");
        painted("> *a*", "{d:│} {i:a}");
        painted("```sh\n*a*\n```", "{d:```sh}¶*a*¶{d:```}");
    }

    #[test]
    fn links_show_their_address_once() {
        painted("[a b](http://x/y)", "{u:a}{u: }{u:b} {d:(http://x/y)}");
        plain("[a](x \"title\") [x](x) [b](<c d>)", "a (x) x b (c d)");
        plain("![alt](i.png) ![](i.png)", "alt (i.png) link (i.png)");
        plain("[![alt](i.png)](x)", "alt (i.png) (x)");
        plain("[a][b] [a] [a]: x a[0](", "[a][b] [a] [a]: x a[0](");
        plain("[`a.rs`](a.rs) [a](b(c)d)", "`a.rs` a (b(c)d)");
        painted(
            "<https://a.b/c_d_e> <me@x.org> <b>x</b>",
            "{u:https://a.b/c_d_e} {u:me@x.org} <b>x</b>",
        );
        painted("(https://a.b/c_(d)). http://", "({u:https://a.b/c_(d)}). http://");
        painted("**https://a.b/c** x", "{bu:https://a.b/c} x");
        plain("a < b, x<y\nz>", "a < b, x<y¶z>");
        plain("<div class=\"*a*\">\n<br>", "<div class=\"*a*\">¶<br>");
    }

    #[test]
    fn tables_fit_the_width() {
        let table = "| Name | N |\n|:-----|--:|\n| a | 1 |\n| b\\|c | 10 |\n";
        let want = "Name |  N¶-----|---¶a    |  1¶b|c  | 10";
        plain(table, want);
        plain(&format!("x\n{table}\ny"), &format!("x¶¶{want}¶¶y"));
        let inside = format!("- x\n\n  {}", table.replace('\n', "\n  "));
        plain(&inside, &format!("- x¶¶  {}", want.replace('¶', "¶  ")));
        plain("| a | b |\nno table", "| a | b |¶no table");
        plain("| a | b |\n\n|---|", "| a | b |¶¶|---|");
        plain("| a |\n|---|---|", "| a |¶|---|---|");
        plain(
            "| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |\nend",
            "a | b¶--|------¶1 |¶1 | 2 | 3¶¶end",
        );
        let shown = render(
            "| a | **b** |\n|:-:|---|\n| `x` | long words in a cell that wraps around |\n| y | z |\n",
            30,
            COLOURED(),
        );
        let bare: String = strip(&shown);
        let want = "a │ b\n──┼───────────────────────────\nx │ long words in a cell that\n  │ wraps around\n┈┈┼┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈\ny │ z\n";
        assert_eq!(bare, want);
        let records = render(
            "| Key | Value | Third | Fourth |\n|---|---|---|---|\n| k1 | some value | x | yyyyyyy |\n| k2 | | z | w |\n",
            20,
            PLAIN(),
        );
        assert_eq!(
            records,
            "Key: k1\nValue: some value\nThird: x\nFourth: yyyyyyy\n\nKey: k2\nThird: z\nFourth: w\n"
        );
        let long: String = (0..500).map(|n| format!("| {n} | x |\n")).collect();
        let long = format!("| n | y |\n|--:|---|\n{long}");
        let mut markdown = Markdown::new(40, PLAIN());
        assert!(markdown.push(&long).ends_with("498 | x\n499 | x\n"));
        assert_eq!(whole(&long, 40, PLAIN()).lines().count(), 502);
    }

    fn strip(text: &str) -> String {
        let mut parts = text.split("\x1b[");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |out, part| out + part.split_once('m').unwrap().1)
    }

    #[test]
    fn text_comes_out_as_soon_as_it_is_certain() {
        let mut markdown = Markdown::new(40, COLOURED());
        let mut step = |text: &str, want: &str| assert_eq!(markdown.push(text), want, "{text:?}");
        step("Hel", "");
        step("lo wor", "Hello");
        step("ld, **bo", " world,");
        step("ld** x", " \x1b[1mbold\x1b[0m");
        step("\n", " x\n");
        step("\n| a |\n|-", "");
        step("--|\n| b |\n", "\n");
        step("\n", "\x1b[1ma\x1b[0m\n\x1b[2m─\x1b[0m\nb\n");
        step("```\nco", "\n\x1b[2m```\x1b[0m\n");
        step("de\n", "code\n");
        assert!(!markdown.is_mid_line());
        assert_eq!(markdown.tail(), "\x1b[2m```\x1b[0m\n");
        assert_eq!(markdown.finish(), "\x1b[2m```\x1b[0m\n");
        assert_eq!(markdown.push("new "), "new");
        assert!(markdown.is_mid_line());
    }

    #[test]
    fn a_new_width_holds_from_the_next_line_on() {
        let mut markdown = Markdown::new(20, PLAIN());
        assert_eq!(markdown.push("one two three four five "), "one two three four\nfive");
        markdown.set_columns(40);
        assert_eq!(markdown.push("one two three four five\n"), " one two three four five\n");
    }

    /// Pieces that mean something to some part of the renderer.
    const PIECES: &[&str] = &[
        "a",
        " ",
        "  ",
        "\n",
        "\n\n",
        "*",
        "**",
        "_",
        "`",
        "```",
        "~~~",
        "~~",
        "#",
        "# ",
        "- ",
        "1. ",
        "2) ",
        "> ",
        "|",
        "| a | b |\n",
        "|---|:-:|\n",
        "[",
        "]",
        "(",
        ")",
        "![",
        "<",
        ">",
        "\\",
        "&",
        "amp;",
        "&#x41;",
        "---\n",
        "https://",
        "x.org/a_b",
        "\t",
        "    ",
        "界",
        "。",
        "e\u{301}",
        "\u{301}",
        "👩\u{200d}💻",
        "\r",
        "\r\n",
        "\x1b[2J",
        "\u{9b}31m",
        "\u{202e}",
        "[x] ",
        "word ",
        "longerwordthanthelineis ",
        "h",
        "ht",
        "http",
    ];

    #[test]
    fn no_text_depends_on_its_cuts_passes_the_width_or_controls_the_terminal() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below as u64) as usize
        };
        for round in 0..3000 {
            let count = 1 + next(24);
            let text: String = (0..count).map(|_| PIECES[next(PIECES.len())]).collect();
            let columns = [16, 18, 20, 23, 40, 80][next(6)];
            let style = if round % 3 == 0 { PLAIN() } else { COLOURED() };
            let want = whole(&text, columns, style);
            // In pieces of random sizes.
            let mut markdown = Markdown::new(columns, style);
            let (mut out, mut rest) = (String::new(), text.as_str());
            while let Some(c) = rest.chars().next() {
                let end = (c.len_utf8() + next(6)).min(rest.len());
                let end = text::floor_char(rest, end).len().max(c.len_utf8());
                out.push_str(&markdown.push(&rest[..end]));
                rest = &rest[end..];
                assert_eq!(out.matches("\x1b[0m").count() * 2, out.matches('\x1b').count());
            }
            out.push_str(&markdown.finish());
            assert_eq!(out, want, "{text:?}");
            let is_code = text.contains("```")
                || text.contains("~~~")
                || text.contains("    ")
                || text.contains('\t');
            for line in want.lines() {
                let is_free = is_code
                    || line.contains("://")
                    || columns <= 23 && 1 < text.matches("1. ").count();
                assert!(
                    is_free || painted_width(line) <= columns,
                    "{columns}: {line:?} of {text:?}"
                );
            }
            let bare = strip(&want);
            assert!(bare.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{bare:?}");
            assert!(!bare.contains('\u{202e}'));
        }
    }

    #[test]
    fn hostile_text_takes_linear_work() {
        let measure = |text: &str, piece_bytes: usize| {
            let begun = Instant::now();
            let mut markdown = Markdown::new(80, COLOURED());
            let mut out = 0;
            let mut rest = text;
            while !rest.is_empty() {
                let end = text::floor_char(rest, piece_bytes.max(4)).len();
                out += markdown.push(&rest[..end]).len();
                rest = &rest[end..];
            }
            out += markdown.finish().len();
            std::hint::black_box(out);
            begun.elapsed()
        };
        let pieces = [
            "word ",
            "word",
            "*",
            "* ",
            "*a ",
            "*a_",
            "**a**",
            "[",
            "[a](",
            "![",
            "`",
            "`a",
            "<a",
            "> ",
            "- ",
            "1. ",
            "#",
            "|",
            "| a ",
            "\\",
            "&",
            "&a",
            "~~",
            "_a",
            "\n",
            " ",
            "\t",
            "-",
            "=",
            "https://",
            "界",
            "\u{301}",
            "👩\u{200d}",
            "```\n",
            "| a |\n|---|\n",
            "[](",
            "](",
            "http",
            "\x1b",
            "\r",
        ];
        for piece in pieces {
            for piece_bytes in [4, usize::MAX] {
                // Eight times the text; quadratic work would take sixty times as long, each time.
                // A busy machine may spoil some of the tries.
                let is_linear = (0..10).any(|_| {
                    let few = measure(&piece.repeat(5_000 / piece.len()), piece_bytes);
                    let many = measure(&piece.repeat(40_000 / piece.len()), piece_bytes);
                    many.as_secs_f64() < 30.0 * few.as_secs_f64().max(0.01)
                });
                assert!(is_linear, "{piece:?} in pieces of {piece_bytes}");
            }
        }
    }
}

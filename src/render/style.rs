//! Colours and attributes: whether they are used at all, and text painted with them.
//!
//! Only attributes and the basic colours are used: they follow the palette that a person has
//! chosen, on a light ground and on a dark one. What is painted ends with a reset, so that no
//! attribute is left on behind it, and painted text may be painted again.
//!
//! [`Style::decide`] is the one place that knows the rules for using colour; the first that
//! applies wins:
//!
//! 1. `--color always` or `never`;
//! 2. `NO_COLOR`, not empty: no;
//! 3. `CLICOLOR_FORCE`, not empty and not `0`: yes, terminal or not;
//! 4. `CLICOLOR=0`: no;
//! 5. a stream that is no terminal: no;
//! 6. a `TERM` that is `dumb`, empty or missing: no.

use crate::host::Host;

/// What `--color` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Auto,
    Always,
    Never,
}

/// A set of attributes; a set holds one colour at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attrs(u16);

impl Attrs {
    pub const NONE: Attrs = Attrs(0);
    pub const BOLD: Attrs = Attrs(1);
    pub const DIM: Attrs = Attrs(1 << 1);
    pub const ITALIC: Attrs = Attrs(1 << 2);
    pub const UNDERLINE: Attrs = Attrs(1 << 3);
    pub const STRIKE: Attrs = Attrs(1 << 4);
    pub const RED: Attrs = Attrs(1 << 5);
    pub const GREEN: Attrs = Attrs(1 << 6);
    pub const YELLOW: Attrs = Attrs(1 << 7);
    pub const CYAN: Attrs = Attrs(1 << 8);

    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Attrs) -> Attrs {
        Attrs(self.0 | other.0)
    }

    /// What both sets have.
    #[must_use]
    pub const fn only(self, other: Attrs) -> Attrs {
        Attrs(self.0 & other.0)
    }
}

/// The parameters that turn attributes on, in the order in which they are written.
const CODES: [(Attrs, &str); 9] = [
    (Attrs::BOLD, "1"),
    (Attrs::DIM, "2"),
    (Attrs::ITALIC, "3"),
    (Attrs::UNDERLINE, "4"),
    (Attrs::STRIKE, "9"),
    (Attrs::RED, "31"),
    (Attrs::GREEN, "32"),
    (Attrs::YELLOW, "33"),
    (Attrs::CYAN, "36"),
];

const RESET: &str = "\x1b[0m";

/// Whether text is painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// Nothing is painted.
    pub fn plain() -> Style {
        Style { colour: false }
    }

    pub fn coloured() -> Style {
        Style { colour: true }
    }

    /// By the rules above; `terminal` says what the stream is.
    pub fn decide(choice: Choice, host: &Host, terminal: bool) -> Style {
        let var = |name| host.var(name).unwrap_or_default();
        let colour = match choice {
            Choice::Always => true,
            Choice::Never => false,
            Choice::Auto if !var("NO_COLOR").is_empty() => false,
            Choice::Auto if !matches!(var("CLICOLOR_FORCE"), "" | "0") => true,
            Choice::Auto => var("CLICOLOR") != "0" && terminal && !is_dumb(host),
        };
        Style { colour }
    }

    pub fn is_coloured(self) -> bool {
        self.colour
    }

    /// Text with these attributes on, added to those that parts of it have already. The text
    /// must hold no control character of others: see [`crate::text::visible`].
    pub fn paint(self, attrs: Attrs, text: &str) -> String {
        let mut out = String::new();
        self.paint_to(&mut out, attrs, text);
        out
    }

    /// [`Style::paint`] behind what `out` holds.
    pub fn paint_to(self, out: &mut String, attrs: Attrs, text: &str) {
        if !self.colour || text.is_empty() || attrs == Attrs::NONE {
            out.push_str(text);
            return;
        }
        let on: Vec<&str> =
            CODES.iter().filter(|(attr, _)| attrs.0 & attr.0 != 0).map(|(_, code)| *code).collect();
        let on = format!("\x1b[{}m", on.join(";"));
        out.push_str(&on);
        // A part that was painted ends with a reset: what follows it is painted anew.
        let inner = text.strip_suffix(RESET).unwrap_or(text);
        for (idx, part) in inner.split(RESET).enumerate() {
            if 0 < idx {
                out.push_str(RESET);
                out.push_str(&on);
            }
            out.push_str(part);
        }
        out.push_str(RESET);
    }

    pub fn bold(self, text: &str) -> String {
        self.paint(Attrs::BOLD, text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint(Attrs::DIM, text)
    }

    pub fn italic(self, text: &str) -> String {
        self.paint(Attrs::ITALIC, text)
    }

    pub fn red(self, text: &str) -> String {
        self.paint(Attrs::RED, text)
    }

    pub fn green(self, text: &str) -> String {
        self.paint(Attrs::GREEN, text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.paint(Attrs::YELLOW, text)
    }

    pub fn cyan(self, text: &str) -> String {
        self.paint(Attrs::CYAN, text)
    }
}

/// Whether the terminal can neither colour nor redraw, as far as `TERM` tells.
pub fn is_dumb(host: &Host) -> bool {
    matches!(host.var("TERM"), None | Some("" | "dumb"))
}

/// The columns that painted text takes: its width without the paint.
pub fn painted_width(text: &str) -> usize {
    let mut parts = text.split("\x1b[");
    let first = parts.next().map_or(0, crate::text::width);
    let behind = |part: &str| part.split_once('m').map_or(0, |(_, text)| crate::text::width(text));
    first + parts.map(behind).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_applies_decides_about_colour() {
        use Choice::{Always, Auto, Never};
        let table: &[(Choice, &str, bool, bool)] = &[
            (Auto, "TERM=xterm", true, true),
            (Auto, "TERM=xterm", false, false),
            (Auto, "TERM=dumb", true, false),
            (Auto, "TERM=", true, false),
            (Auto, "", true, false),
            (Auto, "TERM=xterm NO_COLOR=1", true, false),
            (Auto, "TERM=xterm NO_COLOR=", true, true),
            (Auto, "TERM=xterm CLICOLOR=0", true, false),
            (Auto, "TERM=xterm CLICOLOR=1", true, true),
            (Auto, "TERM=xterm CLICOLOR=1", false, false),
            (Auto, "CLICOLOR_FORCE=1", false, true),
            (Auto, "TERM=dumb CLICOLOR_FORCE=1", true, true),
            (Auto, "CLICOLOR=0 CLICOLOR_FORCE=1", false, true),
            (Auto, "TERM=xterm CLICOLOR_FORCE=0", false, false),
            (Auto, "TERM=xterm CLICOLOR_FORCE=0", true, true),
            (Auto, "TERM=xterm CLICOLOR_FORCE=", false, false),
            (Auto, "NO_COLOR=1 CLICOLOR_FORCE=1 TERM=xterm", true, false),
            (Always, "NO_COLOR=1 TERM=dumb CLICOLOR=0", false, true),
            (Never, "CLICOLOR_FORCE=1 TERM=xterm", true, false),
        ];
        for &(choice, vars, terminal, want) in table {
            let mut host = Host::fixed();
            for (name, value) in vars.split_whitespace().filter_map(|var| var.split_once('=')) {
                host = host.with_var(name, value);
            }
            let style = Style::decide(choice, &host, terminal);
            assert_eq!(style.is_coloured(), want, "{choice:?} {vars} terminal: {terminal}");
        }
    }

    #[test]
    fn painted_text_may_be_painted_again() {
        let style = Style::coloured();
        assert_eq!(style.bold("a"), "\x1b[1ma\x1b[0m");
        assert_eq!(style.bold(""), "");
        assert_eq!(style.paint(Attrs::NONE, "a"), "a");
        let both = Attrs::BOLD.with(Attrs::UNDERLINE).with(Attrs::RED);
        assert_eq!(style.paint(both, "a"), "\x1b[1;4;31ma\x1b[0m");
        let heading = style.bold(&format!("a {} c", style.cyan("b")));
        assert_eq!(heading, "\x1b[1ma \x1b[36mb\x1b[0m\x1b[1m c\x1b[0m");
        assert_eq!(style.dim(&heading), "\x1b[2m\x1b[1ma \x1b[36mb\x1b[0m\x1b[2m\x1b[1m c\x1b[0m");
        assert_eq!(painted_width(&style.dim(&heading)), 5);
        let plain = Style::plain();
        assert_eq!(plain.dim(&plain.bold("a")), "a");
    }
}

//! stub
use crate::host::Host;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Auto,
    Always,
    Never,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    colour: bool,
}
impl Style {
    pub fn plain() -> Style {
        Style { colour: false }
    }
    pub fn decide(choice: Choice, host: &Host, terminal: bool) -> Style {
        Style {
            colour: match choice {
                Choice::Always => true,
                Choice::Never => false,
                Choice::Auto => {
                    terminal && host.var("NO_COLOR").is_none() && host.var("TERM") != Some("dumb")
                }
            },
        }
    }
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
    pub fn red(self, text: &str) -> String {
        self.paint("31", text)
    }
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }
}

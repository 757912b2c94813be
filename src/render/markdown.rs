//! stub
use super::style::Style;
pub struct Markdown {
    open: bool,
}
impl Markdown {
    pub fn new(_columns: usize, _style: Style) -> Markdown {
        Markdown { open: false }
    }
    pub fn push(&mut self, text: &str) -> String {
        self.open = !text.ends_with('\n');
        crate::text::visible(text).into_owned()
    }
    pub fn finish(&mut self) -> String {
        if std::mem::take(&mut self.open) { "\n".into() } else { String::new() }
    }
}

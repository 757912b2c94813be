//! stub
use super::style::Style;
pub fn render(diff: &str, style: Style, _columns: usize, lines_max: usize) -> String {
    let mut out = String::new();
    for line in diff.lines().take(lines_max) {
        let line = crate::text::visible(line);
        out.push_str(&match line.as_bytes().first() {
            Some(b'+') => style.green(&line),
            Some(b'-') => style.red(&line),
            _ => line.into_owned(),
        });
        out.push('\n');
    }
    out
}

//! stub
use super::style::Style;
use std::time::Duration;
pub const CLEAR: &str = "\r\x1b[K";
pub fn draw(label: &str, elapsed: Duration, _columns: usize, style: Style) -> String {
    format!("\r{}\x1b[K", style.dim(&format!("• {label} ({}s)", elapsed.as_secs())))
}

//! The status line: what a run is doing, and for how long. One line, redrawn in place.

use std::time::Duration;

use super::style::Style;
use crate::text;

/// Takes the line away and leaves the cursor at its start.
pub const CLEAR: &str = "\r\x1b[K";

/// Draws the line in place of what stands on it. The last column stays free: a terminal that
/// wraps there would need two lines.
pub fn draw(label: &str, elapsed: Duration, columns: usize, style: Style) -> String {
    let line = format!("• {} {}", text::visible_line(label), clock(elapsed));
    let line = text::truncate_width(&line, columns.saturating_sub(1));
    format!("\r{}\x1b[K", style.dim(&line))
}

/// `3s`, `1m04s`, `2h05m`.
pub fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let table = [
            (0, "0s"),
            (59, "59s"),
            (60, "1m00s"),
            (64, "1m04s"),
            (3599, "59m59s"),
            (3600, "1h00m"),
            (90_000, "25h00m"),
        ];
        for (seconds, want) in table {
            assert_eq!(clock(Duration::from_secs(seconds)), want);
        }
    }

    #[test]
    fn the_line_leaves_the_last_column_free() {
        let draw =
            |columns| draw("thin\u{1b}king", Duration::from_secs(4), columns, Style::plain());
        assert_eq!(draw(80), "\r• thin^[king 4s\x1b[K");
        assert_eq!(draw(17), "\r• thin^[king 4s\x1b[K");
        assert_eq!(draw(16), "\r• thin^[king 4s\x1b[K");
        assert_eq!(draw(15), "\r• thin^[king …\x1b[K");
        assert_eq!(draw(2), "\r…\x1b[K");
        assert_eq!(draw(0), "\r\x1b[K");
    }
}

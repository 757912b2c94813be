//! Sizes and counts in words.

/// `1 line`, `2 lines`, `2 entries`, `2 matches`.
pub fn plural(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        _ if noun.ends_with("ch") => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

/// `512B`, `50.0KB`, `1.2MB`: powers of 1024.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit_idx = 0;
    // 1023.95 would be printed as 1024.0.
    while 1023.95 <= value && unit_idx + 1 < UNITS.len() {
        value /= 1024.0;
        unit_idx += 1;
    }
    format!("{value:.1}{}", UNITS[unit_idx])
}

/// `950`, `12.3k`, `1.2M`: powers of 1000, for tokens.
pub fn human_count(count: u64) -> String {
    let (value, unit) = match count {
        0..1_000 => return count.to_string(),
        1_000..999_950 => (count as f64 / 1e3, "k"),
        999_950..999_950_000 => (count as f64 / 1e6, "M"),
        _ => (count as f64 / 1e9, "G"),
    };
    format!("{value:.1}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_are_short_words() {
        let table = [
            (0, "0B", "0"),
            (1, "1B", "1"),
            (999, "999B", "999"),
            (1000, "1000B", "1.0k"),
            (1023, "1023B", "1.0k"),
            (1024, "1.0KB", "1.0k"),
            (51_200, "50.0KB", "51.2k"),
            (999_949, "976.5KB", "999.9k"),
            (999_950, "976.5KB", "1.0M"),
            (1_048_575, "1.0MB", "1.0M"),
            (1_258_291, "1.2MB", "1.3M"),
            (1 << 40, "1.0TB", "1099.5G"),
        ];
        for (number, bytes, count) in table {
            assert_eq!((&*human_bytes(number), &*human_count(number)), (bytes, count), "{number}");
        }
        assert_eq!(plural(0, "line"), "0 lines");
        assert_eq!(plural(1, "line"), "1 line");
    }
}

//! How long a server asks to wait, in the many forms in which servers say it.

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use crate::host::Timestamp;

type Headers<'a> = &'a [(String, String)];

/// The wait that headers or text ask for; `None` when neither does in a form that makes sense.
pub fn read(headers: Headers<'_>, text: &str, now: Timestamp) -> Option<Duration> {
    from_headers(headers, now).or_else(|| from_text(text))
}

fn from_headers(headers: Headers<'_>, now: Timestamp) -> Option<Duration> {
    let header =
        |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
    if let Some(millis) = header("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return duration(millis / 1000.0);
    }
    if let Some(value) = header("retry-after") {
        return match value.parse::<f64>() {
            Ok(seconds) => duration(seconds),
            Err(_) => Some(http_date(value)?.since(now)),
        };
    }
    // Budgets that are used up, with the time at which they are full again.
    let resets = ["-requests", "-tokens", ""].iter().filter_map(|which| {
        let remaining: f64 = header(&format!("x-ratelimit-remaining{which}"))?.parse().ok()?;
        let reset = header(&format!("x-ratelimit-reset{which}"))?;
        if remaining == 0.0 { reset_time(reset, now) } else { None }
    });
    resets.max()
}

/// `120ms`, `1s`, `6m0s`, `1h2m3.5s`, plain seconds, or a time since 1970 in s or ms.
fn reset_time(value: &str, now: Timestamp) -> Option<Duration> {
    let Ok(number) = value.parse::<f64>() else { return go_duration(value) };
    let now_seconds = Duration::from_nanos(now.0).as_secs_f64();
    match number {
        millis if millis > 1e12 => duration(millis / 1000.0 - now_seconds),
        seconds if seconds > 1e9 => duration(seconds - now_seconds),
        seconds => duration(seconds),
    }
}

fn go_duration(text: &str) -> Option<Duration> {
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        // `ms` before `m` and `s`.
        let (factor, unit_bytes) = match rest.as_bytes() {
            [b'm', b's', ..] => (0.001, 2),
            [b'h', ..] => (3600.0, 1),
            [b'm', ..] => (60.0, 1),
            [b's', ..] => (1.0, 1),
            _ => return None,
        };
        rest = &rest[unit_bytes..];
        seconds += number * factor;
    }
    duration(seconds)
}

/// Negative, endless and absurd waits are no waits.
fn duration(seconds: f64) -> Option<Duration> {
    if seconds > 0.0 { Duration::try_from_secs_f64(seconds).ok() } else { None }
}

/// `Wed, 21 Oct 2015 07:28:00 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, date) = text.split_once(", ")?;
    let mut words = date.split(' ');
    let (day, month, year, clock) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? + 1;
    Timestamp::parse(&format!("{year:0>4}-{month:02}-{day:0>2}T{clock}Z"))
}

/// "try again in 1.2s", "retry after 20 seconds", `"retryDelay": "31s"`.
fn from_text(text: &str) -> Option<Duration> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let pattern = r#"(?i)(?:try again in|retry after|"retryDelay":\s*")\s*([0-9.]+(?:ms|[hms])?(?:[0-9.]+(?:ms|[hms]))*)(?:\s*(seconds?|minutes?|hours?))?"#;
        Regex::new(pattern).ok()
    });
    let found = PATTERN.as_ref()?.captures(text)?;
    let number = found[1].trim_end_matches('.');
    let unit = found.get(2).map_or("", |unit| unit.as_str());
    match number.parse::<f64>() {
        Ok(count) => {
            let unit = unit.to_ascii_lowercase();
            let factor = match unit.as_bytes().first() {
                Some(b'm') => 60.0,
                Some(b'h') => 3600.0,
                _ => 1.0,
            };
            duration(count * factor)
        }
        Err(_) => go_duration(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01T00:00:00Z.
    const NOW: Timestamp = Timestamp(1_767_225_600_000_000_000);

    #[track_caller]
    fn check(headers: &[(&str, &str)], want: Option<f64>) {
        let headers: Vec<_> =
            headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let got = read(&headers, "", NOW).map(|wait| wait.as_secs_f64());
        assert_eq!(got, want, "{headers:?}");
    }

    #[test]
    fn retry_after_is_read_in_every_form_and_junk_is_ignored() {
        check(&[("retry-after", "2")], Some(2.0));
        check(&[("retry-after", " 0.5 ")], Some(0.5));
        check(&[("retry-after", "99999")], Some(99_999.0));
        check(&[("retry-after", "Thu, 01 Jan 2026 00:00:02 GMT")], Some(2.0));
        check(&[("retry-after", "Wed, 31 Dec 2025 00:00:00 GMT")], Some(0.0));
        check(&[("retry-after-ms", "120.5"), ("retry-after", "9")], Some(0.1205));
        for junk in ["-5", "soon", "NaN", "inf", "0", "", "Thu, 99 Foo 2026 00:00:02 GMT"] {
            check(&[("retry-after", junk)], None);
        }
    }

    #[test]
    fn reset_times_count_only_for_a_budget_that_is_used_up() {
        let reset = |remaining: &str, value: &str, want| {
            check(
                &[("x-ratelimit-remaining-tokens", remaining), ("x-ratelimit-reset-tokens", value)],
                want,
            );
        };
        reset("0", "6m0s", Some(360.0));
        reset("0", "120ms", Some(0.12));
        reset("0", "1h2m3.5s", Some(3723.5));
        reset("0", "7", Some(7.0));
        reset("7", "6m0s", None);
        reset("0", "junk", None);
        let unix = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1767225605000")];
        check(&unix, Some(5.0));
        let unix = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1767225605")];
        check(&unix, Some(5.0));
    }

    #[test]
    fn waits_are_found_in_text() {
        let check = |text: &str, want: Option<f64>| {
            let got = read(&[], text, NOW).map(|wait| wait.as_secs_f64());
            assert_eq!(got, want, "{text}");
        };
        check("Please try again in 4.77s. Need more tokens?", Some(4.77));
        check("try again in 20ms.", Some(0.02));
        check("Please try again in 1m2.5s.", Some(62.5));
        check("Please retry after 86400 seconds", Some(86_400.0));
        check("retry after 2 minutes", Some(120.0));
        check(r#"{"retryDelay": "31s"}"#, Some(31.0));
        check(r#"{"retryDelay":"51820.638305887s"}"#, Some(51_820.638_305_887));
        check("no wait is named", None);
    }
}

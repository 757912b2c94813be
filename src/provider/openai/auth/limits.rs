//! How much of a plan is used: the windows as headers, stream events, refusals and the usage page
//! tell them.
//!
//! Pure. Every field is optional everywhere; what cannot be read is left out.

use serde_json::{Value, json};

use crate::text;

/// One window of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Window {
    /// 0 to 100.
    pub used_percent: f64,
    pub minutes: Option<u64>,
    pub resets: Option<Resets>,
}

/// When a window begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resets {
    /// Unix seconds.
    At(u64),
    /// Seconds from when it was told.
    After(u64),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Credits {
    pub unlimited: bool,
    pub balance: Option<String>,
}

/// What a server told of the limits that apply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Limits {
    pub plan: Option<String>,
    /// The short window, of some hours.
    pub primary: Option<Window>,
    /// The long one, of a week.
    pub secondary: Option<Window>,
    pub credits: Option<Credits>,
    /// When the limit that was hit ends, as a refusal says it without naming the window.
    pub resets: Option<Resets>,
}

impl Limits {
    /// From the headers of a response (names in lower case); `None` when there are none of them.
    /// Of several limits those are read that the server calls the active one's.
    pub fn from_headers(headers: &[(String, String)]) -> Option<Limits> {
        let get = |name: &str| {
            let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim())
        };
        let active = get("x-codex-active-limit").map(|id| format!("x-{}", id.replace('_', "-")));
        let family = active
            .filter(|family| get(&format!("{family}-primary-used-percent")).is_some())
            .unwrap_or_else(|| "x-codex".to_owned());
        let window = |which: &str| {
            let part = |what: &str| get(&format!("{family}-{which}-{what}"));
            let whole = |what: &str| number(part(what)?).map(|number| number as u64);
            Some(Window {
                used_percent: percent(number(part("used-percent")?)?)?,
                minutes: whole("window-minutes").filter(|minutes| *minutes > 0),
                resets: (whole("reset-at").filter(|at| *at > 0).map(Resets::At))
                    .or_else(|| whole("reset-after-seconds").map(Resets::After)),
            })
        };
        let is = |name: &str| get(name).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let credits =
            (is("x-codex-credits-has-credits") || is("x-codex-credits-unlimited")).then(|| {
                Credits {
                    unlimited: is("x-codex-credits-unlimited"),
                    balance: get("x-codex-credits-balance")
                        .filter(|text| !text.is_empty())
                        .map(short),
                }
            });
        let limits = Limits {
            plan: get("x-codex-plan-type").filter(|text| !text.is_empty()).map(short),
            primary: window("primary"),
            secondary: window("secondary"),
            credits,
            resets: None,
        };
        limits.says_something().then_some(limits)
    }

    /// From a `codex.rate_limits` event or the answer of the usage page.
    pub fn from_json(value: &Value) -> Option<Limits> {
        let inner = ["rate_limits", "rate_limit"].iter().map(|name| &value[*name]);
        let windows = inner.into_iter().find(|inner| inner.is_object()).unwrap_or(value);
        let window = |name: &str| {
            let value = match &windows[name] {
                Value::Null => &windows[format!("{name}_window").as_str()],
                value => value,
            };
            Some(Window {
                used_percent: percent(value["used_percent"].as_f64()?)?,
                minutes: whole(value, "window_minutes")
                    .or_else(|| whole(value, "limit_window_seconds").map(|s| s.div_ceil(60)))
                    .filter(|minutes| *minutes > 0),
                resets: Resets::from_json(value),
            })
        };
        let credits = &value["credits"];
        let unlimited = credits["unlimited"] == true;
        let balance = match &credits["balance"] {
            Value::String(text) if !text.is_empty() => Some(short(text)),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let limits = Limits {
            plan: value["plan_type"].as_str().filter(|text| !text.is_empty()).map(short),
            primary: window("primary"),
            secondary: window("secondary"),
            credits: (unlimited || credits["has_credits"] == true)
                .then_some(Credits { unlimited, balance }),
            resets: None,
        };
        limits.says_something().then_some(limits)
    }

    /// From the body of a refusal, or an error event. Most of them say at best when it is over.
    pub fn from_error(text: &str) -> Option<Limits> {
        let value: Value = serde_json::from_str(text).ok()?;
        let error = if value["error"].is_object() { &value["error"] } else { &value };
        let limits = Limits::from_json(error).unwrap_or_default();
        let limits = Limits { resets: Resets::from_json(error), ..limits };
        limits.says_something().then_some(limits)
    }

    /// From all that a refusal holds.
    pub fn from_refusal(headers: &[(String, String)], body: &str) -> Option<Limits> {
        let before = Limits::from_headers(headers);
        match Limits::from_error(body) {
            Some(limits) => Some(limits.or(before)),
            None => before,
        }
    }

    /// What this does not tell is taken from what was told before.
    #[must_use]
    pub fn or(self, before: Option<Limits>) -> Limits {
        let Some(before) = before else { return self };
        let has_windows = self.windows().next().is_some();
        let (primary, secondary) = match has_windows {
            true => (self.primary, self.secondary),
            false => (before.primary, before.secondary),
        };
        Limits {
            plan: self.plan.or(before.plan),
            primary,
            secondary,
            credits: self.credits.or(before.credits),
            resets: self.resets,
        }
    }

    /// The same, so many seconds after it was told.
    #[must_use]
    pub fn aged(mut self, seconds: u64) -> Limits {
        let windows = self.primary.iter_mut().chain(&mut self.secondary);
        for resets in windows.map(|window| &mut window.resets).chain([&mut self.resets]) {
            if let Some(Resets::After(left)) = resets {
                *left = left.saturating_sub(seconds);
            }
        }
        self
    }

    fn says_something(&self) -> bool {
        self.windows().next().is_some() || self.credits.is_some() || self.resets.is_some()
    }

    /// Nothing is left until a window begins anew.
    pub fn is_used_up(&self) -> bool {
        self.credits.is_none() && self.windows().any(|(_, window)| window.used_percent >= 100.0)
    }

    fn windows(&self) -> impl Iterator<Item = (&'static str, &Window)> {
        let all = [("short window", &self.primary), ("long window", &self.secondary)];
        all.into_iter().filter_map(|(name, window)| Some((name, window.as_ref()?)))
    }

    /// One line for people; `now` is in unix seconds.
    pub fn describe(&self, now: u64) -> String {
        let mut parts: Vec<String> = self
            .windows()
            .map(|(name, window)| {
                let name = window.minutes.map_or_else(|| name.to_owned(), window_name);
                let resets = window.resets.map(|resets| format!(", {}", resets.describe(now)));
                let resets = resets.unwrap_or_default();
                format!("{name}: {} % used{resets}", rounded(window.used_percent))
            })
            .collect();
        let is_told = self.windows().any(|(_, window)| window.resets.is_some());
        if let Some(resets) = self.resets.filter(|_| !is_told) {
            parts.push(format!("the limit {}", resets.describe(now)));
        }
        if let Some(credits) = &self.credits {
            parts.push(match (&credits.balance, credits.unlimited) {
                (_, true) => "credits: unlimited".to_owned(),
                (Some(balance), _) => format!("credits: {balance}"),
                (None, _) => "credits: some".to_owned(),
            });
        }
        parts.join("; ")
    }

    /// For `--json`; `now` is in unix seconds.
    pub fn to_json(&self, now: u64) -> Value {
        let window = |window: &Option<Window>| match window {
            None => Value::Null,
            Some(window) => json!({
                "usedPercent": window.used_percent,
                "windowMinutes": window.minutes,
                "resetsAt": window.resets.map(|resets| now + resets.left(now)),
            }),
        };
        json!({
            "primary": window(&self.primary),
            "secondary": window(&self.secondary),
            "credits": self.credits.as_ref().map(|credits| json!({
                "unlimited": credits.unlimited, "balance": credits.balance,
            })),
        })
    }
}

impl Resets {
    fn from_json(value: &Value) -> Option<Resets> {
        (whole(value, "reset_at").or_else(|| whole(value, "resets_at")))
            .filter(|at| *at > 0)
            .map(Resets::At)
            .or_else(|| whole(value, "reset_after_seconds").map(Resets::After))
            .or_else(|| whole(value, "resets_in_seconds").map(Resets::After))
    }

    /// Seconds from `now`.
    fn left(self, now: u64) -> u64 {
        match self {
            Resets::At(at) => at.saturating_sub(now),
            Resets::After(seconds) => seconds,
        }
    }

    fn describe(self, now: u64) -> String {
        match self.left(now) {
            0 => "resets now".to_owned(),
            seconds => format!("resets in {}", span(seconds)),
        }
    }
}

fn whole(value: &Value, name: &str) -> Option<u64> {
    value[name].as_f64().filter(|number| *number >= 0.0).map(|number| number as u64)
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

fn percent(number: f64) -> Option<f64> {
    (number.is_finite() && number >= 0.0).then_some(number.min(1000.0))
}

fn short(text: &str) -> String {
    text::visible_line(text).chars().take(60).collect()
}

/// A tenth of a percent matters only below one.
fn rounded(percent: f64) -> String {
    if percent > 0.0 && percent < 1.0 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

fn window_name(minutes: u64) -> String {
    const WEEK: u64 = 7 * 24 * 60;
    match minutes {
        WEEK => "week".to_owned(),
        minutes => format!("{} window", span(minutes * 60)),
    }
}

/// `3 d 4 h`, `2 h 10 min`, `12 min`, `40 s`.
pub fn span(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, 0) => format!("{hours} h"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, 0, _) => format!("{days} d"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(rows: &[(&str, &str)]) -> Option<Limits> {
        let rows: Vec<_> =
            rows.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Limits::from_headers(&rows)
    }

    #[test]
    fn headers_of_both_ages_are_read() {
        let limits = headers(&[
            ("content-type", "text/event-stream"),
            ("x-codex-primary-used-percent", "63.4"),
            ("x-codex-primary-window-minutes", "300"),
            ("x-codex-primary-reset-at", "8800"),
            ("x-codex-secondary-used-percent", "0.25"),
            ("x-codex-secondary-window-minutes", "10080"),
            ("x-codex-secondary-reset-after-seconds", "273600"),
            ("x-codex-credits-has-credits", "True"),
            ("x-codex-credits-balance", "12.50"),
        ]);
        assert_eq!(
            limits.unwrap().describe(1000),
            "5 h window: 63 % used, resets in 2 h 10 min; week: 0.2 % used, resets in 3 d 4 h; \
             credits: 12.50"
        );
        assert_eq!(headers(&[("content-type", "x")]), None);
        for bad in ["", "x", "NaN", "inf", "-1"] {
            assert_eq!(headers(&[("x-codex-primary-used-percent", bad)]), None, "{bad}");
        }
        let bare = headers(&[("x-codex-secondary-used-percent", "100")]).unwrap();
        assert_eq!(bare.describe(0), "long window: 100 % used");
    }

    #[test]
    fn every_shape_of_json_is_read() {
        let check = |value: Value, want: &str| {
            let got = Limits::from_json(&value).map(|limits| limits.describe(1000));
            assert_eq!(got.unwrap_or_default(), want, "{value}");
        };
        check(
            json!({"type": "codex.rate_limits", "plan_type": "plus", "rate_limits": {
                "primary": {"used_percent": 5, "window_minutes": 300, "reset_at": 1040},
                "secondary": null}}),
            "5 h window: 5 % used, resets in 40 s",
        );
        check(
            json!({"rate_limit": {"primary_window": {"used_percent": 20.0,
                "limit_window_seconds": 18000, "reset_after_seconds": 720},
                "secondary_window": {"used_percent": 99.6, "limit_window_seconds": 604_800,
                "reset_at": 3}}, "credits": {"has_credits": true, "unlimited": true}}),
            "5 h window: 20 % used, resets in 12 min; week: 100 % used, resets now; \
             credits: unlimited",
        );
        check(json!({"primary": {"used_percent": 1}}), "short window: 1 % used");
        for nothing in [json!(null), json!([]), json!({"rate_limit": {"primary": 3}}), json!("x")] {
            check(nothing, "");
        }
        let value =
            json!({"rate_limit": {"primary": {"used_percent": 5, "reset_after_seconds": 9}}});
        assert_eq!(
            Limits::from_json(&value).unwrap().to_json(1000)["primary"],
            json!({"usedPercent": 5.0, "windowMinutes": null, "resetsAt": 1009})
        );
    }

    #[test]
    fn a_refusal_says_when_it_is_over_and_what_was_told_before_says_the_rest() {
        let check = |text: &str, want: &str| {
            let got = Limits::from_error(text).map(|limits| limits.describe(1000));
            assert_eq!(got.unwrap_or_default(), want, "{text}");
        };
        let body = r#"{"error":{"type":"usage_limit_reached","plan_type":"plus","resets_at":8800,
            "resets_in_seconds":9}}"#;
        check(body, "the limit resets in 2 h 10 min");
        check(r#"{"type":"error","resets_in_seconds":60}"#, "the limit resets in 1 min");
        check(r#"{"error":{"resets_at":3}}"#, "the limit resets now");
        for nothing in ["", "x", "[]", r#"{"error":"x"}"#, r#"{"error":{"resets_at":-1}}"#] {
            check(nothing, "");
        }
        let before = json!({"primary": {"used_percent": 100, "reset_after_seconds": 130},
            "secondary": {"used_percent": 7}, "credits": {"has_credits": true}});
        let before = || Limits::from_json(&before);
        let both = Limits::from_error(body).unwrap().or(before()).aged(10);
        assert_eq!(
            both.describe(1000),
            "short window: 100 % used, resets in 2 min; long window: 7 % used; credits: some"
        );
        assert!(!both.is_used_up() && Limits { credits: None, ..both }.is_used_up());
        let newer = json!({"secondary": {"used_percent": 8}});
        let newer = Limits::from_json(&newer).unwrap();
        assert!(!newer.is_used_up());
        assert_eq!(newer.or(before()).describe(0), "long window: 8 % used; credits: some");
    }

    #[test]
    fn of_several_limits_the_active_one_is_read() {
        let rows = |active| {
            let limits = headers(&[
                ("x-codex-active-limit", active),
                ("x-codex-primary-used-percent", "5"),
                ("x-codex-other-primary-used-percent", "100"),
            ]);
            limits.unwrap().describe(0)
        };
        assert_eq!(rows("codex_other"), "short window: 100 % used");
        for none in ["codex", "", "gone"] {
            assert_eq!(rows(none), "short window: 5 % used");
        }
    }
}

//! The footer: where a person is, with which model, and what it has taken so far.

use super::tally::Tally;
use super::told::Told;
use crate::model::{Metrics, Usage};
use crate::render::line;
use crate::render::style::Style;
use crate::text;

/// Between two parts.
pub const GAP: &str = " · ";

/// A part is shown once it is known.
#[derive(Debug, Clone, Default)]
pub struct Footer {
    pub model: String,
    pub effort: Option<String>,
    /// How the server is told who calls.
    pub auth: Option<String>,
    /// As [`home_form`] has it.
    pub cwd: String,
    pub branch: Option<String>,
    /// Tokens that the model takes.
    pub window: Option<u64>,
    /// Of the session.
    pub tally: Tally,
}

impl Footer {
    pub fn tell(&mut self, told: &Told) {
        self.tally.tell(told);
    }

    /// One line; the last parts are the first to give way.
    pub fn line(&self, columns: usize, style: Style) -> String {
        let mut shown = String::new();
        for part in self.parts() {
            let part = line::fit(&part, usize::MAX);
            let gap = if shown.is_empty() { "" } else { GAP };
            if shown.is_empty() {
                shown = text::truncate_width(&part, columns).into_owned();
            } else if text::width(&shown) + text::width(gap) + text::width(&part) <= columns {
                shown.push_str(gap);
                shown.push_str(&part);
            } else {
                break;
            }
        }
        style.dim(&shown)
    }

    /// In the order in which they are shown.
    fn parts(&self) -> Vec<String> {
        let effort = self.effort.as_ref().map_or(String::new(), |effort| format!(" {effort}"));
        let mut parts = vec![format!("{}{effort}", self.model)];
        parts.extend(self.auth.clone());
        parts.push(self.cwd.clone());
        parts.extend(self.branch.clone());
        let usage = self.tally.usage();
        parts.extend(tokens(&usage));
        parts.extend(self.context());
        parts.extend(traffic(&self.tally.metrics()));
        parts.extend(cost(&usage));
        parts.retain(|part| !part.is_empty());
        parts
    }

    fn context(&self) -> Option<String> {
        let tokens = self.tally.context();
        let count = text::human_count(tokens);
        match self.window {
            _ if tokens == 0 => None,
            Some(window) if 0 < window => {
                let percent = u128::from(tokens) * 100 / u128::from(window);
                Some(format!("context {percent}% of {}", text::human_count(window)))
            }
            _ => Some(format!("context {count}")),
        }
    }
}

/// `1.2k in`, `900 cached`, `80 out`; nothing where nothing was counted. Estimates have a `~`.
pub fn tokens(usage: &Usage) -> Vec<String> {
    let about = if usage.estimated { "~" } else { "" };
    let part = |count: u64, name: &str| {
        (0 < count).then(|| format!("{about}{} {name}", text::human_count(count)))
    };
    let cached = part(usage.cached_input, "cached");
    [part(usage.input, "in"), cached, part(usage.output, "out")].into_iter().flatten().collect()
}

/// `3 requests`, `12.0KB up`, `30.0KB down`.
pub fn traffic(metrics: &Metrics) -> Vec<String> {
    let mut parts = Vec::new();
    if 0 < metrics.requests {
        parts.push(text::plural(metrics.requests, "request"));
    }
    for (bytes, name) in [(metrics.request_bytes, "up"), (metrics.response_bytes, "down")] {
        if 0 < bytes {
            parts.push(format!("{} {name}", text::human_bytes(bytes)));
        }
    }
    parts
}

/// What it cost, where the server names a price.
pub fn cost(usage: &Usage) -> Option<String> {
    let cost = usage.cost.filter(|cost| 0.0 < *cost)?;
    Some(if cost < 0.01 { format!("${cost:.4}") } else { format!("${cost:.2}") })
}

/// A path as people write it: `~` for the home directory.
pub fn home_form(path: &str, home: Option<&str>) -> String {
    let home = home.map(|home| home.trim_end_matches('/')).filter(|home| !home.is_empty());
    match home.and_then(|home| path.strip_prefix(home)) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelEvent;

    fn footer() -> Footer {
        Footer {
            model: "big-model".to_owned(),
            effort: Some("high".to_owned()),
            auth: Some("api key".to_owned()),
            cwd: "~/src/界面".to_owned(),
            branch: Some("main\x1b".to_owned()),
            window: Some(128_000),
            tally: Tally::default(),
        }
    }

    #[test]
    fn parts_appear_once_known_and_give_way_from_the_end() {
        let mut footer = footer();
        let plain = Style::plain();
        assert_eq!(footer.line(80, plain), "big-model high · api key · ~/src/界面 · main^[");
        let usage = Usage {
            input: 12_345,
            cached_input: 900,
            output: 455,
            cost: Some(0.1234),
            ..Usage::default()
        };
        footer.tell(&Told::Model(ModelEvent::Usage(usage)));
        footer.tell(&Told::Model(ModelEvent::Metrics(Metrics {
            requests: 3,
            request_bytes: 12 * 1024,
            response_bytes: 30 * 1024,
            ..Metrics::default()
        })));
        let whole = "big-model high · api key · ~/src/界面 · main^[ · 12.3k in · 900 cached · \
                     455 out · context 10% of 128.0k · 3 requests · 12.0KB up · 30.0KB down · \
                     $0.12";
        assert_eq!(footer.line(200, plain), whole);
        assert_eq!(footer.line(200, Style::coloured()), format!("\x1b[2m{whole}\x1b[0m"));
        assert_eq!(
            footer.line(78, plain),
            "big-model high · api key · ~/src/界面 · main^[ · 12.3k in · 900 cached"
        );
        assert_eq!(footer.line(40, plain), "big-model high · api key · ~/src/界面");
        assert_eq!(footer.line(20, plain), "big-model high");
        assert_eq!(footer.line(5, plain), "big-…");
        assert_eq!(footer.line(0, plain), "");
        footer.window = None;
        assert!(footer.line(200, plain).contains(" · context 12.8k · "));
    }

    #[test]
    fn the_home_directory_is_written_short() {
        let table = [
            ("/home/me/src", Some("/home/me"), "~/src"),
            ("/home/me", Some("/home/me/"), "~"),
            ("/home/meow", Some("/home/me"), "/home/meow"),
            ("/srv", Some("/"), "/srv"),
            ("/srv", None, "/srv"),
        ];
        for (path, home, want) in table {
            assert_eq!(home_form(path, home), want, "{path}");
        }
    }
}

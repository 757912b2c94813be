//! From the base URL that a person configures to the URL that is called.
//!
//! A bare host means its `/v1`. Slashes and blanks at the ends do not matter, nor does the name
//! of the call itself at the end, nor a missing scheme: this machine is then called by http and
//! any other by https. Any other path is taken as it is.

use crate::wire::url::Url;

/// The last parts of a URL that people copy along with the base.
const CALLS: [&str; 4] = ["/chat/completions", "/completions", "/responses", "/models"];

/// A base URL in its one form: no slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    base: Url,
}

impl Endpoint {
    /// Reads a configured base URL; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        let text = text.trim();
        let mut base = if text.contains("://") {
            Url::parse(text)?
        } else {
            let plain = Url::parse(&format!("http://{text}"))?;
            if plain.is_loopback() { plain } else { Url::parse(&format!("https://{text}"))? }
        };
        let mut path = base.path.trim_end_matches('/');
        for call in CALLS {
            path = path.strip_suffix(call).unwrap_or(path).trim_end_matches('/');
        }
        base.path = if path.is_empty() { "/v1".to_owned() } else { path.to_owned() };
        Ok(Endpoint { base })
    }

    /// The URL of a call, such as `chat/completions`.
    pub fn url(&self, call: &str) -> String {
        let mut url = self.base.clone();
        url.path = format!("{}/{call}", url.path);
        url.to_string()
    }

    /// The URL of something beside the protocol, such as `props`: below what `/v1` is below.
    pub fn root_url(&self, path: &str) -> String {
        let mut url = self.base.clone();
        let root = url.path.strip_suffix("/v1").unwrap_or(&url.path);
        url.path = format!("{}/{path}", root.trim_end_matches('/'));
        url.to_string()
    }

    pub fn base(&self) -> &Url {
        &self.base
    }

    /// The host is this one or below it.
    pub fn is_at(&self, host: &str) -> bool {
        let rest = self.base.host.strip_suffix(host);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sensible_root_reaches_the_right_path() {
        let check = |base: &str, want: &str| {
            assert_eq!(Endpoint::parse(base).unwrap().url("chat/completions"), want, "{base}");
        };
        for base in [
            "http://H:1/v1",
            "http://H:1/v1/",
            "http://H:1",
            "http://H:1/",
            " http://H:1/v1 ",
            "http://H:1/v1/chat/completions",
            "http://H:1/v1//",
        ] {
            check(base, "http://h:1/v1/chat/completions");
        }
        check("http://H/gw/v1", "http://h/gw/v1/chat/completions");
        check("http://H/gw/v1//", "http://h/gw/v1/chat/completions");
        check("https://h/openai?api-version=1", "https://h/openai/chat/completions?api-version=1");
        check("localhost:11434/v1", "http://localhost:11434/v1/chat/completions");
        check("api.example.com", "https://api.example.com/v1/chat/completions");
        assert!(Endpoint::parse("").is_err() && Endpoint::parse("ftp://h").is_err());
    }

    #[test]
    fn what_is_beside_the_protocol_is_below_the_same_root() {
        let check = |base: &str, want: &str| {
            assert_eq!(Endpoint::parse(base).unwrap().root_url("api/ps"), want, "{base}");
        };
        check("http://h:1", "http://h:1/api/ps");
        check("http://h:1/v1/", "http://h:1/api/ps");
        check("http://h/gw/v1", "http://h/gw/api/ps");
        check("http://h/openai?a=b", "http://h/openai/api/ps?a=b");
    }

    #[test]
    fn vendors_are_known_by_their_whole_domain() {
        let at = |base: &str| Endpoint::parse(base).unwrap().is_at("mistral.ai");
        assert!(at("https://api.mistral.ai/v1") && at("https://mistral.ai"));
        assert!(!at("https://notmistral.ai") && !at("https://mistral.ai.example.com"));
    }
}

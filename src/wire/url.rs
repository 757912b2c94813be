//! The few things that must be known of an HTTP URL: who is called, and what may be printed.

use std::fmt;
use std::net::IpAddr;

/// An absolute `http` or `https` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub https: bool,
    /// Lower case; an IPv6 address without its brackets.
    pub host: String,
    pub port: u16,
    /// Starts with `/`; no query.
    pub path: String,
    /// Without the `?`; empty when there is none.
    pub query: String,
}

impl Url {
    /// Reads `text`; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Url, String> {
        let text = text.trim();
        let wrong = |why: &str| Err(format!("'{}' is no usable URL: {why}", printable(text)));
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return wrong("it holds blanks");
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
            None => return wrong("it must start with http:// or https://"),
        };
        let https = match scheme.as_str() {
            "http" => false,
            "https" => true,
            _ => return wrong("only http:// and https:// are known"),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let tail = tail.split('#').next().unwrap_or_default();
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        if authority.contains('@') {
            return wrong("a user name in it is not supported; set a key instead");
        }
        let Some((host, port)) = split_port(authority) else {
            return wrong("its port is no number");
        };
        if host.is_empty() {
            return wrong("it names no host");
        }
        let port = port.unwrap_or(if https { 443 } else { 80 });
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Url { https, host: host.to_ascii_lowercase(), port, path, query: query.to_owned() })
    }

    /// `host:port`, for messages; the scheme's usual port is left out.
    pub fn authority(&self) -> String {
        let host = bracketed(&self.host);
        let usual = if self.https { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// The host is this machine, by name or by address.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// The host is this machine or one of the same network, as far as its name tells: a private
    /// address, a name without a dot, or one that no public server can have.
    pub fn is_near(&self) -> bool {
        if self.is_loopback() {
            return true;
        }
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => address.is_private() || address.is_link_local(),
            Ok(IpAddr::V6(address)) => address.is_unique_local() || address.is_unicast_link_local(),
            Err(_) => {
                let near = [".local", ".lan", ".internal", ".home.arpa"];
                !self.host.contains('.') || near.iter().any(|end| self.host.ends_with(end))
            }
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)?;
        if self.query.is_empty() { Ok(()) } else { write!(f, "?{}", self.query) }
    }
}

/// `host[:port]`, brackets removed; `None` when the port is no port.
pub(crate) fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port.parse().ok()?))),
            None if rest.is_empty() => Some((host, None)),
            None => None,
        };
    }
    match authority.rsplit_once(':') {
        // Several colons without brackets: an address.
        Some((host, _)) if host.contains(':') => Some((authority, None)),
        Some((host, "")) => Some((host, None)),
        Some((host, port)) => Some((host, Some(port.parse().ok()?))),
        None => Some((authority, None)),
    }
}

pub(crate) fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// `localhost`, anything below it, and the addresses of this machine alone.
pub(crate) fn is_loopback(host: &str) -> bool {
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => false,
    }
}

/// A URL as the person wrote it, without user name and password.
pub fn printable(text: &str) -> String {
    let start = text.find("://").map_or(0, |at| at + 3);
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at);
    match text[start..end].rfind('@') {
        Some(at) => format!("{}[redacted]{}", &text[..start], &text[start + at..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_printed_back() {
        let check = |text: &str, host: &str, port: u16, back: &str| {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.host.as_str(), url.port), (host, port), "{text}");
            assert_eq!(url.to_string(), back, "{text}");
        };
        check("http://127.0.0.1:8080/v1", "127.0.0.1", 8080, "http://127.0.0.1:8080/v1");
        check(" HTTPS://API.example.com ", "api.example.com", 443, "https://api.example.com/");
        check("http://[::1]:11434/v1?a=b", "::1", 11434, "http://[::1]:11434/v1?a=b");
        check("http://h:80/x#y", "h", 80, "http://h/x");
        check("https://h?api-version=1", "h", 443, "https://h/?api-version=1");
    }

    #[test]
    fn what_is_no_url_is_refused_and_never_shows_a_password() {
        for bad in ["", "h/v1", "ftp://h", "http://", "http://h:x/", "http://a b/", "http:///v1"] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
        let error = Url::parse("http://joe:hunter2@h/v1").unwrap_err();
        assert!(
            error.contains("'http://[redacted]@h/v1'") && !error.contains("hunter2"),
            "{error}"
        );
        assert_eq!(printable("joe:pw@h:1"), "[redacted]@h:1");
    }

    #[test]
    fn a_server_of_the_same_network_is_told_from_a_public_one() {
        let is_near = |host: &str| Url::parse(&format!("http://{host}/v1")).unwrap().is_near();
        for host in [
            "localhost",
            "127.0.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.0.9:8000",
            "169.254.1.1",
            "[::1]",
            "[fd00::1]",
            "[fe80::1]",
            "gpu",
            "gpu.local",
            "host.docker.internal",
        ] {
            assert!(is_near(host), "{host}");
        }
        for host in ["h.example", "8.8.8.8", "172.32.0.1", "[2001:db8::1]", "10.0.0.1.example"] {
            assert!(!is_near(host), "{host}");
        }
    }

    #[test]
    fn this_machine_is_known_by_its_names() {
        for host in ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example.com", "10.0.0.1", "127.0.0.1.example.com", "fd00::1"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}

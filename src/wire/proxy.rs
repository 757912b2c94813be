//! Which proxy a URL is called through, by the rules that curl made common.
//!
//! Read from the environment that [`Host`] holds: `HTTP_PROXY` for http URLs, `HTTPS_PROXY` for
//! https URLs, `ALL_PROXY` for both where the scheme's own is not set, each also in lower case
//! (which wins). `NO_PROXY` lists hosts that are called directly: a name covers its subdomains,
//! with or without a leading `.` or `*.`; addresses, CIDR blocks, `host:port` and `*` are known;
//! an entry that cannot be read is ignored. **This machine is never called through a proxy.**
//! Every proxied request is a CONNECT tunnel, also for http URLs.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::host::Host;
use crate::wire::url::{self, Url, split_port};

/// A proxy, ready to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// As it was set, credentials included: never printed.
    url: String,
    /// `http://host:port`, for messages.
    pub shown: String,
}

impl Proxy {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Spoken to by TLS itself.
    pub(crate) fn is_https(&self) -> bool {
        self.url.starts_with("https:")
    }

    /// Host (lower case, without brackets) and port.
    pub(crate) fn place(&self) -> (String, u16) {
        let place = self.shown.split_once("://").map_or(self.shown.as_str(), |(_, place)| place);
        let usual = if self.is_https() { 443 } else { 80 };
        let (host, port) = split_port(place).unwrap_or((place, None));
        (host.to_ascii_lowercase(), port.unwrap_or(usual))
    }

    /// The value of `Proxy-Authorization`, when the URL holds a login.
    pub(crate) fn authorization(&self) -> Option<String> {
        let (_, rest) = self.url.split_once("://")?;
        let (login, _) = rest.rsplit_once('@')?;
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let login = [&unescaped(user)[..], b":", &unescaped(password)[..]].concat();
        Some(format!("Basic {}", STANDARD.encode(login)))
    }
}

/// One entry of `NO_PROXY`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Direct {
    All,
    /// The name itself and everything below it.
    Name(String, Option<u16>),
    Block(IpAddr, u8, Option<u16>),
}

/// The proxy settings of the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<(String, String)>,
    https: Option<(String, String)>,
    direct: Vec<Direct>,
}

impl Proxies {
    pub fn from_host(host: &Host) -> Proxies {
        let var = |name: &str| {
            let (lower, upper) = (name.to_lowercase(), name.to_uppercase());
            let found = host.var(&lower).map(|value| (lower.clone(), value));
            let found = found.or_else(|| host.var(&upper).map(|value| (upper, value)));
            found.map(|(name, value)| (name, value.trim().to_owned()))
        };
        let all = var("all_proxy");
        let direct = var("no_proxy").map(|(_, list)| read_direct(&list)).unwrap_or_default();
        Proxies {
            http: var("http_proxy").or_else(|| all.clone()),
            https: var("https_proxy").or(all),
            direct,
        }
    }

    /// The proxy for `target`, `None` for a direct connection; the error names the variable that
    /// holds no usable proxy.
    pub fn for_url(&self, target: &Url) -> Result<Option<Proxy>, String> {
        let setting = if target.https { &self.https } else { &self.http };
        let Some((variable, value)) = setting else { return Ok(None) };
        if value.is_empty() || target.is_loopback() || self.is_direct(target) {
            return Ok(None);
        }
        read_proxy(value)
            .map(Some)
            .map_err(|why| format!("{variable} holds no usable proxy: {why}"))
    }

    fn is_direct(&self, target: &Url) -> bool {
        let address = target.host.parse::<IpAddr>().ok();
        let fits = |port: &Option<u16>| port.is_none_or(|port| port == target.port);
        self.direct.iter().any(|entry| match entry {
            Direct::All => true,
            Direct::Name(name, port) => {
                let below = target.host.strip_suffix(name.as_str());
                fits(port) && below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            Direct::Block(block, bits, port) => {
                fits(port) && address.is_some_and(|address| in_block(address, *block, *bits))
            }
        })
    }
}

fn read_proxy(value: &str) -> Result<Proxy, String> {
    let shown = url::printable(value);
    let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => {}
        _ => return Err(format!("'{shown}' is neither http:// nor https://")),
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    match split_port(host) {
        Some((name, _)) if !name.is_empty() && !name.contains(char::is_whitespace) => Ok(Proxy {
            url: format!("{}://{authority}", scheme.to_ascii_lowercase()),
            shown: format!("{}://{host}", scheme.to_ascii_lowercase()),
        }),
        _ => Err(format!("'{shown}' names no host and port")),
    }
}

/// Percent escapes as the bytes that they stand for; what is none stays.
fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |at: usize| char::from(*tail.get(at)?).to_digit(16);
        let escape = hex(0).zip(hex(1)).filter(|_| *first == b'%');
        let (byte, used) = match escape {
            Some((high, low)) => ((high * 16 + low) as u8, 2),
            None => (*first, 0),
        };
        out.push(byte);
        rest = &tail[used..];
    }
    out
}

fn read_direct(list: &str) -> Vec<Direct> {
    let entries = list.split([',', ' ', '\t']).map(str::trim).filter(|entry| !entry.is_empty());
    entries.filter_map(read_direct_entry).collect()
}

fn read_direct_entry(entry: &str) -> Option<Direct> {
    if entry == "*" {
        return Some(Direct::All);
    }
    if let Some((block, bits)) = entry.split_once('/') {
        let block: IpAddr = block.trim_matches(['[', ']']).parse().ok()?;
        let bits: u8 = bits.parse().ok()?;
        let bits_max = if block.is_ipv4() { 32 } else { 128 };
        return (bits <= bits_max).then_some(Direct::Block(block, bits, None));
    }
    let (host, port) = split_port(entry)?;
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(Direct::Block(address, if address.is_ipv4() { 32 } else { 128 }, port));
    }
    let name = host.strip_prefix('*').unwrap_or(host).trim_matches('.').to_ascii_lowercase();
    (!name.is_empty()).then_some(Direct::Name(name, port))
}

fn in_block(address: IpAddr, block: IpAddr, bits: u8) -> bool {
    let (address, block, width) = match (address, block) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let rest = width - u32::from(bits).min(width);
    address.checked_shr(rest).unwrap_or(0) == block.checked_shr(rest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(vars: &[(&str, &str)], target: &str) -> Result<Option<String>, String> {
        let mut host = Host::fixed();
        for (name, value) in vars {
            host = host.with_var(*name, *value);
        }
        let target = Url::parse(target).unwrap();
        Ok(Proxies::from_host(&host).for_url(&target)?.map(|proxy| proxy.shown))
    }

    #[test]
    fn each_scheme_has_its_own_variable() {
        let all = [
            ("HTTP_PROXY", "http://plain:1"),
            ("https_proxy", "http://tls:2"),
            ("ALL_PROXY", "http://all:3"),
        ];
        let used = |target| shown(&all, target).unwrap();
        assert_eq!(used("http://example.com/"), Some("http://plain:1".into()));
        assert_eq!(used("https://example.com/"), Some("http://tls:2".into()));
        let used = shown(&[("ALL_PROXY", "proxy.lan:3128")], "https://example.com/");
        assert_eq!(used, Ok(Some("http://proxy.lan:3128".into())));
        let both = [("HTTP_PROXY", "http://upper:1"), ("http_proxy", "http://lower:1")];
        assert_eq!(shown(&both, "http://example.com"), Ok(Some("http://lower:1".into())));
        assert_eq!(shown(&[("HTTP_PROXY", "http://p:1")], "https://example.com"), Ok(None));
    }

    #[test]
    fn this_machine_is_called_directly() {
        for target in
            ["http://localhost:1/v1", "http://127.0.0.1:1", "http://[::1]:1", "https://127.1.2.3/"]
        {
            assert_eq!(shown(&[("ALL_PROXY", "http://p:1")], target), Ok(None), "{target}");
        }
    }

    #[test]
    fn no_proxy_knows_names_suffixes_blocks_and_ports() {
        let check = |list: &str, target: &str, direct: bool| {
            for name in ["NO_PROXY", "no_proxy"] {
                let used = shown(&[("ALL_PROXY", "http://p:1"), (name, list)], target).unwrap();
                assert_eq!(used.is_none(), direct, "{name}={list} {target}");
            }
        };
        check("*", "https://example.com", true);
        check("example.com", "https://example.com", true);
        check("example.com", "https://www.example.com", true);
        check("example.com", "https://notexample.com", false);
        check(" localhost , .lan ", "http://box.lan/", true);
        check(" localhost , .lan ", "http://box.lan.org/", false);
        check("*.lan", "http://a.b.lan/", true);
        check("EXAMPLE.com", "https://example.COM", true);
        check("10.0.0.0/8", "http://10.1.2.3/", true);
        check("10.0.0.0/8", "http://11.1.2.3/", false);
        check("0.0.0.0/0", "http://11.1.2.3/", true);
        check("fd00::/8", "http://[fd12::1]/", true);
        check("fd00::/8", "http://[fe80::1]/", false);
        check("fd00::/8", "http://10.0.0.1/", false);
        check("10.1.2.3", "http://10.1.2.3:8080/", true);
        check("box:8080", "http://box:8080/", true);
        check("box:8080", "http://box:8081/", false);
        check("[fd12::1]:80", "http://[fd12::1]/", true);
        check("10.0.0.0/99, ///, :::, a:b:c, example.com", "https://example.com", true);
        check("10.0.0.0/99, ///, :::, a:b:c", "https://example.com", false);
        check("", "https://example.com", false);
    }

    #[test]
    fn a_proxy_is_taken_apart() {
        let check = |value: &str, place: (&str, u16), login: Option<&str>| {
            let proxy = read_proxy(value).unwrap();
            let (host, port) = proxy.place();
            assert_eq!((host.as_str(), port), place, "{value}");
            let want = login.map(|login| format!("Basic {}", STANDARD.encode(login)));
            assert_eq!(proxy.authorization(), want, "{value}");
        };
        check("proxy.LAN:3128", ("proxy.lan", 3128), None);
        check("HTTPS://p/", ("p", 443), None);
        check("http://joe@p", ("p", 80), Some("joe:"));
        check("http://joe:p%40s%3a%zz%4@[::1]:1/", ("::1", 1), Some("joe:p@s:%zz%4"));
        check("http://j%C3%B6:a:b@c@p:1", ("p", 1), Some("jö:a:b@c"));
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_named_without_its_password() {
        let check = |value: &str, want: &str| {
            let error = shown(&[("HTTPS_PROXY", value)], "https://example.com").unwrap_err();
            assert_eq!(error, want);
        };
        check(
            "socks5://joe:pw@p:1080",
            "HTTPS_PROXY holds no usable proxy: 'socks5://[redacted]@p:1080' is neither http:// \
             nor https://",
        );
        check("http://", "HTTPS_PROXY holds no usable proxy: 'http://' names no host and port");
        let used = shown(&[("HTTPS_PROXY", "http://joe:pw@p:1/")], "https://example.com");
        assert_eq!(used, Ok(Some("http://p:1".into())));
        assert_eq!(shown(&[("HTTPS_PROXY", "socks5://p:1")], "http://example.com"), Ok(None));
    }
}

//! Who is called, and the words for what goes wrong on the way there: the same for every
//! transport.

use std::io;
use std::time::Duration;

use crate::wire::proxy::{Proxies, Proxy};
use crate::wire::transport::{Phase, WireError, WireErrorKind};
use crate::wire::url::Url;

/// Who is called, as errors name it.
pub(super) struct Target {
    pub https: bool,
    pub origin: String,
    pub authority: String,
    pub proxy: Option<Proxy>,
}

impl Target {
    pub fn new(url: &Url, proxies: &Proxies) -> Result<Target, WireError> {
        let authority = url.authority();
        Ok(Target {
            https: url.https,
            origin: format!("{}://{authority}", if url.https { "https" } else { "http" }),
            authority,
            proxy: proxies.for_url(url).map_err(setup)?,
        })
    }

    /// Whom we speak to in fact.
    pub fn through(&self) -> String {
        match &self.proxy {
            Some(proxy) => format!("proxy {} (for {})", proxy.shown, self.authority),
            None => self.authority.clone(),
        }
    }

    pub fn timed_out(&self, phase: Phase, limit: Duration) -> WireError {
        let host = &self.authority;
        let limit = seconds(limit);
        let text = match phase {
            Phase::Resolve => format!("timed out after {limit} looking up the address of {host}"),
            Phase::Connect => match &self.proxy {
                Some(proxy) => {
                    format!(
                        "timed out after {limit} connecting to {host} through proxy {}",
                        proxy.shown
                    )
                }
                None => format!("timed out after {limit} connecting to {host}"),
            },
            Phase::Send => format!("timed out after {limit} sending the request to {host}"),
            Phase::Headers => {
                format!("timed out after {limit} waiting for response headers from {host}")
            }
            Phase::Idle => {
                format!("timed out: {host} sent nothing for {limit} in the middle of an answer")
            }
        };
        WireError::new(WireErrorKind::Timeout(phase), text)
    }

    /// A failure of the socket.
    pub fn explain_io(&self, error: &io::Error) -> WireError {
        use WireErrorKind as Kind;
        let through = self.through();
        let text = plain(&error.to_string());
        let proxied = self.proxy.is_some();
        let (kind, text) = match error.kind() {
            io::ErrorKind::ConnectionRefused if proxied => {
                (Kind::Proxy, format!("{through}: connection refused"))
            }
            io::ErrorKind::ConnectionRefused => {
                (Kind::Refused, format!("connection to {through} refused"))
            }
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
            | io::ErrorKind::BrokenPipe => (
                Kind::Cut,
                format!("{through} closed the connection before the answer was complete"),
            ),
            io::ErrorKind::InvalidData => {
                (Kind::Tls, format!("no secure connection to {}: {text}", self.authority))
            }
            _ if text.contains("lookup address") => {
                // A name that does not exist is told from a resolver that does not answer.
                let known = !text.contains("not known") && !text.contains("No address");
                let kind = if known { Kind::Unreachable } else { Kind::NoHost };
                (kind, format!("no address found for {through} ({text})"))
            }
            _ if text.contains("certificate") => {
                (Kind::Tls, format!("no secure connection to {}: {text}", self.authority))
            }
            _ => (Kind::Unreachable, format!("cannot reach {through}: {text}")),
        };
        WireError::new(kind, text)
    }
}

pub(super) fn setup(text: String) -> WireError {
    WireError::new(WireErrorKind::Setup, text)
}

fn seconds(limit: Duration) -> String {
    if limit.subsec_millis() == 0 {
        format!("{} s", limit.as_secs())
    } else {
        format!("{} s", limit.as_secs_f64())
    }
}

/// A library's text without the URLs that it points its own users to.
pub(super) fn plain(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !word.contains("://"));
    let text = words.collect::<Vec<_>>().join(" ");
    text.trim_end_matches([':', ' ']).to_owned()
}

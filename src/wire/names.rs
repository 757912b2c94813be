//! This machine's own names, which need no resolver and no file.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::wire::url::is_loopback;

/// The addresses of a host that is an address itself or a name of this machine; `None`: whoever
/// wants to know must ask the system. `host` is in lower case and without brackets.
pub(super) fn own_addresses(host: &str) -> Option<Vec<IpAddr>> {
    match host.parse::<IpAddr>() {
        Ok(address) => Some(vec![address]),
        Err(_) if is_loopback(host) => {
            Some(vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)])
        }
        Err(_) => None,
    }
}

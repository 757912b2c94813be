//! Sockets: a TCP connect that does not wait, which the standard library does not offer.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::sys::check;

/// Begins to connect. The socket never blocks; once it is writable, `TcpStream::take_error` says
/// how the connect ended. No program that this process starts gets it.
pub fn connect_begin(address: &SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: `socket` takes numbers alone.
    let raw = check(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: `raw` was opened just now and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    let result = match address {
        SocketAddr::V4(address) => {
            let name = libc::sockaddr_in {
                sin_family: family as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                sin_zero: [0; 8],
            };
            connect(&socket, &name)
        }
        SocketAddr::V6(address) => {
            let name = libc::sockaddr_in6 {
                sin6_family: family as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            connect(&socket, &name)
        }
    };
    match result {
        // Interrupted by a signal it goes on by itself, as when it is in progress.
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR)) => {
            Err(error)
        }
        _ => Ok(TcpStream::from(socket)),
    }
}

/// `name` is a socket address of the socket's family.
fn connect<T>(socket: &OwnedFd, name: &T) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0);
    let name = std::ptr::from_ref(name).cast::<libc::sockaddr>();
    // SAFETY: `name` points to `length` bytes that outlive the call.
    check(unsafe { libc::connect(socket.as_raw_fd(), name, length) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Interest, PollFd, poll};
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::fd::AsFd;
    use std::time::Duration;

    fn connected(address: &SocketAddr) -> io::Result<TcpStream> {
        let stream = connect_begin(address)?;
        let mut fds = [PollFd::new(Some(stream.as_fd()), Interest::Write)];
        poll(&mut fds, Some(Duration::from_secs(20)))?;
        assert!(fds[0].is_ready());
        stream.take_error()?.map_or(Ok(stream), Err)
    }

    #[test]
    fn both_families_connect_and_a_refusal_is_reported() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(host) else { continue };
            let address = listener.local_addr().unwrap();
            let mut stream = connected(&address).unwrap();
            let (mut other, from) = listener.accept().unwrap();
            assert_eq!(from, stream.local_addr().unwrap());
            let error = stream.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            stream.write_all(b"x").unwrap();
            other.read_exact(&mut [0]).unwrap();
            drop((listener, stream, other));
            let error = connected(&address).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{host}");
        }
    }
}

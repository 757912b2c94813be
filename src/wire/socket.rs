//! A TCP connection, with or without TLS, on the caller's thread.
//!
//! The socket never blocks underneath. What must wait, waits in one place ([`Tcp::wait`]) for
//! the socket, the cancellation and the clock at once: cancelling ends any wait at once, and no
//! thread, descriptor or lock is left behind. The waits are allowed by [`Socket::begin`] and
//! forbidden again by [`Socket::end`]: outside of the two nothing waits, and no descriptor but the
//! socket's is held.

use std::io::{self, PipeReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use crate::cancel::{Cancel, Closer};
use crate::sys::{self, Interest, PollFd};

/// How long a wait may take.
#[derive(Debug, Clone, Copy)]
pub(super) enum Patience {
    /// All waits together.
    Until(Instant),
    /// Every single one.
    Each(Duration),
}

/// What ended a wait in place of the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    Cancelled,
    TimedOut,
}

pub(super) enum Socket {
    Tcp(Tcp),
    /// TLS above a connection, which may be TLS itself: to a host behind a TLS proxy.
    Tls(Box<Tls>),
}

pub(super) struct Tls {
    session: ClientConnection,
    below: Socket,
}

pub(super) struct Tcp {
    stream: TcpStream,
    waiting: Option<Waiting>,
    stopped: Option<Stopped>,
}

struct Waiting {
    cancel: Cancel,
    patience: Patience,
    /// Made by the first wait: what is there already costs no descriptor.
    wake: Option<Wake>,
}

/// A pipe whose write end the cancellation drops.
struct Wake {
    reader: PipeReader,
    _closer: Closer,
}

impl Socket {
    /// Connects to the first address that takes it, each in its share of the time. The error is
    /// the last address's.
    pub fn connect(
        addresses: &[SocketAddr],
        cancel: &Cancel,
        until: Instant,
    ) -> Result<Socket, (io::Error, Option<Stopped>)> {
        let mut last = (io::Error::from(io::ErrorKind::AddrNotAvailable), None);
        for (idx, address) in addresses.iter().enumerate() {
            let left = until.saturating_duration_since(Instant::now());
            // One address that nobody answers at must not use up the time of the others.
            let share = if idx + 1 == addresses.len() { left } else { left / 2 };
            match connect_one(address, cancel, Instant::now() + share) {
                Ok(tcp) => return Ok(Socket::Tcp(tcp)),
                Err(failure) => last = failure,
            }
            if last.1 == Some(Stopped::Cancelled) {
                break;
            }
        }
        Err(last)
    }

    /// TLS above this connection, with a finished handshake.
    pub fn secure(
        mut self,
        config: Arc<rustls::ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Socket, (io::Error, Option<Stopped>)> {
        let session = ClientConnection::new(config, name)
            .map_err(|error| (io::Error::new(io::ErrorKind::InvalidData, error), None));
        let mut session = session?;
        while session.is_handshaking() {
            if let Err(error) = session.complete_io(&mut self) {
                return Err((error, self.stopped()));
            }
        }
        Ok(Socket::Tls(Box::new(Tls { session, below: self })))
    }

    fn tcp(&mut self) -> &mut Tcp {
        match self {
            Socket::Tcp(tcp) => tcp,
            Socket::Tls(tls) => tls.below.tcp(),
        }
    }

    /// From now on reads and writes wait.
    pub fn begin(&mut self, cancel: &Cancel, patience: Patience) {
        let tcp = self.tcp();
        tcp.stopped = None;
        tcp.waiting = Some(Waiting { cancel: cancel.clone(), patience, wake: None });
    }

    /// From now on reads and writes fail with `WouldBlock` where they would wait.
    pub fn end(&mut self) {
        self.tcp().waiting = None;
    }

    /// What ended the last wait, when it was not the socket.
    pub fn stopped(&mut self) -> Option<Stopped> {
        self.tcp().stopped
    }

    /// Tells the other side of TLS that no more comes, as far as that needs no waiting.
    pub fn say_goodbye(&mut self) {
        self.end();
        if let Socket::Tls(tls) = self {
            tls.session.send_close_notify();
            let _ = tls.session.complete_io(&mut tls.below);
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(tcp) => tcp.read(buffer),
            Socket::Tls(tls) => rustls::Stream::new(&mut tls.session, &mut tls.below).read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(tcp) => tcp.write(bytes),
            Socket::Tls(tls) => rustls::Stream::new(&mut tls.session, &mut tls.below).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Tcp(_) => Ok(()),
            Socket::Tls(tls) => rustls::Stream::new(&mut tls.session, &mut tls.below).flush(),
        }
    }
}

fn connect_one(
    address: &SocketAddr,
    cancel: &Cancel,
    until: Instant,
) -> Result<Tcp, (io::Error, Option<Stopped>)> {
    let stream = sys::connect_begin(address).map_err(|error| (error, None))?;
    let patience = Patience::Until(until);
    let waiting = Some(Waiting { cancel: cancel.clone(), patience, wake: None });
    let mut tcp = Tcp { stream, waiting, stopped: None };
    let connected = tcp.wait(Interest::Write).and_then(|()| match tcp.stream.take_error()? {
        Some(error) => Err(error),
        // Frames are written whole: nothing is gained by holding the last packet back.
        None => tcp.stream.set_nodelay(true),
    });
    match connected {
        Ok(()) => Ok(tcp),
        Err(error) => Err((error, tcp.stopped)),
    }
}

impl Tcp {
    fn stop(&mut self, stopped: Stopped) -> io::Error {
        self.stopped = Some(stopped);
        io::Error::from(io::ErrorKind::TimedOut)
    }

    fn wait(&mut self, interest: Interest) -> io::Result<()> {
        let Some(waiting) = &mut self.waiting else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let wake = match waiting.wake.take() {
            Some(wake) => wake,
            None => {
                let (reader, writer) = io::pipe()?;
                Wake { reader, _closer: waiting.cancel.on_cancel(move || drop(writer)) }
            }
        };
        let wake = waiting.wake.insert(wake);
        let until = match waiting.patience {
            Patience::Until(until) => until,
            Patience::Each(limit) => Instant::now() + limit,
        };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut fds = [
                PollFd::new(Some(self.stream.as_fd()), interest),
                PollFd::new(Some(wake.reader.as_fd()), Interest::Read),
            ];
            sys::poll(&mut fds, Some(left))?;
            match (fds[0].is_ready(), fds[1].is_ready()) {
                (_, true) => return Err(self.stop(Stopped::Cancelled)),
                (true, _) => return Ok(()),
                _ if left.is_zero() => return Err(self.stop(Stopped::TimedOut)),
                _ => {}
            }
        }
    }

    /// Runs `operation` until it needs no waiting.
    fn attempt<T>(
        &mut self,
        interest: Interest,
        mut operation: impl FnMut(&TcpStream) -> io::Result<T>,
    ) -> io::Result<T> {
        // TLS keeps the failure of a write to itself and tries again: that must not wait again.
        if let Some(stopped) = self.stopped.filter(|_| self.waiting.is_some()) {
            return Err(self.stop(stopped));
        }
        loop {
            // A peer that never lets us wait must not outrun a cancellation.
            if self.waiting.as_ref().is_some_and(|waiting| waiting.cancel.is_cancelled()) {
                return Err(self.stop(Stopped::Cancelled));
            }
            match operation(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(interest)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.attempt(Interest::Read, |mut stream| stream.read(buffer))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(Interest::Write, |mut stream| stream.write(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn what_was_stopped_stays_so_until_the_next_begin() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (cancel, far) = (Cancel::new(), Instant::now() + Duration::from_secs(20));
        let mut socket = Socket::connect(&[address], &cancel, far).ok().unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let piece = [0; 1 << 16];
        socket.begin(&cancel, Patience::Each(Duration::from_millis(20)));
        let mut written = 0;
        while let Ok(count) = socket.write(&piece) {
            written += count;
        }
        assert_eq!(socket.stopped(), Some(Stopped::TimedOut));
        peer.read_exact(&mut vec![0; written]).unwrap();
        // There is room again, but the failure was not told yet.
        assert_eq!(socket.write(&piece).unwrap_err().kind(), io::ErrorKind::TimedOut);
        socket.begin(&cancel, Patience::Until(far));
        assert!(socket.write(&piece).unwrap() > 0);
    }
}

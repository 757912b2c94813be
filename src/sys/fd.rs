//! File descriptors: flags and waiting.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use crate::sys::check;

/// What a wait on a descriptor is for. Hang-up and errors wake it in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Read,
    Write,
    /// Nothing but hang-up and errors.
    End,
}

/// One descriptor of a [`poll`].
#[repr(transparent)]
pub struct PollFd<'fd> {
    inner: libc::pollfd,
    fd: PhantomData<BorrowedFd<'fd>>,
}

impl<'fd> PollFd<'fd> {
    /// Without a descriptor it is never ready: a place holder that keeps positions fixed.
    pub fn new(fd: Option<BorrowedFd<'fd>>, interest: Interest) -> PollFd<'fd> {
        let events = match interest {
            Interest::Read => libc::POLLIN,
            Interest::Write => libc::POLLOUT,
            Interest::End => 0,
        };
        let fd = fd.map_or(-1, |fd| fd.as_raw_fd());
        PollFd { inner: libc::pollfd { fd, events, revents: 0 }, fd: PhantomData }
    }

    /// Whether an operation would not block, hang-up and errors included.
    pub fn is_ready(&self) -> bool {
        self.inner.revents != 0
    }
}

/// Waits until a descriptor is ready or `timeout` is over; `None` waits without end.
///
/// Returns how many are ready. A signal ends the wait early with 0: callers loop by a deadline.
pub fn poll(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(|timeout| libc::timespec {
        // 68 years fit the field on every machine.
        tv_sec: i32::try_from(timeout.as_secs()).unwrap_or(i32::MAX).into(),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = libc::nfds_t::try_from(fds.len()).unwrap_or(libc::nfds_t::MAX);
    // SAFETY: `PollFd` has the layout of `pollfd`, `fds` is exclusively borrowed and its
    // descriptors are open as long as it; `timeout` is null or points to a live `timespec`.
    let ready = unsafe { libc::ppoll(fds.as_mut_ptr().cast(), count, timeout, std::ptr::null()) };
    match check(ready) {
        Ok(ready) => Ok(usize::try_from(ready).unwrap_or(0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            fds.iter_mut().for_each(|fd| fd.inner.revents = 0);
            Ok(0)
        }
        Err(error) => Err(error),
    }
}

/// Makes reads and writes return `WouldBlock` instead of waiting. The mode belongs to the open
/// file, so everyone who shares it is affected.
pub fn set_nonblocking(fd: BorrowedFd<'_>, nonblocking: bool) -> io::Result<()> {
    let raw = fd.as_raw_fd();
    // SAFETY: F_GETFL takes no argument and `fd` is open.
    let flags = check(unsafe { libc::fcntl(raw, libc::F_GETFL) })?;
    let wanted = if nonblocking { flags | libc::O_NONBLOCK } else { flags & !libc::O_NONBLOCK };
    if wanted != flags {
        // SAFETY: F_SETFL takes an int and `fd` is open.
        check(unsafe { libc::fcntl(raw, libc::F_SETFL, wanted) })?;
    }
    Ok(())
}

/// Whether a program that this process starts gets the descriptor (false) or not (true).
pub fn set_cloexec(fd: BorrowedFd<'_>, cloexec: bool) -> io::Result<()> {
    let flags = if cloexec { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: F_SETFD takes an int and `fd` is open.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, flags) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_wait_ends_by_data_by_hang_up_and_by_time() {
        let (reader, mut writer) = io::pipe().unwrap();
        let wait = |timeout_ms| {
            let mut fds = [
                PollFd::new(None, Interest::Read),
                PollFd::new(Some(reader.as_fd()), Interest::Read),
            ];
            let count = poll(&mut fds, Some(Duration::from_millis(timeout_ms))).unwrap();
            (count, fds[0].is_ready(), fds[1].is_ready())
        };
        assert_eq!(wait(1), (0, false, false));
        writer.write_all(b"x").unwrap();
        assert_eq!(wait(60_000), (1, false, true));
        (&reader).read_exact(&mut [0]).unwrap();
        assert_eq!(wait(0), (0, false, false));
        drop(writer);
        assert_eq!(wait(60_000), (1, false, true));
    }

    #[test]
    fn a_nonblocking_read_returns_at_once() {
        let (mut reader, _writer) = io::pipe().unwrap();
        set_nonblocking(reader.as_fd(), true).unwrap();
        let error = reader.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}

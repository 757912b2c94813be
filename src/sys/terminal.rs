//! The settings of a terminal: as found, raw, and given back.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::sys::check;

/// A terminal's settings at one moment.
#[derive(Clone)]
pub struct Settings(libc::termios);

/// The settings now; fails where there is no terminal.
pub fn settings(fd: BorrowedFd<'_>) -> io::Result<Settings> {
    // SAFETY: a zeroed termios is valid memory for the call to write.
    let mut found: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: `found` is a termios that the call may write.
    check(unsafe { libc::tcgetattr(fd.as_raw_fd(), &raw mut found) })?;
    Ok(Settings(found))
}

/// Keys come one by one, unechoed, and none of them is a signal or stops the output. What is
/// written is still laid out (`\n` begins a line). Stops this process while it is in the background.
pub fn set_raw(fd: BorrowedFd<'_>, found: &Settings) -> io::Result<()> {
    let mut raw = found.sane().0;
    raw.c_iflag &= !(libc::BRKINT
        | libc::ICRNL
        | libc::INLCR
        | libc::IGNCR
        | libc::INPCK
        | libc::ISTRIP
        | libc::IXON);
    raw.c_lflag &= !(libc::ECHO | libc::ECHONL | libc::ICANON | libc::ISIG | libc::IEXTEN);
    raw.c_cflag |= libc::CS8;
    raw.c_cc[libc::VMIN] = 1;
    raw.c_cc[libc::VTIME] = 0;
    set(fd, &Settings(raw))
}

/// Puts settings back, at once: output that a stopped terminal holds back is not waited for. In the
/// background, where it would stop this process, nothing is done: the terminal is somebody else's.
pub fn restore(fd: BorrowedFd<'_>, settings: &Settings) -> io::Result<()> {
    if crate::sys::is_foreground(fd) { set(fd, settings) } else { Ok(()) }
}

fn set(fd: BorrowedFd<'_>, settings: &Settings) -> io::Result<()> {
    // SAFETY: the call reads one termios.
    check(unsafe { libc::tcsetattr(fd.as_raw_fd(), libc::TCSANOW, &raw const settings.0) })
        .map(drop)
}

impl Settings {
    /// The same, but fit for a shell: somebody else may have left the terminal raw.
    pub fn sane(&self) -> Settings {
        let mut sane = self.clone();
        if sane.0.c_lflag & (libc::ICANON | libc::ECHO) == 0 {
            sane.0.c_iflag |= libc::ICRNL | libc::BRKINT | libc::IXON;
            sane.0.c_oflag |= libc::OPOST | libc::ONLCR;
            sane.0.c_lflag |=
                libc::ICANON | libc::ECHO | libc::ECHOE | libc::ECHOK | libc::ISIG | libc::IEXTEN;
        }
        sane
    }
}

/// The terminal on `fd` once more, opened for writing that never waits (`WouldBlock` instead). The
/// others who share `fd` notice nothing of it. Fails where `fd` is no terminal.
pub fn open_again(fd: BorrowedFd<'_>) -> io::Result<File> {
    settings(fd)?;
    let open = |path: &str| {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        OpenOptions::new().write(true).custom_flags(flags).open(path)
    };
    // It may be another user's (`su`); then this session's own terminal is open to everybody.
    open(&format!("/proc/self/fd/{}", fd.as_raw_fd())).or_else(|_| open("/dev/tty"))
}

/// Drops what was written and has not been taken by whoever reads the terminal. In the background,
/// where it would stop this process, it fails.
pub fn drop_output(fd: BorrowedFd<'_>) -> io::Result<()> {
    if !crate::sys::is_foreground(fd) {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    // SAFETY: no memory is involved.
    check(unsafe { libc::tcflush(fd.as_raw_fd(), libc::TCOFLUSH) }).map(drop)
}

/// Bytes that were typed and not read yet.
pub fn typed_ahead(fd: BorrowedFd<'_>) -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: the request writes one integer.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &raw mut count) };
    if result == 0 { usize::try_from(count).unwrap_or(0) } else { 0 }
}

/// Stops this process and those of its job, as Ctrl-Z does; returns when it is continued. Nothing
/// stops where SIGTSTP is ignored or no shell could continue the job.
pub fn suspend() -> io::Result<()> {
    // SAFETY: neither ignoring nor the default runs code of ours.
    unsafe {
        let before = libc::signal(libc::SIGTSTP, libc::SIG_IGN);
        if before == libc::SIG_IGN {
            return Ok(());
        }
        // The others first, then this thread: what it sends itself is delivered before it goes on,
        // while any thread may get what is sent to the process.
        let others = check(libc::kill(0, libc::SIGTSTP));
        libc::signal(libc::SIGTSTP, libc::SIG_DFL);
        libc::raise(libc::SIGTSTP);
        libc::signal(libc::SIGTSTP, before);
        others.map(drop)
    }
}

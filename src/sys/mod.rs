//! All `unsafe` of the project: what the standard library does not offer of the platform (Linux).
//!
//! Every function here is safe to call, small, and returns `io::Result` where the platform can
//! refuse. Nothing in here keeps state beyond a call, the signal pipe excepted.
#![allow(unsafe_code)]

mod child;
pub mod dir;
mod fd;
mod proc;
mod signal;
mod socket;
mod terminal;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

pub use child::{
    Launch, LaunchError, LaunchStage, group_of, kill, kill_group, launch, pidfd_open, session_of,
    wait, wait_keeping, wait_now,
};
pub use fd::{Interest, PollFd, poll, set_cloexec, set_nonblocking};
pub use proc::{
    ProcStat, Relation, Writer, holds, is_whole_process, last_pid, pids, pipe_writers, proc_stat,
};
pub use signal::{Signal, ignore_signals, signals, survive_file_size_limit, watch_terminal};
pub use socket::connect_begin;
pub use terminal::{
    Settings, drop_output, open_again, restore, set_raw, settings, suspend, typed_ahead,
};

/// Fills `buffer` with random bytes from the kernel (no device file is opened).
pub fn random_bytes(buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let rest = &mut buffer[filled..];
        // SAFETY: the pointer and the length describe `rest`, which is writable.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match got {
            got if got > 0 => filled += got.unsigned_abs(),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Columns and rows of the terminal on `fd`; `None` when it is none or does not know its size.
pub fn terminal_size(fd: BorrowedFd<'_>) -> Option<(u16, u16)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the request writes one `winsize`, which `size` is.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// Whether the terminal is this process's to read and to set: its group is in the foreground.
pub fn is_foreground(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: no memory is involved.
    let (foreground, own) = unsafe { (libc::tcgetpgrp(fd.as_raw_fd()), libc::getpgrp()) };
    foreground == own
}

/// Whether this process may write to a file, or make files in a folder: permissions, mounts and
/// all. A hint: the write itself decides.
pub fn can_write(path: &std::path::Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the path ends with a NUL byte and is only read.
    unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
}

/// Names this thread, as `ps` shows it; for a whole process when its main thread asks.
pub fn set_thread_name(name: &std::ffi::CStr) {
    // SAFETY: PR_SET_NAME reads a C string, of which it keeps 15 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// `Err` with the calling thread's last error when `result` is -1, as most calls report failure.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    #[test]
    fn a_pipe_has_no_terminal_size() {
        let (reader, _writer) = std::io::pipe().unwrap();
        assert_eq!(super::terminal_size(reader.as_fd()), None);
    }
}

//! Directories without a `stat` or an allocation per entry: for walking large trees.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::sys::check;

/// What an entry is, as far as its directory says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Dir,
    Symlink,
    /// A pipe, socket or device.
    Special,
    /// The file system does not say: look at the entry itself.
    Unknown,
}

/// An open directory.
pub struct Dir {
    file: File,
}

impl Dir {
    /// Opens a directory. A symlink in the last place is refused.
    pub fn open(path: &Path) -> io::Result<Dir> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
        Ok(Dir { file: options.open(path)? })
    }

    /// The next entries, `.` and `..` included, as many as fit in the buffer (at least 1 KiB);
    /// none at the end.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Entries<'b>> {
        // SAFETY: the pointer and the length describe `buffer`, which is writable.
        let got = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                self.file.as_raw_fd(),
                buffer.as_mut_ptr(),
                buffer.len(),
            )
        };
        match usize::try_from(got) {
            Ok(length) => Ok(Entries { rest: &buffer[..length] }),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// Opens an entry for reading without waiting for anything: no symlink is followed, and a
    /// pipe does not wait for its writer.
    pub fn open_entry(&self, name: &CStr) -> io::Result<File> {
        let flags =
            libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        // SAFETY: the descriptor is open and the name ends with NUL.
        let fd = check(unsafe { libc::openat(self.file.as_raw_fd(), name.as_ptr(), flags) })?;
        // SAFETY: `openat` has just returned this descriptor; nobody else owns it.
        Ok(unsafe { File::from_raw_fd(fd) })
    }
}

/// Entries as the kernel wrote them.
pub struct Entries<'b> {
    rest: &'b [u8],
}

/// Where `struct linux_dirent64` has its fields.
const LENGTH_AT: usize = 16;
const KIND_AT: usize = 18;
const NAME_AT: usize = 19;

impl<'b> Iterator for Entries<'b> {
    type Item = (&'b CStr, Kind);

    fn next(&mut self) -> Option<Self::Item> {
        let length = self.rest.get(LENGTH_AT..KIND_AT)?;
        let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
        let (entry, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let kind = match *entry.get(KIND_AT)? {
            libc::DT_REG => Kind::File,
            libc::DT_DIR => Kind::Dir,
            libc::DT_LNK => Kind::Symlink,
            libc::DT_UNKNOWN => Kind::Unknown,
            _ => Kind::Special,
        };
        Some((CStr::from_bytes_until_nul(entry.get(NAME_AT..)?).ok()?, kind))
    }
}

impl Entries<'_> {
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

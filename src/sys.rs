//! All `unsafe` of the project: what the standard library does not offer of the platform.
//!
//! Every function here is safe to call, small, and returns `io::Result` where the platform can
//! refuse. Nothing in here keeps state beyond a call, signal pipes excepted.
#![allow(unsafe_code)]

use std::io;

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

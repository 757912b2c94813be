//! Which process holds the lock of a session, for the message to the one that is refused.
//!
//! The lock itself is the truth and the kernel lists its holder; where it does not (another
//! system, another namespace), the number that the holder left beside the session is told.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::lines::open_file;

/// More than any number has.
const NOTE_BYTES_MAX: u64 = 64;

/// The process that holds `file`, whose holder writes its number to `note`.
pub fn pid(file: &File, note: &Path) -> Option<u32> {
    let listed = || {
        let inode = file.metadata().ok()?.ino();
        listed(&fs::read_to_string("/proc/locks").ok()?, inode)
    };
    let noted = || {
        let mut text = String::new();
        open_file(note).ok()?.take(NOTE_BYTES_MAX).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    };
    listed().or_else(noted)
}

/// The holder of the only exclusive lock on this inode; file systems share the numbers of inodes.
fn listed(locks: &str, inode: u64) -> Option<u32> {
    let mut holders = locks.lines().filter_map(|line| holder(line, inode));
    let first = holders.next()?;
    holders.all(|pid| pid == first).then_some(first)
}

/// `1: FLOCK  ADVISORY  WRITE 13671 fe:00:10010649 0 EOF`; those who wait have `->` in front, those
/// of another namespace the number 0.
fn holder(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    let kind = [words.next()?, words.next()?, words.next()?];
    let pid: u32 = words.next()?.parse().ok()?;
    let place = words.next()?;
    let own = place.rsplit(':').next()?.parse() == Ok(inode);
    (kind == ["FLOCK", "ADVISORY", "WRITE"] && own && pid != 0).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_exclusive_holder_of_the_file_is_named() {
        let check = |locks: &str, want| assert_eq!(listed(locks, 7), want, "{locks}");
        check("1: FLOCK  ADVISORY  WRITE 12 fe:00:7 0 EOF\n", Some(12));
        check(
            "1: POSIX  ADVISORY  WRITE 11 fe:00:7 0 EOF\n2: FLOCK  ADVISORY  WRITE 12 fe:00:7 0 EOF\n\
             2: -> FLOCK  ADVISORY  WRITE 13 fe:00:7 0 EOF\n3: FLOCK  ADVISORY  WRITE 14 fe:00:77 0 EOF",
            Some(12),
        );
        check(
            "1: FLOCK  ADVISORY  WRITE 12 fe:00:7 0 EOF\n2: FLOCK  ADVISORY  WRITE 13 fe:01:7 0 EOF",
            None,
        );
        check("1: FLOCK  ADVISORY  WRITE 0 fe:00:7 0 EOF", None);
        check("1: FLOCK  ADVISORY  READ 12 fe:00:7 0 EOF", None);
        check("noise\n1: FLOCK ADVISORY WRITE x fe:00:7 0\n\n", None);
    }
}

//! How two states of a file are told apart.
//!
//! A file of at most [`HASHED_BYTES_MAX`] is known by its content, so that touching it or writing
//! the same bytes again changes nothing. A larger one is known by what the file system says of
//! it, so that reading two lines of it does not cost reading all of it. The hash is for noticing
//! change, not for defence: whoever can build a collision can already write the file.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Up to here a file is known by the hash of its content; hashing this much takes a few ms.
pub const HASHED_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// What the file system says of a file's state, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
    pub len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileId {
    pub fn of(metadata: &Metadata) -> FileId {
        FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The same file, whatever its content now is.
    pub fn is_same_file(&self, other: &FileId) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// The state of a file at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    Content { len: u64, hash: u64 },
    Identity(FileId),
}

impl Stamp {
    /// The state of a file whose whole content is `bytes`.
    pub fn of(bytes: &[u8], id: FileId) -> Stamp {
        if HASHED_BYTES_MAX < bytes.len() as u64 {
            return Stamp::Identity(id);
        }
        let mut hash = ContentHash::default();
        hash.update(bytes);
        hash.stamp()
    }
}

/// Odd, with bits spread evenly (the fraction of the golden ratio).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A streaming 64-bit hash; any way of cutting the same bytes gives the same value.
#[derive(Debug, Clone, Default)]
pub struct ContentHash {
    state: u64,
    /// The last `len % 8` bytes, lowest first.
    tail: [u8; 8],
    len: u64,
}

impl ContentHash {
    pub fn update(&mut self, mut bytes: &[u8]) {
        let held = (self.len % 8) as usize;
        self.len += bytes.len() as u64;
        if held > 0 {
            let take = bytes.len().min(8 - held);
            self.tail[held..held + take].copy_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            if held + take < 8 {
                return;
            }
            self.state = mix(self.state, u64::from_le_bytes(self.tail));
        }
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.state = mix(self.state, u64::from_le_bytes(*word));
        }
        self.tail = [0; 8];
        self.tail[..rest.len()].copy_from_slice(rest);
    }

    /// Bytes hashed so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn stamp(&self) -> Stamp {
        let held = (self.len % 8) as usize;
        let mut tail = [0; 8];
        tail[..held].copy_from_slice(&self.tail[..held]);
        let hash = mix(mix(self.state, u64::from_le_bytes(tail)), self.len);
        Stamp::Content { len: self.len, hash }
    }
}

/// Multiplies to 128 bits and folds, so that every bit of the input reaches every bit.
fn mix(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word ^ FACTOR) * u128::from(FACTOR.rotate_left(23) | 1);
    #[allow(clippy::cast_possible_truncation)]
    let folded = (product as u64) ^ ((product >> 64) as u64);
    folded.rotate_left(29).wrapping_add(state.wrapping_mul(FACTOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(pieces: &[&[u8]]) -> Stamp {
        let mut hash = ContentHash::default();
        pieces.iter().for_each(|piece| hash.update(piece));
        hash.stamp()
    }

    #[test]
    fn every_cut_of_the_same_bytes_hashes_alike() {
        let bytes: Vec<u8> = (0..40).collect();
        let whole = hash(&[&bytes]);
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(hash(&pieces), whole, "cuts at {first} and {second}");
            }
        }
    }

    #[test]
    fn near_contents_hash_apart() {
        let mut seen = std::collections::HashSet::new();
        let mut add = |bytes: &[u8]| {
            let Stamp::Content { hash, .. } = hash(&[bytes]) else { panic!("small is hashed") };
            assert!(seen.insert(hash), "{bytes:?}");
        };
        // Every one-bit change of 24 bytes, every length of zeros, swapped words.
        let base = *b"let answer = 41; // todo";
        add(&base);
        for bit in 0..base.len() * 8 {
            let mut bytes = base;
            bytes[bit / 8] ^= 1 << (bit % 8);
            add(&bytes);
        }
        (0..200).for_each(|len| add(&vec![0; len]));
        add(b"aaaaaaaabbbbbbbb");
        add(b"bbbbbbbbaaaaaaaa");
    }
}

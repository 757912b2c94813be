//! Where a stream of WebSocket frames stands: between two messages, or in the middle of one.
//!
//! A reader that waits for the rest of a message looks like one that waits for a message. Here the
//! bytes are only followed, never kept; whether they make sense is the reader's business.

/// The longest head of a frame: of a server's, which has no mask, 10 bytes.
const HEAD_BYTES_MAX: usize = 14;

#[derive(Debug, Default)]
pub(super) struct Frames {
    head: [u8; HEAD_BYTES_MAX],
    /// Of a frame whose head is not complete.
    head_bytes: usize,
    /// Of the payload, still to come.
    payload_bytes: u64,
    /// A message's first frames were there, its last one was not.
    in_message: bool,
}

impl Frames {
    /// The next bytes have arrived.
    pub fn advance(&mut self, mut bytes: &[u8]) {
        while let [first, rest @ ..] = bytes {
            if self.payload_bytes > 0 {
                let part = usize::try_from(self.payload_bytes).unwrap_or(usize::MAX);
                let part = part.min(bytes.len());
                self.payload_bytes -= part as u64;
                bytes = &bytes[part..];
                continue;
            }
            self.head[self.head_bytes] = *first;
            self.head_bytes += 1;
            bytes = rest;
            self.end_head();
        }
    }

    fn end_head(&mut self) {
        let head = &self.head[..self.head_bytes];
        let [first, second, length @ ..] = head else { return };
        let mask_bytes = if second & 0x80 == 0 { 0 } else { 4 };
        let (length_bytes, short) = match second & 0x7F {
            126 => (2, 0),
            127 => (8, 0),
            short => (0, u64::from(short)),
        };
        if length.len() < length_bytes + mask_bytes {
            return;
        }
        let long = length[..length_bytes].iter();
        self.payload_bytes = long.fold(short, |sum, byte| (sum << 8) | u64::from(*byte));
        let is_control = first & 0x08 != 0;
        if !is_control {
            self.in_message = first & 0x80 == 0;
        }
        self.head_bytes = 0;
    }

    /// Every message that has begun has ended.
    pub fn is_between_messages(&self) -> bool {
        self.head_bytes == 0 && self.payload_bytes == 0 && !self.in_message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_messages_leave_nothing_open() {
        let long = |kind: u8, length: &[u8], payload: usize| {
            [&[kind], length, &vec![b'x'; payload]].concat()
        };
        // Text; a ping within two fragments; medium and long lengths; an empty one; a masked one.
        let parts = [
            (b"\x81\x02ab".to_vec(), true),
            (b"\x01\x01a".to_vec(), false),
            (b"\x89\x01p".to_vec(), false),
            (b"\x80\x01b".to_vec(), true),
            (long(0x81, b"\x7e\x01\x00", 256), true),
            (long(0x81, b"\x7f\0\0\0\0\0\x01\0\0", 65536), true),
            (b"\x81\x00".to_vec(), true),
            (b"\x81\x81mask1".to_vec(), true),
        ];
        let mut frames = Frames::default();
        for (bytes, whole) in &parts {
            for byte in &bytes[..bytes.len() - 1] {
                frames.advance(&[*byte]);
                assert!(!frames.is_between_messages());
            }
            frames.advance(&bytes[bytes.len() - 1..]);
            assert_eq!(frames.is_between_messages(), *whole);
        }
        let mut at_once = Frames::default();
        at_once.advance(&parts.iter().flat_map(|(bytes, _)| bytes.clone()).collect::<Vec<_>>());
        assert!(at_once.is_between_messages());
    }
}

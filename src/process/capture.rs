//! One output, of which the start and the end are kept: memory does not grow with what is
//! written.

/// What was kept of an output. `head` and `tail` touch when nothing is missing between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capture {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    /// Between `head` and `tail`.
    pub elided_bytes: u64,
    pub elided_lines: u64,
}

impl Capture {
    /// All bytes that were written.
    pub fn total_bytes(&self) -> u64 {
        let kept = self.head.len() + self.tail.len();
        u64::try_from(kept).unwrap_or(u64::MAX).saturating_add(self.elided_bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty()
    }
}

/// Fills a [`Capture`].
pub(super) struct Capturing {
    capture: Capture,
    head_bytes: usize,
    tail_bytes: usize,
}

impl Capturing {
    pub(super) fn new(head_bytes: usize, tail_bytes: usize) -> Capturing {
        Capturing { capture: Capture::default(), head_bytes, tail_bytes }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let head = &mut self.capture.head;
        let room = self.head_bytes.saturating_sub(head.len()).min(bytes.len());
        head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        // More than the tail in one piece: only its end can stay.
        let skipped = rest.len().saturating_sub(self.tail_bytes);
        if skipped > 0 {
            self.elide_tail(self.capture.tail.len());
            self.count(&rest[..skipped]);
        }
        self.capture.tail.extend_from_slice(&rest[skipped..]);
        // Twice the size before anything moves: each byte is moved at most once.
        if self.capture.tail.len() > self.tail_bytes.saturating_mul(2) {
            self.elide_tail(self.capture.tail.len() - self.tail_bytes);
        }
    }

    pub(super) fn finish(mut self) -> Capture {
        let over = self.capture.tail.len().saturating_sub(self.tail_bytes);
        self.elide_tail(over);
        self.capture
    }

    fn elide_tail(&mut self, bytes: usize) {
        let mut tail = std::mem::take(&mut self.capture.tail);
        self.count(&tail[..bytes]);
        tail.drain(..bytes);
        self.capture.tail = tail;
    }

    fn count(&mut self, bytes: &[u8]) {
        self.capture.elided_bytes += u64::try_from(bytes.len()).unwrap_or(0);
        let lines = memchr::memchr_iter(b'\n', bytes).count();
        self.capture.elided_lines += u64::try_from(lines).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The obvious way, for comparison.
    fn want(bytes: &[u8], head: usize, tail: usize) -> Capture {
        let head = head.min(bytes.len());
        let tail = tail.min(bytes.len() - head);
        let middle = &bytes[head..bytes.len() - tail];
        Capture {
            head: bytes[..head].to_vec(),
            tail: bytes[bytes.len() - tail..].to_vec(),
            elided_bytes: middle.len() as u64,
            elided_lines: middle.iter().filter(|byte| **byte == b'\n').count() as u64,
        }
    }

    #[test]
    fn any_pieces_and_any_sizes_keep_start_and_end() {
        let bytes: Vec<u8> = (0..60).map(|n| if n % 7 == 3 { b'\n' } else { b'0' + n }).collect();
        for len in 0..bytes.len() {
            for (head, tail) in [(0, 0), (0, 5), (5, 0), (5, 5), (1, 30), (30, 1), (100, 100)] {
                for piece in [1, 2, 3, 7, 11, 60] {
                    let mut capturing = Capturing::new(head, tail);
                    bytes[..len].chunks(piece).for_each(|piece| capturing.push(piece));
                    let capture = capturing.finish();
                    assert_eq!(
                        capture,
                        want(&bytes[..len], head, tail),
                        "{len} {head} {tail} {piece}"
                    );
                    assert_eq!(capture.total_bytes(), len as u64);
                }
            }
        }
    }

    #[test]
    fn memory_stays_bounded() {
        let mut capturing = Capturing::new(1000, 1000);
        for _ in 0..10_000 {
            capturing.push(&[b'x'; 777]);
            assert!(capturing.capture.tail.capacity() <= 4096);
        }
        assert_eq!(capturing.finish().total_bytes(), 7_770_000);
    }
}

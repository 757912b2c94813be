//! Numbers that look random and are the same for the same seed.

/// Xorshift; the seed is not 0.
pub struct Random(pub u64);

impl Random {
    /// A number below the bound, 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    pub fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

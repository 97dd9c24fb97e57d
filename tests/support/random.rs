//! Numbers that look random and come again from the same seed.

use std::time::Duration;

/// A small generator (xorshift*), so that a failing run can be repeated from its seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound.max(1)
    }

    /// Returns one of `values`.
    pub fn pick<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        let bound = u64::try_from(values.len()).expect("a length");
        &values[usize::try_from(self.below(bound)).expect("an index")]
    }

    /// Returns a span of less than `bound` milliseconds, in steps of a tenth.
    pub fn span(&mut self, bound: u64) -> Duration {
        Duration::from_micros(self.below(bound * 10) * 100)
    }
}

//! Numbers that look random and come again from the same seed.

/// A small generator (splitmix64).
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        u32::try_from((mixed ^ (mixed >> 31)) % u64::from(bound.max(1))).expect("less than a bound")
    }

    /// Returns a number from `low` to `high`.
    pub fn within(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// Returns a number of seconds below `bound`.
    pub fn span(&mut self, bound: i64) -> i64 {
        i64::from(self.below(u32::try_from(bound).expect("less than a century")))
    }

    /// Returns one of `values`.
    pub fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(u32::try_from(values.len()).expect("a short list")) as usize].clone()
    }
}

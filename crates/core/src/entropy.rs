//! Entropy as an argument.
//!
//! A step is handed 64 unpredictable bits. Where it needs several values it
//! spreads those bits; it never makes any of its own, so that the same events
//! with the same bits give the same actions.

/// 64 bits of entropy, spread over as many draws as a step needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entropy(pub u64);

impl Entropy {
    /// The next 64 bits (the finaliser of SplitMix64 over a Weyl sequence).
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A value in `low..=high`; `low` if the range is empty.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let Some(width) = high.checked_sub(low) else {
            return low;
        };
        let drawn = (u128::from(self.draw()) * (u128::from(width) + 1)) >> 64;
        low.saturating_add(drawn as u64)
    }
}

//! What this node used of a shared limit lately: its share, on which it goes on
//! while the ledger is away.

use crate::time::{Mono, NANOS_PER_SECOND, Nanos};

/// Use is counted over one to two of these.
const SPAN: Nanos = Nanos::from_secs(5);

/// Tokens used in the running span and in the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    began_at: Mono,
    running: u64,
    before: u64,
    /// What is spent at this share while the ledger is away, in billionths of a
    /// token: what is left of the last lot, and since when.
    left: u64,
    lot_at: Option<Mono>,
    /// In billionths of a token a second, frozen when the ledger went away.
    frozen: u64,
}

impl Share {
    /// Tokens were used.
    pub fn note(&mut self, now: Mono, tokens: u32) {
        self.roll(now);
        self.running += u64::from(tokens);
    }

    fn roll(&mut self, now: Mono) {
        let passed = now.since(self.began_at);
        if passed.0 < SPAN.0 {
            return;
        }
        self.before = if passed.0 < 2 * SPAN.0 {
            self.running
        } else {
            0
        };
        self.running = 0;
        self.began_at = now;
    }

    /// Billionths of a token a second, of what was used lately.
    fn rate(&mut self, now: Mono) -> u64 {
        self.roll(now);
        let span = now.since(self.began_at) + SPAN;
        let tokens = u128::from(self.running + self.before) * u128::from(NANOS_PER_SECOND);
        let rate = tokens * u128::from(NANOS_PER_SECOND) / u128::from(span.0);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// What may be spent of the share since the last lot; the first lot begins
    /// to accrue now.
    pub fn lot(&mut self, now: Mono) -> u32 {
        let Some(last) = self.lot_at.replace(now) else {
            self.frozen = self.rate(now);
            self.left = 0;
            return 0;
        };
        // What nobody asked for is not saved up for more than a second.
        let passed = now.since(last).0.min(NANOS_PER_SECOND);
        let accrued = u128::from(self.frozen) * u128::from(passed) / u128::from(NANOS_PER_SECOND);
        let all = u128::from(self.left) + accrued;
        let whole = all / u128::from(NANOS_PER_SECOND);
        self.left = u64::try_from(all % u128::from(NANOS_PER_SECOND)).unwrap_or(0);
        u32::try_from(whole).unwrap_or(u32::MAX)
    }

    /// The ledger is back.
    pub fn end(&mut self) {
        self.lot_at = None;
    }
}

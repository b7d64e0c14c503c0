//! Leases that end without a single use, since something else holds the messages:
//! as a rule there is no session for them. Each burns tokens that another node
//! could use, and a heavy message there would never find its own together. So
//! after two in a row the node leaves the limit to others for a while, longer
//! each time.

use crate::time::{Mono, Nanos};

/// The longest time for which a limit is left to others.
const LEAVES_MAX: Nanos = Nanos::from_secs(10);
/// Doubling ends here: the longest time is reached long before.
const DOUBLINGS_MAX: u32 = 16;

/// How often in a row what was leased was of no use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unused {
    /// When the last lease ends, if it was not used so far.
    ends_at: Option<Mono>,
    /// Leases before it that were not used.
    in_a_row: u32,
}

impl Unused {
    /// Tokens were leased.
    pub fn leased(&mut self, ends_at: Mono) {
        if self.ends_at.replace(ends_at).is_some() {
            self.in_a_row = self.in_a_row.saturating_add(1);
        }
    }

    /// Tokens were used, or can be from now on.
    pub fn expect_use(&mut self) {
        *self = Self::default();
    }

    /// Until when the limit is left to others, if it is.
    pub fn leaves_until(&self, now: Mono, life: Nanos) -> Option<Mono> {
        let ends_at = self.ends_at.filter(|_| self.in_a_row > 0)?;
        let doubled = life.times(1 << self.in_a_row.min(DOUBLINGS_MAX));
        let at = ends_at + doubled.min(LEAVES_MAX);
        (now < at).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Nanos = Nanos::from_millis(300);

    #[test]
    fn who_has_no_use_for_tokens_leaves_them_longer_each_time() {
        let mut unused = Unused::default();
        let mut now = Mono(1);
        let mut waits = Vec::new();
        for _ in 0..8 {
            let ends_at = now + LIFE;
            unused.leased(ends_at);
            now = unused.leaves_until(ends_at, LIFE).unwrap_or(ends_at);
            assert_eq!(unused.leaves_until(now, LIFE), None, "then it asks again");
            waits.push(now.since(ends_at).0 / 1_000_000);
        }
        assert_eq!(waits, [0, 600, 1_200, 2_400, 4_800, 9_600, 10_000, 10_000]);
        unused.expect_use();
        unused.leased(now + LIFE);
        assert_eq!(unused.leaves_until(now, LIFE), None);
    }
}

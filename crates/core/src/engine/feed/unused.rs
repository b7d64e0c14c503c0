//! Leases that end without a single use, since something else holds the messages:
//! as a rule there is no session for them. Each burns tokens that another node
//! could use, and a heavy message there would never find its own together. So
//! after two in a row the node leaves the limit to others for a while, longer
//! each time.
//!
//! Where there is a session the messages wait for another limit, which may have
//! tokens at any moment: then the node goes on asking. But nodes that hold one of
//! two limits each, in turn, would wait for one another for ever. Who could use
//! nothing for long stands aside, too.
//!
//! Limits of one account that are left to others at different times would never
//! have tokens together. So when one of them is granted some, the others come
//! along.

use super::Feed;
use crate::time::{Mono, Nanos};

/// The longest time for which a limit is left to others.
const LEAVES_MAX: Nanos = Nanos::from_secs(10);
/// Doubling ends here: the longest time is reached long before.
const DOUBLINGS_MAX: u32 = 16;

/// With a session, tokens go unused for so long before a limit is left to others.
const WAITS_MAX: Nanos = Nanos::from_secs(10);

/// How often in a row what was leased was of no use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unused {
    /// When the last lease ends, if it was not used so far.
    ends_at: Option<Mono>,
    /// When the first of those in a row ended.
    since: Mono,
    /// Leases before it that were not used.
    in_a_row: u32,
    /// Another limit of the account has tokens: it is asked for once.
    comes: bool,
}

impl Unused {
    /// Tokens were leased.
    pub fn leased(&mut self, ends_at: Mono) {
        self.comes = false;
        match self.ends_at.replace(ends_at) {
            Some(_) => self.in_a_row = self.in_a_row.saturating_add(1),
            None => self.since = ends_at,
        }
    }

    /// Whether the last leases were of no use so far.
    pub fn is_in_vain(&self) -> bool {
        self.in_a_row > 0
    }

    /// Another limit without which these tokens are of no use has some now.
    pub fn come_along(&mut self, now: Mono) {
        self.comes |= self.in_a_row > 0 && self.ends_at.is_some_and(|at| at <= now);
    }

    /// Tokens were used, or can be from now on.
    pub fn expect_use(&mut self) {
        *self = Self::default();
    }

    /// Until when the limit is left to others, if it is. `has_session` says that
    /// nothing is lacking but tokens of all limits at once.
    pub fn leaves_until(&self, now: Mono, life: Nanos, has_session: bool) -> Option<Mono> {
        let ends_at = self.ends_at.filter(|_| self.in_a_row > 0 && !self.comes)?;
        if has_session && ends_at.since(self.since) < WAITS_MAX {
            return None;
        }
        let doubled = life.times(1 << self.in_a_row.min(DOUBLINGS_MAX));
        let at = ends_at + doubled.min(LEAVES_MAX);
        (now < at).then_some(at)
    }
}

impl Feed {
    /// Whether its tokens are left to other nodes, since here they ended unused.
    pub fn is_left(&self, now: Mono) -> bool {
        self.unused.leaves_until(now, self.life, false).is_some()
    }

    /// Whether what was leased lately was of no use so far.
    pub fn is_in_vain(&self) -> bool {
        self.unused.is_in_vain()
    }

    /// Another limit without which its tokens are of no use has some now.
    pub fn come_along(&mut self, now: Mono) {
        self.unused.come_along(now);
    }

    /// Something was opened that can use tokens: they are not left to others.
    pub fn expect_use(&mut self) {
        self.unused.expect_use();
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
            let until = unused.leaves_until(ends_at, LIFE, false);
            now = until.unwrap_or(ends_at);
            let until = unused.leaves_until(now, LIFE, false);
            assert_eq!(until, None, "then it asks again");
            waits.push(now.since(ends_at).0 / 1_000_000);
        }
        assert_eq!(waits, [0, 600, 1_200, 2_400, 4_800, 9_600, 10_000, 10_000]);
        unused.expect_use();
        unused.leased(now + LIFE);
        assert_eq!(unused.leaves_until(now, LIFE, false), None);
    }

    #[test]
    fn who_has_a_session_leaves_them_only_after_long() {
        let mut unused = Unused::default();
        let mut now = Mono(1);
        let began = now;
        let until = loop {
            let ends_at = now + LIFE;
            unused.leased(ends_at);
            now = ends_at;
            if let Some(until) = unused.leaves_until(now, LIFE, true) {
                break until;
            }
        };
        assert_eq!(now.since(began), Nanos::from_millis(10_500));
        assert_eq!(until.since(now), LEAVES_MAX);
        unused.come_along(now);
        assert_eq!(unused.leaves_until(now, LIFE, true), None, "once");
        unused.leased(now + LIFE);
        assert!(unused.leaves_until(now + LIFE, LIFE, true).is_some());
    }
}

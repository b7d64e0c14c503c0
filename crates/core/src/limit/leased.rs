//! What a ledger gives to a limit, and what goes back.

use super::holds::Holds;
use super::lease::Grant;
use super::need::Need;
use super::reserve::Reserve;
use super::saved::Saved;
use super::shared_use::SharedUse;
use super::{Limit, LimitSpec, Source};
use crate::class::Class;
use crate::time::{Mono, Nanos, Now};

impl Limit {
    /// The slots that it holds of a shared limit, if that is what it does.
    pub const fn holds(&self) -> Option<&Holds> {
        match &self.source {
            Source::Held(holds) => Some(holds),
            _ => None,
        }
    }

    /// Learns that a single message may cost this much. A reservation must
    /// cover a whole cost, the gap of a spaced one must end within the lease,
    /// and what fits is asked with floors, so costs above 1 are announced before
    /// they are first taken.
    pub fn expect_cost(&mut self, cost: u32) {
        if let Some(reserve) = &mut self.reserve {
            reserve.expect_cost(cost);
        }
        if let Source::Leased(lease) = &mut self.source {
            lease.expect_cost(cost);
        }
    }

    /// The largest cost that was expected of leased tokens and can pass.
    pub fn expected_cost(&self) -> u32 {
        match &self.source {
            Source::Leased(lease) => lease.largest_cost().min(self.largest_cost()),
            Source::Owned(_) | Source::Held(_) => 1,
        }
    }

    /// The ledger lets it hold so many slots, in all.
    pub const fn hold(&mut self, slots: u32, ends_at: Mono) {
        if let Source::Held(holds) = &mut self.source {
            holds.hold(slots, ends_at);
        }
    }

    /// Adds what the ledger granted. An owned limit needs no grants.
    pub fn grant(&mut self, now: &Now, grant: Grant) {
        if let Source::Leased(lease) = &mut self.source {
            lease.grant(now, grant);
            if let Some(shared) = &mut self.shared {
                shared.granted(grant.receipt);
            }
        }
    }

    /// Keeps an account on disk of what this node uses of a long window, so
    /// that a ledger that loses its counts can be told.
    #[must_use]
    pub fn with_account(mut self) -> Self {
        self.shared = SharedUse::of(&self.spec).map(Box::new);
        self.reserve = self
            .shared
            .as_ref()
            .and_then(|_| Reserve::of_shared(&self.spec));
        self.is_transient = false;
        self
    }

    /// The same, from what was saved at least `downtime` ago. `reserved_since`
    /// more than that may have been used.
    #[must_use]
    pub fn with_saved_account(
        mut self,
        saved: &Saved,
        reserved_since: u64,
        now: &Now,
        downtime: Nanos,
    ) -> Self {
        self = self.with_account();
        let spent = saved.unspent.saturating_add(reserved_since);
        if let Some(shared) = &saved.shared
            && let Some(restored) =
                SharedUse::restore(&self.spec, (&saved.memory, shared), spent, now, downtime)
        {
            self.shared = Some(Box::new(restored));
        }
        self.expect_cost(saved.largest_cost);
        self
    }

    /// Goes on with an account of what is used under another spec.
    pub(super) fn reconfigure_account(&mut self, now: &Now, spec: &LimitSpec) {
        let before = self.shared.take();
        let shared = match before {
            Some(before) => before.reconfigure(now, spec),
            None => SharedUse::of(spec),
        };
        self.shared = shared.map(Box::new);
        let fresh = self.shared.as_ref().and_then(|_| Reserve::of_shared(spec));
        self.reserve = match (self.reserve.take(), fresh) {
            (Some(old), Some(fresh)) => Some(old.resized(fresh)),
            (_, fresh) => fresh,
        };
    }

    /// Whether the tokens that it holds cover `need`, and only the disk keeps
    /// them from being used.
    pub fn waits_for_disk(&self, now: &Now, class: Class, need: Need) -> bool {
        match &self.source {
            Source::Leased(lease) => !self.reserve_covers(need) && lease.fits(now, class, need),
            Source::Owned(_) | Source::Held(_) => false,
        }
    }

    /// Voids leased tokens that were asked for before the clocks parted; whether
    /// there were any.
    pub fn void_parted(&mut self, now: &Now) -> bool {
        match &mut self.source {
            // Slots are counted where they are held: a hold that ended early
            // elsewhere is noticed when it is asked for again.
            Source::Owned(_) | Source::Held(_) => false,
            Source::Leased(lease) => lease.void_parted(now),
        }
    }

    /// When the first of its leased tokens become void; none if none are held.
    pub fn lapses_at(&self, now: &Now) -> Option<Mono> {
        match &self.source {
            Source::Owned(_) => None,
            Source::Leased(lease) => lease.lapses_at(now),
            Source::Held(holds) => Some(holds.ends_at()).filter(|at| *at > now.mono),
        }
    }

    /// Empties a lease and yields what is still good, to be given back.
    pub fn drain(&mut self, now: &Now) -> Vec<Grant> {
        match &mut self.source {
            Source::Owned(_) | Source::Held(_) => Vec::new(),
            Source::Leased(lease) => lease.drain(now),
        }
    }

    /// Takes out of a lease what was not used for so many thousandths of its
    /// life, to be given back.
    pub fn drain_older(&mut self, now: &Now, permille: u64) -> Vec<Grant> {
        match &mut self.source {
            Source::Owned(_) | Source::Held(_) => Vec::new(),
            Source::Leased(lease) => lease.drain_older(now, permille),
        }
    }

    /// When [`Limit::drain_older`] will find something, if there is anything.
    pub fn ages_at(&self, now: &Now, permille: u64) -> Option<Mono> {
        match &self.source {
            Source::Owned(_) | Source::Held(_) => None,
            Source::Leased(lease) => lease.ages_at(now, permille),
        }
    }
}

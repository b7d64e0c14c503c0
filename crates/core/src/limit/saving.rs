//! What of a limit outlives a restart.

use super::algorithm::Algorithm;
use super::reserve::Reserve;
use super::saved::{self, Saved};
use super::spec::{Headroom, LimitSpec};
use super::{Fill, Limit, Source};
use crate::time::{Nanos, Now};

impl Limit {
    /// What to write down. A reservation that is on its way counts as made,
    /// since its record stands before this one. Save again when the spec
    /// changes.
    pub fn save(&self, now: &Now) -> Saved {
        let kept = self.shared.as_ref().map(|shared| shared.save(now));
        let memory = match (&self.source, &kept) {
            (Source::Owned(algorithm), _) if self.needs_reserve() => algorithm.save(now),
            (Source::Leased(_), Some((memory, ..))) => memory.clone(),
            _ => saved::Memory::Nothing,
        };
        let reserve = self.reserve.as_ref();
        let largest_cost = reserve.map_or(1, Reserve::largest_cost);
        let lasts_for = match &self.source {
            Source::Owned(algorithm) => algorithm.lasts_for(now, largest_cost),
            Source::Leased(_) | Source::Held(_) => {
                kept.as_ref().map_or(Nanos::ZERO, |(_, _, lasts, _)| *lasts)
            }
        };
        let unplaced = kept.as_ref().map_or(0, |(_, _, _, unplaced)| *unplaced);
        Saved {
            lasts_for: lasts_for.0,
            blocked_for: self
                .blocked_until
                .map_or(0, |until| until.since(now.mono).0),
            unspent: reserve.map_or(0, Reserve::unspent).saturating_add(unplaced),
            largest_cost,
            memory,
            shared: kept.map(|(_, shared, ..)| shared),
        }
    }

    /// Goes on after a restart from what was saved at least `downtime` ago.
    /// All that was reserved and not known to be used, and `reserved_since`
    /// that record, counts as spent at this moment. A limit without
    /// reservations starts empty.
    pub fn restore(
        spec: LimitSpec,
        headroom: Headroom,
        saved: &Saved,
        reserved_since: u64,
        now: &Now,
        downtime: Nanos,
    ) -> Self {
        let mut limit = Self::owned(spec, headroom, now, Fill::Empty);
        if let Some(reserve) = &mut limit.reserve {
            reserve.expect_cost(saved.largest_cost);
            let spent = saved.unspent.saturating_add(reserved_since);
            let taken = (spent, saved.largest_cost);
            let restored = Algorithm::restore(&limit.spec, &saved.memory, downtime, taken, now);
            limit.source = Source::Owned(restored);
        }
        let blocked_for = Nanos(saved.blocked_for).minus(downtime);
        if blocked_for > Nanos::ZERO {
            limit.block_until(now.mono + blocked_for);
        }
        limit
    }
}

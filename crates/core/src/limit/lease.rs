//! Leased tokens: what a node may spend of a limit that a fleet shares.
//!
//! The ledger debited the tokens before it granted them, so a lease is only
//! ever lost, never exceeded. Each batch has a first and a last moment on this
//! node's monotonic clock and is looked at again right before use; it is void
//! if the wall clock moved against that clock since it was asked for. A batch
//! that a class leased serves that class and the more urgent ones: the floor
//! that the ledger kept for others was measured by the class that asked.

use std::collections::VecDeque;

use super::algorithm::Until;
use super::need::Need;
use crate::class::Class;
use crate::engine::action::Receipt;
use crate::time::{Clocks, Mono, Nanos, Now};

/// Clocks that part by less than this go unnoticed, so it counts against every
/// batch.
pub const PARTING_SEEN: Nanos = Nanos::from_millis(1);

/// Tokens that the ledger granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// How many.
    pub tokens: u32,
    /// The class that asked for them.
    pub class: Class,
    /// From when on they may be used.
    pub usable_from: Mono,
    /// When they are void.
    pub ends_at: Mono,
    /// For a spaced run: how far apart its tokens must be taken. Else zero.
    pub spacing: Nanos,
    /// The largest cost that the ledger was told when it was asked. It keeps the
    /// next run of spaced tokens away for as long as that takes.
    pub cost: u32,
    /// When it was asked for: its life began then.
    pub asked_at: Mono,
    /// How the clocks stood when it was asked for.
    pub asked: Clocks,
    /// How far they may part before it is void: then the machine slept, or its
    /// clock was set, and nobody knows how old it is.
    pub parting_max: Nanos,
    /// What the ledger wrote on it; none if no ledger granted it.
    pub receipt: Option<Receipt>,
}

impl Grant {
    /// When it has lived for so many thousandths of its life.
    fn ages_at(&self, permille: u64) -> Mono {
        let life = self.ends_at.since(self.asked_at);
        self.asked_at + Nanos(life.0 / 1_000 * permille)
    }

    fn is_good(&self, now: &Now) -> bool {
        self.tokens > 0 && now.mono < self.ends_at
    }

    fn has_parted(&self, now: &Now) -> bool {
        self.asked.parted(now) + PARTING_SEEN > self.parting_max
    }

    fn serves(&self, now: &Now, class: Class) -> bool {
        self.usable_from <= now.mono && class <= self.class && self.is_good(now)
    }

    /// Whether the gap after so many tokens can end before the next run begins,
    /// which another node may have.
    fn has_gap_for(&self, cost: u32) -> bool {
        self.spacing == Nanos::ZERO || cost <= self.cost
    }
}

/// Batches of leased tokens.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    batches: VecDeque<Grant>,
    /// The end of the gap after the last token of a spaced run.
    spaced_until: Mono,
    /// The largest cost that was expected or taken.
    largest_cost: u32,
}

impl Lease {
    /// Adds what the ledger granted.
    pub fn grant(&mut self, now: &Now, grant: Grant) {
        self.forget(now);
        if grant.is_good(now) && !grant.has_parted(now) {
            self.batches.push_back(grant);
        }
    }

    /// Voids what was asked for before the clocks parted. To be called whenever
    /// they have by [`PARTING_SEEN`]; whether anything was void.
    pub fn void_parted(&mut self, now: &Now) -> bool {
        let before = self.batches.len();
        self.batches.retain(|batch| !batch.has_parted(now));
        self.batches.len() < before
    }

    /// When the first batch becomes void.
    pub fn lapses_at(&self, now: &Now) -> Option<Mono> {
        let held = self.batches.iter().filter(|batch| batch.is_good(now));
        held.map(|batch| batch.ends_at).min()
    }

    fn forget(&mut self, now: &Now) {
        self.batches.retain(|batch| batch.is_good(now));
    }

    /// Tokens that `class` could take now, were it not for spacing.
    pub fn usable(&self, now: &Now, class: Class) -> u64 {
        let batches = self.batches.iter().filter(|batch| batch.serves(now, class));
        batches.map(|batch| u64::from(batch.tokens)).sum()
    }

    /// Learns that a single take may cost this much.
    pub fn expect_cost(&mut self, cost: u32) {
        self.largest_cost = self.largest_cost.max(cost);
    }

    /// The largest cost that was expected or taken.
    pub fn largest_cost(&self) -> u32 {
        self.largest_cost.max(1)
    }

    /// Whether `class` may take `need` now. It may contain what others are
    /// booked for; a single take of it costs no more than was expected.
    pub fn fits(&self, now: &Now, class: Class, need: Need) -> bool {
        let most = u64::from(self.largest_cost());
        let cost = u32::try_from(need.0.div_ceil(1_000).min(most)).unwrap_or(u32::MAX);
        let batches = self
            .batches
            .iter()
            .filter(|batch| batch.serves(now, class) && batch.has_gap_for(cost));
        let usable: u64 = batches.map(|batch| u64::from(batch.tokens)).sum();
        now.mono >= self.spaced_until && need.0 <= usable.saturating_mul(1_000)
    }

    /// When the batches at hand cover `need`, or that the ledger must grant.
    pub fn until(&self, now: &Now, class: Class, need: Need) -> Until {
        if self.fits(now, class, need) {
            return Until::Now;
        }
        let starts = self.batches.iter().map(|batch| batch.usable_from);
        let candidates = starts
            .chain([self.spaced_until])
            .map(|at| at.max(self.spaced_until));
        candidates
            .filter(|at| *at > now.mono && self.fits(&now.at(*at), class, need))
            .min()
            .map_or(Until::Granted, Until::At)
    }

    /// Takes `cost` tokens: first those that fewest other classes could use,
    /// of these the ones that end first. The latest receipt of them.
    pub fn take(&mut self, now: &Now, class: Class, cost: u32) -> Option<Receipt> {
        self.expect_cost(cost);
        let mut missing = cost;
        let mut receipt: Option<Receipt> = None;
        let mut spacing = Nanos::ZERO;
        while missing > 0 {
            let serving = self
                .batches
                .iter_mut()
                .filter(|batch| batch.serves(now, class) && batch.has_gap_for(cost));
            let Some(batch) = serving.min_by_key(|batch| (batch.class, batch.ends_at)) else {
                break;
            };
            let taken = missing.min(batch.tokens);
            batch.tokens -= taken;
            missing -= taken;
            spacing = spacing.max(batch.spacing);
            let is_later = |it: &Receipt| receipt.is_none_or(|known| it.at >= known.at);
            receipt = batch.receipt.filter(is_later).or(receipt);
        }
        if spacing > Nanos::ZERO {
            self.spaced_until = now.mono + spacing.times(u64::from(cost));
        }
        self.forget(now);
        receipt
    }

    /// When [`Lease::drain_older`] will find something, if anything is held.
    pub fn ages_at(&self, now: &Now, permille: u64) -> Option<Mono> {
        let held = self.batches.iter().filter(|batch| batch.is_good(now));
        held.map(|batch| batch.ages_at(permille)).min()
    }

    /// Takes out what was not used for so many thousandths of its life.
    pub fn drain_older(&mut self, now: &Now, permille: u64) -> Vec<Grant> {
        self.forget(now);
        let mut old = Vec::new();
        self.batches.retain(|batch| {
            let keep = batch.ages_at(permille) > now.mono;
            if !keep {
                old.push(*batch);
            }
            keep
        });
        old
    }

    /// Empties the lease and yields what is still good, to be given back.
    pub fn drain(&mut self, now: &Now) -> Vec<Grant> {
        self.forget(now);
        self.batches.drain(..).collect()
    }

    /// Whether nothing is leased and no gap runs.
    pub fn is_idle(&self, now: &Now) -> bool {
        now.mono >= self.spaced_until && !self.batches.iter().any(|batch| batch.is_good(now))
    }
}

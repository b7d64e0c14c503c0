//! What a node debited of long windows, so that a ledger that lost its counts
//! can be told.
//!
//! Kept coarsely, in a fixed number of slots per limit, and always as if it were
//! a little younger: what is reported never leaves a window too early. What
//! earlier processes of the node used is recalled from its disk and reported
//! with the rest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::limit::LimitSpec;
use crate::limit::sliding_window::SLOTS;
use crate::limit::spec::Period;
use crate::policy::key::LimitKey;
use crate::time::{Mono, Nanos, Wall};

/// Windows longer than this are rebuilt from what nodes debited after a loss.
/// Shorter ones begin as if all of them was used.
pub const SHORT_MAX: Nanos = Nanos::from_secs(60);
/// For so long after a loss long windows grant nothing: all nodes report first.
pub const QUIET: Nanos = Nanos::from_secs(2);
/// Limits of which debits are remembered. Those beyond are not: their windows
/// begin anew after a loss.
const LIMITS_MAX: usize = 50_000;

/// Whether what was debited of a limit is to be remembered for a loss.
pub fn is_long(spec: &LimitSpec) -> bool {
    match spec {
        LimitSpec::SlidingWindow { window, .. } => *window > SHORT_MAX,
        LimitSpec::CalendarWindow { period, .. } => *period != Period::Minute,
        _ => false,
    }
}

/// Where in a window debits stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DebitPlace {
    /// In a sliding window: so long ago, at least.
    Age(Nanos),
    /// In the window of the calendar between these, on the ledger's wall clock.
    Span(Wall, Wall),
}

/// A lease, as it is remembered.
#[derive(Clone, Copy, Debug)]
pub struct Debit {
    /// In which epoch of the ledger.
    pub epoch: u64,
    /// When, on the ledger's clock.
    pub at: u64,
    /// When, on its wall clock.
    pub wall: Wall,
    /// How many tokens.
    pub tokens: u32,
}

/// What earlier processes of a node used of a long window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecalledDebits {
    /// Of which limit.
    pub key: Arc<LimitKey>,
    /// Its numbers then.
    pub spec: LimitSpec,
    /// The epoch of the ledger that knows of them all.
    pub epoch: u64,
    /// What is known to be used.
    pub debits: Vec<(DebitPlace, u64)>,
    /// What may have been used besides, as late as now.
    pub unspent: u64,
}

/// What a ledger is told of one limit after a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebitReport {
    /// The limit's numbers.
    pub spec: LimitSpec,
    /// The version of the policies that they come from.
    pub version: u64,
    /// Debits of which the ledger does not know.
    pub debits: Vec<(DebitPlace, u64)>,
}

/// Debits of about the same time.
#[derive(Clone, Copy, Debug)]
struct DebitSlot {
    /// In which epoch: that one knows of them.
    epoch: u64,
    /// The first and the last, on the ledger's clock.
    at: (u64, u64),
    /// The first and the last, on the node's monotonic clock, in nanoseconds.
    /// Those of earlier processes may be before its beginning.
    since: (i128, i128),
    /// The period, of a calendar window; unknown for what an earlier process
    /// may have used until the ledger's time is known.
    span: Option<(Wall, Wall)>,
    tokens: u64,
}

/// The debits of one limit.
#[derive(Clone, Debug)]
struct KnownDebits {
    spec: LimitSpec,
    version: u64,
    slots: VecDeque<DebitSlot>,
    reported_in: u64,
}

/// The debits of one node.
#[derive(Debug, Default)]
pub struct NodeDebits {
    known: BTreeMap<Arc<LimitKey>, KnownDebits>,
}

impl NodeDebits {
    /// Remembers a lease.
    pub fn add(
        &mut self,
        now: Mono,
        key: &Arc<LimitKey>,
        (spec, version): (&LimitSpec, u64),
        debit: Debit,
    ) {
        let epoch = debit.epoch;
        if let Some(known) = self.entry(now, key, spec, epoch) {
            known.spec = spec.clone();
            known.version = version;
            known.add(now, debit);
        }
    }

    /// Remembers what earlier processes used. To be called before anything is
    /// leased.
    pub fn recall(&mut self, now: Mono, recalled: &RecalledDebits) {
        let (spec, epoch) = (&recalled.spec, recalled.epoch);
        if let Some(known) = self.entry(now, &recalled.key, spec, epoch) {
            known.recall(now, recalled);
        }
    }

    fn entry(
        &mut self,
        now: Mono,
        key: &Arc<LimitKey>,
        spec: &LimitSpec,
        epoch: u64,
    ) -> Option<&mut KnownDebits> {
        if !self.known.contains_key(key) {
            if self.known.len() >= LIMITS_MAX {
                self.forget_idle(now);
            }
            if self.known.len() >= LIMITS_MAX {
                return None;
            }
            let known = KnownDebits {
                spec: spec.clone(),
                version: 0,
                slots: VecDeque::new(),
                reported_in: epoch,
            };
            self.known.insert(Arc::clone(key), known);
        }
        self.known.get_mut(key)
    }

    /// Forgets tokens that were given back.
    pub fn give_back(&mut self, key: &LimitKey, epoch: u64, at: u64, tokens: u32) {
        let slots = self.known.get_mut(key).map(|known| known.slots.iter_mut());
        let mut slots = slots.into_iter().flatten();
        let slot = slots.find(|it| it.epoch == epoch && (it.at.0..=it.at.1).contains(&at));
        if let Some(slot) = slot {
            slot.tokens = slot.tokens.saturating_sub(u64::from(tokens));
        }
    }

    /// The limits of which a ledger in this epoch does not know all.
    pub fn unreported(&self, epoch_of: impl Fn(&LimitKey) -> u64) -> Vec<(Arc<LimitKey>, u64)> {
        let known = self.known.iter().filter_map(|(key, known)| {
            let epoch = epoch_of(key);
            (epoch != 0 && known.reported_in != epoch).then(|| (Arc::clone(key), epoch))
        });
        known.collect()
    }

    /// Whether a ledger in this epoch knows all debits of a limit.
    pub fn is_reported(&self, key: &LimitKey, epoch: u64) -> bool {
        let known = self.known.get(key);
        known.is_none_or(|known| known.reported_in == epoch)
    }

    /// What to tell of one limit in an epoch. `wall` is the ledger's wall clock.
    pub fn report(
        &mut self,
        now: Mono,
        wall: Wall,
        key: &LimitKey,
        epoch: u64,
    ) -> Option<DebitReport> {
        let known = self.known.get_mut(key)?;
        known.forget(now);
        known.place(wall);
        let debits = known.slots.iter().filter(|slot| slot.epoch != epoch);
        let debits = debits.map(|slot| (slot.place(now), slot.tokens)).collect();
        Some(DebitReport {
            spec: known.spec.clone(),
            version: known.version,
            debits,
        })
    }

    /// The ledger was told.
    pub fn reported(&mut self, key: &LimitKey, epoch: u64) {
        if let Some(known) = self.known.get_mut(key) {
            known.reported_in = epoch;
            for slot in &mut known.slots {
                slot.epoch = epoch;
            }
        }
    }

    /// All limits of which something is remembered.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<LimitKey>> {
        self.known.keys()
    }

    fn forget_idle(&mut self, now: Mono) {
        self.known.retain(|_, known| {
            known.forget(now);
            !known.slots.is_empty()
        });
    }
}

impl KnownDebits {
    fn length(&self) -> Nanos {
        let rate = self.spec.shape().rate;
        rate.map_or(Nanos::ZERO, |rate| rate.per)
    }

    /// How long a debit matters at most.
    fn matters_for(&self) -> i128 {
        // A day may be an hour longer, and a lease lives on for a little.
        i128::from((self.length() + Nanos::from_secs(3_660)).0)
    }

    fn forget(&mut self, now: Mono) {
        let matters_for = self.matters_for();
        while self
            .slots
            .pop_front_if(|slot| i128::from(now.0) - slot.since.1 > matters_for)
            .is_some()
        {}
    }

    fn span(&self, wall: Wall) -> Option<(Wall, Wall)> {
        match &self.spec {
            LimitSpec::CalendarWindow { period, zone, .. } => Some(period.around(wall, zone)),
            _ => None,
        }
    }

    fn add(&mut self, now: Mono, debit: Debit) {
        self.forget(now);
        self.place(debit.wall);
        let span = self.span(debit.wall);
        let grain = i128::from(self.length().0 / SLOTS);
        let at = i128::from(now.0);
        if let Some(slot) = self.slots.back_mut()
            && slot.epoch == debit.epoch
            && slot.span == span
            && (span.is_some() || at - slot.since.0 < grain)
        {
            slot.tokens += u64::from(debit.tokens);
            slot.since.1 = at;
            slot.at.1 = slot.at.1.max(debit.at);
            return;
        }
        self.slots.push_back(DebitSlot {
            epoch: debit.epoch,
            at: (debit.at, debit.at),
            since: (at, at),
            span,
            tokens: u64::from(debit.tokens),
        });
    }

    fn recall(&mut self, now: Mono, recalled: &RecalledDebits) {
        let at = i128::from(now.0);
        let mut push = |since: i128, span, tokens| {
            self.slots.push_back(DebitSlot {
                epoch: recalled.epoch,
                // No lease of this process was debited then.
                at: (u64::MAX, 0),
                since: (since, since),
                span,
                tokens,
            });
        };
        for (place, tokens) in &recalled.debits {
            match *place {
                DebitPlace::Age(age) => push(at - i128::from(age.0), None, *tokens),
                DebitPlace::Span(start, end) => push(at, Some((start, end)), *tokens),
            }
        }
        if recalled.unspent > 0 {
            push(at, None, recalled.unspent);
        }
        let slots = self.slots.make_contiguous();
        slots.sort_by_key(|slot| slot.since);
    }

    /// What an earlier process may have used of a quota counts in the window of
    /// the calendar in which the ledger is first heard of.
    fn place(&mut self, wall: Wall) {
        let Some(span) = self.span(wall) else { return };
        for slot in &mut self.slots {
            slot.span.get_or_insert(span);
        }
    }
}

impl DebitSlot {
    fn place(&self, now: Mono) -> DebitPlace {
        if let Some((start, end)) = self.span {
            return DebitPlace::Span(start, end);
        }
        let age = (i128::from(now.0) - self.since.1).max(0);
        // A node's clock may run fast by a thousandth.
        let age = age - age / 1_000;
        DebitPlace::Age(Nanos(u64::try_from(age).unwrap_or(u64::MAX)))
    }
}

//! What this node debited of long windows, so that a ledger that lost its counts
//! can be told.
//!
//! Kept coarsely, in a fixed number of slots per limit, and always as if it were
//! a little younger: what is reported never leaves a window too early.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_core::limit::LimitSpec;
use outflow_core::limit::sliding_window::SLOTS;
use outflow_core::policy::key::LimitKey;
use outflow_core::time::Wall;

/// Limits of which debits are remembered. Those beyond are not: their windows
/// begin anew after a loss.
const LIMITS_MAX: usize = 50_000;

/// Debits of about the same time.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// In which epoch: that one knows of them.
    epoch: u64,
    /// The first and the last, on the ledger's clock.
    at: (u64, u64),
    first: Instant,
    last: Instant,
    /// The period, of a calendar window, in microseconds.
    span: Option<(i64, i64)>,
    tokens: u64,
}

/// The debits of one limit.
#[derive(Clone, Debug)]
struct Known {
    spec: LimitSpec,
    version: u64,
    slots: VecDeque<Slot>,
    reported_in: u64,
}

/// A lease, as it is remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Debit {
    pub epoch: u64,
    pub at: u64,
    pub wall_micros: i64,
    pub tokens: u32,
}

/// What a ledger is told of one limit after a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub spec: LimitSpec,
    pub version: u64,
    /// A place (an age in microseconds, or a period) and tokens.
    pub debits: Vec<(String, u64)>,
}

/// The debits of one node.
#[derive(Debug, Default)]
pub(crate) struct Debits {
    known: BTreeMap<Arc<LimitKey>, Known>,
}

impl Debits {
    /// Remembers a lease.
    pub fn add(
        &mut self,
        now: Instant,
        key: &Arc<LimitKey>,
        (spec, version): (&LimitSpec, u64),
        debit: Debit,
    ) {
        if !self.known.contains_key(key) {
            if self.known.len() >= LIMITS_MAX {
                self.forget_idle(now);
            }
            if self.known.len() >= LIMITS_MAX {
                return;
            }
            let known = Known {
                spec: spec.clone(),
                version,
                slots: VecDeque::new(),
                reported_in: debit.epoch,
            };
            self.known.insert(Arc::clone(key), known);
        }
        if let Some(known) = self.known.get_mut(key) {
            known.spec = spec.clone();
            known.version = version;
            known.add(now, debit);
        }
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

    /// What to tell of one limit in an epoch.
    pub fn report(&mut self, now: Instant, key: &LimitKey, epoch: u64) -> Option<Report> {
        let known = self.known.get_mut(key)?;
        known.forget(now);
        let debits = known.slots.iter().filter(|slot| slot.epoch != epoch);
        let debits = debits.map(|slot| (slot.place(now), slot.tokens)).collect();
        Some(Report {
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

    fn forget_idle(&mut self, now: Instant) {
        self.known.retain(|_, known| {
            known.forget(now);
            !known.slots.is_empty()
        });
    }
}

impl Known {
    /// How long a debit matters at most.
    fn matters_for(&self) -> Duration {
        let length = self.spec.shape().rate.map_or(0, |rate| rate.per.0);
        // A day may be an hour longer, and a lease lives on for a little.
        Duration::from_nanos(length) + Duration::from_secs(3_660)
    }

    fn grain(&self) -> Duration {
        let length = self.spec.shape().rate.map_or(0, |rate| rate.per.0);
        Duration::from_nanos(length / SLOTS)
    }

    fn forget(&mut self, now: Instant) {
        let matters_for = self.matters_for();
        while self
            .slots
            .pop_front_if(|slot| now.duration_since(slot.last) > matters_for)
            .is_some()
        {}
    }

    fn add(&mut self, now: Instant, debit: Debit) {
        self.forget(now);
        let span = match &self.spec {
            LimitSpec::CalendarWindow { period, zone, .. } => {
                let wall = Wall(debit.wall_micros.saturating_mul(1_000));
                let (start, end) = period.around(wall, zone);
                Some((start.0.div_euclid(1_000), end.0.div_euclid(1_000)))
            }
            _ => None,
        };
        let grain = self.grain();
        if let Some(slot) = self.slots.back_mut()
            && slot.epoch == debit.epoch
            && slot.span == span
            && (span.is_some() || now.duration_since(slot.first) < grain)
        {
            slot.tokens += u64::from(debit.tokens);
            slot.last = now;
            slot.at.1 = slot.at.1.max(debit.at);
            return;
        }
        self.slots.push_back(Slot {
            epoch: debit.epoch,
            at: (debit.at, debit.at),
            first: now,
            last: now,
            span,
            tokens: u64::from(debit.tokens),
        });
    }
}

impl Slot {
    fn place(&self, now: Instant) -> String {
        match self.span {
            Some((start, end)) => format!("{start}-{end}"),
            None => now.duration_since(self.last).as_micros().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outflow_core::policy::scope::Scope;
    use outflow_core::time::Nanos;

    fn key() -> Arc<LimitKey> {
        Arc::new(LimitKey::of(Scope::Tenant, "acme"))
    }

    fn hour() -> LimitSpec {
        let window = Nanos::from_secs(3_600);
        LimitSpec::SlidingWindow { count: 10, window }
    }

    fn debit(epoch: u64, at: u64) -> Debit {
        let (wall_micros, tokens) = (0, 1);
        Debit {
            epoch,
            at,
            wall_micros,
            tokens,
        }
    }

    #[test]
    fn debits_stay_few_and_no_older_than_they_are() {
        let (mut debits, start) = (Debits::default(), Instant::now());
        for second in 0..7_200 {
            let now = start + Duration::from_secs(second);
            debits.add(now, &key(), (&hour(), 0), debit(1, second));
        }
        let now = start + Duration::from_secs(7_200);
        let report = debits.report(now, &key(), 2).unwrap();
        assert!(report.debits.len() <= 140, "{}", report.debits.len());
        let ages = report
            .debits
            .iter()
            .map(|(age, tokens)| (age.parse::<u64>().unwrap(), *tokens));
        let lately: u64 = ages
            .filter(|(age, _)| *age <= 3_600_000_000)
            .map(|(_, tokens)| tokens)
            .sum();
        assert!((3_600..3_700).contains(&lately), "{lately}");
    }

    #[test]
    fn only_a_new_epoch_is_told_and_only_once() {
        let (mut debits, now) = (Debits::default(), Instant::now());
        debits.add(now, &key(), (&hour(), 0), debit(1, 5));
        assert!(debits.unreported(|_| 1).is_empty());
        assert_eq!(debits.unreported(|_| 2).len(), 1);
        // A lease of the new epoch is known there already.
        debits.add(now, &key(), (&hour(), 0), debit(2, 9));
        let report = debits.report(now, &key(), 2).unwrap();
        assert_eq!(report.debits.len(), 1);
        debits.reported(&key(), 2);
        assert!(debits.unreported(|_| 2).is_empty());
    }

    #[test]
    fn what_came_back_is_not_reported() {
        let (mut debits, now) = (Debits::default(), Instant::now());
        debits.add(now, &key(), (&hour(), 0), debit(1, 5));
        debits.give_back(&key(), 1, 5, 1);
        let report = debits.report(now, &key(), 2).unwrap();
        assert_eq!(report.debits.iter().map(|(_, it)| it).sum::<u64>(), 0);
    }
}

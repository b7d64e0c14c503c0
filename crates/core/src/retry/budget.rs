//! How many retries a tenant or a campaign may make.
//!
//! When a destination fails, every message comes back several times, and the
//! retries of one outage become the load of the next. So retries are paid for:
//! each first attempt earns a share of a retry, which must be spent within an
//! hour, and a small floor accrues by itself. What cannot pay waits and loses
//! no attempt by it.
//!
//! Guarantee: for any two instants `a <= b`, the retries in `[a, b]` are at most
//! `share * first attempts in (a - 1 h, b] + floor * (b - a) + floor * 1 min`.
//! The other way round, over any time `T` of steady demand at least
//! `floor * T - 1` retries are let through, whatever else happened.
//!
//! Credit is counted in units of which a retry costs as many as a minute has
//! nanoseconds: a floor of `n` per minute accrues `n` units per nanosecond, and
//! nothing is ever rounded.

use super::turns::Turns;
use crate::time::{Mono, Nanos};

/// How long earned credit can be spent, at most. It lapses by slots, so up to
/// one slot sooner.
pub const WINDOW: Nanos = Nanos::from_secs(3_600);

const SLOTS: u64 = 12;
const SLOT: Nanos = Nanos(WINDOW.0 / SLOTS);
const UNITS_PER_RETRY: u64 = 60_000_000_000;
const UNITS_PER_PERMILLE: u64 = UNITS_PER_RETRY / 1_000;

/// The retries that one tenant or one campaign can pay for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    permille: u32,
    floor_per_minute: u32,
    /// Units earned by first attempts, by the slot in which they were earned.
    earned: [u64; SLOTS as usize],
    /// The number of the slot to which `earned` was last brought up to date.
    slot: u64,
    /// Units of the floor that were not spent, as of `floor_since`.
    floor: u64,
    floor_since: Mono,
    /// Units earned in the slot that runs, and in the one before it.
    gained: [u64; 2],
    turns: Turns,
}

impl RetryBudget {
    /// Retries may be `permille` thousandths of first attempts, and
    /// `floor_per_minute` besides.
    pub fn new(permille: u32, floor_per_minute: u32) -> Self {
        Self {
            permille,
            floor_per_minute,
            earned: [0; SLOTS as usize],
            slot: 0,
            floor: floor_max(floor_per_minute),
            floor_since: Mono(0),
            gained: [0; 2],
            turns: Turns::default(),
        }
    }

    /// A message was tried for the first time.
    pub fn first_attempt(&mut self, now: Mono) {
        self.advance(now);
        let units = u64::from(self.permille) * UNITS_PER_PERMILLE;
        if let Some(slot) = self.earned.get_mut(place(self.slot)) {
            *slot = slot.saturating_add(units);
        }
        let [gained, _] = &mut self.gained;
        *gained = gained.saturating_add(units);
    }

    /// Whether a retry can be paid for now, or else when to look again. The
    /// time supposes that nothing more is earned; a first attempt may make it
    /// sooner.
    pub fn may_retry(&self, now: Mono) -> Result<(), Mono> {
        let units = self.earned_at(now).saturating_add(self.floor_at(now));
        let Some(missing) = UNITS_PER_RETRY
            .checked_sub(units)
            .filter(|units| *units > 0)
        else {
            return Ok(());
        };
        let rate = u64::from(self.floor_per_minute);
        Err(match missing.div_ceil(rate.max(1)) {
            _ if rate == 0 => Mono::NEVER,
            wait => now.max(self.floor_since) + Nanos(wait),
        })
    }

    /// When a retry that was refused now is to look again: each one at its own
    /// time, at the pace of the floor and of what was lately earned. Nobody
    /// waits longer than credit lasts.
    pub fn turn(&mut self, now: Mono) -> Mono {
        self.advance(now);
        let earliest = self.may_retry(now).err().unwrap_or(now);
        let [_, gained] = self.gained;
        let per_slot = u128::from(self.floor_per_minute) * u128::from(SLOT.0) + u128::from(gained);
        let gap = match u128::from(UNITS_PER_RETRY) * u128::from(SLOT.0) {
            _ if per_slot == 0 => Nanos::from_secs(1),
            units => Nanos(u64::try_from(units / per_slot).unwrap_or(u64::MAX)),
        };
        let earliest = earliest.min(now + WINDOW);
        self.turns.next(now, earliest, gap, WINDOW)
    }

    /// Pays for one retry, which [`RetryBudget::may_retry`] has allowed.
    pub fn take(&mut self, now: Mono) {
        debug_assert!(self.may_retry(now).is_ok(), "a retry is checked, then paid");
        self.advance(now);
        let mut owed = UNITS_PER_RETRY;
        // What lapses first is spent first, and the floor, which never lapses,
        // last.
        for age in (0..SLOTS).rev() {
            let slot = self.slot.checked_sub(age).map(place);
            if let Some(units) = slot.and_then(|slot| self.earned.get_mut(slot)) {
                let paid = owed.min(*units);
                *units -= paid;
                owed -= paid;
            }
        }
        self.floor = self.floor.saturating_sub(owed);
    }

    /// Whether a new budget would allow no more: what was earned would be lost,
    /// which matters to nobody who has nothing to retry.
    pub fn is_no_less_than_new(&self, now: Mono) -> bool {
        self.floor_at(now) == floor_max(self.floor_per_minute)
    }

    /// Whether this budget is as good as new, so that it can be dropped.
    pub fn is_idle(&self, now: Mono) -> bool {
        self.earned_at(now) == 0 && self.floor_at(now) == floor_max(self.floor_per_minute)
    }

    /// Forgets what has lapsed and adds what has accrued.
    fn advance(&mut self, now: Mono) {
        if now <= self.floor_since {
            return;
        }
        let slot = slot_of(now).max(self.slot);
        for lapsed in (self.slot + 1..=slot).rev().take(SLOTS as usize) {
            if let Some(units) = self.earned.get_mut(place(lapsed)) {
                *units = 0;
            }
        }
        self.gained = match (slot - self.slot, self.gained) {
            (0, gained) => gained,
            (1, [gained, _]) => [0, gained],
            _ => [0, 0],
        };
        self.slot = slot;
        self.floor = self.floor_at(now);
        self.floor_since = self.floor_since.max(now);
    }

    /// The earned units that have not lapsed by `now`.
    fn earned_at(&self, now: Mono) -> u64 {
        let oldest = slot_of(now).saturating_sub(SLOTS - 1);
        let newest = self.slot;
        (newest.saturating_sub(SLOTS - 1).max(oldest)..=newest)
            .filter_map(|slot| self.earned.get(place(slot)))
            .fold(0, |sum, units| sum.saturating_add(*units))
    }

    /// The units of the floor at `now`.
    fn floor_at(&self, now: Mono) -> u64 {
        let accrued =
            u64::from(self.floor_per_minute).saturating_mul(now.since(self.floor_since).0);
        self.floor
            .saturating_add(accrued)
            .min(floor_max(self.floor_per_minute))
    }
}

/// A minute's worth of the floor: as much as is saved up.
fn floor_max(floor_per_minute: u32) -> u64 {
    u64::from(floor_per_minute).saturating_mul(UNITS_PER_RETRY)
}

fn slot_of(now: Mono) -> u64 {
    now.0 / SLOT.0
}

fn place(slot: u64) -> usize {
    (slot % SLOTS) as usize
}

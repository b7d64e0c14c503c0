//! Tokens lent to those who send by themselves, from the limits that flows and
//! accounts pass: one count for all.
//!
//! A borrower passes like a flow that comes from another limit: it may use what
//! the limit keeps back from its own waiters, and it waits elsewhere.

use super::Engine;
use super::action::Action;
use crate::class::Class;
use crate::handle::{AccountLimitId, PlaceId};
use crate::limit::need::Need;
use crate::limit::{Limit, Until};
use crate::policy::applied::Applied;
use crate::policy::key::LimitKey;
use crate::time::{Nanos, Now};

/// A borrower for whom a reservation is on its way to the disk, or a slot may
/// be released, comes back after this long.
const SOON: Nanos = Nanos::from_millis(5);

/// Tokens wanted of one limit.
#[derive(Clone, Debug)]
pub struct Want {
    /// Which limit, and its numbers.
    pub applied: Applied,
    /// How many.
    pub cost: u32,
}

/// What a borrower hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// All of it was taken.
    Granted,
    /// Nothing was taken.
    Refused {
        /// Which of the limits that were wanted has least.
        by: usize,
        /// How long until it may have enough; [`Nanos::MAX`] if it never will.
        retry_after: Nanos,
    },
}

/// Where a limit is counted.
#[derive(Clone, Copy)]
enum Spot {
    Place(PlaceId),
    Account(AccountLimitId),
}

impl Engine {
    /// Takes all that is wanted, or nothing.
    pub fn lend(
        &mut self,
        now: &Now,
        wants: &[Want],
        class: Class,
        actions: &mut Vec<Action>,
    ) -> Lent {
        std::mem::swap(actions, &mut self.counter.actions);
        let spots: Vec<Spot> = wants.iter().map(|want| self.spot(now, want)).collect();
        let mut refused = None;
        for (by, (want, &spot)) in wants.iter().zip(&spots).enumerate() {
            let Some(wait) = self.wait_at(now, spot, class, want.cost) else {
                continue;
            };
            if refused.is_none_or(|(_, longest)| wait > longest) {
                refused = Some((by, wait));
            }
        }
        if refused.is_none() {
            for (want, &spot) in wants.iter().zip(&spots) {
                self.take_at(now, spot, class, want.cost);
            }
        }
        for spot in spots {
            self.look_at_spot(spot);
        }
        self.counter.desk.refresh_changed(now);
        self.feed(now);
        std::mem::swap(actions, &mut self.counter.actions);
        match refused {
            Some((by, retry_after)) => Lent::Refused { by, retry_after },
            None => Lent::Granted,
        }
    }

    /// Slots come back.
    pub fn take_back(&mut self, now: &Now, slots: &[(LimitKey, u32)]) {
        for (key, count) in slots {
            let spot = self.find_spot(key);
            if let Some(limit) = spot.and_then(|spot| self.limit_at(spot)) {
                limit.release(*count);
            }
            if let Some(spot) = spot {
                self.look_at_spot(spot);
            }
        }
        self.counter.desk.refresh_changed(now);
    }

    fn find_spot(&self, key: &LimitKey) -> Option<Spot> {
        let account = self.counter.desk.limits.find(key).map(Spot::Account);
        account.or_else(|| self.limits.find(key).map(Spot::Place))
    }

    /// Where the limit is counted; from now on at a place of its own if nobody
    /// counted it yet.
    fn spot(&mut self, now: &Now, want: &Want) -> Spot {
        if let Some(spot @ Spot::Account(_)) = self.find_spot(&want.applied.key) {
            return spot;
        }
        let maker = &mut self.counter.maker;
        let place = self
            .limits
            .join(now, &want.applied, &mut self.schedule, maker);
        // It is forgotten like any that no flow passes, once it is idle for a while.
        self.limits.leave(place);
        self.limits.note_lent(now.mono, place);
        Spot::Place(place)
    }

    fn limit_at(&mut self, spot: Spot) -> Option<&mut Limit> {
        match spot {
            Spot::Place(place) => self.schedule.limit_mut(place),
            Spot::Account(id) => {
                let entry = self.counter.desk.limits.get_mut(id);
                entry.map(|entry| &mut entry.limit)
            }
        }
    }

    /// How long until so many are there; none if they are.
    fn wait_at(&mut self, now: &Now, spot: Spot, class: Class, cost: u32) -> Option<Nanos> {
        let limit = self.limit_at(spot)?;
        limit.expect_cost(cost);
        if cost > limit.largest_cost() {
            return Some(Nanos::MAX);
        }
        let need = Need::whole(cost);
        if limit.fits_above(now, class, need, limit.floor(now, class, cost)) {
            return None;
        }
        Some(match limit.until_above_floor(now, class, need, cost) {
            Until::At(at) => at.since(now.mono).max(Nanos(1)),
            Until::Now | Until::Released | Until::Granted => SOON,
            Until::Never => Nanos::MAX,
        })
    }

    fn take_at(&mut self, now: &Now, spot: Spot, class: Class, cost: u32) {
        if let Some(limit) = self.limit_at(spot) {
            limit.take(now, class, cost);
        }
    }

    fn look_at_spot(&mut self, spot: Spot) {
        match spot {
            Spot::Place(place) => self.schedule.disturb(place),
            Spot::Account(id) => self.counter.desk.limits.note_changed(id),
        }
    }
}

//! Granted and reserved tokens on their way to the limits that spend them.

use super::Engine;
use super::action::Record;
use super::counter::Counter;
use super::event::LeaseAnswer;
use super::feed::Demand;
use super::flows::Flow;
use super::sweep::Sweep;
use crate::handle::{AppendNo, LimitId};
use crate::limit::{Kind, Limit};
use crate::policy::key::LimitKey;
use crate::policy::scope::Scope;
use crate::time::{Mono, Nanos, Now};

impl Engine {
    /// Gives limits that spend granted tokens what they lack.
    pub(super) fn feed(&mut self, now: &Now) {
        while let Some(place) = self.schedule.take_fed() {
            let feed = self.limits.get(place).and_then(|it| it.feed.as_ref());
            let earned = self.schedule.unserved_credit(now, place);
            let earned = earned
                .filter(|&(class, _)| feed.is_some_and(|feed| feed.may_ask_for(now.mono, class)));
            let wanted = earned.or_else(|| self.schedule.wanted_at(place));
            let demand = wanted.map(|(class, cost)| {
                let (flows, waiting) = self.schedule.demand_at(place, class);
                Demand {
                    class,
                    out_of_turn: earned.is_some(),
                    earned: earned.is_some(),
                    cost,
                    flows,
                    waiting,
                    has_session: true,
                }
            });
            let taken = self.schedule.take_spent(place);
            let Some(feed) = self
                .limits
                .get_mut(place)
                .and_then(|limit| limit.feed.as_mut())
            else {
                continue;
            };
            feed.note_taken(now.mono, taken);
            let Some(limit) = self.schedule.limit_mut(place) else {
                continue;
            };
            let counter = &mut self.counter;
            let id = (LimitId::Place(place), counter.policies.version());
            let (appends, actions) = (&mut counter.appends, &mut counter.actions);
            let was_asking = feed.is_asking();
            let again = feed.refill(now, id, limit, demand, appends, actions);
            // No answer came in time: it may spend alone for a while.
            if was_asking && !feed.is_asking() {
                self.schedule.mark(place);
            }
            self.schedule.look_at(place, again);
        }
        let counter = &mut self.counter;
        while let Some(id) = counter.desk.limits.pop_hungry() {
            let demand = counter.desk.demand(now.mono, id);
            let Some(entry) = counter.desk.limits.get_mut(id) else {
                continue;
            };
            let Some(feed) = &mut entry.feed else {
                continue;
            };
            let (limit, appends) = (&mut entry.limit, &mut counter.appends);
            let version = counter.policies.version();
            let before = limit.available(now);
            let (demand, usable_from) = match demand {
                Ok(demand) => (Some(demand), Mono::NEVER),
                Err(at) => (None, at),
            };
            let was_asking = feed.is_asking();
            let again = feed.refill(
                now,
                (LimitId::Account(id), version),
                limit,
                demand,
                appends,
                &mut counter.actions,
            );
            // What went back is no longer there: its accounts may be shut. What
            // it may spend alone, since no answer came in time, opens them.
            let is_less = limit.available(now) < before;
            let is_alone = was_asking && !feed.is_asking();
            counter.desk.limits.wake_at(id, again.min(usable_from));
            if is_less || is_alone {
                counter.desk.limits.note_changed(id);
            }
        }
        counter.desk.refresh_changed(now);
    }

    pub(super) fn granted(&mut self, now: &Now, id: LimitId, no: u32, answer: LeaseAnswer) {
        let counter = &mut self.counter;
        match id {
            LimitId::Place(place) => {
                let feed = self
                    .limits
                    .get_mut(place)
                    .and_then(|limit| limit.feed.as_mut());
                if let (Some(feed), Some(limit)) = (feed, self.schedule.limit_mut(place)) {
                    let again = feed.answered(now, limit, no, answer, &mut counter.actions);
                    if let LeaseAnswer::Leased { owed, .. } = answer {
                        self.schedule.earn(place, &owed);
                    }
                    self.schedule.mark(place);
                    self.schedule.look_at(place, again);
                }
            }
            LimitId::Account(id) => {
                let Some(entry) = counter.desk.limits.get_mut(id) else {
                    return;
                };
                let Some(feed) = &mut entry.feed else { return };
                let again = feed.answered(now, &mut entry.limit, no, answer, &mut counter.actions);
                counter.desk.limits.note_changed(id);
                counter.desk.limits.wake_at(id, again);
                if let LeaseAnswer::Leased { owed, .. } = answer {
                    counter.desk.limits.come_along(now.mono, id);
                    counter.desk.earn(id, &owed);
                }
            }
        }
    }

    /// Nothing of a limit, or through an account, is taken for so long; for no
    /// time at all if a pause was lifted.
    pub(super) fn paused(&mut self, now: &Now, key: &LimitKey, lasts: Nanos) {
        let until = now.mono + lasts;
        let apply = |limit: &mut Limit| match lasts {
            Nanos::ZERO => limit.unblock(),
            _ => limit.block_until(until),
        };
        if let Some(place) = self.limits.find(key) {
            if let Some(limit) = self.schedule.limit_mut(place) {
                apply(limit);
            }
            self.schedule.mark(place);
        }
        let desk = &mut self.counter.desk;
        if let Some(id) = desk.limits.find(key) {
            if let Some(entry) = desk.limits.get_mut(id) {
                apply(&mut entry.limit);
            }
            desk.limits.note_changed(id);
            desk.refresh_changed(now);
        }
        if let [(Scope::Account, name)] = key.parts()
            && key.facet().is_rate()
            && let Some(account) = desk.find_account(name)
        {
            match lasts {
                Nanos::ZERO => desk.unblock(now.mono, account),
                _ => desk.block(now.mono, account, until),
            }
        }
    }

    /// The machine slept or its clock was set: leases are older than they seem,
    /// and windows of the calendar open at another time.
    pub(super) fn clocks_parted(&mut self, now: &Now) {
        for (_, place) in self.limits.iter() {
            if let Some(limit) = self.schedule.limit_mut(place)
                && (limit.void_parted(now) || limit.shape().kind == Kind::CalendarWindow)
            {
                self.schedule.mark(place);
            }
        }
        self.counter.desk.clocks_parted(now);
    }

    pub(super) fn committed(&mut self, now: &Now, through: AppendNo) {
        let was_open = self.counter.is_open();
        while let Some(record) = self.counter.appends.confirm(through) {
            if let Record::Reservation { key, block, .. } = &record {
                self.reserved(key, *block);
            }
            for flow in Counter::flows_of(&record).into_iter().flatten() {
                self.counter.release_flow(flow);
                let is_left = |flow: &Flow| flow.is_twin && flow.in_store > 0;
                if self.counter.flows.get(flow).is_some_and(is_left) {
                    self.join_twin(now, flow);
                }
            }
        }
        let counter = &mut self.counter;
        counter.appends.go_on(now.mono, &mut counter.actions);
        if !was_open && self.counter.is_open() {
            self.sweeps.push_back(Sweep::gates());
            self.sweeps.push_back(Sweep::pages());
            self.opened_at = now.mono;
        }
    }

    pub(super) fn reserved(&mut self, key: &LimitKey, block: u32) {
        if key.name(Scope::Recipient).is_some() {
            self.counter.recipients.reserved(block);
            return;
        }
        if let Some(place) = self.limits.find(key) {
            if let Some(limit) = self.schedule.limit_mut(place) {
                limit.reserve_committed(block);
            }
            self.schedule.mark(place);
        }
        if let Some(id) = self.counter.desk.limits.find(key) {
            if let Some(entry) = self.counter.desk.limits.get_mut(id) {
                entry.limit.reserve_committed(block);
            }
            self.counter.desk.limits.note_changed(id);
        }
    }
}

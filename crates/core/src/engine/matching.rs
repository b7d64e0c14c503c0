//! Between schedule and pools: which lanes want an account, which accounts were
//! matched with them, which sessions open and close.

use super::Engine;
use super::action::Action;
use super::flows::Flow;
use crate::handle::{PoolId, SessionRef};
use crate::pool::ClassMask;
use crate::time::Now;

/// Flows at a gate that are looked at to learn how much waits there.
pub(super) const GATE_SAMPLE: usize = 16;

impl Engine {
    /// Tells the pools which lanes have flows at their gates.
    pub(super) fn tell_pools(&mut self, now: &Now) {
        while let Some(gate) = self.schedule.take_changed_gate() {
            let Some((lane, classes)) = self.schedule.gate_classes(gate) else {
                continue;
            };
            let mask = classes.into_iter().fold(ClassMask::NONE, ClassMask::with);
            // A few flows with many messages want as many sessions as many
            // flows with a few.
            let flows = self.schedule.first_flows_at(gate, GATE_SAMPLE);
            let waiting = flows
                .filter_map(|id| self.counter.flows.get(id))
                .map(Flow::waiting);
            let waiting = u32::try_from(waiting.sum::<u64>()).unwrap_or(u32::MAX);
            let (came, standing) = self.schedule.take_came(gate);
            self.counter.desk.tell_gate(lane, &came, &standing);
            if let Some(costs) = self.schedule.gate_costs(gate) {
                self.counter.desk.tell_costs(now, lane, costs);
            }
            let pool = self.counter.desk.lane(lane).pool;
            self.counter
                .desk
                .pool_mut(pool)
                .set_backlog(lane, mask, waiting);
            if self.counter.settings.leased {
                self.counter.desk.tell_wanted(pool);
            }
        }
        self.counter.desk.begin_holdups();
    }

    /// Serves the gates for which the pools found an account. Whether any did.
    pub(super) fn match_accounts(&mut self, now: &Now, budget: &mut u32) -> bool {
        if !self.counter.is_open() {
            return false;
        }
        let mut any = false;
        while let Some(pool) = self.counter.desk.first_touched() {
            while *budget > 0 {
                let Some((account, lane, class)) = self.counter.desk.next_match(pool) else {
                    break;
                };
                any = true;
                *budget -= 1;
                self.counter.matched = Some(account);
                let gate = self.counter.desk.lane(lane).gate;
                let is_owed = self.counter.desk.pool(pool).owed(account).contains(class);
                let served =
                    self.schedule
                        .serve_gate(now, gate, (class, is_owed), &mut self.counter);
                let used = self.counter.matched.take().is_none();
                if !served || !used {
                    self.counter.desk.pool_mut(pool).decline(lane, class);
                    self.schedule.gate_declined(gate);
                }
                self.tell_pools(now);
            }
            if *budget == 0 {
                return any;
            }
            self.open_and_close_in(now, pool);
            self.counter.desk.untouch(pool);
        }
        any
    }

    pub(super) fn open_and_close(&mut self, now: &Now) {
        if !self.counter.is_open()
            && let Some(pool) = self.counter.desk.first_touched()
        {
            self.open_and_close_in(now, pool);
        }
    }

    pub(super) fn open_and_close_in(&mut self, now: &Now, id: PoolId) {
        self.close_in(now, id);
        // A search for a session to open may close another to make room, and
        // then has opened none yet.
        while self.open_in(now, id) | self.close_in(now, id) {}
    }

    /// Closes what is to be closed in a pool. Whether anything was.
    fn close_in(&mut self, now: &Now, id: PoolId) -> bool {
        let counter = &mut self.counter;
        let mut any = false;
        while let Some(session) = counter.desk.next_close(id) {
            any = true;
            // Closing is not answered: the transport says goodbye in its own
            // time, and a slot that waited for an answer could be lost. That
            // the far end sees no more than the cap meanwhile is the
            // transport's to see to: what it is told to open waits for that.
            let pool = counter.desk.pool_mut(id);
            pool.session_closed(now.mono, session);
            let session = SessionRef { pool: id, session };
            counter.actions.push(Action::CloseSession { session });
        }
        any
    }

    /// Opens the sessions that a pool wants. Whether it wanted any.
    fn open_in(&mut self, now: &Now, id: PoolId) -> bool {
        if !self.counter.is_open() {
            return false;
        }
        let counter = &mut self.counter;
        let mut any = false;
        while let Some((session, account, lane)) = counter.desk.next_open(now, id) {
            any = true;
            let session = SessionRef { pool: id, session };
            counter.actions.push(Action::OpenSession {
                session,
                account,
                lane,
            });
        }
        any
    }
}

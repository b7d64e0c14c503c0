//! What goes wrong around a pool, and how it is put right in the end.

use outflow_core::class::Class;
use outflow_core::handle::{AccountId, LaneId, SessionId};
use outflow_core::time::Mono;

use super::sim::{Event, MS, SECOND, Sim};

impl Sim {
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.tally.measuring = false;
        for lane in (0..self.case.lanes).map(LaneId) {
            if std::mem::take(&mut self.endless[lane.index()]) {
                // A rest that must drain too.
                self.queues[lane.index()][Class::Normal.index()].extend([self.now; 20]);
            }
            self.pool.hold_lane(lane, false);
            self.tell_lane(lane);
        }
        for account in (0..self.case.accounts).map(AccountId) {
            self.pool.unblock_account(account);
            self.pool.set_room(account, true);
            self.restore(account);
        }
    }

    pub(super) fn block(&mut self, account: AccountId, blocked: bool) {
        if self.stopped {
            return;
        }
        let percent = self.case.blocked_percent;
        if blocked {
            self.pool.block_account(account);
            self.at(
                self.now + percent * SECOND / 10,
                Event::Block(account, false),
            );
        } else {
            self.pool.unblock_account(account);
            let open = self.entropy.between(0, 2 * (100 - percent) * SECOND / 10);
            self.at(self.now + open, Event::Block(account, true));
        }
    }

    /// One thing that should not hurt.
    pub(super) fn chaos(&mut self) {
        if self.stopped {
            return;
        }
        let now = Mono(self.now);
        let account = AccountId(self.entropy.between(0, u64::from(self.case.accounts) - 1) as u32);
        let lane = LaneId(self.entropy.between(0, u64::from(self.case.lanes) - 1) as u32);
        let session = SessionId(self.entropy.between(0, 40) as u32);
        match self.entropy.between(0, 13) {
            0 => self.pool.hold_lane(lane, true),
            1 => self.pool.hold_lane(lane, false),
            2 => self.pool.set_room(account, false),
            3 => self.pool.set_room(account, true),
            4 => self.pool.session_closed(now, session),
            5 => self.pool.block_account(account),
            6 => self.pool.unblock_account(account),
            7 => self.pool.session_ready(now, session),
            8 => {
                self.pool.remove_account(now, account);
                self.removed[account.index()] = true;
            }
            9 => drop(self.pool.session_unwelcome(now, session)),
            10 => drop(self.pool.session_crowded(now, session, now)),
            11 => drop(self.pool.session_full(now, session)),
            // A lane that comes back finds its messages where they were.
            12 => {
                self.pool.remove_lane(now, lane);
                self.pool.add_lane(lane);
                for account in (0..self.case.accounts).map(AccountId) {
                    self.tell_product(account, lane);
                }
                self.tell_lane(lane);
            }
            _ => self.restore(account),
        }
        self.at(self.now + 100 * MS, Event::Chaos);
    }

    fn restore(&mut self, account: AccountId) {
        if std::mem::take(&mut self.removed[account.index()]) {
            self.pool.add_account(account, self.case.caps);
            self.token_at[account.index()] = u64::MAX;
            self.tell_account(account);
            for lane in (0..self.case.lanes).map(LaneId) {
                self.tell_product(account, lane);
            }
        }
    }
}

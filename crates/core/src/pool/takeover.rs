//! Taking a session from one lane for another, at an account that is at its cap.
//!
//! Without it a lane that comes late would wait for a session to be used up;
//! with too much of it every message opens one. So a lane keeps a session for
//! eight connect times against all but critical messages that have none, and
//! after that only a lane that gains by it may take one: from a lane without
//! demand, or from one that has more.

use crate::time::Mono;

use super::Pool;
use super::place::{Col, Row};
use super::send::LAG;
use super::session::SessionNo;
use super::timer::Timer;

/// The most sessions, or accounts, looked at to take one from.
pub(super) const TAKE_LOOKS: usize = 8;

impl Pool {
    /// Takes an idle session from another lane for this one, or sets the time
    /// to look again.
    pub(super) fn take_for(&mut self, now: Mono, row: Row, col: Col) -> bool {
        self.work.searches += 1;
        let account = self.account(row);
        let mut at = now + account.hold();
        let mut found = None;
        let mut young = true;
        let eager = self.is_eager(row, col);
        for no in self.sessions.oldest(account.idle).take(TAKE_LOOKS) {
            if eager && self.may_take(now, no, row, col) {
                let holder = self.pair(self.sessions.at(no).pair).col;
                let spares_one = self.lane(holder).counts.serving() > 1;
                if spares_one {
                    found = Some(no);
                    break;
                }
                found = found.or(Some(no));
            }
            let held_until = self.sessions.at(no).ready_at + account.hold();
            at = at.min(held_until.max(now + account.connect.get()));
            young &= held_until > now;
        }
        if let Some(no) = found {
            self.yield_to(now, no, col);
            return true;
        }
        let account = self.account_mut(row);
        account.young_until = if young { at } else { now };
        self.time_take(row, at);
        false
    }

    pub(super) fn time_take(&mut self, row: Row, at: Mono) {
        let account = self.account_mut(row);
        if at < account.take_at {
            account.take_at = at;
            self.timers.set(at, Timer::Take(row));
        }
    }

    /// Whether a session that has no message may be taken for a lane.
    fn may_take(&self, now: Mono, no: SessionNo, row: Row, col: Col) -> bool {
        let session = self.sessions.at(no);
        let pair = self.pair(session.pair);
        if pair.col == col {
            return false;
        }
        if self.urgent.contains(col.0) {
            return true;
        }
        let hold = self.account(row).hold();
        if now.since(session.ready_at) < hold {
            return false;
        }
        let holder = self.lane(pair.col);
        let shut = pair.product.is_empty() && now.since(session.since) >= hold.times(2);
        if holder.demand.is_empty() || shut {
            return true;
        }
        let here = self.serving_here(row, col);
        let has = self.lane(col).serving();
        let poorer = has < holder.serving() && (has == 0 || self.lags(row, col, pair.col));
        here + 1 < pair.counts.serving() || here == 0 && poorer
    }

    /// Whether a lane gains by a session that another has to give up.
    fn is_eager(&self, row: Row, col: Col) -> bool {
        let lane = self.lane(col);
        let has = lane.serving();
        // Its own sessions will be back before a new one is open.
        let patient = lane.waiting <= has.saturating_mul(2);
        // Where tokens lack, one more session brings nothing.
        let spare = !self.account(row).supply.and(lane.demand).is_empty();
        has == 0 || !patient && (spare || self.serving_here(row, col) == 0)
    }

    fn lags(&self, row: Row, col: Col, behind: Col) -> bool {
        self.promised_tag(row, col) + LAG / 2 < self.start_tag(behind)
    }

    pub(super) fn serving_here(&self, row: Row, col: Col) -> u32 {
        let pair = self.account(row).pair(col.index());
        pair.map_or(0, |no| self.pair(no).counts.serving())
    }

    /// The lane for which a session should make way now that its reply has
    /// arrived: without this, lanes that never let one idle would keep them.
    pub(super) fn successor(&mut self, now: Mono, no: SessionNo) -> Option<Col> {
        let session = self.sessions.at(no);
        let row = self.pair(session.pair).row;
        let account = self.account(row);
        if self.short.is_empty() || !account.at_cap() || account.counts.idle > 0 {
            return None;
        }
        let held = now.since(session.ready_at) >= account.hold();
        if !held && self.urgent.is_empty() {
            return None;
        }
        let col = self.pick_short(row, true)?;
        (self.is_eager(row, col) && self.may_take(now, no, row, col)).then_some(col)
    }

    /// Closes a session to open one for another lane in its place.
    pub(super) fn yield_to(&mut self, now: Mono, no: SessionNo, col: Col) {
        self.work.taken += 1;
        self.sessions.at_mut(no).yields_to = Some(col);
        self.lane_mut(col).promised += 1;
        self.retire(now, no);
        self.refresh_lane(col);
    }
}

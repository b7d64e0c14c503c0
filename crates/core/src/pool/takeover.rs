//! Taking a session from one lane for another, at an account that is at its cap.
//!
//! An idle session whose lane has no message gives way at once: a message that
//! waits is worth more than one that may come. Only a lane that sends several
//! messages in the time that connecting takes keeps its sessions over the gap
//! between two messages, since it would want them back before another could
//! use them. A session whose lane does have messages (tokens lack, or its reply
//! has just arrived) is kept for eight connect times against all but critical
//! messages that have none: with too much of it every message opens one. After
//! that only a lane that gains by it may take one, from a lane that has more. A
//! lane that leaves free slots to others takes from lanes without messages only.
//!
//! Sessions of relays are never taken: they serve every lane.

use crate::time::{Mono, Nanos};

use super::Pool;
use super::bits::scan;
use super::place::{Col, Row};
use super::send::{LAG, LOOKS};
use super::session::{SessionNo, State};
use super::timer::Timer;

/// The most accounts of which one search looks at the sessions.
const TAKE_LOOKS: u32 = 8;
/// A lane that sends so many messages in one connect time keeps its sessions
/// over the gap between two messages.
const GAPS_PER_CONNECT: u64 = 4;
/// For so many gaps after its last message.
const GAPS_KEPT: u64 = 2;

impl Pool {
    /// Takes an idle session of an account at its cap for a lane.
    pub(super) fn take_for_lane(&mut self, now: Mono, col: Col) -> bool {
        let lane = self.lane(col);
        let cost = lane.least_cost();
        let mut full = [Row(0); LOOKS as usize];
        let mut free = full.iter_mut();
        scan(
            self.full.len_words(),
            lane.cursor,
            |at| self.full.word(at) & lane.bits.opens(at) & !self.too_small(col, at, cost),
            |at| free.next().map(|row| *row = Row(at)).is_some(),
        );
        let found = LOOKS as usize - free.len();
        let urgent = self.urgent.contains(col.0);
        let mut looks = 0;
        for row in full.into_iter().take(found) {
            let (young_until, spared) = self.account(row).young;
            if young_until > now && spared == self.spared && !urgent {
                self.time_take(row, young_until);
                continue;
            }
            if self.take_for(now, row, col) {
                return true;
            }
            looks += 1;
            if looks == TAKE_LOOKS {
                break;
            }
        }
        false
    }

    /// Takes an idle session from another lane for this one, or sets the time
    /// to look again.
    pub(super) fn take_for(&mut self, now: Mono, row: Row, col: Col) -> bool {
        self.work.searches += 1;
        let account = self.account(row);
        let mut at = now + account.hold();
        let mut found: Option<((bool, bool), SessionNo)> = None;
        let mut young = true;
        let eager = self.is_eager(now, row, col);
        for no in self.sessions.oldest(account.idle).take(LOOKS as usize) {
            let holder = self.lane(self.holder(no));
            if eager && self.may_take(now, no, col) {
                // Best from a lane without messages that has others.
                let rank = (!holder.demand.is_empty(), holder.counts.serving() <= 1);
                if found.is_none_or(|(least, _)| rank < least) {
                    found = Some((rank, no));
                }
                if rank == (false, false) {
                    break;
                }
            }
            let kept_until = match holder.demand.is_empty() {
                true => self.kept_until(no),
                false => self.sessions.at(no).ready_at + account.hold(),
            };
            at = at.min(kept_until.max(now + account.take_pause()));
            young &= kept_until > now;
        }
        if let Some((_, no)) = found {
            self.yield_to(now, no, col);
            return true;
        }
        let spared = self.spared;
        self.account_mut(row).young = (if young { at } else { now }, spared);
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

    fn holder(&self, no: SessionNo) -> Col {
        self.pair(self.sessions.at(no).carried()).col
    }

    /// Until when a lane without messages keeps a session against others.
    fn kept_until(&self, no: SessionNo) -> Mono {
        let session = self.sessions.at(no);
        let lane = self.lane(self.holder(no));
        let connect = self.account(session.row).connect.get();
        let kept = lane.gap().filter(|gap| {
            let sends_on = !lane.held && lane.counts.serving() <= lane.target;
            sends_on && gap.times(GAPS_PER_CONNECT) <= connect
        });
        let gaps = kept.map_or(Nanos::ZERO, |gap| gap.times(GAPS_KEPT));
        session.since + gaps.max(self.settings.keep_idle)
    }

    /// Whether a session that has no message may be taken for a lane.
    fn may_take(&self, now: Mono, no: SessionNo, col: Col) -> bool {
        let session = self.sessions.at(no);
        let (row, pair) = (session.row, self.pair(session.carried()));
        if self.is_same_site(pair.col, col) {
            return false;
        }
        if self.urgent.contains(col.0) {
            return true;
        }
        let holder = self.lane(pair.col);
        if holder.demand.is_empty() {
            return session.state == State::Idle && self.kept_until(no) <= now;
        }
        if self.rich.contains(col.0) {
            return false;
        }
        let hold = self.account(row).hold();
        if now.since(session.ready_at) < hold {
            return false;
        }
        if pair.product.is_empty() && now.since(session.since) >= hold.times(2) {
            return true;
        }
        let here = self.serving_here(row, col);
        let has = self.lane(col).serving();
        let poorer = has < holder.serving() && (has == 0 || self.lags(row, col, pair.col));
        here + 1 < pair.counts.serving() || here == 0 && poorer
    }

    /// Whether a lane gains by a session that another has to give up.
    pub(super) fn is_eager(&self, now: Mono, row: Row, col: Col) -> bool {
        let lane = self.lane(col);
        let has = lane.serving();
        let Some(rounds) = u64::from(lane.waiting.saturating_sub(1)).checked_div(u64::from(has))
        else {
            return true;
        };
        // Its own sessions have carried them before a new one is open, or their
        // accounts have tokens again, unless they are stuck.
        let connect = self.account(row).connect.get();
        let moves = now.since(lane.moved_at.max(lane.waits_since)) <= connect;
        let soon = lane.counts.idle > 0 || lane.reply.get().times(rounds + 1) <= connect;
        let patient = moves && soon;
        // Where tokens lack, one more session brings nothing.
        let spare = !self.account(row).supply.and(lane.demand).is_empty();
        !patient && (spare || self.serving_here(row, col) == 0)
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
        let row = session.row;
        let account = self.account(row);
        if self.waiting.is_empty() || !account.at_cap() || account.counts.idle > 0 {
            return None;
        }
        let held = now.since(session.ready_at) >= account.hold();
        if !held && self.urgent.is_empty() {
            return None;
        }
        let col = self.pick_short(now, row, true)?;
        self.may_take(now, no, col).then_some(col)
    }

    /// A lane has no more messages: the accounts at which it has sessions idle
    /// look whether another wants them.
    pub(super) fn offer_idle(&mut self, col: Col) {
        self.spared += 1;
        if self.waiting.is_empty() {
            return;
        }
        for at in 0..self.full.len_words() {
            let mut rows = self.full.word(at) & !self.lane(col).bits.opens(at);
            while rows != 0 {
                self.offer_idle_at(Row(at as u32 * 64 + rows.trailing_zeros()));
                rows &= rows - 1;
            }
        }
    }

    /// A session of an account is idle and its lane has no message for it.
    pub(super) fn offer_idle_at(&mut self, row: Row) {
        self.spared += 1;
        if !self.waiting.is_empty() {
            self.connecting.mark_row(row);
        }
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

//! The life of a session: opened, ready, busy, idle, closed.

use crate::handle::SessionId;
use crate::time::{Mono, Nanos};

use super::Pool;
use super::lane::Reach;
use super::session::{Chain, SessionNo, State};
use super::stats::Counts;
use super::timer::Timer;

/// So many failed connects in a row hold the lane.
const FAILURES_MAX: u32 = 8;

impl Pool {
    /// A session that was being opened can carry messages.
    pub fn session_ready(&mut self, now: Mono, id: SessionId) {
        let Some(no) = self.find(id, State::Opening) else {
            return;
        };
        let session = self.sessions.at_mut(no);
        let took = now.since(session.since);
        session.ready_at = now;
        let pair_no = session.pair;
        let pair = self.pair_mut(pair_no);
        pair.failures = 0;
        let (row, col) = (pair.row, pair.col);
        let account = self.account_mut(row);
        account.connect.add(took);
        account.measure();
        let share = account.connect_share();
        let lane = self.lane_mut(col);
        lane.connect.add(took);
        lane.connect_share.add(share);
        lane.failures = 0;
        lane.reach = Reach::Open;
        self.welcomed(now, pair_no);
        self.pace_freed(now, row, col);
        self.rest(now, no);
        self.refresh_session(no);
    }

    /// A session could not be opened.
    pub fn session_failed(&mut self, now: Mono, id: SessionId) {
        let Some(no) = self.find(id, State::Opening) else {
            self.session_closed(now, id);
            return;
        };
        self.note_failure(now, no);
        self.drop_session(now, no);
    }

    /// An opening that was never answered has failed; it is told to close.
    pub(super) fn openings_due(&mut self, now: Mono) {
        while let Some(&(deadline, id)) = self.openings.front() {
            let Some(no) = self.find(id, State::Opening) else {
                self.openings.pop_front();
                continue;
            };
            if deadline > now {
                return;
            }
            self.openings.pop_front();
            self.note_failure(now, no);
            self.retire(now, no);
        }
    }

    /// Backs a pair off after a failed connect, and its lane after several.
    fn note_failure(&mut self, now: Mono, no: SessionNo) {
        let pair_no = self.sessions.at(no).pair;
        let pair = self.pair_mut(pair_no);
        pair.failures += 1;
        let (failures, col) = (pair.failures, pair.col);
        let until = now + self.backoff(failures);
        self.pair_mut(pair_no).backoff_until = Some(until);
        self.timers.set(until, Timer::Backoff(pair_no));

        let lane = self.lane_mut(col);
        lane.failures += 1;
        let failures = lane.failures;
        if failures >= FAILURES_MAX {
            let until = now + self.backoff(failures - FAILURES_MAX + 1);
            self.lane_mut(col).reach = Reach::Shut(until);
            self.timers.set(until, Timer::Probe(col));
        }
    }

    /// A session is closed, on our side or the far one.
    pub fn session_closed(&mut self, now: Mono, id: SessionId) {
        if let Some(no) = self.sessions.find(id) {
            self.drop_session(now, no);
        }
    }

    /// The reply to a session's message arrived. `keep` says whether the
    /// session can carry another.
    pub fn released(&mut self, now: Mono, id: SessionId, keep: bool) {
        let Some(no) = self.find(id, State::Busy) else {
            return;
        };
        let session = self.sessions.at(no);
        let (took, used) = (now.since(session.since), session.used);
        let pair = self.pair(session.pair);
        let (row, col) = (pair.row, pair.col);
        let is_capped = pair.cap < u32::MAX;
        let unwelcome =
            used >= pair.messages || (is_capped && self.open_at(session.pair) > pair.cap);
        self.lane_mut(col).reply.add(took);
        let account = self.account_mut(row);
        account.reply.add(took);
        if account.is_slots() {
            self.pace_freed(now, row, col);
            self.drop_session(now, no);
            return;
        }
        account.measure();
        let done = !keep
            || unwelcome
            || used >= account.caps.messages_per_session
            || account.gone
            || account.counts.live() > account.caps.max_connections
            || self.lane(col).gone;
        if done {
            self.retire(now, no);
        } else if let Some(other) = self.successor(now, no) {
            self.yield_to(now, no, other);
        } else {
            self.pace_freed(now, row, col);
            self.rest(now, no);
            self.refresh_session(no);
        }
    }

    /// The next session to close. Answer with [`Pool::session_closed`].
    pub fn next_close(&mut self) -> Option<SessionId> {
        while let Some(id) = self.closing.pop_front() {
            if self.sessions.find(id).is_some() {
                return Some(id);
            }
        }
        None
    }

    pub(super) fn find(&self, id: SessionId, state: State) -> Option<SessionNo> {
        let no = self.sessions.find(id)?;
        (self.sessions.at(no).state == state).then_some(no)
    }

    fn backoff(&self, failures: u32) -> Nanos {
        let doubled = 1 << failures.saturating_sub(1).min(32);
        let wait = self.settings.backoff_first.times(doubled);
        wait.min(self.settings.backoff_max)
    }

    /// Lets a session wait for its next message.
    fn rest(&mut self, now: Mono, no: SessionNo) {
        self.turn(now, no, State::Idle);
        let row = self.pair(self.sessions.at(no).pair).row;
        self.time_idle(row);
    }

    /// Has a session closed.
    pub(super) fn retire(&mut self, now: Mono, no: SessionNo) {
        self.turn(now, no, State::Closing);
        self.closing.push_back(self.sessions.id(no));
        self.refresh_session(no);
    }

    pub(super) fn drop_session(&mut self, now: Mono, no: SessionNo) {
        let session = self.sessions.at_mut(no);
        let successor = session.yields_to.take();
        let pair_no = session.pair;
        let pair = self.pair(pair_no);
        let (row, col) = (pair.row, pair.col);
        self.turn(now, no, State::Free);
        self.sessions.remove(no);
        let keep_warm = self.settings.keep_warm;
        self.lane_mut(col).measure(now, keep_warm);
        if let Some(other) = successor {
            self.lane_mut(other).promised -= 1;
            self.freed.push_back((row, other));
            self.refresh_lane(other);
            self.free_col_if_done(other);
        }
        self.refresh_pair(pair_no);
        self.refresh_account(row);
        self.refresh_lane(col);
        self.step_forward(col);
        self.call_forward();
        self.free_row_if_done(row);
        self.free_col_if_done(col);
    }

    fn refresh_session(&mut self, no: SessionNo) {
        let pair_no = self.sessions.at(no).pair;
        let pair = self.pair(pair_no);
        let (row, col) = (pair.row, pair.col);
        self.refresh_pair(pair_no);
        self.refresh_account(row);
        self.refresh_lane(col);
    }

    /// Moves a session to another state: counts and lists follow.
    pub(super) fn turn(&mut self, now: Mono, no: SessionNo, to: State) {
        let session = self.sessions.at_mut(no);
        let from = std::mem::replace(&mut session.state, to);
        session.since = now;
        let pair = self
            .pairs
            .get_mut(session.pair.0 as usize)
            .expect("a session has a pair");
        let account = self
            .accounts
            .get_mut(pair.row.index())
            .expect("a pair has an account");
        let lane = self
            .lanes
            .get_mut(pair.col.index())
            .expect("a pair has a lane");
        for counts in [
            &mut pair.counts,
            &mut account.counts,
            &mut lane.counts,
            &mut self.counts,
        ] {
            counts.shift(from, to);
        }
        let (row, col) = (pair.row, pair.col);
        let crosses = lane.site.is_some_and(|site| {
            let (before, cap) = (account.site_live(site), account.caps.per_destination);
            let after = before + u32::from(from == State::Free) - u32::from(to == State::Free);
            account.set_site_live(site, after);
            // Each lane of the site may have found another cap.
            (before < cap) != (after < cap) || (account.is_capped && before != after)
        });
        if from == State::Idle {
            self.sessions.unlink(&mut pair.idle, Chain::Pair, no);
            self.sessions.unlink(&mut account.idle, Chain::Account, no);
        }
        if to == State::Idle {
            self.sessions.push(&mut pair.idle, Chain::Pair, no);
            self.sessions.push(&mut account.idle, Chain::Account, no);
        }
        if crosses {
            self.refresh_site(row, col);
        }
    }
}

impl Counts {
    fn shift(&mut self, from: State, to: State) {
        if let Some(count) = self.of(from) {
            *count -= 1;
        }
        if let Some(count) = self.of(to) {
            *count += 1;
        }
    }

    fn of(&mut self, state: State) -> Option<&mut u32> {
        match state {
            State::Free => None,
            State::Opening => Some(&mut self.opening),
            State::Idle => Some(&mut self.idle),
            State::Busy => Some(&mut self.busy),
            State::Closing => Some(&mut self.closing),
        }
    }
}

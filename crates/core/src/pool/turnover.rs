//! The life of a session: opened, ready, busy, idle, closed.

use crate::handle::SessionId;
use crate::time::{Mono, Nanos};

use super::Pool;
use super::account::SiteSessions;
use super::far_end::FarEndOf;
use super::lane::Reach;
use super::place::{PairNo, Row};
use super::session::{Chain, Session, SessionNo, State};
use super::settings::SessionKind;
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
        let pair_no = session.carried();
        let pair = self.pair(pair_no);
        let (row, col) = (pair.row, pair.col);
        let far_end = self.far_end_of(row, pair_no);
        self.far_end_mut(far_end).failures = 0;
        let account = self.account_mut(row);
        let is_relay = account.is_relay();
        account.connect.add(took);
        account.measure();
        let share = account.connect_share();
        let lane = self.lane_mut(col);
        lane.connect.add(took);
        lane.connect_share.add(share);
        if !is_relay {
            lane.failures = 0;
            lane.reach = Reach::Open;
        }
        self.welcomed(now, far_end);
        self.pace_freed(now, row, col);
        self.rest(now, no);
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

    /// Backs off after a failed connect: a relay for all lanes, else the pair,
    /// and its lane after several.
    fn note_failure(&mut self, now: Mono, no: SessionNo) {
        let session = self.sessions.at(no);
        let (pair, since) = (session.carried(), session.since);
        let of = self.far_end_of_session(no);
        let is_relay = matches!(of, FarEndOf::Account(_));
        let far_end = self.far_end_mut(of);
        // Connects that were on their way together fail as one.
        if is_relay && far_end.failures > 0 && since <= far_end.failed_at {
            return;
        }
        far_end.failures += 1;
        far_end.failed_at = now;
        let failures = far_end.failures;
        let until = now + self.backoff(failures);
        self.far_end_mut(of).backoff_until = Some(until);
        self.timers.set(until, Timer::Backoff(of));
        if is_relay {
            return;
        }

        let col = self.pair(pair).col;
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
        let pair = self.pair(session.carried());
        let (row, col) = (pair.row, pair.col);
        let of = self.far_end_of_session(no);
        let far_end = self.far_end(of);
        let is_capped = far_end.cap < u32::MAX;
        let unwelcome = used >= far_end.messages || (is_capped && self.open_at(of) > far_end.cap);
        let lane = self.lane_mut(col);
        lane.reply.add(took);
        lane.moved_at = now;
        let account = self.account_mut(row);
        account.reply.add(took);
        if account.is_slots() {
            self.pace_freed(now, row, col);
            self.drop_session(now, no);
            return;
        }
        account.measure();
        let lane_gone = self.lane(col).gone && !self.account(row).is_relay();
        let account = self.account(row);
        let done = !keep
            || unwelcome
            || used >= account.caps.messages_per_session
            || account.gone
            || account.next_kind.is_some()
            || account.counts.live() > account.caps.max_connections
            || lane_gone;
        if done {
            self.retire(now, no);
        } else if let Some(other) = self.successor(now, no) {
            self.yield_to(now, no, other);
        } else {
            self.pace_freed(now, row, col);
            self.rest(now, no);
        }
    }

    /// Whether sessions are to be closed.
    pub fn is_closing(&self) -> bool {
        !self.closing.is_empty()
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
        let session = self.sessions.at(no);
        let (row, pair) = (session.row, session.carried());
        let col = self.pair(pair).col;
        self.turn(now, no, State::Idle);
        self.time_idle(row);
        self.refresh_around(row, Some(pair));
        if self.account(row).is_relay() {
            // Its last message may have been that of a removed lane.
            self.free_col_if_done(col);
        } else if self.lane(col).demand.is_empty() {
            self.offer_idle_at(row);
        }
    }

    /// Has a session closed.
    pub(super) fn retire(&mut self, now: Mono, no: SessionNo) {
        let Session { row, pair, .. } = *self.sessions.at(no);
        self.turn(now, no, State::Closing);
        self.closing.push_back(self.sessions.id(no));
        self.refresh_around(row, pair);
        if let Some(pair) = pair.filter(|_| self.account(row).is_relay()) {
            self.free_col_if_done(self.pair(pair).col);
        }
    }

    pub(super) fn drop_session(&mut self, now: Mono, no: SessionNo) {
        let session = self.sessions.at_mut(no);
        let successor = session.yields_to.take();
        let (row, pair) = (session.row, session.pair);
        self.turn(now, no, State::Free);
        self.sessions.remove(no);
        let col = pair.map(|pair| self.pair(pair).col);
        let keep_warm = self.settings.keep_warm;
        if let Some(col) = col {
            self.lane_mut(col).measure(now, keep_warm);
        }
        if let Some(other) = successor {
            self.lane_mut(other).promised -= 1;
            self.freed.push_back((row, other));
            self.refresh_lane(other);
            self.free_col_if_done(other);
        }
        self.refresh_around(row, pair);
        if let Some(col) = col {
            self.step_forward(col);
        }
        self.call_forward();
        self.change_if_done(row);
        self.free_row_if_done(row);
        if let Some(col) = col {
            self.free_col_if_done(col);
        }
    }

    fn refresh_around(&mut self, row: Row, pair: Option<PairNo>) {
        if let Some(pair) = pair {
            self.refresh_pair(pair);
        }
        self.refresh_account(row);
        if let Some(pair) = pair {
            self.refresh_lane(self.pair(pair).col);
        }
    }

    /// Moves a session to another state: counts and lists follow.
    pub(super) fn turn(&mut self, now: Mono, no: SessionNo, to: State) {
        let session = self.sessions.at_mut(no);
        let from = std::mem::replace(&mut session.state, to);
        session.since = now;
        let (row, pair) = (session.row, session.pair);
        let account = self
            .accounts
            .get_mut(row.index())
            .expect("a session has an account");
        account.counts.shift(from, to);
        self.counts.shift(from, to);
        if from == State::Idle {
            self.sessions.unlink(&mut account.idle, Chain::Account, no);
        }
        if to == State::Idle {
            self.sessions.push(&mut account.idle, Chain::Account, no);
        }
        let is_relay = account.is_relay();
        if account.caps.kind == SessionKind::Connections {
            self.bound += u64::from(from == State::Free);
            self.bound -= u64::from(to == State::Free);
        }
        let Some(pair) = pair else { return };
        if !is_relay {
            return self.turn_at_pair(no, pair, from, to);
        }
        let carries = |state| match state {
            State::Opening | State::Busy => state,
            State::Free | State::Idle | State::Closing => State::Free,
        };
        self.turn_at_pair(no, pair, carries(from), carries(to));
        if carries(to) == State::Free {
            self.sessions.at_mut(no).pair = None;
        }
    }

    /// The same for the pair and the lane.
    fn turn_at_pair(&mut self, no: SessionNo, pair: PairNo, from: State, to: State) {
        let pair = self
            .pairs
            .get_mut(pair.0 as usize)
            .expect("a session has a pair");
        let (row, col) = (pair.row, pair.col);
        let account = self
            .accounts
            .get_mut(row.index())
            .expect("a pair has an account");
        let lane = self.lanes.get_mut(col.index()).expect("a pair has a lane");
        pair.counts.shift(from, to);
        lane.counts.shift(from, to);
        if account.caps.kind == SessionKind::Connections {
            lane.bound += u32::from(to.serves());
            lane.bound -= u32::from(from.serves());
        }
        if from == State::Idle {
            self.sessions.unlink(&mut pair.idle, Chain::Pair, no);
        }
        if to == State::Idle {
            self.sessions.push(&mut pair.idle, Chain::Pair, no);
        }
        // A session to a relay is one to a destination only while it carries
        // something there.
        let is_away = |state| match account.is_relay() {
            true => state != State::Busy,
            false => state == State::Free,
        };
        let (came, went) = (is_away(from), is_away(to));
        let crosses = lane.site.is_some_and(|site| {
            let (before, cap) = (account.at_site(site), account.caps.per_destination);
            let after = SiteSessions {
                live: before.live + u32::from(came) - u32::from(went),
                idle: before.idle + u32::from(to == State::Idle) - u32::from(from == State::Idle),
            };
            account.set_at_site(site, after);
            // Each lane of the site may have found another cap, and each can use
            // what is idle.
            (before.live < cap) != (after.live < cap)
                || (account.is_capped && before.live != after.live)
                || (before.idle == 0) != (after.idle == 0)
        });
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

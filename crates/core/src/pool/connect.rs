//! The connect gate: accounts with room for a session, lanes that are short of
//! one, pairs that may open.
//!
//! A session on its way counts as some sends that the lane has had already, so
//! that one lane does not open for all. A lane with many sessions leaves the
//! last free slots to others for a while, but no slots that idle sessions keep.
//! An account at its cap may still take a session from another lane: see
//! `takeover`. A relay has room only while none
//! of its sessions is idle, and opens for messages that wait.

use crate::class::Class;
use crate::handle::{AccountId, LaneId, SessionId};
use crate::time::Mono;

use super::Pool;
use super::bits::scan;
use super::lane::Rich;
use super::place::{Col, Row};
use super::send::LOOKS;
use super::session::{SessionNo, State};
use super::timer::Timer;

/// The most sends that an opening stands for in a lane's tag.
const PROMISE: u32 = 10;
/// A lane with more sessions than this times the free slots stands back.
const RICH: u64 = 4;

/// At one account, lanes without a session come before all others.
const BEHIND_ALL_FIRST: u64 = 1 << 63;

/// What came of one search.
enum Search {
    Opened(SessionNo),
    /// Something changed: search again.
    Again,
    Nothing,
}

impl Pool {
    /// Whether a search for a session to open is due.
    pub fn may_open(&self) -> bool {
        !self.connecting.is_empty() || !self.freed.is_empty() || !self.began_to_wait.is_empty()
    }

    /// The next session to open. Answer with [`Pool::session_ready`] or
    /// [`Pool::session_failed`]; tell [`Pool::set_room`] what the connection
    /// rate says now before asking again.
    pub fn next_open(&mut self, now: Mono) -> Option<(SessionId, AccountId, LaneId)> {
        while let Some(col) = self.began_to_wait.pop() {
            // It may be gone, and its column with it.
            if let Some(lane) = self.lanes.get_mut(col.index()) {
                lane.waits_since = now;
            }
        }
        while let Some((row, col)) = self.freed.pop_front() {
            let wanted = self.room.contains(row.0) && self.seeks(col);
            if wanted
                && self.opens(row, col)
                && self.can_take(row, col, self.lane(col).least_cost())
                && let Some(no) = self.open(now, row, col)
            {
                return Some(self.opening(no));
            }
        }
        loop {
            let nobody_seeks = self.short.is_empty() && self.waiting.is_empty();
            if nobody_seeks || (self.room.is_empty() && self.full.is_empty()) {
                self.connecting.clear();
                return None;
            }
            let search = if let Some(row) = self.connecting.row() {
                let search = self.offer(now, row);
                if matches!(search, Search::Nothing) {
                    self.connecting.pop_row();
                }
                search
            } else {
                let col = self.connecting.col()?;
                let search = self.request(now, col);
                if matches!(search, Search::Nothing) {
                    self.connecting.pop_col();
                }
                search
            };
            if let Search::Opened(no) = search {
                return Some(self.opening(no));
            }
        }
    }

    fn opening(&self, no: SessionNo) -> (SessionId, AccountId, LaneId) {
        let pair = self.pair(self.sessions.at(no).carried());
        let (account, lane) = (self.account(pair.row).id, self.lane(pair.col).id);
        (self.sessions.id(no), account, lane)
    }

    /// An account with room looks for a lane.
    fn offer(&mut self, now: Mono, row: Row) -> Search {
        let (room, full) = (self.room.contains(row.0), self.full.contains(row.0));
        if !room && !full {
            return Search::Nothing;
        }
        let Some(col) = self.pick_short(now, row, full) else {
            return Search::Nothing;
        };
        if full {
            return match self.take_for(now, row, col) {
                true => Search::Again,
                false => Search::Nothing,
            };
        }
        if !self.relays.contains(row.0) && self.stands_back(now, col) {
            return Search::Again;
        }
        self.open(now, row, col)
            .map_or(Search::Nothing, Search::Opened)
    }

    /// A lane that is short looks for an account.
    fn request(&mut self, now: Mono, col: Col) -> Search {
        let short = self.short.contains(col.0) && !self.stands_back(now, col);
        if let Some(row) = self.pick_room(col, short) {
            return self
                .open(now, row, col)
                .map_or(Search::Nothing, Search::Opened);
        }
        // It may stand back from free slots only.
        let takes = self.seeks(col) && self.waiting.contains(col.0);
        match takes && self.take_for_lane(now, col) {
            true => Search::Again,
            false => Search::Nothing,
        }
    }

    /// Among the accounts with room, the one that opened least recently. A
    /// relay opens only for messages that wait, others also for a lane that is
    /// short of sessions.
    fn pick_room(&mut self, col: Col, short: bool) -> Option<Row> {
        let bound = if short { u64::MAX } else { 0 };
        let waiting = self.waiting.contains(col.0);
        let relays = if waiting { u64::MAX } else { 0 };
        let lane = self.lane(col);
        let cost = lane.least_cost();
        let mut best: Option<(u64, u32)> = None;
        let mut looks = 0;
        scan(
            self.room.len_words(),
            lane.open_cursor,
            |at| {
                let first = self.room.word(at) & lane.bits.first(at);
                let more = self.hungry.word(at) & lane.bits.more(at);
                let is_relay = self.relays.word(at);
                let sought = is_relay & relays | !is_relay & bound;
                (first | more) & sought & !self.too_small(col, at, cost)
            },
            |at| {
                looks += 1;
                let mut rank = self.last_opened.get(at as usize).copied().unwrap_or(0);
                if self.serving_here(Row(at), col) > 0 {
                    rank |= BEHIND_ALL_FIRST;
                }
                if best.is_none_or(|(least, _)| rank < least) {
                    best = Some((rank, at));
                }
                looks < LOOKS
            },
        );
        self.work.searches += 1;
        self.work.looks += u64::from(looks);
        best.map(|(_, at)| Row(at))
    }

    /// Among the lanes that are short, an urgent one, else the one that has had
    /// and was promised least. With `taking`, among those that gain by a session
    /// that another gives up.
    pub(super) fn pick_short(&mut self, now: Mono, row: Row, taking: bool) -> Option<Col> {
        let account = self.account(row);
        let is_relay = account.is_relay();
        let first_only = !taking && !self.hungry.contains(row.0);
        let opens = |at| {
            if first_only {
                account.bits.first(at)
            } else {
                account.bits.opens(at)
            }
        };
        let mut best: Option<(u64, u32)> = None;
        let (mut looks, mut is_put_off) = (0, false);
        if !self.urgent.is_empty() {
            scan(
                self.urgent.len_words(),
                account.open_cursor,
                |at| self.urgent.word(at) & opens(at),
                |at| {
                    if !self.can_take(row, Col(at), self.lane(Col(at)).cost(Class::Critical)) {
                        return true;
                    }
                    best = Some((0, at));
                    false
                },
            );
        }
        // A message that waits comes before one that may come. Lanes that stand
        // back take what is idle if no other does.
        for first in [true, false] {
            if best.is_some() || (looks > 0 && !taking) || (is_relay && !first) {
                break;
            }
            scan(
                self.short.len_words(),
                account.open_cursor,
                |at| {
                    let (short, waits) = (self.short.word(at), self.waiting.word(at));
                    let sought = match (is_relay, taking) {
                        (true, _) => waits,
                        (_, true) if first => short & waits,
                        (_, true) => self.rich.word(at) & waits,
                        _ if first => short & waits,
                        _ => short & !waits,
                    };
                    sought & opens(at)
                },
                |at| {
                    if !self.can_take(row, Col(at), self.lane(Col(at)).least_cost()) {
                        return true;
                    }
                    looks += 1;
                    let mut rank = self.promised_tag(row, Col(at));
                    if self.serving_here(row, Col(at)) > 0 {
                        rank |= BEHIND_ALL_FIRST;
                    }
                    let gains = !taking || self.is_eager(now, row, Col(at));
                    is_put_off |= !gains;
                    if gains && best.is_none_or(|(least, _)| rank < least) {
                        best = Some((rank, at));
                    }
                    looks < LOOKS
                },
            );
        }
        self.work.searches += 1;
        self.work.looks += u64::from(looks);
        if best.is_none() && is_put_off {
            self.time_take(row, now + self.account(row).take_pause());
        }
        best.map(|(_, at)| Col(at))
    }

    /// A lane's tag once it has used the sessions on their way to it, and
    /// those it has at this account.
    pub(super) fn promised_tag(&self, row: Row, col: Col) -> u64 {
        let each = self.account(row).caps.messages_per_session.min(PROMISE);
        let sessions = self.lane(col).coming() + self.serving_here(row, col);
        let promised = u64::from(sessions) * u64::from(each);
        self.start_tag(col).saturating_add(promised)
    }

    /// Whether a lane seeks sessions, be it none but those that others leave
    /// idle.
    fn seeks(&self, col: Col) -> bool {
        self.short.contains(col.0) || self.rich.contains(col.0)
    }

    fn is_rich(&self, col: Col) -> bool {
        let free = self.cap.saturating_sub(self.bound);
        let alone = self.lanes_used <= 1;
        // Only connections that are bound to a destination are kept from others.
        free > 0 && !alone && u64::from(self.lane(col).bound) > RICH * free
    }

    /// Whether a lane leaves the last free slots to others. It does so for as
    /// long as it would keep a session against them; then nobody wants them.
    fn stands_back(&mut self, now: Mono, col: Col) -> bool {
        let lane = self.lane(col);
        if lane.rich == Rich::Lifted || !self.is_rich(col) {
            return false;
        }
        let until = now + lane.connect.get().times(8);
        self.lane_mut(col).rich = Rich::Until(until);
        self.timers.set(until, Timer::Rich(col));
        self.refresh_lane(col);
        true
    }

    /// Ends the standing back of a lane that is no longer rich.
    pub(super) fn step_forward(&mut self, col: Col) {
        if self.rich.contains(col.0) && !self.is_rich(col) {
            self.lane_mut(col).rich = Rich::No;
            self.refresh_lane(col);
        }
    }

    /// A slot is free: one lane that stands back looks again.
    pub(super) fn call_forward(&mut self) {
        if self.rich.is_empty() {
            return;
        }
        let mut first = None;
        scan(
            self.rich.len_words(),
            self.rich_cursor,
            |at| self.rich.word(at),
            |at| {
                first = Some(at);
                false
            },
        );
        if let Some(at) = first {
            self.rich_cursor = at + 1;
            self.step_forward(Col(at));
        }
    }

    fn opens(&self, row: Row, col: Col) -> bool {
        self.account(row).bits.opens(col.index() / 64) >> (col.0 % 64) & 1 == 1
    }

    fn open(&mut self, now: Mono, row: Row, col: Col) -> Option<SessionNo> {
        let pair = self.meet(row, col);
        let no = self.sessions.insert(row, pair, now)?;
        self.turn(now, no, State::Opening);
        let deadline = now + self.settings.connect_deadline;
        self.openings.push_back((deadline, self.sessions.id(no)));
        self.sequence += 1;
        self.work.openings += 1;
        if let Some(opened) = self.last_opened.get_mut(row.index()) {
            *opened = self.sequence;
        }
        self.account_mut(row).open_cursor = col.0 + 1;
        self.lane_mut(col).open_cursor = row.0 + 1;
        self.refresh_pair(pair);
        self.refresh_account(row);
        self.refresh_lane(col);
        Some(no)
    }
}

//! The invariants of a pool, checked in full. Slow: for tests and simulations.

use crate::class::Class;
use crate::time::Mono;

use super::Pool;
use super::lane::Rich;
use super::pair::Opens;
use super::place::{Col, Row};
use super::session::State;
use super::settings::{ClassMask, SessionKind};
use super::stats::Counts;

impl Pool {
    /// Panics if the pool contradicts itself.
    pub fn check(&self) {
        self.check_counts();
        for row in (0..self.accounts.len() as u32).map(Row) {
            self.check_account(row);
            for col in (0..self.lanes.len() as u32).map(Col) {
                self.check_pair(row, col);
            }
        }
        for col in (0..self.lanes.len() as u32).map(Col) {
            self.check_lane(col);
        }
    }

    fn check_counts(&self) {
        let mut total = Counts::default();
        let mut pairs = vec![Counts::default(); self.pairs.len()];
        for (_, session) in self.sessions.iter() {
            let pair = session.pair.map(|pair| {
                pairs
                    .get_mut(pair.0 as usize)
                    .expect("a pair is in the slab")
            });
            for counts in pair.into_iter().chain([&mut total]) {
                match session.state {
                    State::Free => {}
                    State::Opening => counts.opening += 1,
                    State::Idle => counts.idle += 1,
                    State::Busy => counts.busy += 1,
                    State::Closing => counts.closing += 1,
                }
            }
        }
        assert_eq!(total, self.counts, "sessions of the pool");
        let wants = self.lanes.iter().map(|lane| lane.demand);
        let wanted = wants.fold(ClassMask::NONE, ClassMask::or);
        assert_eq!(wanted, self.wanted(), "what the lanes want");
        for ((counts, pair), no) in pairs.iter().zip(&self.pairs).zip(0..) {
            let listed = self.free_pairs.count(no);
            assert_eq!(listed, usize::from(pair.is_free), "pair {no} is free once");
            if !pair.is_free {
                assert_eq!(*counts, pair.counts, "sessions of pair {no}");
            }
        }
        assert_eq!(self.tags.len(), self.lanes.len(), "a tag for each column");
    }

    fn check_account(&self, row: Row) {
        let account = self.account(row);
        assert_eq!(account.supply, account.supply_now(), "supply of {row:?}");
        assert_eq!(self.room.contains(row.0), account.has_room(), "room");
        assert_eq!(self.full.contains(row.0), account.is_full(), "full");
        let hungry = account.has_room() && account.is_hungry();
        assert_eq!(self.hungry.contains(row.0), hungry, "hungry");
        let mut sum = self.unbound_counts(row);
        for col in 0..self.lanes.len() {
            if let Some(no) = account.pair(col) {
                let counts = self.pair(no).counts;
                sum.opening += counts.opening;
                sum.idle += counts.idle;
                sum.busy += counts.busy;
                sum.closing += counts.closing;
            }
        }
        assert_eq!(sum, account.counts, "sessions of {row:?}");
        assert_eq!(
            self.sessions.oldest(account.idle).count() as u32,
            sum.idle,
            "idle list of {row:?}"
        );
        for (members, site) in self.sites.iter().zip(0..) {
            let met = members.iter().filter_map(|col| account.pair(col.index()));
            let idle: u32 = met.map(|no| self.pair(no).counts.idle).sum();
            assert_eq!(
                account.at_site(site).idle,
                idle,
                "idle of {row:?} at {site}"
            );
        }
    }

    /// The sessions of an account that are no lane's: those of a relay that
    /// neither open nor carry a message.
    fn unbound_counts(&self, row: Row) -> Counts {
        let mut sum = Counts::default();
        for (no, session) in self.sessions.iter().filter(|(_, it)| it.row == row) {
            let is_relay = self.account(row).is_relay();
            let carries = matches!(session.state, State::Opening | State::Busy);
            assert_eq!(session.pair.is_some(), carries || !is_relay, "{no:?}");
            if session.pair.is_none() {
                sum.idle += u32::from(session.state == State::Idle);
                sum.closing += u32::from(session.state == State::Closing);
            }
        }
        sum
    }

    fn check_lane(&self, col: Col) {
        let lane = self.lane(col);
        assert_eq!(lane.demand, lane.demand_now(), "demand of {col:?}");
        assert_eq!(lane.asks, lane.asks_now(), "asks of {col:?}");
        for class in Class::ALL {
            let bit = self.demand.word(col.index() / 64, class) >> (col.0 % 64) & 1 == 1;
            assert_eq!(lane.asks.contains(class), bit, "demand bits of {col:?}");
        }
        let connecting = self.accounts.iter();
        let connecting = connecting.filter(|it| it.caps.kind == SessionKind::Connections);
        let met = connecting.filter_map(|account| account.pair(col.index()));
        let bound: u32 = met.map(|no| self.pair(no).counts.serving()).sum();
        assert_eq!(lane.bound, bound, "connections of {col:?}");
        let standing_back = matches!(lane.rich, Rich::Until(_));
        let short = lane.wants_session() && !standing_back;
        assert_eq!(self.short.contains(col.0), short, "short of {col:?}");
        let urgent = short && lane.is_urgent();
        assert_eq!(self.urgent.contains(col.0), urgent, "urgent of {col:?}");
        let listed = self.free_cols.count(col.0);
        assert_eq!(listed, usize::from(lane.is_freed), "{col:?} is free once");
        let waiting = lane.waits_for_session();
        assert_eq!(self.waiting.contains(col.0), waiting, "waiting of {col:?}");
    }

    /// Whether a session is idle whose lane has no message, and none soon.
    fn has_spare(&self, row: Row) -> bool {
        let idle = self.sessions.oldest(self.account(row).idle);
        idle.filter_map(|no| self.sessions.at(no).pair).any(|pair| {
            let lane = self.lane(self.pair(pair).col);
            lane.demand.is_empty() && lane.gap().is_none()
        })
    }

    fn check_pair(&self, row: Row, col: Col) {
        let (account, lane) = (self.account(row), self.lane(col));
        let at = (col.index() / 64, row.index() / 64);
        let mut able = ClassMask::NONE;
        for class in Class::ALL {
            let by_row = account.bits.able(at.0, class) >> (col.0 % 64) & 1;
            let by_col = lane.bits.able(at.1, class) >> (row.0 % 64) & 1;
            assert_eq!(by_row, by_col, "able by row and by column");
            if by_row == 1 {
                able = able.with(class);
            }
        }
        let first = account.bits.first(at.0) >> (col.0 % 64) & 1 == 1;
        let more = account.bits.more(at.0) >> (col.0 % 64) & 1 == 1;
        let by_col = (lane.bits.first(at.1), lane.bits.more(at.1));
        assert_eq!(first, by_col.0 >> (row.0 % 64) & 1 == 1, "first by both");
        assert_eq!(more, by_col.1 >> (row.0 % 64) & 1 == 1, "more by both");
        if let Some(no) = account.pair(col.index()) {
            let pair = self.pair(no);
            assert_eq!((pair.row, pair.col), (row, col), "a pair's place");
            assert_eq!(pair.able, able, "what a pair is able to");
            assert_eq!(pair.opens == Opens::First, first, "a pair's bits");
            assert_eq!(pair.opens == Opens::More, more, "a pair's bits");
        }
        let mut sendable = account.supply.and(lane.asks).and(able);
        for class in Class::ALL {
            if !self.can_take(row, col, lane.cost(class)) {
                sendable = sendable.minus(ClassMask::of(class));
            }
        }
        assert!(
            sendable.is_empty() || self.sending.covers(row, col),
            "{row:?} could send for {col:?} and is not marked"
        );
        let is_relay = account.is_relay();
        assert_eq!(self.relays.contains(row.0), is_relay, "a relay");
        let seeks = match is_relay {
            true => self.waiting.contains(col.0),
            false => self.short.contains(col.0),
        };
        let short = seeks && self.can_take(row, col, lane.least_cost());
        let marked = self.connecting.covers(row, col);
        let opens = first && self.room.contains(row.0) || more && self.hungry.contains(row.0);
        assert!(
            !short || !opens || marked,
            "{row:?} could open for {col:?} and is not marked"
        );
        let starved = short && self.full.contains(row.0) && lane.serving() == 0;
        let timed = |row: u32| self.account(Row(row)).take_at != Mono::NEVER;
        assert!(
            !starved
                || !(first || more)
                || lane.demand.is_empty()
                || marked
                || (0..self.accounts.len() as u32).any(timed),
            "{row:?} could make way for {col:?} and is neither marked nor timed"
        );
        // A search looks at so many lanes, and a lane that sent quickly until now
        // keeps its sessions for a moment: then a timer is set.
        let looked = marked || account.take_at != Mono::NEVER;
        let spared = starved && (first || more) && self.waiting.contains(col.0);
        assert!(
            !spared || looked || !self.has_spare(row),
            "{row:?} has a session that no lane needs, and {col:?} waits"
        );
    }
}

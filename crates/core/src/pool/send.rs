//! The send gate: accounts that are ready, lanes with a backlog, pairs with a
//! session idle. At a relay the account has the session, and each pair that is
//! below its cap can use it.
//!
//! Lanes ask, accounts grant: an account serves the lane that has had least,
//! by tags that lag behind the pool's virtual time by a bounded amount, so that
//! a lane that was quiet does not take all when it returns. The most urgent
//! class goes first; each lower one that waits earns 2 % of what others send.

use crate::class::Class;
use crate::handle::{AccountId, LaneId, SessionId};
use crate::ledger::owed;
use crate::time::Mono;

use super::Pool;
use super::account::Account;
use super::bits::scan;
use super::place::{Col, Row};
use super::session::{Sessions, State};
use super::settings::{ClassMask, Prefer, SessionKind};

/// How far, in cost, a lane may lag behind the others and still catch up.
pub(super) const LAG: u64 = 50;
/// The most candidates that one search looks at.
pub(super) const LOOKS: u32 = 64;
/// The credit that gives a turn.
const CREDIT_TURN: i32 = 1_000;
/// The most that is saved up: tokens for a turn may have to be leased first, and
/// what is earned meanwhile must not be lost.
const CREDIT_MAX: i32 = 8 * CREDIT_TURN;

impl Pool {
    /// Whether an arriving message of this lane and class could be sent now.
    pub fn can_send(&self, lane: LaneId, class: Class) -> bool {
        self.can_send_cost(lane, class, 1)
    }

    /// Whether an arriving message of this cost could be sent now.
    pub fn can_send_cost(&self, lane: LaneId, class: Class, cost: u32) -> bool {
        let Some(col) = self.col(lane) else {
            return false;
        };
        self.lane(col).lets_out(class) && self.has_able(col, class, cost)
    }

    /// Whether an account is ready for the class, large enough for the cost, and
    /// has a session idle for the lane.
    pub(super) fn has_able(&self, col: Col, class: Class, cost: u32) -> bool {
        let lane = self.lane(col);
        (0..self.supply.len_words()).any(|at| {
            let able = self.supply.word(at, class) & lane.bits.able(at, class);
            able & !self.too_small(col, at, cost) != 0
        })
    }

    /// Takes a session for an arriving message of this lane and class.
    pub fn take(
        &mut self,
        now: Mono,
        lane: LaneId,
        class: Class,
        cost: u32,
    ) -> Option<(AccountId, SessionId)> {
        let col = self.col(lane)?;
        if !self.lane(col).lets_out(class) {
            return None;
        }
        let row = self.pick_account(col, class, cost)?;
        let session = self.send(now, row, col, class, cost)?;
        Some((self.account(row).id, session))
    }

    /// Takes a session of one account, as a rule the one that
    /// [`Pool::next_match`] named.
    pub fn take_from(
        &mut self,
        now: Mono,
        account: AccountId,
        lane: LaneId,
        class: Class,
        cost: u32,
    ) -> Option<SessionId> {
        let (row, col) = (self.row(account)?, self.col(lane)?);
        let can = self.account(row).supply.contains(class) && self.lane(col).lets_out(class);
        if !can || !self.can_take(row, col, cost) {
            return None;
        }
        let session = self.send(now, row, col, class, cost)?;
        let cursors = &mut self.account_mut(row).cursors;
        if let Some(cursor) = cursors.get_mut(class.index()) {
            *cursor = col.0 + 1;
        }
        Some(session)
    }

    /// The next account, lane and class that can send. Answer with
    /// [`Pool::take_from`] or [`Pool::decline`], else it is named again.
    pub fn next_match(&mut self) -> Option<(AccountId, LaneId, Class)> {
        while let Some(row) = self.sending.row() {
            if let Some((col, class)) = self.grant(row) {
                return Some((self.account(row).id, self.lane(col).id, class));
            }
            self.sending.pop_row();
        }
        while let Some(col) = self.sending.col() {
            if let Some(row) = self.ask(col)
                && let Some((col, class)) = self.grant(row)
            {
                return Some((self.account(row).id, self.lane(col).id, class));
            }
            self.sending.pop_col();
        }
        None
    }

    /// The lane has no message of this class after all: it is held elsewhere.
    /// It counts as without one until [`Pool::set_backlog`] says otherwise.
    pub fn decline(&mut self, lane: LaneId, class: Class) {
        let Some(col) = self.col(lane) else { return };
        let lane = self.lane_mut(col);
        lane.backlog = lane.backlog.minus(ClassMask::of(class));
        self.refresh_lane(col);
    }

    /// The classes that an account owes a turn out of order.
    pub fn owed(&self, account: AccountId) -> ClassMask {
        self.row(account)
            .map_or(ClassMask::NONE, |row| owed_by(self.account(row)))
    }

    /// Tokens that an account owes to classes besides what they earn here.
    pub fn earn(&mut self, account: AccountId, owed: &owed::Tokens) {
        let Some(row) = self.row(account) else {
            return;
        };
        let credits = self.account_mut(row).credit.iter_mut();
        for (credit, tokens) in credits.zip(owed) {
            let earned = i32::try_from(*tokens).unwrap_or(0);
            let earned = earned.saturating_mul(CREDIT_TURN);
            *credit = credit.saturating_add(earned).min(CREDIT_MAX);
        }
    }

    /// The account that a lane's most urgent message would take.
    fn ask(&mut self, col: Col) -> Option<Row> {
        let asks = self.lane(col).asks;
        Class::ALL
            .into_iter()
            .filter(|class| asks.contains(*class))
            .find_map(|class| self.pick_account(col, class, self.lane(col).cost(class)))
    }

    /// The lane and class that an account serves next.
    fn grant(&mut self, row: Row) -> Option<(Col, Class)> {
        let account = self.account(row);
        let classes = account.supply.and(self.demand.present());
        let owed = owed_by(account);
        for mask in [classes.and(owed), classes.minus(owed)] {
            for class in Class::ALL {
                if mask.contains(class)
                    && let Some(col) = self.pick_lane(row, class)
                {
                    return Some((col, class));
                }
            }
        }
        None
    }

    fn pick_account(&mut self, col: Col, class: Class, cost: u32) -> Option<Row> {
        let lane = self.lane(col);
        let mut best: Option<(u64, u32)> = None;
        let mut looks = 0;
        scan(
            self.supply.len_words(),
            lane.cursor,
            |at| {
                let able = self.supply.word(at, class) & lane.bits.able(at, class);
                able & !self.too_small(col, at, cost)
            },
            |at| {
                looks += 1;
                let used = self.last_used.get(at as usize).copied().unwrap_or(0);
                let rank = match self.settings.prefer {
                    Prefer::Even => used,
                    Prefer::Warm => u64::MAX - used,
                };
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

    fn pick_lane(&mut self, row: Row, class: Class) -> Option<Col> {
        let account = self.account(row);
        let mut best: Option<(u64, u32)> = None;
        let mut looks = 0;
        scan(
            self.demand.len_words(),
            account.cursors.get(class.index()).copied().unwrap_or(0),
            |at| self.demand.word(at, class) & account.bits.able(at, class),
            |at| {
                if !self.can_take(row, Col(at), self.lane(Col(at)).cost(class)) {
                    return true;
                }
                looks += 1;
                let rank = self.start_tag(Col(at));
                if best.is_none_or(|(least, _)| rank < least) {
                    best = Some((rank, at));
                }
                looks < LOOKS
            },
        );
        self.work.searches += 1;
        self.work.looks += u64::from(looks);
        best.map(|(_, at)| Col(at))
    }

    /// Where a lane's next send starts in virtual time.
    pub(super) fn start_tag(&self, col: Col) -> u64 {
        let tag = self.tags.get(col.index()).copied().unwrap_or(0);
        tag.max(self.virtual_time.saturating_sub(LAG))
    }

    pub(super) fn set_tag(&mut self, col: Col, tag: u64) {
        if let Some(slot) = self.tags.get_mut(col.index()) {
            *slot = tag;
        }
    }

    fn send(
        &mut self,
        now: Mono,
        row: Row,
        col: Col,
        class: Class,
        cost: u32,
    ) -> Option<SessionId> {
        let account = self.account(row);
        let kind = account.caps.kind;
        let pair = match (account.pair(col.index()), kind) {
            (Some(pair), _) => pair,
            (None, SessionKind::Connections) => return None,
            (None, SessionKind::RelayConnections | SessionKind::Slots) => self.meet(row, col),
        };
        if !self.pair(pair).able.contains(class) {
            return None;
        }
        let no = match kind {
            SessionKind::Connections => self.idle_for(row, col)?,
            SessionKind::RelayConnections => Sessions::last(self.account(row).idle)?,
            SessionKind::Slots => self.sessions.insert(row, pair, now)?,
        };
        self.sessions.at_mut(no).pair = Some(pair);
        self.turn(now, no, State::Busy);
        self.sessions.at_mut(no).used += 1;
        self.charge(row, col, class, cost);
        let keep_warm = self.settings.keep_warm;
        let lane = self.lane_mut(col);
        lane.cursor = row.0 + 1;
        lane.moved_at = now;
        lane.measure(now, keep_warm);
        lane.meter.count();
        self.refresh_pair(pair);
        self.refresh_account(row);
        self.pace_taken(now, col, class);
        self.refresh_lane(col);
        Some(self.sessions.id(no))
    }

    fn charge(&mut self, row: Row, col: Col, class: Class, cost: u32) {
        let start = self.start_tag(col);
        self.set_tag(col, start.saturating_add(u64::from(cost)));
        self.virtual_time = self.virtual_time.max(start);
        self.sequence += 1;
        self.work.sends += 1;
        if let Some(used) = self.last_used.get_mut(row.index()) {
            *used = self.sequence;
        }
        // A class that keeps its distance waits, too.
        let wanting = self.wanting;
        let cost = i32::try_from(cost).unwrap_or(i32::MAX / CREDIT_TURN);
        let price = cost.saturating_mul(CREDIT_TURN);
        let earned = cost.saturating_mul(owed::PERMILLE as i32);
        let account = self.account_mut(row);
        for ((credit, other), wanting) in account.credit.iter_mut().zip(Class::ALL).zip(wanting) {
            if other == class {
                // Only a turn out of order is paid in advance. What went in order,
                // or was earned at another place, makes no debt: a class would
                // have to work that off where it waits next.
                let least = if *credit >= CREDIT_TURN { -price } else { 0 };
                *credit = credit.saturating_sub(price).max(least.min(*credit));
            } else if other > class && wanting > 0 {
                *credit = credit.saturating_add(earned).min(CREDIT_MAX);
            }
        }
    }
}

fn owed_by(account: &Account) -> ClassMask {
    let credits = account.credit.iter().zip(Class::ALL);
    let owed = credits.filter(|(credit, _)| **credit >= CREDIT_TURN);
    owed.fold(ClassMask::NONE, |all, (_, class)| all.with(class))
}

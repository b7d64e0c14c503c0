//! Messages that lack nothing but a session, for those who watch that none is
//! idle beside them.
//!
//! Worked out from what the pool was told, not from the bits that its searches
//! go by.

use crate::class::Class;
use crate::handle::{AccountId, LaneId};

use super::Pool;
use super::lane::Reach;
use super::place::{Col, Row};
use super::settings::{ClassMask, SessionKind};

/// An account that would carry a message if it had a session for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Which.
    pub account: AccountId,
    /// Whether it may open one, as soon as there is room for it, and would:
    /// while as many are on their way as messages wait, one more to the same
    /// far end brings nothing.
    pub may_connect: bool,
}

impl Pool {
    /// All its lanes.
    pub fn lanes(&self) -> impl Iterator<Item = LaneId> {
        let lanes = self.lanes.iter().filter(|lane| !lane.gone);
        lanes.map(|lane| lane.id)
    }

    /// The classes of a lane that wait, and the accounts that would carry their
    /// messages if they had a session.
    pub fn carriers(&self, lane: LaneId) -> (ClassMask, Vec<Carrier>) {
        let Some(col) = self.col(lane) else {
            return (ClassMask::NONE, Vec::new());
        };
        let lane = self.lane(col);
        if lane.held || lane.backlog.is_empty() || lane.waiting == 0 {
            return (ClassMask::NONE, Vec::new());
        }
        let asks = lane.backlog.and(lane.pace.open());
        let mut all = ClassMask::NONE;
        let mut carriers = Vec::new();
        for row in (0..self.accounts.len() as u32).map(Row) {
            let (classes, may_connect) = self.would_carry(row, col, asks);
            if !classes.is_empty() {
                let account = self.account(row).id;
                all = all.or(classes);
                carriers.push(Carrier {
                    account,
                    may_connect,
                });
            }
        }
        (all, carriers)
    }

    fn would_carry(&self, row: Row, col: Col, asks: ClassMask) -> (ClassMask, bool) {
        let (account, lane) = (self.account(row), self.lane(col));
        let kind = account.caps.kind;
        let stops = account.blocked || account.gone || account.next_kind.is_some();
        if stops || !self.serves(row, col) || kind == SessionKind::Slots {
            return (ClassMask::NONE, false);
        }
        let pair = account.pair(col.index()).map(|no| self.pair(no));
        let product = pair.map_or(ClassMask::ALL, |pair| pair.product);
        let is_held = pair.is_some_and(|pair| pair.held);
        let mut classes = account.ready.and(asks).and(product);
        for class in Class::ALL {
            if is_held || !self.can_take(row, col, lane.cost(class)) {
                classes = classes.minus(ClassMask::of(class));
            }
        }
        let counts = pair.map_or_else(Default::default, |pair| pair.counts);
        let there = match (lane.site, kind) {
            (Some(site), _) => account.at_site(site).live,
            (None, SessionKind::RelayConnections) => counts.busy,
            (None, _) => counts.live(),
        };
        let most = account.caps.per_destination;
        let far_end = match (account.is_relay(), pair) {
            (true, _) => Some(&account.far_end),
            (false, pair) => pair.map(|pair| &pair.far_end),
        };
        let backs_off = far_end.is_some_and(|it| it.backoff_until.is_some());
        let may_connect = account.room && !backs_off;
        if account.is_relay() {
            return match there < most {
                true => (classes, may_connect),
                false => (ClassMask::NONE, false),
            };
        }
        let most = most.min(far_end.map_or(u32::MAX, |it| it.cap));
        let is_reached = lane.reach == Reach::Open && lane.waiting > lane.coming();
        (classes, may_connect && is_reached && there < most)
    }
}

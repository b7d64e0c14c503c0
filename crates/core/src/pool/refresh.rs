//! Bits follow state: what the gates see of an account, a lane, a pair.
//!
//! Each function compares what is with what the bits say and, where a bit
//! appears that could complete a match, marks the row or column. Where the
//! other side has no bit at all, nothing is marked: its first bit will be.

use crate::class::Class;
use crate::handle::{AccountId, LaneId};
use crate::time::Mono;

use super::Pool;
use super::account::SiteSessions;
use super::lane::Rich;
use super::pair::{Opens, Pair};
use super::place::{Col, PairNo, Row};
use super::settings::{ClassMask, SessionKind};

impl Pool {
    /// Says for which classes every limit of the account has a token.
    pub fn set_ready(&mut self, account: AccountId, ready: ClassMask) {
        let Some(row) = self.row(account) else { return };
        let account = self.account_mut(row);
        if account.ready != ready {
            account.ready = ready;
            self.refresh_account(row);
        }
    }

    /// Says for which classes the limits of account x destination are open.
    pub fn set_product_open(&mut self, account: AccountId, lane: LaneId, open: ClassMask) {
        let (Some(row), Some(col)) = (self.row(account), self.col(lane)) else {
            return;
        };
        if open == ClassMask::ALL && self.account(row).pair(col.index()).is_none() {
            return;
        }
        let no = self.meet(row, col);
        let pair = self.pair_mut(no);
        if pair.product != open {
            pair.product = open;
            self.refresh_pair(no);
        }
    }

    /// Holds an account at a destination, or lets it go.
    pub fn hold_pair(&mut self, account: AccountId, lane: LaneId, held: bool) {
        let (Some(row), Some(col)) = (self.row(account), self.col(lane)) else {
            return;
        };
        if !held && self.account(row).pair(col.index()).is_none() {
            return;
        }
        let no = self.meet(row, col);
        self.pair_mut(no).held = held;
        self.refresh_pair(no);
    }

    /// Says whether the connection-rate limits of the account allow one more
    /// opening.
    pub fn set_room(&mut self, account: AccountId, room: bool) {
        let Some(row) = self.row(account) else { return };
        let account = self.account_mut(row);
        if account.room != room {
            account.room = room;
            self.refresh_account(row);
        }
    }

    /// Blocks an account: it neither sends nor opens.
    pub fn block_account(&mut self, account: AccountId) {
        self.set_blocked(account, true);
    }

    /// Ends a block.
    pub fn unblock_account(&mut self, account: AccountId) {
        self.set_blocked(account, false);
    }

    fn set_blocked(&mut self, account: AccountId, blocked: bool) {
        let Some(row) = self.row(account) else { return };
        self.account_mut(row).blocked = blocked;
        self.refresh_account(row);
    }

    /// Holds a lane that is paused or broken, or lets it go.
    pub fn hold_lane(&mut self, lane: LaneId, held: bool) {
        let Some(col) = self.col(lane) else { return };
        self.lane_mut(col).held = held;
        self.refresh_lane(col);
    }

    /// Says which classes of a lane have a message that could go now, and how
    /// many wait in all.
    pub fn set_backlog(&mut self, lane: LaneId, classes: ClassMask, waiting: u32) {
        let Some(col) = self.col(lane) else { return };
        let lane = self.lane_mut(col);
        if lane.backlog != classes || lane.waiting != waiting {
            lane.backlog = classes;
            lane.waiting = waiting;
            self.refresh_lane(col);
        }
    }

    pub(super) fn refresh_account(&mut self, row: Row) {
        let account = self
            .accounts
            .get_mut(row.index())
            .expect("a row is an account");
        let supply = account.supply_now();
        let before = std::mem::replace(&mut account.supply, supply);
        let slots = account.is_slots();
        if supply != before {
            self.supply.flip(row.0, supply.differing(before));
            let gained = supply.minus(before);
            if !gained.and(self.demand.present()).is_empty() {
                self.sending.mark_row(row);
            }
        }
        if slots {
            return;
        }
        let account = self
            .accounts
            .get_mut(row.index())
            .expect("a row is an account");
        let (room, full) = (account.has_room(), account.is_full());
        let hungry = room && account.is_hungry();
        let at_cap = account.at_cap();
        let was_at_cap = std::mem::replace(&mut account.was_at_cap, at_cap);
        let cap_gained = at_cap && !was_at_cap;
        let take_is_timed = account.take_at != Mono::NEVER;
        let room_gained = self.room.set(row.0, room) && room;
        let hungry_gained = self.hungry.set(row.0, hungry) && hungry;
        let full_gained = self.full.set(row.0, full) && full;
        // Between two messages of one lane nothing is gained by a look.
        let may_take = full_gained && (cap_gained || !take_is_timed || !self.urgent.is_empty());
        let seekers = match self.relays.contains(row.0) {
            true => &self.waiting,
            false => &self.short,
        };
        let is_sought = (room_gained || hungry_gained || may_take) && !seekers.is_empty();
        if is_sought || (may_take && !self.rich.is_empty()) {
            self.connecting.mark_row(row);
        }
    }

    pub(super) fn refresh_lane(&mut self, col: Col) {
        let lane = self.lanes.get_mut(col.index()).expect("a column is a lane");
        let demand = lane.demand_now();
        let before = std::mem::replace(&mut lane.demand, demand);
        if demand != before {
            for (count, class) in self.wanting.iter_mut().zip(Class::ALL) {
                *count += u32::from(demand.contains(class));
                *count -= u32::from(before.contains(class));
            }
        }
        let asks = lane.asks_now();
        let asked = std::mem::replace(&mut lane.asks, asks);
        let wants = lane.wants_session();
        if !wants {
            lane.rich = Rich::No;
        }
        let stands_back = wants && matches!(lane.rich, Rich::Until(_));
        let short = wants && !stands_back;
        self.rich.set(col.0, stands_back);
        let urgent = short && lane.is_urgent();
        let waiting = lane.waits_for_session();
        let spares = !before.is_empty() && demand.is_empty() && lane.counts.idle > 0;
        if asks != asked {
            self.demand.flip(col.0, asks.differing(asked));
            let gained = asks.minus(asked);
            if !gained.and(self.supply.present()).is_empty() {
                self.sending.mark_col(col);
            }
        }
        let short_gained = self.short.set(col.0, short) && short;
        let urgent_gained = self.urgent.set(col.0, urgent) && urgent;
        let waiting_gained = self.waiting.set(col.0, waiting) && waiting;
        let may_open = !self.room.is_empty() || !self.full.is_empty();
        let demand_gained = before.is_empty() && !demand.is_empty();
        let waits_gained = short && demand_gained;
        let gained = short_gained || urgent_gained || waits_gained || waiting_gained;
        if gained && may_open {
            self.connecting.mark_col(col);
        }
        if spares {
            self.offer_idle(col);
        }
        if waiting_gained {
            self.began_to_wait.push(col);
        }
    }

    pub(super) fn refresh_pair(&mut self, no: PairNo) {
        let Pair { row, col, .. } = *self.pair(no);
        let barred = self.pair(no).held || !self.serves(row, col);
        let site = self.lane(col).site;
        let pair = self
            .pairs
            .get_mut(no.0 as usize)
            .expect("a pair is in the slab");
        let account = self
            .accounts
            .get_mut(row.index())
            .expect("a row is an account");
        let cap = account.caps.per_destination.min(pair.far_end.cap);
        let (may_open, carries, opens) = match account.caps.kind {
            SessionKind::Connections => {
                let own = SiteSessions {
                    live: pair.counts.live(),
                    idle: pair.counts.idle,
                };
                let at = site.map_or(own, |site| account.at_site(site));
                let (below_cap, idle) = (at.live < cap, at.idle > 0);
                let first = pair.counts.serving() == 0;
                let opens = if first { Opens::First } else { Opens::More };
                (below_cap && !idle, idle, opens)
            }
            SessionKind::RelayConnections => {
                let busy = site.map_or(pair.counts.busy, |site| account.at_site(site).live);
                let below_cap = busy.saturating_add(pair.counts.opening) < cap;
                (below_cap, busy < cap, Opens::First)
            }
            SessionKind::Slots => {
                let live = site.map_or(pair.counts.live(), |site| account.at_site(site).live);
                (false, live < cap, Opens::No)
            }
        };
        let able = if carries && !barred {
            pair.product
        } else {
            ClassMask::NONE
        };
        let shut = barred || pair.product.is_empty() || pair.far_end.backoff_until.is_some();
        let opens = if shut || !may_open { Opens::No } else { opens };
        if (able, opens) == (pair.able, pair.opens) {
            return;
        }
        let lane = self.lanes.get_mut(col.index()).expect("a column is a lane");
        let gained = able.minus(pair.able);
        let opens_gained = opens != Opens::No && opens != pair.opens;
        (pair.able, pair.opens) = (able, opens);
        account.bits.put(col.0, able, opens);
        lane.bits.put(row.0, able, opens);
        if !gained.and(account.supply).and(lane.asks).is_empty() {
            self.sending.mark_row(row);
        }
        let seeks = match self.relays.contains(row.0) {
            true => self.waiting.contains(col.0),
            false => self.short.contains(col.0) || self.rich.contains(col.0),
        };
        if opens_gained && seeks {
            let is_new = opens == Opens::First || account.take_at == Mono::NEVER;
            let may_take = self.full.contains(row.0) && (is_new || self.urgent.contains(col.0));
            if self.room.contains(row.0) || may_take {
                self.connecting.mark_row(row);
            }
        }
    }
}

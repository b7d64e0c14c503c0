//! Who serves whom: accounts kept for one tenant, and the lanes of one
//! destination.
//!
//! An account may be kept for a tenant. A tenant that has such accounts has
//! lanes of its own, one beside the shared lane of each destination: there its
//! own accounts and the shared ones serve it, and nobody else's. All messages of
//! a lane thus find the same accounts, and no search looks into flows.
//!
//! Lanes of one destination are a *site*: the cap on an account's sessions to
//! one destination counts them together, and a session that is idle carries the
//! next message of any of them, since the same host takes the mail of all. It
//! stays that lane's which used it last.

use super::Pool;
use super::account::SiteSessions;
use super::lane::Lane;
use super::pair::{Opens, Pair};
use super::place::{Col, Row};
use super::session::{Chain, SessionNo, Sessions};
use super::settings::ClassMask;
use crate::free_numbers::FreeNumbers;
use crate::handle::{AccountId, LaneId};

impl Pool {
    /// Adds a lane of a tenant that has accounts of its own, or the shared one,
    /// to a destination that has lanes already: `beside` is one of them.
    pub fn add_lane_beside(&mut self, id: LaneId, tenant: Option<u32>, beside: Option<LaneId>) {
        if self.col(id).is_some() {
            return;
        }
        let mut lane = Lane::new(id, &self.settings);
        lane.tenant = tenant;
        let col = self.insert_lane(lane);
        if let Some(other) = beside.and_then(|other| self.col(other)) {
            self.join_site(col, other);
        }
    }

    /// Keeps an account for one tenant, or for none.
    pub fn keep_for(&mut self, account: AccountId, tenant: Option<u32>) {
        let Some(row) = self.row(account) else { return };
        if self.account(row).tenant == tenant {
            return;
        }
        self.account_mut(row).tenant = tenant;
        for col in (0..self.lanes.len() as u32).map(Col) {
            match self.account(row).pair(col.index()) {
                Some(pair) => self.refresh_pair(pair),
                None => {
                    let (able, opens) = self.unmet(row, col);
                    self.put_bits(row, col, able, opens);
                }
            }
        }
        self.mark_row(row);
    }

    /// Whether an account may carry messages of a lane.
    pub(super) fn serves(&self, row: Row, col: Col) -> bool {
        let only = self.account(row).tenant;
        only.is_none() || only == self.lane(col).tenant
    }

    /// What an account and a lane that never met can do.
    pub(super) fn unmet(&self, row: Row, col: Col) -> (ClassMask, Opens) {
        if !self.serves(row, col) {
            return (ClassMask::NONE, Opens::No);
        }
        let kind = self.account(row).caps.kind;
        (Pair::able_unmet(kind), Opens::unmet(kind))
    }

    /// Sets the bits of an account and a lane one of which is new.
    pub(super) fn put_unmet(&mut self, row: Row, col: Col) {
        let (able, opens) = self.unmet(row, col);
        self.put_bits(row, col, able, opens);
        if self.lane(col).site.is_some() && !self.account(row).gone {
            self.meet(row, col);
        }
    }

    /// Has two lanes share the cap per destination. Their pairs all exist from
    /// then on, since each may be at the cap without a session of its own.
    fn join_site(&mut self, col: Col, other: Col) {
        let known = self.lane(other).site;
        let site = known.unwrap_or_else(|| self.add_site(other));
        if let Some(members) = self.sites.get_mut(site as usize) {
            members.push(col);
        }
        let fresh = self.lane_mut(other).site.replace(site).is_none();
        self.lane_mut(col).site = Some(site);
        for row in (0..self.accounts.len() as u32).map(Row) {
            if fresh {
                let met = self.account(row).pair(other.index());
                let counts = met.map(|pair| self.pair(pair).counts).unwrap_or_default();
                let live = match self.account(row).is_relay() {
                    true => counts.busy,
                    false => counts.live(),
                };
                let idle = counts.idle;
                let sessions = SiteSessions { live, idle };
                self.account_mut(row).set_at_site(site, sessions);
            }
            if self.account(row).gone {
                continue;
            }
            for col in [col, other] {
                let pair = self.meet(row, col);
                self.refresh_pair(pair);
            }
        }
    }

    /// A site with one lane.
    fn add_site(&mut self, first: Col) -> u32 {
        let end = self.sites.len();
        let site = self.free_sites.take(end).unwrap_or(end as u32);
        match self.sites.get_mut(site as usize) {
            Some(members) => members.push(first),
            None => self.sites.push(vec![first]),
        }
        site
    }

    /// Whether the sessions of one lane carry messages of the other.
    pub(super) fn is_same_site(&self, col: Col, other: Col) -> bool {
        let site = self.lane(col).site;
        col == other || site.is_some() && site == self.lane(other).site
    }

    /// The lanes of the same destination, without the lane itself.
    pub(super) fn others_of_site(&self, col: Col) -> impl Iterator<Item = Col> {
        let site = self.lane(col).site;
        let members = site.and_then(|site| self.sites.get(site as usize));
        let others = members.into_iter().flatten().copied();
        others.filter(move |other| *other != col)
    }

    /// An idle session for a lane that sends through an account: one of its own,
    /// else one that another lane of its destination used last, best one that has
    /// no message for it.
    pub(super) fn idle_for(&mut self, row: Row, col: Col) -> Option<SessionNo> {
        let account = self.account(row);
        let last_idle = |col: Col| {
            let pair = account.pair(col.index())?;
            Sessions::last(self.pair(pair).idle)
        };
        if let Some(own) = last_idle(col) {
            return Some(own);
        }
        let mut givers = self
            .others_of_site(col)
            .filter(|other| last_idle(*other).is_some());
        let first = givers.next()?;
        let is_spare = |other: &Col| self.lane(*other).demand.is_empty();
        let spare = std::iter::once(first).chain(givers).find(is_spare);
        self.hand_over(row, spare.unwrap_or(first), col)
    }

    /// Moves an idle session from one lane of a destination to another.
    fn hand_over(&mut self, row: Row, from: Col, to: Col) -> Option<SessionNo> {
        let account = self.account(row);
        let (giver, taker) = (account.pair(from.index())?, account.pair(to.index())?);
        let no = Sessions::last(self.pair(giver).idle)?;
        let mut idle = self.pair(giver).idle;
        self.sessions.unlink(&mut idle, Chain::Pair, no);
        self.pair_mut(giver).idle = idle;
        self.pair_mut(giver).counts.idle -= 1;
        self.lane_mut(from).counts.idle -= 1;
        self.lane_mut(from).bound -= 1;
        let mut idle = self.pair(taker).idle;
        self.sessions.push(&mut idle, Chain::Pair, no);
        self.pair_mut(taker).idle = idle;
        self.pair_mut(taker).counts.idle += 1;
        self.lane_mut(to).counts.idle += 1;
        self.lane_mut(to).bound += 1;
        self.sessions.at_mut(no).pair = Some(taker);
        self.refresh_pair(giver);
        self.refresh_pair(taker);
        self.refresh_lane(from);
        self.refresh_lane(to);
        self.free_col_if_done(from);
        Some(no)
    }

    /// A lane is gone for good.
    pub(super) fn leave_site(&mut self, col: Col) {
        if let Some(site) = self.lane_mut(col).site.take()
            && let Some(members) = self.sites.get_mut(site as usize)
        {
            members.retain(|member| *member != col);
            if members.is_empty() {
                self.free_sites.give(site);
                FreeNumbers::cut(&mut self.sites, 0, Vec::is_empty);
            }
        }
    }

    /// An account came to the cap of a site, or below it, or has a session idle
    /// there, or none any more: the other lanes of the site may open no more
    /// there, or may again, or can send.
    pub(super) fn refresh_site(&mut self, row: Row, col: Col) {
        let Some(site) = self.lane(col).site else {
            return;
        };
        for at in 0.. {
            let members = self.sites.get(site as usize);
            let Some(&member) = members.and_then(|members| members.get(at)) else {
                return;
            };
            if let Some(pair) = self.account(row).pair(member.index())
                && member != col
            {
                self.refresh_pair(pair);
            }
        }
    }
}

//! Who serves whom: accounts kept for one tenant, and the lanes of one
//! destination.
//!
//! An account may be kept for a tenant. A tenant that has such accounts has
//! lanes of its own, one beside the shared lane of each destination: there its
//! own accounts and the shared ones serve it, and nobody else's. All messages of
//! a lane thus find the same accounts, and no search looks into flows.
//!
//! Lanes of one destination are a *site*: the cap on an account's sessions to
//! one destination counts them together. Sessions belong to their lane; at the
//! cap one lane takes them from another as lanes of different destinations do.

use super::Pool;
use super::lane::Lane;
use super::pair::{Opens, Pair};
use super::place::{Col, Row};
use super::settings::ClassMask;
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
        let slots = self.account(row).is_slots();
        (Pair::able_unmet(slots), Opens::unmet(slots))
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
        let site = self.lane(other).site.unwrap_or_else(|| {
            self.sites.push(vec![other]);
            self.sites.len() as u32 - 1
        });
        if let Some(members) = self.sites.get_mut(site as usize) {
            members.push(col);
        }
        let fresh = self.lane_mut(other).site.replace(site).is_none();
        self.lane_mut(col).site = Some(site);
        for row in (0..self.accounts.len() as u32).map(Row) {
            if fresh && let Some(pair) = self.account(row).pair(other.index()) {
                let live = self.pair(pair).counts.live();
                self.account_mut(row).set_site_live(site, live);
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

    /// A lane is gone for good.
    pub(super) fn leave_site(&mut self, col: Col) {
        if let Some(site) = self.lane_mut(col).site.take()
            && let Some(members) = self.sites.get_mut(site as usize)
        {
            members.retain(|member| *member != col);
        }
    }

    /// An account came to the cap of a site, or below it: the other lanes of
    /// the site may open no more there, or may again.
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

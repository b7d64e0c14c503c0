//! How large a message each account can take at all.
//!
//! An account whose burst is smaller than a cost must neither be chosen for it
//! nor keep those from being chosen that can take it. Most accounts take
//! everything; those that do not stand in tiers, one per size, each with the
//! accounts that are too small for anything larger. So a search excludes them
//! by words of 64 bits, like everything else here.

use std::collections::BTreeMap;

use super::Pool;
use super::bits::Bits;
use super::place::{Col, Row};
use crate::class::Class;
use crate::handle::{AccountId, LaneId};

/// One size and the rows that can take no more.
#[derive(Clone, Debug)]
struct Tier {
    size: u32,
    /// Rows of exactly this size.
    own: u32,
    /// Rows of this size or a smaller one.
    rows: Bits,
}

/// The largest cost that each row can take, where there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    largest: BTreeMap<Row, u32>,
    /// By size, smallest first.
    tiers: Vec<Tier>,
}

impl Sizes {
    /// The largest cost that a row can take.
    pub fn of(&self, row: Row) -> u32 {
        self.largest.get(&row).copied().unwrap_or(u32::MAX)
    }

    /// Sets the largest cost that a row can take; what it was.
    pub fn set(&mut self, row: Row, largest: u32) -> u32 {
        let before = self.largest.remove(&row).unwrap_or(u32::MAX);
        if largest < u32::MAX {
            self.largest.insert(row, largest);
        }
        if before != largest {
            self.leave(row, before);
            self.join(row, largest);
        }
        before
    }

    fn leave(&mut self, row: Row, size: u32) {
        for tier in self.tiers.iter_mut().filter(|tier| tier.size >= size) {
            tier.rows.set(row.0, false);
            tier.own -= u32::from(tier.size == size);
        }
        self.tiers.retain(|tier| tier.own > 0);
    }

    fn join(&mut self, row: Row, size: u32) {
        if size == u32::MAX {
            return;
        }
        let at = self.tiers.partition_point(|tier| tier.size < size);
        if self.tiers.get(at).is_none_or(|tier| tier.size != size) {
            let smaller = at.checked_sub(1).and_then(|last| self.tiers.get(last));
            let rows = smaller.map_or_else(Bits::default, |tier| tier.rows.clone());
            self.tiers.insert(at, Tier { size, own: 0, rows });
        }
        for tier in self.tiers.iter_mut().skip(at) {
            tier.rows.grow(row.index() + 1);
            tier.rows.set(row.0, true);
            tier.own += u32::from(tier.size == size);
        }
    }

    /// The rows of a word that are too small for this cost.
    pub fn too_small(&self, at: usize, cost: u32) -> u64 {
        let smaller = self.tiers.partition_point(|tier| tier.size < cost);
        let tier = smaller.checked_sub(1).and_then(|last| self.tiers.get(last));
        tier.map_or(0, |tier| tier.rows.word(at))
    }
}

impl Pool {
    /// Says what the largest cost is that an account's limits can ever take.
    pub fn set_largest(&mut self, account: AccountId, largest: u32) {
        let Some(row) = self.row(account) else { return };
        if self.sizes.set(row, largest) < largest {
            self.mark_row(row);
        }
    }

    /// Says the same of the limits of an account at a destination.
    pub fn set_pair_largest(&mut self, account: AccountId, lane: LaneId, largest: u32) {
        let (Some(row), Some(col)) = (self.row(account), self.col(lane)) else {
            return;
        };
        if self.lane_mut(col).sizes.set(row, largest) < largest {
            self.mark_row(row);
        }
    }

    /// Says what the next messages of a lane cost, by class; 0 where none
    /// waits.
    pub fn set_costs(&mut self, lane: LaneId, costs: [u32; Class::COUNT]) {
        let Some(col) = self.col(lane) else { return };
        let lane = self.lane_mut(col);
        let before = std::mem::replace(&mut lane.costs, costs);
        if before.iter().zip(&costs).any(|(old, new)| new < old) {
            self.sending.mark_col(col);
            self.connecting.mark_col(col);
        }
    }

    pub(super) fn mark_row(&mut self, row: Row) {
        self.sending.mark_row(row);
        self.connecting.mark_row(row);
    }

    /// The accounts of a word that are too small for a message of a lane.
    pub(super) fn too_small(&self, col: Col, at: usize, cost: u32) -> u64 {
        if cost <= 1 {
            return 0;
        }
        self.sizes.too_small(at, cost) | self.lane(col).sizes.too_small(at, cost)
    }

    /// Whether an account can ever take a message of this cost of a lane.
    pub(super) fn can_take(&self, row: Row, col: Col, cost: u32) -> bool {
        cost <= 1 || cost <= self.sizes.of(row) && cost <= self.lane(col).sizes.of(row)
    }
}

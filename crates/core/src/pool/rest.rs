//! What would be lost with a lane that nobody uses, and the places that become
//! free with it.

use super::Pool;
use super::lane::Reach;
use super::place::Col;
use crate::free_numbers::FreeNumbers;
use crate::handle::LaneId;

/// What a pool knows of a lane without a backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaneRest {
    /// Nothing that a new lane would not know.
    Nothing,
    /// That connects failed, and when the next may be tried.
    Failures,
    /// How many sessions its far end welcomes, or messages on each.
    Welcome,
    /// It has sessions.
    Sessions,
}

impl Pool {
    /// What would be lost with a lane.
    pub fn lane_rest(&self, id: LaneId) -> LaneRest {
        let Some(col) = self.col(id) else {
            return LaneRest::Nothing;
        };
        let lane = self.lane(col);
        if lane.counts.live() + lane.promised > 0 {
            return LaneRest::Sessions;
        }
        let of_lane = match (lane.reach, lane.failures) {
            (Reach::Open, 0) => LaneRest::Nothing,
            _ => LaneRest::Failures,
        };
        let met = self.accounts.iter();
        let met = met.filter_map(|account| Some(self.pair(account.pair(col.index())?)));
        let of_pairs = met.map(
            |pair| match (&pair.far_end.welcome, pair.far_end.backoff_until) {
                (Some(_), _) => LaneRest::Welcome,
                (None, None) if pair.far_end.failures == 0 => LaneRest::Nothing,
                (None, _) => LaneRest::Failures,
            },
        );
        of_pairs.max().unwrap_or(LaneRest::Nothing).max(of_lane)
    }

    /// The column of a removed lane can be another's.
    pub(super) fn free_col(&mut self, col: Col) {
        let lane = self.lane_mut(col);
        lane.bits = super::PairBits::default();
        lane.sizes = super::Sizes::default();
        lane.is_freed = true;
        self.lanes_used -= 1;
        self.free_cols.give(col.0);
    }

    /// Gives the memory of free columns and pairs back, after a peak. Only when
    /// nothing else is under way: what is may name a column that became free.
    pub(super) fn cut(&mut self) {
        let marks = [&self.sending, &self.connecting];
        let is_named = |col: Col| marks.iter().any(|marks| marks.has_col(col));
        let mut end = self.lanes.len();
        while let Some(before) = end.checked_sub(1)
            && self.lanes.get(before).is_some_and(|lane| lane.is_freed)
            && !is_named(Col(before as u32))
        {
            end = before;
        }
        FreeNumbers::cut(&mut self.lanes, end, |lane| lane.is_freed);
        let tags_end = self.lanes.len();
        self.tags.truncate(tags_end);
        FreeNumbers::cut(&mut self.pairs, 0, |pair| pair.is_free);
    }

    /// Places that are kept for lanes, pairs and destinations, in use or not.
    pub fn places_kept(&self) -> usize {
        let places = [self.lanes.len(), self.pairs.len(), self.sites.len()];
        places.into_iter().max().unwrap_or(0)
    }
}

//! What is known of accounts at lanes, found without a name.

use crate::free_numbers::FreeNumbers;
use crate::handle::{AccountId, LaneId};

/// What is known of pairs: by lane, then in order of accounts.
#[derive(Debug)]
pub(super) struct ByPair<T> {
    lanes: Vec<Vec<(AccountId, T)>>,
    len: usize,
}

impl<T> Default for ByPair<T> {
    fn default() -> Self {
        let lanes = Vec::new();
        Self { lanes, len: 0 }
    }
}

impl<T> ByPair<T> {
    pub fn get(&self, account: AccountId, lane: LaneId) -> Option<&T> {
        let row = self.lanes.get(lane.index())?;
        let at = row.binary_search_by_key(&account, |(id, _)| *id).ok()?;
        row.get(at).map(|(_, known)| known)
    }

    pub fn insert(&mut self, account: AccountId, lane: LaneId, known: T) {
        if self.lanes.len() <= lane.index() {
            self.lanes.resize_with(lane.index() + 1, Vec::new);
        }
        let Some(row) = self.lanes.get_mut(lane.index()) else {
            return;
        };
        match row.binary_search_by_key(&account, |(id, _)| *id) {
            Ok(at) => {
                if let Some((_, old)) = row.get_mut(at) {
                    *old = known;
                }
            }
            Err(at) => {
                row.insert(at, (account, known));
                self.len += 1;
            }
        }
    }

    /// Forgets what is known of a lane.
    pub fn remove_lane(&mut self, lane: LaneId) {
        if let Some(row) = self.lanes.get_mut(lane.index()) {
            self.len -= row.len();
            *row = Vec::new();
            FreeNumbers::cut(&mut self.lanes, 0, Vec::is_empty);
        }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    pub fn clear(&mut self) {
        self.lanes.clear();
        self.len = 0;
    }
}

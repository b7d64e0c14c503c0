//! What the limits of accounts hold up at the gates of their pools.

use super::super::holdups::{AtGates, ByClass};
use super::Desk;
use crate::handle::{AccountId, LaneId, PoolId};
use crate::pool::{Carrier, ClassMask};

impl Desk {
    /// So many heads came to a lane's gate since this was last told, and so
    /// many stand there.
    pub(in crate::engine) fn tell_gate(&mut self, id: LaneId, came: &ByClass, standing: &ByClass) {
        let Some(lane) = self.lane_mut(id) else {
            return;
        };
        let before = std::mem::replace(&mut lane.standing, *standing);
        let pool = lane.pool;
        if let Some(gates) = self.at_gates.get_mut(pool.index()) {
            gates.tell(came, &before, standing);
        }
    }

    /// The limits of an account are open for these classes.
    pub(super) fn note_open(&mut self, id: AccountId, open: ClassMask) {
        let Some(account) = self.accounts.get_mut(id.index()).and_then(Option::as_mut) else {
            return;
        };
        if let Some(gates) = self.at_gates.get(account.pool.index())
            && account.holdups.set_open(open, gates)
        {
            self.newly_shut.push(id);
        }
    }

    /// All gates were told of: accounts that shut meanwhile begin to count.
    pub(in crate::engine) fn begin_holdups(&mut self) {
        while let Some(id) = self.newly_shut.pop() {
            let account = self.accounts.get_mut(id.index()).and_then(Option::as_mut);
            if let Some(account) = account
                && let Some(gates) = self.at_gates.get(account.pool.index())
            {
                account.holdups.begin(gates);
            }
        }
    }

    /// Classes for which the limits of an account are shut, and how many heads
    /// they held up so far.
    pub(in crate::engine) fn holdups(&self, id: AccountId) -> (ClassMask, u64) {
        let Some(account) = self.account(id) else {
            return (ClassMask::NONE, 0);
        };
        let gates = self.gates_of(account.pool);
        (account.holdups.shut(), account.holdups.held(&gates))
    }

    /// The lanes at which messages lack a session, the classes of these, and the
    /// accounts that would carry them.
    pub(in crate::engine) fn carriers(
        &self,
    ) -> impl Iterator<Item = (LaneId, ClassMask, Vec<Carrier>)> {
        let pools = self.pools.iter().map(|side| &side.pool);
        let lanes = pools.flat_map(|pool| pool.lanes().map(move |lane| (pool, lane)));
        lanes.filter_map(|(pool, lane)| {
            let (classes, carriers) = pool.carriers(lane);
            (!carriers.is_empty()).then_some((lane, classes, carriers))
        })
    }

    fn gates_of(&self, pool: PoolId) -> AtGates {
        self.at_gates.get(pool.index()).copied().unwrap_or_default()
    }
}

//! Lanes come with their first flow and go when nothing is in them.
//!
//! A lane stays for as long as it has flows, deliveries under way or sessions,
//! and for a while if something is known of an account there: a breaker that is
//! not closed, connects that failed, how many sessions are welcome. What limits
//! of accounts at the destination have counted stands under their keys and stays
//! without the lane; pauses are matched anew when it comes back.

use std::sync::Arc;

use super::super::account_limits::Owner;
use super::super::limits::Maker;
use super::{ByClass, Desk, Lane};
use crate::destination::Destination;
use crate::flow::FlowKey;
use crate::free_numbers::FreeNumbers;
use crate::handle::{AccountId, LaneId, PlaceId, PoolId};
use crate::name::Name;
use crate::policy::set::Policies;
use crate::pool::rest::LaneRest;
use crate::time::{Mono, Nanos, Now};

/// That connects failed is remembered of a lane that nobody uses for this long.
const FAILURES_KEPT: Nanos = Nanos::from_secs(600);
/// What its far end was found to welcome, for this long.
const WELCOME_KEPT: Nanos = Nanos::from_secs(24 * 3_600);

impl Desk {
    /// The lane of a flow, if it is there already.
    pub(in crate::engine) fn find_lane(&self, pool: PoolId, key: &FlowKey) -> Option<LaneId> {
        let tenant = self.lane_tenant(pool, key);
        let key = (pool, key.destination.clone(), tenant);
        self.lane_keys.get(&key).copied()
    }

    /// The tenant whose lane a flow is in: its own, if accounts are kept for it.
    fn lane_tenant(&self, pool: PoolId, key: &FlowKey) -> Option<Name> {
        let dedicated = &self.pools.get(pool.index())?.dedicated;
        dedicated
            .contains_key(&key.tenant)
            .then(|| key.tenant.clone())
    }

    pub(super) fn tenant_number(&mut self, name: &Name) -> u32 {
        let next = u32::try_from(self.tenants.len()).expect("fewer than 2^32 tenants");
        *self.tenants.entry(name.clone()).or_insert(next)
    }

    /// A number for a new lane.
    pub(in crate::engine) fn next_lane(&mut self) -> LaneId {
        let end = self.lanes.len();
        let number = self.free_lanes.take(end);
        LaneId(number.unwrap_or_else(|| u32::try_from(end).expect("fewer than 2^32 lanes")))
    }

    /// Adds a lane with its number and gate.
    pub(in crate::engine) fn add_lane(
        &mut self,
        now: &Now,
        key: &Arc<FlowKey>,
        pool: PoolId,
        (id, gate): (LaneId, PlaceId),
        policies: &Policies,
        maker: &mut Maker,
    ) {
        let destination = key.destination.clone();
        let tenant = self.lane_tenant(pool, key);
        let first = (pool, destination.clone(), None);
        let beside = self.lane_keys.range(first..).next();
        let beside = beside.filter(|((of, to, _), _)| *of == pool && *to == destination);
        let beside = beside.map(|(_, lane)| *lane);
        let number = tenant.as_ref().map(|name| self.tenant_number(name));
        self.lane_keys
            .insert((pool, destination.clone(), tenant.clone()), id);
        if self.lanes.len() <= id.index() {
            self.lanes.resize_with(id.index() + 1, || None);
        }
        let at = self.side(pool).lanes.len() as u32;
        if let Some(slot) = self.lanes.get_mut(id.index()) {
            *slot = Some(Lane {
                pool,
                destination,
                gate,
                facts: Arc::clone(key),
                tenant,
                at,
                flows: 0,
                in_flight: 0,
                is_listed: false,
                idle_since: Mono(0),
                standing: ByClass::default(),
                sent: 0,
                heaviest: 0,
                largest: None,
            });
        }
        self.pool_mut(pool).add_lane_beside(id, number, beside);
        let side = self.side_mut(pool);
        side.lanes.push(id);
        if policies.has_pairs() {
            let accounts: Vec<AccountId> = side.accounts.iter().copied().collect();
            for account in accounts {
                self.relimit_pair(now, account, id, policies, maker);
            }
        }
    }

    pub(in crate::engine) fn lane(&self, id: LaneId) -> &Lane {
        let lane = self.lanes.get(id.index()).and_then(Option::as_ref);
        lane.expect("a lane of this desk")
    }

    pub(super) fn lane_mut(&mut self, id: LaneId) -> Option<&mut Lane> {
        self.lanes.get_mut(id.index()).and_then(Option::as_mut)
    }

    /// The lanes of a pool to a destination: the shared one, and those of
    /// tenants.
    pub(in crate::engine) fn lanes_to(
        &self,
        pool: PoolId,
        to: &Destination,
    ) -> impl Iterator<Item = LaneId> {
        let lanes = self.lane_keys.range((pool, to.clone(), None)..);
        let lanes = lanes.take_while(move |((of, at, _), _)| *of == pool && at == to);
        lanes.map(|(_, lane)| *lane)
    }

    /// All lanes with their numbers.
    pub(in crate::engine) fn lanes(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        let lanes = (0..).map(LaneId).zip(&self.lanes);
        lanes.filter_map(|(id, lane)| Some((id, lane.as_ref()?)))
    }

    /// The lane with a number, if there is one.
    pub(in crate::engine) fn lane_numbered(&self, number: usize) -> Option<&Lane> {
        self.lanes.get(number).and_then(Option::as_ref)
    }

    /// One more than the highest number of a lane.
    pub(in crate::engine) fn lanes_end(&self) -> usize {
        self.lanes.len()
    }

    /// How many lanes there are.
    pub(in crate::engine) fn lanes_known(&self) -> usize {
        self.lane_keys.len()
    }

    /// A lane has one flow more.
    pub(in crate::engine) fn join_lane(&mut self, id: LaneId) {
        if let Some(lane) = self.lane_mut(id) {
            lane.flows += 1;
        }
    }

    /// A lane has one flow less.
    pub(in crate::engine) fn leave_lane(&mut self, now: Mono, id: LaneId) {
        if let Some(lane) = self.lane_mut(id) {
            lane.flows -= 1;
            lane.idle_since = now;
            if lane.flows == 0 && !std::mem::replace(&mut lane.is_listed, true) {
                self.idle_lanes.push_back(id);
            }
        }
    }

    /// A delivery in a lane is over.
    pub(in crate::engine) fn delivered_in(&mut self, id: LaneId) {
        if let Some(lane) = self.lane_mut(id) {
            lane.in_flight -= 1;
        }
    }

    /// Lanes that nobody uses and that are not gone yet.
    pub(in crate::engine) fn idle_lanes(&self) -> usize {
        self.idle_lanes.len()
    }

    /// The next lane that nobody uses, with its gate. Whoever does not
    /// [remove](Desk::remove_lane) it gives it [back](Desk::keep_lane).
    pub(in crate::engine) fn next_idle_lane(
        &mut self,
        now: Mono,
    ) -> Option<(LaneId, PlaceId, bool)> {
        let id = self.idle_lanes.pop_front()?;
        let lane = self.lane_mut(id).filter(|lane| lane.is_listed)?;
        lane.is_listed = false;
        if lane.flows > 0 {
            return None;
        }
        let (gate, is_busy) = (lane.gate, lane.in_flight > 0);
        Some((id, gate, !is_busy && !self.knows_of_lane(now, id)))
    }

    /// A lane that nobody uses stays for now.
    pub(in crate::engine) fn keep_lane(&mut self, id: LaneId) {
        if let Some(lane) = self.lane_mut(id) {
            lane.is_listed = true;
            self.idle_lanes.push_back(id);
        }
    }

    /// Whether something is known of an account at a lane that would be lost
    /// with it.
    fn knows_of_lane(&mut self, now: Mono, id: LaneId) -> bool {
        let pool = self.lane(id).pool;
        let kept_for = match self.side(pool).pool.lane_rest(id) {
            LaneRest::Sessions => return true,
            LaneRest::Welcome => WELCOME_KEPT,
            LaneRest::Failures => FAILURES_KEPT,
            LaneRest::Nothing => Nanos::ZERO,
        };
        let unused_for = now.since(self.lane(id).idle_since);
        if unused_for < kept_for {
            return true;
        }
        if self.breakers.is_empty() {
            return false;
        }
        let accounts: Vec<AccountId> = self.side(pool).accounts.iter().copied().collect();
        let breakers = &mut self.breakers;
        accounts
            .into_iter()
            .any(|account| breakers.knows_of_pair(now, (account, id), unused_for))
    }

    /// Takes a lane out that nobody uses and of which nothing is known.
    pub(in crate::engine) fn remove_lane(&mut self, now: &Now, id: LaneId) {
        let pool = self.lane(id).pool;
        if self.limits.has_pairs() || !self.held_pairs.is_empty() {
            let accounts: Vec<AccountId> = self.side(pool).accounts.iter().copied().collect();
            for account in accounts {
                self.limits.assign(Owner::Pair(account, id), Vec::new());
                self.held_pairs.remove(&(account, id));
            }
            self.refresh_changed(now);
        }
        let Some(lane) = self.lanes.get_mut(id.index()).and_then(Option::take) else {
            return;
        };
        self.pool_mut(pool).remove_lane(now.mono, id);
        let side = self.side_mut(pool);
        side.lanes.swap_remove(lane.at as usize);
        if let Some(&moved) = side.lanes.get(lane.at as usize)
            && let Some(moved) = self.lane_mut(moved)
        {
            moved.at = lane.at;
        }
        self.side_mut(pool).regime.leave(lane.heaviest);
        let key = (pool, lane.destination, lane.tenant);
        self.lane_keys.remove(&key);
        self.look_at_pool(pool);
        self.free_lanes.give(id.0);
        FreeNumbers::cut(&mut self.lanes, 0, Option::is_none);
    }
}

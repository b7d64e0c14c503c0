//! How long heads wait, and where: counted by the scopes of the limits that
//! hold them, and in short by place.
//!
//! Waiting is counted when it ends, so a send costs a few additions and nothing
//! is kept per message. A head that passes without waiting is not counted. One
//! that is sent on from a place to another waits twice, once at each.

use super::Schedule;
use super::place::PlaceId;
use crate::handle::FlowId;
use crate::policy::scope::Scope;
use crate::policy::scope_set::ScopeSet;
use crate::time::{Mono, Nanos};

/// The upper ends of the parts into which waits are sorted; longer ones go into
/// one more part.
pub const WAIT_BOUNDS: [Nanos; 12] = [
    Nanos::from_millis(1),
    Nanos::from_millis(5),
    Nanos::from_millis(25),
    Nanos::from_millis(100),
    Nanos::from_millis(500),
    Nanos::from_secs(1),
    Nanos::from_secs(5),
    Nanos::from_secs(30),
    Nanos::from_secs(120),
    Nanos::from_secs(600),
    Nanos::from_secs(3_600),
    Nanos::from_secs(21_600),
];

/// Groups of places beyond which all others are one.
const GROUPS_MAX: usize = 64;

/// The waits at places whose limits have the same scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Heads that came and had to wait.
    pub came: u64,
    /// How long those that went on had waited, in all.
    pub waited: Nanos,
    /// Those that went on, by how long they had waited; see [`WAIT_BOUNDS`].
    pub parts: [u64; WAIT_BOUNDS.len() + 1],
}

impl Waits {
    /// These and others together.
    pub fn merge(&mut self, other: &Self) {
        self.came += other.came;
        self.waited = self.waited + other.waited;
        for (part, more) in self.parts.iter_mut().zip(other.parts) {
            *part += more;
        }
    }

    /// Heads that went on.
    pub fn passed(&self) -> u64 {
        self.parts.iter().sum()
    }

    pub(crate) fn add(&mut self, wait: Nanos) {
        self.waited = self.waited + wait;
        let part = WAIT_BOUNDS.iter().position(|&bound| wait <= bound);
        if let Some(count) = self.parts.get_mut(part.unwrap_or(WAIT_BOUNDS.len())) {
            *count += 1;
        }
    }
}

/// The waits at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceWaits {
    /// Heads that came and had to wait.
    pub came: u64,
    /// Those that went on.
    pub passed: u64,
    /// How long they had waited, in all.
    pub waited: Nanos,
}

/// All waits, by the scopes of limits. Gates are the first group: there flows
/// wait for an account.
#[derive(Debug)]
pub(super) struct WaitGroups(Vec<(ScopeSet, Waits)>);

impl Default for WaitGroups {
    fn default() -> Self {
        Self(vec![(ScopeSet::of(&[Scope::Account]), Waits::default())])
    }
}

impl WaitGroups {
    fn find(&mut self, scopes: ScopeSet) -> u8 {
        let known = self.0.iter().position(|(of, _)| *of == scopes);
        let at = known.unwrap_or_else(|| {
            if self.0.len() < GROUPS_MAX {
                self.0.push((scopes, Waits::default()));
            }
            self.0.len() - 1
        });
        u8::try_from(at).expect("few groups")
    }

    fn get_mut(&mut self, group: u8) -> Option<&mut Waits> {
        self.0.get_mut(usize::from(group)).map(|(_, waits)| waits)
    }
}

impl Schedule {
    /// Counts the waits at a place under the scopes of its limit.
    pub fn group_waits(&mut self, id: PlaceId, scopes: ScopeSet) {
        self.place_mut(id).wait_group = self.waits.find(scopes);
    }

    /// The waits so far, by the scopes of limits. Waits at gates, where flows
    /// wait for an account, have the scope `account`.
    pub fn waits(&self) -> impl Iterator<Item = (ScopeSet, &Waits)> {
        self.waits.0.iter().map(|(scopes, waits)| (*scopes, waits))
    }

    /// The waits at one place so far.
    pub fn waits_at(&self, id: PlaceId) -> PlaceWaits {
        self.place(id).waits
    }

    /// A flow's head comes to wait at a place.
    pub(super) fn begin_wait(&mut self, now: Mono, flow: FlowId, id: PlaceId) {
        self.entry_mut(flow).since = now;
        let place = self.place_mut(id);
        place.waits.came += 1;
        let group = place.wait_group;
        if let Some(waits) = self.waits.get_mut(group) {
            waits.came += 1;
        }
    }

    /// Its turn has come there.
    pub(super) fn end_wait(&mut self, now: Mono, flow: FlowId, id: PlaceId) {
        let wait = now.since(self.entry(flow).since);
        let place = self.place_mut(id);
        place.waits.passed += 1;
        place.waits.waited = place.waits.waited + wait;
        let group = place.wait_group;
        if let Some(waits) = self.waits.get_mut(group) {
            waits.add(wait);
        }
    }
}

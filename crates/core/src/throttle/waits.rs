//! Who was held up, and for how long, by the scopes of the limits that held
//! them: counted as for flows.

use super::Throttle;
use super::request::{Key, POLICY_SPACE};
use crate::policy::key::LimitKey;
use crate::policy::scope::Scope;
use crate::policy::scope_set::ScopeSet;
use crate::schedule::waits::Waits;
use crate::time::{Mono, Now};

/// Scopes that are told apart; policies have fewer.
const GROUPS_MAX: usize = 64;

/// What is limited by a key.
pub(super) fn scopes(key: &Key<'_>) -> ScopeSet {
    if key.space == POLICY_SPACE {
        let parsed = key.name.parse::<LimitKey>();
        return parsed.map_or(ScopeSet::EMPTY, |key| key.scopes());
    }
    let own = ScopeSet::of(&[Scope::Key]);
    match key.space {
        "" => own,
        _ => own.with(Scope::Tenant),
    }
}

impl Throttle {
    fn waits_of(&mut self, id: u32) -> Option<&mut Waits> {
        let scopes = self.entries.get(id)?.scopes;
        let found = self.waits.iter().position(|(other, _)| *other == scopes);
        let at = match found {
            Some(at) => at,
            None if self.waits.len() < GROUPS_MAX => {
                self.waits.push((scopes, Waits::default()));
                self.waits.len() - 1
            }
            None => return None,
        };
        self.waits.get_mut(at).map(|(_, waits)| waits)
    }

    /// Somebody was refused by a limit, or has to wait at it.
    pub(super) fn note_held(&mut self, id: u32) {
        if let Some(waits) = self.waits_of(id) {
            waits.came += 1;
        }
    }

    /// Somebody who waited at a limit goes on.
    pub(super) fn note_waited(&mut self, now: &Now, id: u32, since: Mono) {
        if let Some(waits) = self.waits_of(id) {
            waits.add(now.mono.since(since));
        }
    }

    /// Who was held up so far, by the scopes of limits.
    pub fn waits(&self) -> Vec<(ScopeSet, Waits)> {
        self.waits.clone()
    }
}

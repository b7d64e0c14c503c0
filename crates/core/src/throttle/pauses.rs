//! Keys that grant nothing until a time, because somebody was told to stay
//! away. A pause holds whether its key is known or not, and for all limits on
//! it.

use std::collections::BTreeMap;

use super::Throttle;
use super::entry;
use super::request::{Key, Outcome, POLICY_SPACE};
use crate::fair;
use crate::policy::facet::Facet;
use crate::time::{Mono, Nanos, Now};

/// The most pauses that are kept.
const PAUSES_MAX: usize = 100_000;
/// The longest pause.
pub const PAUSE_MAX: Nanos = Nanos::from_secs(86_400);

/// All pauses in force, by owner and name.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    until: BTreeMap<Box<str>, BTreeMap<Box<str>, Mono>>,
    count: usize,
    /// When to look for those that are over.
    look_at: Mono,
}

impl Pauses {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn until(&self, space: &str, name: &str) -> Option<Mono> {
        self.until.get(space)?.get(name).copied()
    }

    /// Whether there was room.
    fn set(&mut self, space: &str, name: &str, until: Mono) -> bool {
        if let Some(known) = self.until.get_mut(space).and_then(|it| it.get_mut(name)) {
            *known = until.max(*known);
            return true;
        }
        let own = self.until.get(space).map_or(0, BTreeMap::len);
        let room = fair::room(own as u64, self.count as u64, PAUSES_MAX as u64);
        // Those that operators order are few, and always have room.
        if room == 0 && space != POLICY_SPACE {
            return false;
        }
        self.count += 1;
        let names = self.until.entry(Box::from(space)).or_default();
        names.insert(Box::from(name), until);
        true
    }

    fn remove(&mut self, space: &str, name: &str) {
        let Some(names) = self.until.get_mut(space) else {
            return;
        };
        self.count -= usize::from(names.remove(name).is_some());
        if names.is_empty() {
            self.until.remove(space);
        }
    }

    /// Forgets those that are over, now and then.
    pub fn forget(&mut self, now: Mono) {
        if self.is_empty() || now < self.look_at {
            return;
        }
        self.look_at = now + Nanos::from_secs(10);
        self.until.retain(|_, names| {
            names.retain(|_, until| *until > now);
            !names.is_empty()
        });
        self.count = self.until.values().map(BTreeMap::len).sum();
    }
}

impl Throttle {
    /// Grants nothing of a key for so long, at most a day. Whether there was
    /// room to remember it.
    pub fn pause(
        &mut self,
        now: &Now,
        (space, name): (&str, &str),
        lasts: Nanos,
        outcomes: &mut Vec<Outcome>,
    ) -> bool {
        let until = now.mono + lasts.min(PAUSE_MAX);
        self.pauses.forget(now.mono);
        if !self.pauses.set(space, name, until) {
            return false;
        }
        // The others learn of it when they are next looked at.
        let facet = &Facet::Rate;
        let key = Key { space, name, facet };
        let hash = self.index.hash([space, name], entry::number(facet));
        let found = self.index.find(hash, |place| {
            let entry = self.entries.get(place);
            entry.is_some_and(|entry| entry.is(&key))
        });
        if let Some(place) = found {
            self.serve(now, place, outcomes);
        }
        true
    }

    /// Ends the pause of a key before its time. Looks at all limits: this is
    /// for people who mend something.
    pub fn resume(&mut self, now: &Now, (space, name): (&str, &str), outcomes: &mut Vec<Outcome>) {
        self.pauses.remove(space, name);
        for place in 0..u32::try_from(self.entries.places()).unwrap_or(u32::MAX) {
            if let Some(entry) = self.entries.get_mut(place)
                && *entry.space == *space
                && *entry.name == *name
            {
                entry.limit.unblock();
                self.serve(now, place, outcomes);
            }
        }
    }

    /// For how long a key is paused still.
    pub fn paused_for(&self, now: &Now, space: &str, name: &str) -> Option<Nanos> {
        if self.pauses.is_empty() {
            return None;
        }
        let until = self.pauses.until(space, name)?;
        (until > now.mono).then(|| until.since(now.mono))
    }

    /// Blocks a limit whose key is paused.
    pub(super) fn apply_pause(&mut self, now: &Now, place: u32) {
        if self.pauses.is_empty() {
            return;
        }
        if let Some(entry) = self.entries.get_mut(place)
            && let Some(until) = self.pauses.until(&entry.space, &entry.name)
            && until > now.mono
        {
            entry.limit.block_until(until);
        }
    }
}

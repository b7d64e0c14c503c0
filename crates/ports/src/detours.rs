//! Messages that go through another pool than they were submitted to, for a
//! while.
//!
//! Decided once, when a message comes in: its pool is part of its flow and is
//! stored with it. Which messages of a share go is by counting, not by chance,
//! so that ten of a hundred are ten.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outflow_core::class::Class;
use outflow_core::flow::FlowKey;
use outflow_core::name::Name;

/// Everything goes.
pub const WHOLE: u16 = 1_000;

/// Which messages go elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detour {
    /// To this destination: `isp:google`; to any if none.
    pub destination: Option<String>,
    /// Only those of this pool; of any but `to` if none.
    pub from: Option<Name>,
    /// Only those of this class.
    pub class: Option<Class>,
    /// Through which accounts they go.
    pub to: Name,
    /// How many of a thousand.
    pub permille: u16,
}

impl Detour {
    fn is_for(&self, key: &FlowKey) -> bool {
        let place = self.destination.as_deref();
        self.to != key.pool
            && self.from.as_ref().is_none_or(|from| *from == key.pool)
            && self.class.is_none_or(|class| class == key.class)
            && place.is_none_or(|place| is_at(key, place))
    }
}

/// Whether a flow goes to `isp:google`.
fn is_at(key: &FlowKey, place: &str) -> bool {
    let parts = place.split_once(':');
    parts.is_some_and(|(kind, name)| {
        key.destination.kind.as_str() == kind && key.destination.name.as_str() == name
    })
}

#[derive(Debug)]
struct Kept {
    detour: Detour,
    /// Thousandths of a message that are owed to the other pool.
    owed: u32,
}

/// All detours, each by the name of what set it.
#[derive(Debug, Default)]
pub struct Detours(Mutex<BTreeMap<String, Kept>>);

impl Detours {
    /// Sets a detour, or changes it.
    pub fn set(&self, name: &str, detour: Detour) {
        let mut kept = self.lock();
        if kept.get(name).is_none_or(|kept| kept.detour != detour) {
            kept.insert(name.to_owned(), Kept { detour, owed: 0 });
        }
    }

    /// Takes a detour away.
    pub fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    /// All of them by name.
    pub fn all(&self) -> Vec<(String, Detour)> {
        let kept = self.lock();
        let all = kept.iter().map(|(name, kept)| (name.clone(), kept.detour.clone()));
        all.collect()
    }

    /// Sends each of these by its detour, if it has one; the first by name wins.
    pub fn divert<'a>(&self, keys: impl Iterator<Item = &'a mut FlowKey>) {
        let mut all = self.lock();
        if all.is_empty() {
            return;
        }
        for key in keys {
            let Some(kept) = all.values_mut().find(|kept| kept.detour.is_for(key)) else {
                continue;
            };
            kept.owed += u32::from(kept.detour.permille);
            if kept.owed >= u32::from(WHOLE) {
                kept.owed -= u32::from(WHOLE);
                key.pool = kept.detour.to.clone();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

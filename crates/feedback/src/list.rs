//! The suppression list: on the disk, and in force.
//!
//! Whatever changes it goes to the disk first; what has returned is durable and
//! in force. One change at a time, so that memory never says something else
//! than the disk.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_core::flow::FlowKey;
use outflow_core::message::Recipient;
use outflow_core::suppression::Reason;
use outflow_core::time::Wall;
use outflow_ports::draft;
use outflow_ports::registry::Audit;
use outflow_ports::suppression::{
    NoSuchRecipient, Placed, Put, Screen, Stopped, Suppression, SuppressionChange,
    SuppressionError, SuppressionFilter, SuppressionKey, Suppressions,
};

use crate::set::Set;

/// Bounces that wait to be written. More are let go: the next message to the
/// same recipient bounces as well.
const WAITING_MAX: usize = 10_000;

/// The suppression list.
pub struct SuppressionList {
    store: Arc<dyn Suppressions>,
    set: Set,
    /// Places depend on it, so that nobody can have a recipient of another
    /// tenant suppressed by an address that shares his place.
    keys: RandomState,
    /// Changes whenever somebody is added who is in force.
    generation: AtomicU64,
    /// Entries on the disk, held ones included.
    entries: AtomicU64,
    held: AtomicU64,
    entries_max: u64,
    writing: Mutex<()>,
    bounces: SyncSender<NoSuchRecipient>,
    let_go: AtomicU64,
}

impl fmt::Debug for SuppressionList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SuppressionList({})", self.set.len())
    }
}

impl SuppressionList {
    /// Reads the list from the disk. `keys` are random. Bounces that the node
    /// sees come out of the other end.
    pub fn open(
        store: Arc<dyn Suppressions>,
        entries_max: u64,
        keys: RandomState,
    ) -> Result<(Self, Receiver<NoSuchRecipient>), SuppressionError> {
        let set = Set::default();
        store.load(&mut |tenant, recipient, reason, since| {
            let place = place(&keys, tenant, draft::recipient(recipient));
            set.insert(place, reason, since);
        })?;
        let entries = store.count(&SuppressionFilter::default())?;
        let held = store.count(&all_held())?;
        let (bounces, heard) = sync_channel(WAITING_MAX);
        let list = Self {
            store,
            set,
            keys,
            generation: AtomicU64::new(0),
            entries: AtomicU64::new(entries),
            held: AtomicU64::new(held),
            entries_max,
            writing: Mutex::new(()),
            bounces,
            let_go: AtomicU64::new(0),
        };
        Ok((list, heard))
    }

    /// How many recipients are in force.
    pub fn in_force(&self) -> usize {
        self.set.len()
    }

    /// How many entries are held.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Bounces that were let go, since too many came at once.
    pub fn let_go(&self) -> u64 {
        self.let_go.load(Ordering::Relaxed)
    }

    /// Puts a recipient into force, also for what is on its way already.
    fn enforce(&self, key: &SuppressionKey, since: Wall) {
        let place = self.place_of(&key.tenant, &key.recipient);
        self.set.insert(place, key.reason, since);
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn place_of(&self, tenant: &str, recipient: &str) -> u64 {
        place(&self.keys, tenant, draft::recipient(recipient))
    }

    /// Whether there is room for what is new among these entries. Only a list
    /// that is nearly full has to look.
    fn has_room(&self, entries: &[Suppression]) -> Result<bool, SuppressionError> {
        let room = self.entries_max.saturating_sub(self.entries());
        if entries.len() as u64 <= room {
            return Ok(true);
        }
        let mut new = BTreeSet::new();
        for key in entries.iter().map(Suppression::key) {
            let filter = SuppressionFilter {
                tenant: Some(key.tenant.clone()),
                recipient: Some(key.recipient.clone()),
                reason: Some(key.reason),
                ..SuppressionFilter::default()
            };
            if self.store.list(&filter, None, 1)?.is_empty() {
                new.insert(key);
            }
        }
        Ok(new.len() as u64 <= room)
    }

    fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    fn alone(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a recipient of a tenant stands in memory. Two of ten million share a
/// place with a chance of one in 100,000; addresses are not kept there, since
/// they would take most of the room.
fn place(keys: &RandomState, tenant: &str, recipient: Recipient) -> u64 {
    keys.hash_one((tenant, recipient.0))
}

fn all_held() -> SuppressionFilter {
    SuppressionFilter {
        is_held: Some(true),
        ..SuppressionFilter::default()
    }
}

impl Suppressions for SuppressionList {
    fn put(
        &self,
        entries: &[Suppression],
        audit: Option<Audit<'_>>,
    ) -> Result<Put, SuppressionError> {
        let _alone = self.alone();
        if !self.has_room(entries)? {
            return Err(SuppressionError::Full(self.entries()));
        }
        let put = self.store.put(entries, audit)?;
        self.entries.fetch_add(put.added, Ordering::Relaxed);
        for (entry, placed) in entries.iter().zip(&put.placed) {
            match placed {
                Placed::New if entry.is_held => {
                    self.held.fetch_add(1, Ordering::Relaxed);
                }
                Placed::New => self.enforce(&entry.key(), entry.since),
                Placed::Approved => {
                    self.held.fetch_sub(1, Ordering::Relaxed);
                    self.enforce(&entry.key(), entry.since);
                }
                Placed::Known | Placed::Held => {}
            }
        }
        Ok(put)
    }

    fn change(
        &self,
        filter: &SuppressionFilter,
        change: SuppressionChange,
    ) -> Result<Vec<(SuppressionKey, Wall)>, SuppressionError> {
        let _alone = self.alone();
        let changed = self.store.change(filter, change)?;
        if change == SuppressionChange::Remove {
            self.entries
                .fetch_sub(changed.len() as u64, Ordering::Relaxed);
        }
        for (key, since) in &changed {
            match change {
                SuppressionChange::Remove | SuppressionChange::Hold => {
                    let place = self.place_of(&key.tenant, &key.recipient);
                    self.set.remove(place, key.reason);
                }
                SuppressionChange::Approve => self.enforce(key, *since),
            }
        }
        // What was removed may have been held or not. If this cannot be read
        // now, the next change says it.
        if let Ok(held) = self.store.count(&all_held()) {
            self.held.store(held, Ordering::Relaxed);
        }
        Ok(changed)
    }

    fn list(
        &self,
        filter: &SuppressionFilter,
        after: Option<&SuppressionKey>,
        max: usize,
    ) -> Result<Vec<Suppression>, SuppressionError> {
        self.store.list(filter, after, max)
    }

    fn count(&self, filter: &SuppressionFilter) -> Result<u64, SuppressionError> {
        self.store.count(filter)
    }

    fn load(&self, each: &mut dyn FnMut(&str, &str, Reason, Wall)) -> Result<(), SuppressionError> {
        self.store.load(each)
    }
}

impl Screen for SuppressionList {
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn stops(&self, key: &FlowKey, recipient: Recipient) -> Option<Stopped> {
        if self.set.is_empty() {
            return None;
        }
        let kept = self
            .set
            .get(place(&self.keys, key.tenant.as_str(), recipient))?;
        let reason = kept.reasons.stopping(key.class)?;
        let since = kept.since();
        Some(Stopped { reason, since })
    }

    fn bounced(&self, bounced: NoSuchRecipient) {
        if self.bounces.try_send(bounced).is_err() {
            self.let_go.fetch_add(1, Ordering::Relaxed);
        }
    }
}

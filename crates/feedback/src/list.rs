//! The suppression list: on the disk, and in force.
//!
//! Whatever changes it goes to the disk first; what has returned is durable and
//! in force. One change at a time, so that memory never says something else
//! than the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_core::fair;
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

/// The part of the list that those may take in memory for whom it has no room.
const UNKEPT: u64 = 8;
const UNKEPT_AT_ONCE: usize = 100;

/// Entries by tenant.
#[derive(Default)]
struct Counts {
    /// On the disk, of each tenant that was asked for.
    kept: BTreeMap<String, u64>,
    /// In memory alone.
    unkept: BTreeMap<String, u64>,
}

impl Counts {
    /// How many entries of a tenant are on the disk.
    fn of(&mut self, store: &dyn Suppressions, tenant: &str) -> Result<u64, SuppressionError> {
        if let Some(known) = self.kept.get(tenant) {
            return Ok(*known);
        }
        let count = store.count(&SuppressionFilter {
            tenant: Some(tenant.to_owned()),
            ..SuppressionFilter::default()
        })?;
        self.kept.insert(tenant.to_owned(), count);
        Ok(count)
    }

    fn add(&mut self, tenant: &str) {
        if let Some(known) = self.kept.get_mut(tenant) {
            *known += 1;
        }
    }

    fn subtract(&mut self, tenant: &str) {
        if let Some(known) = self.kept.get_mut(tenant) {
            *known = known.saturating_sub(1);
        }
    }
}

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
    /// Entries of each tenant that was asked for, and those for whom there was
    /// no room but who must not be sent to.
    writing: Mutex<Counts>,
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
            writing: Mutex::default(),
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

    /// Whether there is room for what is new among these entries, in all and
    /// of each tenant. Only a list that is nearly full has to look.
    fn has_room(
        &self,
        counts: &mut Counts,
        entries: &[Suppression],
    ) -> Result<(), SuppressionError> {
        let mut by_tenant: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in entries {
            *by_tenant.entry(&entry.tenant).or_default() += 1;
        }
        if self.fits(counts, &by_tenant)?.is_ok() {
            return Ok(());
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
        let mut new_by_tenant: BTreeMap<&str, u64> = BTreeMap::new();
        for key in &new {
            *new_by_tenant.entry(&key.tenant).or_default() += 1;
        }
        self.fits(counts, &new_by_tenant)?
    }

    /// Whether so many new entries of each tenant fit.
    fn fits(
        &self,
        counts: &mut Counts,
        by_tenant: &BTreeMap<&str, u64>,
    ) -> Result<Result<(), SuppressionError>, SuppressionError> {
        let (all, max) = (self.entries(), self.entries_max);
        if all.saturating_add(by_tenant.values().sum()) > max {
            return Ok(Err(SuppressionError::Full(all)));
        }
        for (tenant, new) in by_tenant {
            if *new > fair::room(counts.of(&*self.store, tenant)?, all, max) {
                return Ok(Err(SuppressionError::Quota((*tenant).to_owned())));
            }
        }
        Ok(Ok(()))
    }

    /// Has those for whom there is no room not be sent to, as far as memory
    /// goes and until the process ends: whoever said that he wants no more mail
    /// gets none, and whoever told us hears that it is not kept. Whoever imports
    /// many sees that at once.
    fn fail_closed(&self, counts: &mut Counts, entries: &[Suppression]) {
        if entries.len() > UNKEPT_AT_ONCE {
            return;
        }
        let max = self.entries_max / UNKEPT;
        for entry in entries.iter().filter(|entry| !entry.is_held) {
            let all = counts.unkept.values().sum();
            let own = counts.unkept.entry(entry.tenant.clone()).or_default();
            if fair::room(*own, all, max) == 0 {
                continue;
            }
            *own += 1;
            self.enforce(&entry.key(), entry.since);
        }
    }

    fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    fn alone(&self) -> MutexGuard<'_, Counts> {
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
    fn room_for(&self, tenant: &str) -> Result<u64, SuppressionError> {
        let own = self.alone().of(&*self.store, tenant)?;
        Ok(fair::room(own, self.entries(), self.entries_max))
    }

    fn put(
        &self,
        entries: &[Suppression],
        audit: Option<Audit<'_>>,
    ) -> Result<Put, SuppressionError> {
        let mut counts = self.alone();
        if let Err(refused) = self.has_room(&mut counts, entries) {
            if !matches!(refused, SuppressionError::Storage(_)) {
                self.fail_closed(&mut counts, entries);
            }
            return Err(refused);
        }
        let put = self.store.put(entries, audit)?;
        self.entries.fetch_add(put.added, Ordering::Relaxed);
        for (entry, placed) in entries.iter().zip(&put.placed) {
            if *placed == Placed::New {
                counts.add(&entry.tenant);
            }
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
        let mut counts = self.alone();
        let changed = self.store.change(filter, change)?;
        if change == SuppressionChange::Remove {
            self.entries
                .fetch_sub(changed.len() as u64, Ordering::Relaxed);
            for (key, _) in &changed {
                counts.subtract(&key.tenant);
            }
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

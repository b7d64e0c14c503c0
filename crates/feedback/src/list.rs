//! The suppression list: on the disk, and in force.
//!
//! Whatever changes it goes to the disk first; what has returned is durable and
//! in force. One change at a time, so that memory never says something else
//! than the disk.

use std::fmt;
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
    NoSuchRecipient, Put, Screen, Stopped, Suppression, SuppressionChange, SuppressionError,
    SuppressionFilter, SuppressionKey, Suppressions, place,
};

use crate::set::Set;

/// Bounces that wait to be written. More are let go: the next message to the
/// same recipient bounces as well.
const WAITING_MAX: usize = 10_000;

/// The suppression list.
pub struct SuppressionList {
    store: Arc<dyn Suppressions>,
    set: Set,
    /// Entries on the disk, held ones included.
    entries: AtomicU64,
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
    /// Reads the list from the disk. Bounces that the node sees come out of the
    /// other end.
    pub fn open(
        store: Arc<dyn Suppressions>,
        entries_max: u64,
    ) -> Result<(Self, Receiver<NoSuchRecipient>), SuppressionError> {
        let set = Set::default();
        store.load(&mut |tenant, recipient, reason, since| {
            set.insert(place_of(tenant, recipient), reason, since);
        })?;
        let entries = store.count(&SuppressionFilter::default())?;
        let (bounces, heard) = sync_channel(WAITING_MAX);
        let list = Self {
            store,
            set,
            entries: AtomicU64::new(entries),
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

    /// Bounces that were let go, since too many came at once.
    pub fn let_go(&self) -> u64 {
        self.let_go.load(Ordering::Relaxed)
    }

    fn alone(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place_of(tenant: &str, recipient: &str) -> u64 {
    place(tenant, draft::recipient(recipient))
}

impl Suppressions for SuppressionList {
    fn put(
        &self,
        entries: &[Suppression],
        audit: Option<Audit<'_>>,
    ) -> Result<Put, SuppressionError> {
        let _alone = self.alone();
        let before = self.entries.load(Ordering::Relaxed);
        if before.saturating_add(entries.len() as u64) > self.entries_max {
            return Err(SuppressionError::Full(before));
        }
        let put = self.store.put(entries, audit)?;
        self.entries.fetch_add(put.added, Ordering::Relaxed);
        for entry in entries.iter().filter(|entry| !entry.is_held) {
            let place = place_of(&entry.tenant, &entry.recipient);
            self.set.insert(place, entry.reason, entry.since);
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
            let place = place_of(&key.tenant, &key.recipient);
            match change {
                SuppressionChange::Remove | SuppressionChange::Hold => {
                    self.set.remove(place, key.reason);
                }
                SuppressionChange::Approve => self.set.insert(place, key.reason, *since),
            }
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
    fn stops(&self, key: &FlowKey, recipient: Recipient) -> Option<Stopped> {
        if self.set.is_empty() {
            return None;
        }
        let kept = self.set.get(place(key.tenant.as_str(), recipient))?;
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

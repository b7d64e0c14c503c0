//! Where live messages stand: by slot, and by sequence number.
//!
//! A slot is used again when its message is gone, so memory follows what is
//! alive. From sequence number to slot is arithmetic.

use std::collections::VecDeque;
use std::sync::Arc;

use outflow_core::handle::FlowId;
use outflow_core::message::{Head, Seq};
use outflow_core::time::Wall;
use outflow_ports::parcel::{Parcel, ParcelError, ParcelSource};

/// A place in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u32);

impl Slot {
    /// No place at all.
    pub const NONE: Self = Self(u32::MAX);
}

/// Where a live message is, as long as the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Ready, never deferred.
    Fresh,
    /// Ready, its time has come.
    Due,
    /// Waits for its time.
    Later,
    /// Its flow is being cancelled or moved.
    Aside,
    /// Handed out.
    Held,
    /// A record about it is on its way to the disk, or was lost on that way.
    Leaving,
    /// Reported as expired; its settlement will come.
    Expiring,
}

/// What is to be delivered.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub envelope: Arc<[u8]>,
    pub body: Arc<[u8]>,
}

impl ParcelSource for Content {
    fn read(&self, _: u64, _: u64) -> Result<Parcel, ParcelError> {
        Ok(Parcel {
            envelope: Arc::clone(&self.envelope),
            body: Arc::clone(&self.body),
        })
    }
}

/// A live message.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// What is durable ...
    pub head: Head,
    pub flow: FlowId,
    pub due_at: Option<Wall>,
    /// It was put off since it was accepted; else its time is the submitter's.
    pub is_deferred: bool,
    pub key: Option<Arc<str>>,
    pub content: Content,
    /// ... and what a crash forgets.
    pub place: Place,
    /// Records about it on their way to the disk.
    pub records: u32,
    /// Its expiry was noticed while it was not in the queue.
    pub overdue: bool,
    pub prev: Slot,
    pub next: Slot,
    pub ordinal: u64,
}

/// All live messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Slab {
    entries: Vec<Option<Entry>>,
    free: Vec<Slot>,
    /// Slots by sequence number, from `first` on.
    slots: VecDeque<Slot>,
    first: u64,
}

impl Slab {
    pub fn get(&self, slot: Slot) -> Option<&Entry> {
        self.entries.get(slot.0 as usize).and_then(Option::as_ref)
    }

    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(slot.0 as usize);
        entry.and_then(Option::as_mut)
    }

    pub fn find(&self, seq: Seq) -> Option<Slot> {
        let place = usize::try_from(seq.0.checked_sub(self.first)?).ok()?;
        let slot = self.slots.get(place).copied();
        slot.filter(|slot| *slot != Slot::NONE)
    }

    /// Adds a message whose number is above that of all before it.
    pub fn insert(&mut self, entry: Entry) -> Slot {
        let seq = entry.head.seq.0;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.entries.len()).expect("fewer than 2^32 messages");
                self.entries.push(None);
                Slot(slot)
            }
        };
        if let Some(place) = self.entries.get_mut(slot.0 as usize) {
            *place = Some(entry);
        }
        if self.slots.is_empty() {
            self.first = seq;
        }
        let gap = seq.saturating_sub(self.first + self.slots.len() as u64);
        self.slots.extend((0..gap).map(|_| Slot::NONE));
        self.slots.push_back(slot);
        slot
    }

    pub fn remove(&mut self, slot: Slot) -> Option<Entry> {
        let entry = self.entries.get_mut(slot.0 as usize)?.take()?;
        self.free.push(slot);
        let place = entry.head.seq.0.checked_sub(self.first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        if let Some(known) = place.and_then(|place| self.slots.get_mut(place)) {
            *known = Slot::NONE;
        }
        while self
            .slots
            .pop_front_if(|slot| *slot == Slot::NONE)
            .is_some()
        {
            self.first += 1;
        }
        Some(entry)
    }

    /// The slots of all live messages, in order of their numbers.
    pub fn in_order(&self) -> impl Iterator<Item = Slot> {
        let slots = self.slots.iter().copied();
        slots.filter(|slot| *slot != Slot::NONE)
    }

    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

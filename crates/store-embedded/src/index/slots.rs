//! Where live messages stand: 64 bytes each, by sequence number.
//!
//! From number to slot is arithmetic. Slots stand in chunks; a chunk in which
//! few are alive becomes a sorted array, so that one stuck message does not pin
//! the memory of thousands that were sent.

use std::collections::BTreeMap;

use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::time::Wall;

use crate::journal::place::Place;

/// Slots of a chunk.
const CHUNK: u64 = 4_096;
/// Chunks of a group: few groups, so that finding one takes no time.
const GROUP: u64 = 1_024;
/// A chunk with fewer living than this becomes an array.
const SPARSE_BELOW: usize = CHUNK as usize / 8;

/// Where a message is, as long as the process lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Stand {
    /// Nowhere: the slot is free.
    #[default]
    Free,
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
    /// A dead letter.
    Dead,
}

/// The low half of a number. Of two messages alive at once no two share it.
pub type Low = u32;

/// A time on the wall clock in 48 bits: steps of 10 microseconds since 2020.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp([u16; 3]);

impl Stamp {
    const STEP: u64 = 10_000;
    const FIRST: i64 = 1_577_836_800_000_000_000;
    /// Later than the year 2109 is never.
    const NEVER: u64 = (1 << 48) - 1;

    /// This time, rounded up.
    pub fn of(at: Wall) -> Self {
        let since = at.since(Wall(Self::FIRST)).0;
        let steps = since.div_ceil(Self::STEP).min(Self::NEVER);
        Self([steps as u16, (steps >> 16) as u16, (steps >> 32) as u16])
    }

    /// This time, rounded down.
    pub fn floor(at: Wall) -> Self {
        Self::of(Wall(at.0.saturating_sub(Self::STEP as i64 - 1)))
    }

    /// As a time.
    pub fn wall(self) -> Wall {
        let [low, middle, high] = self.0.map(u64::from);
        match high << 32 | middle << 16 | low {
            Self::NEVER => Wall::NEVER,
            steps => Wall(Self::FIRST + (steps * Self::STEP) as i64),
        }
    }
}

/// A live message or a dead letter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// Its entry in the journal, and its body.
    pub root: Place,
    pub body: Place,
    pub recipient: u64,
    /// The hash of its idempotency key; 0 if it has none.
    pub key: u64,
    pub flow: u32,
    /// Its neighbours in the list that its stand belongs to.
    pub next: Low,
    pub prev: Low,
    pub ordinal: u32,
    pub expires_at: Stamp,
    pub accepted_at: Stamp,
    /// `u16::MAX` if the true cost stands elsewhere.
    pub cost: u16,
    pub stand: Stand,
    pub flags: Flags,
}

/// Small facts about a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flags(u8);

impl Flags {
    const RECORDS: u8 = 0b1111;
    const OVERDUE: u8 = 1 << 4;
    const DEFERRING: u8 = 1 << 5;
    const MORE: u8 = 1 << 6;

    /// Records about it on their way to the disk.
    pub const fn records(self) -> u8 {
        self.0 & Self::RECORDS
    }

    pub fn add_record(&mut self) {
        if self.records() < Self::RECORDS {
            self.0 += 1;
        }
    }

    pub fn take_record(&mut self) {
        if self.records() > 0 {
            self.0 -= 1;
        }
    }

    fn set(&mut self, bit: u8, value: bool) {
        self.0 = if value { self.0 | bit } else { self.0 & !bit };
    }

    /// Its expiry was noticed while it was not in the queue.
    pub const fn overdue(self) -> bool {
        self.0 & Self::OVERDUE != 0
    }

    pub fn set_overdue(&mut self, value: bool) {
        self.set(Self::OVERDUE, value);
    }

    /// The last record about it on its way is a deferral.
    pub const fn deferring(self) -> bool {
        self.0 & Self::DEFERRING != 0
    }

    pub fn set_deferring(&mut self, value: bool) {
        self.set(Self::DEFERRING, value);
    }

    /// More is known of it than the slot holds.
    pub const fn more(self) -> bool {
        self.0 & Self::MORE != 0
    }

    pub fn set_more(&mut self, value: bool) {
        self.set(Self::MORE, value);
    }

    /// Forgets what a crash forgets.
    pub fn forget(&mut self) {
        self.0 &= Self::MORE;
    }
}

impl Slot {
    pub fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
}

#[derive(Debug)]
enum Chunk {
    Full { slots: Box<[Slot]>, live: usize },
    Sparse(Vec<(u16, Slot)>),
}

impl Chunk {
    fn get(&self, at: u16) -> Option<&Slot> {
        let slot = match self {
            Self::Full { slots, .. } => slots.get(usize::from(at)),
            Self::Sparse(slots) => {
                let found = slots.binary_search_by_key(&at, |(at, _)| *at).ok()?;
                slots.get(found).map(|(_, slot)| slot)
            }
        };
        slot.filter(|slot| slot.stand != Stand::Free)
    }

    fn get_mut(&mut self, at: u16) -> Option<&mut Slot> {
        let slot = match self {
            Self::Full { slots, .. } => slots.get_mut(usize::from(at)),
            Self::Sparse(slots) => {
                let found = slots.binary_search_by_key(&at, |(at, _)| *at).ok()?;
                slots.get_mut(found).map(|(_, slot)| slot)
            }
        };
        slot.filter(|slot| slot.stand != Stand::Free)
    }

    fn live(&self) -> usize {
        match self {
            Self::Full { live, .. } => *live,
            Self::Sparse(slots) => slots.len(),
        }
    }

    /// The living from `from` on, in order.
    fn iter(&self, from: u16) -> Box<dyn Iterator<Item = (u16, &Slot)> + '_> {
        match self {
            Self::Full { slots, .. } => {
                let slots = slots.iter().enumerate().skip(usize::from(from));
                let living = slots.filter(|(_, slot)| slot.stand != Stand::Free);
                Box::new(living.map(|(at, slot)| (at as u16, slot)))
            }
            Self::Sparse(slots) => {
                let start = slots.partition_point(|(at, _)| *at < from);
                let slots = slots.iter().skip(start);
                Box::new(slots.map(|(at, slot)| (*at, slot)))
            }
        }
    }
}

/// Chunks that follow one another.
#[derive(Debug)]
struct Group {
    chunks: Box<[Option<Chunk>]>,
    used: usize,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            chunks: (0..GROUP).map(|_| None).collect(),
            used: 0,
        }
    }
}

/// All live messages and dead letters.
#[derive(Debug, Default)]
pub struct Slots {
    groups: BTreeMap<u64, Group>,
    len: usize,
    /// The highest number ever put here.
    last: u64,
}

fn split(seq: Seq) -> (u64, u16) {
    (seq.0 / CHUNK, (seq.0 % CHUNK) as u16)
}

/// The group of a chunk, and which of its chunks that is.
fn group_of(number: u64) -> (u64, usize) {
    (number / GROUP, (number % GROUP) as usize)
}

impl Slots {
    fn chunk(&self, number: u64) -> Option<&Chunk> {
        let (group, at) = group_of(number);
        self.groups.get(&group)?.chunks.get(at)?.as_ref()
    }

    fn chunk_mut(&mut self, number: u64) -> Option<&mut Chunk> {
        let (group, at) = group_of(number);
        self.groups.get_mut(&group)?.chunks.get_mut(at)?.as_mut()
    }

    /// Chunks from one on, with their numbers.
    fn chunks_from(&self, first: u64) -> impl Iterator<Item = (u64, &Chunk)> {
        let (first_group, first_at) = group_of(first);
        let groups = self.groups.range(first_group..);
        groups.flat_map(move |(&group, it)| {
            let skipped = if group == first_group { first_at } else { 0 };
            let chunks = it.chunks.iter().enumerate().skip(skipped);
            chunks.filter_map(move |(at, chunk)| Some((group * GROUP + at as u64, chunk.as_ref()?)))
        })
    }

    fn remove_chunk(&mut self, number: u64) {
        let (group, at) = group_of(number);
        let Some(it) = self.groups.get_mut(&group) else {
            return;
        };
        if it.chunks.get_mut(at).and_then(Option::take).is_some() {
            it.used -= 1;
        }
        if it.used == 0 {
            self.groups.remove(&group);
        }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, seq: Seq) -> Option<&Slot> {
        let (chunk, at) = split(seq);
        self.chunk(chunk)?.get(at)
    }

    pub fn get_mut(&mut self, seq: Seq) -> Option<&mut Slot> {
        let (chunk, at) = split(seq);
        self.chunk_mut(chunk)?.get_mut(at)
    }

    /// Puts a message under a number that nobody has.
    pub fn insert(&mut self, seq: Seq, slot: Slot) {
        let (number, at) = split(seq);
        let is_new = seq.0 / CHUNK >= self.last / CHUNK;
        self.last = self.last.max(seq.0);
        let (group, place) = group_of(number);
        let group = self.groups.entry(group).or_default();
        let Some(chunk) = group.chunks.get_mut(place) else {
            return;
        };
        if chunk.is_none() {
            group.used += 1;
        }
        let chunk = chunk.get_or_insert_with(|| {
            if is_new {
                let slots = vec![Slot::default(); CHUNK as usize].into_boxed_slice();
                Chunk::Full { slots, live: 0 }
            } else {
                Chunk::Sparse(Vec::new())
            }
        });
        match chunk {
            Chunk::Full { slots, live } => {
                if let Some(place) = slots.get_mut(usize::from(at)) {
                    *place = slot;
                    *live += 1;
                }
            }
            Chunk::Sparse(slots) => {
                let place = slots.partition_point(|(of, _)| *of < at);
                slots.insert(place, (at, slot));
                if slots.len() > SPARSE_BELOW * 2 {
                    *chunk = fill(slots);
                }
            }
        }
        self.len += 1;
    }

    pub fn remove(&mut self, seq: Seq) -> Option<Slot> {
        let (number, at) = split(seq);
        let is_current = number == self.last / CHUNK;
        let chunk = self.chunk_mut(number)?;
        let slot = std::mem::take(chunk.get_mut(at)?);
        match chunk {
            Chunk::Full { live, .. } => *live -= 1,
            Chunk::Sparse(slots) => {
                let found = slots.binary_search_by_key(&at, |(at, _)| *at);
                if let Ok(found) = found {
                    slots.remove(found);
                }
            }
        }
        if !is_current {
            let live = chunk.live();
            if live == 0 {
                self.remove_chunk(number);
            } else if live < SPARSE_BELOW && matches!(chunk, Chunk::Full { .. }) {
                let few = chunk.iter(0).map(|(at, slot)| (at, *slot)).collect();
                *chunk = Chunk::Sparse(few);
            }
        }
        self.len -= 1;
        Some(slot)
    }

    /// The message whose number ends like this.
    pub fn find_low(&self, low: Low) -> Option<Seq> {
        if low == NOBODY {
            return None;
        }
        let high = self.last & !u64::from(u32::MAX);
        let mut seq = Seq(high | u64::from(low));
        loop {
            if seq.0 <= self.last && self.get(seq).is_some() {
                return Some(seq);
            }
            seq = Seq(seq.0.checked_sub(1 << 32)?);
            // No number is lower than those of the first group.
            let (first, _) = self.groups.first_key_value()?;
            if seq.0 < first * GROUP * CHUNK {
                return None;
            }
        }
    }

    /// All from a number on, in order.
    pub fn iter(&self, from: Seq) -> impl Iterator<Item = (Seq, &Slot)> {
        let (first, at) = split(from);
        self.chunks_from(first).flat_map(move |(number, chunk)| {
            let from = if number == first { at } else { 0 };
            let slots = chunk.iter(from);
            slots.map(move |(at, slot)| (Seq(number * CHUNK + u64::from(at)), slot))
        })
    }

    /// The numbers of all, in order, from a chunk at a time: slots may change
    /// between two chunks.
    pub fn numbers_of_chunk(&self, from: u64) -> Option<(u64, Vec<Seq>)> {
        let (number, chunk) = self.chunks_from(from).next()?;
        let numbers = chunk
            .iter(0)
            .map(|(at, _)| Seq(number * CHUNK + u64::from(at)));
        Some((number + 1, numbers.collect()))
    }
}

/// No number ends like this: 0 is not given.
pub const NOBODY: Low = 0;

fn fill(few: &[(u16, Slot)]) -> Chunk {
    let mut slots = vec![Slot::default(); CHUNK as usize].into_boxed_slice();
    for (at, slot) in few {
        if let Some(place) = slots.get_mut(usize::from(*at)) {
            *place = *slot;
        }
    }
    let live = few.len();
    Chunk::Full { slots, live }
}

#[cfg(test)]
mod tests;

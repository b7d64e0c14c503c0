//! Places in a pool: rows for accounts, columns for lanes.
//!
//! Handles are numbered over the whole engine, bits only over one pool. The
//! way from a handle to its place is two array reads; pages of 64 handles that
//! a pool never heard of take no memory.

/// An account's place in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row(pub u32);

/// A lane's place in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Col(pub u32);

/// A pair's place in the slab of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PairNo(pub u32);

impl Row {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Col {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

const PAGE: usize = 64;
const NOWHERE: u32 = u32::MAX;

/// From handle to place.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pages: Vec<Option<Box<[u32; PAGE]>>>,
}

impl Places {
    pub fn get(&self, handle: u32) -> Option<u32> {
        let page = self.pages.get(handle as usize / PAGE)?.as_ref()?;
        let place = page.get(handle as usize % PAGE).copied()?;
        (place != NOWHERE).then_some(place)
    }

    pub fn put(&mut self, handle: u32, place: Option<u32>) {
        let at = handle as usize / PAGE;
        if self.pages.len() <= at {
            self.pages.resize(at + 1, None);
        }
        let page = self
            .pages
            .get_mut(at)
            .map(|page| page.get_or_insert_with(|| Box::new([NOWHERE; PAGE])));
        if let Some(slot) = page.and_then(|page| page.get_mut(handle as usize % PAGE)) {
            *slot = place.unwrap_or(NOWHERE);
        }
    }
}

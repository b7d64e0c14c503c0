//! Things with places of their own, which are used again.

/// A place.
#[derive(Debug)]
struct Slot<T> {
    /// How often it was used before.
    generation: u32,
    value: Option<T>,
}

/// Things with places of their own.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// The generation of a place that was never used.
    first: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            first: 0,
        }
    }
}

impl<T> Slab<T> {
    /// One whose generations begin here: who remembers a place of another slab
    /// does not find it in this one.
    pub fn beginning_at(first: u32) -> Self {
        Self {
            first,
            ..Self::default()
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many places there are, used or not.
    pub fn places(&self) -> usize {
        self.slots.len()
    }

    /// Gives a thing a place; which, and its generation.
    pub fn insert(&mut self, value: T) -> (u32, u32) {
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(index as usize)
        {
            slot.value = Some(value);
            return (index, slot.generation);
        }
        // Callers bound how many there are, far below this.
        let index = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.push(Slot {
            generation: self.first,
            value: Some(value),
        });
        (index, self.first)
    }

    /// What is at a place.
    pub fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    /// What is at a place.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.value.as_mut()
    }

    /// Whether a place is still used by what got it with this generation.
    pub fn is(&self, index: u32, generation: u32) -> bool {
        let slot = self.slots.get(index as usize);
        slot.is_some_and(|slot| slot.generation == generation && slot.value.is_some())
    }

    /// The generation of what is at a place.
    pub fn generation(&self, index: u32) -> u32 {
        let slot = self.slots.get(index as usize);
        slot.map_or(0, |slot| slot.generation)
    }

    /// Empties a place.
    pub fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        Some(value)
    }
}

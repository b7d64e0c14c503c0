//! The limits of one request, as places: small, copied, never on the heap.

use super::request::LIMITS_MAX;

/// One limit of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// The place of the limit.
    pub entry: u32,
    pub cost: u32,
    /// Which of the limits of the request it is.
    pub want: u8,
}

/// The limits of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    parts: [Part; LIMITS_MAX],
    len: u8,
}

impl Parts {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Part> + '_ {
        self.parts.iter().take(usize::from(self.len)).copied()
    }

    /// What is asked of one limit.
    pub fn of(&self, entry: u32) -> Option<Part> {
        self.iter().find(|part| part.entry == entry)
    }

    /// One more; costs of the same limit add up.
    pub fn add(&mut self, part: Part) {
        let len = usize::from(self.len);
        let mut here = self.parts.iter_mut().take(len);
        if let Some(same) = here.find(|same| same.entry == part.entry) {
            same.cost = same.cost.saturating_add(part.cost);
        } else if let Some(free) = self.parts.get_mut(len) {
            *free = part;
            self.len += 1;
        }
    }
}

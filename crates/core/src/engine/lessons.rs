//! Which learners a message teaches.

use super::learners::LEARNERS_MAX;
use crate::handle::LearnerId;

/// The learners that one message teaches. Every permit carries them, so their
/// numbers are short; there are fewer than [`LEARNERS_MAX`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Lessons([u16; Self::MAX]);

/// No learner has this number.
const NOBODY: u16 = u16::MAX;
const _: () = assert!(LEARNERS_MAX <= NOBODY as usize, "a number fits a lesson");

impl Default for Lessons {
    fn default() -> Self {
        Self([NOBODY; Self::MAX])
    }
}

impl Lessons {
    /// Destination, tenant, sending domain, account and IP, each at most once.
    const MAX: usize = 6;

    /// One more; those beyond the most are not taught.
    pub fn add(&mut self, id: LearnerId) {
        if let Some(place) = self.0.iter_mut().find(|place| **place == NOBODY)
            && let Ok(id) = u16::try_from(id.0)
        {
            *place = id;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = LearnerId> + use<> {
        let ids = self.0.into_iter().take_while(|id| *id != NOBODY);
        ids.map(|id| LearnerId(id.into()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.first() == Some(&NOBODY)
    }
}

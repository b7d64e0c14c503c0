//! Messages that come back, counted by the second in which they do.

use std::collections::BTreeMap;

use outflow_core::time::{NANOS_PER_SECOND, Nanos};

/// A message as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tried {
    /// How often.
    pub times: u8,
    /// Whether it was greylisted.
    pub known: bool,
}

/// Messages that come back.
#[derive(Clone, Debug, Default)]
pub struct Retries(BTreeMap<(u64, Tried), u32>);

impl Retries {
    /// One comes back at `due`.
    pub fn push(&mut self, due: Nanos, tried: Tried) {
        let second = due.0.div_ceil(NANOS_PER_SECOND);
        *self.0.entry((second, tried)).or_default() += 1;
    }

    /// The next that is back.
    pub fn pop(&mut self, now: Nanos) -> Option<Tried> {
        let mut first = self.0.first_entry()?;
        let (second, tried) = *first.key();
        if second.saturating_mul(NANOS_PER_SECOND) > now.0 {
            return None;
        }
        *first.get_mut() -= 1;
        if *first.get() == 0 {
            first.remove();
        }
        Some(tried)
    }
}

//! Too many refusals in a minute: stop for a while.
//!
//! Providers back off from those who back off. If more than a fifth of the
//! replies of a minute refuse us, going on only makes it last longer. Replies
//! are counted from the first refusal on: whoever is never refused keeps none,
//! and what he sent in the minute before counts as taken.

use super::settings::BreakerSettings;
use super::window::Lately;
use crate::time::{Mono, Nanos};

/// A minute is six of these.
const SLOT: Nanos = Nanos::from_secs(10);

/// The replies of the last minute.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    lately: Lately,
}

impl Refusals {
    /// For somebody who was not refused for a minute and sent so many in it: a
    /// hiccup among thousands stops nobody.
    pub fn new(now: Mono, sent_in_minute: u64) -> Self {
        let mut refusals = Self::default();
        refusals.lately.add_fine(now, SLOT, sent_in_minute);
        refusals
    }

    /// A reply came, which refused us or not. Until when to stop, if so.
    pub fn replied(
        &mut self,
        settings: &BreakerSettings,
        now: Mono,
        refused: bool,
    ) -> Option<Mono> {
        self.lately.add(now, SLOT, refused);
        let share = self.lately.share(now, SLOT);
        let is_enough = share.whole >= u64::from(settings.refusals_least.max(1));
        if !refused || !is_enough || !share.is_above(settings.refusals_permille) {
            return None;
        }
        // What led to this is paid for: the count begins anew.
        self.lately = Lately::default();
        Some(now + settings.stop_for)
    }

    /// Whether nothing refused us within the last minute.
    pub fn is_idle(&mut self, now: Mono) -> bool {
        self.lately.share(now, SLOT).part == 0
    }
}

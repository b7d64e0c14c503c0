//! Whether DNS answers at all.

use std::time::Duration;

use tokio::time::Instant;

/// Since when nobody has answered, if that is so.
#[derive(Debug, Default)]
pub(crate) struct Health {
    silent_since: Option<Instant>,
}

impl Health {
    /// Somebody answered, if only that he does not know.
    pub fn answered(&mut self) {
        self.silent_since = None;
    }

    /// A question was not answered.
    pub fn silent(&mut self, now: Instant) {
        self.silent_since.get_or_insert(now);
    }

    /// Whether nobody has answered for this long.
    pub fn is_away(&self, now: Instant, patience: Duration) -> bool {
        self.silent_since
            .is_some_and(|since| now.duration_since(since) >= patience)
    }
}

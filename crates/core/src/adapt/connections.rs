//! How many connections are welcome, and how many messages on each.
//!
//! A far end that has enough connections refuses one more, and one that has
//! read enough on a connection refuses the next message there. Neither says
//! anything about the rate, so neither moves it: these two caps move instead.
//! A refused connection fixes the cap at those that were open; one more is
//! tried after an hour, then after two, four, at most a day. Once one is let in,
//! the next is tried after a minute. Messages on a connection are twice as many
//! after the same waits. Of several that
//! were refused together only the first counts: the others were begun before
//! anything was known.

use crate::time::{Mono, Nanos};

const TRY_AFTER: Nanos = Nanos::from_secs(3_600);
const TRY_AFTER_MOST: Nanos = Nanos::from_secs(86_400);
/// After one more was let in.
const GO_ON_AFTER: Nanos = Nanos::from_secs(60);
/// So many messages on a connection are as many as one likes.
const MESSAGES_MANY: u32 = 100_000;

/// What is known of the connections to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    most: u32,
    cap: u32,
    messages: u32,
    try_at: Mono,
    wait: Nanos,
    /// When the cap last sank.
    sank_at: Option<Mono>,
    /// When more messages are tried on a connection, and the wait for it.
    longer_at: Mono,
    longer_wait: Nanos,
}

impl Connections {
    /// Nothing is known; the operator allows `most` connections.
    pub const fn new(most: u32) -> Self {
        Self {
            most,
            cap: most,
            messages: u32::MAX,
            try_at: Mono::NEVER,
            wait: TRY_AFTER,
            sank_at: None,
            longer_at: Mono::NEVER,
            longer_wait: Nanos::ZERO,
        }
    }

    /// How many connections may be open now.
    pub fn cap(&self, now: Mono) -> u32 {
        if now >= self.try_at {
            self.cap.saturating_add(1).min(self.most)
        } else {
            self.cap
        }
    }

    /// How many messages one connection carries.
    pub const fn messages(&self) -> u32 {
        self.messages
    }

    /// When one more than was welcome is tried; never if nothing is known.
    pub const fn try_at(&self) -> Mono {
        self.try_at
    }

    /// The operator allows so many from now on.
    pub fn allow(&mut self, most: u32) {
        if self.try_at == Mono::NEVER {
            self.cap = most;
        }
        self.most = most;
    }

    /// Something that was begun at `since` was refused while `open` connections
    /// were open. Whether that is news.
    pub fn refused(&mut self, now: Mono, since: Mono, open: u32) -> bool {
        if self.sank_at.is_some_and(|sank_at| since <= sank_at) {
            return false;
        }
        let before = self.cap;
        if open.max(1) >= self.cap && self.try_at != Mono::NEVER {
            self.wait = self.wait.times(2).min(TRY_AFTER_MOST);
        } else {
            self.wait = TRY_AFTER;
        }
        self.cap = open.clamp(1, self.most.max(1));
        self.try_at = now + self.wait;
        self.sank_at = Some(now);
        self.cap != before
    }

    /// A connection was opened; now `open` are.
    pub fn opened(&mut self, now: Mono, open: u32) {
        if open > self.cap {
            self.cap = open.min(self.most);
            self.wait = TRY_AFTER;
            self.try_at = now + GO_ON_AFTER;
        }
        if now >= self.longer_at {
            self.longer_at = now + self.longer_wait;
            self.messages = match self.messages.saturating_mul(2) {
                more if more >= MESSAGES_MANY => u32::MAX,
                more => more,
            };
        }
    }

    /// A connection carried `messages` and the next was refused. Whether that is
    /// news.
    pub fn full(&mut self, now: Mono, messages: u32) -> bool {
        let before = self.messages;
        let messages = messages.max(1);
        if messages >= before {
            return false;
        }
        self.messages = messages;
        self.longer_wait = match self.longer_wait {
            Nanos::ZERO => TRY_AFTER,
            wait => wait.times(2).min(TRY_AFTER_MOST),
        };
        self.longer_at = now + self.longer_wait;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_connection_fixes_the_cap_and_one_more_is_tried_later() {
        let mut known = Connections::new(50);
        assert_eq!(known.cap(Mono(0)), 50);
        assert!(known.refused(Mono(5), Mono(0), 20));
        assert!(!known.refused(Mono(6), Mono(4), 3), "begun before");
        assert_eq!(known.cap(Mono(0)), 20);
        let hour = Mono(5) + TRY_AFTER;
        assert_eq!(known.cap(hour), 21);
        assert!(!known.refused(hour, hour, 20), "it is as it was");
        assert_eq!(known.cap(hour + TRY_AFTER), 20, "the wait doubles");
        let later = hour + TRY_AFTER.times(2);
        assert_eq!(known.cap(later), 21);
        known.opened(later, 21);
        assert_eq!(known.cap(later), 21);
        assert_eq!(known.cap(later + GO_ON_AFTER), 22, "then the next");
    }

    #[test]
    fn messages_per_connection_shrink_and_are_tried_again() {
        let mut known = Connections::new(5);
        assert!(known.full(Mono(0), 100));
        assert!(!known.full(Mono(0), 200), "it is known");
        assert_eq!(known.messages(), 100);
        known.opened(Mono(0) + TRY_AFTER, 1);
        assert_eq!(known.messages(), 200);
        let hour = Mono(0) + TRY_AFTER;
        assert!(known.full(hour, 0), "one is always taken");
        known.opened(hour + TRY_AFTER, 1);
        assert_eq!(known.messages(), 1, "the wait doubles");
        known.opened(hour + TRY_AFTER.times(2), 1);
        assert_eq!(known.messages(), 2);
    }
}

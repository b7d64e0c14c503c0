//! When accounts of a pool are blocked, and what the others may do then.
//!
//! An episode begins when the first account is blocked and ends when none is
//! any more. If one is blocked again within a minute, the same episode goes on
//! with the same caps: measured anew they would count the minutes in which the
//! pool was held, and sink each time.
//!
//! Exceptions keep the rule from doing harm:
//! - an account that sent less than half of its fair share, a standby say, may
//!   send its fair share;
//! - no account is held below a tenth of its own rate (one a second if it has
//!   none): there it is near no limit, and a quiet pool would be no use at all;
//! - a pool that began to send only seconds ago is judged by its rate since then,
//!   and one that sent nothing for a minute has no rate to keep: its accounts go
//!   by their limits;
//! - an account that is blocked for hours (a quota of the day) must not hold a
//!   pool at what it did in the night: after ten minutes caps grow, by a tenth
//!   of their first size each minute.
//!
//! A restart in the middle of an episode is no way out of it: accounts go on with
//! the caps that were written down, those without with what the others had on
//! average.

use std::collections::BTreeSet;

use super::MINUTE;
use crate::handle::AccountId;
use crate::time::{Mono, Nanos};

/// After so long caps have grown beyond what they are worth.
pub const WORTH: Nanos = Nanos::from_secs(7_200);

/// For so long a cap stays as it was measured.
const KEPT: Nanos = Nanos::from_secs(600);

/// In such a time it then grows by its first size.
const GROWS: Nanos = Nanos::from_secs(600);

/// A pool is not judged by less than this.
const SPAN_MIN: Nanos = Nanos::from_secs(5);

/// The longest stretch that is not a whole minute.
const SPAN_MAX: Nanos = Nanos::from_secs(59);

/// What a pool did in the minute before one of its accounts was blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// What all of its accounts sent.
    pub count: u64,
    /// How many there are.
    pub accounts: u64,
    /// For how long of the minute they did.
    pub span: Nanos,
}

/// What is known of an account when its cap is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// What it sent in the minute before, ...
    pub count: u64,
    /// ... and for how long of that it was sending.
    pub span: Nanos,
    /// It is never held below this.
    pub floor: u64,
    /// What it was held to when the process ended.
    pub kept: Option<u32>,
}

/// The accounts of a pool that are blocked.
#[derive(Clone, Debug, Default)]
pub struct Episode {
    blocked: BTreeSet<AccountId>,
    /// Counts up with each episode; 0 before the first.
    number: u32,
    began: Mono,
    /// When the last account was let go.
    ended: Mono,
    /// What an account of the pool sent in the minute before, on average.
    fair: u64,
    /// For how long of that minute the pool was sending at all.
    span: Nanos,
    /// Whether anything is known of the minute before. A pool that sent nothing
    /// has no rate to keep, unless it is known from before a restart.
    is_known: bool,
    recalled: Recalled,
}

/// The caps that were in force when the process ended.
#[derive(Clone, Copy, Debug, Default)]
struct Recalled {
    sum: u64,
    accounts: u64,
    /// How long the episode had lasted by then.
    aged: Nanos,
    /// Until when they are worth anything.
    until: Mono,
}

impl Episode {
    /// An account is blocked. If it is the first, the pool says what it did
    /// before.
    pub fn block(&mut self, now: Mono, id: AccountId, before: impl FnOnce() -> Before) {
        let was_on = self.is_on();
        self.blocked.insert(id);
        if was_on || (self.number > 0 && now.since(self.ended) < MINUTE) {
            return;
        }
        if self.number > 0 || now >= self.recalled.until {
            self.recalled = Recalled::default();
        }
        self.number = self.number.wrapping_add(1).max(1);
        self.began = now;
        let before = before();
        self.span = before.span.max(SPAN_MIN);
        self.is_known = before.count > 0;
        self.fair = in_a_minute(before.count / before.accounts.max(1), self.span);
    }

    /// An account was held to this when the process ended, `age` after the
    /// episode of that time had begun.
    pub fn recall(&mut self, now: Mono, per_minute: u32, age: Nanos) {
        self.recalled.sum += u64::from(per_minute);
        self.recalled.accounts += 1;
        self.recalled.aged = self.recalled.aged.max(age);
        self.recalled.until = self.recalled.until.max(now + WORTH.minus(age));
    }

    /// An account is blocked no more, or has left the pool.
    pub fn release(&mut self, now: Mono, id: AccountId) {
        if self.blocked.remove(&id) && self.blocked.is_empty() {
            self.ended = now;
        }
    }

    /// Whether any account is blocked.
    pub fn is_on(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// How many accounts are blocked.
    pub fn blocked(&self) -> usize {
        self.blocked.len()
    }

    /// Which episode it is.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// When it began.
    pub const fn began(&self) -> Mono {
        self.began
    }

    /// What an account may send in a minute, by what is known of it.
    pub fn allowed(&self, of: Sender) -> u64 {
        let Sender { floor, .. } = of;
        if !self.is_known {
            let Recalled { sum, accounts, .. } = self.recalled;
            let kept = of.kept.map(u64::from).or(sum.checked_div(accounts));
            return kept.map_or(u64::MAX, |kept| kept.max(floor));
        }
        let own = in_a_minute(of.count, self.span.max(of.span));
        let kept = if own.saturating_mul(2) < self.fair {
            self.fair
        } else {
            own
        };
        kept.max(floor)
    }

    /// How far caps have grown by now, in thousandths of their first size.
    pub fn growth(&self, now: Mono) -> u64 {
        let aged = match self.is_known {
            true => Nanos::ZERO,
            false => self.recalled.aged,
        };
        let over = (now.since(self.began) + aged).minus(KEPT);
        1_000 + over.0 / (GROWS.0 / 1_000)
    }
}

/// A count over `span` as one over a minute.
fn in_a_minute(count: u64, span: Nanos) -> u64 {
    if span >= SPAN_MAX {
        return count;
    }
    let scaled = u128::from(count) * u128::from(MINUTE.0) / u128::from(span.0.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

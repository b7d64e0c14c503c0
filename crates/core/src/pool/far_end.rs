//! What is known of the far end of sessions: failed connects, and how many
//! sessions and messages it puts up with.
//!
//! Connections to a destination end at a host of that destination, so this is
//! kept by account and lane. Connections to a relay all end at the same host
//! whatever they carry, so there it is kept by account.

use crate::adapt::connections::Connections;
use crate::time::Mono;

use super::Pool;
use super::place::{PairNo, Row};
use super::session::SessionNo;

/// What is known of one far end.
#[derive(Clone, Debug)]
pub(super) struct FarEnd {
    /// Connects that failed in a row.
    pub failures: u32,
    /// When the last of them failed.
    pub failed_at: Mono,
    /// No connect before then.
    pub backoff_until: Option<Mono>,
    /// So many sessions are welcome, as far as was found out.
    pub cap: u32,
    /// And so many messages on each.
    pub messages: u32,
    /// When the next is tried; a timer is set for it.
    pub tries_at: Mono,
    /// How that was found out.
    pub welcome: Option<Box<Connections>>,
}

impl Default for FarEnd {
    fn default() -> Self {
        Self {
            failures: 0,
            failed_at: Mono(0),
            backoff_until: None,
            cap: u32::MAX,
            messages: u32::MAX,
            tries_at: Mono::NEVER,
            welcome: None,
        }
    }
}

/// Where the far end of a session is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FarEndOf {
    Account(Row),
    Pair(PairNo),
}

impl Pool {
    /// Where the far end of an account's sessions for a lane is kept.
    pub(super) fn far_end_of(&self, row: Row, pair: PairNo) -> FarEndOf {
        match self.account(row).is_relay() {
            true => FarEndOf::Account(row),
            false => FarEndOf::Pair(pair),
        }
    }

    /// Where the far end of a session that opens or carries a message is kept.
    pub(super) fn far_end_of_session(&self, no: SessionNo) -> FarEndOf {
        let session = self.sessions.at(no);
        self.far_end_of(session.row, session.carried())
    }

    pub(super) fn far_end(&self, of: FarEndOf) -> &FarEnd {
        match of {
            FarEndOf::Account(row) => &self.account(row).far_end,
            FarEndOf::Pair(no) => &self.pair(no).far_end,
        }
    }

    pub(super) fn far_end_mut(&mut self, of: FarEndOf) -> &mut FarEnd {
        match of {
            FarEndOf::Account(row) => &mut self.account_mut(row).far_end,
            FarEndOf::Pair(no) => &mut self.pair_mut(no).far_end,
        }
    }

    /// Has the bits follow what changed of a far end.
    pub(super) fn refresh_far_end(&mut self, of: FarEndOf) {
        match of {
            FarEndOf::Account(row) => self.refresh_account(row),
            FarEndOf::Pair(no) => self.refresh_pair(no),
        }
    }

    /// A back-off may be over.
    pub(super) fn backoff_due(&mut self, now: Mono, of: FarEndOf) {
        let far_end = self.far_end_mut(of);
        if far_end.backoff_until.is_some_and(|until| until <= now) {
            far_end.backoff_until = None;
            self.refresh_far_end(of);
        }
    }
}

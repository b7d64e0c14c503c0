//! What a pool keeps of an account and a lane that have met.
//!
//! A pair exists from its first session, failed connect or shut limit on; all
//! others are only bits.

use crate::adapt::connections::Connections;
use crate::time::Mono;

use super::place::{Col, Row};
use super::session::List;
use super::settings::ClassMask;
use super::stats::Counts;

/// Whether a pair may open a session, as far as the pair is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opens {
    /// One is idle, or it is at its cap, backed off, or shut.
    No,
    /// It has none.
    First,
    /// All it has are busy: one more helps if the account has tokens to spare.
    More,
}

impl Opens {
    /// What a pair that never met may do.
    pub fn unmet(slots: bool) -> Self {
        if slots { Self::No } else { Self::First }
    }
}

/// One account and one lane.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub row: Row,
    pub col: Col,
    /// The classes that the limits of exactly this pair let through.
    pub product: ClassMask,
    /// Somebody paused this account at this destination.
    pub held: bool,
    pub counts: Counts,
    /// Idle sessions, used last first.
    pub idle: List,
    /// Connects that failed in a row.
    pub failures: u32,
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
    /// What the send gate sees: a session idle, the product open.
    pub able: ClassMask,
    /// What the connect gate sees.
    pub opens: Opens,
}

impl Pair {
    /// A pair that can do what its bits said before it met.
    pub fn new(row: Row, col: Col, able: ClassMask, opens: Opens) -> Self {
        Self {
            row,
            col,
            product: ClassMask::ALL,
            held: false,
            counts: Counts::default(),
            idle: List::EMPTY,
            failures: 0,
            backoff_until: None,
            cap: u32::MAX,
            messages: u32::MAX,
            tries_at: Mono::NEVER,
            welcome: None,
            able,
            opens,
        }
    }

    /// What a pair that never met is able to carry.
    pub fn able_unmet(slots: bool) -> ClassMask {
        if slots {
            ClassMask::ALL
        } else {
            ClassMask::NONE
        }
    }
}

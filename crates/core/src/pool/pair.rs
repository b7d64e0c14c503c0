//! What a pool keeps of an account and a lane that have met.
//!
//! A pair exists from its first session, failed connect or shut limit on; all
//! others are only bits.

use super::far_end::FarEnd;
use super::place::{Col, Row};
use super::session::List;
use super::settings::{ClassMask, SessionKind};
use super::stats::Counts;

/// Whether a pair may open a session, as far as the pair is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opens {
    /// One is idle, or it is at its cap, backed off, or shut.
    No,
    /// It has none, or the account's sessions carry for any lane.
    First,
    /// All it has are busy: one more helps if the account has tokens to spare.
    More,
}

impl Opens {
    /// What a pair that never met may do.
    pub fn unmet(kind: SessionKind) -> Self {
        match kind {
            SessionKind::Slots => Self::No,
            SessionKind::Connections | SessionKind::RelayConnections => Self::First,
        }
    }
}

/// One account and one lane.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub row: Row,
    pub col: Col,
    /// Its lane or its account is gone: its number is free.
    pub is_free: bool,
    /// The classes that the limits of exactly this pair let through.
    pub product: ClassMask,
    /// Somebody paused this account at this destination.
    pub held: bool,
    /// Sessions that carry or open for exactly this pair; those of a relay
    /// count here only meanwhile.
    pub counts: Counts,
    /// Idle sessions, used last first; those of a relay are the account's.
    pub idle: List,
    /// Where its connections end, unless the account is a relay.
    pub far_end: FarEnd,
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
            is_free: false,
            product: ClassMask::ALL,
            held: false,
            counts: Counts::default(),
            idle: List::EMPTY,
            far_end: FarEnd::default(),
            able,
            opens,
        }
    }

    /// What a pair that never met is able to carry.
    pub fn able_unmet(kind: SessionKind) -> ClassMask {
        match kind {
            SessionKind::Connections => ClassMask::NONE,
            SessionKind::RelayConnections | SessionKind::Slots => ClassMask::ALL,
        }
    }
}

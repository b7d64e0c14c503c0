//! What a pool does while some of its accounts are blocked.
//!
//! The obvious thing, to hand the share of the blocked accounts to the healthy
//! ones, is how one blocked account becomes five hundred: those that were near
//! their limit are pushed over it, are blocked in turn, and leave still more to
//! the rest. So each healthy account goes on as fast as in the minute before,
//! and no faster: if k of n accounts are blocked, the pool sends k/n less.
//!
//! In reading order: [`recent`] (what was sent in the last minute), [`cap`]
//! (the rate of a minute, held), [`episode`] (when caps hold, and which).

pub mod cap;
pub mod episode;
pub mod recent;

pub use cap::Cap;
pub use episode::{Before, Episode, Sender};
pub use recent::Recent;

use crate::time::Nanos;

/// Over how long the rate that is kept was measured.
pub const MINUTE: Nanos = Nanos::from_secs(60);

/// What healthy accounts do while others of their pool are blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnderPressure {
    /// They keep the rate of the minute before.
    #[default]
    Keep,
    /// They take over what the others would have sent, up to their own limits.
    Fill,
}

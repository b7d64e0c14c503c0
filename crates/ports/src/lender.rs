//! Tokens of the node's own limits, lent to those who send by themselves.
//!
//! On one machine the node counts its limits, durably where they are slow.
//! Whoever else takes from the same limits (the throttle) borrows here, so that
//! both together keep to them.

use outflow_core::class::Class;
use outflow_core::engine::lend::{Lent, Want};
use outflow_core::policy::key::LimitKey;
use outflow_core::time::Nanos;

use crate::intake::Then;

/// Lends tokens, all that are wanted together or none.
pub trait Lender: Send + Sync {
    /// Takes what is wanted, if all of it is there.
    fn lend(&self, wants: Vec<Want>, class: Class, then: Then<Lent>);

    /// Slots of concurrency limits come back, so many of each.
    fn give_back(&self, slots: Vec<(LimitKey, u32)>);

    /// Nothing of this limit is taken for so long, by anybody.
    fn pause(&self, key: LimitKey, lasts: Nanos);
}

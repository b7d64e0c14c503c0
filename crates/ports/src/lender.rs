//! Limits that the node counts for others, so that messages and whoever asks a
//! throttle share one count, and it is durable.

use outflow_core::class::Class;
use outflow_core::policy::applied::Applied;
use outflow_core::time::Nanos;

use crate::intake::Then;

/// One limit, and how much of it.
#[derive(Clone, Debug)]
pub struct Want {
    /// The limit.
    pub applied: Applied,
    /// How much is wanted.
    pub cost: u32,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// All was taken.
    Granted,
    /// Nothing was taken.
    Refused {
        /// Which of the limits had not enough, counted from 0.
        by: usize,
        /// When it is worth asking again.
        retry_after: Nanos,
    },
}

/// Takes from limits that the node keeps.
pub trait Lender: Send + Sync {
    /// Takes from all of these limits or from none.
    fn lend(&self, wants: Vec<Want>, class: Class, then: Then<Lent>);
}

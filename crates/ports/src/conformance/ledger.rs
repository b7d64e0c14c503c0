//! What every ledger must do.
//!
//! Reading order: [`Harness`], `fleet` (askers that use what they are granted
//! as late, as early and as carelessly as they may), then the cases:
//! `bounds` (never too much), `share` (never too little), `returns` (what
//! comes back, and what is held back).

mod bounds;
mod fleet;
mod returns;
mod share;

use outflow_core::time::{Mono, Nanos, Now};

use crate::ledger::Ledger;

/// How a suite drives a ledger.
pub trait Harness {
    /// A node's connection to the ledger.
    type Link: Ledger;

    /// Connects another node.
    fn link(&mut self) -> Self::Link;

    /// Both clocks, which all nodes share in this suite, and the ledger's
    /// calendar too.
    fn now(&self) -> Now;

    /// Time passes, on all clocks, up to this moment.
    fn advance(&mut self, to: Mono);

    /// The ledger loses its state and can notice that it did.
    fn lose_state(&mut self);

    /// How many seeds are tried where chance matters. In real time few: what is
    /// different each time is different anyway.
    fn seeds(&self) -> u64 {
        3
    }

    /// What must be used at least where an ideal machine would use so many: a
    /// busy one may keep askers from asking.
    fn least(&self, tokens: u64) -> u64 {
        tokens
    }

    /// By how much an asker may be late for a moment that it waits for. Spaced
    /// tokens are lost by it.
    fn late(&self) -> Nanos {
        Nanos::ZERO
    }
}

/// A named case over a fresh ledger.
pub type Case<H> = (&'static str, fn(&dyn Fn() -> H));

/// All cases.
pub fn cases<H: Harness>() -> Vec<Case<H>> {
    let mut cases: Vec<Case<H>> = Vec::new();
    cases.extend(bounds::cases());
    cases.extend(share::cases());
    cases.extend(returns::cases());
    cases
}

/// Runs all cases, each over fresh ledgers.
pub fn exercise<H: Harness>(make: impl Fn() -> H) {
    for (_, case) in cases() {
        case(&make);
    }
}

/// Runs the one case of this name. Whether there is one.
pub fn exercise_one<H: Harness>(name: &str, make: impl Fn() -> H) -> bool {
    let case = cases().into_iter().find(|(of, _)| *of == name);
    if let Some((_, case)) = case {
        case(&make);
    }
    case.is_some()
}

//! What every store must do.
//!
//! Reading order: [`Harness`], `bench` (how cases speak to a store), then the
//! cases: `durability`, `order`, `due`, `records`, `flows`, `content`,
//! `limits`.

mod bench;
mod content;
mod due;
mod durability;
mod flows;
mod limits;
mod order;
mod records;

use outflow_core::time::{Mono, Now};

use crate::store::Store;
use bench::Bench;

/// How a suite drives a store.
pub trait Harness {
    /// The store.
    type Store: Store;

    /// The store as it is now.
    fn store(&mut self) -> &mut Self::Store;

    /// Both clocks.
    fn now(&self) -> Now;

    /// Time passes, on both clocks, up to this moment.
    fn advance(&mut self, to: Mono);

    /// The process dies and starts again: all that is not durable is gone. The
    /// suite takes stock next.
    fn crash(&mut self);

    /// From now on commits fail, or no longer do.
    fn fail_commits(&mut self, failing: bool);

    /// From now on the disk is full, or no longer is. There is room for some
    /// records then, but for no messages.
    fn fill_disk(&mut self, full: bool);
}

/// A named case over a fresh store.
pub type Case<H> = (&'static str, fn(&dyn Fn() -> H));

/// All cases.
pub fn cases<H: Harness>() -> Vec<Case<H>> {
    let mut cases: Vec<Case<H>> = Vec::new();
    cases.extend(durability::cases());
    cases.extend(order::cases());
    cases.extend(due::cases());
    cases.extend(records::cases());
    cases.extend(flows::cases());
    cases.extend(content::cases());
    cases.extend(limits::cases());
    cases
}

/// Runs all cases, each over fresh stores.
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

/// A fresh store that has taken stock.
fn begin<H: Harness>(make: &dyn Fn() -> H) -> Bench<H> {
    let mut bench = Bench::new(make());
    let recovered = bench.recover();
    assert!(recovered.fresh, "an empty store starts for the first time");
    assert!(recovered.flows.is_empty(), "an empty store knows no flows");
    bench
}

//! A store and a ledger that live in memory and fail on demand.
//!
//! They keep the same contracts as the durable ones and pass the same suites,
//! but a crash, a slow disk or a lost answer happens when a scenario says so.
//! Nothing here reads a clock or makes entropy of its own.
//!
//! Reading order: [`window`] (when a fault holds), [`store`], [`ledger`].

pub mod ledger;
pub mod store;
pub mod window;

pub use ledger::MemoryLedger;
pub use store::MemoryStore;

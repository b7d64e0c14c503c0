//! The throttle as a service: a pure decision behind a lock, a clock, and one
//! thread that wakes whoever waited long enough.
//!
//! It decides nothing itself; see `outflow_core::throttle`. Most calls are a
//! lock, a look at the clock and a decision, on the caller's thread.
//!
//! Limits that a fleet shares are leased from its ledger; on a machine of its own
//! the node counts those of policies and those that must outlive a restart.
//!
//! Reading order: [`clock`], [`names`] (from what a caller asks to limits),
//! [`service`] (state and decisions), `port` (what callers reach), `lending`
//! (what the node counts), `turns` and `bell` (the thread), [`grants_log`],
//! [`counts`].

mod bell;
pub mod clock;
pub mod counts;
pub mod grants_log;
mod lending;
pub mod names;
mod port;
pub mod service;
mod turns;

pub use counts::Counts;
pub use service::{Link, Service, Settings, Wake};

//! The throttle as a service: a pure decision behind a lock, a clock, and one
//! thread that wakes whoever waited long enough.
//!
//! It decides nothing itself; see `outflow_core::throttle`. Most calls are a
//! lock, a look at the clock and a decision, on the caller's thread.
//!
//! Reading order: [`clock`], [`names`] (from what a caller asks to limits),
//! [`service`] (the port), `turns` (the thread), [`grants_log`], [`counts`].

pub mod clock;
pub mod counts;
pub mod grants_log;
pub mod names;
pub mod service;
mod turns;

pub use counts::Counts;
pub use service::{Service, Settings};

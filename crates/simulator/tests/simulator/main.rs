//! Whole runs: broken nodes that checkers must notice, runs that must repeat
//! themselves, and seeds that must stay silent.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod flows;
mod hidden;
mod observe;
mod pressure;
mod repeatable;
mod sabotage;
mod seeds;
mod sessions;
mod store;

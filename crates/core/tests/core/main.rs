//! What the decisions of Outflow must hold to: the one integration-test binary
//! of `outflow-core`.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod accounts;
mod adapt;
mod allowance;
mod breaker;
mod classify;
mod engine;
mod heads;
mod limits;
mod message_id;
mod meters;
mod policy;
mod pool;
mod pressure;
mod retry;
mod runbook;
mod schedule;
mod suppression;
mod tally;
mod warmup;

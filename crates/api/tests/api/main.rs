//! The API over ports in memory: what it takes, what it refuses, and to whom.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod book;
mod connections;
mod documents;
mod events;
mod fleet;
mod history;
#[allow(dead_code, reason = "the tests of feedback use the rest")]
#[path = "../../../feedback/tests/feedback/memory.rs"]
mod memory;
mod messages;
mod replays;
mod runbook;
mod scopes;
mod secrets;
mod shelves;
mod standstills;
mod submissions;
mod suppressions;
mod tenants;
mod throttle_pauses;
mod warm_ups;
mod world;

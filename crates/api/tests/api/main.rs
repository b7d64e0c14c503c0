//! The API over ports in memory: what it takes, what it refuses, and to whom.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod book;
mod connections;
mod documents;
mod events;
mod fleet;
mod messages;
mod replays;
mod runbook;
mod scopes;
mod shelves;
mod submissions;
mod tenants;
mod warm_ups;
mod world;

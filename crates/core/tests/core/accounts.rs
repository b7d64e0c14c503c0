//! What accounts may send, driven by events alone: limits behind the gate of a
//! pool, whom an account serves, and how its sessions open and close.

mod costs;
mod counts;
mod lend;
mod serving;
mod sessions;
mod unused;
mod welcome;
pub mod world;

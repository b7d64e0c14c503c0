//! Limits: one rule with one counter each.
pub mod need;
pub mod spec;

//! When to try again, and when to stop.
//!
//! Reading order: [`backoff`] (how long to wait), [`schedule`] (whether to wait
//! at all), [`budget`] (how many may try again at once), [`turns`] (when those who
//! may not look again), [`dead_letter`] (what
//! is kept of a message that was given up).

pub mod backoff;
pub mod budget;
pub mod dead_letter;
pub mod schedule;
pub mod turns;

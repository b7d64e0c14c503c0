//! Warming a sender up: a new address, or account, earns its reputation by
//! sending little at first and more each good day.
//!
//! A plan says how much by day; where a sender stands in it is its progress. A
//! day is judged when it is over: only one that was used and went well counts,
//! so a bad day is tried again. A plan that adapts goes on as fast as the day
//! went well, and back after a bad one. Days are those of UTC.
//!
//! In reading order: [`plan`] (how much on which day), [`progress`] (where a
//! sender stands).

pub mod plan;
pub mod progress;

pub use plan::{Per, Plan, Quota};
pub use progress::{Bar, Counted, Progress, Verdict};

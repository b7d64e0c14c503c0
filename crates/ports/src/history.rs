//! What was sent where, and at which rates, in slices of ten seconds: what a
//! post-mortem is drawn from.
//!
//! It is kept for people, not for decisions: written in batches off the way of
//! messages, so that a crash may cost the last slices, and nothing is written
//! of a slice in which nothing happened.

use outflow_core::time::{NANOS_PER_SECOND, Wall};

/// The length of a slice, in seconds.
pub const SLICE_S: u32 = 10;
/// The longest time that may be asked to be added up into one, in seconds.
pub const STEP_S_MAX: u32 = 86_400;

/// Attempts by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// All of them.
    pub attempts: u64,
    /// The far end took the message.
    pub accepted: u64,
    /// Refused for now, because of our rate or our standing.
    pub refused: u64,
    /// Refused for now for other reasons, or nobody knows.
    pub deferred: u64,
    /// Refused for good.
    pub bounced: u64,
}

impl Attempts {
    /// Adds others to them.
    pub fn add(&mut self, more: &Self) {
        self.attempts = self.attempts.saturating_add(more.attempts);
        self.accepted = self.accepted.saturating_add(more.accepted);
        self.refused = self.refused.saturating_add(more.refused);
        self.deferred = self.deferred.saturating_add(more.deferred);
        self.bounced = self.bounced.saturating_add(more.bounced);
    }
}

/// The first refusal of a slice, as an example of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// When it came.
    pub at: Wall,
    /// What it was about: `rate`, `reputation`.
    pub class: String,
    /// The SMTP or HTTP status, where there was one.
    pub code: Option<u16>,
    /// What the far end said, without anybody's address; empty if not known.
    pub said: String,
}

/// What happened at one destination in one slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// When it begins.
    pub at: Wall,
    /// As `isp:google`; `other` beyond the bound on destinations.
    pub destination: String,
    /// None for all accounts together. Single accounts are kept only where
    /// they were refused, and then with nothing but that count.
    pub account: Option<String>,
    /// What was counted.
    pub attempts: Attempts,
    /// The most attempts in ten seconds: those of the slice, or of the busiest
    /// one if several were added up.
    pub peak: u64,
    /// The first refusal, if there was one.
    pub refusal: Option<Refusal>,
}

/// A rate that is in force from a time on.
#[derive(Clone, Debug, PartialEq)]
pub struct RateInForce {
    /// From when on.
    pub at: Wall,
    /// Of which limit: `account:ses-1/isp:google`.
    pub limit: String,
    /// Which destination it is about.
    pub destination: String,
    /// Messages per second; 0 if it stands still, none if the limit is gone.
    pub rate: Option<f64>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Span {
    /// Slices that begin at this time or later,
    pub since: Wall,
    /// and before this one.
    pub until: Wall,
    /// Of this destination only.
    pub destination: Option<String>,
    /// So many seconds are added up; at least [`SLICE_S`].
    pub step_s: u32,
    /// No new step is begun when there are so many rows.
    pub rows_max: usize,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// By time, then by destination and account.
    pub slices: Vec<Slice>,
    /// By time, of each limit the last of each step. The last of a quarter of
    /// an hour before come with it, so that what was in force at the beginning
    /// is known wherever messages flowed.
    pub rates: Vec<RateInForce>,
    /// Ask again since this time; none at the end.
    pub next: Option<Wall>,
}

/// Why history cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the history cannot be read or written: {0}")]
pub struct HistoryError(pub String);

/// Keeps it. Calls wait for a disk.
pub trait History: Send + Sync {
    /// Adds slices and rates, all or nothing. What is counted twice for one
    /// slice is added up.
    fn write(&self, slices: &[Slice], rates: &[RateInForce]) -> Result<(), HistoryError>;

    /// What was kept.
    fn read(&self, span: &Span) -> Result<Page, HistoryError>;
}

/// The beginning of the slice or step that a time lies in.
pub fn beginning(at: Wall, step_s: u32) -> Wall {
    let step = i64::from(step_s.max(1)).saturating_mul(NANOS_PER_SECOND.cast_signed());
    Wall(at.0.div_euclid(step).saturating_mul(step))
}

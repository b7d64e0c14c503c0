//! How long and how often to try.

use outflow_core::retry::backoff::{Backoff, Jitter};
use outflow_core::retry::schedule::{OnUncertain, RetryPolicy, RetrySchedules};
use outflow_core::time::Nanos;

use super::machine::span;
use super::traffic::permille;
use crate::problem::Problems;
use crate::raw::{RawRetry, RawSchedule};

/// How long and how often to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// By channel and class.
    pub schedules: RetrySchedules,
    /// Retries per thousand first attempts, of each tenant and campaign.
    pub budget_permille: u32,
    /// How many a minute each may make in any case.
    pub budget_floor: u32,
    /// What becomes of a message whose answer was lost.
    pub on_uncertain: OnUncertain,
    /// When an answer counts as lost.
    pub uncertain_after: Nanos,
}

pub(super) fn of(raw: &RawRetry, problems: &mut Problems) -> Retry {
    let mut schedule = |raw, name: &str| schedule(raw, &format!("/retry/{name}"), problems);
    Retry {
        schedules: RetrySchedules {
            email: schedule(&raw.email, "email"),
            critical: schedule(&raw.critical, "critical"),
            api: schedule(&raw.api, "api"),
        },
        budget_permille: u32::from(permille(&raw.budget)),
        budget_floor: raw.budget_floor,
        on_uncertain: match raw.on_uncertain.as_str() {
            "dead" => OnUncertain::Dead,
            _ => OnUncertain::Retry {
                lost_max: raw.uncertain_attempts,
            },
        },
        uncertain_after: span(&raw.uncertain_after),
    }
}

fn schedule(raw: &RawSchedule, at: &str, problems: &mut Problems) -> RetryPolicy {
    let backoff = Backoff {
        first: span(&raw.first),
        factor_milli: (raw.factor * 1_000.0).round() as u32,
        cap: span(&raw.cap),
        jitter: match raw.jitter.as_str() {
            "none" => Jitter::None,
            "equal" => Jitter::Equal,
            "decorrelated" => Jitter::Decorrelated,
            _ => Jitter::Full,
        },
    };
    if backoff.first > backoff.cap {
        problems.add(format!("{at}/first"), "must not be longer than cap");
    }
    let give_up_after = span(&raw.give_up_after);
    if give_up_after < backoff.first {
        problems.add(
            format!("{at}/give_up_after"),
            "is shorter than first: nothing would be tried again",
        );
    }
    RetryPolicy {
        backoff,
        attempts: raw.attempts,
        give_up_after: Some(give_up_after),
    }
}

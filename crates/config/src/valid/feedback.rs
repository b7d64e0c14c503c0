//! What comes back, and who is not sent to any more.

use outflow_core::suppression::surge::SurgeRule;

use super::traffic::permille;
use crate::raw::RawFeedback;

/// What comes back, and who is not sent to any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Where reports return to.
    pub bounce_domain: Option<String>,
    /// Entries of the suppression list.
    pub suppressions_max: u64,
    /// When bounces are doubted.
    pub surge: SurgeRule,
}

pub(super) fn of(raw: &RawFeedback) -> Feedback {
    Feedback {
        bounce_domain: raw.bounce_domain.clone(),
        suppressions_max: raw.suppressions_max,
        surge: SurgeRule {
            permille: u32::from(permille(&raw.surge_share)),
            least: raw.surge_least,
            times_usual: raw.surge_times,
        },
    }
}

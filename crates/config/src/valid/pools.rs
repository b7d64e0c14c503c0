//! What accounts do when they, or others, are in trouble.

use outflow_core::breaker::BreakerSettings;
use outflow_core::pool::PoolSettings;
use outflow_core::pressure::UnderPressure;

use super::machine::span;
use super::traffic::permille;
use crate::problem::Problems;
use crate::raw::{RawBreaker, RawPools};

/// How pools keep their sessions, and what they do while accounts are blocked.
pub(super) fn pool(raw: &RawPools) -> PoolSettings {
    PoolSettings {
        under_pressure: match raw.under_pressure.as_str() {
            "fill" => UnderPressure::Fill,
            _ => UnderPressure::Keep,
        },
        adapt_concurrency: raw.adapt_concurrency,
        ..PoolSettings::default()
    }
}

/// When accounts are left alone.
pub(super) fn breaker(raw: &RawBreaker, problems: &mut Problems) -> BreakerSettings {
    let settings = BreakerSettings {
        enabled: raw.enabled,
        failures: raw.failures,
        share_permille: u32::from(permille(&raw.share)),
        open_for: span(&raw.open_for),
        open_max: span(&raw.open_max),
        refusals_permille: u32::from(permille(&raw.refusals)),
        refusals_least: raw.refusals_least,
        stop_for: span(&raw.stop_for),
    };
    if settings.open_for > settings.open_max {
        problems.add("/breaker/open_for", "must not be longer than open_max");
    }
    settings
}

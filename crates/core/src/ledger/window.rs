//! Sliding window over a fleet: at most `count` used in any `window`.
//!
//! Tokens debited at `d` are used in `[d, d + L]`, so what is used in one window
//! was debited in `window + L`: the ledger counts over that.

use super::settings::{Settings, paid};
use super::terms::{Leasing, Terms};
use crate::limit::LimitSpec;
use crate::time::Nanos;

/// The part of a window that a lease may live, and so the part of the rate that
/// is given up.
const LIVES: u64 = 64;

/// The terms of a window whose largest cost is `cost`.
pub fn terms(settings: &Settings, count: u32, window: Nanos, cost: u32) -> Terms {
    if cost > count {
        return Terms::Never;
    }
    let life = Nanos(window.0 / LIVES).min(settings.life_max);
    let life = life.max(settings.life_min());
    let window = window + paid(life);
    let inner = LimitSpec::SlidingWindow { count, window };
    Terms::Leases(Leasing { inner, life })
}

//! Token bucket over a fleet: at most `burst + rate * T` used in any time `T`.
//!
//! Tokens are debited at `d` and used in `[d, d + L]`, so what is used in a time
//! `T` was debited in `T + L`. The ledger's bucket therefore holds only
//! `burst - rate * L`: `(burst - rate * L) + rate * (T + L) = burst + rate * T`.
//! `L` takes half of what the floor and the largest cost leave of the burst.
//! Where that is shorter than a few round trips, tokens are leased in spaced
//! runs instead.

use super::settings::{Settings, paid};
use super::spaced::Spacing;
use super::terms::{Leasing, Terms};
use crate::class::Class;
use crate::limit::{Headroom, LimitSpec, Need, Rate};
use crate::time::Nanos;

/// The terms of a bucket whose largest cost is `cost`.
pub fn terms(
    settings: &Settings,
    (rate, burst): (Rate, u32),
    headroom: Headroom,
    cost: u32,
) -> Terms {
    if cost > burst {
        return Terms::Never;
    }
    let spare = u64::from(burst - cost).saturating_sub(kept(headroom, Class::Low, burst).ceil());
    let life = Nanos(rate.time_for(spare).0 / 2).min(settings.life_max);
    let holds = u64::from(burst).saturating_sub(accrued(rate, paid(life)));
    let holds = u32::try_from(holds).unwrap_or(0);
    if life < settings.life_min() || holds < cost {
        let slack = rate.time_for(u64::from(burst - cost));
        let overlap = slack.min(settings.life_min());
        return Terms::Runs(Spacing { rate, overlap });
    }
    let inner = LimitSpec::TokenBucket { rate, burst: holds };
    Terms::Leases(Leasing { inner, life })
}

/// What `class` must leave in a bucket that holds `holds` of its `burst`. The
/// largest cost must still find its way, and a lease of more than one.
pub fn floor(headroom: Headroom, class: Class, burst: u32, holds: u32, cost: u32) -> Need {
    let most = Need::whole(holds).minus(Need::whole(cost.saturating_mul(2)));
    kept(headroom, class, burst).min(most)
}

fn kept(headroom: Headroom, class: Class, burst: u32) -> Need {
    Need(headroom.above(class).saturating_mul(u64::from(burst)))
}

/// Tokens that accrue in a time, rounded up.
fn accrued(rate: Rate, time: Nanos) -> u64 {
    let tokens = u128::from(rate.count) * u128::from(time.0);
    let tokens = tokens.div_ceil(u128::from(rate.per.0.max(1)));
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

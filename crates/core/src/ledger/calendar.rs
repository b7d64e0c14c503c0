//! Calendar window over a fleet: at most `count` used between two boundaries.
//!
//! No lease lives across a boundary of the ledger's calendar: near one, leases
//! become short, and right before it there are none.

use super::settings::{Settings, paid_with};
use super::terms::{Leasing, Terms};
use crate::class::Class;
use crate::limit::spec::{Period, Zone};
use crate::limit::{Headroom, LimitSpec, Need};
use crate::time::{Nanos, Wall};

/// The terms of a quota whose largest cost is `cost`.
pub fn terms(settings: &Settings, spec: &LimitSpec, cost: u32) -> Terms {
    if cost > spec.capacity() {
        return Terms::Never;
    }
    Terms::Leases(Leasing {
        inner: spec.clone(),
        life: settings.life_max,
    })
}

/// How long a lease may live at `wall`; the time to the boundary if that is too
/// short to be of use.
pub fn life(
    settings: &Settings,
    wall: Wall,
    (period, zone): (Period, &Zone),
) -> Result<Nanos, Nanos> {
    let (_, end) = period.around(wall, zone);
    let left = end.since(wall);
    let life = paid_with(left).min(settings.life_max);
    if life < settings.life_min() {
        return Err(left);
    }
    Ok(life)
}

/// What `class` must leave at `wall`: the share kept for the classes above, as
/// much of it as there is time left.
pub fn floor(
    headroom: Headroom,
    class: Class,
    wall: Wall,
    (count, period, zone): (u32, Period, &Zone),
    cost: u32,
) -> Need {
    let (start, end) = period.around(wall, zone);
    let kept = u128::from(headroom.above(class)) * u128::from(count);
    let left = kept * u128::from(end.since(wall).0);
    let left = left / u128::from(end.since(start).0.max(1));
    let left = Need(u64::try_from(left).unwrap_or(u64::MAX));
    left.min(Need::whole(count.saturating_sub(cost)))
}

/// How long until the floor has melted so far that `room` tokens, in
/// thousandths, cover it; at the latest when the next period begins.
pub fn melts_in(
    headroom: Headroom,
    class: Class,
    wall: Wall,
    (count, period, zone): (u32, Period, &Zone),
    room: Need,
) -> Nanos {
    let (start, end) = period.around(wall, zone);
    let kept = u128::from(headroom.above(class)) * u128::from(count);
    let covered = u128::from(room.0) * u128::from(end.since(start).0) / kept.max(1);
    let covered = Nanos(u64::try_from(covered).unwrap_or(u64::MAX));
    end.since(wall).minus(covered) + Nanos(1)
}

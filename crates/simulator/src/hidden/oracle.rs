//! The all-knowing sender: what could have been delivered.

use outflow_core::time::{Nanos, Wall};

use super::provider::{capacity, window_of, worth};
use super::spec::ProviderSpec;

/// What a sender delivers that knows the provider and is never refused, but by
/// chance, from `from` to `until`, if it has behaved since the beginning.
pub fn delivered(
    spec: &ProviderSpec,
    full: f64,
    wall_at_zero: Wall,
    from: Nanos,
    until: Nanos,
) -> f64 {
    let mut standing = spec.standing.map_or(1.0, |standing| standing.starts.0);
    let mut review_at = spec
        .standing
        .map_or(Nanos::MAX, |standing| standing.reviewed.0);
    let has_rate = spec.bucket.is_some() || spec.connections.is_some();
    let mut left = 0.0;
    let mut window = i64::MIN;
    let mut sum = 0.0;
    let second = Nanos::from_secs(1);
    let mut now = Nanos::ZERO;
    while now < until {
        let wall = wall_at_zero + now;
        if let Some(spec) = spec.standing
            && now >= review_at
        {
            standing = (standing * (1.0 + spec.gains.0)).min(1.0);
            review_at = review_at + spec.reviewed.0;
        }
        let mut sent = full * spec.shape.factor(wall) * standing;
        if now == Nanos::ZERO
            && let Some(bucket) = spec.bucket
        {
            sent += capacity(bucket.burst.0, sent);
        }
        if let Some(spec) = spec.window {
            let (number, _) = window_of(wall, spec);
            if number != window {
                window = number;
                left = worth(spec, full) as f64;
            }
            // Where only the count is limited, all of it goes at once.
            sent = if has_rate { sent.min(left) } else { left };
            left -= sent;
        }
        if spec.greylist.is_some() {
            sent *= 0.5;
        }
        sent *= 1.0 - spec.noise.0;
        if now >= from {
            sum += sent;
        }
        now = now + second;
    }
    sum
}

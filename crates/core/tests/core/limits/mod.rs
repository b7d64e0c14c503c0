//! Every algorithm held to its guarantee, over every interval, by a reference
//! that knows only the grants.

mod calendar_window;
mod concurrency;
mod debits;
mod leaky_bucket;
mod lease;
mod parse;
mod reserve;
mod restart;
mod sliding_window;
mod token_bucket;

use outflow_core::class::Class;
use outflow_core::entropy::Entropy;
use outflow_core::limit::{Fill, Headroom, Limit, LimitSpec, Need, Until};
use outflow_core::time::{Mono, Nanos, Now, Wall};
use proptest::prelude::ProptestConfig;

pub const SECOND: u64 = 1_000_000_000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;
pub const DAY: u64 = 24 * HOUR;

/// 2026-01-01T00:00:00Z.
pub const NEW_YEAR: i64 = 1_767_225_600 * SECOND as i64;

/// Ten thousand cases, unless the environment asks for another number.
pub fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: cases.and_then(|text| text.parse().ok()).unwrap_or(10_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Both clocks, `nanos` after they were started at new year.
pub fn at(nanos: u64) -> Now {
    Now {
        mono: Mono(nanos),
        wall: Wall(NEW_YEAR) + Nanos(nanos),
        entropy: Entropy(0),
    }
}

/// The same clocks when the monotonic one shows `mono`.
pub fn later(now: &Now, mono: Mono) -> Now {
    Now {
        mono,
        wall: now.wall_at(mono),
        ..*now
    }
}

pub fn spec(text: &str) -> LimitSpec {
    LimitSpec::parse(text).expect("a limit")
}

/// A limit of which nothing was used, as a node makes it: what it must reserve
/// is not reserved yet.
pub fn fresh(spec: LimitSpec, now: &Now) -> Limit {
    Limit::owned(spec, Headroom::default(), now, Fill::Full)
}

/// A fresh limit that its algorithm alone holds back.
pub fn full(spec: LimitSpec, now: &Now) -> Limit {
    let mut limit = fresh(spec, now);
    promise_all(&mut limit);
    limit
}

/// Reserves more than any test takes, once and for all.
pub fn promise_all(limit: &mut Limit) {
    limit.expect_cost(1_000_000);
    limit.reserve_asked(u32::MAX);
    limit.reserve_committed(u32::MAX);
}

/// Takes `cost` if it fits.
pub fn try_take(limit: &mut Limit, now: &Now, cost: u32) -> bool {
    let fits = limit.fits(now, Class::Normal, Need::whole(cost));
    if fits {
        limit.take(now, Class::Normal, cost);
    }
    fits
}

/// `until` is the first nanosecond at which `need` fits.
pub fn until_is_exact(limit: &Limit, now: &Now, need: Need) -> Until {
    let until = limit.until(now, Class::Normal, need);
    let fits_at = |mono| limit.fits(&later(now, mono), Class::Normal, need);
    match until {
        Until::Now => assert!(fits_at(now.mono)),
        Until::At(Mono::NEVER) => assert!(!fits_at(now.mono)),
        Until::At(time) => {
            assert!(time > now.mono);
            assert!(fits_at(time), "does not fit at {time:?}");
            assert!(!fits_at(Mono(time.0 - 1)), "fits before {time:?}");
        }
        Until::Never => assert!(need > Need::whole(limit.spec().capacity())),
        Until::Released | Until::Granted => assert!(!fits_at(now.mono)),
    }
    until
}

/// When a need fits, by the limit's own word.
pub fn fits_from(limit: &Limit, now: &Now, need: Need) -> Option<Now> {
    match limit.until(now, Class::Normal, need) {
        Until::Now => Some(*now),
        Until::At(Mono::NEVER) => None,
        Until::At(time) => Some(later(now, time)),
        Until::Released | Until::Granted | Until::Never => None,
    }
}

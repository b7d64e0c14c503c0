//! Whether what was used kept the guarantee of its limit, over every interval.

use std::collections::BTreeMap;

use outflow_core::limit::LimitSpec;
use outflow_core::time::{Mono, Wall};

/// Tokens used at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// When, on a clock that all users share.
    pub mono: Mono,
    /// When, by the calendar of the limit.
    pub wall: Wall,
    /// How many.
    pub tokens: u32,
}

/// Says where uses, in order of time, broke the guarantee of `spec`.
pub fn check(spec: &LimitSpec, uses: &[Use]) -> Result<(), String> {
    match spec {
        LimitSpec::TokenBucket { .. } => check_bucket(spec, uses),
        LimitSpec::LeakyBucket { rate } => {
            let pairs = uses.iter().zip(uses.iter().skip(1));
            for (earlier, later) in pairs {
                let gap = later.mono.since(earlier.mono);
                let least = rate.time_for(u64::from(earlier.tokens));
                if gap.0 + 1 < least.0 {
                    return Err(format!("a gap of {gap}, at {:?}", later.mono));
                }
            }
            Ok(())
        }
        LimitSpec::SlidingWindow { count, window } => {
            let mut held = std::collections::VecDeque::new();
            let mut tokens = 0;
            for now in uses {
                held.push_back(*now);
                tokens += u64::from(now.tokens);
                while let Some(gone) =
                    held.pop_front_if(|old: &mut Use| now.mono.since(old.mono) >= *window)
                {
                    tokens -= u64::from(gone.tokens);
                }
                if tokens > u64::from(*count) {
                    return Err(format!("{tokens} in a window, at {:?}", now.mono));
                }
            }
            Ok(())
        }
        LimitSpec::CalendarWindow {
            count,
            period,
            zone,
        } => {
            let mut spans = BTreeMap::new();
            for now in uses {
                let used = spans.entry(period.around(now.wall, zone)).or_insert(0);
                *used += now.tokens;
                if *used > *count {
                    return Err(format!("{used} in a period, at {:?}", now.wall));
                }
            }
            Ok(())
        }
        LimitSpec::Concurrency { .. } => Ok(()),
    }
}

/// A full bucket that is never allowed to go below nothing says the same as all
/// intervals together.
fn check_bucket(spec: &LimitSpec, uses: &[Use]) -> Result<(), String> {
    let LimitSpec::TokenBucket { rate, burst } = spec else {
        return Ok(());
    };
    let unit = u128::from(rate.per.0);
    let full = u128::from(*burst) * unit;
    let (mut level, mut at) = (full, Mono(0));
    for now in uses {
        let accrued = u128::from(now.mono.since(at).0) * u128::from(rate.count);
        level = (level + accrued).min(full);
        at = now.mono;
        let Some(left) = level.checked_sub(u128::from(now.tokens) * unit) else {
            return Err(format!("more than the bucket holds, at {:?}", now.mono));
        };
        level = left;
    }
    Ok(())
}

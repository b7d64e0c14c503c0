//! A restart never sends faster.
//!
//! A bucket that a node owns and that fills within five seconds starts empty
//! after a crash, so what follows is bound by the rate alone until it has
//! filled. Slower buckets and windows count on in the meters of `limits`, which
//! do not notice a crash. What was learnt comes back no higher than it was.

use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::name::Name;
use outflow_core::time::Nanos;

use super::Findings;
use crate::meter::Tolerance;
use crate::meter::bucket::Bucket;
use crate::trace::{Cause, Checker, LimitNo, Observer, Trace, Violation};

/// Buckets that fill faster than this start empty.
const SHORT: Nanos = Nanos::from_secs(5);

struct Row {
    key: Name,
    leased: bool,
    spec: LimitSpec,
    /// Whether it ever granted anything: one that did not may start full.
    used: bool,
    /// The bucket since the last restart, if there was one.
    since_restart: Option<Bucket>,
}

/// See the module.
pub struct Restart {
    tolerance: Tolerance,
    rows: Vec<Option<Row>>,
    findings: Findings,
}

impl Restart {
    /// Clocks within `tolerance` are not blamed.
    pub fn new(tolerance: Tolerance) -> Self {
        Self {
            tolerance,
            rows: Vec::new(),
            findings: Findings::of("restart"),
        }
    }

    fn declare(&mut self, limit: LimitNo, key: &Name, spec: &LimitSpec, leased: bool) {
        let index = limit as usize;
        if self.rows.len() <= index {
            self.rows.resize_with(index + 1, || None);
        }
        if let Some(slot) = self.rows.get_mut(index) {
            *slot = Some(Row {
                key: key.clone(),
                leased,
                spec: spec.clone(),
                used: false,
                since_restart: None,
            });
        }
    }

    fn restarted(&mut self, at: Nanos) {
        let counted = |row: &&mut Row| row.used && !row.leased;
        for row in self.rows.iter_mut().flatten().filter(counted) {
            if let LimitSpec::TokenBucket { rate, burst } = row.spec
                && rate.time_for(u64::from(burst)) <= SHORT
            {
                row.since_restart = Some(Bucket::empty(at, rate, burst, self.tolerance.drift_ppm));
            }
        }
    }

    fn take(&mut self, at: Nanos, limit: LimitNo, cost: u32) {
        let Some(Some(row)) = self.rows.get_mut(limit as usize) else {
            return;
        };
        row.used = true;
        let Some(bucket) = &mut row.since_restart else {
            return;
        };
        if let Err(excess) = bucket.take(at, cost) {
            let key = &row.key;
            self.findings.add(at, || {
                format!("{key} sends faster after a restart: {excess}")
            });
        } else if bucket.full_since(at).is_some() {
            row.since_restart = None;
        }
    }

    fn change(&mut self, at: Nanos, limit: LimitNo, spec: &LimitSpec, cause: Cause) {
        let Some(Some(row)) = self.rows.get_mut(limit as usize) else {
            return;
        };
        if cause == Cause::Restored
            && let (Some(old), Some(new)) = (rate_of(&row.spec), rate_of(spec))
            && faster(new, old)
        {
            let key = &row.key;
            self.findings.add(at, || {
                format!(
                    "{key} came back with {} per {}, it had {} per {}",
                    new.count, new.per, old.count, old.per
                )
            });
        }
        if let (Some(bucket), LimitSpec::TokenBucket { rate, burst }) =
            (&mut row.since_restart, spec)
        {
            bucket.change(at, *rate, *burst);
        }
        row.spec = spec.clone();
    }
}

fn rate_of(spec: &LimitSpec) -> Option<Rate> {
    match spec {
        LimitSpec::TokenBucket { rate, .. } | LimitSpec::LeakyBucket { rate } => Some(*rate),
        _ => None,
    }
}

fn faster(new: Rate, old: Rate) -> bool {
    u128::from(new.count) * u128::from(old.per.0) > u128::from(old.count) * u128::from(new.per.0)
}

impl Observer for Restart {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        match *trace {
            Trace::Limit {
                limit,
                key,
                spec,
                leased,
            } => self.declare(limit, key, spec, leased),
            Trace::LimitChanged { limit, spec, cause } => self.change(at, limit, spec, cause),
            Trace::Restarted { .. } => self.restarted(at),
            Trace::Dispatched { cost, limits, .. } => {
                for limit in limits {
                    self.take(at, *limit, cost);
                }
            }
            _ => {}
        }
    }
}

impl Checker for Restart {
    fn name(&self) -> &'static str {
        "restart"
    }

    fn finish(&mut self, at: Nanos, _drained: bool) -> Vec<Violation> {
        self.findings.take(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{bucket, found, limit, ms, sent};
    use super::*;

    fn after_restart(at: &[u64]) -> Vec<String> {
        let mut checker = Restart::new(Tolerance::default());
        limit(&mut checker, 0, &bucket(10, 5));
        for message in 0..5 {
            checker.observe(ms(0), &sent(message, 1, &[0]));
        }
        checker.observe(ms(5_000), &Trace::Crashed { node: 0 });
        checker.observe(ms(9_000), &Trace::Restarted { node: 0 });
        for (message, at) in at.iter().enumerate() {
            checker.observe(ms(9_000 + at), &sent(5 + message as u64, 1, &[0]));
        }
        found(&mut checker, ms(99_999))
    }

    #[test]
    fn a_bucket_that_starts_empty_is_silent() {
        assert!(after_restart(&[100, 200, 300, 400, 500]).is_empty());
        assert!(after_restart(&[500, 500, 500, 500, 500]).is_empty());
    }

    #[test]
    fn a_bucket_that_starts_full_speaks() {
        let found = after_restart(&[0, 100]);
        assert_eq!(
            found,
            ["limit:0 sends faster after a restart: 1.000 tokens too many"]
        );
    }

    #[test]
    fn a_forgotten_cut_speaks() {
        let mut checker = Restart::new(Tolerance::default());
        limit(&mut checker, 0, &bucket(10, 5));
        for (count, cause) in [
            (5, Cause::Learnt),
            (5, Cause::Restored),
            (10, Cause::Restored),
        ] {
            let spec = bucket(count, 5);
            let change = Trace::LimitChanged {
                limit: 0,
                spec: &spec,
                cause,
            };
            checker.observe(ms(1), &change);
        }
        let found = found(&mut checker, ms(2));
        assert_eq!(
            found,
            ["limit:0 came back with 10 per 1.0s, it had 5 per 1.0s"]
        );
    }
}

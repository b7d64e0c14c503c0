//! The caps of an account: its list, and the three fields that are another way
//! to write windows.

use outflow_core::limit::spec::LimitSpec;
use outflow_core::policy::facet::Facet;
use outflow_core::time::Nanos;

use super::raw::RawAccount;
use crate::problem::Problems;

const MINUTE: Nanos = Nanos::from_secs(60);
const HOUR: Nanos = Nanos::from_secs(3_600);
const DAY: Nanos = Nanos::from_secs(86_400);

/// The caps of an account. Nothing and 0 set none.
pub(super) fn of(raw: &RawAccount, problems: &mut Problems) -> Vec<LimitSpec> {
    let listed = raw.limits.iter().flatten();
    let mut limits: Vec<LimitSpec> = listed
        .filter_map(|limit| LimitSpec::parse(&limit.text()).ok())
        .collect();
    let fields = [
        ("limit_per_minute", raw.limit_per_minute, MINUTE),
        ("limit_per_hour", raw.limit_per_hour, HOUR),
        ("limit_per_day", raw.limit_per_day, DAY),
    ];
    for (field, count, window) in fields {
        let Some(count) = count.filter(|count| *count > 0) else {
            continue;
        };
        if limits
            .iter()
            .any(|limit| Facet::of(limit) == Facet::Window(window))
        {
            problems.add(
                format!("/{field}"),
                "limits already has such a window: leave out one of the two",
            );
        }
        limits.push(LimitSpec::SlidingWindow { count, window });
    }
    limits
}

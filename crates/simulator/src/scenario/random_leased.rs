//! What random scenarios keep out of worlds with a ledger: windows, and slots over
//! several nodes.
//!
//! Each kind is drawn from a stream of its own: all other worlds stay what they
//! were without it.

use outflow_core::time::Nanos;

use super::limit::{LimitData, PeriodText};
use super::policy::PolicyData;
use super::{Ledger, Scenario};
use crate::random::Random;
use crate::units::Span;

/// Adds to worlds with a ledger what the scenarios that they begin as do not have.
pub(super) fn add_leased_limits(scenario: &mut Scenario, seed: u64) {
    if scenario.ledger == Ledger::Leased {
        add_windows(
            scenario,
            &mut Random::named(seed, "random-world-windows", 0),
        );
        add_slots(scenario, &mut Random::named(seed, "random-world-slots", 0));
    }
}

fn add_windows(scenario: &mut Scenario, random: &mut Random) {
    if random.chance(0.4) {
        let count = random.between(20, 200) as u32;
        let window = Span(Nanos::from_millis(random.between(1_000, 20_000)));
        let mut tenant = PolicyData::about("tenant", "*");
        tenant.limits.push(LimitData::Sliding { count, window });
        scenario.policies.push(tenant);
    }
    if random.chance(0.2) {
        let mut campaign = PolicyData::about("campaign", "*");
        campaign.limits.push(LimitData::Calendar {
            count: random.between(100, 1_000) as u32,
            period: PeriodText::Minute,
            zone: None,
        });
        scenario.policies.push(campaign);
    }
}

/// A node that cannot ask for its slots again for three seconds goes on with what
/// it has in flight, and others are given its slots: so there are none where a
/// node may be silent for so long.
fn add_slots(scenario: &mut Scenario, random: &mut Random) {
    let faults = &scenario.faults;
    let is_cut_off = !faults.ledger.stalls.is_empty() || !faults.ledger.partitions.is_empty();
    if scenario.nodes > 1 && (is_cut_off || !faults.pauses.is_empty()) {
        return;
    }
    for policy in &mut scenario.policies {
        if policy.rate.is_some() && random.chance(0.3) {
            policy.concurrency = Some(random.between(5, 12) as u32);
        }
    }
}

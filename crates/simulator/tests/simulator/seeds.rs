//! Seeds of random faults that once found something. They stay silent.

use outflow_simulator::scenario::random::random_faults;
use outflow_simulator::simulate::run;

/// A seed, and what it found.
const SEEDS: &[(u64, &str)] = &[(9, "nothing: it was silent from the first run on")];

#[test]
fn what_was_once_found_stays_fixed() {
    for (seed, what) in SEEDS {
        let (_, violations) = run(&random_faults(*seed), *seed).unwrap();
        let first = violations.first();
        assert!(first.is_none(), "seed {seed} ({what}): {first:?}");
    }
}

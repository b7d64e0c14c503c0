use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::conformance::store::{self, Harness};
use outflow_store_embedded::Settings;
use outflow_store_embedded::disk::simulated::Shares;
use std::sync::atomic::Ordering::SeqCst;

use super::{Faults, RealStore};
use crate::memory::window::Window;

/// A new year, so that wall clocks look like wall clocks.
const NEW_YEAR: i64 = 1_767_225_600_000_000_000;

/// The real store, driven by a suite in virtual time.
struct Virtual {
    store: RealStore,
    mono: Mono,
}

impl Virtual {
    fn new(faults: Faults, seed: u64) -> Self {
        let settings = Settings {
            envelope_segment_bytes: 8 << 10,
            body_segment_bytes: 16 << 10,
            slack_bytes: 8 << 10,
            reading_grace: Nanos::from_secs(1),
            ..Settings::default()
        };
        Self {
            store: RealStore::new(settings, faults, seed),
            mono: Mono(Nanos::from_secs(10).0),
        }
    }
}

impl Harness for Virtual {
    type Store = RealStore;

    fn store(&mut self) -> &mut RealStore {
        &mut self.store
    }

    fn now(&self) -> Now {
        Now {
            mono: self.mono,
            wall: Wall(NEW_YEAR) + Nanos(self.mono.0),
            entropy: Entropy(0),
        }
    }

    fn advance(&mut self, to: Mono) {
        self.mono = self.mono.max(to);
    }

    fn crash(&mut self) {
        self.store.crash();
    }

    fn fail_commits(&mut self, failing: bool) {
        self.store.mood().failing.store(failing, SeqCst);
    }

    fn fill_disk(&mut self, full: bool) {
        let always = full.then_some(Window::ALWAYS);
        self.store.faults.full = always.into_iter().collect();
    }
}

#[test]
fn a_plain_disk() {
    store::exercise(|| Virtual::new(Faults::default(), 1));
}

#[test]
fn a_slow_disk_that_loses_power_in_the_middle_of_something() {
    for seed in 0..20 {
        let faults = Faults {
            commit_min: Nanos(10_000),
            commit_max: Nanos::from_millis(4),
            slow_permille: 50,
            slow_commit: Nanos::from_millis(80),
            power_permille: 500,
            cut_short_permille: 300,
            torn_permille: 700,
            record_permille: 100,
            reboots: seed % 2 == 0,
            ..Faults::default()
        };
        store::exercise(|| Virtual::new(faults.clone(), seed));
    }
}

#[test]
fn what_was_drawn_does_not_differ_between_runs() {
    let run = || {
        let shares = Shares {
            remove: 20,
            ..Shares::default()
        };
        let faults = Faults {
            commit_max: Nanos::from_millis(4),
            power_permille: 500,
            torn_permille: 700,
            shares,
            ..Faults::default()
        };
        let mut store = Virtual::new(faults, 7);
        let mut bytes = Vec::new();
        for _ in 0..5 {
            use outflow_ports::store::Store;
            use outflow_store_embedded::disk::Disk;
            let now = store.now();
            store.store.recover(&now);
            store.store.complete(&now, &mut Vec::new());
            store.crash();
            let platter = store.store.platter().clone();
            for name in platter.list().unwrap() {
                bytes.push((platter.bytes(&name), name));
            }
        }
        bytes
    };
    assert_eq!(run(), run());
}

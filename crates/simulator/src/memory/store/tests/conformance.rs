use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::conformance::store::{self, Harness};
use outflow_ports::store::Store;

use crate::memory::store::{Faults, MemoryStore, Settings};
use crate::memory::window::Window;

/// A new year, so that wall clocks look like wall clocks.
const NEW_YEAR: i64 = 1_767_225_600_000_000_000;

/// A store that a suite drives in virtual time; `S` wraps the memory store.
pub(super) struct Virtual<S> {
    pub store: Option<S>,
    mono: Mono,
}

/// A store around the memory store.
pub(super) trait Wraps: Store {
    fn wrap(store: MemoryStore) -> Self;
    fn inner(&mut self) -> &mut MemoryStore;
    fn unwrap(self) -> MemoryStore;
}

impl Wraps for MemoryStore {
    fn wrap(store: MemoryStore) -> Self {
        store
    }

    fn inner(&mut self) -> &mut MemoryStore {
        self
    }

    fn unwrap(self) -> MemoryStore {
        self
    }
}

impl<S: Wraps> Virtual<S> {
    pub fn new(settings: Settings, faults: Faults) -> Self {
        let store = S::wrap(MemoryStore::new(settings, faults));
        Self {
            store: Some(store),
            mono: Mono(Nanos::from_secs(10).0),
        }
    }
}

fn windows(holds: bool) -> Vec<Window> {
    if holds {
        vec![Window::ALWAYS]
    } else {
        Vec::new()
    }
}

impl<S: Wraps> Harness for Virtual<S> {
    type Store = S;

    fn store(&mut self) -> &mut S {
        self.store.as_mut().unwrap()
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
        let store = self.store.take().unwrap().unwrap().crash();
        self.store = Some(S::wrap(store));
    }

    fn fail_commits(&mut self, failing: bool) {
        self.store().inner().faults_mut().failing = windows(failing);
    }

    fn fill_disk(&mut self, full: bool) {
        self.store().inner().faults_mut().full = windows(full);
    }
}

#[test]
fn a_plain_disk() {
    store::exercise(|| Virtual::<MemoryStore>::new(Settings::default(), Faults::default()));
}

#[test]
fn a_disk_that_takes_no_time() {
    store::exercise(|| {
        let faults = Faults {
            commit_min: Nanos::ZERO,
            commit_max: Nanos::ZERO,
            ..Faults::default()
        };
        Virtual::<MemoryStore>::new(Settings::default(), faults)
    });
}

#[test]
fn a_slow_disk_and_torn_commits() {
    for seed in 0..20 {
        store::exercise(|| {
            let settings = Settings {
                boot_clock: seed % 2 == 0,
                ..Settings::default()
            };
            let faults = Faults {
                commit_min: Nanos(10_000),
                commit_max: Nanos::from_millis(4),
                slow_permille: 50,
                slow_commit: Nanos::from_millis(80),
                torn_permille: 500,
                entropy: Entropy(seed),
                ..Faults::default()
            };
            Virtual::<MemoryStore>::new(settings, faults)
        });
    }
}

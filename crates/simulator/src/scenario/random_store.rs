//! The store of random worlds: the real one in three of four, decided by the
//! seed, with small files and in most of them a disk that goes wrong.
//!
//! All of it is drawn from streams of its own, so that worlds are otherwise what
//! they are on the model.

use outflow_core::time::Nanos;

use super::Scenario;
use super::faults::{Crash, DiskFaults, When, Window};
use super::store::{Files, StoreKind};
use crate::random::Random;
use crate::units::{Share, Span};

/// The share of worlds with the real store.
const REAL: f64 = 0.75;
/// The share of those in which nodes crash though the world has no crashes.
const CRASHES: f64 = 0.6;

/// Which store a random world has.
pub fn kind_of(seed: u64) -> StoreKind {
    let mut random = Random::named(seed, "random-store-kind", 0);
    match random.chance(REAL) {
        true => StoreKind::Real,
        false => StoreKind::Model,
    }
}

/// Gives a random world its store.
pub(super) fn add_store(scenario: &mut Scenario, seed: u64, kind: StoreKind) {
    scenario.store.kind = kind;
    if kind == StoreKind::Model {
        return;
    }
    scenario.store.files = Files::Small;
    scenario.faults.store.disk = disk(&mut Random::named(seed, "random-store", 0));
    let mut random = Random::named(seed, "random-store-crash", 0);
    // Without a crash a disk cannot lose much.
    if scenario.faults.crashes.is_empty() && random.chance(CRASHES) {
        scenario.faults.crashes.push(Crash {
            node: None,
            when: When::About {
                about_every: millis(&mut random, 5_000, 40_000),
            },
            down: millis(&mut random, 0, 8_000),
        });
    }
}

fn millis(random: &mut Random, low: u64, high: u64) -> Span {
    Span(Nanos::from_millis(random.between(low, high)))
}

fn disk(random: &mut Random) -> DiskFaults {
    let share = |random: &mut Random, most: f64| Share(random.unit() * most);
    let mut disk = DiskFaults {
        power: Share(0.5),
        ..DiskFaults::default()
    };
    if random.chance(0.5) {
        disk.fails = share(random, 0.02);
    }
    if random.chance(0.3) {
        disk.cut_short = share(random, 0.5);
    }
    if random.chance(0.3) {
        disk.record_waits = share(random, 0.2);
    }
    if random.chance(0.2) {
        disk.full.push(Window {
            when: When::About {
                about_every: millis(random, 10_000, 60_000),
            },
            lasts: millis(random, 100, 8_000),
        });
    }
    disk
}

//! Which store nodes have, as data.

use outflow_core::time::Nanos;
use serde::Deserialize;

use super::Scenario;
use super::faults::{DiskFaults, When, Window};
use crate::random::Random;
use crate::units::{Share, Span};

/// Which store nodes have, and how large its files are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreData {
    /// Which.
    pub kind: StoreKind,
    /// How large its files are.
    pub files: Files,
}

/// Which store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// The one that production has, on a simulated disk.
    Real,
    /// A model of it in memory.
    #[default]
    Model,
}

/// How large files of the journal are, and with it how soon it is tidied up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Files {
    /// Megabytes, and times as in production.
    #[default]
    Usual,
    /// Some kilobytes, and times as in production.
    Modest,
    /// A few kilobytes, and short times: files are given up and rewritten all the
    /// while.
    Small,
}

/// Gives a random world the real store with small files, and half of them a disk
/// that goes wrong. Drawn from a stream of its own.
pub fn random_store(scenario: &mut Scenario, seed: u64) {
    let mut random = Random::named(seed, "random-store", 0);
    let random = &mut random;
    scenario.store.kind = StoreKind::Real;
    scenario.store.files = Files::Small;
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
        let millis =
            |random: &mut Random, low, high| Span(Nanos::from_millis(random.between(low, high)));
        disk.full.push(Window {
            when: When::About {
                about_every: millis(random, 10_000, 60_000),
            },
            lasts: millis(random, 100, 8_000),
        });
    }
    scenario.faults.store.disk = disk;
}

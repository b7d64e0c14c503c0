//! The store of a node: the real one with files as large as the scenario says, or
//! the model of it.

use outflow_core::entropy::Entropy;
use outflow_core::time::Nanos;
use outflow_store_embedded::Settings;
use outflow_store_embedded::disk::simulated::Shares;
use outflow_store_embedded::record::{KeptReceipts, RecordSettings};

use super::clock::NodeClock;
use super::ledger::windows;
use super::store::{Kept, WatchedStore};
use crate::memory::MemoryStore;
use crate::memory::store as model;
use crate::random::Random;
use crate::real::{self, RealStore};
use crate::scenario::Scenario;
use crate::scenario::store::{Files, StoreKind};
use crate::units::Share;

/// The store of a node, which is not running yet.
pub fn store(scenario: &Scenario, node: u32, seed: u64, clock: &NodeClock) -> WatchedStore {
    let mut random = Random::named(seed, "store", u64::from(node));
    let random = &mut random;
    WatchedStore::new(match scenario.store.kind {
        StoreKind::Model => {
            let settings = model::Settings {
                keep_settled: true,
                ..model::Settings::default()
            };
            let faults = model_faults(scenario, random);
            Kept::Model(Box::new(MemoryStore::new(settings, faults)))
        }
        StoreKind::Real => {
            let settings = match scenario.store.files {
                Files::Usual => usual(),
                Files::Modest => modest(),
                Files::Small => small(random),
            };
            let faults = faults(scenario, clock, seed, random);
            Kept::Real(Box::new(RealStore::new(settings, faults, random.draw())))
        }
    })
}

fn permille(share: Share) -> u32 {
    (share.0 * 1_000.0).round() as u32
}

/// Files of a size at which a simulation with several nodes stays small.
fn usual() -> Settings {
    Settings {
        envelope_segment_bytes: 1 << 20,
        body_segment_bytes: 2 << 20,
        slack_bytes: 3 << 20,
        record: RecordSettings {
            receipts: KeptReceipts::Failures,
            ..RecordSettings::default()
        },
        ..Settings::default()
    }
}

/// Files of which a trickle fills several in a day, and a record that lets go of
/// receipts within a week.
fn modest() -> Settings {
    Settings {
        envelope_segment_bytes: 64 << 10,
        body_segment_bytes: 64 << 10,
        slack_bytes: 192 << 10,
        keys_max: 500,
        record: RecordSettings {
            receipts_for: Nanos::from_secs(2 * 86_400),
            dead_letters_for: Nanos::from_secs(2 * 86_400),
            ..RecordSettings::default()
        },
        ..Settings::default()
    }
}

/// Files so small, and times so short, that something is tidied up all the while.
fn small(random: &mut Random) -> Settings {
    let millis = |random: &mut Random, most| Nanos::from_millis(random.between(0, most));
    let envelope_segment_bytes = random.between(4 << 10, 32 << 10);
    let receipts = [
        KeptReceipts::All,
        KeptReceipts::Failures,
        KeptReceipts::None,
    ];
    Settings {
        envelope_segment_bytes,
        body_segment_bytes: random.between(4 << 10, 32 << 10),
        // With less, what lives never fits and is written again for ever.
        slack_bytes: envelope_segment_bytes * random.between(3, 5),
        keys_max: *random.pick(&[16, 256, 1 << 20]).unwrap_or(&16),
        reading_grace: millis(random, 5_000),
        dead_bodies_for: Nanos::from_millis(random.between(500, 30_000)),
        record: RecordSettings {
            batch_time: millis(random, 2_000),
            receipts: *random.pick(&receipts).unwrap_or(&KeptReceipts::All),
            ..RecordSettings::default()
        },
        ..Settings::default()
    }
}

/// A few draws stand for the distribution: what matters is that commits vary.
fn commit_times(scenario: &Scenario, random: &mut Random) -> (Nanos, Nanos) {
    let commit = &scenario.faults.store.commit;
    let mut times: Vec<Nanos> = (0..32).map(|_| commit.draw(random)).collect();
    times.sort_unstable();
    let (min, max) = (times.first().copied(), times.last().copied());
    (min.unwrap_or_default(), max.unwrap_or_default())
}

fn model_faults(scenario: &Scenario, random: &mut Random) -> model::Faults {
    let data = &scenario.faults.store;
    let (commit_min, commit_max) = commit_times(scenario, random);
    model::Faults {
        commit_min,
        commit_max,
        slow_permille: permille(data.slow_share),
        slow_commit: data.slow.0,
        fail_permille: permille(data.fails),
        torn_permille: if data.loses_unsynced { 0 } else { 500 },
        entropy: Entropy(random.draw()),
        ..model::Faults::default()
    }
}

fn faults(scenario: &Scenario, clock: &NodeClock, seed: u64, random: &mut Random) -> real::Faults {
    let data = &scenario.faults.store;
    let (commit_min, commit_max) = commit_times(scenario, random);
    let healed = scenario.faults.heal_at.map(|span| span.0);
    let until = healed.unwrap_or(scenario.ends());
    let each = permille(data.disk.fails);
    let shares = Shares {
        write: each,
        // A commit that fails is in most cases a sync that fails.
        sync: each + permille(data.fails),
        create: each,
        rename: each,
        remove: each,
        names: each,
    };
    let mut common = Random::named(seed, "full disk", 0);
    let full = data.disk.full.iter();
    let full = full.flat_map(|it| windows(it.when, it.lasts.0, until, &mut common));
    let steps = |faults: &crate::scenario::faults::Faults| {
        faults.clocks.iter().any(|clock| clock.steps_by_ms != 0)
    };
    real::Faults {
        commit_min,
        commit_max,
        slow_permille: permille(data.slow_share),
        slow_commit: data.slow.0,
        shares,
        heal_at: healed.map(|at| clock.mono(at)),
        full: full.map(|(_, window)| window).collect(),
        power_permille: permille(data.disk.power),
        cut_short_permille: permille(data.disk.cut_short),
        torn_permille: if data.loses_unsynced { 0 } else { 700 },
        record_permille: permille(data.disk.record_waits),
        // How long a machine was away that lost power is known by its wall clock
        // alone.
        reboots: !steps(&scenario.faults),
    }
}

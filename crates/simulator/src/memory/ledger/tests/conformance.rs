use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::conformance::ledger::{self, Harness};

use crate::memory::ledger::{LedgerLink, LinkFaults, MemoryLedger, Settings, WorldClock};
use crate::memory::window::Window;

/// A new year, so that wall clocks look like wall clocks.
const NEW_YEAR: i64 = 1_767_225_600_000_000_000;

pub(super) struct Virtual {
    world: WorldClock,
    ledger: MemoryLedger,
    faults: LinkFaults,
}

impl Virtual {
    pub fn new(faults: LinkFaults) -> Self {
        let world = WorldClock::default();
        let settings = Settings {
            wall: Wall(NEW_YEAR),
            ..Settings::default()
        };
        let ledger = MemoryLedger::new(settings, world.clone());
        Self {
            world,
            ledger,
            faults,
        }
    }
}

impl Virtual {
    /// All limits are as new, and nobody knows.
    pub fn forget_all(&self) {
        self.ledger.shared.borrow_mut().forget_all();
    }
}

impl Harness for Virtual {
    type Link = LedgerLink;

    fn link(&mut self) -> LedgerLink {
        self.faults.entropy.draw();
        self.ledger.link(self.faults.clone())
    }

    fn now(&self) -> Now {
        let mono = self.world.now();
        Now {
            mono,
            wall: Wall(NEW_YEAR) + Nanos(mono.0),
            entropy: Entropy(0),
        }
    }

    fn advance(&mut self, to: Mono) {
        self.world.set(to);
    }

    fn lose_state(&mut self) {
        self.ledger.lose_state();
    }
}

#[test]
fn a_plain_connection() {
    ledger::exercise(|| Virtual::new(LinkFaults::default()));
}

#[test]
fn a_connection_that_wavers() {
    ledger::exercise(|| {
        Virtual::new(LinkFaults {
            latency_min: Nanos(100_000),
            latency_max: Nanos::from_millis(3),
            ..LinkFaults::default()
        })
    });
}

/// Whatever the network does to requests and answers, no limit is exceeded.
#[test]
fn a_connection_that_fails() {
    let window = |from, until| Window {
        from: Mono(Nanos::from_millis(from).0),
        until: Mono(Nanos::from_millis(until).0),
    };
    let make = || {
        Virtual::new(LinkFaults {
            latency_min: Nanos(100_000),
            latency_max: Nanos::from_millis(7),
            loss_permille: 100,
            stalls: vec![window(1_000, 1_100), window(3_000, 3_600)],
            cuts: vec![window(2_000, 2_300)],
            ..LinkFaults::default()
        })
    };
    for case in [
        "buckets hold for all",
        "spaced tokens are spaced for all",
        "quotas hold for all",
        "large costs count",
        "changed numbers hold",
        "lost state is no fresh burst",
    ] {
        assert!(ledger::exercise_one(case, make), "there is no case {case}");
    }
}

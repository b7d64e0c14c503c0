//! What goes wrong, as data.
//!
//! Faults of the network are the network's ([`crate::network`]); these are
//! those of our own side: nodes, clocks, store, transport, ledger.

use outflow_core::time::Nanos;
use serde::Deserialize;

use crate::network::latency::Latency;
use crate::units::{Share, Span};

/// All that goes wrong on our side.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Nodes that die.
    #[serde(rename = "crash")]
    pub crashes: Vec<Crash>,
    /// Nodes that stand still and go on as if nothing had been.
    #[serde(rename = "pause")]
    pub pauses: Vec<Pause>,
    /// Clocks that run wrong.
    #[serde(rename = "clock")]
    pub clocks: Vec<ClockFault>,
    /// The durable queue.
    pub store: StoreFaults,
    /// What carries messages to the network and answers back.
    pub transport: TransportFaults,
    /// Where shared counts live.
    pub ledger: LedgerFaults,
    /// When faults end, so that progress can be demanded; never if not given.
    pub heal_at: Option<Span>,
}

/// When something happens, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum When {
    /// Once.
    At {
        /// When.
        at: Span,
    },
    /// Regularly, first after one period.
    Every {
        /// The period.
        every: Span,
    },
    /// At random.
    About {
        /// The mean time from one to the next.
        about_every: Span,
    },
}

/// A node dies and comes back.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// Which node; any, one after the other, if not given.
    pub node: Option<u32>,
    /// When.
    pub when: When,
    /// How long it is away.
    pub down: Span,
}

/// A node stands still, as if stopped by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Which node; any, one after the other, if not given.
    pub node: Option<u32>,
    /// When.
    pub when: When,
    /// How long.
    pub lasts: Span,
}

/// A node's clock runs wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockFault {
    /// Which node; all if not given.
    pub node: Option<u32>,
    /// How much too fast its monotonic clock runs, in millionths.
    #[serde(default)]
    pub drift_ppm: i32,
    /// How far its wall clock is ahead from the start, in milliseconds.
    #[serde(default)]
    pub ahead_ms: i64,
    /// When its wall clock steps.
    pub steps_at: Option<Span>,
    /// By how much, in milliseconds.
    #[serde(default)]
    pub steps_by_ms: i64,
}

/// What the durable queue does wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreFaults {
    /// How long a commit takes.
    pub commit: Latency,
    /// The share of commits that take `slow` instead.
    pub slow_share: Share,
    /// How long those take.
    pub slow: Span,
    /// The share of commits that fail.
    pub fails: Share,
    /// Whether a crash loses everything whose commit was not confirmed. If
    /// not, a random part of it reached the disk.
    pub loses_unsynced: bool,
    /// What the disk below it does wrong.
    pub disk: DiskFaults,
}

/// What a disk does wrong. The model of a store has none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiskFaults {
    /// The share of crashes in which the machine loses power: what was not
    /// synced is lost, or a part of it. In the others the process is killed.
    pub power: Share,
    /// The share of starts that are cut short by another crash.
    pub cut_short: Share,
    /// The share of writes, syncs, renames and removals that fail.
    pub fails: Share,
    /// When it is full, and for how long.
    pub full: Vec<Window>,
    /// The share of batches for the record that have to wait for long.
    pub record_waits: Share,
}

impl DiskFaults {
    /// Whether commits may fail.
    pub fn fail_commits(&self) -> bool {
        self.fails.0 > 0.0 || !self.full.is_empty()
    }
}

impl Default for StoreFaults {
    fn default() -> Self {
        Self {
            commit: Latency::constant(Nanos::from_millis(1)),
            slow_share: Share(0.0),
            slow: Span(Nanos::ZERO),
            fails: Share(0.0),
            loses_unsynced: true,
            disk: DiskFaults::default(),
        }
    }
}

/// What the transport does wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransportFaults {
    /// The share of deliveries whose answer is lost; the node learns at its
    /// deadline that the outcome is uncertain.
    pub lost: Share,
    /// The share of answers that come twice.
    pub doubled: Share,
    /// The share of sessions that break without a word.
    pub broken: Share,
}

/// What the ledger does wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LedgerFaults {
    /// How long an answer takes.
    pub latency: Latency,
    /// When it does not answer, and for how long.
    #[serde(rename = "stall")]
    pub stalls: Vec<Window>,
    /// When it forgets everything.
    pub loses_state: Vec<Span>,
    /// The share of requests without an answer: half of them never reach the
    /// ledger, the other half are carried out and their answer is lost.
    pub lost: Share,
    /// When some nodes cannot reach it.
    #[serde(rename = "partition")]
    pub partitions: Vec<Partition>,
}

impl Default for LedgerFaults {
    fn default() -> Self {
        Self {
            latency: Latency::constant(Nanos::from_millis(1)),
            stalls: Vec::new(),
            loses_state: Vec::new(),
            lost: Share(0.0),
            partitions: Vec::new(),
        }
    }
}

/// A stretch of time, once or again and again.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// When.
    pub when: When,
    /// How long.
    pub lasts: Span,
}

/// Nodes that cannot reach the ledger for a while.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// Which nodes; any one if empty.
    #[serde(default)]
    pub nodes: Vec<u32>,
    /// When.
    pub when: When,
    /// How long.
    pub lasts: Span,
}

impl Faults {
    /// These without what goes wrong: times stay what they are.
    pub fn calmed(&self) -> Self {
        Self {
            store: StoreFaults {
                commit: self.store.commit,
                ..StoreFaults::default()
            },
            ledger: LedgerFaults {
                latency: self.ledger.latency,
                ..LedgerFaults::default()
            },
            ..Self::default()
        }
    }

    /// How much too fast the fastest monotonic clock runs, in millionths.
    pub fn drift_ppm_max(&self) -> u32 {
        self.clocks
            .iter()
            .map(|clock| clock.drift_ppm.max(0).unsigned_abs())
            .max()
            .unwrap_or(0)
    }

    /// How far a wall clock may be off within `length` of simulated time.
    pub fn wall_error_max(&self, length: Nanos) -> Nanos {
        let error = |clock: &ClockFault| {
            let offset = clock.ahead_ms.unsigned_abs() + clock.steps_by_ms.unsigned_abs();
            let drift =
                u128::from(length.0) * u128::from(clock.drift_ppm.unsigned_abs()) / 1_000_000;
            Nanos::from_millis(offset) + Nanos(u64::try_from(drift).unwrap_or(u64::MAX))
        };
        self.clocks.iter().map(error).max().unwrap_or(Nanos::ZERO)
    }

    /// What in these numbers cannot be meant.
    pub fn problems(&self, nodes: u32) -> Vec<String> {
        let mut found = Vec::new();
        let named = self
            .crashes
            .iter()
            .map(|it| ("crash", it.node))
            .chain(self.pauses.iter().map(|it| ("pause", it.node)))
            .chain(self.clocks.iter().map(|it| ("clock", it.node)));
        let partitioned = self.ledger.partitions.iter().flat_map(|it| &it.nodes);
        for (what, node) in named.chain(partitioned.map(|node| ("partition", Some(*node)))) {
            if let Some(node) = node.filter(|node| *node >= nodes) {
                found.push(format!("faults.{what}: there is no node {node}"));
            }
        }
        let periods = self
            .crashes
            .iter()
            .map(|it| it.when)
            .chain(self.pauses.iter().map(|it| it.when))
            .chain(self.store.disk.full.iter().map(|it| it.when));
        if periods.into_iter().any(|when| when.is_never_ending()) {
            found.push("faults: something happens every 0 s".to_owned());
        }
        if !self.store.commit.is_sound() || !self.ledger.latency.is_sound() {
            found.push("faults: a lower latency is above the higher one".to_owned());
        }
        found
    }
}

impl When {
    fn is_never_ending(self) -> bool {
        match self {
            Self::At { .. } => false,
            Self::Every { every: period }
            | Self::About {
                about_every: period,
            } => period.0 == Nanos::ZERO,
        }
    }

    /// The first time after `now`; nothing if it is over.
    pub fn after(self, now: Nanos, random: &mut crate::random::Random) -> Option<Nanos> {
        match self {
            Self::At { at } => (now < at.0).then_some(at.0),
            Self::Every { every } => {
                let turns = now.0 / every.0.0.max(1) + 1;
                Some(every.0.times(turns))
            }
            Self::About { about_every } => Some(now + random.exponential(about_every.0) + Nanos(1)),
        }
    }
}

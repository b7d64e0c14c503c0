//! A node's own clocks, which may run wrong.

use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos, Now, Wall};

use crate::scenario::faults::ClockFault;

/// How a node's clocks follow true time.
#[derive(Clone, Debug)]
pub struct NodeClock {
    wall_at_zero: Wall,
    faults: Vec<ClockFault>,
    drift_ppm: i64,
    last: Mono,
}

impl NodeClock {
    /// The clocks of `node`, right but for `faults`.
    pub fn new(node: u32, wall_at_zero: Wall, faults: &[ClockFault]) -> Self {
        let mine = |fault: &&ClockFault| fault.node.is_none_or(|it| it == node);
        let faults: Vec<ClockFault> = faults.iter().filter(mine).copied().collect();
        let drift_ppm = faults.iter().map(|fault| i64::from(fault.drift_ppm)).sum();
        Self {
            wall_at_zero,
            faults,
            drift_ppm,
            last: Mono(0),
        }
    }

    /// What the node reads at true time `at`.
    pub fn read(&mut self, at: Nanos, entropy: u64) -> Now {
        let mono = self.mono(at).max(self.last);
        self.last = mono;
        Now {
            mono,
            wall: self.wall(at),
            entropy: Entropy(entropy),
        }
    }

    /// The monotonic clock at true time `at`.
    pub fn mono(&self, at: Nanos) -> Mono {
        let elapsed = i128::from(at.0);
        let mono = elapsed + elapsed * i128::from(self.drift_ppm) / 1_000_000;
        Mono(u64::try_from(mono).unwrap_or(0))
    }

    /// The first true time at which the monotonic clock reads at least `mono`.
    pub fn true_time(&self, mono: Mono) -> Nanos {
        if mono == Mono::NEVER {
            return Nanos::MAX;
        }
        let scale = 1_000_000 + i128::from(self.drift_ppm);
        let elapsed = i128::from(mono.0) * 1_000_000 / scale;
        let mut at = Nanos(u64::try_from(elapsed).unwrap_or(u64::MAX));
        while self.mono(at) < mono {
            at = at + Nanos(1);
        }
        at
    }

    fn wall(&self, at: Nanos) -> Wall {
        let mut wall = self.wall_at_zero + at;
        for fault in &self.faults {
            wall.0 += fault.ahead_ms * 1_000_000;
            if fault.steps_at.is_some_and(|step| step.0 <= at) {
                wall.0 += fault.steps_by_ms * 1_000_000;
            }
        }
        wall
    }

    /// The true time at which the node's wall clock reads `wall`, as its steps
    /// stand at true time `at`.
    pub fn true_time_of_wall(&self, at: Nanos, wall: Wall) -> Nanos {
        at + wall.since(self.wall(at))
    }
}

//! What goes wrong, and when: the faults of a scenario as happenings.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::time::Nanos;

use super::setup;
use crate::random::Random;
use crate::scenario::Scenario;
use crate::scenario::faults::When;
use crate::trace::{MessageNo, NodeNo};

/// Something that happens to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happening {
    /// A node dies and is away for so long.
    Crash { node: NodeNo, down: Nanos },
    /// A node comes back.
    Restart { node: NodeNo },
    /// A node stands still for so long.
    Freeze { node: NodeNo, lasts: Nanos },
    /// Policies change.
    Policies,
    /// An operator does something: an action of the scenario.
    Operator { action: u32 },
    /// A pause ends.
    PauseEnds { action: u32 },
    /// A node is asked to stop, and is away for so long then.
    Stop { node: NodeNo, down: Nanos },
    /// A bounce arrives for a message that was accepted.
    Bounce {
        node: NodeNo,
        flow: FlowId,
        seq: Seq,
        message: MessageNo,
    },
    /// The ledger loses its counts.
    LedgerForgets,
    /// Nodes are asked what they hold.
    Gauge,
}

/// All that will happen, in order.
pub struct Script {
    heap: BinaryHeap<Reverse<(Nanos, u64, Happening)>>,
    count: u64,
}

impl Script {
    /// The faults of a scenario, until they heal.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let mut script = Self {
            heap: BinaryHeap::new(),
            count: 0,
        };
        let faults = &scenario.faults;
        let until = faults.heal_at.map_or(scenario.ends(), |span| span.0);
        let nodes = scenario.nodes.max(1);
        for (index, crash) in faults.crashes.iter().enumerate() {
            let mut random = Random::named(seed, "crash", index as u64);
            let times = script.times(crash.when, until, &mut random);
            for (turn, at) in times.into_iter().enumerate() {
                let node = crash.node.unwrap_or(turn as u32 % nodes);
                script.at(
                    at,
                    Happening::Crash {
                        node,
                        down: crash.down.0,
                    },
                );
            }
        }
        for (index, pause) in faults.pauses.iter().enumerate() {
            let mut random = Random::named(seed, "pause", index as u64);
            let times = script.times(pause.when, until, &mut random);
            for (turn, at) in times.into_iter().enumerate() {
                let node = pause.node.unwrap_or(turn as u32 % nodes);
                script.at(
                    at,
                    Happening::Freeze {
                        node,
                        lasts: pause.lasts.0,
                    },
                );
            }
        }
        for at in setup::changes(scenario) {
            script.at(at, Happening::Policies);
        }
        for (index, action) in scenario.actions.iter().enumerate() {
            let happening = Happening::Operator {
                action: index as u32,
            };
            script.at(action.at.0, happening);
        }
        for at in &faults.ledger.loses_state {
            script.at(at.0, Happening::LedgerForgets);
        }
        script.at(Nanos::from_millis(100), Happening::Gauge);
        script
    }

    fn times(&self, when: When, until: Nanos, random: &mut Random) -> Vec<Nanos> {
        let mut times = Vec::new();
        let mut now = Nanos::ZERO;
        while let Some(at) = when.after(now, random).filter(|&at| at < until) {
            times.push(at);
            now = at;
        }
        times
    }

    /// Something will happen.
    pub fn at(&mut self, at: Nanos, happening: Happening) {
        self.count += 1;
        self.heap.push(Reverse((at, self.count, happening)));
    }

    /// When the next thing happens.
    pub fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// What happens by `now`, in order.
    pub fn due(&mut self, now: Nanos) -> Option<Happening> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, happening))| happening)
    }
}

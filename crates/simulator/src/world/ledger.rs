//! A node's way to the ledger, if the scenario has one.

use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos, Now};
use outflow_ports::ledger::{Ledger, LedgerWork};

use crate::memory::ledger::{LedgerLink, LinkFaults, MemoryLedger};
use crate::memory::window::Window;
use crate::random::Random;
use crate::scenario::Scenario;
use crate::scenario::faults::When;

/// A link to the ledger of the world, or none.
#[derive(Debug, Default)]
pub struct SimLedger(Option<(MemoryLedger, LinkFaults, LedgerLink)>);

impl SimLedger {
    /// The link of a node.
    pub fn linked(ledger: &MemoryLedger, faults: LinkFaults) -> Self {
        let link = ledger.link(faults.clone());
        Self(Some((ledger.clone(), faults, link)))
    }

    /// The node's end after its process died: requests under way are gone.
    #[must_use]
    pub fn rebooted(self) -> Self {
        match self.0 {
            Some((ledger, mut faults, before)) => {
                faults.entropy.draw();
                let link = ledger.link_again(&before, faults.clone());
                Self(Some((ledger, faults, link)))
            }
            None => self,
        }
    }
}

impl Ledger for SimLedger {
    fn submit(&mut self, now: &Now, work: LedgerWork) {
        if let Some((_, _, link)) = &mut self.0 {
            link.submit(now, work);
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        if let Some((_, _, link)) = &mut self.0 {
            link.complete(now, done);
        }
    }

    fn next_completion(&self) -> Mono {
        self.0
            .as_ref()
            .map_or(Mono::NEVER, |(_, _, link)| link.next_completion())
    }
}

/// What goes wrong between a node and the ledger.
pub fn link_faults(scenario: &Scenario, node: u32, seed: u64) -> LinkFaults {
    let mut random = Random::named(seed, "ledger", u64::from(node));
    let data = &scenario.faults.ledger;
    let until = scenario
        .faults
        .heal_at
        .map_or(scenario.ends(), |span| span.0);
    // A few draws stand for the distribution, half of them for each way.
    let mut times: Vec<Nanos> = (0..32)
        .map(|_| Nanos(data.latency.draw(&mut random).0 / 2))
        .collect();
    times.sort_unstable();
    // Stalls are the ledger's: all links see the same ones.
    let mut common = Random::named(seed, "ledger stalls", 0);
    let stalls = data
        .stalls
        .iter()
        .flat_map(|stall| windows(stall.when, stall.lasts.0, until, &mut common))
        .map(|(_, window)| window)
        .collect();
    let mut common = Random::named(seed, "ledger partitions", 0);
    let nodes = scenario.nodes.max(1);
    let mut cuts = Vec::new();
    for partition in &data.partitions {
        for (turn, window) in windows(partition.when, partition.lasts.0, until, &mut common) {
            let hit = if partition.nodes.is_empty() {
                turn % nodes == node
            } else {
                partition.nodes.contains(&node)
            };
            if hit {
                cuts.push(window);
            }
        }
    }
    LinkFaults {
        latency_min: times.first().copied().unwrap_or_default(),
        latency_max: times.last().copied().unwrap_or_default(),
        stalls,
        cuts,
        cut_is_silent: random.chance(0.5),
        entropy: Entropy(random.draw()),
        loss_permille: (data.lost.0 * 1_000.0).round() as u32,
        loss_ends: Mono(until.0),
    }
}

/// When something holds that begins at these times, and for how long.
pub fn windows(when: When, lasts: Nanos, until: Nanos, random: &mut Random) -> Vec<(u32, Window)> {
    let mut found = Vec::new();
    let mut now = Nanos::ZERO;
    while let Some(at) = when.after(now, random).filter(|&at| at < until) {
        let window = Window {
            from: Mono(at.0),
            until: Mono((at + lasts).0),
        };
        found.push((found.len() as u32, window));
        now = at;
    }
    found
}

//! What is counted in the measured time, and what follows from it.

use outflow_core::pool::Work;

use super::case::{Findings, Load};
use super::sim::{MS, Sim};

#[derive(Default)]
pub struct Tally {
    pub accounts: Vec<u64>,
    pub lanes: Vec<u64>,
    pub arrived: Vec<u64>,
    pub critical_waits: Vec<u64>,
    pub work: Work,
    pub measuring: bool,
}

impl Sim {
    pub(super) fn findings(&self) -> Findings {
        let tally = &self.tally;
        let sent: u64 = tally.accounts.iter().sum();
        let capacity = (self.case.capacity_milli() * self.case.measured_s / 1_000) as f64;
        let possible = match self.case.load {
            Load::Saturated | Load::Hot => capacity,
            Load::Percent(_) => tally.arrived.iter().sum::<u64>() as f64,
        };
        let mean = sent as f64 / tally.accounts.len() as f64;
        let of_mean = |count: Option<&u64>| *count.expect("there are accounts") as f64 / mean;
        let lanes = tally.lanes.iter().zip(&tally.arrived);
        let lane_mean = sent as f64 / tally.lanes.len() as f64;
        let worst_lane = match self.case.load {
            Load::Saturated => lanes
                .map(|(sent, _)| *sent as f64 / lane_mean)
                .fold(1.0, f64::min),
            Load::Hot => lanes.skip(1).map(given).fold(1.0, f64::min),
            Load::Percent(_) => lanes.map(given).fold(1.0, f64::min),
        };
        let mut waits = tally.critical_waits.clone();
        waits.sort_unstable();
        let work = self.pool.work();
        let per_send = |count: u64| count as f64 / sent.max(1) as f64;
        Findings {
            sent,
            of_possible: sent as f64 / possible,
            accounts: (
                of_mean(tally.accounts.iter().min()),
                of_mean(tally.accounts.iter().max()),
            ),
            worst_lane,
            searches_per_send: per_send(work.searches - tally.work.searches),
            looks_per_send: per_send(work.looks - tally.work.looks),
            openings_per_1000: per_send(work.openings - tally.work.openings) * 1e3,
            taken_per_1000: per_send(work.taken - tally.work.taken) * 1e3,
            critical_p99_ms: waits
                .get(waits.len() * 99 / 100)
                .copied()
                .unwrap_or_default()
                / MS,
            trace: self.trace,
            drained: false,
        }
    }
}

/// What a lane has sent of what it was given.
fn given((sent, arrived): (&u64, &u64)) -> f64 {
    if *arrived == 0 {
        1.0
    } else {
        *sent as f64 / *arrived as f64
    }
}

//! `waiting`: the cost of a send does not grow with what waits.
//!
//! Counted in instructions by callgrind, which repeats to the digit: each case
//! is run in a child process twice, with different numbers of sends, and the
//! difference is the cost of the sends alone.

use std::process::Command;

use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::Rate;
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::set::Policies;
use serde_json::{Value, json};

use crate::driver::Driver;

const SENDS: u64 = 20_000;

/// What a child runs: flows that wait, messages in each, sends to make.
pub struct Load {
    /// How many flows wait at one limit.
    pub flows: u32,
    /// How many messages each has queued.
    pub queued: u32,
    /// How many are sent.
    pub sends: u64,
}

/// Measures all cases; the last line of the output.
pub fn run() -> Value {
    let flows: Vec<f64> = [10, 1_000, 100_000]
        .into_iter()
        .map(|flows| {
            report(
                "flows",
                Load {
                    flows,
                    queued: 1_000_000,
                    sends: SENDS,
                },
            )
        })
        .collect();
    let queue: Vec<f64> = [10, 1_000_000]
        .into_iter()
        .map(|queued| {
            report(
                "queue",
                Load {
                    flows: 1,
                    queued,
                    sends: SENDS,
                },
            )
        })
        .collect();
    json!({
        "bench": "waiting",
        "instructions_per_send_by_flows": flows,
        "instructions_per_send_by_queue": queue,
        "flows_ratio": flows.iter().copied().fold(0.0, f64::max) / flows[0],
        "queue_ratio": queue[1] / queue[0],
    })
}

fn report(what: &str, load: Load) -> f64 {
    let setup = instructions(&Load { sends: 0, ..load });
    let all = instructions(&load);
    let each = (all - setup) as f64 / load.sends as f64;
    println!(
        "{what}: {:>7} flows, {:>8} queued: {each:>9.0} instructions a send",
        load.flows, load.queued
    );
    each
}

fn instructions(load: &Load) -> u64 {
    let this = std::env::current_exe().expect("this program has a path");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args([
            "waiting-load",
            &load.flows.to_string(),
            &load.queued.to_string(),
            &load.sends.to_string(),
        ])
        .output()
        .expect("valgrind runs; install it with: apt-get install valgrind");
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines()
        .find_map(|line| line.split("Collected : ").nth(1)?.trim().parse().ok())
        .unwrap_or_else(|| panic!("callgrind printed no count:\n{text}"))
}

/// The load itself, in the child.
pub fn load(load: &Load) {
    let mut policies = Policies::default();
    let mut policy = Policy::new(Match::from_pairs([("isp", "google")]).expect("a known scope"));
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(1_000)));
    policy.burst = Some(20);
    policies.insert(policy).expect("a sound policy");
    let mut driver = Driver::new(policies);
    for index in 0..load.flows {
        let mut key = FlowKey::to(Destination::isp("google"));
        key.tenant = Name::from(format!("tenant-{index}"));
        let flow = driver.open(key);
        driver.queue(flow, load.queued);
    }
    driver.settle();
    if load.flows == 1 && load.queued < 100 {
        // A short queue is kept short by filling it up as it drains.
        let flow = outflow_core::handle::FlowId(0);
        let mut left = load.sends;
        while left > 0 {
            let part = left.min(u64::from(load.queued));
            driver.deliver(part);
            driver.queue(flow, part as u32);
            left -= part;
        }
    } else {
        driver.deliver(load.sends);
    }
}

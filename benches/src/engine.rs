//! `engine`: messages a second through `Engine::step` on one core, beside the
//! governor crate deciding as many limits per message in the same run.

use std::num::NonZeroU32;
use std::time::Instant;

use governor::{Quota, RateLimiter};
use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::limit::spec::Rate;
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::set::Policies;
use serde_json::{Value, json};

use crate::driver::Driver;

const LANES: usize = 5_000;
const MESSAGES: u64 = 1_000_000;
/// Limits per message: destination, tenant, campaign.
const LIMITS: usize = 3;

/// Runs both sides; the last line of the output.
pub fn run() -> Value {
    let engine = best_of_three(|| engine_rate(1_000_000_000, 1_000_000));
    let governor = best_of_three(governor_rate);
    let full = engine_rate(100, 10);
    println!("engine    {engine:>12.0} messages/s, no limit full");
    println!("governor  {governor:>12.0} messages/s, {LIMITS} keyed limits each");
    println!("engine    {full:>12.0} messages/s, every destination full");
    json!({
        "bench": "engine",
        "engine_per_s": engine,
        "governor_per_s": governor,
        "ratio": engine / governor,
        "engine_full_per_s": full,
    })
}

/// The engine's side alone.
pub fn load() -> Value {
    json!({ "engine_per_s": engine_rate(1_000_000_000, 1_000_000) })
}

fn best_of_three(measure: impl Fn() -> f64) -> f64 {
    (0..3).map(|_| measure()).fold(0.0, f64::max)
}

fn engine_rate(per_second: u32, burst: u32) -> f64 {
    let mut driver = Driver::new(policies(per_second, burst));
    let flows: Vec<FlowId> = (0..LANES)
        .map(|lane| {
            let mut key = FlowKey::to(Destination::isp(format!("isp-{lane}")));
            key.tenant = Name::from(format!("tenant-{lane}"));
            key.campaign = Some(Name::from(format!("campaign-{lane}")));
            driver.open(key)
        })
        .collect();
    let start = Instant::now();
    let each = 20;
    for _ in 0..MESSAGES / (LANES as u64 * each) {
        for &flow in &flows {
            driver.queue(flow, each as u32);
        }
        driver.deliver(LANES as u64 * each);
    }
    assert_eq!(driver.delivered, MESSAGES, "every message was delivered");
    MESSAGES as f64 / start.elapsed().as_secs_f64()
}

fn policies(per_second: u32, burst: u32) -> Policies {
    let mut policies = Policies::default();
    for (scope, rate, burst) in [
        ("isp", per_second, burst),
        ("tenant", 1_000_000_000, 1_000_000),
        ("campaign", 1_000_000_000, 1_000_000),
    ] {
        let matches = Match::from_pairs([(scope, "*")]).expect("a known scope");
        let mut policy = Policy::new(matches);
        policy.rate = Some(RateOrShare::Rate(Rate::per_second(rate)));
        policy.burst = Some(burst);
        policies.insert(policy).expect("a sound policy");
    }
    policies
}

fn governor_rate() -> f64 {
    let most = NonZeroU32::MAX;
    let limiter = RateLimiter::keyed(Quota::per_second(most).allow_burst(most));
    let start = Instant::now();
    for message in 0..MESSAGES {
        let lane = message % LANES as u64;
        for level in 0..LIMITS as u64 {
            assert!(limiter.check_key(&(lane * LIMITS as u64 + level)).is_ok());
        }
    }
    MESSAGES as f64 / start.elapsed().as_secs_f64()
}

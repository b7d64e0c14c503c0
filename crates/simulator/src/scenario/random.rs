//! Random scenarios: small but nasty.
//!
//! A seed becomes a short run with a few limits of every algorithm, a few flows
//! that need different sets of them, costs above 1, bursts of 1, tight expiry,
//! a network that refuses, and faults on our side that end before the run does,
//! so that everything accepted must be settled in the end.

use outflow_core::destination::Destination;
use outflow_core::limit::spec::Rate;
use outflow_core::time::Nanos;

use super::account::AccountData;
use super::faults::{ClockFault, Crash, Faults, Partition, Pause, When, Window};
use super::limit::{LimitData, PeriodText};
use super::policy::{HeadroomData, PolicyData};
use super::random_store::{add_store, kind_of};
use super::store::{StoreData, StoreKind};
use super::{Ledger, PressureText, Scenario};
use crate::expect::{Expectations, Range};
use crate::network::connections::ConnectionCap;
use crate::network::greylist::GreylistSpec;
use crate::network::latency::Latency;
use crate::network::noise::Noise;
use crate::network::outage::{OutageKind, OutageSpec};
use crate::network::rate::HiddenRateSpec;
use crate::network::spec::NetworkSpec;
use crate::random::Random;
use crate::traffic::pattern::Pattern;
use crate::traffic::spec::{ChannelText, Cost, TrafficSpec};
use crate::units::{ClassText, DestinationText, RateText, Share, Span};

const ISPS: [&str; 3] = ["google", "yahoo", "outlook"];

/// A random scenario with random faults. The seed also decides the store.
pub fn random_faults(seed: u64) -> Scenario {
    random_faults_on(seed, kind_of(seed))
}

/// The same with this store, whatever the seed says.
pub fn random_faults_on(seed: u64, kind: StoreKind) -> Scenario {
    let mut scenario = without_store(seed);
    add_store(&mut scenario, seed, kind);
    scenario
}

/// A random scenario that has no store of its own yet.
pub(super) fn without_store(seed: u64) -> Scenario {
    let mut random = Random::named(seed, "random-faults", 0);
    let random = &mut random;
    let duration = Nanos::from_secs(random.between(30, 120));
    let nodes = *random.pick(&[1, 1, 1, 2, 3]).unwrap_or(&1);
    let isps = random.between(1, ISPS.len() as u64) as usize;
    let mut scenario = Scenario {
        name: format!("random-{seed}"),
        title: format!("Random limits, flows and faults of seed {seed}"),
        about: String::new(),
        duration: Span(duration),
        // As long as mail is retried at most, and a day more.
        drain: Some(Span(Nanos::from_secs(5 * 86_400))),
        starts_at: super::a_monday_morning(),
        nodes,
        ledger: if nodes > 1 || random.chance(0.2) {
            Ledger::Leased
        } else {
            Ledger::Owned
        },
        store: StoreData::default(),
        under_pressure: PressureText::Keep,
        learn: false,
        headroom: HeadroomData {
            critical: Share(if random.chance(0.5) { 0.2 } else { 0.0 }),
            ..HeadroomData::default()
        },
        chart: Vec::new(),
        accounts: (0..random.between(1, 3))
            .map(|n| account(n, random))
            .collect(),
        policies: policies(isps, nodes, random),
        networks: ISPS
            .iter()
            .take(isps)
            .map(|isp| network(isp, duration, random))
            .collect(),
        traffic: (0..random.between(2, 6))
            .map(|n| source(n, isps, duration, random))
            .collect(),
        actions: Vec::new(),
        faults: faults(nodes, duration, random),
        expect: Expectations::default(),
        baseline: None,
        expect_calm: Expectations::default(),
    };
    if scenario.ledger == Ledger::Leased {
        // Windows and slots of a fleet are what wide worlds add.
        for policy in &mut scenario.policies {
            policy.limits.clear();
        }
        scenario.policies.retain(|policy| {
            policy.rate.is_some() || policy.concurrency.is_some() || policy.weight.is_some()
        });
    }
    let none_left = Range {
        max: Some(0.0),
        ..Range::default()
    };
    scenario.expect.0.insert("unfinished".to_owned(), none_left);
    scenario
}

fn per_second(count: u64) -> RateText {
    RateText {
        rate: Rate::per_second(count.clamp(1, 1_000_000) as u32),
        spaced: false,
    }
}

fn millis(random: &mut Random, low: u64, high: u64) -> Nanos {
    Nanos::from_millis(random.between(low, high))
}

fn account(n: u64, random: &mut Random) -> AccountData {
    let mut account = AccountData::new(&format!("account-{n}"));
    account.connections = Some(random.between(1, 20) as u32);
    if random.chance(0.5) {
        account.sessions = super::account::SessionText::Connections;
        account.messages_per_session = Some(random.between(1, 50) as u32);
    }
    if random.chance(0.7) {
        account.rate = Some(per_second(random.between(5, 80)));
        account.burst = Some(random.between(5, 40) as u32);
    }
    account
}

fn policies(isps: usize, nodes: u32, random: &mut Random) -> Vec<PolicyData> {
    let mut policies: Vec<PolicyData> = ISPS
        .iter()
        .take(isps)
        .map(|isp| {
            let mut policy = PolicyData::about("isp", isp);
            policy.rate = Some(RateText {
                spaced: random.chance(0.2),
                ..per_second(random.between(5, 60))
            });
            if policy.rate.is_some_and(|rate| !rate.spaced) {
                policy.burst = Some(random.between(5, 60) as u32);
            }
            let concurrency = random.chance(0.3).then(|| random.between(5, 12) as u32);
            // What is in flight is counted by each node for itself.
            policy.concurrency = concurrency.filter(|_| nodes == 1);
            policy
        })
        .collect();
    if random.chance(0.5) {
        let mut tenant = PolicyData::about("tenant", "*");
        tenant.limits.push(LimitData::Sliding {
            count: random.between(20, 200) as u32,
            window: Span(millis(random, 1_000, 20_000)),
        });
        policies.push(tenant);
    }
    if random.chance(0.3) {
        let mut campaign = PolicyData::about("campaign", "*");
        campaign.limits.push(LimitData::Calendar {
            count: random.between(100, 1_000) as u32,
            period: PeriodText::Minute,
            zone: None,
        });
        policies.push(campaign);
    }
    if random.chance(0.3) {
        // A live change in the middle of the run.
        let mut changed = policies.first().cloned().unwrap_or_default();
        changed.from = Some(Span(millis(random, 5_000, 25_000)));
        changed.rate = changed.rate.map(|rate| RateText {
            spaced: rate.spaced,
            ..per_second(random.between(5, 60))
        });
        policies.push(changed);
    }
    policies
}

fn network(isp: &str, duration: Nanos, random: &mut Random) -> NetworkSpec {
    let mut network = NetworkSpec::open(isp);
    network.destinations = vec![DestinationText(Destination::isp(isp))];
    network.timeout = Span(Nanos::from_secs(10));
    let p50 = millis(random, 5, 200);
    network.latency = Latency::Lognormal {
        p50: Span(p50),
        p99: Span(p50.times(random.between(1, 8))),
    };
    if random.chance(0.3) {
        network.rate = Some(HiddenRateSpec {
            rate: per_second(random.between(10, 60)),
            burst: random.between(5, 30) as u32,
            retry_after: None,
        });
    }
    if random.chance(0.2) {
        network.greylist = Some(GreylistSpec {
            delay: Span(millis(random, 1_000, 60_000)),
            share: Share(0.5),
        });
    }
    if random.chance(0.3) {
        network.connections = Some(ConnectionCap {
            max: Some(random.between(1, 10) as u32),
            messages: Some(random.between(2, 30) as u32),
        });
    }
    if random.chance(0.4) {
        network.failures = Some(Noise {
            temporary: Share(0.05),
            permanent: Share(0.02),
            reset: Share(0.02),
            lost_answer: Share(0.01),
            throttled: Share(0.01),
        });
    }
    if random.chance(0.4) {
        network.outages.push(OutageSpec {
            at: Span(Nanos(random.below(duration.0))),
            lasts: Span(millis(random, 1_000, 20_000)),
            every: None,
            kind: *random
                .pick(&[
                    OutageKind::Refuse,
                    OutageKind::Timeout,
                    OutageKind::Fail,
                    OutageKind::Hang,
                ])
                .unwrap_or(&OutageKind::Refuse),
        });
    }
    network
}

fn source(n: u64, isps: usize, duration: Nanos, random: &mut Random) -> TrafficSpec {
    let arrive = match random.below(4) {
        0 => Pattern::AtOnce {
            count: random.between(1, 500),
        },
        1 => Pattern::Poisson {
            rate: per_second(random.between(1, 20)),
            count: None,
        },
        2 => Pattern::Bursts {
            count: random.between(1, 50),
            every: Span(millis(random, 1_000, 10_000)),
        },
        _ => Pattern::OnOff {
            rate: per_second(random.between(1, 40)),
            on: Span(millis(random, 500, 5_000)),
            off: Span(millis(random, 500, 20_000)),
        },
    };
    let isp = ISPS
        .get(random.below(isps as u64) as usize)
        .unwrap_or(&"google");
    let domains = if random.chance(0.3) {
        random.between(1, 10) as u32
    } else {
        0
    };
    TrafficSpec {
        name: format!("source-{n}"),
        class: ClassText(
            *random
                .pick(&outflow_core::class::Class::ALL)
                .unwrap_or(&outflow_core::class::Class::Normal),
        ),
        tenant: random
            .chance(0.5)
            .then(|| format!("tenant-{}", random.below(3))),
        tenants: random.between(1, 4) as u32,
        campaign: random.chance(0.3).then(|| "spring".to_owned()),
        destination: DestinationText(Destination::isp(*isp)),
        destinations: 1,
        domains,
        dns: Span(if domains > 0 {
            millis(random, 1, 500)
        } else {
            Nanos::ZERO
        }),
        pool: "default".to_owned(),
        sender_domain: None,
        channel: ChannelText::Email,
        cost: if random.chance(0.3) {
            Cost::Mixed(vec![(1, Share(0.7)), (2, Share(0.2)), (5, Share(0.1))])
        } else {
            Cost::Fixed(1)
        },
        expires: random
            .chance(0.3)
            .then(|| Span(millis(random, 500, 60_000))),
        not_before: Span(if random.chance(0.2) {
            millis(random, 1, 10_000)
        } else {
            Nanos::ZERO
        }),
        recipients: if random.chance(0.3) {
            random.between(1, 50)
        } else {
            0
        },
        starts: Span(Nanos(random.below(duration.0 / 2))),
        ends: None,
        arrive,
    }
}

fn faults(nodes: u32, duration: Nanos, random: &mut Random) -> Faults {
    let mut faults = Faults {
        heal_at: Some(Span(duration)),
        ..Faults::default()
    };
    let about = |random: &mut Random| When::About {
        about_every: Span(millis(random, 5_000, 40_000)),
    };
    if random.chance(0.6) {
        faults.crashes.push(Crash {
            node: None,
            when: about(random),
            down: Span(millis(random, 0, 8_000)),
        });
    }
    if random.chance(0.3) {
        faults.pauses.push(Pause {
            node: None,
            when: about(random),
            lasts: Span(millis(random, 10, 5_000)),
        });
    }
    if random.chance(0.4) {
        faults.clocks.push(ClockFault {
            node: Some(random.below(u64::from(nodes)) as u32),
            drift_ppm: random.between(0, 400) as i32 - 200,
            ahead_ms: random.between(0, 4_000) as i64 - 2_000,
            steps_at: Some(Span(Nanos(random.below(duration.0)))),
            steps_by_ms: random.between(0, 20_000) as i64 - 10_000,
        });
    }
    faults.store.commit = Latency::Lognormal {
        p50: Span(millis(random, 1, 5)),
        p99: Span(millis(random, 5, 50)),
    };
    faults.store.loses_unsynced = random.chance(0.5);
    if random.chance(0.3) {
        faults.store.slow_share = Share(0.02);
        faults.store.slow = Span(millis(random, 100, 2_000));
    }
    if random.chance(0.3) {
        faults.store.fails = Share(0.01);
    }
    if random.chance(0.3) {
        faults.transport.lost = Share(0.01);
        faults.transport.doubled = Share(0.01);
    }
    if random.chance(0.3) {
        faults.ledger.stalls.push(Window {
            when: about(random),
            lasts: Span(millis(random, 50, 5_000)),
        });
        faults.ledger.partitions.push(Partition {
            nodes: Vec::new(),
            when: about(random),
            lasts: Span(millis(random, 100, 10_000)),
        });
        faults
            .ledger
            .loses_state
            .push(Span(Nanos(random.below(duration.0))));
    }
    faults
}

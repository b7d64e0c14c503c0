//! Random worlds: a random scenario, widened.
//!
//! A world begins as the scenario of [`random_faults`](super::random::random_faults) with the same seed. A
//! stream of its own then adds what that does not have: a relay with many more
//! destinations than connections, several pools, tenants with accounts of their
//! own, and operators who pause, cancel, retry and move messages, remove, add and
//! change accounts, change policies, and restart nodes with other settings, all
//! of it on top of one another and of the faults. Every pause ends, every account
//! that is removed comes back, and each pool has one that serves everybody: so
//! everything accepted must still be settled in the end.
//!
//! Messages are few and runs are short, so that a world costs little more than
//! the scenario it began as.

use outflow_core::class::Class;
use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::limit::spec::Rate;
use outflow_core::time::Nanos;

use super::account::{AccountData, SessionText};
use super::action::{
    Action, CancelAction, MatchData, MoveAction, PauseAction, RestartAction, RetryAction,
};
use super::policy::{HeadroomData, PolicyData};
use super::random::without_store;
use super::random_leased::add_leased_limits;
use super::random_store::{add_store, kind_of};
use super::store::StoreKind;
use super::{Ledger, PressureText, Scenario};
use crate::network::latency::Latency;
use crate::network::spec::NetworkSpec;
use crate::random::Random;
use crate::traffic::pattern::Pattern;
use crate::traffic::spec::{ChannelText, Cost, TrafficSpec};
use crate::units::{ClassText, DestinationText, RateText, Share, Span};

/// The pool that random scenarios have.
const FIRST: &str = "default";
/// Further pools.
const SECOND: &str = "second";
const RELAY: &str = "relay";
/// The network that takes what relays send.
const HOSTS: &str = "hosts";

/// A random scenario with random faults, many destinations and operators. The
/// seed also decides the store.
pub fn random_world(seed: u64) -> Scenario {
    random_world_on(seed, kind_of(seed))
}

/// The same with this store, whatever the seed says.
pub fn random_world_on(seed: u64, kind: StoreKind) -> Scenario {
    let mut scenario = without_store(seed);
    scenario.name = format!("random-world-{seed}");
    scenario.title = format!("Random limits, flows, faults and operators of seed {seed}");
    let mut random = Random::named(seed, "random-world", 0);
    let random = &mut random;
    add_pool(&mut scenario, random);
    add_relay(&mut scenario, random);
    join_connections(&mut scenario, seed);
    add_own_accounts(&mut scenario, random);
    add_ledger_faults(&mut scenario, random);
    add_leased_limits(&mut scenario, seed);
    for _ in 0..random.between(0, 7) {
        add_operator(&mut scenario, random);
    }
    scenario.actions.sort_by_key(|action| action.at);
    add_store(&mut scenario, seed, kind);
    scenario
}

fn per_second(count: u64) -> RateText {
    RateText {
        rate: Rate::per_second(count.clamp(1, 1_000_000) as u32),
        spaced: false,
    }
}

fn millis(random: &mut Random, low: u64, high: u64) -> Span {
    Span(Nanos::from_millis(random.between(low, high)))
}

/// A time at which an operator may still begin something.
fn moment(scenario: &Scenario, random: &mut Random) -> Span {
    let last = scenario.duration.0.0 / 1_000_000 * 7 / 10;
    millis(random, 500, last)
}

/// Half of what is sent, or less, goes through accounts of its own.
fn add_pool(scenario: &mut Scenario, random: &mut Random) {
    if !random.chance(0.5) {
        return;
    }
    for n in 0..random.between(1, 2) {
        let mut account = account(&format!("second-{n}"), SECOND, random);
        account.connections = Some(random.between(1, 10) as u32);
        scenario.accounts.push(account);
    }
    for source in scenario.traffic.iter_mut().skip(1) {
        if random.chance(0.4) {
            source.pool = SECOND.to_owned();
        }
    }
}

fn account(name: &str, pool: &str, random: &mut Random) -> AccountData {
    let mut account = AccountData::new(name);
    account.pool = pool.to_owned();
    if random.chance(0.6) {
        account.sessions = SessionText::Connections;
        account.messages_per_session = Some(random.between(1, 50) as u32);
        account.idle_timeout = Some(millis(random, 200, 30_000));
    }
    if random.chance(0.3) {
        account.connect_rate = Some(per_second(random.between(2, 20)));
    }
    if random.chance(0.4) {
        account.rate = Some(per_second(random.between(5, 80)));
        account.burst = Some(random.between(5, 40) as u32);
    }
    account
}

/// A relay, or delivery to hosts: few connections, many destinations, few
/// messages for each.
fn add_relay(scenario: &mut Scenario, random: &mut Random) {
    if !random.chance(0.5) {
        return;
    }
    let mut relay = account("relay-0", RELAY, random);
    relay.connections = Some(random.between(1, 8) as u32);
    if random.chance(0.5) {
        relay.per_destination = Some(random.between(1, 3) as u32);
    }
    scenario.accounts.push(relay);
    let mut network = NetworkSpec::open(HOSTS);
    network.timeout = Span(Nanos::from_secs(10));
    network.latency = Latency::Uniform {
        from: millis(random, 5, 50),
        to: millis(random, 50, 300),
    };
    network.connect = Latency::constant(millis(random, 0, 200).0);
    scenario.networks.push(network);
    if random.chance(0.3) {
        let mut hosts = PolicyData::about("host", "*");
        hosts.rate = Some(per_second(random.between(1, 10)));
        hosts.burst = Some(random.between(5, 10) as u32);
        scenario.policies.push(hosts);
    }
    for n in 0..random.between(1, 2) {
        let source = relayed(n, scenario, random);
        scenario.traffic.push(source);
    }
}

/// In half of the worlds with a relay all its connections lead to one network and
/// carry messages for any destination. Drawn from a stream of its own: all other
/// worlds stay what they were before there were such relays.
fn join_connections(scenario: &mut Scenario, seed: u64) {
    let mut random = Random::named(seed, "random-world-relay", 0);
    let mut accounts = scenario.accounts.iter_mut();
    if let Some(relay) = accounts.find(|it| it.pool == RELAY)
        && random.chance(0.5)
    {
        relay.sessions = SessionText::Connections;
        relay.relay = Some(HOSTS.to_owned());
    }
}

fn relayed(n: u64, scenario: &Scenario, random: &mut Random) -> TrafficSpec {
    let destinations = random.between(5, 150);
    let by_domain = random.chance(0.3);
    let count = destinations * random.between(1, 3);
    let host = Destination::new(DestinationKind::Host, format!("mx-{n}"));
    TrafficSpec {
        name: format!("relayed-{n}"),
        class: ClassText(*random.pick(&Class::ALL).unwrap_or(&Class::Normal)),
        tenant: Some(format!("tenant-{}", random.below(3))),
        tenants: 1,
        campaign: random.chance(0.3).then(|| "spring".to_owned()),
        destination: DestinationText(host),
        destinations: destinations as u32,
        domains: if by_domain { destinations as u32 } else { 0 },
        dns: if by_domain {
            millis(random, 1, 500)
        } else {
            Span::default()
        },
        pool: RELAY.to_owned(),
        sender_domain: None,
        channel: ChannelText::Email,
        cost: Cost::default(),
        expires: random.chance(0.1).then(|| millis(random, 5_000, 60_000)),
        not_before: Span::default(),
        recipients: 0,
        starts: Span(Nanos(random.below(scenario.duration.0.0 / 2))),
        ends: None,
        arrive: match random.chance(0.5) {
            true => Pattern::AtOnce { count },
            false => Pattern::Burst {
                count,
                over: millis(random, 1_000, 20_000),
            },
        },
    }
}

/// The tenants of all sources.
fn tenants(scenario: &Scenario) -> Vec<String> {
    let mut found = Vec::new();
    for source in &scenario.traffic {
        let base = source.tenant.as_ref().unwrap_or(&source.name);
        match source.tenants {
            0 | 1 => found.push(base.clone()),
            count => found.extend((1..=count).map(|n| format!("{base}-{n}"))),
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// An account that serves one tenant alone, beside those that serve everybody.
fn add_own_accounts(scenario: &mut Scenario, random: &mut Random) {
    if !random.chance(0.3) {
        return;
    }
    let pools: Vec<String> = scenario.pools().into_iter().map(str::to_owned).collect();
    let pool = random.pick(&pools).cloned().unwrap_or_default();
    let mut own = account("own-0", &pool, random);
    own.connections = Some(random.between(1, 10) as u32);
    own.tenant = random.pick(&tenants(scenario)).cloned();
    scenario.accounts.push(own);
}

/// Requests that the ledger never gets, and answers that get lost after it did
/// what was asked.
fn add_ledger_faults(scenario: &mut Scenario, random: &mut Random) {
    if scenario.ledger == Ledger::Leased && random.chance(0.3) {
        scenario.faults.ledger.lost = Share(0.02);
    }
}

fn add_operator(scenario: &mut Scenario, random: &mut Random) {
    match random.below(10) {
        0..=2 => pause(scenario, random),
        3 => cancel(scenario, random),
        4 => relocate(scenario, random),
        5 => retry(scenario, random),
        6 => remove_account(scenario, random),
        7 => change_account(scenario, random),
        8 => change_policy(scenario, random),
        _ => restart(scenario, random),
    }
}

fn act(scenario: &mut Scenario, at: Span, change: impl FnOnce(&mut Action)) {
    let mut action = Action::at(at);
    change(&mut action);
    scenario.actions.push(action);
}

fn matching<const N: usize>(pairs: [(&str, &str); N]) -> MatchData {
    let owned = |(scope, name): (&str, &str)| (scope.to_owned(), name.to_owned());
    pairs.into_iter().map(owned).collect()
}

/// One of the destinations that messages are sent to.
fn destination(scenario: &Scenario, random: &mut Random) -> String {
    let Some(source) = random.pick(&scenario.traffic) else {
        return "isp:google".to_owned();
    };
    match u64::from(source.destinations) {
        0 | 1 => source.destination.0.to_string(),
        count => format!("{}-{}", source.destination.0, random.between(1, count)),
    }
}

/// Messages by what they are.
fn messages(scenario: &Scenario, random: &mut Random) -> MatchData {
    let all = tenants(scenario);
    match random.below(4) {
        0 => matching([("campaign", "spring")]),
        1 => {
            let class = random.pick(&Class::ALL).unwrap_or(&Class::Low);
            matching([("class", class.as_str())])
        }
        2 => matching([("destination", &destination(scenario, random))]),
        _ => matching([("tenant", random.pick(&all).map_or("", String::as_str))]),
    }
}

fn account_name(scenario: &Scenario, random: &mut Random) -> String {
    let account = random.pick(&scenario.accounts);
    account.map_or_else(String::new, |it| it.name.clone())
}

fn pause(scenario: &mut Scenario, random: &mut Random) {
    let account = account_name(scenario, random);
    let matches = match random.below(5) {
        0 => matching([("account", &account)]),
        1 => {
            let destination = destination(scenario, random);
            matching([("account", &account), ("destination", &destination)])
        }
        _ => messages(scenario, random),
    };
    let pause = PauseAction {
        matches,
        lasts: millis(random, 100, 12_000),
        lifted: random.chance(0.5),
    };
    act(scenario, moment(scenario, random), |it| {
        it.pause = Some(pause)
    });
}

fn cancel(scenario: &mut Scenario, random: &mut Random) {
    let cancel = match random.chance(0.5) {
        true => CancelAction {
            matches: messages(scenario, random),
            singles: 0,
        },
        false => CancelAction {
            matches: MatchData::new(),
            singles: random.between(1, 20) as u32,
        },
    };
    act(scenario, moment(scenario, random), |it| {
        it.cancel = Some(cancel)
    });
}

fn retry(scenario: &mut Scenario, random: &mut Random) {
    let matches = messages(scenario, random);
    let retry = RetryAction { matches };
    act(scenario, moment(scenario, random), |it| {
        it.retry = Some(retry)
    });
}

fn relocate(scenario: &mut Scenario, random: &mut Random) {
    let pools: Vec<String> = scenario.pools().into_iter().map(str::to_owned).collect();
    let pool = random.pick(&pools).map_or(FIRST, String::as_str).to_owned();
    let matches = messages(scenario, random);
    let relocate = MoveAction { matches, pool };
    let at = moment(scenario, random);
    act(scenario, at, |it| it.relocate = Some(relocate));
}

/// An account as it may be after a change. The first one of a pool always serves
/// everybody there.
fn changed(scenario: &Scenario, account: &AccountData, random: &mut Random) -> AccountData {
    let mut account = account.clone();
    if random.chance(0.5) {
        account.connections = Some(random.between(1, 20) as u32);
    }
    if random.chance(0.4) {
        account.rate = Some(per_second(random.between(5, 80)));
        account.burst = Some(random.between(5, 40) as u32);
    } else if random.chance(0.3) {
        (account.rate, account.burst) = (None, None);
    }
    let mut others = scenario.accounts.iter();
    let is_first = others
        .find(|it| it.pool == account.pool)
        .is_some_and(|it| it.name == account.name);
    if !is_first && random.chance(0.3) {
        let all = tenants(scenario);
        account.tenant = match account.tenant {
            Some(_) => None,
            None => random.pick(&all).cloned(),
        };
    }
    if !is_first && random.chance(0.2) {
        let pools: Vec<&str> = scenario.pools().into_iter().collect();
        account.pool = (*random.pick(&pools).unwrap_or(&FIRST)).to_owned();
    }
    account
}

fn remove_account(scenario: &mut Scenario, random: &mut Random) {
    let Some(account) = random.pick(&scenario.accounts).cloned() else {
        return;
    };
    let removed_at = moment(scenario, random);
    let back_at = Span(removed_at.0 + millis(random, 0, 10_000).0);
    let back = match random.chance(0.5) {
        true => account.clone(),
        false => changed(scenario, &account, random),
    };
    let name = Some(account.name);
    act(scenario, removed_at, |it| it.remove_account = name);
    act(scenario, back_at, |it| it.account = Some(back));
}

fn change_account(scenario: &mut Scenario, random: &mut Random) {
    let Some(account) = random.pick(&scenario.accounts).cloned() else {
        return;
    };
    let account = changed(scenario, &account, random);
    let at = moment(scenario, random);
    act(scenario, at, |it| it.account = Some(account));
}

/// A policy is added for a while, taken away, or has other numbers for a while.
fn change_policy(scenario: &mut Scenario, random: &mut Random) {
    let from = moment(scenario, random);
    let until = Span(from.0 + millis(random, 500, 15_000).0);
    let tenant = random.pick(&tenants(scenario)).cloned();
    let account = account_name(scenario, random);
    let to = destination(scenario, random);
    let mut policy = match random.below(4) {
        0 => PolicyData::about("tenant", &tenant.unwrap_or_default()),
        1 => PolicyData::about("global", "*"),
        2 => PolicyData {
            matches: matching([("account", &account), ("destination", &to)]),
            ..PolicyData::default()
        },
        // One that is there already.
        _ => {
            let count = scenario.policies.len() as u64;
            let index = random.below(count) as usize;
            if let Some(policy) = scenario.policies.get_mut(index)
                && policy.from.is_none()
                && policy.until.is_none()
            {
                policy.until = Some(from);
                let mut back = policy.clone();
                (back.from, back.until) = (Some(until), None);
                scenario.policies.push(back);
            }
            return;
        }
    };
    policy.rate = Some(per_second(random.between(2, 40)));
    policy.burst = Some(random.between(5, 30) as u32);
    policy.from = Some(from);
    policy.until = random.chance(0.7).then_some(until);
    scenario.policies.push(policy);
}

fn restart(scenario: &mut Scenario, random: &mut Random) {
    let restart = RestartAction {
        down: millis(random, 0, 3_000),
        apart: millis(random, 0, 5_000),
        graceful: random.chance(0.5),
        headroom: random.chance(0.5).then(|| HeadroomData {
            critical: Share(*random.pick(&[0.0, 0.1, 0.3]).unwrap_or(&0.0)),
            high: Share(*random.pick(&[0.0, 0.1]).unwrap_or(&0.0)),
            ..HeadroomData::default()
        }),
        under_pressure: random.chance(0.3).then_some(PressureText::Fill),
        // Sessions that one node keeps are missing at the others where the far
        // end caps them.
        keep_warm: (scenario.nodes == 1 && random.chance(0.3)).then(|| random.between(0, 2) as u32),
    };
    let at = moment(scenario, random);
    // A deploy often takes the ledger's state with it.
    if scenario.ledger == Ledger::Leased && random.chance(0.5) {
        let lost = Span(at.0 + millis(random, 0, 5_000).0);
        scenario.faults.ledger.loses_state.push(lost);
    }
    act(scenario, at, |it| it.restart = Some(restart));
}

//! What a change of policies, weights or knowledge does to those who wait.

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine::Settings;
use outflow_core::engine::action::Record;
use outflow_core::engine::command::{Command, PauseId};
use outflow_core::engine::event::Event;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::Rate;
use outflow_core::message::{Head, Seq};
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare, WhenAway};
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;

use super::{Desk, account, google_at_one, to, with};

fn change(desk: &mut Desk, policies: Policies) {
    let policies = Box::new(policies);
    desk.step(Event::PolicyChanged { policies });
}

/// An account that never runs out of slots.
fn roomy() -> AccountSpec {
    let mut account = account("one", &[]);
    account.sessions = Sessions::slots(100);
    account
}

fn bucket(rate: u32, burst: u32) -> Policies {
    let mut policy = Policy::new(to("google"));
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(rate)));
    policy.burst = Some(burst);
    with(policy)
}

#[test]
fn a_pause_by_destination_holds_what_is_resolved_later() {
    let mut desk = Desk::new(Policies::default());
    desk.set_account(roomy());
    let flow = desk.flow_of(FlowKey::to(Destination::unresolved("example.com")));
    desk.queue(flow, 1..=1);
    desk.command(Command::Pause {
        id: PauseId(1),
        matches: to("google"),
        until: None,
    });
    desk.step(Event::Resolved {
        domain: Name::from("example.com"),
        destination: Destination::isp("google"),
    });
    desk.pass(Nanos::from_secs(5));
    assert!(desk.deliveries.is_empty(), "it is paused");
    desk.command(Command::Resume { id: PauseId(1) });
    assert_eq!(desk.deliveries.len(), 1, "and goes when that ends");
}

#[test]
fn a_resolved_flow_is_found_by_its_destination() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow_of(FlowKey::to(Destination::unresolved("example.com")));
    desk.step(Event::Resolved {
        domain: Name::from("example.com"),
        destination: Destination::isp("google"),
    });
    assert_eq!(desk.flow("google"), flow);
}

#[test]
fn a_domain_that_moved_is_asked_for_again() {
    let mut desk = Desk::new(Policies::default());
    desk.set_account(roomy());
    let unresolved = || FlowKey::to(Destination::unresolved("example.com"));
    for (first, provider) in [(1, "google"), (2, "outlook")] {
        let flow = desk.flow_of(unresolved());
        desk.queue(flow, first..=first);
        desk.step(Event::Resolved {
            domain: Name::from("example.com"),
            destination: Destination::isp(provider),
        });
        assert_eq!(desk.flow(provider), flow, "nothing old is remembered here");
        desk.pass(Nanos::from_secs(61));
    }
    assert_eq!(desk.deliveries.len(), 2);
}

#[test]
fn a_policy_taken_away_and_put_back_gives_no_second_burst() {
    let mut desk = Desk::new(bucket(1, 10));
    desk.set_account(roomy());
    let flow = desk.flow("google");
    desk.queue(flow, 1..=30);
    let burst = desk.deliveries.len();
    assert!((5..=10).contains(&burst), "the burst, less its floor");
    desk.command(Command::Pause {
        id: PauseId(1),
        matches: Match::everything(),
        until: None,
    });
    change(&mut desk, Policies::default());
    change(&mut desk, bucket(1, 10));
    desk.command(Command::Resume { id: PauseId(1) });
    assert_eq!(desk.deliveries.len(), burst, "its count was kept");
    desk.pass(Nanos::from_secs(60));
    assert_eq!(desk.deliveries.len(), 30, "and it goes on");
}

#[test]
fn a_weight_changes_while_flows_of_the_tenant_wait() {
    let mut desk = Desk::new(google_at_one());
    desk.set_account(roomy());
    let mut flows = Vec::new();
    for campaign in ["a", "b", "c"] {
        let mut key = FlowKey::to(Destination::isp("google"));
        key.campaign = Some(Name::from(campaign));
        flows.push(desk.flow_of(key));
    }
    for (flow, first) in flows.iter().zip([1, 11, 21]) {
        desk.queue(*flow, first..=first + 4);
    }
    for weight in [5, 1, 9] {
        let mut policies = google_at_one();
        let mut policy = Policy::new(Match::from_pairs([("tenant", "default")]).unwrap());
        policy.weight = Some(weight);
        policies.insert(policy).unwrap();
        change(&mut desk, policies);
        desk.pass(Nanos::from_secs(2));
    }
    desk.pass(Nanos::from_secs(20));
    assert_eq!(desk.deliveries.len(), 15, "all go");
}

#[test]
fn what_no_longer_fits_does_not_keep_others_waiting() {
    let mut desk = Desk::new(bucket(1, 5));
    desk.set_account(roomy());
    let flow = desk.flow("google");
    let large = |seq| Head {
        cost: 5,
        ..Head::new(Seq(seq), desk.now.wall)
    };
    let heads = vec![large(1), large(2), Head::new(Seq(3), desk.now.wall)];
    desk.queue_heads(flow, heads);
    assert_eq!(desk.deliveries.len(), 1, "one fits");
    change(&mut desk, bucket(1, 2));
    desk.pass(Nanos::from_secs(5));
    let dead = |record: &&Record| matches!(record, Record::Dead { seq: Seq(2), .. });
    assert_eq!(
        desk.written.iter().filter(dead).count(),
        1,
        "given up at once"
    );
    assert_eq!(desk.deliveries.len(), 2, "the next goes");
}

#[test]
fn a_limit_that_is_open_while_its_ledger_is_away_opens_when_no_answer_comes() {
    let mut policy = Policy::new(to("google"));
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(10)));
    policy.when_away = Some(WhenAway::Open);
    let settings = Settings {
        leased: true,
        ..Settings::default()
    };
    let mut desk = Desk::with_settings(settings, with(policy));
    desk.set_account(roomy());
    let flow = desk.flow("google");
    desk.queue(flow, 1..=3);
    desk.pass(Nanos::from_millis(299));
    assert!(desk.deliveries.is_empty(), "the ledger may still answer");
    desk.pass(Nanos::from_millis(1));
    assert_eq!(desk.sent(), [1, 2, 3]);
}

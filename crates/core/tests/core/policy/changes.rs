//! What is refused, what a change does, and the defaults.

use outflow_core::account::Sessions;
use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::{Headroom, Rate};
use outflow_core::name::Name;
use outflow_core::policy::error::PolicyError;
use outflow_core::policy::patch::{Edit, Patch};
use outflow_core::policy::policy::{Policy, RateOrShare, WhenAway};
use outflow_core::policy::set::Policies;

use super::{
    DAY, MINUTE, account, bucket, flow, found, on, policy, quota, rate, set, share, spec, window,
};

#[test]
fn policies_that_nobody_can_honour_are_refused() {
    let cases = [
        (
            rate("account:*/tenant:acme", 1),
            "account x tenant cannot be limited together: an account is chosen for a pool and a \
             destination, whoever's message it sends. account, ip and brand combine with each \
             other, with pool, worker, and one of isp, carrier, push, host or lane; tenant \
             combines with all but account, ip and brand",
        ),
        (
            rate("recipient:joe", 1),
            "a policy governs each recipient alike: write recipient = \"*\", not \"joe\"",
        ),
        (
            share("tenant:*", 100),
            "a share of the account's rate belongs to a destination: match one of isp, carrier, \
             push, host or lane, alone or with account, ip, brand, pool or worker, not tenant",
        ),
        (
            share("isp:*", 1_005),
            "a share must be above 0% and at most 100%, not 100.5%",
        ),
        (
            rate("isp:*", 0),
            "rate must be at least 1: to stop sending, pause",
        ),
        (
            Policy {
                burst: Some(0),
                ..policy("isp:*")
            },
            "burst must be at least 1: to stop sending, pause",
        ),
        (
            Policy {
                limits: vec![window(0, DAY)],
                ..policy("isp:*")
            },
            "a limit must be at least 1: to stop sending, pause",
        ),
        (
            Policy {
                spaced: true,
                ..policy("isp:*")
            },
            "spaced says how a rate is kept: write a rate beside it",
        ),
        (
            Policy {
                spaced: true,
                burst: Some(2),
                ..rate("isp:*", 1)
            },
            "a spaced rate has no burst: leave out one of the two",
        ),
        (
            Policy {
                weight: Some(2),
                ..policy("tenant:*/isp:google")
            },
            "weight shares turns between tenants: match tenant alone, not tenant x isp",
        ),
    ];
    let mut policies = Policies::default();
    for (policy, told) in cases {
        let error = policies.insert(policy).expect_err(told);
        assert_eq!(error.to_string(), told);
    }
    for sender in ["account", "ip", "brand"] {
        for sent in ["tenant", "campaign", "class", "sender_domain", "recipient"] {
            let refused = policies.insert(rate(&format!("{sender}:*/{sent}:*"), 1));
            assert!(
                matches!(refused, Err(PolicyError::NotTogether { .. })),
                "{sender} x {sent}"
            );
        }
    }
    assert_eq!((policies.epoch(), policies.iter().count()), (0, 0));
}

#[test]
fn every_change_bumps_the_epoch_and_nothing_else_does() {
    let mut policies = Policies::default();
    let faster = |per_second| Patch {
        rate: Edit::Set(RateOrShare::Rate(Rate::per_second(per_second))),
        ..Patch::default()
    };
    policies.patch(on("isp:ATT"), faster(40)).expect("made");
    assert_eq!((policies.epoch(), policies.iter().count()), (1, 1));
    policies.patch(on("isp:att"), faster(40)).expect("the same");
    assert_eq!(policies.epoch(), 1);
    let burst = Patch {
        burst: Edit::Set(120),
        ..Patch::default()
    };
    policies.patch(on("isp:att"), burst).expect("changed");
    let att = FlowKey::to(Destination::isp("att"));
    assert_eq!(*spec(&policies.for_flow(&att), "isp:att"), bucket(40, 120));
    assert_eq!(policies.epoch(), 2);
    policies
        .patch(on("isp:att"), faster(0))
        .expect_err("a rate of nothing");
    assert_eq!(policies.epoch(), 2);
    assert_eq!(*spec(&policies.for_flow(&att), "isp:att"), bucket(40, 120));
    let cleared = Patch {
        rate: Edit::Clear,
        ..Patch::default()
    };
    policies.patch(on("isp:att"), cleared).expect("changed");
    assert!(policies.for_flow(&att).is_empty());
    assert!(policies.remove(&on("isp:att")).is_some());
    assert!(policies.remove(&on("isp:att")).is_none());
    assert_eq!(policies.epoch(), 4);
}

#[test]
fn weights_follow_the_tenant() {
    let weighed = |text, weight| Policy {
        weight: Some(weight),
        ..policy(text)
    };
    assert_eq!(Policies::default().weight(&flow()), 1);
    assert_eq!(set([weighed("tenant:*", 3)]).weight(&flow()), 3);
    let both = set([weighed("tenant:*", 3), weighed("tenant:acme", 5)]);
    assert_eq!(both.weight(&flow()), 5);
    let inherited = set([weighed("tenant:*", 3), rate("tenant:acme", 5)]);
    assert_eq!(inherited.weight(&flow()), 3);
}

#[test]
fn accounts_serve_their_tenant_and_slots_open_at_once() {
    let mut account = account();
    assert!(account.serves(&Name::from("acme")));
    account.tenant = Some(Name::from("beta"));
    assert!(!account.serves(&Name::from("acme")));
    assert_eq!(Sessions::slots(64).per_destination, 64);
}

#[test]
fn fairness_gives_way_when_the_ledger_is_away_and_caps_do_not() {
    let cases = [
        ("tenant:*", WhenAway::Open),
        ("campaign:*", WhenAway::Open),
        ("tenant:*/class:normal", WhenAway::Open),
        ("tenant:*/isp:google", WhenAway::Closed),
        ("isp:*", WhenAway::Closed),
        ("global", WhenAway::Closed),
        ("class:normal", WhenAway::Closed),
    ];
    for (text, expected) in cases {
        let limits = set([rate(text, 1)]).for_flow(&flow());
        let away: Vec<_> = limits.iter().map(|limit| limit.when_away).collect();
        assert_eq!(away, [expected], "{text}");
    }
}

#[test]
fn headroom_is_kept_where_it_costs_nothing() {
    let mut policies = set([Policy {
        limits: vec![window(9, MINUTE), quota(9, "UTC")],
        concurrency: Some(9),
        ..rate("isp:*", 9)
    }]);
    policies
        .insert(rate("class:normal", 1))
        .expect("can be honoured");
    let kept = Headroom([200, 0, 0, 0]);
    let cases = [
        ("isp:google", kept),
        ("isp:google#day@UTC", kept),
        ("isp:google#minute", Headroom::default()),
        ("isp:google#concurrency", Headroom::default()),
        ("class:normal", Headroom::default()),
    ];
    let limits = policies.for_flow(&flow());
    for (key, expected) in cases {
        assert_eq!(found(&limits, key).headroom, expected, "{key}");
    }
    let epoch = policies.epoch();
    policies.set_headroom(Headroom([100, 50, 0, 0]));
    assert_eq!(policies.epoch(), epoch + 1);
    let limits = policies.for_flow(&flow());
    assert_eq!(
        found(&limits, "isp:google").headroom,
        Headroom([100, 50, 0, 0])
    );
}

//! Which limits follow from which policies.

use std::collections::BTreeSet;

use outflow_core::account::AccountSpec;
use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::policy::policy::{Policy, RateOrShare, WhenAway};
use outflow_core::time::Nanos;

use super::{
    DAY, MINUTE, account, bucket, flow, found, keys, policy, quota, rate, set, share, spec, window,
};

#[test]
fn exact_beats_any_and_more_exact_beats_fewer() {
    let all = [
        rate("tenant:*/isp:*", 1),
        rate("tenant:*/isp:google", 2),
        rate("tenant:acme/isp:*", 3),
        rate("tenant:acme/isp:google", 4),
    ];
    // With fewer and fewer policies, the next in line holds, under one key.
    // Between two with one exact term, the earlier scope of the key decides.
    for (taken, expected) in [(4, 4), (3, 3), (2, 2), (1, 1)] {
        let limits = set(all.iter().take(taken).cloned()).for_flow(&flow());
        assert_eq!(keys(&limits), ["tenant:acme/isp:google"]);
        assert_eq!(
            *spec(&limits, "tenant:acme/isp:google"),
            bucket(expected, 1)
        );
    }
}

#[test]
fn all_sets_of_scopes_hold_together() {
    let limits = set([
        rate("global", 1),
        rate("pool:default", 1),
        rate("tenant:*", 1),
        rate("tenant:beta", 1),
        rate("campaign:*", 1),
        rate("class:normal", 1),
        rate("class:low", 1),
        rate("isp:*", 1),
        rate("carrier:*", 1),
        rate("campaign:*/carrier:us-att", 1),
        rate("sender_domain:*/isp:google", 1),
        rate("lane:*", 1),
        rate("worker:*", 1),
        rate("account:*", 1),
        rate("ip:*/isp:google", 1),
        rate("recipient:*", 1),
    ]);
    let mut yielded = keys(&limits.for_flow(&flow()));
    yielded.sort();
    assert_eq!(
        yielded,
        [
            "campaign:q4",
            "class:normal",
            "global",
            "isp:google",
            "lane:default/isp:google",
            "pool:default",
            "sender_domain:news.acme.com/isp:google",
            "tenant:acme",
            "worker:local",
        ]
    );
    assert_eq!(keys(&limits.for_recipient(&flow())), ["recipient:*"]);
    assert_eq!(keys(&limits.for_account(&account())), ["account:ses-1"]);
    assert_eq!(
        keys(&limits.for_pair(&account(), &flow())),
        ["ip:192.0.2.1/isp:google"]
    );
}

#[test]
fn what_a_policy_leaves_open_it_inherits() {
    let mut exact = Policy {
        burst: Some(50),
        ..policy("isp:google")
    };
    let any = Policy {
        burst: Some(5),
        concurrency: Some(7),
        limits: vec![window(600, MINUTE)],
        when_away: Some(WhenAway::LocalShare),
        ..rate("isp:*", 20)
    };
    let limits = set([exact.clone(), any.clone()]).for_flow(&flow());
    assert_eq!(
        keys(&limits),
        ["isp:google", "isp:google#minute", "isp:google#concurrency"]
    );
    assert_eq!(*spec(&limits, "isp:google"), bucket(20, 50));
    assert_eq!(found(&limits, "isp:google").when_away, WhenAway::LocalShare);

    exact.rate = Some(RateOrShare::Rate(Rate::per_second(9)));
    exact.limits = vec![window(70, DAY)];
    let limits = set([exact, any]).for_flow(&flow());
    assert_eq!(*spec(&limits, "isp:google"), bucket(9, 50));
    assert_eq!(*spec(&limits, "isp:google#day"), window(70, DAY));
    assert_eq!(
        *spec(&limits, "isp:google#concurrency"),
        LimitSpec::Concurrency { slots: 7 }
    );
}

#[test]
fn spacing_is_inherited_with_its_rate() {
    let spaced = Policy {
        spaced: true,
        ..rate("isp:*", 4)
    };
    let burst = Policy {
        burst: Some(50),
        ..policy("isp:google")
    };
    let limits = set([spaced.clone(), burst]).for_flow(&flow());
    let leaky = LimitSpec::LeakyBucket {
        rate: Rate::per_second(4),
    };
    assert_eq!(*spec(&limits, "isp:google"), leaky);
    let limits = set([spaced, rate("isp:google", 30)]).for_flow(&flow());
    assert_eq!(*spec(&limits, "isp:google"), bucket(30, 3));
}

#[test]
fn an_account_keeps_its_own_limits_beside_policies() {
    let account = AccountSpec {
        limits: vec![
            bucket(14, 28),
            window(600, MINUTE),
            quota(50_000, "America/Los_Angeles"),
        ],
        ..account()
    };
    let policies = set([
        Policy {
            limits: vec![window(500, MINUTE), window(10, Nanos::from_secs(90))],
            concurrency: Some(3),
            ..rate("account:*", 10)
        },
        rate("ip:192.0.2.1", 5),
        rate("brand:*", 6),
        rate("pool:default/account:ses-1", 7),
        rate("account:ses-1/isp:google", 8),
        rate("account:ses-2", 9),
    ]);
    let limits = policies.for_account(&account);
    assert_eq!(
        keys(&limits).into_iter().collect::<BTreeSet<_>>(),
        [
            "account:ses-1",
            "account:ses-1#rate2",
            "account:ses-1#minute",
            "account:ses-1#90s",
            "account:ses-1#day@America/Los_Angeles",
            "account:ses-1#concurrency",
            "ip:192.0.2.1",
            "brand:acme-inc",
            "pool:default/account:ses-1",
        ]
        .map(String::from)
        .into()
    );
    assert_eq!(*spec(&limits, "account:ses-1"), bucket(14, 28));
    assert_eq!(*spec(&limits, "account:ses-1#rate2"), bucket(10, 1));
    assert_eq!(*spec(&limits, "account:ses-1#minute"), window(500, MINUTE));
    assert_eq!(
        keys(&policies.for_pair(&account, &flow())),
        ["account:ses-1/isp:google"]
    );
}

#[test]
fn a_share_belongs_to_account_and_destination() {
    let with = |limits| AccountSpec {
        limits,
        ..account()
    };
    let tenth = Policy {
        concurrency: Some(5),
        ..share("isp:google", 100)
    };
    let policies = set([tenth.clone()]);
    assert_eq!(
        keys(&policies.for_flow(&flow())),
        ["isp:google#concurrency"]
    );
    // What the account has, then a tenth of it.
    let cases = [
        (
            vec![bucket(14, 28), window(600, MINUTE)],
            (7, Nanos::from_secs(5)),
        ),
        (
            vec![bucket(100, 1), bucket(40, 9)],
            (1, Nanos::from_millis(250)),
        ),
        (
            vec![window(600, MINUTE), window(6_000, DAY)],
            (1, Nanos::from_secs(144)),
        ),
        (vec![quota(86_400, "UTC")], (1, Nanos::from_secs(10))),
    ];
    for (limits, (count, per)) in cases {
        let limits = policies.for_pair(&with(limits), &flow());
        assert_eq!(keys(&limits), ["account:ses-1/isp:google"]);
        let rate = Rate { count, per };
        let burst = rate.default_burst();
        assert_eq!(
            *spec(&limits, "account:ses-1/isp:google"),
            LimitSpec::TokenBucket { rate, burst }
        );
    }
    assert!(policies.for_pair(&with(vec![]), &flow()).is_empty());

    // A policy on the account counts too, and a rate of the pair stays beside.
    let policies = set([tenth, rate("account:*", 30), rate("account:*/isp:*", 20)]);
    let limits = policies.for_pair(&with(vec![]), &flow());
    assert_eq!(*spec(&limits, "account:ses-1/isp:google"), bucket(20, 2));
    let third = Rate {
        count: 3,
        per: Nanos::from_secs(1),
    };
    assert_eq!(
        *spec(&limits, "account:ses-1/isp:google#rate2"),
        LimitSpec::TokenBucket {
            rate: third,
            burst: 1
        }
    );
}

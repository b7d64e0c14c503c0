//! Which limits follow from which policies, and what they are called.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::class::Class;
use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::{Headroom, LimitSpec, Period, Rate, Zone};
use outflow_core::message::Recipient;
use outflow_core::name::Name;
use outflow_core::policy::applied::Applied;
use outflow_core::policy::error::PolicyError;
use outflow_core::policy::facet::Facet;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::patch::{Edit, Patch};
use outflow_core::policy::policy::{Policy, RateOrShare, WhenAway};
use outflow_core::policy::scope::Scope;
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;
use proptest::prelude::*;

const MINUTE: Nanos = Nanos::from_secs(60);
const DAY: Nanos = Nanos::from_secs(86_400);

fn on(text: &str) -> Match {
    text.parse().expect("a match")
}

fn policy(text: &str) -> Policy {
    Policy::new(on(text))
}

fn rate(text: &str, per_second: u32) -> Policy {
    Policy {
        rate: Some(RateOrShare::Rate(Rate::per_second(per_second))),
        ..policy(text)
    }
}

fn share(text: &str, permille: u16) -> Policy {
    Policy {
        rate: Some(RateOrShare::Share { permille }),
        ..policy(text)
    }
}

fn set(policies: impl IntoIterator<Item = Policy>) -> Policies {
    let mut set = Policies::default();
    for policy in policies {
        set.insert(policy).expect("a policy that can be honoured");
    }
    set
}

fn bucket(per_second: u32, burst: u32) -> LimitSpec {
    LimitSpec::TokenBucket {
        rate: Rate::per_second(per_second),
        burst,
    }
}

fn window(count: u32, window: Nanos) -> LimitSpec {
    LimitSpec::SlidingWindow { count, window }
}

fn quota(count: u32, zone: &str) -> LimitSpec {
    LimitSpec::CalendarWindow {
        count,
        period: Period::Day,
        zone: Zone {
            name: Name::from(zone),
            rules: TimeZone::get(zone).expect("a known zone"),
        },
    }
}

fn flow() -> FlowKey {
    FlowKey {
        tenant: Name::from("acme"),
        campaign: Some(Name::from("q4")),
        sender_domain: Some(Name::from("News.Acme.com")),
        ..FlowKey::to(Destination::isp("google"))
    }
}

fn account() -> AccountSpec {
    AccountSpec {
        ip: Some(Name::from("192.0.2.1")),
        brand: Some(Name::from("acme-inc")),
        ..AccountSpec::new("ses-1")
    }
}

fn keys(limits: &[Applied]) -> Vec<String> {
    limits.iter().map(|limit| limit.key.to_string()).collect()
}

fn spec<'a>(limits: &'a [Applied], key: &str) -> &'a LimitSpec {
    &found(limits, key).spec
}

fn found<'a>(limits: &'a [Applied], key: &str) -> &'a Applied {
    limits
        .iter()
        .find(|limit| limit.key.to_string() == key)
        .unwrap_or_else(|| unreachable!("no {key} in {:?}", keys(limits)))
}

#[test]
fn keys_are_written_in_one_way() {
    let cases = [
        ("isp:google", "isp:google"),
        ("isp:google/account:ses-1", "account:ses-1/isp:google"),
        ("isp:GMail", "isp:google"),
        ("isp:ATT", "isp:att"),
        ("carrier:AT&T", "carrier:us-att"),
        ("host:API.Example.com", "host:api.example.com"),
        ("tenant:Acme", "tenant:Acme"),
        ("ip:2001:DB8::1", "ip:2001:db8::1"),
        ("global", "global"),
        ("global:all", "global"),
        ("queue:default/isp:Gmail", "lane:default/isp:google"),
        (
            "lane:a%2Fb/domain:X.org/tenant:t",
            "tenant:t/lane:a%2Fb/domain:x.org",
        ),
        ("tenant:a%2Fb%23c%25", "tenant:a%2Fb%23c%25"),
        ("account:ses-1#concurrency", "account:ses-1#concurrency"),
        ("account:ses-1#60s", "account:ses-1#minute"),
        ("account:ses-1#3600000ms", "account:ses-1#hour"),
        ("account:ses-1#90s", "account:ses-1#90s"),
        ("account:ses-1#1500ms", "account:ses-1#1500ms"),
        ("account:ses-1#rate2", "account:ses-1#rate2"),
        (
            "account:ses-1#day@America/Los_Angeles",
            "account:ses-1#day@America/Los_Angeles",
        ),
    ];
    for (written, canonical) in cases {
        let key: LimitKey = written.parse().expect(written);
        assert_eq!(key.to_string(), canonical);
        assert_eq!(canonical.parse(), Ok(key), "{canonical} reads back");
    }
}

#[test]
fn wrong_keys_say_what_is_right() {
    let cases = [
        (
            "",
            "nothing is named: write a scope and a name, as in isp:google",
        ),
        ("ips:google", "unknown scope \"ips\": did you mean ip?"),
        (
            "acount:ses-1",
            "unknown scope \"acount\": did you mean account?",
        ),
        (
            "sender-domain:x",
            "unknown scope \"sender-domain\": did you mean sender_domain?",
        ),
        (
            "Tenants:x",
            "unknown scope \"Tenants\": did you mean tenant?",
        ),
        (
            "isp",
            "isp has no name: write isp:NAME, or isp:* for each of them",
        ),
        (
            "isp:a/isp:b",
            "isp is named twice: a key has one name for each scope",
        ),
        (
            "lane:default",
            "a lane is written POOL/KIND:NAME, as in lane:default/isp:google, not \"default\"",
        ),
        (
            "isp:google#weekly",
            "unknown facet \"weekly\": use concurrency, minute, hour, day, a length as in 90s, \
             a calendar as in day@UTC, or rate2 for a second rate",
        ),
    ];
    for (written, told) in cases {
        let error = written.parse::<LimitKey>().expect_err(written);
        assert_eq!(error.to_string(), told);
    }
    let error = "zzz:x".parse::<LimitKey>().expect_err("no scope");
    assert!(
        error
            .to_string()
            .contains("use one of global, pool, account")
    );
}

#[test]
fn wrong_matches_say_what_is_right() {
    let cases: [(&[(&str, &str)], &str); 8] = [
        (
            &[],
            "nothing is named: write a scope and a name, as in isp:google",
        ),
        (
            &[("tennant", "*")],
            "unknown scope \"tennant\": did you mean tenant?",
        ),
        (
            &[("tenant", "")],
            "tenant has no name: write tenant:NAME, or tenant:* for each of them",
        ),
        (
            &[("class", "urgent")],
            "unknown class \"urgent\": use critical, high, normal or low",
        ),
        (
            &[("isp", "*"), ("carrier", "*")],
            "isp x carrier matches nothing: a message has one destination",
        ),
        (
            &[("global", "*"), ("isp", "*")],
            "global is everything and stands alone: leave it out beside isp",
        ),
        (
            &[("destination", "google")],
            "a destination is written KIND:NAME, as in isp:google, not \"google\"",
        ),
        (
            &[("lane", "*"), ("pool", "a")],
            "a lane already names its pool: leave pool out, or write pool and a destination",
        ),
    ];
    for (pairs, told) in cases {
        let error = Match::from_pairs(pairs.iter().copied()).expect_err(told);
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn a_match_governs_flows_accounts_or_pairs() {
    let (flow, account) = (flow(), account());
    // What is matched, then: the flow, the account, the pair.
    let cases = [
        ("global", true, true, true),
        ("tenant:acme", true, false, true),
        ("tenant:Acme", false, false, false),
        ("tenant:*/campaign:q4", true, false, true),
        ("campaign:q5", false, false, false),
        ("class:normal", true, false, true),
        ("class:low", false, false, false),
        ("isp:gmail", true, false, true),
        ("isp:GOOGLE", true, false, true),
        ("isp:yahoo", false, false, false),
        ("host:*", false, false, false),
        ("sender_domain:news.acme.com", true, false, true),
        ("pool:default", true, true, true),
        ("account:ses-1", false, true, true),
        ("account:ses-2", false, false, false),
        ("ip:192.0.2.1/brand:*", false, true, true),
        ("account:*/isp:google", false, false, true),
        ("account:ses-1/tenant:acme", false, false, true),
        ("lane:default/isp:gmail", true, false, true),
        ("lane:*", true, false, true),
        ("lane:bulk/isp:google", false, false, false),
        ("recipient:*", false, false, false),
    ];
    for (text, of_flow, of_account, of_pair) in cases {
        let matched = on(text);
        assert_eq!(matched.matches_flow(&flow), of_flow, "{text} flow");
        assert_eq!(
            matched.matches_account(&account.facts()),
            of_account,
            "{text} account"
        );
        assert_eq!(
            matched.matches_pair(&account.facts(), &flow),
            of_pair,
            "{text} pair"
        );
    }
    let bare = FlowKey::to(Destination::unresolved("Example.org"));
    assert!(!on("campaign:*").matches_flow(&bare));
    assert!(!on("sender_domain:*").matches_flow(&bare));
    assert!(on("lane:default/domain:example.ORG").matches_flow(&bare));
    let written = Match::from_pairs([("destination", "isp:Gmail"), ("tenant", "*")]);
    assert_eq!(written.expect("a match").to_string(), "tenant:*/isp:google");
}

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
fn case_and_alias_find_one_policy() {
    let mut policies = set([rate("isp:gmail", 1)]);
    policies
        .insert(rate("isp:GOOGLE", 2))
        .expect("the same policy");
    assert_eq!(policies.iter().count(), 1);
    let shouted = FlowKey::to(Destination::isp("Google"));
    assert_eq!(keys(&policies.for_flow(&shouted)), ["isp:google"]);
    let carrier = FlowKey::to(Destination::new(DestinationKind::Carrier, "US-ATT"));
    let limits = set([rate("carrier:att", 3)]).for_flow(&carrier);
    assert_eq!(keys(&limits), ["carrier:us-att"]);
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

#[test]
fn recipients_complete_the_key() {
    let policies = set([rate("recipient:*/tenant:*", 1)]);
    let limits = policies.for_recipient(&flow());
    let template = &found(&limits, "tenant:acme/recipient:*").key;
    assert!(template.is_template());
    let key = template.for_recipient(Recipient(0xbeef));
    assert_eq!(key.to_string(), "tenant:acme/recipient:000000000000beef");
    assert!(!key.is_template());
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
fn every_change_bumps_the_epoch_and_nothing_else_does() {
    let mut policies = Policies::default();
    let faster = |per_second| Patch {
        rate: Edit::Set(RateOrShare::Rate(Rate::per_second(per_second))),
        ..Patch::default()
    };
    policies
        .patch(on("isp/ATT".replace('/', ":").as_str()), faster(40))
        .expect("made");
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
fn accounts_serve_their_tenant_and_slots_open_at_once() {
    let mut account = account();
    assert!(account.serves(&Name::from("acme")));
    account.tenant = Some(Name::from("beta"));
    assert!(!account.serves(&Name::from("acme")));
    assert_eq!(Sessions::slots(64).per_destination, 64);
}

/// A match over one to three scopes, of things that the flows below have.
fn a_match() -> impl Strategy<Value = Match> {
    let terms = [
        ("pool", "default"),
        ("account", "ses-1"),
        ("ip", "192.0.2.1"),
        ("brand", "acme-inc"),
        ("sender_domain", "news.acme.com"),
        ("tenant", "acme"),
        ("campaign", "q4"),
        ("class", "normal"),
        ("isp", "google"),
        ("carrier", "us-att"),
        ("worker", "local"),
        ("recipient", "*"),
    ];
    let term = (proptest::sample::select(terms.to_vec()), any::<bool>());
    proptest::collection::btree_map(
        term.clone()
            .prop_map(|((word, name), exact)| (word, if exact { name } else { "*" })),
        Just(()),
        1..=3,
    )
    .prop_filter_map("a match that can be", |pairs| {
        Match::from_pairs(pairs.into_keys()).ok()
    })
}

/// Policies whose numbers are all made from `number`.
fn numbered(matches: &Match, fields: u8, number: u32) -> Policy {
    let bit = |place: u8| fields & 1 << place != 0;
    let rate = RateOrShare::Rate(Rate::per_second(number));
    Policy {
        rate: bit(0).then_some(rate),
        burst: bit(1).then_some(number),
        concurrency: bit(2).then_some(number),
        limits: [
            bit(3).then(|| window(number, DAY)),
            bit(4).then(|| bucket(number, number)),
            bit(5).then(|| quota(number, "UTC")),
            bit(6).then(|| window(number, Nanos::from_secs(90))),
        ]
        .into_iter()
        .flatten()
        .collect(),
        ..Policy::new(matches.clone())
    }
}

/// All keys that policies with these numbers yield, as they are written.
fn all_keys(written: &[(Match, u8)], numbers: impl Iterator<Item = u32>) -> Vec<Vec<String>> {
    let mut policies = Policies::default();
    for ((matches, fields), number) in written.iter().zip(numbers) {
        // Those that cannot be honoured are refused whatever their numbers.
        let _ = policies.insert(numbered(matches, *fields, number));
    }
    let mut account = account();
    account.limits = vec![bucket(77_777, 1), window(77_777, DAY)];
    vec![
        keys(&policies.for_flow(&flow())),
        keys(&policies.for_recipient(&flow())),
        keys(&policies.for_account(&account)),
        keys(&policies.for_pair(&account, &flow())),
    ]
}

proptest! {
    #[test]
    fn keys_are_unique_and_know_no_numbers(
        written in proptest::collection::vec((a_match(), any::<u8>()), 0..20),
    ) {
        let low = all_keys(&written, 70_001..);
        let high = all_keys(&written, (80_001..80_100).rev());
        prop_assert_eq!(&low, &high, "other numbers, same keys");
        let mut seen = BTreeSet::new();
        for key in low.into_iter().flatten() {
            prop_assert!(!key.contains('7') && !key.contains('8'), "{} has a number", key);
            let read: LimitKey = key.parse().expect("a key reads back");
            prop_assert_eq!(read.to_string(), key.clone());
            prop_assert!(seen.insert(key.clone()), "{} occurs twice", key);
        }
    }

    #[test]
    fn the_order_of_writing_does_not_matter(
        written in proptest::collection::btree_map(a_match(), any::<u8>(), 0..12),
    ) {
        let policies = |written: Vec<(&Match, &u8)>| {
            let mut policies = Policies::default();
            for (matches, fields) in written {
                let _ = policies.insert(numbered(matches, *fields, u32::from(*fields) + 1));
            }
            (policies.for_flow(&flow()), policies.for_account(&account()))
        };
        let forwards = policies(written.iter().collect());
        let backwards = policies(written.iter().rev().collect());
        prop_assert_eq!(forwards, backwards);
    }

    #[test]
    fn any_name_reads_back(tenant in "\\PC{1,12}", account in "[/#%a-z:]{1,12}", length in 1u64..) {
        let parts = [
            (Scope::Tenant, Name::from(tenant)),
            (Scope::Account, Name::from(account)),
            (Scope::Lane, Name::from("a#b/isp:google")),
        ];
        let key = LimitKey::new(parts, Facet::Window(Nanos(length)));
        prop_assert_eq!(key.to_string().parse(), Ok(key));
    }

    #[test]
    fn classes_only_see_their_own_limits(class in 0usize..4) {
        let policies = set(Class::ALL.map(|class| rate(&format!("class:{class}"), 1)));
        let class = Class::ALL.into_iter().nth(class).expect("one of the four");
        let limits = policies.for_flow(&FlowKey { class, ..flow() });
        prop_assert_eq!(keys(&limits), [format!("class:{class}")]);
    }
}

//! What limits and matches are called, and what they govern.

use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::flow::FlowKey;
use outflow_core::message::Recipient;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;

use super::{account, flow, found, keys, on, rate, set};

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
             a calendar as in day@UTC, rate2 for a second rate, or learnt",
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
fn recipients_complete_the_key() {
    let policies = set([rate("recipient:*/tenant:*", 1)]);
    let limits = policies.for_recipient(&flow());
    let template = &found(&limits, "tenant:acme/recipient:*").key;
    assert!(template.is_template());
    let key = template.for_recipient(Recipient(0xbeef));
    assert_eq!(key.to_string(), "tenant:acme/recipient:000000000000beef");
    assert!(!key.is_template());
}

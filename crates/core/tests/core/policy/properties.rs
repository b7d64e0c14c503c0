//! What holds for any policies.

use std::collections::BTreeSet;

use outflow_core::class::Class;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::Rate;
use outflow_core::name::Name;
use outflow_core::policy::facet::Facet;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::scope::Scope;
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;
use proptest::prelude::*;

use super::{DAY, account, bucket, flow, keys, quota, rate, set, window};

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

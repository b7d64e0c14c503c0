//! What a node remembers of its debits, for a ledger that lost its counts.

use std::sync::Arc;

use outflow_core::ledger::debits::{Debit, DebitPlace, NodeDebits, RecalledDebits};
use outflow_core::limit::LimitSpec;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::scope::Scope;
use outflow_core::time::{Mono, Nanos, Wall};

fn key() -> Arc<LimitKey> {
    Arc::new(LimitKey::of(Scope::Tenant, "acme"))
}

fn hour() -> LimitSpec {
    let window = Nanos::from_secs(3_600);
    LimitSpec::SlidingWindow { count: 10, window }
}

fn secs(count: u64) -> Mono {
    Mono(Nanos::from_secs(count).0)
}

fn debit(epoch: u64, at: u64) -> Debit {
    Debit {
        epoch,
        at,
        wall: Wall(0),
        tokens: 1,
    }
}

fn recalled(spec: &LimitSpec, debits: Vec<(DebitPlace, u64)>) -> RecalledDebits {
    RecalledDebits {
        key: key(),
        spec: spec.clone(),
        epoch: 1,
        debits,
        unspent: 3,
    }
}

#[test]
fn debits_stay_few_and_no_older_than_they_are() {
    let mut debits = NodeDebits::default();
    for second in 0..7_200 {
        debits.add(secs(second), &key(), (&hour(), 0), debit(1, second));
    }
    let report = debits.report(secs(7_200), Wall(0), &key(), 2).unwrap();
    assert!(report.debits.len() <= 140, "{}", report.debits.len());
    let lately = report.debits.iter().filter_map(|(place, tokens)| {
        let DebitPlace::Age(age) = place else {
            return None;
        };
        (*age <= Nanos::from_secs(3_600)).then_some(*tokens)
    });
    let lately: u64 = lately.sum();
    assert!((3_600..3_700).contains(&lately), "{lately}");
}

#[test]
fn only_a_new_epoch_is_told_and_only_once() {
    let mut debits = NodeDebits::default();
    debits.add(secs(1), &key(), (&hour(), 0), debit(1, 5));
    assert!(debits.unreported(|_| 1).is_empty());
    assert_eq!(debits.unreported(|_| 2).len(), 1);
    // A lease of the new epoch is known there already.
    debits.add(secs(1), &key(), (&hour(), 0), debit(2, 9));
    let report = debits.report(secs(1), Wall(0), &key(), 2).unwrap();
    assert_eq!(report.debits.len(), 1);
    assert!(!debits.is_reported(&key(), 2));
    debits.reported(&key(), 2);
    assert!(debits.is_reported(&key(), 2));
    assert!(debits.unreported(|_| 2).is_empty());
}

#[test]
fn what_came_back_is_not_reported() {
    let mut debits = NodeDebits::default();
    debits.add(secs(1), &key(), (&hour(), 0), debit(1, 5));
    debits.give_back(&key(), 1, 5, 1);
    let report = debits.report(secs(1), Wall(0), &key(), 2).unwrap();
    assert_eq!(report.debits.iter().map(|(_, it)| it).sum::<u64>(), 0);
}

#[test]
fn what_an_earlier_process_used_is_reported_by_its_age() {
    let mut debits = NodeDebits::default();
    // Longer ago than this process lives.
    let age = Nanos::from_secs(1_000);
    let before = vec![(DebitPlace::Age(age), 7)];
    debits.recall(secs(1), &recalled(&hour(), before));
    assert!(debits.unreported(|_| 1).is_empty(), "that epoch knows");
    let report = debits.report(secs(11), Wall(0), &key(), 2).unwrap();
    let ages: Vec<_> = report.debits.iter().collect();
    let [(DebitPlace::Age(old), 7), (DebitPlace::Age(late), 3)] = ages.as_slice() else {
        unreachable!("{ages:?}");
    };
    assert!(*old <= Nanos::from_secs(1_010) && *old > Nanos::from_secs(1_000));
    assert!(
        *late <= Nanos::from_secs(10),
        "what may be used is used last"
    );
}

#[test]
fn what_may_be_used_of_a_quota_counts_in_the_ledgers_day() {
    let day = LimitSpec::parse("100/day@UTC").unwrap();
    let hours = |count: i64| Wall(count * 3_600_000_000_000);
    let mut debits = NodeDebits::default();
    let before = vec![(DebitPlace::Span(hours(0), hours(24)), 40)];
    debits.recall(secs(1), &recalled(&day, before));
    let report = debits.report(secs(2), hours(30), &key(), 2).unwrap();
    let (today, tomorrow) = ((hours(0), hours(24)), (hours(24), hours(48)));
    assert!(
        report
            .debits
            .contains(&(DebitPlace::Span(today.0, today.1), 40))
    );
    let promised = (DebitPlace::Span(tomorrow.0, tomorrow.1), 3);
    assert!(report.debits.contains(&promised), "{:?}", report.debits);
    // It stays there, also if it is told again later.
    let later = debits.report(secs(3), hours(60), &key(), 3).unwrap();
    assert!(later.debits.contains(&promised), "{:?}", later.debits);
}

//! What was sent where lately.

use outflow_core::outcome::ReplyClass;
use outflow_core::time::Wall;
use outflow_telemetry::catalogue::{AttemptOutcome, Attempted, Event};
use outflow_telemetry::history::Lately;
use outflow_telemetry::metrics::Bounds;
use outflow_telemetry::{Metrics, Sink, without_addresses};

use super::{AT, attempt, key};

fn metrics() -> Metrics {
    let bounds = Bounds {
        destinations: 2,
        ..Bounds::default()
    };
    Metrics::new("1", bounds)
}

#[test]
fn attempts_are_counted_by_destination_until_they_are_taken() {
    let (metrics, lately) = (metrics(), Lately::new(2));
    let outcomes = [
        (AttemptOutcome::Delivered, ReplyClass::Accepted),
        (AttemptOutcome::Delivered, ReplyClass::Accepted),
        (AttemptOutcome::Deferred, ReplyClass::Rate),
        (AttemptOutcome::Dead, ReplyClass::Reputation),
        (AttemptOutcome::Deferred, ReplyClass::Greylist),
        (AttemptOutcome::Uncertain, ReplyClass::Network),
        (AttemptOutcome::Bounced, ReplyClass::Recipient),
    ];
    for name in ["google", "yahoo", "third", "fourth"] {
        let key = key(name);
        for (outcome, reason) in outcomes {
            lately.emit(&Event::Attempted(Attempted {
                outcome,
                reason,
                ..attempt(&key, metrics.slot(&key))
            }));
        }
    }
    let taken = lately.take();
    let named: Vec<(&str, [u64; 4])> = taken
        .iter()
        .map(|one| (one.destination.as_str(), one.counts))
        .collect();
    let wanted = [
        ("other", [4, 4, 4, 2]),
        ("isp:google", [2, 2, 2, 1]),
        ("isp:yahoo", [2, 2, 2, 1]),
    ];
    assert_eq!(named, wanted);
    assert!(lately.take().is_empty(), "idle slices cost nothing");
}

#[test]
fn the_first_refusal_of_each_account_is_the_example() {
    let (metrics, lately) = (metrics(), Lately::new(2));
    let key = key("google");
    let slot = metrics.slot(&key);
    for (no, account) in [Some("a"), Some("b"), Some("a"), None]
        .into_iter()
        .enumerate()
    {
        lately.emit(&Event::Attempted(Attempted {
            at: Wall(AT.0 + no as i64),
            account,
            code: Some(420 + no as u16),
            ..attempt(&key, slot)
        }));
    }
    let taken = lately.take();
    let refused: Vec<_> = taken[0]
        .refused
        .iter()
        .map(|(account, it)| (account.as_str(), it.count, it.at.0 - AT.0, it.code))
        .collect();
    let wanted = [
        ("a", 2, 0, Some(420)),
        ("b", 1, 1, Some(421)),
        ("other", 1, 3, Some(423)),
    ];
    assert_eq!(refused, wanted);
}

#[test]
fn accounts_without_end_do_not_fill_the_memory() {
    let (metrics, lately) = (metrics(), Lately::new(2));
    let key = key("google");
    let slot = metrics.slot(&key);
    for no in 0..10_050 {
        let account = format!("account-{no}");
        lately.emit(&Event::Attempted(Attempted {
            account: Some(&account),
            ..attempt(&key, slot)
        }));
    }
    let taken = lately.take();
    assert_eq!(taken[0].counts[1], 10_050);
    assert_eq!(taken[0].refused.len(), 10_001);
    let other = taken[0].refused.iter().find(|(name, _)| name == "other");
    assert_eq!(other.unwrap().1.count, 50);
}

#[test]
fn what_far_ends_say_is_kept_without_addresses() {
    let said = without_addresses("550 <jo@example.com>: user jo@example.com is unknown");
    assert_eq!(said, "550 <<address>>: user <address> is unknown");
}

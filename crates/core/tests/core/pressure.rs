//! Accounts under pressure: what was sent lately, and what it is held to.

mod pool;
mod slots;

use outflow_core::handle::AccountId;
use outflow_core::pressure::episode::Sender;
use outflow_core::pressure::{Before, Cap, Episode, MINUTE, Recent};
use outflow_core::time::{Mono, Nanos};
use proptest::prelude::*;

fn at(millis: u64) -> Mono {
    Mono(0) + Nanos::from_millis(millis)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Never more than was sent in the minute, and never less than in all of it
    /// but a quarter of a second.
    #[test]
    fn a_count_is_that_of_the_minute(gaps in prop::collection::vec(0_u64..3_000, 1..400), later in 0_u64..90_000) {
        let (mut recent, mut now) = (Recent::default(), 1_000);
        let mut sends = Vec::new();
        for gap in gaps {
            now += gap;
            recent.add(at(now), 1);
            sends.push(now);
        }
        let asked = now + later;
        let within = |span: u64| sends.iter().filter(|&&sent| sent + span > asked).count() as u64;
        let count = recent.count(at(asked));
        prop_assert!(count <= within(60_000), "{count}");
        prop_assert!(count >= within(59_750), "{count}");
    }

    /// In any minute at most the count and one more, however late or early the
    /// account is asked; and if it is never late by much, hardly less.
    #[test]
    fn a_cap_holds_in_any_minute(count in 1_u64..5_000, lates in prop::collection::vec(0_u64..3, 1..50)) {
        let mut cap = Cap::new(at(0), count);
        let mut now = at(0);
        let mut sends = Vec::new();
        let mut late = lates.iter().cycle();
        while now < at(180_000) {
            now = now.max(cap.opens_at()) + Nanos::from_millis(*late.next().unwrap());
            cap.take(now, 1, 1_000);
            sends.push(now);
        }
        let mut first = 0;
        for (last, &sent) in sends.iter().enumerate() {
            while sent.since(sends[first]) >= MINUTE {
                first += 1;
            }
            prop_assert!((last - first + 1) as u64 <= count + 1);
        }
        let whole = sends.iter().filter(|&&sent| sent < at(180_000)).count() as u64;
        if count >= 400 {
            prop_assert!(whole * 1_000 >= count * 3 * 990, "{whole} of {}", count * 3);
        }
    }
}

fn before(count: u64) -> Before {
    Before {
        count,
        accounts: 10,
        span: MINUTE,
    }
}

fn sender(count: u64, span: Nanos, floor: u64) -> Sender {
    Sender {
        count,
        span,
        floor,
        kept: None,
    }
}

#[test]
fn a_standby_may_do_its_share_and_nobody_is_held_below_the_floor() {
    let mut episode = Episode::default();
    episode.block(at(60_000), AccountId(3), || before(1_000));
    assert_eq!(episode.allowed(sender(100, Nanos::ZERO, 0)), 100);
    assert_eq!(episode.allowed(sender(50, Nanos::ZERO, 0)), 50);
    assert_eq!(episode.allowed(sender(49, Nanos::ZERO, 0)), 100);
    assert_eq!(episode.allowed(sender(100, Nanos::ZERO, 300)), 300);
}

#[test]
fn who_began_lately_is_judged_by_the_rate_since_then() {
    let mut episode = Episode::default();
    let span = Nanos::from_secs(6);
    episode.block(at(6_000), AccountId(3), || Before {
        span,
        ..before(100)
    });
    assert_eq!(episode.allowed(sender(10, Nanos::ZERO, 0)), 100);
}

#[test]
fn a_block_soon_after_another_goes_on_with_the_same_caps() {
    let mut episode = Episode::default();
    episode.block(at(60_000), AccountId(3), || before(1_000));
    let first = episode.number();
    episode.block(at(61_000), AccountId(4), || panic!("it is on"));
    episode.release(at(70_000), AccountId(3));
    assert!(episode.is_on());
    episode.release(at(80_000), AccountId(4));
    assert!(!episode.is_on());
    episode.block(at(139_000), AccountId(4), || panic!("it goes on"));
    assert_eq!(episode.number(), first);
    episode.release(at(140_000), AccountId(4));
    episode.block(at(200_000), AccountId(4), || before(500));
    assert_ne!(episode.number(), first);
}

#[test]
fn caps_grow_if_a_block_lasts_for_hours() {
    let mut episode = Episode::default();
    episode.block(at(0), AccountId(3), || before(1_000));
    assert_eq!(episode.growth(at(600_000)), 1_000);
    assert_eq!(episode.growth(at(660_000)), 1_100);
    assert_eq!(episode.growth(at(1_200_000)), 2_000);
}

#[test]
fn who_sent_for_longer_than_the_pool_was_known_is_judged_by_his_own_time() {
    let mut episode = Episode::default();
    let span = Nanos::from_secs(6);
    episode.block(at(6_000), AccountId(3), || Before {
        span,
        ..before(100)
    });
    // It goes on within a minute, when an account has sent for half a minute.
    episode.release(at(7_000), AccountId(3));
    episode.block(at(37_000), AccountId(4), || before(1));
    assert_eq!(episode.allowed(sender(500, Nanos::from_secs(30), 0)), 1_000);
}

#[test]
fn a_pool_that_sent_nothing_has_no_rate_to_keep() {
    let mut episode = Episode::default();
    episode.block(at(0), AccountId(3), || Before {
        span: Nanos::ZERO,
        ..before(0)
    });
    assert_eq!(episode.allowed(sender(0, Nanos::ZERO, 60)), u64::MAX);
}

#[test]
fn after_a_restart_caps_go_on_where_they_were() {
    let nothing = || Before {
        span: Nanos::ZERO,
        ..before(0)
    };
    let mut episode = Episode::default();
    // Nine minutes into it, two of three had sent.
    episode.recall(at(0), 100, Nanos::from_secs(540));
    episode.recall(at(0), 60, Nanos::from_secs(500));
    episode.block(at(0), AccountId(3), nothing);
    let known = Sender {
        kept: Some(60),
        ..sender(0, Nanos::ZERO, 10)
    };
    assert_eq!(episode.allowed(known), 60);
    assert_eq!(
        episode.allowed(sender(0, Nanos::ZERO, 10)),
        80,
        "as the others"
    );
    assert_eq!(episode.growth(at(30_000)), 1_000);
    assert_eq!(
        episode.growth(at(120_000)),
        1_100,
        "it grows as if nothing had been"
    );
    // The next one knows nothing of it.
    episode.release(at(200_000), AccountId(3));
    episode.block(at(400_000), AccountId(3), nothing);
    assert_eq!(episode.allowed(sender(0, Nanos::ZERO, 10)), u64::MAX);
}

/// What was kept to hours ago is nothing to keep to.
#[test]
fn caps_of_before_a_restart_are_forgotten() {
    let mut episode = Episode::default();
    episode.recall(at(0), 100, Nanos::from_secs(540));
    episode.block(at(7_000_000), AccountId(3), || Before {
        span: Nanos::ZERO,
        ..before(0)
    });
    assert_eq!(episode.allowed(sender(0, Nanos::ZERO, 10)), u64::MAX);
}

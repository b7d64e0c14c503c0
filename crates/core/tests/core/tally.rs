//! Counts over windows, and rules on their shares.

use outflow_core::tally::{Counter, Finding, Judged, Rule, Tallies, Tally, Window};
use outflow_core::time::{Mono, Nanos};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// One of each in the five kinds of rule that a test needs.
fn rule(window: Window, share: u32, least: u64) -> Rule {
    Rule {
        name: "bounces",
        part: Counter::Bounced,
        whole: Counter::Attempts,
        window,
        judged: Judged::Above(share),
        least,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// A window never counts what is older than it, and misses at most what is
    /// older than it less one slot.
    #[test]
    fn a_window_counts_itself(
        gaps in prop::collection::vec((0..40_u64, 1..5_u32), 1..200),
        stretch in 1..20_000_u64,
        wait in 0..100_u64,
    ) {
        let mut tally = Tally::default();
        let mut events = Vec::new();
        let mut now = 0;
        for (gap, count) in gaps {
            now += gap * stretch * SECOND / 10;
            tally.add(Mono(now), Counter::Bounced, count);
            events.push((now, u64::from(count)));
        }
        now += wait * stretch * SECOND / 10;
        for window in Window::ALL {
            let counted = tally.count(Mono(now), window, Counter::Bounced);
            let within = |length: Nanos| -> u64 {
                events.iter().filter(|(at, _)| now - at < length.0).map(|(_, count)| count).sum()
            };
            let most = within(window.length());
            let least = within(window.length().minus(window.slot()));
            prop_assert!((least..=most).contains(&counted), "{window}: {counted} not in {least}..={most}");
        }
    }
}

#[test]
fn thresholds_are_judged_by_their_own_window() {
    let mut tally = Tally::default();
    // Ten bounces in a hundred attempts, then an hour of clean traffic.
    tally.add(Mono(0), Counter::Attempts, 100);
    tally.add(Mono(0), Counter::Bounced, 10);
    let five_percent = |window| rule(window, 50_000, 100);
    for window in Window::ALL {
        let found = five_percent(window).judge(Mono(SECOND), &tally);
        assert_eq!(
            found,
            Some(Finding {
                part: 10,
                whole: 100
            }),
            "{window}"
        );
    }
    for minute in 1..=60 {
        tally.add(Mono(minute * MINUTE), Counter::Attempts, 2);
    }
    let now = Mono(HOUR);
    for window in [
        Window::Minute,
        Window::FiveMinutes,
        Window::QuarterHour,
        Window::Hour,
    ] {
        assert_eq!(
            rule(window, 50_000, 1).judge(now, &tally),
            None,
            "{window} counts more than itself"
        );
    }
    assert_eq!(
        five_percent(Window::Day).judge(now, &tally),
        None,
        "10 of 220 is less than 5 %"
    );
    let four_percent = rule(Window::Day, 40_000, 100);
    assert!(four_percent.judge(now, &tally).is_some());
    assert!(four_percent.judge(Mono(25 * HOUR), &tally).is_none());
    assert!(
        rule(Window::Week, 40_000, 100)
            .judge(Mono(25 * HOUR), &tally)
            .is_some()
    );
}

#[test]
fn a_share_counts_from_a_least_volume_on_and_only_above() {
    let mut tally = Tally::default();
    tally.add(Mono(0), Counter::Attempts, 99);
    tally.add(Mono(0), Counter::Bounced, 99);
    let two_percent = rule(Window::QuarterHour, 20_000, 100);
    assert_eq!(two_percent.judge(Mono(0), &tally), None, "99 are too few");
    let mut tally = Tally::default();
    tally.add(Mono(0), Counter::Attempts, 100);
    tally.add(Mono(0), Counter::Bounced, 2);
    assert_eq!(
        two_percent.judge(Mono(0), &tally),
        None,
        "exactly 2 % is not above"
    );
    tally.add(Mono(0), Counter::Bounced, 1);
    assert!(two_percent.judge(Mono(0), &tally).is_some());
}

#[test]
fn opens_that_fall_to_less_than_half_are_noticed() {
    let fewer = Rule::USUAL
        .into_iter()
        .find(|rule| rule.name == "fewer opens")
        .unwrap();
    let mut tally = Tally::default();
    let day = 24 * HOUR;
    for number in 0..6 {
        tally.add(Mono(number * day), Counter::Accepted, 10_000);
        tally.add(Mono(number * day), Counter::Opened, 3_000);
        assert_eq!(
            fewer.judge(Mono(number * day), &tally),
            None,
            "day {number}"
        );
    }
    tally.add(Mono(6 * day), Counter::Accepted, 10_000);
    tally.add(Mono(6 * day), Counter::Opened, 500);
    assert!(fewer.judge(Mono(6 * day), &tally).is_some());
    let silent = Tally::default();
    assert_eq!(fewer.judge(Mono(0), &silent), None);
}

#[test]
fn short_counters_are_not_kept_for_days() {
    let mut tally = Tally::default();
    for counter in Counter::ALL {
        tally.add(Mono(0), counter, 1);
        for window in Window::ALL {
            let expected = u64::from(counter.is_long() || !window.is_long());
            assert_eq!(
                tally.count(Mono(0), window, counter),
                expected,
                "{counter} {window}"
            );
        }
    }
}

#[test]
fn keys_and_memory_are_bounded() {
    assert!(size_of::<Tally>() < 6_000, "{}", size_of::<Tally>());
    let mut tallies = Tallies::new(2);
    tallies.add(Mono(0), &"a", Counter::Attempts, 1);
    tallies.add(Mono(10 * MINUTE), &"b", Counter::Attempts, 1);
    tallies.add(Mono(11 * MINUTE), &"c", Counter::Attempts, 7);
    assert!(tallies.get(&"c").is_none(), "both others spoke lately");
    assert_eq!(
        tallies
            .other()
            .count(Mono(11 * MINUTE), Window::Minute, Counter::Attempts),
        7
    );
    tallies.add(Mono(20 * MINUTE), &"c", Counter::Attempts, 1);
    assert!(tallies.get(&"a").is_none(), "silent for longest");
    assert!(tallies.get(&"b").is_some() && tallies.get(&"c").is_some());
    assert_eq!(tallies.len(), 2);
    assert_eq!(
        tallies.iter().map(|(key, _)| *key).collect::<Vec<_>>(),
        ["b", "c"]
    );
}

#[test]
fn a_key_is_compared_a_few_times_and_made_only_if_there_is_room() {
    const MOST: u32 = 4_096;
    let compared = std::cell::Cell::new(0);
    let mut tallies: Tallies<u32> = Tallies::new(MOST as usize);
    let mut find = |at, key: u32, may_be_made: bool| {
        compared.set(0);
        let compare = |known: &u32| {
            compared.set(compared.get() + 1);
            known.cmp(&key)
        };
        let found = tallies.find_by(Mono(at), compare, || {
            assert!(may_be_made, "a key is made that has no room or was known");
            key
        });
        assert!(compared.get() <= 13, "{} of {MOST} keys", compared.get());
        found
    };
    let first = find(0, 0, true);
    for key in (1..MOST).rev() {
        assert!(find(0, key, true).is_some());
    }
    assert_eq!(find(MINUTE, 0, false), first);
    for key in MOST..2 * MOST {
        assert_eq!(find(MINUTE, key, false), None);
    }
    assert!(find(20 * MINUTE, MOST, true).is_some(), "one is silent");
    let place = first.expect("the first key found a place");
    assert_eq!(tallies.key_at(place), None, "the place counts another key");
    assert_eq!(tallies.len(), MOST as usize);
    let mut keys = tallies.iter().map(|(key, _)| *key);
    assert!(keys.by_ref().eq(1..=MOST), "they stay in order");
}

#[test]
fn a_key_that_is_heard_of_once_is_small() {
    let mut tally = Tally::default();
    tally.add(Mono(0), Counter::Attempts, 1);
    tally.add(Mono(1), Counter::Accepted, 1);
    assert!(tally.size() < 128, "{} bytes", tally.size());
    assert_eq!(
        tally.count(Mono(0), Window::Week, Counter::Attempts),
        1,
        "and counted"
    );
    tally.add(Mono(MINUTE), Counter::Attempts, 1);
    assert!(tally.size() < 6_000, "{} bytes", tally.size());
    assert_eq!(
        tally.count(Mono(MINUTE), Window::Week, Counter::Attempts),
        2
    );
}

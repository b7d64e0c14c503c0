//! At most `count` between two boundaries of the calendar, whatever the wall
//! clock does.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use outflow_core::class::Class;
use outflow_core::entropy::Entropy;
use outflow_core::limit::spec::{Period, Zone};
use outflow_core::limit::{Fill, Headroom, Limit, LimitSpec, Need, Until};
use outflow_core::name::Name;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use proptest::prelude::*;

use super::{
    DAY, HOUR, MINUTE, NEW_YEAR, SECOND, at, cases, full, later, promise_all, spec, try_take,
    until_is_exact,
};

const ZONES: [&str; 7] = [
    "UTC",
    "America/Los_Angeles",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Kathmandu",
    "America/St_Johns",
];

fn zone(name: &str) -> Zone {
    Zone {
        name: Name::from(name),
        rules: TimeZone::get(name).unwrap(),
    }
}

fn local(wall: Wall, zone: &Zone) -> Zoned {
    let timestamp = Timestamp::from_nanosecond(i128::from(wall.0)).unwrap();
    timestamp.to_zoned(zone.rules.clone())
}

/// A name for the window of the calendar, by what a clock on the wall shows.
fn window_of(wall: Wall, period: Period, zone: &Zone) -> String {
    let local = local(wall, zone);
    let format = match period {
        Period::Day => "%Y-%m-%d",
        Period::Hour => "%Y-%m-%d %H %z",
        Period::Minute => "%Y-%m-%d %H:%M %z",
    };
    local.strftime(format).to_string()
}

fn wall(text: &str) -> Wall {
    let timestamp: Timestamp = text.parse().unwrap();
    Wall(i64::try_from(timestamp.as_nanosecond()).unwrap())
}

fn clocks(mono: u64, wall: Wall) -> Now {
    Now {
        mono: Mono(mono),
        wall,
        entropy: Entropy(0),
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// In hundredths of a period.
    Wait(u64),
    StepForward(u64),
    StepBack(u64),
    Take(u32),
    TakeWhenReady(u32),
    Change(u32),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => (0..60_u64).prop_map(Op::Wait),
        1 => (0..1_000_u64).prop_map(Op::StepForward),
        1 => (0..1_000_u64).prop_map(Op::StepBack),
        8 => (1..5_u32).prop_map(Op::Take),
        3 => (1..5_u32).prop_map(Op::TakeWhenReady),
        1 => (1..20_u32).prop_map(Op::Change),
    ];
    prop::collection::vec(op, 1..80)
}

fn periods() -> impl Strategy<Value = Period> {
    prop_oneof![Just(Period::Minute), Just(Period::Hour), Just(Period::Day)]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn at_most_count_between_boundaries_whatever_the_clock_does(
        mut count in 1..20_u32,
        period in periods(),
        zone_index in 0..ZONES.len(),
        start in 0..400 * DAY,
        ops in ops(),
    ) {
        let zone = zone(ZONES[zone_index]);
        let quota = |count| LimitSpec::CalendarWindow { count, period, zone: zone.clone() };
        let mut now = clocks(5, Wall(NEW_YEAR) + Nanos(start));
        let mut limit = full(quota(count), &now);
        let mut most = count;
        let mut used: BTreeMap<String, u32> = BTreeMap::new();
        let unit = period.length().0 / 100;
        for op in ops {
            let mut wanted = None;
            match op {
                Op::Wait(span) => now = later(&now, now.mono + Nanos(span * unit)),
                Op::StepForward(span) => now.wall = now.wall + Nanos(span * unit),
                Op::StepBack(span) => now.wall = Wall(now.wall.0 - (span * unit) as i64),
                Op::Take(cost) => wanted = Some(cost),
                Op::TakeWhenReady(cost) => {
                    if let Until::At(time) = until_is_exact(&limit, &now, Need::whole(cost)) {
                        now = later(&now, time);
                    }
                    wanted = Some(cost);
                }
                Op::Change(changed) => {
                    limit.reconfigure(&now, quota(changed));
                    count = changed;
                    most = most.max(count);
                }
            }
            if let Some(cost) = wanted && try_take(&mut limit, &now, cost) {
                let sum = used.entry(window_of(now.wall, period, &zone)).or_default();
                *sum += cost;
                prop_assert!(*sum <= count, "{sum} of {count}");
            }
        }
    }

    #[test]
    fn windows_follow_each_other_and_contain_their_time(
        period in periods(),
        zone_index in 0..ZONES.len(),
        since in 0..20 * 365 * DAY,
    ) {
        let zone = zone(ZONES[zone_index]);
        let wall = Wall(NEW_YEAR - 20 * 365 * DAY as i64) + Nanos(since);
        let (start, end) = period.around(wall, &zone);
        prop_assert!(start <= wall && wall < end);
        prop_assert_eq!(period.around(start, &zone), (start, end));
        prop_assert_eq!(period.around(Wall(end.0 - 1), &zone), (start, end));
        prop_assert_eq!(period.around(end, &zone).0, end);
        prop_assert!(end.since(start).0 <= period.length().0 + HOUR);
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_is_kept_sinks_until_all_is_given_out(
        count in prop_oneof![1..20_u32, 1..100_000_u32],
        headroom in (0..400_u16, 0..300_u16, 0..300_u16),
        class in 0..4_usize,
        cost in 1..4_u32,
        more in 0..3_u32,
        period in periods(),
        zone_index in 0..ZONES.len(),
        start in 0..400 * DAY,
        takes in prop::collection::vec((0..40_u64, 0..60_u32), 0..6),
        blocked in prop_oneof![3 => Just(0), 1 => 0..150_u64],
    ) {
        let zone = zone(ZONES[zone_index]);
        let class = Class::ALL[class];
        let headroom = Headroom([headroom.0, headroom.1, headroom.2, 0]);
        let quota = LimitSpec::CalendarWindow { count, period, zone };
        let mut now = clocks(5, Wall(NEW_YEAR) + Nanos(start));
        let mut limit = Limit::owned(quota, headroom, &now, Fill::Full);
        promise_all(&mut limit);
        let unit = period.length().0 / 100;
        for (wait, percent) in takes {
            now = later(&now, now.mono + Nanos(wait * unit));
            let _ = try_take(&mut limit, &now, (count * percent / 100).max(1));
        }
        if blocked > 0 {
            limit.block_until(now.mono + Nanos(blocked * unit));
        }
        let need = Need::whole(cost + more);
        let fits_at = |mono| {
            let now = later(&now, mono);
            limit.fits(&now, class, need + limit.floor(&now, class, cost))
        };
        match limit.until_above_floor(&now, class, need, cost) {
            Until::Now => prop_assert!(fits_at(now.mono)),
            Until::At(time) => {
                prop_assert!(time > now.mono && fits_at(time), "does not fit at {time:?}");
                prop_assert!(!fits_at(Mono(time.0 - 1)), "fits before {time:?}");
                for hundredth in 0..100 {
                    let wait = time.since(now.mono).0 / 100 * hundredth;
                    prop_assert!(!fits_at(now.mono + Nanos(wait)), "fits long before");
                }
                prop_assert!(time.since(now.mono).0 <= 3 * period.length().0 + 2 * HOUR);
            }
            Until::Never => prop_assert!(cost + more > count),
            other => prop_assert!(false, "{other:?}"),
        }
    }
}

#[test]
fn bulk_gets_all_of_the_day_in_the_end() {
    let mut now = clocks(5, wall("2026-05-05T00:00:00Z"));
    let headroom = Headroom([200, 0, 0, 0]);
    let mut limit = Limit::owned(spec("1000/day@UTC"), headroom, &now, Fill::Full);
    promise_all(&mut limit);
    let midnight = now.mono + Nanos(DAY);
    let mut taken = 0;
    while let Some(time) = match limit.until_above_floor(&now, Class::Low, Need::whole(1), 1) {
        Until::Now => Some(now.mono),
        Until::At(time) => Some(time).filter(|time| *time < midnight),
        _ => None,
    } {
        now = later(&now, time);
        assert!(try_take(&mut limit, &now, 1));
        taken += 1;
    }
    assert_eq!(taken, 1_000);
}

#[test]
fn both_days_on_which_the_clocks_change() {
    let cases = [
        ("2026-03-08T08:00:00Z", "2026-03-09T07:00:00Z", 23),
        ("2026-11-01T07:00:00Z", "2026-11-02T08:00:00Z", 25),
    ];
    for (midnight, next, hours) in cases {
        let mut limit = full(spec("10/day@America/Los_Angeles"), &at(0));
        let start = clocks(1_000, wall(midnight));
        assert!(try_take(&mut limit, &start, 10));
        let until = until_is_exact(&limit, &start, Need::whole(1));
        assert_eq!(until, Until::At(Mono(1_000 + hours * HOUR)));
        assert_eq!(wall(next), wall(midnight) + Nanos(hours * HOUR));
        assert!(try_take(
            &mut limit,
            &clocks(1_000 + hours * HOUR, wall(next)),
            10
        ));
    }
}

#[test]
fn a_step_back_opens_no_quota_that_was_used() {
    let mut limit = full(spec("10/day@UTC"), &at(0));
    let today = wall("2026-05-05T12:00:00Z");
    let tomorrow = wall("2026-05-06T00:00:01Z");
    assert!(try_take(&mut limit, &clocks(0, today), 8));
    assert!(try_take(&mut limit, &clocks(1, tomorrow), 10));
    assert!(!try_take(&mut limit, &clocks(2, today), 3));
    assert!(try_take(&mut limit, &clocks(2, today), 2));
    let until = until_is_exact(&limit, &clocks(2, today), Need::whole(1));
    assert_eq!(until, Until::At(Mono(2 + 36 * HOUR)));
}

#[test]
fn a_clock_that_leaps_to_another_decade_and_returns_stops_nobody() {
    let mut limit = full(spec("10/day@UTC"), &at(0));
    assert!(try_take(
        &mut limit,
        &clocks(0, wall("2026-05-05T12:00:00Z")),
        4
    ));
    assert!(try_take(
        &mut limit,
        &clocks(1, wall("2038-01-19T03:14:07Z")),
        10
    ));
    assert!(try_take(
        &mut limit,
        &clocks(2, wall("2026-05-05T12:00:01Z")),
        6
    ));
    for day in 6..29 {
        let noon = wall(&format!("2026-05-{day:02}T12:00:00Z"));
        assert!(try_take(&mut limit, &clocks(day, noon), 10));
        assert!(!try_take(&mut limit, &clocks(day, noon), 1));
    }
    assert!(!try_take(
        &mut limit,
        &clocks(99, wall("2038-01-19T04:00:00Z")),
        1
    ));
}

#[test]
fn another_period_begins_with_what_was_used() {
    let mut limit = full(spec("100/day@UTC"), &at(0));
    assert!(try_take(&mut limit, &at(HOUR), 7));
    limit.reconfigure(&at(HOUR + SECOND), spec("10/h@UTC"));
    assert!(!try_take(&mut limit, &at(HOUR + MINUTE), 4));
    assert!(try_take(&mut limit, &at(HOUR + MINUTE), 3));
    assert!(try_take(&mut limit, &at(2 * HOUR), 10));
}

#[test]
fn an_idle_quota_can_be_dropped_at_the_boundary() {
    let mut limit = full(spec("5/min@UTC"), &at(0));
    assert!(limit.is_idle(&at(0)));
    assert!(try_take(&mut limit, &at(SECOND), 1));
    assert!(!limit.is_idle(&at(MINUTE - 1)));
    assert!(limit.is_idle(&at(MINUTE)));
}

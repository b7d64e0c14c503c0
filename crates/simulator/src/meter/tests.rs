use jiff::tz::TimeZone;
use outflow_core::limit::spec::{LimitSpec, Period, Rate, Zone};
use outflow_core::name::Name;
use outflow_core::time::{Nanos, Wall};

use super::{Meter, Tolerance};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn bucket(count: u32, burst: u32) -> LimitSpec {
    LimitSpec::TokenBucket {
        rate: Rate::per_second(count),
        burst,
    }
}

fn meter(spec: &LimitSpec) -> Meter {
    Meter::new(Nanos::ZERO, spec, Tolerance::default())
}

#[test]
fn a_bucket_allows_burst_and_rate_to_the_nanosecond() {
    let mut meter = meter(&bucket(3, 2));
    assert!(meter.take(ms(0), 2).is_ok());
    assert!(!meter.allows(Nanos(333_333_333), 1));
    assert!(meter.take(Nanos(333_333_334), 1).is_ok());
    assert!(meter.take(Nanos(666_666_666), 1).is_err());
}

#[test]
fn a_bucket_says_each_excess_once() {
    let mut meter = meter(&bucket(10, 1));
    assert!(meter.take(ms(0), 1).is_ok());
    assert_eq!(
        meter.take(ms(50), 1),
        Err("0.500 tokens too many".to_owned())
    );
    assert!(meter.take(ms(150), 1).is_ok());
}

#[test]
fn a_bucket_knows_since_when_it_is_full() {
    let mut meter = meter(&bucket(10, 5));
    assert_eq!(meter.full_since(ms(100)), Some(ms(0)));
    meter.take(ms(100), 2).unwrap();
    assert_eq!(meter.full_since(ms(250)), None);
    assert_eq!(meter.full_since(ms(400)), Some(ms(300)));
    assert_eq!(meter.full_since(ms(900)), Some(ms(300)));
}

#[test]
fn a_live_change_allows_the_largest_burst_and_the_integral_of_the_rate() {
    // Burst 10 is used up, then raised to 15: five more at once, not fifteen.
    let mut raised = meter(&bucket(1, 10));
    raised.take(ms(0), 10).unwrap();
    raised.change(ms(0), &bucket(1, 15), Tolerance::default());
    assert!(raised.clone().take(ms(0), 5).is_ok());
    assert!(raised.take(ms(0), 6).is_err());

    // Lowered from 10 to 2 while full: only two at once from now on.
    let mut lowered = meter(&bucket(1, 10));
    lowered.change(ms(0), &bucket(1, 2), Tolerance::default());
    assert!(lowered.take(ms(0), 3).is_err());

    // Used up, then lowered: the old intervals still bind, so a change is no
    // way to a fresh burst.
    let mut used = meter(&bucket(1, 10));
    used.take(ms(0), 10).unwrap();
    used.change(ms(0), &bucket(1, 5), Tolerance::default());
    assert!(used.clone().take(ms(0), 1).is_err());
    assert!(used.take(ms(1_000), 1).is_ok());

    // Other units of time, exactly.
    let mut minutes = meter(&bucket(1, 10));
    minutes.take(ms(0), 10).unwrap();
    let slow = LimitSpec::TokenBucket {
        rate: Rate {
            count: 60,
            per: Nanos::from_secs(60),
        },
        burst: 10,
    };
    minutes.change(ms(500), &slow, Tolerance::default());
    assert!(minutes.clone().take(ms(999), 1).is_err());
    assert!(minutes.take(ms(1_000), 1).is_ok());
}

#[test]
fn a_spaced_rate_holds_its_gaps_also_after_a_change() {
    let spec = |count| LimitSpec::LeakyBucket {
        rate: Rate::per_second(count),
    };
    let mut meter = meter(&spec(10));
    assert!(meter.take(ms(0), 1).is_ok());
    assert!(meter.take(ms(99), 1).is_err());
    assert!(meter.take(ms(199), 2).is_ok());
    assert!(!meter.allows(ms(398), 1));
    assert!(meter.allows(ms(399), 1));
    meter.take(ms(399), 1).unwrap();
    meter.change(ms(449), &spec(1), Tolerance::default());
    assert!(!meter.allows(ms(948), 1) && meter.allows(ms(949), 1));
}

#[test]
fn a_sliding_window_holds_in_every_window() {
    let spec = |count| LimitSpec::SlidingWindow {
        count,
        window: ms(1_000),
    };
    let mut meter = meter(&spec(3));
    for at in [0, 400, 900] {
        assert!(meter.take(ms(at), 1).is_ok());
    }
    assert!(!meter.allows(ms(999), 1));
    assert!(meter.take(ms(1_000), 1).is_ok());
    assert!(meter.clone().take(ms(1_399), 1).is_err());
    // A lower count binds once what was sent before is out of the window.
    meter.change(ms(1_000), &spec(1), Tolerance::default());
    assert!(!meter.allows(ms(1_950), 1));
    assert!(meter.take(ms(2_000), 1).is_ok());
    assert!(meter.take(ms(2_000), 1).is_err());
}

#[test]
fn a_calendar_window_starts_anew_at_its_boundary() {
    let spec = LimitSpec::CalendarWindow {
        count: 2,
        period: Period::Day,
        zone: Zone {
            name: Name::from("America/Los_Angeles"),
            rules: TimeZone::get("America/Los_Angeles").unwrap(),
        },
    };
    // 2026-03-08T07:59:50Z: ten seconds before the short day begins there.
    let tolerance = Tolerance {
        wall_at_zero: Wall(1_772_956_790_000_000_000),
        ..Tolerance::default()
    };
    let mut meter = Meter::new(ms(0), &spec, tolerance);
    assert!(meter.take(ms(0), 2).is_ok());
    assert!(!meter.allows(ms(9_999), 1));
    assert!(meter.take(ms(10_000), 2).is_ok());
    let hours = |hours: u64| Nanos::from_secs(10 + hours * 3_600);
    assert!(!meter.allows(Nanos(hours(23).0 - 1), 1));
    assert!(meter.clone().take(Nanos(hours(23).0 - 1), 1).is_err());
    assert!(meter.take(hours(23), 1).is_ok());
}

#[test]
fn concurrency_counts_what_is_in_flight() {
    let mut meter = meter(&LimitSpec::Concurrency { slots: 2 });
    assert!(meter.take(ms(0), 2).is_ok());
    assert!(!meter.allows(ms(0), 1));
    meter.release(1);
    assert!(meter.take(ms(0), 1).is_ok());
    assert!(meter.take(ms(0), 1).is_err());
}

#[test]
fn drift_that_is_known_is_not_blamed() {
    let tolerance = Tolerance {
        drift_ppm: 200,
        ..Tolerance::default()
    };
    let mut lenient = Meter::new(ms(0), &bucket(1_000, 1), tolerance);
    let mut strict = meter(&bucket(1_000, 1));
    // A clock that is 200 ppm fast sends every 999,800 ns.
    let sends = (0..1_000_u64).map(|n| Nanos(n * 999_801));
    assert!(sends.clone().all(|at| lenient.take(at, 1).is_ok()));
    assert!(sends.into_iter().any(|at| strict.take(at, 1).is_err()));
}

#[test]
fn a_clock_that_drifts_reads_whole_nanoseconds_also_before_a_slower_rate() {
    let tolerance = Tolerance {
        drift_ppm: 200,
        ..Tolerance::default()
    };
    // A token a nanosecond. The clock reads 4,999 at 4,999 and 5,001 at 5,000:
    // two tokens accrued on it in little more than one nanosecond.
    let start = |cost: u32| {
        let mut meter = Meter::new(Nanos(0), &bucket(1_000_000_000, 10), tolerance);
        meter.take(Nanos(4_999), 10).unwrap();
        meter.change(Nanos(5_000), &bucket(1, 10), tolerance);
        meter.take(Nanos(5_000), cost)
    };
    assert!(start(2).is_ok());
    assert!(start(3).is_err());
}

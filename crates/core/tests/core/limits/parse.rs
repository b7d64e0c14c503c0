//! Limits as people write them.

use outflow_core::limit::parse::RateOrShare;
use outflow_core::limit::spec::Period;
use outflow_core::limit::{LimitSpec, Rate};
use outflow_core::time::Nanos;

use super::{DAY, HOUR, MINUTE, SECOND};

fn rate(count: u32, per: u64) -> Rate {
    Rate {
        count,
        per: Nanos(per),
    }
}

fn bucket(count: u32, per: u64, burst: u32) -> LimitSpec {
    let rate = rate(count, per);
    LimitSpec::TokenBucket { rate, burst }
}

fn sliding(count: u32, window: u64) -> LimitSpec {
    LimitSpec::SlidingWindow {
        count,
        window: Nanos(window),
    }
}

#[test]
fn limits_read_as_people_write_them() {
    let leaky = |count, per| LimitSpec::LeakyBucket {
        rate: rate(count, per),
    };
    let cases = [
        ("14/s burst 28", bucket(14, SECOND, 28)),
        ("14 / sec burst 28", bucket(14, SECOND, 28)),
        ("100/s", bucket(100, SECOND, 10)),
        ("2/s", bucket(2, SECOND, 1)),
        ("2/second", bucket(2, SECOND, 1)),
        ("40", bucket(40, SECOND, 4)),
        ("0.5/s", bucket(1, 2 * SECOND, 1)),
        ("600/min burst 10", bucket(600, MINUTE, 10)),
        ("600/min", sliding(600, MINUTE)),
        ("100/m", sliding(100, MINUTE)),
        ("100/minute", sliding(100, MINUTE)),
        ("1.5k/h", sliding(1_500, HOUR)),
        ("1.5k/hour", sliding(1_500, HOUR)),
        ("50k/day", sliding(50_000, DAY)),
        ("2M/d", sliding(2_000_000, DAY)),
        ("0.5/min", sliding(1, 2 * MINUTE)),
        ("40/s spaced", leaky(40, SECOND)),
        ("30/min spaced", leaky(30, MINUTE)),
        ("8 concurrent", LimitSpec::Concurrency { slots: 8 }),
        ("8 in flight", LimitSpec::Concurrency { slots: 8 }),
    ];
    for (text, spec) in cases {
        assert_eq!(LimitSpec::parse(text), Ok(spec), "{text}");
    }
    assert_eq!(LimitSpec::from_number(40.0), Ok(bucket(40, SECOND, 4)));
    assert_eq!(Rate::from_number(0.25), Ok(rate(1, 4 * SECOND)));
}

#[test]
fn a_zone_makes_a_calendar_window() {
    let parsed = LimitSpec::parse("50k/day@America/Los_Angeles").unwrap();
    let LimitSpec::CalendarWindow {
        count,
        period,
        zone,
    } = parsed
    else {
        panic!("not a calendar window");
    };
    assert_eq!((count, period), (50_000, Period::Day));
    assert_eq!(zone.name.as_str(), "America/Los_Angeles");
}

#[test]
fn a_rate_is_a_rate_or_a_share() {
    assert_eq!(Rate::parse("600/min"), Ok(rate(600, MINUTE)));
    assert_eq!(Rate::parse("40"), Ok(rate(40, SECOND)));
    let share = |permille| Ok(RateOrShare::Share { permille });
    assert_eq!(RateOrShare::parse("10%"), share(100));
    assert_eq!(RateOrShare::parse("2.5 %"), share(25));
    let plain = RateOrShare::parse("40/s");
    assert_eq!(plain, Ok(RateOrShare::Rate(rate(40, SECOND))));
    for text in ["0%", "101%", "0.01%", "10% of it", "40/s burst 2"] {
        assert!(RateOrShare::parse(text).is_err(), "{text}");
    }
}

#[test]
fn an_error_shows_the_place() {
    let shown = |text| LimitSpec::parse(text).unwrap_err().to_string();
    assert_eq!(
        shown("14/x burst 28"),
        "14/x burst 28\n   ^ expected a unit: s, min, h or day"
    );
    assert_eq!(
        shown("14/s burst"),
        "14/s burst\n          ^ expected a number"
    );
    assert_eq!(
        shown("14/s bursts 2"),
        "14/s bursts 2\n     ^ expected the end, `burst N`, `spaced` or `@Zone`"
    );
    let places = [
        ("", 0),
        ("fast", 0),
        ("0/s", 0),
        ("-1/s", 0),
        ("1./s", 2),
        ("14/s burst 0", 11),
        ("14/s burst 1.5", 11),
        ("99999999999/s", 0),
        ("10/s@UTC", 4),
        ("10/day@Mars/Olympus", 7),
        ("1.5/day@UTC", 0),
        ("40/s spaced out", 12),
        ("1.5 concurrent", 0),
        ("10%", 2),
    ];
    for (text, at) in places {
        assert_eq!(LimitSpec::parse(text).unwrap_err().at, at, "{text:?}");
    }
}

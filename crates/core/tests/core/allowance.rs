//! What far ends say outright of their limits.

use outflow_core::allowance::{Allowance, Heard, Left, heard};
use outflow_core::limit::spec::Rate;
use outflow_core::time::{Nanos, Wall};
use proptest::prelude::*;

/// Sun, 06 Nov 1994 08:49:37 GMT.
const NOW: Wall = Wall(784_111_777_000_000_000);

fn read(headers: &[(&str, &str)]) -> Heard {
    heard(NOW, headers.iter().copied())
}

fn rate(headers: &[(&str, &str)]) -> Option<(u32, u64)> {
    let rate = read(headers).allows?.rate?;
    Some((rate.count, rate.per.0 / 1_000_000_000))
}

fn left(headers: &[(&str, &str)]) -> Option<(u64, u64)> {
    let Left { count, resets_in } = read(headers).allows?.left?;
    Some((count, resets_in.0 / 1_000_000_000))
}

#[test]
fn a_wait_is_so_many_seconds_or_until_a_date() {
    let wait = |value| read(&[("Retry-After", value)]).retry_after;
    assert_eq!(wait("120"), Some(Nanos::from_secs(120)));
    assert_eq!(wait(" 0.5 "), Some(Nanos::from_millis(500)));
    for date in [
        "Sun, 06 Nov 1994 08:50:07 GMT",
        "Sunday, 06-Nov-94 08:50:07 GMT",
        "Sun Nov  6 08:50:07 1994",
    ] {
        assert_eq!(wait(date), Some(Nanos::from_secs(30)), "{date}");
    }
    let past = wait("Sun, 06 Nov 1994 08:49:07 GMT");
    assert_eq!(past, Some(Nanos::ZERO), "which asks for nothing");
    let week = Some(Nanos::from_secs(7 * 86_400));
    assert_eq!(wait("99999999999999999999999"), week);
    assert_eq!(wait("Sun, 06 Nov 2044 08:49:37 GMT"), week);
    for nonsense in ["", "-5", "soon", "1e3", "06 Nov", "."] {
        assert_eq!(wait(nonsense), None, "{nonsense}");
    }
}

#[test]
fn policies_of_short_windows_are_rates() {
    let policy = |value| rate(&[("RateLimit-Policy", value)]);
    assert_eq!(policy("\"default\";q=100;w=10"), Some((100, 10)));
    assert_eq!(policy("100;w=10"), Some((100, 10)), "as it was before");
    assert_eq!(policy("\"a,b;w=5\";q=100;w=10"), Some((100, 10)));
    let several = "\"burst\";q=100;w=1, \"day\";q=5000;w=86400, \"m\";q=600;w=60";
    assert_eq!(policy(several), Some((600, 60)), "the slowest");
    assert_eq!(policy("\"day\";q=5000;w=86400"), None, "a quota is no rate");
    assert_eq!(policy("\"b\";q=5;w=1;qu=\"content-bytes\""), None);
    assert_eq!(policy("\"b\";q=5;w=1;qu=\"requests\""), Some((5, 1)));
    for nonsense in [
        "",
        ";;;",
        "q=5",
        "\"a\";q=0;w=1",
        "\"a\";q=5;w=0",
        "5",
        "\"",
    ] {
        assert_eq!(policy(nonsense), None, "{nonsense}");
    }
    let older = [("RateLimit-Limit", "100, 100;w=10, 5000;w=3600")];
    assert_eq!(rate(&older), Some((100, 10)));
    let customary = [("X-RateLimit-Limit", "100")];
    assert_eq!(rate(&customary), None, "nobody says in how long");
}

#[test]
fn what_is_left_of_a_quota_and_until_when() {
    assert_eq!(
        left(&[("RateLimit", "\"default\";r=50;t=30")]),
        Some((50, 30))
    );
    let several = "\"hour\";r=0;t=300, \"day\";r=0;t=900, \"s\";r=9;t=1";
    assert_eq!(left(&[("ratelimit", several)]), Some((0, 900)));
    let older = [("RateLimit", "limit=100, remaining=50, reset=5")];
    assert_eq!(left(&older), Some((50, 5)));
    let oldest = [("RateLimit-Remaining", "0"), ("RateLimit-Reset", "50")];
    assert_eq!(left(&oldest), Some((0, 50)));
    let customary = |reset| left(&[("x-ratelimit-remaining", "3"), ("X-RateLimit-Reset", reset)]);
    assert_eq!(customary("60"), Some((3, 60)));
    assert_eq!(
        customary("784111807"),
        Some((3, 86_400)),
        "long before that"
    );
    assert_eq!(customary("soon"), None);
    let now = Wall(1_800_000_000_000_000_000);
    for reset in ["1800000030", "1800000030000"] {
        let headers = [
            ("X-Rate-Limit-Remaining", "0"),
            ("X-Rate-Limit-Reset", reset),
        ];
        let left = heard(now, headers).allows.unwrap().left.unwrap();
        assert_eq!(left.resets_in, Nanos::from_secs(30), "{reset}");
    }
    assert_eq!(left(&[("RateLimit-Remaining", "0")]), None, "until when?");
}

#[test]
fn who_says_nothing_says_nothing() {
    let silent = read(&[
        ("Content-Type", "text/html"),
        ("x-ratelimit", "5"),
        ("", ""),
    ]);
    assert_eq!(silent, Heard::default());
}

#[test]
fn ses_tells_a_rate_and_what_is_left_of_the_day() {
    let told = Allowance::of_ses(14.0, 50_000.0, 49_990.0);
    assert_eq!(told.rate.unwrap().in_a_second(), 14.0);
    assert_eq!(told.left.unwrap().count, 10);
    let used_up = Allowance::of_ses(14.0, 200.0, 201.0);
    assert_eq!(used_up.left.unwrap().count, 0);
    let unbounded = Allowance::of_ses(14.0, -1.0, 10.0);
    assert_eq!(unbounded.left, None);
    assert!(Allowance::of_ses(f64::NAN, f64::NAN, f64::INFINITY).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn whatever_they_say_is_read_or_not_and_is_bounded(
        now in any::<i64>(),
        names in proptest::collection::vec(0_usize..8, 0..6),
        values in proptest::collection::vec(
            prop_oneof![
                "\\PC{0,60}",
                "([0-9]{1,25}|[a-z]{1,9}|[\"=;,. qwrt-]){0,20}",
                "[A-Z][a-z]{2}, [0-9]{1,2} [A-Z][a-z]{2} [0-9]{1,5} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
            ],
            6,
        ),
    ) {
        const NAMES: [&str; 8] = [
            "Retry-After", "RateLimit", "RateLimit-Policy", "RateLimit-Limit",
            "RateLimit-Remaining", "RateLimit-Reset", "X-RateLimit-Remaining", "X-RateLimit-Reset",
        ];
        let headers = names.iter().zip(&values).map(|(name, value)| (NAMES[*name], &**value));
        let Heard { retry_after, allows } = heard(Wall(now), headers);
        prop_assert!(retry_after.is_none_or(|it| it <= Nanos::from_secs(7 * 86_400)));
        if let Some(allows) = allows {
            prop_assert!(!allows.is_empty());
            let most = Rate::per_second(100_000).in_a_second();
            let rate = allows.rate.map_or(1.0, Rate::in_a_second);
            prop_assert!(rate > 0.0 && rate <= most);
            prop_assert!(allows.left.is_none_or(|it| it.resets_in <= Nanos::from_secs(86_400)));
        }
    }

    #[test]
    fn ses_may_say_anything(rate in any::<f64>(), most in any::<f64>(), sent in any::<f64>()) {
        let told = Allowance::of_ses(rate, most, sent);
        prop_assert!(told.rate.is_none_or(|it| it.in_a_second() <= 100_000.0));
    }
}

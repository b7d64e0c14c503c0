//! How a rate comes back after a mitigation.

use outflow_core::limit::spec::Rate;
use outflow_core::policy::policy::RateOrShare;
use outflow_core::policy::ramp::{Phase, Ramp, Ramping};
use outflow_core::time::{Nanos, Wall};
use proptest::prelude::*;

const MINUTE: u64 = 60;

fn rate(count: u32) -> Option<RateOrShare> {
    Some(RateOrShare::Rate(Rate::per_second(count)))
}

fn share(permille: u16) -> Option<RateOrShare> {
    Some(RateOrShare::Share { permille })
}

fn at(secs: u64) -> Wall {
    Wall(0) + Nanos::from_secs(secs)
}

/// The rate at a time, as a share of the base in thousandths; the cooldown ends
/// at 1,800 s.
fn permille(base: u32, mitigated: u32, secs: u64) -> Option<u64> {
    let phase = Ramp::default().at(rate(base), rate(mitigated), Some(at(1_800)), at(secs));
    let rate = match phase {
        Phase::Holds => Rate::per_second(mitigated),
        Phase::Ramping(Ramping {
            rate: RateOrShare::Rate(rate),
            ..
        }) => rate,
        Phase::Ramping(_) => panic!("{phase:?}"),
        Phase::Over => return None,
    };
    let per_second = u128::from(rate.count) * 1_000_000_000 * 1_000 / u128::from(rate.per.0);
    Some(u64::try_from(per_second).unwrap() / u64::from(base))
}

#[test]
fn half_of_a_rate_comes_back_by_a_tenth_of_the_base_each_ten_minutes() {
    let rates =
        [0, 1_799, 1_800, 2_399, 2_400, 3_000, 3_600, 4_199].map(|secs| permille(100, 50, secs));
    let wanted = [500, 500, 600, 600, 700, 800, 900, 900].map(Some);
    assert_eq!(rates, wanted);
    assert_eq!(permille(100, 50, 4_200), None, "the base holds again");
    // What is a third comes back without a last leap.
    let rates = [2_400, 3_000, 5_399].map(|secs| permille(300, 100, secs));
    assert_eq!(rates, [Some(533), Some(633), Some(933)]);
    assert_eq!(permille(300, 100, 5_400), None);
}

#[test]
fn each_step_says_when_the_next_comes() {
    let phase = Ramp::default().at(rate(10), rate(5), Some(at(0)), at(1_900));
    let Phase::Ramping(ramping) = phase else {
        panic!("{phase:?}");
    };
    assert_eq!(ramping.step, 4);
    assert_eq!(ramping.next_at, at(2_400));
    assert_eq!((ramping.next, ramping.over_at), (None, at(2_400)));
    let phase = Ramp::default().at(rate(10), rate(5), Some(at(0)), at(0));
    let Phase::Ramping(ramping) = phase else {
        panic!("{phase:?}");
    };
    assert_eq!((ramping.step, ramping.next_at), (1, at(600)));
    assert_eq!((ramping.next, ramping.over_at), (rate(7), at(2_400)));
}

#[test]
fn what_cannot_be_ramped_does_not_leap_further_than_it_must() {
    let ramp = Ramp::default();
    let phase = |base, mitigated, secs| ramp.at(base, mitigated, Some(at(0)), at(secs));
    assert_eq!(phase(rate(9), None, 0), Phase::Over, "nothing to ramp");
    assert_eq!(phase(rate(9), rate(20), 0), Phase::Over, "it was raised");
    // Without a base: up to twice of what it is.
    assert!(
        matches!(phase(None, rate(5), 2_399), Phase::Ramping(it) if it.rate == rate(9).unwrap())
    );
    assert_eq!(phase(None, rate(5), 2_400), Phase::Over);
    // A share of an account's rate and a rate have nothing in common.
    let apart = phase(rate(9), share(100), 89 * MINUTE);
    assert!(matches!(apart, Phase::Ramping(it) if it.rate == share(100).unwrap()));
    assert_eq!(phase(rate(9), share(100), 90 * MINUTE), Phase::Over);
    let shares = phase(share(100), share(50), 0);
    assert!(matches!(shares, Phase::Ramping(it) if it.rate == share(60).unwrap()));
    assert_eq!(
        ramp.at(rate(9), rate(1), None, at(1)),
        Phase::Holds,
        "for good"
    );
}

proptest! {
    /// The rate never falls while it comes back, never goes above the base, and
    /// never rises by more than one step at a time.
    #[test]
    fn a_ramp_rises_in_steps(
        base in 1_u32..100_000, part in 1_u32..1_000, step in 1_u16..=1_000, every in 1_u64..10_000,
    ) {
        let ramp = Ramp { step_permille: step, every: Nanos::from_secs(every) };
        let mitigated = (u64::from(base) * u64::from(part) / 1_000).max(1) as u32;
        let per_second = |rate: RateOrShare| match rate {
            RateOrShare::Rate(rate) => f64::from(rate.count) * 1e9 / rate.per.0 as f64,
            RateOrShare::Share { .. } => f64::NAN,
        };
        let mut before = f64::from(mitigated);
        let (base_f, mut now) = (f64::from(base), 0);
        for _ in 0..1_100 {
            let (rate_now, over) = match ramp.at(rate(base), rate(mitigated), Some(at(every)), at(now)) {
                Phase::Holds => (f64::from(mitigated), false),
                Phase::Ramping(ramping) => {
                    prop_assert!(ramping.next_at > at(now) && ramping.over_at >= ramping.next_at);
                    (per_second(ramping.rate), false)
                }
                Phase::Over => (base_f, true),
            };
            let most = before + base_f * f64::from(step) / 1_000.0;
            prop_assert!(rate_now >= before * 0.999_999, "{} after {}", rate_now, before);
            prop_assert!(rate_now <= base_f.max(f64::from(mitigated)) * 1.000_001);
            prop_assert!(rate_now <= most * 1.000_001 || mitigated >= base, "{} > {}", rate_now, most);
            if over {
                return Ok(());
            }
            before = rate_now;
            now += every;
        }
        prop_assert!(false, "it never ends");
    }
}

//! Plans to warm a sender up, and how days are judged.

use outflow_core::time::{Nanos, Wall};
use outflow_core::warmup::{Bar, Counted, Plan, Progress};
use proptest::prelude::*;

const DAY: Nanos = Nanos::from_secs(86_400);
const NOON: Wall = Wall(43_200_000_000_000);

fn well(attempts: u64) -> Counted {
    Counted {
        attempts,
        accepted: attempts,
        ..Counted::default()
    }
}

#[test]
fn plans_that_come_with_the_program_grow() {
    let plans = Plan::built_in();
    let names: Vec<&str> = plans.iter().map(|plan| plan.name.as_str()).collect();
    assert_eq!(names, ["sendgrid", "ses", "generic"]);
    for plan in &plans {
        let quotas: Vec<_> = (0..plan.days())
            .map(|day| plan.quota(day).unwrap())
            .collect();
        assert!(quotas.is_sorted_by_key(|quota| quota.day), "{}", plan.name);
        assert!(
            quotas
                .iter()
                .all(|quota| quota.hour > 0 && quota.hour <= quota.day)
        );
        // Nothing leaps: at most three times the day before.
        let leaps = quotas
            .windows(2)
            .filter(|pair| pair[1].day > 3 * pair[0].day);
        assert_eq!(leaps.count(), 0, "{}", plan.name);
        assert_eq!(plan.quota(plan.days()), None);
    }
    let sendgrid = Plan::named("sendgrid").unwrap();
    assert_eq!(sendgrid.days(), 42);
    let first = sendgrid.quota(0).unwrap();
    assert_eq!((first.hour, first.day), (20, 480));
    let ses = Plan::named("ses").unwrap();
    assert_eq!((ses.days(), ses.quota(44).unwrap().day), (45, 50_000));
    let generic = Plan::named("generic").unwrap();
    let days = [0, 2, 3, 6].map(|day| generic.quota(day).unwrap().day);
    assert_eq!(days, [200, 200, 400, 800], "each step for three days");
}

#[test]
fn only_a_day_that_was_used_and_went_well_counts() {
    let plan = Plan::by_day("test", &[100, 200, 400]);
    let bar = Bar::default();
    let mut progress = Progress::new(&plan, 0, NOON);
    assert_eq!(
        progress.go_on(&plan, &bar, NOON, well(60)),
        None,
        "it is not over"
    );
    let mut now = NOON + DAY;
    let verdict = progress.go_on(&plan, &bar, now, well(0)).unwrap();
    assert!(
        verdict.good && verdict.counted.attempts == 60,
        "{verdict:?}"
    );
    assert_eq!(progress.quota(&plan).unwrap().day, 200);

    let put_off = Counted {
        deferred: 21,
        ..well(200)
    };
    let bounced = Counted {
        bounced: 5,
        ..well(200)
    };
    let complained = Counted {
        complained: 1,
        ..well(200)
    };
    for (counted, why) in [
        (put_off, "21 of 200 were put off"),
        (bounced, "5 of 200 were bounced"),
        (complained, "1 of 200 were complained of"),
        (well(99), "99 of 200 were sent: too few"),
        (well(0), "0 of 200 were sent: too few"),
    ] {
        now = now + DAY;
        let verdict = progress.go_on(&plan, &bar, now, counted).unwrap();
        assert!(!verdict.good && verdict.why.contains(why), "{verdict:?}");
        assert_eq!(progress.day, 1);
    }
    now = now + DAY;
    assert!(progress.go_on(&plan, &bar, now, well(200)).unwrap().good);
    // A week without anybody who looks is one day that is judged.
    now = now + DAY.times(7);
    assert!(progress.go_on(&plan, &bar, now, well(300)).unwrap().good);
    assert_eq!(progress.quota(&plan), None, "it is over");
    assert_eq!(progress.go_on(&plan, &bar, now + DAY, well(9)), None);
}

#[test]
fn a_clock_that_is_set_back_judges_nothing_twice() {
    let plan = Plan::by_day("test", &[100, 200]);
    let mut progress = Progress::new(&plan, 0, NOON + DAY);
    let bar = Bar::default();
    assert_eq!(progress.go_on(&plan, &bar, NOON, well(100)), None);
    assert_eq!(progress.go_on(&plan, &bar, NOON + DAY, well(0)), None);
    assert!(
        progress
            .go_on(&plan, &bar, NOON + DAY.times(2), well(0))
            .unwrap()
            .good
    );
}

proptest! {
    /// A plan never goes on by more than one day at a time, never back, and not
    /// at all on a bad day, whenever somebody looks.
    #[test]
    fn a_plan_goes_on_by_good_days_alone(
        days in proptest::collection::vec((0_u64..200, 0_u64..30, 1_u64..5), 1..30),
    ) {
        let plan = Plan::by_day("test", &[100; 40]);
        let bar = Bar::default();
        let mut progress = Progress::new(&plan, 0, NOON);
        let mut now = NOON;
        for (attempts, deferred, looks) in days {
            let before = progress.day;
            let counted = Counted { deferred: deferred.min(attempts), ..well(attempts) };
            let mut verdicts = 0;
            for look in 0..looks {
                let more = if look == 0 { counted } else { Counted::default() };
                verdicts += u32::from(progress.go_on(&plan, &bar, now, more).is_some());
            }
            now = now + DAY;
            let good = progress.go_on(&plan, &bar, now, Counted::default()).is_some_and(|it| it.good);
            prop_assert!(verdicts == 0);
            let is_bad = counted.deferred * 20 > attempts || attempts < 50;
            prop_assert_eq!(good, !is_bad);
            prop_assert_eq!(progress.day, before + u32::from(good));
        }
    }
}

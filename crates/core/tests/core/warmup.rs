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
        (well(99), "99 of 200 were sent, too few"),
        (well(0), "0 of 200 were sent, too few"),
    ] {
        now = now + DAY;
        let verdict = progress.go_on(&plan, &bar, now, counted).unwrap();
        assert!(!verdict.good && verdict.why.contains(why), "{verdict:?}");
        assert!(
            verdict.why.ends_with("the day is tried again"),
            "{verdict:?}"
        );
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
fn a_day_on_which_more_was_to_be_sent_was_used() {
    let plan = Plan::by_day("test", &[100, 200, 400]);
    let bar = Bar::default();
    let mut progress = Progress::new(&plan, 0, NOON);
    // All in one hour, which allows a tenth.
    assert!(progress.note_full() && !progress.note_full());
    let verdict = progress.go_on(&plan, &bar, NOON + DAY, well(10)).unwrap();
    assert!(verdict.good, "{verdict:?}");
    let now = NOON + DAY.times(2);
    assert!(
        !progress.go_on(&plan, &bar, now, well(10)).unwrap().good,
        "that was yesterday"
    );
    progress.note_full();
    let bad = Counted {
        bounced: 1,
        ..well(10)
    };
    let now = NOON + DAY.times(3);
    assert!(!progress.go_on(&plan, &bar, now, bad).unwrap().good);
}

/// The size of the day after one like this, and what was said of it.
fn after(progress: &mut Progress, plan: &Plan, counted: Counted) -> u32 {
    let now = Wall(progress.date * DAY.0 as i64) + DAY;
    progress.go_on(plan, &Bar::default(), now, counted).unwrap();
    progress.quota(plan).map_or(0, |quota| quota.day)
}

#[test]
fn the_generic_plan_goes_as_fast_as_a_day_went_well() {
    let plan = Plan::named("generic").unwrap();
    assert!(plan.adapts);
    let mut progress = Progress::new(&plan, 0, NOON);
    assert_eq!(after(&mut progress, &plan, well(200)), 400, "all was taken");
    assert_eq!(
        after(&mut progress, &plan, well(390)),
        400,
        "too few for 800"
    );
    assert_eq!(
        after(&mut progress, &plan, well(100)),
        400,
        "too few to tell"
    );
    let close = |attempts: u64| Counted {
        deferred: attempts / 25,
        ..well(attempts)
    };
    assert_eq!(
        after(&mut progress, &plan, close(400)),
        400,
        "close to the bar"
    );
    assert_eq!(
        after(&mut progress, &plan, close(400)),
        800,
        "three good days"
    );
    let bad = |attempts: u64| Counted {
        bounced: attempts / 10,
        ..well(attempts)
    };
    assert_eq!(after(&mut progress, &plan, bad(800)), 400, "a step back");
    let why = progress.yesterday.as_ref().unwrap().why.clone();
    assert!(why.ends_with("goes back a step"), "{why}");
    assert_eq!(after(&mut progress, &plan, bad(400)), 200);
    assert_eq!(
        after(&mut progress, &plan, bad(200)),
        200,
        "not below the first"
    );

    // Where steps are small, a day close to the bar is enough.
    let mut progress = Progress::new(&plan, 45, NOON);
    let size = progress.quota(&plan).unwrap().day;
    let next = after(&mut progress, &plan, close(u64::from(size)));
    assert!(next > size && next < 3 * size / 2, "{size} {next}");
    let mut progress = Progress::new(&plan, 0, NOON);
    let mut days = 0;
    while let Some(quota) = progress.quota(&plan) {
        after(&mut progress, &plan, well(u64::from(quota.day)));
        days += 1;
    }
    assert_eq!(days, 30, "at best");
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

    /// However days go, a plan that adapts never allows more than twice what was
    /// taken, unless it was that large or held its step long enough, and never
    /// skips a step.
    #[test]
    fn a_plan_that_adapts_is_bounded_by_its_table(
        days in proptest::collection::vec((0_u64..=100, 0_u64..=10), 1..120),
    ) {
        let plan = Plan::named("generic").unwrap();
        let sizes: Vec<u32> = (0..plan.days()).map(|day| plan.quota(day).unwrap().day).collect();
        let mut steps = sizes.clone();
        steps.dedup();
        let mut progress = Progress::new(&plan, 0, NOON);
        for (used, bounced) in days {
            let Some(quota) = progress.quota(&plan) else { break };
            let attempts = u64::from(quota.day) * used / 100;
            let bounced = attempts * bounced / 100;
            let counted = Counted { attempts, accepted: attempts - bounced, bounced, ..Counted::default() };
            let (day, size) = (progress.day, quota.day);
            let next = after(&mut progress, &plan, counted);
            let at = steps.iter().position(|step| *step == size).unwrap();
            if next == 0 {
                prop_assert_eq!(at, steps.len() - 1);
                break;
            }
            let to = steps.iter().position(|step| *step == next).unwrap();
            prop_assert!(to.abs_diff(at) <= 1);
            if progress.day > day + 1 {
                prop_assert!(u64::from(next) <= 2 * counted.accepted);
            }
        }
    }
}

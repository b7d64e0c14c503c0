//! Waits, schedules, budgets and what is kept of failures.

use outflow_core::class::Class;
use outflow_core::entropy::Entropy;
use outflow_core::message::{Channel, Head, Seq, State};
use outflow_core::name::Name;
use outflow_core::outcome::{Outcome, ReplyClass, ReplyScope, Verdict};
use outflow_core::reply::{Enhanced, Reply, Stage};
use outflow_core::retry::backoff::{Backoff, Jitter};
use outflow_core::retry::budget::{RetryBudget, WINDOW};
use outflow_core::retry::dead_letter::{DeadLetter, LastError, TEXT_BYTES_MAX};
use outflow_core::retry::schedule::{DeathCause, Next, OnUncertain, RetryPolicy, RetrySchedules};
use outflow_core::time::{Mono, Nanos, Now, Wall};
use proptest::prelude::*;

const START: Wall = Wall(1_800_000_000_000_000_000);

fn secs(secs: u64) -> Nanos {
    Nanos::from_secs(secs)
}

fn at(after: Nanos, entropy: u64) -> Now {
    Now {
        mono: Mono(0) + after,
        wall: START + after,
        entropy: Entropy(entropy),
    }
}

fn refused(verdict: Verdict, class: ReplyClass, scope: ReplyScope) -> Outcome {
    Outcome::new(verdict, class, scope, Name::from("test"))
}

fn deferred() -> Outcome {
    refused(Verdict::Retry, ReplyClass::Other, ReplyScope::Message)
}

fn backoff(jitter: Jitter) -> Backoff {
    Backoff {
        first: secs(5),
        factor_milli: 2_000,
        cap: secs(60),
        jitter,
    }
}

#[test]
fn waits_double_up_to_the_cap() {
    let plain = backoff(Jitter::None);
    let waits: Vec<_> = (0..7).map(|n| plain.ceiling(n)).collect();
    assert_eq!(waits, [5, 5, 10, 20, 40, 60, 60].map(secs));
    assert_eq!(plain.ceiling(u16::MAX), secs(60));
}

#[test]
fn no_wait_overflows() {
    for factor_milli in [0, 999, 1_000, 1_001, 1_500, 2_000, u32::MAX] {
        for first in [0, 1, 1_000, u64::MAX] {
            let waits = Backoff {
                first: Nanos(first),
                factor_milli,
                cap: Nanos::MAX,
                jitter: Jitter::Decorrelated,
            };
            let long = waits.ceiling(u16::MAX);
            assert!(long >= Nanos(first));
            let drawn = waits.delay(u16::MAX, Nanos::MAX, &mut Entropy(1));
            assert!(drawn >= Nanos(first));
        }
    }
    let shrinking = Backoff {
        factor_milli: 500,
        ..backoff(Jitter::None)
    };
    assert_eq!(shrinking.ceiling(9), secs(5));
    let capped = Backoff {
        cap: secs(2),
        ..backoff(Jitter::Decorrelated)
    };
    assert_eq!(capped.delay(3, secs(9), &mut Entropy(1)), secs(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn jitter_stays_in_its_range(attempt in any::<u16>(), last in 0_u64..200, bits in any::<u64>()) {
        let mut entropy = Entropy(bits);
        let mut draw = |jitter| backoff(jitter).delay(attempt, secs(last), &mut entropy);
        let whole = draw(Jitter::None);
        prop_assert!(draw(Jitter::Full) <= whole);
        let equal = draw(Jitter::Equal);
        prop_assert!(Nanos(whole.0 / 2) <= equal && equal <= whole);
        let decorrelated = draw(Jitter::Decorrelated);
        let high = secs(60).min(secs(last.max(5) * 3));
        prop_assert!(secs(5) <= decorrelated && decorrelated <= high);
    }
}

#[test]
fn jitter_uses_its_whole_range() {
    for (jitter, low, high) in [
        (Jitter::Full, 0.0, 40.0),
        (Jitter::Equal, 20.0, 40.0),
        (Jitter::Decorrelated, 5.0, 45.0),
    ] {
        let mut entropy = Entropy(7);
        let mut drawn: Vec<f64> = (0..10_000)
            .map(|_| {
                backoff(jitter)
                    .delay(4, secs(15), &mut entropy)
                    .as_secs_f64()
            })
            .collect();
        drawn.sort_by(f64::total_cmp);
        let near = (high - low) / 100.0;
        assert!(drawn[0] < low + near && drawn[9_999] > high - near);
        assert!((drawn[5_000] - (low + high) / 2.0).abs() < 3.0 * near);
    }
}

#[test]
fn messages_of_one_step_do_not_return_together() {
    let email = RetrySchedules::default().email;
    let mut times: Vec<_> = (0..1_000)
        .map(|seq| {
            let mut head = Head::new(Seq(seq), START);
            head.attempts = 1;
            email.decide(&at(secs(0), 42), &head, &deferred(), OnUncertain::default())
        })
        .map(|next| match next {
            Next::RetryAt { at, .. } => at,
            other => panic!("{other:?}"),
        })
        .collect();
    times.sort();
    times.dedup();
    assert_eq!(times.len(), 1_000);
}

/// Tries a message until it is given up; returns the waits and the end.
fn run(policy: &RetryPolicy, mut head: Head, outcome: &Outcome, bits: u64) -> (Vec<Nanos>, Next) {
    let mut elapsed = Nanos::ZERO;
    let mut waits = Vec::new();
    head.first_attempt_at = START;
    loop {
        head.attempts += 1;
        let now = at(elapsed, bits);
        match policy.decide(&now, &head, outcome, OnUncertain::default()) {
            Next::RetryAt { at, delay } => {
                assert_eq!(at, now.wall + delay);
                elapsed = elapsed + delay;
                head.last_delay = delay;
                waits.push(delay);
            }
            end => return (waits, end),
        }
    }
}

#[test]
fn mail_is_tried_for_four_days() {
    let schedules = RetrySchedules::default();
    let normal = schedules.for_message(Channel::Email, Class::Normal);
    for bits in 0..50 {
        let (waits, end) = run(normal, Head::new(Seq(9), START), &deferred(), bits);
        assert_eq!(end, Next::Dead(DeathCause::Age));
        for (wait, ceiling) in waits
            .iter()
            .zip([300, 600, 1_200, 2_400, 4_800, 9_600, 14_400])
        {
            assert!(secs(ceiling / 2) <= *wait && *wait <= secs(ceiling));
        }
        let total: u64 = waits.iter().map(|wait| wait.0).sum();
        assert!(total <= secs(4 * 86_400).0 && total > secs(4 * 86_400 - 14_400).0);
    }
    let critical = schedules.for_message(Channel::Email, Class::Critical);
    let (waits, _) = run(critical, Head::new(Seq(9), START), &deferred(), 1);
    for (wait, ceiling) in waits.iter().zip([30, 60, 120, 240, 300, 300]) {
        assert!(secs(ceiling / 2) <= *wait && *wait <= secs(ceiling));
    }
}

#[test]
fn an_api_is_tried_five_times() {
    let schedules = RetrySchedules::default();
    for channel in [Channel::Sms, Channel::Push] {
        let api = schedules.for_message(channel, Class::Critical);
        let (waits, end) = run(api, Head::new(Seq(1), START), &deferred(), 3);
        assert_eq!((waits.len(), end), (4, Next::Dead(DeathCause::Attempts)));
        for (wait, ceiling) in waits.iter().zip([1, 2, 4, 8]) {
            assert!(*wait <= secs(ceiling));
        }
    }
}

#[test]
fn trouble_of_our_own_does_not_use_a_message_up() {
    let api = RetrySchedules::default().api;
    let mut head = Head::new(Seq(1), START);
    head.attempts = 500;
    head.first_attempt_at = START;
    let rate = refused(Verdict::Retry, ReplyClass::Rate, ReplyScope::Account);
    let auth = refused(
        Verdict::Misconfigured,
        ReplyClass::Authentication,
        ReplyScope::Account,
    );
    let block = refused(
        Verdict::Blocked,
        ReplyClass::Reputation,
        ReplyScope::Account,
    );
    let soon = at(secs(3_600), 1);
    let late = at(secs(5 * 86_400), 1);
    for outcome in [rate, auth, block] {
        let next = api.decide(&soon, &head, &outcome, OnUncertain::Dead);
        assert!(matches!(next, Next::RetryAt { .. }), "{next:?}");
        let next = api.decide(&late, &head, &outcome, OnUncertain::Dead);
        assert_eq!(next, Next::Dead(DeathCause::Age));
        let ageless = RetryPolicy {
            give_up_after: None,
            ..api
        };
        let next = ageless.decide(&soon, &head, &outcome, OnUncertain::Dead);
        assert_eq!(
            next,
            Next::Dead(DeathCause::Attempts),
            "or it would never end"
        );
    }
    let his = refused(Verdict::Retry, ReplyClass::Rate, ReplyScope::Recipient);
    let next = api.decide(&soon, &head, &his, OnUncertain::default());
    assert_eq!(next, Next::Dead(DeathCause::Attempts));
}

#[test]
fn what_a_person_must_mend_is_not_tried_against() {
    let email = RetrySchedules::default().email;
    let mut head = Head::new(Seq(1), START);
    head.attempts = 1;
    head.first_attempt_at = START;
    let wait = |outcome: &Outcome| match email.decide(
        &at(secs(0), 1),
        &head,
        outcome,
        OnUncertain::default(),
    ) {
        Next::RetryAt { delay, .. } => delay,
        next => panic!("{next:?}"),
    };
    let auth = |scope| refused(Verdict::Misconfigured, ReplyClass::Authentication, scope);
    assert_eq!(wait(&auth(ReplyScope::SendingDomain)), secs(3_600));
    // Another account may not be blocked: the schedule decides.
    assert!(wait(&auth(ReplyScope::Account)) <= secs(300));
    // Slower is not never.
    let rate = refused(Verdict::Retry, ReplyClass::Rate, ReplyScope::SendingDomain);
    assert!(wait(&rate) <= secs(300));
    // What the far end asks for is kept, however short.
    let mut asked = auth(ReplyScope::SendingDomain);
    asked.retry_after = Some(secs(7));
    assert_eq!(wait(&asked), secs(7));
}

#[test]
fn the_far_end_is_obeyed_to_the_nanosecond() {
    let email = RetrySchedules::default().email;
    for (attempts, wait) in [(1, 1), (2, 17_000_000_001), (3, 86_400_000_000_007)] {
        let mut head = Head::new(Seq(1), START);
        head.attempts = attempts;
        head.first_attempt_at = START;
        let mut outcome = deferred();
        outcome.retry_after = Some(Nanos(wait));
        let next = email.decide(&at(secs(1), 5), &head, &outcome, OnUncertain::default());
        let delay = Nanos(wait);
        assert_eq!(
            next,
            Next::RetryAt {
                at: START + secs(1) + delay,
                delay
            }
        );
        outcome.retry_after = Some(secs(5 * 86_400));
        let next = email.decide(&at(secs(1), 5), &head, &outcome, OnUncertain::default());
        assert_eq!(next, Next::Dead(DeathCause::Age));
        outcome.retry_after = Some(Nanos::MAX);
        let next = email.decide(&at(secs(1), 5), &head, &outcome, OnUncertain::default());
        assert_eq!(next, Next::Dead(DeathCause::Age));
    }
}

#[test]
fn a_message_stays_deferred_until_it_expires() {
    let email = RetrySchedules::default().email;
    let mut head = Head::new(Seq(1), START);
    head.attempts = 1;
    let mut outcome = deferred();
    outcome.retry_after = Some(secs(60));
    head.expires_at = START + secs(60);
    let next = email.decide(&at(secs(0), 5), &head, &outcome, OnUncertain::default());
    // The store's wheel ends it at its time, not a moment before.
    let (at, delay) = (START + secs(60), secs(60));
    assert_eq!(next, Next::RetryAt { at, delay });
}

#[test]
fn final_and_uncertain_outcomes() {
    let email = RetrySchedules::default().email;
    let mut head = Head::new(Seq(1), START);
    head.attempts = 1;
    let decide = |verdict, on_uncertain| {
        let outcome = refused(verdict, ReplyClass::Other, ReplyScope::Message);
        email.decide(&at(secs(0), 5), &head, &outcome, on_uncertain)
    };
    let delivered = decide(Verdict::Delivered, OnUncertain::default());
    assert_eq!(delivered, Next::Settle(State::Delivered));
    let bounced = decide(Verdict::Bounced, OnUncertain::default());
    assert_eq!(bounced, Next::Settle(State::Bounced));
    let uncertain = decide(Verdict::Uncertain, OnUncertain::Dead);
    assert_eq!(uncertain, Next::Dead(DeathCause::Uncertain));
    let again = decide(Verdict::Uncertain, OnUncertain::default());
    assert!(matches!(again, Next::RetryAt { .. }));
}

#[test]
fn lost_answers_are_counted_whatever_comes_between() {
    let mut email = RetrySchedules::default().email;
    email.attempts = None;
    let on_uncertain = OnUncertain::Retry { lost_max: 3 };
    let mut head = Head::new(Seq(1), START);
    head.first_attempt_at = START;
    let verdicts = [
        Verdict::Uncertain,
        Verdict::Retry,
        Verdict::Uncertain,
        Verdict::Retry,
        Verdict::Uncertain,
    ];
    let mut copies = 0;
    for (no, verdict) in verdicts.into_iter().enumerate() {
        head.attempts += 1;
        head.uncertain += u8::from(verdict == Verdict::Uncertain);
        copies += u8::from(verdict == Verdict::Uncertain);
        let outcome = refused(verdict, ReplyClass::Network, ReplyScope::Message);
        let next = email.decide(&at(secs(1), 5), &head, &outcome, on_uncertain);
        match no {
            4 => assert_eq!(next, Next::Dead(DeathCause::Uncertain)),
            _ => assert!(matches!(next, Next::RetryAt { .. }), "{no}: {next:?}"),
        }
    }
    assert_eq!(copies, 3);
    // Another refusal after that does not die of it.
    let outcome = refused(Verdict::Retry, ReplyClass::Rate, ReplyScope::Message);
    let next = email.decide(&at(secs(1), 5), &head, &outcome, on_uncertain);
    assert!(matches!(next, Next::RetryAt { .. }));
}

#[test]
fn a_dead_letter_says_what_happened_and_stays_small() {
    let reply = Reply::Said {
        stage: Stage::Data,
        code: 451,
        enhanced: Some(Enhanced(4, 3, 0)),
        text: ("x".to_owned() + &"\u{20AC}".repeat(400)).into(),
        retry_after: None,
        allows: None,
    };
    let error = LastError::of(&reply, &deferred());
    assert_eq!(
        (error.code, error.enhanced),
        (Some(451), Some(Enhanced(4, 3, 0)))
    );
    assert_eq!(
        error.text.len(),
        TEXT_BYTES_MAX - 1,
        "a euro sign has three bytes"
    );
    let mut head = Head::new(Seq(1), START);
    head.attempts = 7;
    head.first_attempt_at = START + secs(1);
    let letter = DeadLetter::new(&head, START + secs(9), DeathCause::Age, error);
    assert_eq!(letter.first_attempt_at, START + secs(1));
    assert_eq!(
        (letter.last_attempt_at, letter.attempts),
        (START + secs(9), 7)
    );
    let lost = LastError::of(&Reply::Uncertain, &deferred());
    assert_eq!((lost.code, lost.enhanced), (None, None));
}

#[test]
fn a_campaign_pays_for_a_fifth_and_the_floor() {
    let mut budget = RetryBudget::new(200, 10);
    let now = Mono(0) + secs(1_000);
    for _ in 0..1_000 {
        budget.first_attempt(now);
    }
    let mut retries = 0;
    while budget.may_retry(now).is_ok() {
        budget.take(now);
        retries += 1;
    }
    assert_eq!(retries, 210);
    assert_eq!(budget.may_retry(now), Err(now + secs(6)));
    let later = now + secs(6);
    assert_eq!(budget.may_retry(later), Ok(()));
    budget.take(later);
    assert_eq!(budget.may_retry(later), Err(later + secs(6)));
    assert!(!budget.is_idle(later));
    assert!(budget.is_idle(later + secs(60)));
}

#[test]
fn unspent_credit_lapses_within_the_hour() {
    let mut budget = RetryBudget::new(1_000, 0);
    let now = Mono(0) + secs(7_199);
    budget.first_attempt(now);
    assert_eq!(budget.may_retry(now + WINDOW - secs(301)), Ok(()));
    assert_eq!(budget.may_retry(now + WINDOW), Err(Mono::NEVER));
    assert!(!budget.is_idle(now) && budget.is_idle(now + WINDOW));
    budget.first_attempt(Mono(0) + secs(1_000_000_000));
    budget.take(Mono(0) + secs(1_000_000_000));
    assert!(budget.is_idle(Mono(0) + secs(1_000_000_000)));
}

#[test]
fn extreme_budgets_do_not_overflow() {
    let mut budget = RetryBudget::new(u32::MAX, u32::MAX);
    for now in [
        Mono(0),
        Mono(1),
        Mono::NEVER - Nanos(1),
        Mono::NEVER,
        Mono(5),
    ] {
        budget.first_attempt(now);
        assert_eq!(budget.may_retry(now), Ok(()));
        budget.take(now);
    }
    let broke = RetryBudget::new(0, 0);
    assert_eq!(broke.may_retry(Mono(7)), Err(Mono::NEVER));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    First(u8),
    Retry(u8),
    UntilTold,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0_u64..2_000_000_000_000).prop_map(Step::Wait),
        (0_u64..7_000_000_000).prop_map(Step::Wait),
        (1_u8..40).prop_map(Step::First),
        (1_u8..20).prop_map(Step::Retry),
        Just(Step::UntilTold),
    ];
    proptest::collection::vec(step, 1..60)
}

/// Checks the guarantee for all intervals, from nothing but the two lists of
/// times.
fn check_all_intervals(firsts: &[u64], retries: &[u64], permille: u32, floor: u32) {
    const MINUTE: u128 = 60_000_000_000;
    for (i, from) in retries.iter().enumerate() {
        for (j, to) in retries.iter().enumerate().skip(i) {
            let earliest = firsts.partition_point(|t| t + WINDOW.0 <= *from);
            let latest = firsts.partition_point(|t| t <= to);
            let paid = (latest - earliest) as u128 * u128::from(permille) * MINUTE / 1_000;
            let floor = u128::from(floor) * (u128::from(to - from) + MINUTE);
            let spent = (j - i + 1) as u128 * MINUTE;
            assert!(
                spent <= paid + floor,
                "{i}..={j}: {spent} > {paid} + {floor}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn the_budget_holds_in_every_interval(
        steps in steps(),
        permille in prop_oneof![Just(200_u32), 0_u32..1_500],
        floor in prop_oneof![Just(10_u32), 1_u32..30],
    ) {
        let mut budget = RetryBudget::new(permille, floor);
        let (mut now, mut firsts, mut retries) = (Mono(12_345), Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Wait(span) => now = now + Nanos(span),
                Step::First(count) => for _ in 0..count {
                    budget.first_attempt(now);
                    firsts.push(now.0);
                },
                Step::Retry(count) => for _ in 0..count {
                    if budget.may_retry(now).is_ok() {
                        budget.take(now);
                        retries.push(now.0);
                    }
                },
                // Looking again when told leads to a retry, at the second look
                // if earned credit lapsed meanwhile.
                Step::UntilTold => {
                    let mut looks = 0;
                    while let Err(until) = budget.may_retry(now) {
                        prop_assert!(until > now);
                        prop_assert!(until.since(now).0 <= 60_000_000_000_u64.div_ceil(u64::from(floor)));
                        now = until;
                        looks += 1;
                    }
                    prop_assert!(looks <= 3, "{} looks", looks);
                    budget.take(now);
                    retries.push(now.0);
                }
            }
            if budget.is_idle(now) {
                let fresh = RetryBudget::new(permille, floor);
                prop_assert_eq!(budget.may_retry(now), fresh.may_retry(now));
                budget = fresh;
            }
        }
        check_all_intervals(&firsts, &retries, permille, floor);
    }

    #[test]
    fn the_floor_is_always_let_through(
        before in steps(),
        permille in 0_u32..400,
        floor in 1_u32..30,
        pace in 1_000_000_u64..3_000_000_000,
    ) {
        let mut budget = RetryBudget::new(permille, floor);
        let mut now = Mono(0);
        for step in before {
            match step {
                Step::Wait(span) => now = now + Nanos(span),
                Step::First(count) => (0..count).for_each(|_| budget.first_attempt(now)),
                Step::Retry(_) | Step::UntilTold => while budget.may_retry(now).is_ok() {
                    budget.take(now);
                },
            }
        }
        let from = now;
        let mut retries = 0_u64;
        while now.since(from) < secs(120) {
            now = now + Nanos(pace);
            while budget.may_retry(now).is_ok() {
                budget.take(now);
                retries += 1;
            }
        }
        let owed = u128::from(now.since(from).0) * u128::from(floor) / 60_000_000_000;
        prop_assert!(u128::from(retries) + 1 >= owed, "{} of {}", retries, owed);
    }
}

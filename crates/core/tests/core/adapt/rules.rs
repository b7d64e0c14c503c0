//! Single rules, each by name.

use outflow_core::adapt::{Cause, Controller, Explicit, Mode, Pace, Profile, Settings, Signal};
use outflow_core::name::Name;
use outflow_core::outcome::{Outcome, ReplyClass, ReplyScope, Verdict};
use outflow_core::time::{Mono, Nanos};

use super::far_end::{FarEnd, drive};
use super::{HOUR, MINUTE, REFUSED, SECOND, at, feed, seek};

fn said(verdict: Verdict, class: ReplyClass, scope: ReplyScope) -> Signal {
    Signal::of(
        &Outcome::new(verdict, class, scope, Name::from("test")),
        450,
    )
}

#[test]
fn greylist_connection_and_recipient_replies_never_change_the_rate() {
    use ReplyClass::{Content, Greylist, Network, Rate, Recipient};
    let replies = [
        said(Verdict::Retry, Greylist, ReplyScope::Recipient),
        said(Verdict::Retry, Rate, ReplyScope::Session),
        said(Verdict::Retry, Rate, ReplyScope::Recipient),
        said(Verdict::Bounced, Recipient, ReplyScope::Recipient),
        said(Verdict::Bounced, Content, ReplyScope::Message),
        said(Verdict::Retry, Network, ReplyScope::Session),
    ];
    for signal in replies {
        let mut controller = seek(10.0, 10.0);
        feed(&mut controller, 0, HOUR, 36_000, signal);
        assert_eq!(controller.rate(&at(HOUR)), 10.0, "{signal:?}");
        assert_eq!(controller.epoch(), 0, "{signal:?}");
    }
    let rate = said(Verdict::Retry, Rate, ReplyScope::Destination);
    assert_eq!(
        rate,
        Signal::Refused {
            cause: Cause::Rate,
            code: 450
        }
    );
}

#[test]
fn what_the_far_end_says_is_obeyed() {
    let mut controller = seek(10.0, 100.0);
    controller.explicit(&at(0), Explicit::Wait(Nanos(90 * SECOND)));
    assert_eq!(
        controller.pace(&at(89 * SECOND)),
        Pace::Stop(Mono(90 * SECOND))
    );
    assert_eq!(controller.next_wake(), Some(Mono(90 * SECOND)));
    controller.woke(&at(90 * SECOND));
    assert_eq!(controller.next_wake(), None);
    assert_eq!(controller.rate(&at(90 * SECOND)), 10.0);
    controller.explicit(&at(HOUR), Explicit::Rate(4.0));
    let mut far_end = FarEnd::new(1_000.0, 0);
    drive(&mut controller, &mut far_end, HOUR, 4 * HOUR, |_, it| {
        assert!(it.limit() <= 4.0)
    });
    assert_eq!(controller.limit(), 4.0, "and not tried beyond");
    let before = controller;
    controller.explicit(&at(4 * HOUR), Explicit::Rate(4.0));
    assert_eq!(controller, before, "the same again says nothing");
    controller.explicit(&at(4 * HOUR), Explicit::Rate(500.0));
    assert_eq!(
        controller.limit(),
        100.0,
        "the operator's cap holds all the same"
    );
}

#[test]
fn in_a_block_one_message_is_in_flight() {
    let mut controller = seek(20.0, 200.0);
    let mut far_end = FarEnd::new(2.0, 2 * HOUR);
    let steps = drive(&mut controller, &mut far_end, 0, 12 * HOUR, |_, _| {});
    let blocked: Vec<_> = steps
        .iter()
        .filter(|step| step.mode == Mode::Block)
        .collect();
    assert!(blocked.len() > 3, "no block came up");
    // What was under way when it began comes back within a latency.
    let begun = blocked[0].now + SECOND;
    let after = blocked
        .iter()
        .filter(|step| step.now > begun && step.now < begun + HOUR);
    assert!(after.clone().count() > 0);
    assert!(after.clone().all(|step| step.in_flight <= 1));
}

#[test]
fn a_block_costs_few_refusals() {
    let mut controller = seek(1.0, 1.0);
    let mut now = 0;
    let mut refused = 0;
    while now < 24 * HOUR {
        match controller.pace(&at(now)) {
            Pace::Stop(until) => now = until.0.min(24 * HOUR),
            Pace::One | Pace::Flow(_) => {
                controller.sent(&at(now));
                controller.replied(&at(now + SECOND / 5), Mono(now), REFUSED);
                refused += 1;
                now += SECOND;
            }
        }
    }
    assert!(
        (4..20).contains(&refused),
        "{refused} in a day that is all block"
    );
}

#[test]
fn no_increase_before_its_time_and_cuts_at_any_time() {
    let mut controller = seek(20.0, 200.0);
    let mut far_end = FarEnd::new(2.0, 0);
    drive(&mut controller, &mut far_end, 0, HOUR, |_, _| {});
    let mut now = HOUR;
    while controller.mode() != Mode::Cruise {
        drive(&mut controller, &mut far_end, now, now + MINUTE, |_, _| {});
        now += MINUTE;
    }
    let cooldown = controller.cooldown_until();
    assert!(cooldown.0 > now, "cruising without a cooldown");
    let before = controller.limit();
    // Half of it is refused: the cut does not wait.
    for n in 0..40_u64 {
        let sent = now + n * SECOND;
        let signal = if n % 2 == 0 { REFUSED } else { Signal::Passed };
        controller.sent(&at(sent));
        controller.replied(&at(sent + SECOND / 10), Mono(sent), signal);
    }
    assert!(now + 40 * SECOND < cooldown.0);
    assert!(controller.limit() < before);
}

#[test]
fn after_idling_a_surge_goes_up_from_at_most_twice_what_was_recently_achieved() {
    let mut controller = seek(100.0, 100.0);
    feed(&mut controller, 0, 10 * MINUTE, 60_000, Signal::Passed);
    assert_eq!(controller.rate(&at(10 * MINUTE)), 100.0);
    feed(
        &mut controller,
        10 * MINUTE,
        2 * HOUR,
        7_200 * 10,
        Signal::Passed,
    );
    let surge = controller.rate(&at(10 * MINUTE + 2 * HOUR));
    assert!(surge <= 20.5, "{surge} after two hours at 10/s");
    assert!(surge >= 18.0, "{surge} is needlessly slow");
    let mut far_end = FarEnd::new(1_000.0, 0);
    let from = 10 * MINUTE + 2 * HOUR;
    drive(
        &mut controller,
        &mut far_end,
        from,
        from + 10 * MINUTE,
        |_, _| {},
    );
    assert_eq!(
        controller.rate(&at(from + 10 * MINUTE)),
        100.0,
        "and is back soon"
    );
}

#[test]
fn demand_below_the_rate_proves_nothing() {
    let mut controller = seek(10.0, 1_000.0);
    feed(&mut controller, 0, 6 * HOUR, 6 * 3_600, Signal::Passed);
    assert_eq!(controller.limit(), 10.0, "1/s does not prove 10/s");
    assert_eq!(controller.proven(), None);
}

#[test]
fn a_pin_holds_and_a_reset_forgets() {
    let mut controller = seek(10.0, 100.0);
    controller.pin(&at(0), 500.0, Some(Mono(HOUR)));
    assert_eq!(controller.rate(&at(0)), 100.0, "no pin above the cap");
    controller.pin(&at(0), 3.0, Some(Mono(HOUR)));
    feed(&mut controller, 0, 10 * MINUTE, 600, REFUSED);
    assert_eq!(controller.rate(&at(10 * MINUTE)), 3.0);
    assert_eq!(controller.next_wake(), Some(Mono(HOUR)));
    controller.woke(&at(HOUR));
    assert_eq!(controller.limit(), 10.0);
    feed(&mut controller, HOUR, MINUTE, 600, REFUSED);
    assert_ne!(controller.mode(), Mode::Prove);
    controller.reset(&at(2 * HOUR));
    assert_eq!((controller.mode(), controller.limit()), (Mode::Prove, 10.0));
}

#[test]
fn the_incident_rule_halves_waits_and_adds() {
    let settings = Settings::new(100.0, 100.0, Profile::Incident);
    let mut controller = Controller::new(&at(0), settings);
    feed(&mut controller, 0, SECOND, 20, REFUSED);
    // One second, many refusals, but only those sent after a cut count again.
    assert!(controller.limit() <= 50.0);
    let cut = controller.limit();
    let raise = controller.cooldown_until().0;
    assert!((30 * MINUTE..31 * MINUTE).contains(&raise), "{raise}");
    controller.woke(&at(raise - 1));
    assert_eq!(controller.limit(), cut);
    controller.woke(&at(raise));
    assert!((controller.limit() - cut - 10.0).abs() < 1e-9);
    assert_eq!(controller.cooldown_until(), Mono(raise + 10 * MINUTE));
    controller.woke(&at(raise + 3 * HOUR));
    assert_eq!(controller.limit(), 100.0);
}

#[test]
fn one_sentence_says_it_all() {
    let mut controller = seek(20.0, 200.0);
    let first = controller.sentence(&at(0));
    assert!(
        first.contains("proving 20.00/s (10.0 % of 200/s)"),
        "{first}"
    );
    let mut far_end = FarEnd::new(2.0, 2 * HOUR);
    drive(&mut controller, &mut far_end, 0, 10 * MINUTE, |_, _| {});
    let blocked = controller.sentence(&at(10 * MINUTE));
    for part in [
        "blocked at 20.00/s",
        "refused, last with 421",
        "one message asks in ",
    ] {
        assert!(blocked.contains(part), "{part:?} is missing: {blocked}");
    }
    let mut far_end = FarEnd::new(2.0, 0);
    let mut controller = seek(1.0, 200.0);
    drive(&mut controller, &mut far_end, 0, 5 * HOUR, |now, it| {
        let sentence = it.sentence(&at(now));
        assert!(
            !sentence.is_empty() && !sentence.contains("NaN") && sentence.len() < 240,
            "{sentence}"
        );
    });
    controller.pin(&at(5 * HOUR), 1.0, None);
    assert_eq!(
        controller.sentence(&at(5 * HOUR)),
        "pinned by an operator at 1.00/s until it is let go"
    );
}

#[test]
fn nonsense_in_settings_becomes_slow() {
    for (start, cap) in [
        (f64::NAN, 1.0),
        (0.0, 0.0),
        (-5.0, f64::INFINITY),
        (1.0, f64::NAN),
    ] {
        let settings = Settings::new(start, cap, Profile::Seek);
        let controller = Controller::new(&at(0), settings);
        let rate = controller.rate(&at(0));
        assert!(
            rate > 0.0 && rate <= settings.cap(),
            "{start} {cap}: {rate}"
        );
    }
}

#[test]
fn a_key_is_small() {
    assert!(
        size_of::<Controller>() <= 384,
        "{}",
        size_of::<Controller>()
    );
}

/// Use is judged by what was lately used, not by the night before.
#[test]
fn an_idle_night_does_not_keep_a_rate_from_rising() {
    let mut controller = seek(10.0, 100.0);
    feed(&mut controller, 0, 10 * HOUR, 36_000, Signal::Passed);
    assert_eq!(controller.limit(), 10.0, "a tenth of it proves nothing");
    feed(
        &mut controller,
        10 * HOUR,
        20 * MINUTE,
        12_000,
        Signal::Passed,
    );
    assert!(controller.limit() > 10.0, "all of it does");
}

/// Another cap is no reason to send into a block.
#[test]
fn a_lower_cap_does_not_end_a_block() {
    let mut controller = seek(40.0, 40.0);
    feed(&mut controller, 0, SECOND, 40, REFUSED);
    assert!(controller.mode().is_stop(), "{:?}", controller.mode());
    let lower = Settings::new(20.0, 20.0, Profile::Seek);
    controller.set(&at(2 * SECOND), lower);
    assert!(controller.mode().is_stop(), "{:?}", controller.mode());
    assert!(controller.limit() <= 20.0);
}

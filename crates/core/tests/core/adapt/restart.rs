//! Saved and restored in the middle of anything: the same trace.

use outflow_core::adapt::{Controller, Mode, Pace, Profile, Saved, Settings, Unreadable};
use outflow_core::time::{Mono, Nanos, Now, Wall};

use super::far_end::{FarEnd, Step, drive};
use super::{HOUR, MINUTE, SECOND, at, seek};

fn trace(block: u64, swap: impl Fn(u64, &Controller) -> bool) -> (Vec<Step>, Vec<Mode>) {
    let settings = Settings::new(20.0, 200.0, Profile::Seek);
    let mut controller = Controller::new(&at(0), settings);
    let mut far_end = FarEnd::new(2.0, block);
    let mut seen = Vec::new();
    let steps = drive(&mut controller, &mut far_end, 0, 6 * HOUR, |now, it| {
        if !swap(now, it) {
            return;
        }
        let text = toml::to_string(&it.save(&at(now))).unwrap();
        let saved: Saved = toml::from_str(&text).unwrap();
        *it = Controller::restore(&at(now), settings, &saved, Nanos::ZERO).unwrap();
        if !seen.contains(&it.mode()) {
            seen.push(it.mode());
        }
    });
    (steps, seen)
}

#[test]
fn saved_and_restored_in_the_middle_of_a_block_trial_or_wait_gives_the_same_trace() {
    for block in [0, 12 * MINUTE] {
        let (whole, _) = trace(block, |_, _| false);
        let (swapped, seen) = trace(block, |now, it| {
            let stopped = matches!(it.mode(), Mode::Pause | Mode::Block);
            stopped || (now / SECOND).is_multiple_of(7)
        });
        assert!(whole == swapped, "the traces differ, block {block}");
        for mode in [Mode::Prove, Mode::Trial, Mode::Cruise] {
            assert!(seen.contains(&mode), "{mode:?} was not met: {seen:?}");
        }
        let stopped = if block > 0 { Mode::Block } else { Mode::Pause };
        assert!(seen.contains(&stopped), "{stopped:?} was not met: {seen:?}");
    }
}

#[test]
fn waits_go_on_over_a_restart_whose_clock_starts_anew() {
    let settings = Settings::new(20.0, 200.0, Profile::Seek);
    let mut controller = Controller::new(&at(HOUR), settings);
    let mut far_end = FarEnd::new(2.0, 12 * MINUTE);
    drive(
        &mut controller,
        &mut far_end,
        HOUR,
        HOUR + 5 * MINUTE,
        |_, _| {},
    );
    assert_eq!(controller.mode(), Mode::Block);
    let wake = controller.next_wake().unwrap();
    let saved = controller.save(&at(HOUR + 5 * MINUTE));
    let left = wake.since(Mono(HOUR + 5 * MINUTE));
    // A minute later, on a machine that has run for a second.
    let now = Now {
        mono: Mono(SECOND),
        wall: Wall(at(HOUR + 6 * MINUTE).wall.0),
        ..at(0)
    };
    let restored = Controller::restore(&now, settings, &saved, Nanos(MINUTE)).unwrap();
    assert_eq!(restored.mode(), Mode::Block);
    assert_eq!(
        restored.next_wake().unwrap().since(now.mono),
        left.minus(Nanos(MINUTE))
    );
}

#[test]
fn a_restored_controller_keeps_to_a_lower_cap() {
    let controller = seek(50.0, 100.0);
    let saved = controller.save(&at(SECOND));
    let lower = Settings::new(10.0, 10.0, Profile::Seek);
    let restored = Controller::restore(&at(SECOND), lower, &saved, Nanos::ZERO).unwrap();
    assert!(restored.rate(&at(SECOND)) <= 10.0);
}

#[test]
fn what_is_damaged_is_refused_by_name() {
    let settings = Settings::new(10.0, 10.0, Profile::Seek);
    let whole = seek(10.0, 10.0).save(&at(0));
    let restore = |saved: &Saved| Controller::restore(&at(0), settings, saved, Nanos::ZERO);
    assert!(restore(&whole).is_ok());
    let mut other = whole.clone();
    other.version = 9;
    assert_eq!(restore(&other).unwrap_err(), Unreadable::Version(9));
    for cut in 0..whole.words.len() {
        let mut short = whole.clone();
        short.words.truncate(cut);
        assert!(
            matches!(restore(&short), Err(Unreadable::Damaged(_))),
            "{cut}"
        );
    }
    for place in 0..whole.words.len() {
        for word in [i64::MIN, -1, i64::MAX, f64::NAN.to_bits().cast_signed()] {
            let mut odd = whole.clone();
            odd.words[place] = word;
            if let Ok(restored) = restore(&odd) {
                let rate = restored.rate(&at(SECOND));
                assert!((0.0..=10.0).contains(&rate), "word {place}: {rate}");
            }
        }
    }
}

/// It is saved when it changes, which may be long before the process ends.
#[test]
fn time_since_saving_has_passed_after_a_restart() {
    let mut controller = seek(10.0, 100.0);
    let until = Mono(2 * HOUR);
    controller.pin(&at(0), 3.0, Some(until));
    let saved = controller.save(&at(0));
    // Two hours later, though the process was away for a second only.
    let now = Now {
        mono: Mono(SECOND),
        ..at(2 * HOUR)
    };
    let settings = Settings::new(10.0, 100.0, Profile::Seek);
    let again = Controller::restore(&now, settings, &saved, Nanos(SECOND)).unwrap();
    assert_ne!(again.pace(&now), Pace::Flow(3.0), "the pin is over");
    assert_eq!(again.limit(), 10.0);
}

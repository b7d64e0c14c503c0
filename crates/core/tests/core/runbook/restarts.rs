//! What a process goes on with that begins in the midst of an incident.

use outflow_core::runbook::{Runbook, State, Step};
use proptest::prelude::*;

use super::{Scene, all, weather};

#[test]
fn what_is_in_force_is_put_in_force_again_after_a_restart() {
    let mut scene = Scene::new(all());
    scene.send(120, 10, 20);
    let saved = scene.last.clone().unwrap();
    let book = Runbook::new(scene.settings.clone(), [saved.clone()], scene.now());
    let due = book.standing(scene.now());
    assert_eq!(due.len(), 1);
    let until = saved.held_until.unwrap();
    let slow = Step::Slow {
        permille: 500,
        until,
    };
    assert_eq!(due[0].steps, [slow, Step::Pause, Step::Detour]);
    assert!(until >= saved.cooldown_until.unwrap());
}

/// What was counted is gone with the process: that all seems quiet then is no
/// reason to send faster.
#[test]
fn a_restart_is_not_a_quiet_moment() {
    let mut scene = Scene::new(all());
    scene.send(120, 10, 20);
    scene.send(1_500, 10, 0);
    scene.restart();
    let restarted = scene.secs;
    scene.send(1_790, 10, 0);
    assert_eq!(scene.rates().len(), 1, "not calm for 30 min yet");
    scene.send(60, 10, 0);
    assert_eq!(scene.incident().unwrap().state, State::Recovering);
    assert_eq!(scene.rates().len(), 2);
    assert!(scene.secs - restarted >= 1_800);
    // The next step waits, since it is not quiet; a process that begins now
    // hears that first.
    scene.send(900, 200, 1);
    assert_eq!(scene.rates().len(), 2, "{:?}", scene.rates());
    scene.restart();
    scene.send(590, 200, 1);
    assert_eq!(scene.rates().len(), 2, "{:?}", scene.rates());
    scene.send(60, 200, 1);
    assert_eq!(scene.rates().len(), 2, "{:?}", scene.rates());
    scene.send(400, 200, 0);
    assert_eq!(scene.rates().len(), 3, "{:?}", scene.rates());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A process that goes on with what was written down takes no step up before
    /// its time, and none before it had the time to hear.
    #[test]
    fn a_restart_steps_up_no_sooner(weather in weather(), at in 0_usize..12) {
        let mut scene = Scene::new(all());
        let mut restarted = None;
        for (i, (minutes, refused)) in weather.iter().enumerate() {
            if i == at {
                let last = scene.last.as_ref().filter(|it| it.state != State::Closed);
                restarted = last.map(|last| (scene.secs, last.state));
                scene.restart();
            }
            scene.send(minutes * 60, 20, *refused);
        }
        let (mut rate, mut changed) = (1_000_u16, 0_u64);
        for (at, step) in &scene.done {
            let next = match *step {
                Step::Slow { permille, .. } => permille,
                Step::Lift => 1_000,
                _ => continue,
            };
            if next > rate {
                prop_assert!(next - rate <= 100 && at - changed >= 600);
                if let Some((restarted, state)) = restarted.filter(|(since, _)| since < at) {
                    let least = if state == State::Mitigating { 1_800 } else { 600 };
                    prop_assert!(at - restarted >= least, "{at}: {restarted}");
                }
            }
            if next != rate {
                (rate, changed) = (next, *at);
            }
        }
    }
}

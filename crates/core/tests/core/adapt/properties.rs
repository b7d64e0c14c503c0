//! Whatever replies come, in whatever order: never above the cap, cuts at any
//! time and once per epoch, increases only after the cooldown.

use outflow_core::adapt::{Controller, Mode, Pace, Profile, Settings, Signal};
use outflow_core::time::Mono;
use proptest::prelude::*;

use super::{MINUTE, REFUSED, SECOND, at};

#[derive(Clone, Copy, Debug)]
struct Phase {
    /// Messages in it.
    count: u16,
    /// One in so many is refused; all if 1, none if 0.
    refused: u16,
    /// The gap between messages as a multiple of what the pace allows.
    idle: u8,
    /// A pause after it.
    rest: u64,
}

fn phases() -> impl Strategy<Value = Vec<Phase>> {
    let refused = prop_oneof![Just(0), Just(1), Just(2), 3..300_u16];
    let phase = (
        1..400_u16,
        refused,
        prop_oneof![Just(1), 2..20_u8],
        0..40_u64,
    )
        .prop_map(|(count, refused, idle, rest)| Phase {
            count,
            refused,
            idle,
            rest: rest * rest * MINUTE / 8,
        });
    prop::collection::vec(phase, 1..60)
}

/// Steps a controller and holds it to the rules.
struct Watched {
    controller: Controller,
    cap: f64,
    now: u64,
}

impl Watched {
    fn step(&mut self, act: impl FnOnce(&mut Controller, u64)) -> Result<(), TestCaseError> {
        let (limit, epoch) = (self.controller.limit(), self.controller.epoch());
        let cooldown = self.controller.cooldown_until();
        act(&mut self.controller, self.now);
        let new = self.controller.limit();
        let flow = self.controller.rate(&at(self.now));
        prop_assert!(
            new.is_finite() && new > 0.0 && new <= self.cap,
            "limit {}",
            new
        );
        prop_assert!(flow <= new, "flow {} above {}", flow, new);
        if new > limit {
            prop_assert!(
                Mono(self.now) >= cooldown,
                "raised at {} before {:?}",
                self.now,
                cooldown
            );
        }
        if new != limit {
            prop_assert!(self.controller.epoch() > epoch, "a change without an epoch");
        }
        Ok(())
    }

    fn phase(&mut self, phase: Phase) -> Result<(), TestCaseError> {
        for n in 0..phase.count {
            let gap = match self.controller.pace(&at(self.now)) {
                Pace::Flow(rate) => (SECOND as f64 / rate) as u64 * u64::from(phase.idle),
                Pace::One => 0,
                Pace::Stop(until) => until.0.saturating_sub(self.now).min(5 * 3_600 * SECOND),
            };
            self.now += gap;
            self.step(|it, now| {
                it.woke(&at(now));
            })?;
            let pace = self.controller.pace(&at(self.now));
            if matches!(pace, Pace::Stop(_)) {
                continue;
            }
            let sent = self.now;
            self.step(|it, now| it.sent(&at(now)))?;
            if pace == Pace::One {
                let next = self.controller.pace(&at(self.now));
                prop_assert!(
                    matches!(next, Pace::Stop(_)),
                    "two in flight in a block: {:?}",
                    next
                );
            }
            self.now += SECOND / 10;
            let refused = phase.refused > 0 && n % phase.refused == 0;
            let signal = if refused { REFUSED } else { Signal::Passed };
            self.step(|it, now| {
                it.replied(&at(now), Mono(sent), signal);
            })?;
        }
        self.now += phase.rest;
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_above_the_cap_and_no_increase_before_its_time(
        phases in phases(),
        start in 0.01..300.0_f64,
        above in 1.0..50.0_f64,
        incident in any::<bool>(),
    ) {
        let profile = if incident { Profile::Incident } else { Profile::Seek };
        let cap = start * above;
        let controller = Controller::new(&at(0), Settings::new(start, cap, profile));
        let mut watched = Watched { controller, cap, now: 0 };
        for phase in phases {
            watched.phase(phase)?;
        }
    }

    /// What was sent before a cut says nothing about the rate after it.
    #[test]
    fn one_cut_per_epoch(late in 1..500_u32, start in 1.0..200.0_f64) {
        let mut controller = Controller::new(&at(0), Settings::new(start, start, Profile::Seek));
        let mut now = SECOND;
        while controller.epoch() == 0 {
            controller.replied(&at(now), Mono(now - 1), REFUSED);
            now += SECOND / 100;
        }
        let (epoch, limit, mode) = (controller.epoch(), controller.limit(), controller.mode());
        for _ in 0..late {
            controller.replied(&at(now), Mono(SECOND / 2), REFUSED);
            now += 1;
        }
        prop_assert_eq!(controller.epoch(), epoch);
        prop_assert_eq!(controller.limit(), limit);
        prop_assert_eq!(controller.mode(), mode);
        prop_assert!(matches!(mode, Mode::Pause | Mode::Block | Mode::Prove));
    }
}

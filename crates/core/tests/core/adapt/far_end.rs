//! A small far end and a loop around it, to see a controller from reply to
//! reply. The simulator has the real ones.

use std::collections::VecDeque;

use outflow_core::adapt::{Controller, Mode, Pace, Signal};
use outflow_core::time::Mono;

use super::{HOUR, REFUSED, SECOND, at};

const LATENCY: u64 = SECOND / 5;

/// Allows `rate` messages a second with a burst of two seconds' worth. Whoever
/// exceeds that is blocked for `block`.
pub struct FarEnd {
    pub rate: f64,
    pub block: u64,
    level: f64,
    level_at: u64,
    blocked_until: u64,
}

impl FarEnd {
    pub fn new(rate: f64, block: u64) -> Self {
        Self {
            rate,
            block,
            level: 2.0 * rate,
            level_at: 0,
            blocked_until: 0,
        }
    }

    pub fn is_blocking(&self, now: u64) -> bool {
        now < self.blocked_until
    }

    pub fn judge(&mut self, now: u64) -> Signal {
        if self.is_blocking(now) {
            return REFUSED;
        }
        let accrued = (now - self.level_at) as f64 / SECOND as f64 * self.rate;
        self.level = (self.level + accrued).min(2.0 * self.rate);
        self.level_at = now;
        if self.level >= 1.0 {
            self.level -= 1.0;
            return Signal::Passed;
        }
        self.blocked_until = now + self.block;
        REFUSED
    }
}

/// What happened at one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub now: u64,
    pub mode: Mode,
    pub epoch: u32,
    pub limit: u64,
    pub in_flight: usize,
    pub cooldown_until: u64,
}

/// Sends as fast as the controller allows, from `from` to `until`. Before each
/// step `meddle` may replace the controller.
pub fn drive(
    controller: &mut Controller,
    far_end: &mut FarEnd,
    from: u64,
    until: u64,
    mut meddle: impl FnMut(u64, &mut Controller),
) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut in_flight: VecDeque<(u64, Signal)> = VecDeque::new();
    let mut now = from;
    let mut last = None;
    while now < until {
        meddle(now, controller);
        let pace = controller.pace(&at(now));
        let send_at = match pace {
            Pace::Stop(until) => until.0.max(now + 1),
            Pace::One => now,
            Pace::Flow(rate) => {
                let gap = (SECOND as f64 / rate) as u64;
                last.map_or(now, |last: u64| (last + gap).max(now))
            }
        };
        let reply_at = in_flight
            .front()
            .map_or(u64::MAX, |(sent, _)| sent + LATENCY);
        if reply_at <= send_at {
            now = reply_at;
            let (sent, signal) = in_flight.pop_front().unwrap();
            controller.replied(&at(now), Mono(sent), signal);
        } else if let Some(wake) = controller
            .next_wake()
            .filter(|wake| wake.0 > now && wake.0 < send_at)
        {
            now = wake.0;
            controller.woke(&at(now));
        } else {
            now = send_at;
            if now >= until || matches!(pace, Pace::Stop(_)) {
                continue;
            }
            controller.sent(&at(now));
            in_flight.push_back((now, far_end.judge(now)));
            last = Some(now);
        }
        steps.push(Step {
            now,
            mode: controller.mode(),
            epoch: controller.epoch(),
            limit: controller.limit().to_bits(),
            in_flight: in_flight.len(),
            cooldown_until: controller.cooldown_until().0,
        });
    }
    steps
}

#[test]
fn it_finds_the_limit_of_a_small_far_end() {
    for start in [0.2, 60.0] {
        let mut controller = super::seek(start, 600.0);
        let mut far_end = FarEnd::new(2.0, 0);
        drive(&mut controller, &mut far_end, 0, 4 * HOUR, |_, _| {});
        let found = controller.limit();
        assert!((1.85..=2.1).contains(&found), "from {start}: {found}");
    }
}

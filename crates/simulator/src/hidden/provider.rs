//! A provider at work: it answers and never says why in numbers.

use outflow_core::adapt::Cause;
use outflow_core::time::{NANOS_PER_SECOND, Nanos, Wall};

use super::spec::{BlockSpec, ProviderSpec, WindowSpec};
use super::standing::Standing;
use crate::network::quota::QuotaPeriod;
use crate::random::Random;

/// What a provider answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It took the message.
    Taken,
    /// It put off a stranger.
    Greylisted,
    /// It refused, with this code.
    Refused(Cause, u16),
}

/// One provider, towards one sender.
#[derive(Clone, Debug)]
pub struct Provider {
    spec: ProviderSpec,
    full: f64,
    wall_at_zero: Wall,
    random: Random,
    level: f64,
    level_at: Nanos,
    /// The shape of the day, looked up once a second.
    shape: f64,
    shape_until: Nanos,
    standing: Option<Standing>,
    block: Block,
    window: i64,
    window_end: Nanos,
    used: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    length: Nanos,
    from: Nanos,
    until: Nanos,
}

impl Provider {
    /// A provider with this full rate, in messages a second.
    pub fn new(spec: ProviderSpec, full: f64, wall_at_zero: Wall, random: Random) -> Self {
        let level = spec
            .bucket
            .map_or(0.0, |bucket| capacity(bucket.burst.0, full));
        Self {
            standing: spec.standing.map(Standing::new),
            spec,
            full,
            wall_at_zero,
            random,
            level,
            level_at: Nanos::ZERO,
            shape: 1.0,
            shape_until: Nanos::ZERO,
            block: Block::default(),
            window: i64::MIN,
            window_end: Nanos::ZERO,
            used: 0,
        }
    }

    /// A message arrives; `known` if it was greylisted before.
    pub fn judge(&mut self, now: Nanos, known: bool) -> Answer {
        let answer = self.decide(now, known);
        if let Some(standing) = &mut self.standing {
            standing.saw(answer == Answer::Taken);
        }
        answer
    }

    fn decide(&mut self, now: Nanos, known: bool) -> Answer {
        if let Some(spec) = self.spec.block
            && now < self.block.until
        {
            if spec.pushed && now.minus(self.block.from) > spec.spared.0 {
                self.block.start(now, &spec);
            }
            return Answer::Refused(Cause::Rate, 421);
        }
        if let Some(window) = self.spec.window
            && self.used_up(now, window)
        {
            return Answer::Refused(Cause::Rate, 452);
        }
        if !self.fits(now) {
            if let Some(spec) = self.spec.block {
                self.block.start(now, &spec);
            }
            let cause = if self.standing.is_some() {
                Cause::Reputation
            } else {
                Cause::Rate
            };
            return Answer::Refused(cause, 421);
        }
        if self.random.chance(self.spec.noise.0) {
            return Answer::Refused(Cause::Rate, 451);
        }
        if self.spec.greylist.is_some() && !known {
            return Answer::Greylisted;
        }
        self.used += 1;
        Answer::Taken
    }

    /// What the bucket allows at `now`, in messages a second.
    pub fn allowed(&mut self, now: Nanos) -> f64 {
        if now >= self.shape_until {
            self.shape = self.spec.shape.factor(self.wall_at_zero + now);
            self.shape_until = now + Nanos::from_secs(1);
        }
        let full = self.full * self.shape;
        let standing = self.standing.as_mut();
        full * standing.map_or(1.0, |standing| standing.factor(now, full))
    }

    fn fits(&mut self, now: Nanos) -> bool {
        let Some(bucket) = self.spec.bucket else {
            return true;
        };
        let rate = self.allowed(now);
        let accrued = now.minus(self.level_at).as_secs_f64() * rate;
        self.level = (self.level + accrued).min(capacity(bucket.burst.0, rate));
        self.level_at = now;
        let fits = self.level + 1e-6 >= 1.0;
        if fits {
            self.level -= 1.0;
        }
        fits
    }

    fn used_up(&mut self, now: Nanos, window: WindowSpec) -> bool {
        if now >= self.window_end {
            let wall = self.wall_at_zero + now;
            let (number, length) = window_of(wall, window);
            if number != self.window {
                self.window = number;
                self.used = 0;
            }
            let end = (number + 1) * length + offset(window);
            self.window_end = now + Wall(end).since(wall);
        }
        self.used >= worth(window, self.full)
    }
}

impl Block {
    fn start(&mut self, now: Nanos, spec: &BlockSpec) {
        let forgiven = now.minus(self.until) >= spec.forgives.0;
        self.length = if self.length == Nanos::ZERO || forgiven {
            spec.first.0
        } else {
            self.length
                .times(u64::from(spec.factor))
                .min(spec.longest.0)
        };
        self.from = now;
        self.until = now + self.length;
    }
}

/// How much a bucket saves up at this rate.
pub fn capacity(burst: Nanos, rate: f64) -> f64 {
    (burst.as_secs_f64() * rate).max(1.0)
}

/// How many a window holds.
pub fn worth(window: WindowSpec, full: f64) -> u64 {
    (window.worth.0.as_secs_f64() * full) as u64
}

fn offset(window: WindowSpec) -> i64 {
    i64::from(window.midnight_utc) * 3_600 * NANOS_PER_SECOND as i64
}

/// The number and length of the window that `wall` lies in.
pub fn window_of(wall: Wall, window: WindowSpec) -> (i64, i64) {
    let hours = match window.per {
        QuotaPeriod::Hour => 1,
        QuotaPeriod::Day => 24,
    };
    let length = hours * 3_600 * NANOS_PER_SECOND as i64;
    ((wall.0 - offset(window)).div_euclid(length), length)
}

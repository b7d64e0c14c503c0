//! How a rate comes back when a mitigation is over.
//!
//! A rate that snaps back to what it was triggers the next block. So it comes
//! back in steps: a part of the base each time, the first when the cooldown
//! ends. Where it stands depends on nothing but the time, so a restart changes
//! nothing.

use super::policy::RateOrShare;
use crate::limit::spec::Rate;
use crate::time::{Nanos, Wall};

/// How large steps are, and how far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Each step adds so many thousandths of the base.
    pub step_permille: u16,
    /// The time between two steps.
    pub every: Nanos,
}

/// A tenth of the base each 10 minutes.
impl Default for Ramp {
    fn default() -> Self {
        Self {
            step_permille: 100,
            every: Nanos::from_secs(600),
        }
    }
}

/// Where a mitigation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It holds as it was written.
    Holds,
    /// It is being taken back.
    Ramping(Ramping),
    /// The base holds again.
    Over,
}

/// A mitigation that is being taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramping {
    /// Steps taken, from 1.
    pub step: u32,
    /// The rate in force.
    pub rate: RateOrShare,
    /// When the next step comes.
    pub next_at: Wall,
    /// The rate from then on; none if the base holds again then.
    pub next: Option<RateOrShare>,
    /// When the base holds again.
    pub over_at: Wall,
}

impl Ramp {
    /// Where a mitigation stands that was written to hold `until` a time.
    ///
    /// Without a rate there is nothing to ramp. Without a base the mitigated
    /// rate counts as half of what it was. A share and a rate cannot be
    /// compared: what was written holds for as long as a whole ramp takes.
    pub fn at(
        &self,
        base: Option<RateOrShare>,
        mitigated: Option<RateOrShare>,
        until: Option<Wall>,
        now: Wall,
    ) -> Phase {
        let Some(until) = until.filter(|until| *until <= now) else {
            return Phase::Holds;
        };
        let Some(from) = mitigated else {
            return Phase::Over;
        };
        let way = Way::between(base, from);
        let every = self.every.0.max(1);
        let taken = u32::try_from(now.since(until).0 / every).unwrap_or(u32::MAX);
        let step = taken.saturating_add(1);
        let last = self.last(way);
        if step >= last {
            return Phase::Over;
        }
        let at = |step: u32| until + self.every.times(u64::from(step).saturating_sub(1));
        let next = step.saturating_add(1);
        Phase::Ramping(Ramping {
            step,
            rate: way.after(step, self.step_permille),
            next_at: at(next),
            next: (next < last).then(|| way.after(next, self.step_permille)),
            over_at: at(last),
        })
    }

    /// The step with which the base holds again.
    fn last(&self, way: Way) -> u32 {
        let whole = 1_000_u32.div_ceil(u32::from(self.step_permille.max(1)));
        let arrives = |step: &u32| way.arrives(*step, self.step_permille);
        (1..whole).find(arrives).unwrap_or(whole)
    }
}

/// From what to what.
#[derive(Clone, Copy)]
enum Way {
    Rates { from: Rate, to: Rate },
    Shares { from: u16, to: u16 },
    Apart { from: RateOrShare },
}

impl Way {
    fn between(base: Option<RateOrShare>, from: RateOrShare) -> Self {
        match (base, from) {
            (Some(RateOrShare::Rate(to)), RateOrShare::Rate(from)) => Self::Rates { from, to },
            (None, RateOrShare::Rate(from)) => Self::Rates {
                from,
                to: from.plus(from),
            },
            (Some(RateOrShare::Share { permille: to }), RateOrShare::Share { permille: from }) => {
                Self::Shares { from, to }
            }
            (None, RateOrShare::Share { permille: from }) => Self::Shares {
                from,
                to: from.saturating_mul(2).min(1_000),
            },
            _ => Self::Apart { from },
        }
    }

    fn after(self, step: u32, permille: u16) -> RateOrShare {
        let part = u32::from(permille).saturating_mul(step).min(1_000);
        let part = u16::try_from(part).unwrap_or(1_000);
        match self {
            Self::Rates { from, to } => RateOrShare::Rate(from.plus(to.share(part)).slower(to)),
            Self::Shares { from, to } => {
                let more = u32::from(to) * u32::from(part) / 1_000;
                let more = u16::try_from(more).unwrap_or(u16::MAX);
                RateOrShare::Share {
                    permille: from.saturating_add(more).min(to),
                }
            }
            Self::Apart { from } => from,
        }
    }

    fn arrives(self, step: u32, permille: u16) -> bool {
        match (self, self.after(step, permille)) {
            (Self::Rates { to, .. }, RateOrShare::Rate(rate)) => to.slower(rate) == to,
            (Self::Shares { to, .. }, RateOrShare::Share { permille }) => permille >= to,
            _ => false,
        }
    }
}

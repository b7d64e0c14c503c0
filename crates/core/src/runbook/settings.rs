//! What the runbook watches, and what it does about it.

use std::collections::BTreeSet;

use crate::policy::ramp::Ramp;
use crate::tally::{Counter, Finding, Judged, Rule, Window};
use crate::time::Nanos;

/// What to do while a rule speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Slow the destination down.
    pub slow: bool,
    /// Pause the classes that can wait.
    pub pause: bool,
    /// Send a share of critical traffic another way.
    pub detour: bool,
}

impl Response {
    /// All of it.
    pub const ACT: Self = Self {
        slow: true,
        pause: true,
        detour: true,
    };
    /// Slow down, and no more.
    pub const SLOW: Self = Self {
        slow: true,
        pause: false,
        detour: false,
    };
    /// Pause what can wait, and no more.
    pub const PAUSE: Self = Self {
        slow: false,
        pause: true,
        detour: false,
    };

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            slow: self.slow || other.slow,
            pause: self.pause || other.pause,
            detour: self.detour || other.detour,
        }
    }
}

/// A rule, when it is quiet again, and what to do while it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// When it speaks.
    pub rule: Rule,
    /// It is quiet once the share is not above this, in millionths, over a
    /// window shorter than the rule's. Lower than where it speaks, so that it
    /// does not change its mind all the time.
    pub calm: u32,
    /// What to do.
    pub response: Response,
}

/// One refusal says nothing of the many.
const NOISE_LEAST: u64 = 2;
const MILLION: u128 = 1_000_000;

impl Watch {
    /// What operators of mail agree on.
    pub fn usual() -> Vec<Self> {
        let watch = |rule: &Rule| {
            let (calm, response) = match rule.part {
                Counter::Complained => (1_000, Response::ACT),
                Counter::Reply429 => (5_000, Response::ACT),
                Counter::Bounced => (10_000, Response::ACT),
                Counter::Opened => (0, Response::PAUSE),
                _ => (25_000, Response::SLOW),
            };
            Self {
                rule: *rule,
                calm,
                response,
            }
        };
        Rule::USUAL.iter().map(watch).collect()
    }

    /// Over how long it must be quiet: what is long past is not held against
    /// anybody.
    pub const fn recent(&self) -> Window {
        match self.rule.window {
            Window::Minute | Window::FiveMinutes => Window::Minute,
            Window::QuarterHour => Window::FiveMinutes,
            Window::Hour => Window::QuarterHour,
            Window::Day | Window::Week => Window::Hour,
        }
    }

    /// What there is to say, if the rule speaks and what it speaks of still
    /// goes on.
    pub fn speaks(&self, count: impl Fn(Window, Counter) -> u64) -> Option<Finding> {
        let finding = self.rule.judge_counts(&count)?;
        self.is_noisy(count).then_some(finding)
    }

    /// Whether what it speaks of goes on, be it little.
    pub fn is_noisy(&self, count: impl Fn(Window, Counter) -> u64) -> bool {
        if let Judged::BelowUsual { .. } = self.rule.judged {
            return self.rule.judge_counts(&count).is_some();
        }
        let part = count(self.recent(), self.rule.part);
        let whole = count(self.recent(), self.rule.whole);
        part >= NOISE_LEAST
            && u128::from(part) * MILLION > u128::from(self.calm) * u128::from(whole)
    }
}

/// How the runbook goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether it looks at all.
    pub enabled: bool,
    /// Whether it does anything beside telling.
    pub act: bool,
    /// What it watches.
    pub watches: Vec<Watch>,
    /// Rates are cut to so many thousandths of what they were.
    pub cut_permille: u16,
    /// No step up for so long after a cut.
    pub cooldown: Nanos,
    /// All must be quiet for so long before the first step up.
    pub calm: Nanos,
    /// How rates come back.
    pub ramp: Ramp,
    /// Whether there are classes that can wait.
    pub can_pause: bool,
    /// Whether there is another way for a share of critical traffic.
    pub can_detour: bool,
    /// Destinations that have canaries, which go before each step up.
    pub canaries: BTreeSet<String>,
    /// Canaries that have no good answer by then hold the next step.
    pub canary_within: Nanos,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            act: true,
            watches: Watch::usual(),
            cut_permille: 500,
            cooldown: Nanos::from_secs(1_800),
            calm: Nanos::from_secs(1_800),
            ramp: Ramp::default(),
            can_pause: false,
            can_detour: false,
            canaries: BTreeSet::new(),
            canary_within: Nanos::from_secs(600),
        }
    }
}

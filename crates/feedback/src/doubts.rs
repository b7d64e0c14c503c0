//! Which destinations are doubted, and until when.
//!
//! A destination is judged by what the node counted, and asking it takes time:
//! so that is done now and then, not for each bounce.

use std::collections::BTreeMap;

use outflow_core::suppression::surge::{LOOK_BACK, SurgeCounts, SurgeRule};
use outflow_core::tally::{Counter, Tallies, Window};
use outflow_core::time::{Mono, Nanos};
use outflow_ports::query::TallyView;

/// Destinations whose bounces are counted apart.
const DESTINATIONS_MAX: usize = 1_024;
/// A destination is judged so often.
const JUDGE_EVERY: Nanos = Nanos::from_secs(10);

/// What was found of a destination.
#[derive(Clone, Copy, Debug, Default)]
struct Verdict {
    /// When it may be judged again.
    again_at: Mono,
    /// Until when it is doubted, if it is.
    until: Option<Mono>,
}

/// What is known of destinations.
pub(crate) struct Doubts {
    rule: SurgeRule,
    /// Hard bounces.
    hard: Tallies<String>,
    verdicts: BTreeMap<String, Verdict>,
}

impl Doubts {
    pub fn new(rule: SurgeRule) -> Self {
        Self {
            rule,
            hard: Tallies::new(DESTINATIONS_MAX),
            verdicts: BTreeMap::new(),
        }
    }

    /// One more hard bounce.
    pub fn count(&mut self, mono: Mono, destination: &String) {
        self.hard.add(mono, destination, Counter::Bounced, 1);
    }

    /// Whether a destination is doubted.
    pub fn is_doubted(&self, mono: Mono, destination: &str) -> bool {
        let verdict = self.verdicts.get(destination);
        verdict.is_some_and(|verdict| verdict.until.is_some_and(|until| until > mono))
    }

    /// How many hard bounces there were of late, if those are enough to judge a
    /// destination and it is time to.
    pub fn suspect(&self, mono: Mono, destination: &String) -> Option<u64> {
        let tally = self.hard.get(destination)?;
        let of_late = tally.count(mono, Window::QuarterHour, Counter::Bounced);
        let verdict = self.verdicts.get(destination);
        let is_time = verdict.is_none_or(|verdict| verdict.again_at <= mono);
        (is_time && of_late >= self.rule.least).then_some(of_late)
    }

    /// Whether a destination that was counted so is doubted. If nobody knows
    /// what was sent to it, what was found before holds.
    pub fn judge(&self, mono: Mono, destination: &str, counts: Option<&SurgeCounts>) -> bool {
        let was_doubted = self.is_doubted(mono, destination);
        match counts {
            Some(counts) if was_doubted => self.rule.goes_on(counts),
            Some(counts) => self.rule.is_surge(counts),
            None => was_doubted,
        }
    }

    /// Keeps what was found. Doubt ends when there was no reason for it for so
    /// long, not when it is first found to have none.
    pub fn found(&mut self, mono: Mono, destination: &str, is_surge: bool) {
        self.verdicts
            .retain(|_, it| it.again_at > mono || it.until.is_some_and(|until| until > mono));
        let verdict = self.verdicts.entry(destination.to_owned()).or_default();
        verdict.again_at = mono + JUDGE_EVERY;
        if is_surge {
            verdict.until = Some(mono + LOOK_BACK);
        }
    }
}

/// What the node counted of a destination, and its hard bounces.
pub(crate) fn counts_of(tallies: &[TallyView], destination: &str, hard: u64) -> SurgeCounts {
    let found = tallies
        .iter()
        .find(|tally| tally.key.to_string() == destination);
    let Some(tally) = found else {
        return SurgeCounts {
            hard,
            ..SurgeCounts::default()
        };
    };
    SurgeCounts {
        hard,
        attempts: tally.count(Window::QuarterHour, Counter::Attempts),
        day_bounced: tally.count(Window::Day, Counter::Bounced),
        day_attempts: tally.count(Window::Day, Counter::Attempts),
    }
}

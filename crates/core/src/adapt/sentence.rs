//! All of it in one sentence.

use super::{At, Controller, Mode, NEVER_REFUSED, Pace, Profile};
use crate::time::{Nanos, Now};

impl Controller {
    /// Mode, rate, share of the policy, since when, how many were refused with
    /// which code, and what comes next and when.
    pub fn sentence(&self, now: &Now) -> String {
        let at = self.at(now);
        let since = Nanos(at.tick.saturating_sub(self.changed_at));
        let seen = self.seen();
        let next = self.what_next(now, at);
        if let Some(rate) = self.pin_at(at.tick) {
            return format!("pinned by an operator at {} {next}", shown(rate));
        }
        let doing = match self.mode {
            Mode::Prove => "proving",
            Mode::Trial => "trying",
            Mode::Cruise => "cruising at",
            Mode::Window => "keeping to an hourly window at",
            Mode::Pause => "paused from",
            Mode::Block => "blocked at",
        };
        let rate = self.rate;
        let share = 100.0 * rate / self.settings.cap();
        let flow = match self.pace(now) {
            Pace::Flow(flow) if flow < 0.99 * rate => {
                format!(", at {} until it has warmed up,", shown(flow))
            }
            _ => String::new(),
        };
        format!(
            "{doing} {} ({share:.1} % of {}){flow} for {since}, {seen}; {next}",
            shown(rate),
            shown(self.settings.cap()),
        )
    }

    fn seen(&self) -> String {
        let (refused, replies) = (self.judge.refused, self.judge.replies);
        let noise = match self.noise.base {
            base if base > 0.0 => format!(" ({:.1} % is noise)", 100.0 * base),
            _ => String::new(),
        };
        match (refused, self.last_code) {
            (0, _) => format!("none of {replies} refused{noise}"),
            (_, 0) => format!("{refused} of {replies} refused{noise}"),
            (_, code) => format!("{refused} of {replies} refused{noise}, last with {code}"),
        }
    }

    fn what_next(&self, now: &Now, at: At) -> String {
        let in_time = |tick: u64| Nanos(tick.saturating_sub(at.tick));
        if let Some((_, until)) = self.pinned {
            return match until {
                u64::MAX => "until it is let go".to_owned(),
                until => format!("for another {}", in_time(until)),
            };
        }
        if let Some(until) = self.block.waits(at.tick) {
            return format!("the far end said to wait another {}", in_time(until));
        }
        match (self.mode, self.pace(now)) {
            (Mode::Pause | Mode::Block, Pace::One) => {
                "the next message asks whether it is over".to_owned()
            }
            (Mode::Pause | Mode::Block, _) if self.block.probe.is_some() => {
                "one message is asking whether it is over".to_owned()
            }
            (Mode::Pause | Mode::Block, _) => {
                format!("one message asks in {}", in_time(self.block.until))
            }
            _ if self.settings.profile() == Profile::Incident => match self.incident.raise_at {
                u64::MAX => "nothing is planned".to_owned(),
                raise_at => format!(
                    "{} more in {}",
                    shown(0.1 * self.settings.cap()),
                    in_time(raise_at)
                ),
            },
            (Mode::Prove | Mode::Trial, _) => {
                let bad = match self.bad {
                    NEVER_REFUSED => String::new(),
                    bad => format!(" ({} was refused)", shown(bad)),
                };
                format!("proven once it was used and borne for long enough{bad}")
            }
            _ if self.trial_at() == u64::MAX => "nothing higher is allowed".to_owned(),
            _ => {
                let trial = self.trial_at().max(at.tick);
                format!(
                    "tries {} in {} if there is demand",
                    shown(self.next_rate(trial).min(self.settings.cap())),
                    in_time(trial)
                )
            }
        }
    }
}

/// A rate as people read it.
pub fn shown(rate: f64) -> String {
    match rate {
        rate if rate <= 0.0 => "nothing".to_owned(),
        rate if rate >= 100.0 => format!("{rate:.0}/s"),
        rate if rate >= 1.0 => format!("{rate:.2}/s"),
        rate if rate >= 1.0 / 60.0 => format!("{:.2}/min", rate * 60.0),
        rate => format!("{:.2}/hour", rate * 3_600.0),
    }
}

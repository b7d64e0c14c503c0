//! Rules on shares, each over its own window and from a least volume on.

use super::counter::Counter;
use super::key::Tally;
use super::window::Window;
use crate::time::Mono;

/// When a rule speaks. Shares are in millionths, so that no rounding decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The share is above this.
    Above(u32),
    /// The share is below this part of what it is over a longer window.
    BelowUsual {
        /// The longer window.
        usual: Window,
        /// The part.
        part: u32,
    },
}

/// A rule on a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// For people.
    pub name: &'static str,
    /// So many of these ...
    pub part: Counter,
    /// ... among so many of those.
    pub whole: Counter,
    /// Over how long.
    pub window: Window,
    /// When it speaks.
    pub judged: Judged,
    /// Fewer than this many in the window say nothing.
    pub least: u64,
}

/// What a rule found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// So many ...
    pub part: u64,
    /// ... among so many.
    pub whole: u64,
}

const MILLION: u128 = 1_000_000;

impl Rule {
    /// What operators of mail agree on.
    pub const USUAL: [Self; 5] = [
        Self {
            name: "complaints",
            part: Counter::Complained,
            whole: Counter::Accepted,
            window: Window::Day,
            judged: Judged::Above(3_000),
            least: 1_000,
        },
        Self {
            name: "too fast",
            part: Counter::Reply429,
            whole: Counter::Attempts,
            window: Window::QuarterHour,
            judged: Judged::Above(10_000),
            least: 100,
        },
        Self {
            name: "deferrals",
            part: Counter::Reply4xx,
            whole: Counter::Attempts,
            window: Window::QuarterHour,
            judged: Judged::Above(50_000),
            least: 100,
        },
        Self {
            name: "hard bounces",
            part: Counter::Bounced,
            whole: Counter::Attempts,
            window: Window::Day,
            judged: Judged::Above(20_000),
            least: 200,
        },
        Self {
            name: "fewer opens",
            part: Counter::Opened,
            whole: Counter::Accepted,
            window: Window::Day,
            judged: Judged::BelowUsual {
                usual: Window::Week,
                part: 500_000,
            },
            least: 1_000,
        },
    ];

    /// What `tally` has to say about it, if the rule speaks.
    pub fn judge(&self, now: Mono, tally: &Tally) -> Option<Finding> {
        self.judge_counts(|window, counter| tally.count(now, window, counter))
    }

    /// The same of counts that were read before.
    pub fn judge_counts(&self, count: impl Fn(Window, Counter) -> u64) -> Option<Finding> {
        let part = count(self.window, self.part);
        let whole = count(self.window, self.whole);
        if whole == 0 || whole < self.least {
            return None;
        }
        let speaks = match self.judged {
            Judged::Above(share) => {
                u128::from(part) * MILLION > u128::from(share) * u128::from(whole)
            }
            Judged::BelowUsual { usual, part: of } => {
                let usual_part = count(usual, self.part);
                let usual_whole = count(usual, self.whole);
                // Without opens there is nothing to fall.
                usual_part > 0
                    && u128::from(part) * u128::from(usual_whole) * MILLION
                        < u128::from(of) * u128::from(usual_part) * u128::from(whole)
            }
        };
        speaks.then_some(Finding { part, whole })
    }
}

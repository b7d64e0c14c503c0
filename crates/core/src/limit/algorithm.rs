//! The five algorithms behind one face.
//!
//! An enum, not a trait object: a limit is looked at for every message, and
//! the set of algorithms changes less often than the code that asks them.

use super::calendar_window::{CalendarWindow, Kept, Span};
use super::concurrency::Concurrency;
use super::leaky_bucket::LeakyBucket;
use super::need::Need;
use super::saved::Memory;
use super::sliding_window::SlidingWindow;
use super::spec::{LimitSpec, Rate};
use super::token_bucket::TokenBucket;
use crate::time::{Mono, Nanos, Now, Wall};

/// When a limit will have what is needed, if nobody takes anything meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// It has it now.
    Now,
    /// At this time.
    At(Mono),
    /// When a slot is released.
    Released,
    /// When the ledger grants tokens, or a reservation is on disk.
    Granted,
    /// Not even when nothing is used: the need is above the capacity.
    Never,
}

/// How a new limit begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Nothing was used.
    Full,
    /// All of it was used just now.
    Empty,
}

/// The counter of a limit that this node owns.
#[derive(Clone, Debug)]
pub enum Algorithm {
    /// Rate and burst.
    TokenBucket(TokenBucket),
    /// Evenly spaced.
    LeakyBucket(LeakyBucket),
    /// So many in any stretch.
    SlidingWindow(SlidingWindow),
    /// So many between boundaries.
    CalendarWindow(CalendarWindow),
    /// So many in flight.
    Concurrency(Concurrency),
}

impl Algorithm {
    /// The algorithm of `spec`, full or empty. Slots are always free.
    pub fn new(spec: &LimitSpec, now: &Now, fill: Fill) -> Self {
        match spec {
            LimitSpec::TokenBucket { rate, burst } => {
                Self::TokenBucket(TokenBucket::new(*rate, *burst, now.mono, fill))
            }
            LimitSpec::LeakyBucket { rate } => {
                Self::LeakyBucket(LeakyBucket::new(*rate, now.mono, fill))
            }
            LimitSpec::SlidingWindow { count, window } => {
                Self::SlidingWindow(SlidingWindow::new(*count, *window, now.mono, fill))
            }
            LimitSpec::CalendarWindow {
                count,
                period,
                zone,
            } => Self::CalendarWindow(CalendarWindow::new(
                *count,
                *period,
                zone.clone(),
                now.wall,
                fill,
            )),
            LimitSpec::Concurrency { slots } => Self::Concurrency(Concurrency::new(*slots)),
        }
    }

    /// The algorithm of `spec` in place of another that had `used` tokens:
    /// windows count them as taken now, buckets start empty.
    fn after_another(spec: &LimitSpec, now: &Now, used: u32) -> Self {
        let fill = match spec {
            LimitSpec::TokenBucket { .. } => Fill::Empty,
            _ => Fill::Full,
        };
        let mut algorithm = Self::new(spec, now, fill);
        match spec {
            LimitSpec::LeakyBucket { .. } => algorithm.take(now, 1),
            LimitSpec::SlidingWindow { count, .. } | LimitSpec::CalendarWindow { count, .. } => {
                algorithm.take(now, used.min(*count));
            }
            LimitSpec::TokenBucket { .. } | LimitSpec::Concurrency { .. } => {}
        }
        algorithm
    }

    /// Whether `need` fits now.
    pub fn fits(&self, now: &Now, need: Need) -> bool {
        match self {
            Self::TokenBucket(bucket) => bucket.fits(now.mono, need),
            Self::LeakyBucket(bucket) => bucket.fits(now.mono, need),
            Self::SlidingWindow(window) => window.fits(now.mono, need),
            Self::CalendarWindow(window) => window.fits(now.wall, need),
            Self::Concurrency(slots) => slots.fits(need),
        }
    }

    /// When `need` will fit.
    pub fn until(&self, now: &Now, need: Need) -> Until {
        match self {
            Self::TokenBucket(bucket) => bucket.until(now.mono, need),
            Self::LeakyBucket(bucket) => bucket.until(now.mono, need),
            Self::SlidingWindow(window) => window.until(now.mono, need),
            Self::CalendarWindow(window) => window.until(now, need, Kept::default()),
            Self::Concurrency(slots) => slots.until(need),
        }
    }

    /// Takes `cost` tokens.
    pub fn take(&mut self, now: &Now, cost: u32) {
        match self {
            Self::TokenBucket(bucket) => bucket.take(now.mono, cost),
            Self::LeakyBucket(bucket) => bucket.take(now.mono, cost),
            Self::SlidingWindow(window) => window.take(now.mono, cost),
            Self::CalendarWindow(window) => window.take(now.wall, cost),
            Self::Concurrency(slots) => slots.take(cost),
        }
    }

    /// Takes tokens back that were taken at `since` and will not be used.
    pub fn give_back(&mut self, now: &Now, tokens: u32, since: Mono) {
        match self {
            Self::TokenBucket(bucket) => bucket.give_back(now.mono, tokens, since),
            Self::SlidingWindow(window) => window.give_back(now.mono, tokens, since),
            Self::CalendarWindow(window) => {
                let passed = now.mono.since(since);
                let taken_at = Wall(now.wall.0.saturating_sub_unsigned(passed.0));
                window.give_back(tokens, taken_at);
            }
            // The next one comes when the time of these is over.
            Self::LeakyBucket(_) => {}
            Self::Concurrency(slots) => slots.release(tokens),
        }
    }

    /// Gives `cost` slots back.
    pub fn release(&mut self, cost: u32) {
        if let Self::Concurrency(slots) = self {
            slots.release(cost);
        }
    }

    /// Goes on with other numbers, or as another algorithm.
    pub fn reconfigure(&mut self, now: &Now, spec: &LimitSpec) {
        match (&mut *self, spec) {
            (Self::TokenBucket(bucket), LimitSpec::TokenBucket { rate, burst }) => {
                bucket.reconfigure(now.mono, *rate, *burst);
            }
            (Self::LeakyBucket(bucket), LimitSpec::LeakyBucket { rate }) => {
                bucket.reconfigure(now.mono, *rate);
            }
            (Self::SlidingWindow(sliding), LimitSpec::SlidingWindow { count, window }) => {
                sliding.reconfigure(now.mono, *count, *window);
            }
            (
                Self::CalendarWindow(calendar),
                LimitSpec::CalendarWindow {
                    count,
                    period,
                    zone,
                },
            ) => calendar.reconfigure(now.wall, *count, *period, zone.clone()),
            (Self::Concurrency(concurrency), LimitSpec::Concurrency { slots }) => {
                concurrency.reconfigure(*slots);
            }
            (another, spec) => *self = Self::after_another(spec, now, another.used(now)),
        }
    }

    /// Tokens that are known to be used now.
    pub fn used(&self, now: &Now) -> u32 {
        match self {
            Self::TokenBucket(bucket) => bucket.used(now.mono),
            Self::LeakyBucket(bucket) => bucket.used(now.mono),
            Self::SlidingWindow(window) => window.used(now.mono),
            Self::CalendarWindow(window) => window.used(now.wall),
            Self::Concurrency(slots) => slots.held(),
        }
    }

    /// Whether a fresh one would know as much.
    pub fn is_idle(&self, now: &Now) -> bool {
        match self {
            Self::TokenBucket(bucket) => bucket.is_idle(now.mono),
            Self::LeakyBucket(bucket) => bucket.is_idle(now.mono),
            Self::SlidingWindow(window) => window.is_idle(now.mono),
            Self::CalendarWindow(window) => window.is_idle(now.wall),
            Self::Concurrency(slots) => slots.is_idle(),
        }
    }

    /// For how long what it knows can matter at most, if no more than
    /// `largest_cost` or what was promised is taken from now on.
    pub fn lasts_for(&self, now: &Now, largest_cost: u32) -> Nanos {
        match self {
            Self::TokenBucket(bucket) => bucket.fills_in(),
            Self::LeakyBucket(bucket) => {
                let owed = bucket.owed_micro(now.mono).div_ceil(1_000_000);
                bucket
                    .rate()
                    .time_for(owed.saturating_add(u64::from(largest_cost)))
            }
            Self::SlidingWindow(window) => window.window(),
            Self::CalendarWindow(window) => window.lasts_for(now.wall),
            Self::Concurrency(_) => Nanos::ZERO,
        }
    }

    /// What outlives a restart.
    pub fn save(&self, now: &Now) -> Memory {
        match self {
            Self::TokenBucket(bucket) => Memory::TokenBucket {
                level_micro: bucket.level_micro(now.mono),
                count: bucket.rate().count,
                per: bucket.rate().per.0,
            },
            Self::LeakyBucket(bucket) => Memory::LeakyBucket {
                owed_micro: bucket.owed_micro(now.mono),
                count: bucket.rate().count,
                per: bucket.rate().per.0,
            },
            Self::SlidingWindow(window) => {
                let aged = window.aged(now.mono).into_iter();
                let taken = aged.map(|(age, tokens)| (age.0, tokens)).collect();
                Memory::SlidingWindow { taken }
            }
            Self::CalendarWindow(window) => {
                let spans = window.spans().iter();
                let spans = spans.map(|span| (span.start.0, span.end.0, span.used));
                Memory::CalendarWindow {
                    spans: spans.collect(),
                }
            }
            Self::Concurrency(_) => Memory::Nothing,
        }
    }

    /// Goes on from what was saved `age` ago. `spent` tokens may have been
    /// taken since, the largest take of them `largest_cost`.
    pub fn restore(
        spec: &LimitSpec,
        memory: &Memory,
        age: Nanos,
        (spent, largest_cost): (u64, u32),
        now: &Now,
    ) -> Self {
        match (spec, memory) {
            (
                LimitSpec::TokenBucket { rate, burst },
                Memory::TokenBucket {
                    level_micro,
                    count,
                    per,
                },
            ) => {
                let from = (*level_micro, rate.slower(saved_rate(*count, *per)));
                let bucket = TokenBucket::restore(*rate, *burst, from, age, spent, now.mono);
                Self::TokenBucket(bucket)
            }
            (
                LimitSpec::LeakyBucket { rate },
                Memory::LeakyBucket {
                    owed_micro,
                    count,
                    per,
                },
            ) => {
                let from = (*owed_micro, rate.slower(saved_rate(*count, *per)));
                // Takes follow each other only when nothing is owed any more,
                // so no more than the largest is ever owed.
                let spent = spent.min(u64::from(largest_cost));
                Self::LeakyBucket(LeakyBucket::restore(*rate, from, age, spent, now.mono))
            }
            (LimitSpec::SlidingWindow { count, window }, Memory::SlidingWindow { taken }) => {
                let aged = taken
                    .iter()
                    .map(|(old, tokens)| (Nanos(*old) + age, *tokens));
                let restored = SlidingWindow::restore(*count, *window, aged, spent, now.mono);
                Self::SlidingWindow(restored)
            }
            (
                LimitSpec::CalendarWindow {
                    count,
                    period,
                    zone,
                },
                Memory::CalendarWindow { spans },
            ) => {
                let spans = spans.iter().map(|(start, end, used)| Span {
                    start: Wall(*start),
                    end: Wall(*end),
                    used: *used,
                });
                let quota = (*count, *period, zone.clone());
                Self::CalendarWindow(CalendarWindow::restore(quota, spans, spent, now.wall))
            }
            (spec, memory) => {
                let used = memory.used().saturating_add(spent);
                Self::after_another(spec, now, u32::try_from(used).unwrap_or(u32::MAX))
            }
        }
    }
}

const fn saved_rate(count: u32, per: u64) -> Rate {
    Rate {
        count,
        per: Nanos(per),
    }
}

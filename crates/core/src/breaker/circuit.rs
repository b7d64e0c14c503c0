//! Closed, open, half open with one probe.
//!
//! Many failures one after the other open it, if they are also most of what was
//! heard lately. It stays open for a while, longer each time, and is then half
//! open: exactly one message goes through, and its reply decides. Replies to
//! messages that were sent before it opened say nothing new and are not heard.

use super::settings::BreakerSettings;
use super::signal::Signal;
use super::window::Lately;
use crate::time::{Mono, Nanos};

/// The share of failures is looked at over six of these.
const SLOT: Nanos = Nanos::from_secs(2);

/// What part of a minute that is.
const PART_OF_MINUTE: u64 = 5;

/// Who was closed for this long starts with the shortest opening again.
const FORGIVEN: Nanos = Nanos::from_secs(600);

/// Whether messages go through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// They do.
    #[default]
    Closed,
    /// None does until then.
    Open {
        /// Until when.
        until: Mono,
    },
    /// One does; when it was sent, if it is under way.
    HalfOpen {
        /// When the one was sent.
        probe: Option<Mono>,
    },
}

/// What a reply did to a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It opened, until then.
    Opened {
        /// Until when.
        until: Mono,
    },
    /// The probe said nothing: another one may go.
    ProbeAgain,
    /// All is well again.
    Closed,
}

/// One breaker.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    state: State,
    /// Failures since something last went well.
    in_a_row: u32,
    lately: Lately,
    /// How often it opened without having been closed for long.
    opened: u32,
    closed_at: Mono,
}

impl Breaker {
    /// One for somebody of whom nothing bad was known until now, who sent so
    /// many in the last minute: a hiccup among thousands does not open it.
    pub fn new(now: Mono, sent_in_minute: u64) -> Self {
        let mut breaker = Self::default();
        let fine = sent_in_minute / PART_OF_MINUTE;
        breaker.lately.add_fine(now, SLOT, fine);
        breaker
    }

    /// One that was open until a time when the process ended: after it one
    /// message goes through, as if nothing had happened.
    pub fn opened_until(until: Mono) -> Self {
        Self {
            state: State::Open { until },
            opened: 1,
            ..Self::default()
        }
    }

    /// Whether messages go through.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Failures since something last went well.
    pub const fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    /// Whether a message may go now.
    pub const fn may_send(&self) -> bool {
        matches!(self.state, State::Closed | State::HalfOpen { probe: None })
    }

    /// Whether a fresh one would know as much.
    pub fn is_idle(&self, now: Mono) -> bool {
        self.state == State::Closed
            && self.in_a_row == 0
            && (self.opened == 0 || now.since(self.closed_at) >= FORGIVEN)
    }

    /// Its time may be over; whether it is half open now.
    pub fn wake(&mut self, now: Mono) -> bool {
        if let State::Open { until } = self.state
            && now >= until
        {
            self.state = State::HalfOpen { probe: None };
        }
        matches!(self.state, State::HalfOpen { .. })
    }

    /// A message goes through; whether it is the probe, after which none may.
    pub fn sent(&mut self, now: Mono) -> bool {
        if self.state != (State::HalfOpen { probe: None }) {
            return false;
        }
        self.state = State::HalfOpen { probe: Some(now) };
        true
    }

    /// A message that was sent at `sent_at` was answered. `may_open` says
    /// whether failures may open it.
    pub fn replied(
        &mut self,
        settings: &BreakerSettings,
        now: Mono,
        sent_at: Mono,
        signal: Signal,
        may_open: bool,
    ) -> Option<Change> {
        match self.state {
            State::Open { .. } => None,
            State::HalfOpen { probe } => {
                if probe != Some(sent_at) {
                    return None;
                }
                Some(match signal {
                    Signal::Fine => self.close(now),
                    Signal::Failed => self.open(settings, now),
                    Signal::Silent => {
                        self.state = State::HalfOpen { probe: None };
                        Change::ProbeAgain
                    }
                })
            }
            State::Closed => {
                // What was sent before it opened is no news.
                if signal == Signal::Silent || (self.opened > 0 && sent_at < self.closed_at) {
                    return None;
                }
                let failed = signal == Signal::Failed;
                self.lately.add(now, SLOT, failed);
                if !failed {
                    self.in_a_row = 0;
                    return None;
                }
                self.in_a_row = self.in_a_row.saturating_add(1);
                let share = self.lately.share(now, SLOT);
                let opens = may_open
                    && self.in_a_row >= settings.failures.max(1)
                    && share.is_at_least(settings.share_permille);
                opens.then(|| self.open(settings, now))
            }
        }
    }

    fn open(&mut self, settings: &BreakerSettings, now: Mono) -> Change {
        let was_closed = self.state == State::Closed;
        if was_closed && now.since(self.closed_at) >= FORGIVEN {
            self.opened = 0;
        }
        let factor = 1_u64.checked_shl(self.opened).unwrap_or(u64::MAX);
        let lasts = settings.open_for.times(factor).min(settings.open_max);
        let until = now + lasts.max(settings.open_for);
        self.opened = self.opened.saturating_add(1);
        self.in_a_row = 0;
        self.lately = Lately::default();
        self.state = State::Open { until };
        Change::Opened { until }
    }

    fn close(&mut self, now: Mono) -> Change {
        self.state = State::Closed;
        self.closed_at = now;
        self.in_a_row = 0;
        self.lately = Lately::default();
        Change::Closed
    }
}

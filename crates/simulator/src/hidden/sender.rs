//! The rules to compare.

use outflow_core::adapt::connections::Connections;
use outflow_core::adapt::{Cause, Controller, Pace, Profile, Settings, Signal};
use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, NANOS_PER_SECOND, Nanos, Now, Wall};

/// More connections than this nobody opens.
const CONNECTIONS_MAX: u32 = 10_000;
const HALVED_FOR: Nanos = Nanos::from_secs(90 * 60);

/// A rule for the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Always the same.
    Fixed,
    /// Always the same; each message comes back later and later.
    Backoff,
    /// Halved for 90 minutes after a refusal, then as before.
    Halve,
    /// The plain rule for incidents.
    Incident,
    /// The controller.
    Seek,
    /// The whole engine, which reads what is said in words.
    Engine,
}

impl Rule {
    /// All that are only a rule.
    pub const ALL: [Self; 5] = [
        Self::Fixed,
        Self::Backoff,
        Self::Halve,
        Self::Incident,
        Self::Seek,
    ];

    /// For the table.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Fixed => "fixed rate",
            Self::Backoff => "backoff per message",
            Self::Halve => "halve for 90 min",
            Self::Incident => "halve, +10 % per 10 min",
            Self::Seek => "controller",
            Self::Engine => "engine",
        }
    }

    /// For programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Backoff => "backoff",
            Self::Halve => "halve_90_min",
            Self::Incident => "incident",
            Self::Seek => "controller",
            Self::Engine => "engine",
        }
    }
}

/// A sender that follows a rule.
#[derive(Clone, Debug)]
pub struct Sender {
    rule: Rule,
    start: f64,
    halved_at: Option<Nanos>,
    controller: Controller,
    connections: Connections,
    wall_at_zero: Wall,
}

impl Sender {
    /// Starts at `start` messages a second; the controller may go up to `cap`.
    pub fn new(rule: Rule, start: f64, cap: f64, wall_at_zero: Wall) -> Self {
        let (cap, profile) = match rule {
            Rule::Seek => (cap, Profile::Seek),
            _ => (start, Profile::Incident),
        };
        let settings = Settings::new(start, cap, profile);
        let zero = moment(Nanos::ZERO, wall_at_zero);
        Self {
            rule,
            start,
            halved_at: None,
            controller: Controller::new(&zero, settings),
            connections: Connections::new(CONNECTIONS_MAX),
            wall_at_zero,
        }
    }

    /// The controller, for those that ask what it is doing.
    pub const fn controller(&self) -> &Controller {
        &self.controller
    }

    /// What may be sent at `now`.
    pub fn pace(&self, now: Nanos) -> Pace {
        match self.rule {
            Rule::Fixed | Rule::Backoff => Pace::Flow(self.start),
            Rule::Halve => {
                let halved = self.halved_at.is_some_and(|at| now.minus(at) < HALVED_FOR);
                Pace::Flow(if halved { 0.5 * self.start } else { self.start })
            }
            Rule::Incident | Rule::Seek | Rule::Engine => self.controller.pace(&self.now(now)),
        }
    }

    /// A message was sent.
    pub fn sent(&mut self, now: Nanos) {
        if matches!(self.rule, Rule::Incident | Rule::Seek | Rule::Engine) {
            let now = self.now(now);
            self.controller.sent(&now);
        }
    }

    /// A reply arrived.
    pub fn replied(&mut self, now: Nanos, sent_at: Nanos, signal: Signal) {
        let refused = matches!(signal, Signal::Refused { .. } | Signal::Crowded);
        match self.rule {
            Rule::Fixed | Rule::Backoff => {}
            Rule::Halve => {
                let over = self.halved_at.is_none_or(|at| now.minus(at) >= HALVED_FOR);
                if refused && over {
                    self.halved_at = Some(now);
                }
            }
            Rule::Incident => {
                // It does not tell one refusal from another.
                let signal = match signal {
                    Signal::Crowded => Signal::Refused {
                        cause: Cause::Rate,
                        code: 421,
                    },
                    other => other,
                };
                let now = self.now(now);
                self.controller.replied(&now, Mono(sent_at.0), signal);
            }
            Rule::Seek | Rule::Engine => {
                let now = self.now(now);
                self.controller.replied(&now, Mono(sent_at.0), signal);
            }
        }
    }

    /// When it wants to be asked again without a reply.
    pub fn next_wake(&self) -> Option<Nanos> {
        match self.rule {
            Rule::Fixed | Rule::Backoff | Rule::Halve => None,
            Rule::Incident | Rule::Seek | Rule::Engine => {
                self.controller.next_wake().map(|at| Nanos(at.0))
            }
        }
    }

    /// It was asked.
    pub fn woke(&mut self, now: Nanos) {
        let now = self.now(now);
        self.controller.woke(&now);
    }

    /// After how long a message that was refused `times` times comes back.
    pub fn retry_after(&self, times: u8) -> Nanos {
        let first = Nanos::from_secs(300);
        match self.rule {
            Rule::Backoff => first
                .times(1 << u64::from(times.min(10)))
                .min(Nanos::from_secs(4 * 3_600)),
            _ => first,
        }
    }

    /// How many connections it opens.
    pub fn connections_max(&self, now: Nanos) -> u32 {
        self.connections.cap(Mono(now.0))
    }

    /// How many messages it sends on one.
    pub fn messages_max(&self) -> u32 {
        self.connections.messages()
    }

    /// Another connection was refused.
    pub fn connection_refused(&mut self, now: Nanos, open: u32) {
        if self.rule == Rule::Seek {
            self.connections.refused(Mono(now.0), Mono(now.0), open);
        }
    }

    /// Another connection was opened.
    pub fn connection_opened(&mut self, now: Nanos, open: u32) {
        self.connections.opened(Mono(now.0), open);
    }

    /// A connection bore no more messages.
    pub fn connection_full(&mut self, now: Nanos, carried: u32) {
        if self.rule == Rule::Seek {
            self.connections.full(Mono(now.0), carried);
        }
    }

    fn now(&self, now: Nanos) -> Now {
        moment(now, self.wall_at_zero)
    }
}

/// Both clocks, `now` after the beginning.
pub fn moment(now: Nanos, wall_at_zero: Wall) -> Now {
    Now {
        mono: Mono(now.0),
        wall: wall_at_zero + now,
        entropy: Entropy(0),
    }
}

/// The time between two messages at `rate`.
pub fn gap(rate: f64) -> Nanos {
    Nanos((NANOS_PER_SECOND as f64 / rate) as u64)
}

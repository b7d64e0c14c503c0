//! One run: a sender, a provider, a day.

use std::collections::VecDeque;

use outflow_core::adapt::{Pace, Signal};
use outflow_core::time::{NANOS_PER_SECOND, Nanos, Wall};

use super::links::{Link, Links};
use super::oracle;
use super::provider::{Answer, Provider};
use super::retries::{Retries, Tried};
use super::sender::{Rule, Sender, gap};
use super::spec::ProviderSpec;
use super::whole;
use crate::random::Random;

/// From when on a sender is expected to have found the limit.
pub const CONVERGED_AFTER: Nanos = Nanos::from_secs(4 * 3_600);
/// The controller may go up to this many times the full rate.
const CAP: f64 = 100.0;
/// 2026-03-02 06:17 UTC: not at the turn of an hour, and midnight falls into
/// the part of the run that counts.
pub const STARTS_AT: Wall = Wall(1_772_432_220 * NANOS_PER_SECOND as i64);

/// What is run.
#[derive(Clone, Debug)]
pub struct Case {
    /// The provider.
    pub provider: ProviderSpec,
    /// Its full rate, in messages a second.
    pub full: f64,
    /// Where the sender starts, as a multiple of that.
    pub start: f64,
    /// By which rule it sends.
    pub rule: Rule,
    /// How long.
    pub length: Nanos,
    /// What the wall clock reads when it begins.
    pub starts_at: Wall,
    /// Which chance.
    pub seed: u64,
}

impl Case {
    /// From sending to the reply. Where connections are counted it follows from
    /// them: together they carry the full rate.
    pub(super) fn latency(&self) -> Nanos {
        match self.provider.connections {
            Some(spec) => {
                let secs = f64::from(spec.max) / self.full;
                Nanos((secs * NANOS_PER_SECOND as f64) as u64)
            }
            None => self.provider.latency.0,
        }
    }
}

/// What came out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Delivered as a share of what the all-knowing sender delivers.
    pub share: f64,
    /// The same from hour 4 on.
    pub share_converged: f64,
    /// Refused for the rate, as a share of the attempts.
    pub deferred: f64,
    /// The same from hour 4 on.
    pub deferred_converged: f64,
    /// Attempts in all.
    pub attempts: u64,
    /// How often the controller changed the rate.
    pub epochs: u32,
}

/// What is counted on the way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) attempts: u64,
    pub(super) delivered: u64,
    pub(super) refused: u64,
}

struct InFlight {
    sent_at: Nanos,
    answer: Answer,
    tried: Tried,
    /// Messages that its connection has carried, this one included.
    carried: u32,
}

struct Run<'a> {
    case: &'a Case,
    provider: Provider,
    sender: Sender,
    retries: Retries,
    links: Links,
    in_flight: VecDeque<InFlight>,
    latency: Nanos,
    all: Counts,
    converged: Counts,
}

/// Runs `case`.
pub fn run(case: &Case) -> Figures {
    watch(case, |_, _| {})
}

/// Runs `case`, and shows the sender to `look` once a minute.
pub fn watch(case: &Case, mut look: impl FnMut(Nanos, &Sender)) -> Figures {
    let cap = CAP.max(case.start) * case.full;
    if case.rule == Rule::Engine {
        return whole::run(case, cap).unwrap_or_default();
    }
    let random = Random::named(case.seed, "provider", 0);
    let start = case.start * case.full;
    let mut run = Run {
        case,
        provider: Provider::new(case.provider.clone(), case.full, case.starts_at, random),
        sender: Sender::new(case.rule, start, cap, case.starts_at),
        retries: Retries::default(),
        links: Links::default(),
        in_flight: VecDeque::new(),
        latency: case.latency(),
        all: Counts::default(),
        converged: Counts::default(),
    };
    run.go(&mut look);
    let epochs = run.sender.controller().epoch();
    figures(case, run.all, run.converged, epochs)
}

impl Run<'_> {
    fn go(&mut self, look: &mut impl FnMut(Nanos, &Sender)) {
        let end = self.case.length;
        let mut now = Nanos::ZERO;
        let mut last_sent: Option<Nanos> = None;
        let mut look_at = Nanos::ZERO;
        let mut busy = false;
        while now < end {
            if now >= look_at {
                look(now, &self.sender);
                look_at = look_at + Nanos::from_secs(60);
            }
            let pace = self.sender.pace(now);
            let send_at = match pace {
                _ if busy => Nanos::MAX,
                Pace::Stop(until) => Nanos(until.0).max(now + Nanos(1)),
                Pace::One => now,
                Pace::Flow(rate) => last_sent.map_or(now, |last| (last + gap(rate)).max(now)),
            };
            let reply_at = self
                .in_flight
                .front()
                .map_or(Nanos::MAX, |first| first.sent_at + self.latency);
            if reply_at <= send_at {
                now = reply_at;
                busy = false;
                self.reply(now);
                continue;
            }
            let wake = self.sender.next_wake().filter(|wake| *wake > now);
            if let Some(wake) = wake
                && wake < send_at
            {
                now = wake;
                self.sender.woke(now);
                continue;
            }
            now = send_at;
            if now >= end || matches!(pace, Pace::Stop(_)) {
                continue;
            }
            if self.send(now) {
                last_sent = Some(now);
            } else {
                busy = true;
            }
        }
    }

    /// Sends a message, unless it must wait for a connection.
    fn send(&mut self, now: Nanos) -> bool {
        let mut carried = 0;
        if let Some(spec) = self.case.provider.connections {
            match self.links.take(now, &spec, &mut self.sender) {
                Link::Ready(before) => carried = before + 1,
                Link::Busy => return false,
                Link::Refused => {
                    self.count(now, |counts| {
                        counts.attempts += 1;
                        counts.refused += 1;
                    });
                    self.sender.sent(now);
                    self.sender.replied(now, now, Signal::Crowded);
                    return true;
                }
            }
        }
        let tried = match self.case.provider.greylist {
            Some(_) => self.retries.pop(now).unwrap_or_default(),
            None => Tried::default(),
        };
        self.sender.sent(now);
        self.count(now, |counts| counts.attempts += 1);
        let answer = self.provider.judge(now, tried.known);
        self.in_flight.push_back(InFlight {
            sent_at: now,
            answer,
            tried,
            carried,
        });
        true
    }

    fn reply(&mut self, now: Nanos) {
        let Some(reply) = self.in_flight.pop_front() else {
            return;
        };
        if let Some(spec) = self.case.provider.connections {
            self.links.give_back(reply.carried, &spec);
            if reply.carried > spec.messages {
                self.sender.connection_full(now, spec.messages);
                self.count(reply.sent_at, |counts| counts.refused += 1);
                self.sender.replied(now, reply.sent_at, Signal::Crowded);
                return;
            }
        }
        let tried = reply.tried;
        let back_at = now + self.sender.retry_after(tried.times);
        let times = tried.times.saturating_add(1);
        let signal = match reply.answer {
            Answer::Taken => {
                self.count(reply.sent_at, |counts| counts.delivered += 1);
                Signal::Passed
            }
            Answer::Greylisted => {
                self.retries.push(back_at, Tried { times, known: true });
                Signal::Passed
            }
            Answer::Refused(cause, code) => {
                self.count(reply.sent_at, |counts| counts.refused += 1);
                if self.case.provider.greylist.is_some() {
                    self.retries.push(back_at, Tried { times, ..tried });
                }
                Signal::Refused { cause, code }
            }
        };
        self.sender.replied(now, reply.sent_at, signal);
    }

    fn count(&mut self, sent_at: Nanos, add: impl Fn(&mut Counts)) {
        add(&mut self.all);
        if sent_at >= CONVERGED_AFTER {
            add(&mut self.converged);
        }
    }
}

/// The figures of a run.
pub(super) fn figures(case: &Case, all: Counts, converged: Counts, epochs: u32) -> Figures {
    let could = |from| {
        oracle::delivered(&case.provider, case.full, case.starts_at, from, case.length).max(1.0)
    };
    let deferred = |counts: Counts| counts.refused as f64 / counts.attempts.max(1) as f64;
    Figures {
        share: all.delivered as f64 / could(Nanos::ZERO),
        share_converged: converged.delivered as f64 / could(CONVERGED_AFTER),
        deferred: deferred(all),
        deferred_converged: deferred(converged),
        attempts: all.attempts,
        epochs,
    }
}

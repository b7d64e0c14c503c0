//! The incident in virtual time: messages, a provider whose hidden limit falls
//! to a tenth and comes back, and the controller of the server in between.
//!
//! Nothing here sleeps, so three and a half hours take about a second. What is
//! decided is decided by the same code as in a server; the provider and the
//! traffic are simulated.

use std::collections::{BTreeMap, VecDeque};

use outflow_core::adapt::{Controller, Mode, Pace, Profile, Settings, Signal};
use outflow_core::time::{Mono, NANOS_PER_SECOND, Nanos, Now, Wall};
use outflow_ports::history::SLICE_S;
use outflow_simulator::hidden::provider::{Answer, Provider};
use outflow_simulator::hidden::sender::{gap, moment};
use outflow_simulator::hidden::spec::{BucketSpec, ProviderSpec};
use outflow_simulator::network::shape::{Dip, Shape};
use outflow_simulator::random::Random;
use outflow_simulator::units::{Share, Span};

const MINUTE: Nanos = Nanos::from_secs(60);
/// The whole of it.
pub const LENGTH: Nanos = MINUTE.times(210);
/// When the provider's limit falls.
const FALLS_AT: Nanos = MINUTE.times(62);
/// For how long.
const FALLS_FOR: Nanos = MINUTE.times(35);
/// To which share of what it was.
const FALLS_TO: f64 = 0.1;
/// What the operator allows, and what the provider bears as a rule: messages a
/// second.
pub const POLICY: f64 = 40.0;
const BORNE: f64 = 44.0;
const LATENCY: Nanos = Nanos::from_millis(200);
/// When a message that was refused comes back.
const RETRY: Nanos = MINUTE.times(5);
/// How long a reply counts as evidence.
const EVIDENCE: Nanos = Nanos::from_secs(10);
/// What the provider says when it has enough.
pub const SAID: &str = "4.7.28 Our system has detected an unusual rate of unsolicited mail \
     originating from your IP address; it has been temporarily rate limited.";
/// Its status.
pub const CODE: u16 = 421;

/// What was counted in one slice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Attempts.
    pub attempts: u64,
    /// Those that were refused.
    pub refused: u64,
    /// When the first was.
    pub refused_at: Option<Wall>,
}

/// A change of the rate.
#[derive(Clone, Debug)]
pub struct Turn {
    /// When.
    pub at: Wall,
    /// What was in force before; 0 while it was stopped.
    pub from: f64,
    /// What is in force now.
    pub to: f64,
    /// What the controller is doing now.
    pub mode: Mode,
    /// Why, in its own words.
    pub reason: String,
    /// Refusals since the last change, of the last seconds.
    pub refused: u64,
    /// Replies since the last change, of the last seconds.
    pub of: u64,
}

/// What happened up to a time.
#[derive(Debug, Default)]
pub struct Passed {
    /// By the number of the slice.
    pub slices: BTreeMap<u64, Counted>,
    /// In order.
    pub turns: Vec<Turn>,
}

/// The incident, as far as it has come.
pub struct Rehearsal {
    begins: Wall,
    now: Nanos,
    controller: Controller,
    provider: Provider,
    random: Random,
    next_arrival: Nanos,
    ready: u64,
    retries: VecDeque<Nanos>,
    in_flight: VecDeque<(Nanos, Answer)>,
    last_sent: Option<Nanos>,
    in_force: f64,
    /// When replies came lately, and whether they refused.
    replies: VecDeque<(Nanos, bool)>,
    passed: Passed,
}

impl Rehearsal {
    /// Begins at this time of the wall clock.
    pub fn new(begins: Wall, seed: u64) -> Self {
        let spec = ProviderSpec {
            title: "a limit that falls to a tenth".to_owned(),
            latency: Span(LATENCY),
            bucket: Some(BucketSpec {
                burst: Span(Nanos::from_secs(5)),
            }),
            shape: Shape {
                swing: Share(0.0),
                dips: vec![Dip {
                    at: Span(FALLS_AT),
                    lasts: Span(FALLS_FOR),
                    to: Share(FALLS_TO),
                }],
            },
            block: None,
            window: None,
            standing: None,
            connections: None,
            greylist: None,
            noise: Share(0.001),
        };
        // Its day begins with the run, so that the dip lies where it should.
        let provider = Provider::new(spec, BORNE, Wall(0), Random::named(seed, "provider", 0));
        let settings = Settings::new(POLICY, POLICY, Profile::Seek);
        Self {
            begins,
            now: Nanos::ZERO,
            controller: Controller::new(&moment(Nanos::ZERO, begins), settings),
            provider,
            random: Random::named(seed, "traffic", 0),
            next_arrival: Nanos::ZERO,
            ready: 0,
            retries: VecDeque::new(),
            in_flight: VecDeque::new(),
            last_sent: None,
            in_force: POLICY,
            replies: VecDeque::new(),
            passed: Passed::default(),
        }
    }

    /// How much time has passed.
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// The time of the wall clock.
    pub fn wall(&self) -> Wall {
        self.begins + self.now
    }

    /// Messages that wait, also those that come back later.
    pub fn waiting(&self) -> u64 {
        self.ready + self.retries.len() as u64
    }

    /// What is in force: messages a second, 0 while it is stopped.
    pub const fn in_force(&self) -> f64 {
        self.in_force
    }

    /// Lets time pass until `until`; what happened meanwhile.
    pub fn run_until(&mut self, until: Nanos) -> Passed {
        loop {
            let send_at = self.send_at();
            let reply_at = self.in_flight.front().map_or(Nanos::MAX, |(at, _)| *at);
            let retry_at = self.retries.front().copied().unwrap_or(Nanos::MAX);
            let wake_at = self.controller.next_wake();
            let wake_at = wake_at.map_or(Nanos::MAX, |at| Nanos(at.0));
            let wake_at = if wake_at > self.now {
                wake_at
            } else {
                Nanos::MAX
            };
            let next = [send_at, reply_at, retry_at, wake_at, self.next_arrival];
            let next = next.into_iter().min().unwrap_or(Nanos::MAX);
            if next >= until {
                self.now = until;
                return std::mem::take(&mut self.passed);
            }
            self.now = next.max(self.now);
            if next == reply_at {
                self.reply();
            } else if next == self.next_arrival {
                self.arrive();
            } else if next == retry_at {
                self.retries.pop_front();
                self.ready += 1;
            } else if next == wake_at {
                let now = self.moment();
                self.controller.woke(&now);
                self.look();
            } else {
                self.send();
            }
        }
    }

    fn moment(&self) -> Now {
        moment(self.now, self.begins)
    }

    fn send_at(&self) -> Nanos {
        if self.ready == 0 {
            return Nanos::MAX;
        }
        match self.controller.pace(&self.moment()) {
            Pace::Stop(until) => Nanos(until.0).max(self.now + Nanos(1)),
            Pace::One => self.now,
            Pace::Flow(rate) => {
                let next = self.last_sent.map_or(self.now, |last| last + gap(rate));
                next.max(self.now)
            }
        }
    }

    /// Receipts all the time, and every quarter of an hour a campaign.
    fn arrive(&mut self) {
        self.ready += 1;
        let campaign = self.now.0 % MINUTE.times(15).0 < MINUTE.times(3).0;
        let rate = if campaign { 36.0 } else { 26.0 };
        let mean = Nanos((NANOS_PER_SECOND as f64 / rate) as u64);
        self.next_arrival = self.now + self.random.exponential(mean);
    }

    fn send(&mut self) {
        if matches!(self.controller.pace(&self.moment()), Pace::Stop(_)) {
            return;
        }
        let now = self.moment();
        self.ready -= 1;
        self.last_sent = Some(self.now);
        self.controller.sent(&now);
        let answer = self.provider.judge(self.now, false);
        self.in_flight.push_back((self.now + LATENCY, answer));
    }

    fn reply(&mut self) {
        let Some((at, answer)) = self.in_flight.pop_front() else {
            return;
        };
        let wall = self.wall();
        let slice = self.now.0 / Nanos::from_secs(u64::from(SLICE_S)).0;
        let counted = self.passed.slices.entry(slice).or_default();
        counted.attempts += 1;
        let signal = match answer {
            Answer::Refused(cause, _) => {
                counted.refused += 1;
                counted.refused_at.get_or_insert(wall);
                self.retries.push_back(self.now + RETRY);
                Signal::Refused { cause, code: CODE }
            }
            Answer::Taken | Answer::Greylisted => Signal::Passed,
        };
        let is_refused = matches!(signal, Signal::Refused { .. });
        self.replies.push_back((self.now, is_refused));
        let is_old = |at: Nanos| self.now.minus(at) > EVIDENCE;
        while self.replies.front().is_some_and(|(at, _)| is_old(*at)) {
            self.replies.pop_front();
        }
        let sent_at = Mono(at.minus(LATENCY).0);
        let now = self.moment();
        self.controller.replied(&now, sent_at, signal);
        self.look();
    }

    /// Notes a change of the rate.
    fn look(&mut self) {
        let now = self.moment();
        let to = match self.controller.pace(&now) {
            Pace::Flow(_) => self.controller.limit(),
            Pace::One | Pace::Stop(_) => 0.0,
        };
        if (to - self.in_force).abs() < 1e-9 {
            return;
        }
        self.passed.turns.push(Turn {
            at: now.wall,
            from: self.in_force,
            to,
            mode: self.controller.mode(),
            reason: self.controller.sentence(&now),
            refused: self.replies.iter().filter(|(_, refused)| *refused).count() as u64,
            of: self.replies.len() as u64,
        });
        self.in_force = to;
        self.replies.clear();
    }
}

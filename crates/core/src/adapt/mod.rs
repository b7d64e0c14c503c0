//! Finding a hidden limit and staying just below it.
//!
//! A far end rarely says how much it takes. A [`Controller`] finds out from its
//! replies: it raises the rate in trials, goes back when one is refused, stops
//! when it is walled off and asks with single messages when that ends. It
//! decides one number per key, the rate in force, which never exceeds what the
//! operator wrote. Wiring it takes one call per send ([`Controller::sent`]) and
//! one per reply ([`Controller::replied`]); [`Controller::pace`] says what may
//! be sent, [`Controller::next_wake`] when that changes by itself.
//!
//! In reading order: [`settings`] and [`signal`] are what comes in; `judge`
//! tells noise from refusal; `climb` proves a rate and tries the next;
//! `block` pauses, holds, probes and knows windows that end with the hour;
//! `noise` learns what is refused at any rate; `surge` keeps an idle key from
//! starting at full speed; `incident` is the plain rule as another profile;
//! `hand` is what operators do;
//! [`saved`] lets it all outlive the process; `sentence` says it in words;
//! [`connections`] learns how many connections are welcome, [`gradient`] how many
//! requests at once where nobody ever says no.

mod block;
mod climb;
pub mod connections;
pub mod gradient;
mod hand;
mod incident;
mod judge;
mod noise;
pub mod saved;
mod sentence;
pub mod settings;
pub mod signal;
mod surge;

pub use saved::{Saved, Unreadable};
pub use sentence::shown as shown_rate;
pub use settings::{Profile, Settings};
pub use signal::{Cause, Explicit, Signal};

use block::Block;
use incident::Incident;
use judge::{Finding, Judge};
use noise::Noise;
use surge::Surge;

use crate::time::{Mono, NANOS_PER_SECOND, Nanos, Now, Wall};

const MINUTE: u64 = 60 * NANOS_PER_SECOND;
const HOUR: u64 = 60 * MINUTE;
/// A rate that nothing was refused at.
const NEVER_REFUSED: f64 = f64::INFINITY;

/// What a controller is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Finding out whether the rate in force is borne.
    Prove,
    /// Finding out whether a higher one is.
    Trial,
    /// Staying at a proven rate until the next trial is due.
    Cruise,
    /// Stopped for seconds: is it a wall, or just too fast?
    Pause,
    /// Walled off: single messages ask whether it is over.
    Block,
    /// Staying at what a window from full hour to full hour allows.
    Window,
}

/// What a controller went by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// So many were refused ...
    pub refused: u32,
    /// ... of so many.
    pub replies: u32,
    /// The code of the last refusal; none if it had none.
    pub code: u16,
}

impl Mode {
    /// The word used in the API and in the audit.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prove => "prove",
            Self::Trial => "trial",
            Self::Cruise => "cruise",
            Self::Pause => "pause",
            Self::Block => "block",
            Self::Window => "window",
        }
    }

    /// Whether nothing flows but single messages that ask.
    pub const fn is_stop(self) -> bool {
        matches!(self, Self::Pause | Self::Block)
    }
}

/// What may be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Nothing before this time; with [`Mono::NEVER`], nothing before a reply.
    Stop(Mono),
    /// One message, to see.
    One,
    /// So many a second.
    Flow(f64),
}

/// The time as a controller reads it: nanoseconds since it was made, also over
/// restarts, and the wall clock for hours and days.
#[derive(Clone, Copy, Debug)]
struct At {
    tick: u64,
    wall: Wall,
}

/// The rate of one key, and all that was learnt about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controller {
    settings: Settings,
    /// The monotonic time minus the controller's own.
    origin: i64,
    mode: Mode,
    /// In force while messages flow.
    rate: f64,
    /// Proven.
    good: f64,
    /// Refused last.
    bad: f64,
    /// The best ever proven.
    best: f64,
    /// The next trial's increase, as a share.
    step: f64,
    /// Trials refused in a row.
    failed: u8,
    /// When the rate last changed: what was sent before says nothing about it.
    changed_at: u64,
    /// How often it changed.
    epoch: u32,
    /// How much of it is used: replies since this time. Begins anew where too
    /// little was, so that an idle night does not count against the day.
    used_from: u64,
    used: u32,
    /// No increase before.
    wait_until: u64,
    /// No jump to the best proven rate before, and how long to wait after one.
    jump_at: u64,
    jump_wait: u64,
    judge: Judge,
    block: Block,
    noise: Noise,
    surge: Surge,
    incident: Incident,
    /// What an operator holds it at, and until when.
    pinned: Option<(f64, u64)>,
    /// What the far end said it allows.
    told: f64,
    last_code: u16,
    last_cause: Cause,
}

impl Controller {
    /// A controller that knows nothing yet.
    pub fn new(now: &Now, settings: Settings) -> Self {
        Self {
            settings,
            origin: i64::try_from(now.mono.0).unwrap_or(i64::MAX),
            mode: Mode::Prove,
            rate: settings.start(),
            good: 0.0,
            bad: NEVER_REFUSED,
            best: 0.0,
            step: 1.0,
            failed: 0,
            changed_at: 0,
            epoch: 0,
            used_from: 0,
            used: 0,
            wait_until: 0,
            jump_at: 0,
            jump_wait: climb::JUMP_WAIT_LEAST,
            judge: Judge::default(),
            block: Block::default(),
            noise: Noise::default(),
            surge: Surge::new(settings.start()),
            incident: Incident::default(),
            pinned: None,
            told: NEVER_REFUSED,
            last_code: 0,
            last_cause: Cause::Rate,
        }
    }

    /// A message is sent now.
    pub fn sent(&mut self, now: &Now) {
        let at = self.at(now);
        self.surge.sent(at.tick, self.rate);
        if self.is_stopped() {
            self.block.probe_sent(at.tick);
        }
    }

    /// The far end replied to a message that was sent at `sent_at`. Whether the
    /// pace changed.
    pub fn replied(&mut self, now: &Now, sent_at: Mono, signal: Signal) -> bool {
        let at = self.at(now);
        let before = (self.epoch, self.mode);
        let sent = self.tick(sent_at);
        if let Signal::Refused { cause, code } = signal {
            (self.last_cause, self.last_code) = (cause, code);
        }
        match signal {
            Signal::Crowded => self.answered(at, sent, None),
            Signal::Silent => self.answered(at, sent, None),
            Signal::Passed => self.answered(at, sent, Some(false)),
            Signal::Refused { .. } => self.answered(at, sent, Some(true)),
        }
        before != (self.epoch, self.mode)
    }

    /// Time has passed; see [`Controller::next_wake`]. Whether the pace changed.
    pub fn woke(&mut self, now: &Now) -> bool {
        let at = self.at(now);
        let before = (self.epoch, self.mode);
        self.turn(at);
        before != (self.epoch, self.mode)
    }

    /// The far end says outright what it allows, and is obeyed at once. Who says
    /// the same again says nothing.
    pub fn explicit(&mut self, now: &Now, said: Explicit) {
        let at = self.at(now);
        match said {
            Explicit::Wait(wait) => self.block.told_to_wait(at.tick.saturating_add(wait.0)),
            Explicit::Rate(rate) if self.told() == Some(rate) => {}
            Explicit::Rate(rate) if rate.is_finite() && rate > 0.0 => {
                self.told = rate;
                self.good = self.good.min(rate);
                if !self.is_stopped() {
                    self.bad = NEVER_REFUSED;
                    self.change(at, rate, Mode::Prove);
                }
            }
            Explicit::Rate(_) => {}
        }
    }

    /// How many a second the far end said that it takes, if it said so.
    pub fn told(&self) -> Option<f64> {
        (self.told < NEVER_REFUSED).then_some(self.told)
    }

    /// What may be sent now.
    pub fn pace(&self, now: &Now) -> Pace {
        let at = self.at(now);
        if let Some(rate) = self.pin_at(at.tick) {
            return Pace::Flow(rate);
        }
        if let Some(until) = self.block.waits(at.tick) {
            return Pace::Stop(self.mono(until));
        }
        if self.is_stopped() {
            return match self.block.probe_due(at.tick) {
                Ok(()) => Pace::One,
                Err(u64::MAX) => Pace::Stop(Mono::NEVER),
                Err(until) => Pace::Stop(self.mono(until)),
            };
        }
        Pace::Flow(self.flow(at.tick))
    }

    /// The rate in force, in messages a second; nothing while it is stopped.
    pub fn rate(&self, now: &Now) -> f64 {
        match self.pace(now) {
            Pace::Flow(rate) => rate,
            Pace::One | Pace::Stop(_) => 0.0,
        }
    }

    /// The rate in force as a share of what the operator allows.
    pub fn factor(&self, now: &Now) -> f64 {
        self.rate(now) / self.settings.cap()
    }

    /// When the pace may change without a reply, if it may.
    pub fn next_wake(&self) -> Option<Mono> {
        if let Some((_, until)) = self.pinned {
            return (until < u64::MAX).then(|| self.mono(until));
        }
        let wake = if self.block.wait_end() > 0 {
            self.block.wait_end()
        } else if self.is_stopped() {
            self.block.wake()
        } else {
            match self.settings.profile() {
                Profile::Seek => self.trial_at(),
                Profile::Incident => self.incident_wake(),
            }
        };
        (wake < u64::MAX).then(|| self.mono(wake))
    }

    /// No increase comes before this time. Cuts come at any time.
    pub fn cooldown_until(&self) -> Mono {
        let until = match self.settings.profile() {
            Profile::Seek => self.no_trial_before(),
            Profile::Incident => self.incident.raise_at,
        };
        self.mono(until)
    }

    /// What it is doing.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The rate that is being proven, tried or kept to, in messages a second.
    /// While it is stopped, the one at which it was stopped; after idling, less
    /// may flow.
    pub const fn limit(&self) -> f64 {
        self.rate
    }

    /// How often the rate has changed.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The rate that was last proven, if any was.
    pub fn proven(&self) -> Option<f64> {
        (self.good > 0.0).then_some(self.good)
    }

    /// The share that is refused at any rate, as far as is known.
    pub const fn noise_share(&self) -> f64 {
        self.noise.base
    }

    /// Whether it stands still for more than two hours: worth an alert.
    pub fn holds_long(&self) -> bool {
        self.is_stopped() && self.block.hold > 2 * HOUR
    }

    /// How long it last held in a block before a message passed, if one came up.
    pub fn last_block(&self) -> Option<Nanos> {
        (self.block.worked > 0).then_some(Nanos(self.block.worked))
    }

    /// When that block ended.
    pub fn last_block_ended(&self) -> Option<Mono> {
        (self.block.worked > 0).then(|| self.mono(self.block.ended_at))
    }

    /// Of the replies since the rate last changed: how many were refused, of
    /// how many, and the code of the last refusal.
    pub const fn evidence(&self) -> Evidence {
        Evidence {
            refused: self.judge.refused,
            replies: self.judge.replies,
            code: self.last_code,
        }
    }

    /// What its settings are.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The reply to a message sent at `sent`: let through, refused, or neither.
    fn answered(&mut self, at: At, sent: u64, refused: Option<bool>) {
        if self.pin_at(at.tick).is_some() {
            return;
        }
        if self.is_stopped() {
            if self.block.is_probe(sent) {
                self.probe_answered(at, refused);
            }
            return;
        }
        let Some(refused) = refused else {
            return self.turn(at);
        };
        if !refused {
            self.block.accepted(at.wall);
        }
        if sent < self.changed_at {
            return self.turn(at);
        }
        if matches!(self.mode, Mode::Cruise | Mode::Window) {
            self.noise.count(refused);
        }
        self.used = self.used.saturating_add(1);
        let trial = self.mode == Mode::Trial;
        let found = self.judge.count(refused, self.noise.base, self.rate, trial);
        match (self.settings.profile(), found) {
            (_, Finding::Quiet) => self.turn(at),
            (Profile::Incident, _) => self.incident_cut(at),
            (Profile::Seek, Finding::TooMany) => self.cut(at),
            (Profile::Seek, Finding::Wall) => self.stop(at),
        }
    }

    /// What is due by time or by evidence.
    fn turn(&mut self, at: At) {
        if self.pinned.is_some_and(|(_, until)| at.tick >= until) {
            self.let_go(at.tick);
        }
        self.block.waited(at.tick);
        if self.pinned.is_some() || self.is_stopped() {
            return;
        }
        match self.settings.profile() {
            Profile::Seek => self.climb(at),
            Profile::Incident => self.incident_turn(at),
        }
    }

    /// Puts another rate in force: the replies to what was sent before no
    /// longer count.
    fn change(&mut self, at: At, rate: f64, mode: Mode) {
        let most = self.settings.cap().min(self.told);
        self.rate = rate.min(most).max(self.settings.floor().min(most));
        self.mode = mode;
        self.renew(at.tick);
    }

    fn renew(&mut self, tick: u64) {
        self.changed_at = tick;
        (self.used_from, self.used) = (tick, 0);
        self.epoch = self.epoch.wrapping_add(1);
        self.judge = Judge::default();
    }

    fn is_stopped(&self) -> bool {
        matches!(self.mode, Mode::Pause | Mode::Block)
    }

    /// What flows: the rate in force, less after a time of idling. What a far
    /// end says that it takes, it takes at once.
    fn flow(&self, tick: u64) -> f64 {
        if self.rate >= self.told {
            return self.rate;
        }
        self.rate.min(self.surge.most(tick, self.rate))
    }

    fn at(&self, now: &Now) -> At {
        At {
            tick: self.tick(now.mono),
            wall: now.wall,
        }
    }

    fn tick(&self, mono: Mono) -> u64 {
        let mono = i128::from(mono.0) - i128::from(self.origin);
        u64::try_from(mono.max(0)).unwrap_or(u64::MAX)
    }

    fn mono(&self, tick: u64) -> Mono {
        let mono = i128::from(tick) + i128::from(self.origin);
        Mono(u64::try_from(mono.max(0)).unwrap_or(u64::MAX))
    }
}

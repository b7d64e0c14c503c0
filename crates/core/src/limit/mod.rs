//! Limits: one rule with one counter each.
//!
//! A [`Limit`] is asked whether a need fits, says when it will, and is then
//! taken from. It is *owned*, where an algorithm on this node decides, or
//! *leased*, where it spends what the ledger of a fleet granted: callers need
//! not know which. Nothing is refunded: callers check all limits of a message
//! first and then take them all.
//!
//! In reading order: [`spec`], [`parse`] and `format` say what a limit is; [`need`] is
//! the amount asked for; [`token_bucket`], [`leaky_bucket`],
//! [`sliding_window`], [`calendar_window`] (with [`boundary`]) and
//! [`concurrency`] count, each under a guarantee that its first line states;
//! [`algorithm`] is the choice between them; [`lease`], [`holds`], `leased` and
//! [`shared_use`] are the fleet's side;
//! [`reserve`] and [`saved`] let a limit outlive its process.

pub mod algorithm;
pub mod boundary;
pub mod calendar_window;
pub mod concurrency;
mod format;
pub mod holds;
pub mod leaky_bucket;
pub mod lease;
mod leased;
pub mod need;
pub mod parse;
pub mod reserve;
pub mod saved;
mod saving;
pub mod shared_use;
pub mod sliding_window;
pub mod spec;
pub mod token_bucket;

pub use algorithm::{Fill, Until};
pub use lease::Grant;
pub use need::Need;
pub use saved::Saved;
pub use spec::{Headroom, Kind, LimitSpec, Rate, Shape};

use crate::class::Class;
use crate::time::{Mono, Now};
use algorithm::Algorithm;
use calendar_window::Kept;
use holds::Holds;
use lease::Lease;
use reserve::Reserve;
use shared_use::SharedUse;

/// Where the tokens of a limit come from.
#[derive(Clone, Debug)]
enum Source {
    Owned(Algorithm),
    Leased(Lease),
    Held(Holds),
}

/// What must be left for the classes above.
#[derive(Clone, Copy)]
enum Floor {
    Fixed(Need),
    /// That of a calendar window.
    Sinking(Kept),
}

/// One rule with one counter.
#[derive(Clone, Debug)]
pub struct Limit {
    spec: LimitSpec,
    headroom: Headroom,
    source: Source,
    reserve: Option<Reserve>,
    /// What this node used of a long window that a fleet shares.
    shared: Option<Box<SharedUse>>,
    /// Whether it may forget everything when the process ends.
    is_transient: bool,
    /// Whether a cost above what it holds passes when it is full. A rate that
    /// was learnt must not decide that a message can never be sent.
    is_lenient: bool,
    blocked_until: Option<Mono>,
}

impl Limit {
    /// A limit that this node alone decides on.
    pub fn owned(spec: LimitSpec, headroom: Headroom, now: &Now, fill: Fill) -> Self {
        let algorithm = Algorithm::new(&spec, now, fill);
        Self {
            source: Source::Owned(algorithm),
            reserve: Reserve::of(&spec),
            shared: None,
            is_transient: false,
            is_lenient: false,
            spec,
            headroom,
            blocked_until: None,
        }
    }

    /// A limit that this node alone decides on and nothing outlives: it needs
    /// no reservations, and whoever makes it again after a restart sees to it
    /// that it starts empty.
    pub fn transient(spec: LimitSpec, headroom: Headroom, now: &Now, fill: Fill) -> Self {
        Self {
            reserve: None,
            is_transient: true,
            ..Self::owned(spec, headroom, now, fill)
        }
    }

    /// A rate that was learnt: this node alone decides on it, its memory is
    /// kept elsewhere, and no cost is too large for it.
    pub fn learnt(spec: LimitSpec, now: &Now, fill: Fill) -> Self {
        Self {
            is_lenient: true,
            ..Self::transient(spec, Headroom::default(), now, fill)
        }
    }

    /// Fills it up.
    pub fn refill(&mut self, now: &Now) {
        if let Source::Owned(algorithm) = &mut self.source {
            *algorithm = Algorithm::new(&self.spec, now, Fill::Full);
        }
    }

    /// A limit that spends what the ledger grants.
    pub fn leased(spec: LimitSpec, headroom: Headroom) -> Self {
        let source = match spec {
            LimitSpec::Concurrency { .. } => Source::Held(Holds::default()),
            _ => Source::Leased(Lease::default()),
        };
        Self {
            spec,
            headroom,
            source,
            reserve: None,
            shared: None,
            is_transient: true,
            is_lenient: false,
            blocked_until: None,
        }
    }

    /// Its algorithm and numbers.
    pub const fn spec(&self) -> &LimitSpec {
        &self.spec
    }

    /// What it keeps for the classes above.
    pub const fn headroom(&self) -> Headroom {
        self.headroom
    }

    /// Whether it spends what a ledger grants.
    pub const fn is_leased(&self) -> bool {
        matches!(self.source, Source::Leased(_) | Source::Held(_))
    }

    /// Its kind, capacity and rate.
    pub const fn shape(&self) -> Shape {
        self.spec.shape()
    }

    /// The largest cost that can pass at all. Half of a leased burst pays for
    /// the life of leases.
    pub const fn largest_cost(&self) -> u32 {
        if self.is_lenient {
            return u32::MAX;
        }
        match (&self.source, &self.spec) {
            (Source::Leased(_), LimitSpec::TokenBucket { burst, .. }) => {
                if *burst > 1 {
                    *burst / 2
                } else {
                    1
                }
            }
            _ => self.spec.capacity(),
        }
    }

    /// Whether `need` can be taken now, whatever is kept for other classes.
    pub fn fits(&self, now: &Now, class: Class, need: Need) -> bool {
        self.fits_above(now, class, need, Need::ZERO)
    }

    /// Whether `need` can be taken now so that `floor` is left. What is left
    /// needs no reservation.
    pub fn fits_above(&self, now: &Now, class: Class, need: Need, floor: Need) -> bool {
        if self.blocked_until(now).is_some() || !self.reserve_covers(need) {
            return false;
        }
        let need = self.bounded(need + floor);
        match &self.source {
            Source::Owned(algorithm) => algorithm.fits(now, need),
            Source::Leased(lease) => lease.fits(now, class, need),
            Source::Held(holds) => holds.fits(now, need),
        }
    }

    /// The earliest time at which `need` fits if nobody takes anything.
    pub fn until(&self, now: &Now, class: Class, need: Need) -> Until {
        self.until_above(now, class, need, Floor::Fixed(Need::ZERO))
    }

    /// The earliest time at which `need` fits above the floor of its class if
    /// nobody takes anything. The floor of a calendar window sinks meanwhile.
    pub fn until_above_floor(&self, now: &Now, class: Class, need: Need, cost_max: u32) -> Until {
        let floor = match &self.source {
            Source::Owned(Algorithm::CalendarWindow(_)) => {
                Floor::Sinking(self.kept(class, cost_max))
            }
            _ => Floor::Fixed(self.floor(now, class, cost_max)),
        };
        self.until_above(now, class, need, floor)
    }

    /// The same behind others, to whom all that is promised will go. They take
    /// it in the window of now: what comes later is whole.
    pub fn until_behind_promised(&self, now: &Now, class: Class, cost: u32) -> Until {
        let promised = self.promised();
        if let Source::Owned(Algorithm::CalendarWindow(window)) = &self.source
            && self.blocked_until(now).is_none()
        {
            let ahead = u32::try_from(promised).unwrap_or(u32::MAX);
            let kept = self.kept(class, cost);
            return window.until_behind(now, ahead, Need::whole(cost), kept);
        }
        let need = Need((promised + u64::from(cost)).saturating_mul(1_000));
        self.until_above_floor(now, class, need, cost)
    }

    fn until_above(&self, now: &Now, class: Class, need: Need, floor: Floor) -> Until {
        let blocked = self.blocked_until(now);
        let from = blocked.map_or(*now, |blocked| now.at(blocked));
        let (fixed, kept) = match floor {
            Floor::Fixed(floor) => (floor, Kept::default()),
            Floor::Sinking(kept) => (Need::ZERO, kept),
        };
        let whole = self.bounded(need + fixed);
        let until = match &self.source {
            Source::Owned(Algorithm::CalendarWindow(window)) => window.until(&from, whole, kept),
            Source::Owned(algorithm) => algorithm.until(&from, whole),
            Source::Leased(_) | Source::Held(_) if whole > Need::whole(self.spec.capacity()) => {
                Until::Never
            }
            Source::Leased(lease) => lease.until(&from, class, whole),
            Source::Held(holds) if holds.fits(&from, whole) => Until::Now,
            Source::Held(_) => Until::Granted,
        };
        match until {
            Until::Now if !self.reserve_covers(need) => Until::Granted,
            Until::Now => blocked.map_or(Until::Now, Until::At),
            other => other,
        }
    }

    fn reserve_covers(&self, need: Need) -> bool {
        let need = self.bounded(need);
        self.reserve
            .as_ref()
            .is_none_or(|reserve| reserve.covers(need))
    }

    /// What is really asked of it: a lenient limit never more than it holds.
    fn bounded(&self, need: Need) -> Need {
        if self.is_lenient {
            need.min(Need::whole(self.spec.capacity()))
        } else {
            need
        }
    }

    /// What it would admit at once now, to the most urgent class.
    pub fn available(&self, now: &Now) -> u64 {
        if self.blocked_until(now).is_some() {
            return 0;
        }
        match &self.source {
            Source::Owned(algorithm) => {
                let used = algorithm.used(now).min(self.most());
                u64::from(self.most() - used)
            }
            Source::Leased(lease) => lease.usable(now, Class::Critical),
            Source::Held(holds) => u64::from(holds.free(now)),
        }
    }

    /// What it holds at most: a spaced limit has one at a time.
    pub const fn most(&self) -> u32 {
        match self.spec {
            LimitSpec::LeakyBucket { .. } => 1,
            _ => self.spec.capacity(),
        }
    }

    /// Takes `cost` tokens that fit.
    pub fn take(&mut self, now: &Now, class: Class, cost: u32) {
        let cost = match self.is_lenient {
            true => cost.min(self.spec.capacity()),
            false => cost,
        };
        debug_assert!(
            self.fits(now, class, Need::whole(cost)),
            "a limit is taken from only after it was found to fit"
        );
        match &mut self.source {
            Source::Owned(algorithm) => algorithm.take(now, cost),
            Source::Leased(lease) => {
                let receipt = lease.take(now, class, cost);
                if let Some(shared) = &mut self.shared {
                    shared.take(now, receipt, cost);
                }
            }
            Source::Held(holds) => holds.take(cost),
        }
        if let Some(reserve) = &mut self.reserve {
            reserve.take(cost);
        }
    }

    /// Gives `cost` slots of a concurrency limit back. Rates refund nothing.
    pub fn release(&mut self, cost: u32) {
        match &mut self.source {
            Source::Owned(algorithm) => algorithm.release(cost),
            Source::Held(holds) => holds.release(cost),
            Source::Leased(_) => {}
        }
    }

    /// What `class` must leave for the classes above it. `cost_max` is the
    /// largest cost at this limit, which must still find its way.
    pub fn floor(&self, now: &Now, class: Class, cost_max: u32) -> Need {
        let Source::Owned(algorithm) = &self.source else {
            return Need::ZERO;
        };
        if self.headroom.above(class) == 0 {
            return Need::ZERO;
        }
        match algorithm {
            Algorithm::TokenBucket(_) => {
                let kept = self.kept(class, cost_max.saturating_mul(2));
                kept.share.min(kept.most)
            }
            Algorithm::CalendarWindow(window) => window.floor(now.wall, self.kept(class, cost_max)),
            Algorithm::LeakyBucket(_) | Algorithm::SlidingWindow(_) | Algorithm::Concurrency(_) => {
                Need::ZERO
            }
        }
    }

    /// What is kept from `class`, so that `spared` can still be taken.
    fn kept(&self, class: Class, spared: u32) -> Kept {
        let capacity = self.spec.capacity();
        let share = self.headroom.above(class);
        Kept {
            share: Need(share.saturating_mul(u64::from(capacity))),
            most: Need::whole(capacity).minus(Need::whole(spared)),
        }
    }

    /// Goes on with another spec. Whatever changes, at most the largest burst
    /// in force plus the integral of the rate is granted. Leased tokens were
    /// granted under the old spec and are void: drain them first.
    pub fn reconfigure(&mut self, now: &Now, spec: LimitSpec) {
        if spec == self.spec {
            return;
        }
        match &mut self.source {
            Source::Owned(algorithm) => {
                algorithm.reconfigure(now, &spec);
                let fresh = match self.is_transient {
                    true => None,
                    false => Reserve::of(&spec),
                };
                self.reserve = match (self.reserve.take(), fresh) {
                    (Some(old), Some(fresh)) => Some(old.resized(fresh)),
                    (_, fresh) => fresh,
                };
            }
            Source::Leased(lease) => {
                drop(lease.drain(now));
                if !self.is_transient {
                    self.reconfigure_account(now, &spec);
                }
            }
            // How fewer are divided among the nodes, the ledger says when they
            // are next asked for.
            Source::Held(holds) if spec.capacity() < self.spec.capacity() => holds.start_none(),
            Source::Held(_) => {}
        }
        let was_held = matches!(self.source, Source::Held(_));
        if self.is_leased() && was_held != matches!(spec, LimitSpec::Concurrency { .. }) {
            self.source = Self::leased(spec.clone(), self.headroom).source;
        }
        self.spec = spec;
    }

    /// Goes on with other shares for the classes.
    pub const fn set_headroom(&mut self, headroom: Headroom) {
        self.headroom = headroom;
    }

    /// Grants nothing before `until`, whatever the tokens say. The later of
    /// two blocks holds.
    pub fn block_until(&mut self, until: Mono) {
        self.blocked_until = self.blocked_until.max(Some(until));
    }

    /// Ends a block before its time.
    pub const fn unblock(&mut self) {
        self.blocked_until = None;
    }

    /// When the block ends, while there is one.
    pub fn blocked_until(&self, now: &Now) -> Option<Mono> {
        self.blocked_until.filter(|until| *until > now.mono)
    }

    /// Whether it remembers nothing that a fresh, full limit would not know.
    pub fn is_idle(&self, now: &Now) -> bool {
        let idle = match &self.source {
            Source::Owned(algorithm) => algorithm.is_idle(now),
            Source::Leased(lease) => {
                let shared = self.shared.as_ref();
                lease.is_idle(now) && shared.is_none_or(|shared| shared.is_idle(now))
            }
            Source::Held(holds) => holds.is_idle(now),
        };
        idle && self.blocked_until(now).is_none() && !self.is_reserving()
    }

    /// Whether it spends only what was reserved on disk.
    pub const fn needs_reserve(&self) -> bool {
        self.reserve.is_some()
    }

    /// Whether it spends only what it is given: leased or reserved tokens.
    pub const fn is_fed(&self) -> bool {
        self.is_leased() || self.needs_reserve()
    }

    /// How many tokens to reserve on disk next, if it is time to.
    pub fn reservation_due(&self) -> Option<u32> {
        let due = self.reserve.as_ref().and_then(Reserve::due);
        match &self.shared {
            // Before anything is granted nothing can be used.
            Some(shared) if !shared.is_granted() => None,
            Some(shared) if shared.is_unsaved() => Some(due.unwrap_or(0)),
            _ => due,
        }
    }

    /// When the window that holds a moment begins and ends, if this is a quota
    /// of the calendar and no ledger counts it.
    pub fn window_around(&self, now: &Now, at: Mono) -> Option<(Mono, Mono)> {
        let Source::Owned(Algorithm::CalendarWindow(window)) = &self.source else {
            return None;
        };
        let (start, end) = window.around(now.wall_at(at));
        Some((now.mono_at(start), now.mono_at(end)))
    }

    /// How many tokens to reserve for one message of this cost alone.
    pub fn reservation_for(&self, cost: u32) -> Option<u32> {
        self.reserve.as_ref().and_then(|it| it.due_for(cost))
    }

    /// A reservation is on its way to the disk.
    pub fn reserve_asked(&mut self, block: u32) {
        if let Some(reserve) = &mut self.reserve {
            reserve.asked(block);
        }
        if let Some(shared) = &mut self.shared {
            shared.note_saved();
        }
    }

    /// A reservation is on disk.
    pub fn reserve_committed(&mut self, block: u32) {
        if let Some(reserve) = &mut self.reserve {
            reserve.committed(block);
        }
    }

    /// Tokens that are reserved, or about to be, for somebody who asked.
    pub fn promised(&self) -> u64 {
        self.reserve.as_ref().map_or(0, Reserve::promised)
    }

    /// Whether a reservation is on its way to the disk.
    pub fn is_reserving(&self) -> bool {
        self.reserve.as_ref().is_some_and(Reserve::is_asking)
    }
}

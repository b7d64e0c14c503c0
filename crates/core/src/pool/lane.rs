//! What a pool keeps of a lane: its demand, and whether it is short of
//! sessions.

use crate::class::Class;
use crate::handle::LaneId;
use crate::time::{Mono, NANOS_PER_SECOND, Nanos};

use super::bits::PairBits;
use super::estimate::{Mean, Meter, sessions_for};
use super::pace::Pace;
use super::settings::{ClassMask, PoolSettings};
use super::size::Sizes;
use super::stats::Counts;

/// Whether the lane's far end can be reached at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// As far as is known.
    Open,
    /// Too many connects failed in a row; none until then.
    Shut(Mono),
    /// One connect at a time, until one succeeds.
    Probe,
}

/// Whether the lane leaves the last free slots to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rich {
    No,
    /// It stands back until then.
    Until(Mono),
    /// It stood back and nobody else took the slots.
    Lifted,
}

/// One lane.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub id: LaneId,
    /// Removed; stays until its last session is closed.
    pub gone: bool,
    /// Its last session is closed, too: its column is free.
    pub is_freed: bool,
    /// Whose messages it carries, if that tenant has accounts of its own.
    pub tenant: Option<u32>,
    /// The lanes of the same destination, if there are others.
    pub site: Option<u32>,
    /// What its next messages cost, by class; 0 where none waits.
    pub costs: [u32; Class::COUNT],
    /// What its pairs can take at all.
    pub sizes: Sizes,
    /// Paused or broken.
    pub held: bool,
    /// The classes with a message that could go now.
    pub backlog: ClassMask,
    pub waiting: u32,
    pub counts: Counts,
    /// Connections to its destination that carry its messages, now or soon: no
    /// request slots, and none of relays.
    pub bound: u32,
    /// Sessions of others that are being closed for it.
    pub promised: u32,
    /// The backlog, unless it is held.
    pub demand: ClassMask,
    /// What the send gate sees: the demand that need not keep a distance.
    pub asks: ClassMask,
    pub pace: Pace,
    /// Behind the account that was used last.
    pub cursor: u32,
    /// Behind the account that opened last.
    pub open_cursor: u32,
    /// When one of its sessions last took a message or came free.
    pub moved_at: Mono,
    /// Since when messages have waited for a session.
    pub waits_since: Mono,
    pub meter: Meter,
    pub reply: Mean,
    pub connect: Mean,
    /// A message's share of the time it takes to connect.
    pub connect_share: Mean,
    /// Sessions worth keeping for its rate.
    pub target: u32,
    /// Connects that failed in a row.
    pub failures: u32,
    pub reach: Reach,
    pub rich: Rich,
    /// What its pairs can do, by account.
    pub bits: PairBits,
}

impl Lane {
    pub fn new(id: LaneId, settings: &PoolSettings) -> Self {
        Self {
            id,
            gone: false,
            is_freed: false,
            tenant: None,
            site: None,
            costs: [0; Class::COUNT],
            sizes: Sizes::default(),
            held: false,
            backlog: ClassMask::NONE,
            waiting: 0,
            counts: Counts::default(),
            bound: 0,
            promised: 0,
            demand: ClassMask::NONE,
            asks: ClassMask::NONE,
            pace: Pace::default(),
            cursor: 0,
            open_cursor: 0,
            moved_at: Mono(0),
            waits_since: Mono(0),
            meter: Meter::default(),
            reply: Mean::until_measured(settings.reply_hint),
            connect: Mean::new(settings.connect_hint),
            connect_share: Mean::new(Nanos::ZERO),
            target: settings.keep_warm,
            failures: 0,
            reach: Reach::Open,
            rich: Rich::No,
            bits: PairBits::default(),
        }
    }

    pub fn demand_now(&self) -> ClassMask {
        if self.held || self.gone {
            ClassMask::NONE
        } else {
            self.backlog
        }
    }

    pub fn asks_now(&self) -> ClassMask {
        self.demand_now().and(self.pace.open())
    }

    /// What its next message of this class costs.
    pub fn cost(&self, class: Class) -> u32 {
        self.costs.get(class.index()).copied().unwrap_or(0)
    }

    /// What the lightest of its next messages costs: a session that can carry
    /// this one is of use.
    pub fn least_cost(&self) -> u32 {
        let classes = Class::ALL.into_iter();
        let demanded = classes.filter(|class| self.demand.contains(*class));
        demanded.map(|class| self.cost(class)).min().unwrap_or(0)
    }

    /// Whether a message of this class that arrives may leave.
    pub fn lets_out(&self, class: Class) -> bool {
        !self.held && self.pace.open().contains(class)
    }

    /// Sessions on their way to it.
    pub fn coming(&self) -> u32 {
        self.counts.opening + self.promised
    }

    /// Sessions that carry its messages, now or soon.
    pub fn serving(&self) -> u32 {
        self.counts.serving() + self.promised
    }

    /// Whether more wait than sessions are coming, or fewer are kept than its
    /// rate needs.
    pub fn wants_session(&self) -> bool {
        if self.held || self.gone {
            return false;
        }
        let reachable = match self.reach {
            Reach::Open => true,
            Reach::Shut(_) => false,
            Reach::Probe => self.coming() == 0,
        };
        reachable && (self.waits_for_session() || self.serving() < self.target)
    }

    /// Whether more wait than sessions are coming.
    pub fn waits_for_session(&self) -> bool {
        !self.demand.is_empty() && self.waiting > self.coming()
    }

    /// Whether critical messages wait and there is no session at all.
    pub fn is_urgent(&self) -> bool {
        self.demand.contains(Class::Critical) && self.serving() == 0
    }

    /// The time between two of its messages, as far as was measured.
    pub fn gap(&self) -> Option<Nanos> {
        const MILLI_SECONDS: u64 = 1_000 * NANOS_PER_SECOND;
        MILLI_SECONDS
            .checked_div(self.meter.rate_milli())
            .map(Nanos)
    }

    /// Measures its rate anew, once a second at most.
    pub fn measure(&mut self, now: Mono, keep_warm: u32) {
        if self.meter.roll(now) {
            let occupied = self.reply.get() + self.connect_share.get();
            self.target = sessions_for(self.meter.rate_milli(), 16, occupied).max(keep_warm);
        }
    }
}

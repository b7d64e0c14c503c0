//! What a pool keeps of an account: its supply, and when it may open one more.

use crate::class::Class;
use crate::handle::AccountId;
use crate::time::{Mono, Nanos};

use super::bits::PairBits;
use super::estimate::{Mean, sessions_for};
use super::far_end::FarEnd;
use super::place::PairNo;
use super::session::List;
use super::settings::{ClassMask, PoolSettings, SessionCaps, SessionKind};
use super::stats::Counts;

/// A session is taken from a lane that has messages for it only after it was
/// held so many connect times: after one, every third send opened a session.
const HOLD_CONNECTS: u64 = 8;
/// Where connecting takes no time it is held this long all the same: lanes that
/// wait for tokens of one account would hand its sessions round for ever.
const HOLD_MIN: Nanos = Nanos::from_millis(100);
/// The least time between two searches for a session to take.
const TAKE_PAUSE_MIN: Nanos = Nanos::from_millis(1);

const NO_PAIR: u32 = u32::MAX;

/// An account's sessions to one destination that several lanes share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SiteSessions {
    /// All of them; those of a relay only while they carry something there.
    pub live: u32,
    /// Those that are idle, whichever lane used them last.
    pub idle: u32,
}

/// One account.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub id: AccountId,
    /// Removed; stays until its last session is closed.
    pub gone: bool,
    pub caps: SessionCaps,
    /// The kind of its sessions once the last one it has is closed.
    pub next_kind: Option<SessionKind>,
    /// The only tenant it serves.
    pub tenant: Option<u32>,
    /// The classes its limits have a token for.
    pub ready: ClassMask,
    pub blocked: bool,
    /// Some far end was found to welcome fewer sessions than it may have.
    pub is_capped: bool,
    /// Whether the connection rate allows one more opening.
    pub room: bool,
    /// Whether it was at its cap when that was last looked at.
    pub was_at_cap: bool,
    pub counts: Counts,
    /// Where its connections end, if it is a relay.
    pub far_end: FarEnd,
    /// What the send gate sees: ready, not blocked, a slot free, and at a relay
    /// a session idle.
    pub supply: ClassMask,
    /// Behind the lane that was served last, by class.
    pub cursors: [u32; Class::COUNT],
    /// Behind the lane that was opened for last.
    pub open_cursor: u32,
    /// What each class is owed for having waited, in thousandths.
    pub credit: [i32; Class::COUNT],
    pub reply: Mean,
    pub connect: Mean,
    /// The sessions its rate keeps busy, and a tenth, and one.
    pub need: u32,
    /// Idle sessions, idle longest first.
    pub idle: List,
    /// When its oldest idle session is looked at.
    pub idle_at: Mono,
    /// When a search for a session to take is due again.
    pub take_at: Mono,
    /// Until then no idle session was held long enough to be taken, unless more
    /// than this were spared meanwhile.
    pub young: (Mono, u64),
    /// What its pairs can do, by lane.
    pub bits: PairBits,
    pairs: Vec<u32>,
    /// Sessions by site, for lanes that share a destination.
    sites: Vec<SiteSessions>,
}

impl Account {
    pub fn new(id: AccountId, caps: SessionCaps, settings: &PoolSettings) -> Self {
        let mut account = Self {
            id,
            gone: false,
            caps,
            next_kind: None,
            tenant: None,
            ready: ClassMask::NONE,
            blocked: false,
            is_capped: false,
            room: true,
            was_at_cap: false,
            counts: Counts::default(),
            far_end: FarEnd::default(),
            supply: ClassMask::NONE,
            cursors: [0; Class::COUNT],
            open_cursor: 0,
            credit: [0; Class::COUNT],
            reply: Mean::new(settings.reply_hint),
            connect: Mean::new(settings.connect_hint),
            need: 0,
            idle: List::EMPTY,
            idle_at: Mono::NEVER,
            take_at: Mono::NEVER,
            young: (Mono(0), 0),
            bits: PairBits::default(),
            pairs: Vec::new(),
            sites: Vec::new(),
        };
        account.measure();
        account
    }

    /// Works out anew how many sessions it needs.
    pub fn measure(&mut self) {
        let occupied = self.reply.get() + self.connect_share();
        self.need = sessions_for(self.caps.rate_milli, 11, occupied).saturating_add(1);
    }

    pub fn is_slots(&self) -> bool {
        self.caps.kind == SessionKind::Slots
    }

    /// Whether its connections carry messages for any lane.
    pub fn is_relay(&self) -> bool {
        self.caps.kind == SessionKind::RelayConnections
    }

    pub fn pair(&self, col: usize) -> Option<PairNo> {
        let no = self.pairs.get(col).copied()?;
        (no != NO_PAIR).then_some(PairNo(no))
    }

    pub fn put_pair(&mut self, col: usize, pair: Option<PairNo>) {
        if self.pairs.len() <= col {
            if pair.is_none() {
                return;
            }
            self.pairs.resize(col + 1, NO_PAIR);
        }
        if let Some(slot) = self.pairs.get_mut(col) {
            *slot = pair.map_or(NO_PAIR, |pair| pair.0);
        }
    }

    /// Its sessions to the lanes of one site.
    pub fn at_site(&self, site: u32) -> SiteSessions {
        self.sites.get(site as usize).copied().unwrap_or_default()
    }

    pub fn set_at_site(&mut self, site: u32, sessions: SiteSessions) {
        let at = site as usize;
        if self.sites.len() <= at {
            if sessions == SiteSessions::default() {
                return;
            }
            self.sites.resize(at + 1, SiteSessions::default());
        }
        if let Some(slot) = self.sites.get_mut(at) {
            *slot = sessions;
        }
    }

    pub fn supply_now(&self) -> ClassMask {
        let lacks_session = match self.caps.kind {
            SessionKind::Connections => false,
            SessionKind::RelayConnections => self.counts.idle == 0,
            SessionKind::Slots => self.counts.busy >= self.caps.max_connections,
        };
        if self.blocked || self.gone || self.next_kind.is_some() || lacks_session {
            ClassMask::NONE
        } else {
            self.ready
        }
    }

    fn connects(&self) -> bool {
        let backs_off = self.far_end.backoff_until.is_some();
        let stops = self.blocked || self.gone || self.next_kind.is_some();
        self.room && !stops && !self.is_slots() && !backs_off
    }

    /// Whether it may open one more: below its cap, and not more at once than
    /// its rate can use.
    pub fn has_room(&self) -> bool {
        let cap = self.caps.max_connections.min(self.far_end.cap);
        if !self.connects() || self.counts.live() >= cap {
            return false;
        }
        if self.is_relay() && !self.relay_has_room() {
            return false;
        }
        let spare = self.need.saturating_sub(self.counts.busy);
        let at_once = spare.max(1 + self.need / 8);
        self.counts.opening < at_once
    }

    /// Whether one more connection to a relay helps: none that is open could
    /// carry the message, and a relay that failed is asked by one at a time.
    fn relay_has_room(&self) -> bool {
        let Counts { opening, idle, .. } = self.counts;
        let serving = self.counts.serving();
        let fails = self.far_end.failures > 0 && opening > 0;
        idle == 0 && !fails && (serving == 0 || self.is_hungry())
    }

    /// Whether one more session would help its rate: it has fewer than it
    /// needs, or tokens even for low that no session carries.
    pub fn is_hungry(&self) -> bool {
        self.counts.serving() < self.need || self.ready.contains(Class::Low)
    }

    /// Whether it is at its cap and could open if an idle session made way.
    pub fn is_full(&self) -> bool {
        self.at_cap() && self.counts.idle > 0
    }

    /// Whether it is at its cap and could open for another lane if a session
    /// made way.
    pub fn at_cap(&self) -> bool {
        !self.is_relay() && self.connects() && self.counts.live() == self.caps.max_connections
    }

    /// A message's share of the time it takes to connect.
    pub fn connect_share(&self) -> Nanos {
        Nanos(self.connect.get().0 / u64::from(self.caps.messages_per_session.max(1)))
    }

    /// After how long a search for a session to take is repeated: never at the
    /// same instant, however fast connecting is.
    pub fn take_pause(&self) -> Nanos {
        self.connect.get().max(TAKE_PAUSE_MIN)
    }

    /// How long a lane keeps a session against others.
    pub fn hold(&self) -> Nanos {
        self.connect.get().times(HOLD_CONNECTS).max(HOLD_MIN)
    }
}

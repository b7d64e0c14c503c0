//! What a pool tells of itself.

use crate::class::Class;
use crate::handle::{AccountId, LaneId};
use crate::time::Mono;

use super::place::{Col, Row};
use super::{ClassMask, Pool, SessionKind};

/// Sessions by what they are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connecting.
    pub opening: u32,
    /// Without a message.
    pub idle: u32,
    /// Waiting for a reply.
    pub busy: u32,
    /// Told to close, not yet closed.
    pub closing: u32,
}

impl Counts {
    /// All that count against the caps.
    pub const fn live(self) -> u32 {
        self.opening + self.idle + self.busy + self.closing
    }

    /// Those that the far end has let in.
    pub const fn open(self) -> u32 {
        self.idle + self.busy
    }

    /// Those that carry messages, now or soon.
    pub const fn serving(self) -> u32 {
        self.opening + self.idle + self.busy
    }
}

/// How much work a pool has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Searches for a partner.
    pub searches: u64,
    /// Candidates looked at in them.
    pub looks: u64,
    /// Messages that were given a session.
    pub sends: u64,
    /// Sessions opened.
    pub openings: u64,
    /// Sessions taken from one lane for another.
    pub taken: u64,
}

impl Pool {
    /// The classes for which some lane wants an account, now or once it is no
    /// longer paced.
    pub fn wanted(&self) -> ClassMask {
        let classes = Class::ALL.into_iter().zip(self.wanting);
        let wanted = classes.filter(|(_, lanes)| *lanes > 0);
        wanted.fold(ClassMask::NONE, |all, (class, _)| all.with(class))
    }

    /// From when on tokens of an account, or of an account at a lane, are of use:
    /// where it has a session, or one on its way, and at a lane also where it could
    /// open one, since it opens none there while the lane's limits let nothing
    /// through. Until then they would lapse here, and another node may have one.
    /// [`Mono::NEVER`] while it is held: whoever lets it go asks again.
    pub fn tokens_usable_from(&self, id: AccountId, lane: Option<LaneId>) -> Mono {
        let Some(row) = self.row(id) else {
            return Mono::NEVER;
        };
        let account = self.account(row);
        let has_session = match (account.caps.kind, lane.and_then(|lane| self.col(lane))) {
            (SessionKind::Slots, _) | (SessionKind::RelayConnections, Some(_)) => true,
            (SessionKind::Connections, Some(col)) => {
                let has_session = match self.lane(col).site {
                    Some(site) => account.at_site(site).live > 0,
                    None => self.serving_here(row, col) > 0,
                };
                if !has_session {
                    return self.opens_from(row, col);
                }
                true
            }
            (SessionKind::Connections | SessionKind::RelayConnections, None) => {
                account.counts.serving() > 0
            }
        };
        match has_session || account.next_kind.is_some() {
            true => Mono(0),
            false => Mono::NEVER,
        }
    }

    /// From when on an account could open a session to a lane, but for its limits.
    fn opens_from(&self, row: Row, col: Col) -> Mono {
        let account = self.account(row);
        let pair = account.pair(col.index()).map(|no| self.pair(no));
        let is_held = pair.is_some_and(|pair| pair.held);
        if account.blocked || account.gone || is_held || !self.serves(row, col) {
            return Mono::NEVER;
        }
        let backs_off = pair.and_then(|pair| pair.far_end.backoff_until);
        backs_off.unwrap_or(Mono(0))
    }

    /// Whether messages that wait have what they need of sessions to use tokens of
    /// an account, or of an account at a lane, as soon as all limits have some: a
    /// session that was opened, or at a lane, where only its limits may keep it from
    /// that, one that would be.
    pub fn has_use_for_tokens(&self, id: AccountId, lane: Option<LaneId>) -> bool {
        let Some(row) = self.row(id) else {
            return false;
        };
        let account = self.account(row);
        let cols = (0..self.lanes.len() as u32).map(Col);
        match (account.caps.kind, lane.map(|lane| self.col(lane))) {
            (SessionKind::Slots, _) => true,
            (_, Some(None)) => false,
            (kind, Some(Some(col))) => {
                let is_open = match kind {
                    SessionKind::RelayConnections => account.counts.open() > 0,
                    _ => self.is_open_at(row, col),
                };
                is_open || self.would_open(row, col)
            }
            (SessionKind::RelayConnections, None) => account.counts.open() > 0,
            (SessionKind::Connections, None) if account.counts.open() == 0 => false,
            (SessionKind::Connections, None) => cols
                .filter(|col| !self.lane(*col).demand.is_empty())
                .any(|col| self.is_open_at(row, col)),
        }
    }

    /// Whether a connection was opened that carries messages of a lane.
    fn is_open_at(&self, row: Row, col: Col) -> bool {
        let account = self.account(row);
        let lanes = std::iter::once(col).chain(self.others_of_site(col));
        let mut pairs = lanes.filter_map(|col| account.pair(col.index()));
        pairs.any(|no| self.pair(no).counts.open() > 0)
    }

    /// Whether a session would be opened for a lane now, if its limits let it.
    fn would_open(&self, row: Row, col: Col) -> bool {
        let (account, lane) = (self.account(row), self.lane(col));
        account.has_room() && lane.wants_session() && self.opens_from(row, col) == Mono(0)
    }

    /// Sessions of the whole pool.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Sessions of one account.
    pub fn account_counts(&self, id: AccountId) -> Counts {
        self.row(id)
            .map_or_else(Counts::default, |row| self.account(row).counts)
    }

    /// Sessions of one lane.
    pub fn lane_counts(&self, id: LaneId) -> Counts {
        self.col(id)
            .map_or_else(Counts::default, |col| self.lane(col).counts)
    }

    /// How much work it has done so far.
    pub fn work(&self) -> Work {
        self.work
    }
}

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

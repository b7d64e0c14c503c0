//! What a pool tells of itself.

use crate::class::Class;
use crate::handle::{AccountId, LaneId};

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

    /// Whether tokens of an account, or of an account at a lane, are of use now:
    /// it has a session there, or one on its way. While it has none they would
    /// lapse here, and another node may have one.
    pub fn can_use_tokens(&self, id: AccountId, lane: Option<LaneId>) -> bool {
        let Some(row) = self.row(id) else {
            return false;
        };
        let account = self.account(row);
        if account.next_kind.is_some() {
            return true;
        }
        match (account.caps.kind, lane.and_then(|lane| self.col(lane))) {
            (SessionKind::Slots, _) | (SessionKind::RelayConnections, Some(_)) => true,
            (SessionKind::Connections, Some(col)) => match self.lane(col).site {
                Some(site) => account.at_site(site).live > 0,
                None => self.serving_here(row, col) > 0,
            },
            (SessionKind::Connections | SessionKind::RelayConnections, None) => {
                account.counts.serving() > 0
            }
        }
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

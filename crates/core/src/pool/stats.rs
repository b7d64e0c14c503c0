//! What a pool tells of itself.

use crate::class::Class;
use crate::handle::{AccountId, LaneId};

use super::{ClassMask, Pool};

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

//! The slab of sessions.
//!
//! A session's handle carries its place in the low 20 bits and, above them,
//! how often that place was used before. Places are reused oldest first, so an
//! event that comes late for a closed session finds another generation and is
//! ignored.

use std::collections::VecDeque;

use crate::handle::SessionId;
use crate::time::Mono;

use super::place::{Col, PairNo, Row};

const PLACE_BITS: u32 = 20;
const NONE: u32 = u32::MAX;

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Opening,
    Idle,
    Busy,
    Closing,
}

impl State {
    /// Whether a session in this state carries messages, now or soon.
    pub const fn serves(self) -> bool {
        matches!(self, Self::Opening | Self::Idle | Self::Busy)
    }
}

/// The lists an idle session stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chain {
    /// Of its pair: the last is used first.
    Pair,
    /// Of its account: the first is idle longest.
    Account,
}

/// A list of idle sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    first: u32,
    last: u32,
}

impl List {
    pub const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

const UNLINKED: Link = Link {
    before: NONE,
    after: NONE,
};

/// One session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub state: State,
    pub row: Row,
    /// For whom it opens or carries a message; for a session to a destination
    /// always the same.
    pub pair: Option<PairNo>,
    /// Since when it has been in this state.
    pub since: Mono,
    /// When it became ready.
    pub ready_at: Mono,
    /// Messages it has carried.
    pub used: u32,
    /// The lane for which it is being closed.
    pub yields_to: Option<Col>,
    generation: u32,
    in_pair: Link,
    in_account: Link,
}

impl Session {
    /// The pair for which it opens or carries a message.
    pub fn carried(&self) -> PairNo {
        self.pair
            .expect("a session that opens or carries does so for a pair")
    }
}

/// A session's place in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionNo(pub u32);

/// All sessions of a pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    slab: Vec<Session>,
    free: VecDeque<u32>,
}

impl Sessions {
    /// A place for a new session of `pair`, unless a million are open. It is
    /// free until it is given a state.
    pub fn insert(&mut self, row: Row, pair: PairNo, now: Mono) -> Option<SessionNo> {
        let place = match self.free.pop_front() {
            Some(place) => place,
            None => self.extend()?,
        };
        let session = self.at_mut(SessionNo(place));
        session.row = row;
        session.pair = Some(pair);
        session.since = now;
        session.ready_at = now;
        session.used = 0;
        session.yields_to = None;
        Some(SessionNo(place))
    }

    fn extend(&mut self) -> Option<u32> {
        let place = u32::try_from(self.slab.len()).ok()?;
        if place >> PLACE_BITS != 0 {
            return None;
        }
        self.slab.push(Session {
            state: State::Free,
            row: Row(NONE),
            pair: None,
            since: Mono(0),
            ready_at: Mono(0),
            used: 0,
            yields_to: None,
            generation: 0,
            in_pair: UNLINKED,
            in_account: UNLINKED,
        });
        Some(place)
    }

    pub fn remove(&mut self, no: SessionNo) {
        let session = self.at_mut(no);
        session.state = State::Free;
        session.generation = (session.generation + 1) & (u32::MAX >> PLACE_BITS);
        self.free.push_back(no.0);
    }

    /// The session a handle stands for, if it still exists.
    pub fn find(&self, id: SessionId) -> Option<SessionNo> {
        let place = id.0 & ((1 << PLACE_BITS) - 1);
        let session = self.slab.get(place as usize)?;
        (session.generation == id.0 >> PLACE_BITS && session.state != State::Free)
            .then_some(SessionNo(place))
    }

    pub fn id(&self, no: SessionNo) -> SessionId {
        SessionId(self.at(no).generation << PLACE_BITS | no.0)
    }

    pub fn at(&self, no: SessionNo) -> &Session {
        self.slab
            .get(no.0 as usize)
            .expect("a session number is a place in the slab")
    }

    pub fn at_mut(&mut self, no: SessionNo) -> &mut Session {
        self.slab
            .get_mut(no.0 as usize)
            .expect("a session number is a place in the slab")
    }

    /// Every session that is not free.
    pub fn iter(&self) -> impl Iterator<Item = (SessionNo, &Session)> {
        (0..)
            .map(SessionNo)
            .zip(&self.slab)
            .filter(|(_, session)| session.state != State::Free)
    }

    fn link(&mut self, place: u32, chain: Chain) -> &mut Link {
        let session = self.at_mut(SessionNo(place));
        match chain {
            Chain::Pair => &mut session.in_pair,
            Chain::Account => &mut session.in_account,
        }
    }

    /// Puts a session at the end of a list.
    pub fn push(&mut self, list: &mut List, chain: Chain, no: SessionNo) {
        *self.link(no.0, chain) = Link {
            before: list.last,
            after: NONE,
        };
        if list.last == NONE {
            list.first = no.0;
        } else {
            self.link(list.last, chain).after = no.0;
        }
        list.last = no.0;
    }

    /// Takes a session out of a list it stands in.
    pub fn unlink(&mut self, list: &mut List, chain: Chain, no: SessionNo) {
        let Link { before, after } = std::mem::replace(self.link(no.0, chain), UNLINKED);
        if before == NONE {
            list.first = after;
        } else {
            self.link(before, chain).after = after;
        }
        if after == NONE {
            list.last = before;
        } else {
            self.link(after, chain).before = before;
        }
    }

    pub fn last(list: List) -> Option<SessionNo> {
        (list.last != NONE).then_some(SessionNo(list.last))
    }

    /// The sessions of an account's list, idle longest first.
    pub fn oldest(&self, list: List) -> impl Iterator<Item = SessionNo> {
        let mut next = list.first;
        std::iter::from_fn(move || {
            let no = (next != NONE).then_some(SessionNo(next))?;
            next = self.at(no).in_account.after;
            Some(no)
        })
    }
}

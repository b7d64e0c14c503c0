//! A pool is a gate: it matches accounts that can take a message with lanes
//! that want to send one, over the pairs that have a session idle.
//!
//! A connection to a destination belongs to its account and lane; a connection
//! to a relay and a request slot belong to the account and carry messages for
//! any of its lanes. So there the account has or lacks a session, not the pair.
//!
//! Two matchings have the same shape. The *send* gate matches accounts that
//! are ready with lanes that have a backlog, over pairs that are able (a
//! session idle, the limits of the pair open). The *connect* gate matches
//! accounts that have room for a session with lanes that are short of one, over
//! pairs that may open (no back-off, below the cap, none idle). The gate knows
//! no limit algorithm: it is told bits. Bits are kept by row and by column, and
//! only a bit that flips starts a search, so waiting costs nothing.
//!
//! After each call no supply, demand and pair bit are set together unless the
//! row or the column is marked, or a timer is set. Bits are dense: above about
//! 4,000 lanes and many accounts, memory (6 bits a pair and side) speaks for
//! more pools.
//!
//! Reading order: `settings`, `stats`, `account`, `lane`, `pair`, `far_end`, `session`, `kind`,
//! `site` (who serves whom), `size` (who can take how much), `refresh` (bits follow state), `send`, `pace`, `connect`, `takeover`, `turnover` (the
//! life of a session), [`rest`] (what a lane leaves behind), `timer`, `check`, `unserved`; below them `bits`, `mark`, `place`, `estimate`.

mod account;
mod bits;
#[cfg(any(test, debug_assertions))]
mod check;
mod connect;
mod estimate;
mod far_end;
mod kind;
mod lane;
mod mark;
mod pace;
mod pair;
mod place;
mod refresh;
pub mod rest;
mod send;
mod session;
mod settings;
mod site;
mod size;
mod stats;
mod takeover;
mod timer;
mod turnover;
mod unserved;
pub mod welcome;

use std::collections::VecDeque;

use crate::class::Class;
use crate::free_numbers::FreeNumbers;
use crate::handle::{AccountId, LaneId, SessionId};
use crate::time::Mono;

use self::account::Account;
use self::bits::{Bits, ClassBits, PairBits};
use self::far_end::FarEnd;
use self::lane::Lane;
use self::mark::Marks;
use self::pair::{Opens, Pair};
use self::place::{Col, PairNo, Places, Row};
use self::session::{Session, Sessions, State};
use self::size::Sizes;
use self::timer::Timers;

pub use self::settings::{ClassMask, PoolSettings, Prefer, SessionCaps, SessionKind};
pub use self::stats::{Counts, Work};
pub use self::unserved::Carrier;

/// Accounts that can stand in for one another, and the lanes they serve.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    settings: PoolSettings,
    rows: Places,
    cols: Places,
    accounts: Vec<Account>,
    lanes: Vec<Lane>,
    free_rows: Vec<Row>,
    free_cols: FreeNumbers,
    /// Columns that are a lane's.
    lanes_used: usize,
    pairs: Vec<Pair>,
    free_pairs: FreeNumbers,
    sessions: Sessions,
    /// Lanes of one destination, which share the cap per destination.
    sites: Vec<Vec<Col>>,
    free_sites: FreeNumbers,
    sizes: Sizes,
    /// How many lanes have a demand, by class.
    wanting: [u32; Class::COUNT],

    supply: ClassBits,
    demand: ClassBits,
    room: Bits,
    hungry: Bits,
    full: Bits,
    short: Bits,
    /// Lanes with more messages than sessions on their way, whether or not
    /// connections to their destination may be opened.
    waiting: Bits,
    urgent: Bits,
    /// Accounts whose connections carry messages for any lane.
    relays: Bits,
    rich: Bits,

    /// What each lane has had, in cost, and how far the pool has come.
    tags: Vec<u64>,
    virtual_time: u64,
    /// When each account was last used, and last opened a session, as numbers
    /// of a sequence.
    last_used: Vec<u64>,
    last_opened: Vec<u64>,
    sequence: u64,
    rich_cursor: u32,

    sending: Marks,
    connecting: Marks,
    /// How often a session became idle, or stayed so, without a message for it.
    spared: u64,
    /// Lanes that began to wait since the time was last told.
    began_to_wait: Vec<Col>,
    /// Slots that were taken from one lane for another.
    freed: VecDeque<(Row, Col)>,
    closing: VecDeque<SessionId>,
    /// Sessions on their way and when they count as failed, oldest first.
    openings: VecDeque<(Mono, SessionId)>,
    timers: Timers,

    counts: Counts,
    /// Connections that are bound to a destination, and how many may be.
    bound: u64,
    cap: u64,
    /// The sessions, bound to no lane, that one lane could have.
    slots: u64,
    work: Work,
}

impl Pool {
    /// A pool without accounts and lanes.
    pub fn new(settings: PoolSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Adds an account, or changes the caps of one that is there. A new one is
    /// ready for nothing until told otherwise.
    pub fn add_account(&mut self, id: AccountId, caps: SessionCaps) {
        if let Some(row) = self.row(id) {
            self.change_caps(row, caps);
            return;
        }
        let account = Account::new(id, caps, &self.settings);
        let row = self
            .free_rows
            .pop()
            .unwrap_or(Row(self.accounts.len() as u32));
        if row.index() == self.accounts.len() {
            self.accounts.push(account);
            self.last_used.push(0);
            self.last_opened.push(0);
        } else {
            *self.account_mut(row) = account;
        }
        let (rows, cols) = (self.accounts.len(), self.lanes.len());
        self.supply.grow(rows);
        self.room.grow(rows);
        self.hungry.grow(rows);
        self.full.grow(rows);
        self.relays.grow(rows);
        self.relays.set(row.0, self.account(row).is_relay());
        self.sending.grow_rows(rows);
        self.connecting.grow_rows(rows);
        self.account_mut(row).bits.grow(cols);
        for lane in &mut self.lanes {
            lane.bits.grow(rows);
        }
        self.sizes.set(row, u32::MAX);
        for col in (0..cols as u32).map(Col) {
            self.lane_mut(col).sizes.set(row, u32::MAX);
            self.put_unmet(row, col);
        }
        self.rows.put(id.0, Some(row.0));
        self.cap += caps.bound();
        self.slots += caps.slots();
        self.refresh_account(row);
    }

    /// Takes an account out. Its idle sessions are closed; busy ones close when
    /// their reply arrives.
    pub fn remove_account(&mut self, now: Mono, id: AccountId) {
        let Some(row) = self.row(id) else { return };
        self.rows.put(id.0, None);
        let caps = self.account(row).caps;
        self.cap -= caps.bound();
        self.slots -= caps.slots();
        self.account_mut(row).gone = true;
        self.refresh_account(row);
        self.retire_where(now, |_, session| session.row == row);
        self.free_row_if_done(row);
    }

    /// Adds a lane, without a backlog.
    pub fn add_lane(&mut self, id: LaneId) {
        if self.col(id).is_none() {
            self.insert_lane(Lane::new(id, &self.settings));
        }
    }

    fn insert_lane(&mut self, lane: Lane) -> Col {
        let id = lane.id;
        self.lanes_used += 1;
        let end = self.lanes.len();
        let col = Col(self.free_cols.take(end).unwrap_or(end as u32));
        if col.index() == self.lanes.len() {
            self.lanes.push(lane);
            self.tags.push(self.virtual_time);
        } else {
            *self.lane_mut(col) = lane;
            self.set_tag(col, self.virtual_time);
        }
        let (rows, cols) = (self.accounts.len(), self.lanes.len());
        self.demand.grow(cols);
        self.short.grow(cols);
        self.waiting.grow(cols);
        self.urgent.grow(cols);
        self.rich.grow(cols);
        self.sending.grow_cols(cols);
        self.connecting.grow_cols(cols);
        self.lane_mut(col).bits.grow(rows);
        for account in &mut self.accounts {
            account.bits.grow(cols);
        }
        for row in (0..rows as u32).map(Row) {
            self.put_unmet(row, col);
        }
        self.cols.put(id.0, Some(col.0));
        self.refresh_lane(col);
        col
    }

    /// Takes a lane out. Its idle sessions are closed; busy ones close when
    /// their reply arrives. Those of relays stay for other lanes.
    pub fn remove_lane(&mut self, now: Mono, id: LaneId) {
        let Some(col) = self.col(id) else { return };
        self.cols.put(id.0, None);
        self.lane_mut(col).gone = true;
        self.refresh_lane(col);
        if self.lane(col).counts.live() > 0 {
            self.retire_where(now, |pool, session| {
                session.pair.is_some_and(|pair| pool.pair(pair).col == col)
            });
        }
        self.free_col_if_done(col);
        self.cut();
    }

    fn change_caps(&mut self, row: Row, caps: SessionCaps) {
        let account = self.account_mut(row);
        let wanted = caps;
        let kind = account.caps.kind;
        let caps = SessionCaps { kind, ..caps };
        let before = std::mem::replace(&mut account.caps, caps);
        account.measure();
        account.idle_at = Mono::NEVER;
        self.slots = self.slots - before.slots() + caps.slots();
        self.cap = self.cap - before.bound() + caps.bound();
        let met: Vec<PairNo> = (0..self.lanes.len())
            .filter_map(|col| self.account(row).pair(col))
            .collect();
        for pair in met {
            self.refresh_pair(pair);
        }
        self.begin_change(row, wanted);
        self.time_excess(row);
        self.time_idle(row);
    }

    fn retire_where(&mut self, now: Mono, chosen: impl Fn(&Self, &Session) -> bool) {
        let sessions: Vec<_> = self
            .sessions
            .iter()
            .filter(|(_, session)| matches!(session.state, State::Idle | State::Opening))
            .filter(|(_, session)| chosen(self, session))
            .map(|(no, _)| no)
            .collect();
        for no in sessions {
            self.retire(now, no);
        }
    }

    /// Frees the row of a removed account once nothing refers to it.
    fn free_row_if_done(&mut self, row: Row) {
        let account = self.account(row);
        if !account.gone || account.counts.live() > 0 {
            return;
        }
        for col in (0..self.lanes.len() as u32).map(Col) {
            self.forget_pair(row, col);
        }
        self.account_mut(row).bits = PairBits::default();
        self.free_rows.push(row);
    }

    /// Frees the column of a removed lane once nothing refers to it.
    fn free_col_if_done(&mut self, col: Col) {
        let lane = self.lane(col);
        if !lane.gone || lane.is_freed || lane.counts.live() + lane.promised > 0 {
            return;
        }
        for row in (0..self.accounts.len() as u32).map(Row) {
            self.forget_pair(row, col);
        }
        self.leave_site(col);
        self.free_col(col);
    }

    fn forget_pair(&mut self, row: Row, col: Col) {
        self.put_bits(row, col, ClassMask::NONE, Opens::No);
        if let Some(pair) = self.account(row).pair(col.index()) {
            self.account_mut(row).put_pair(col.index(), None);
            let gone = self.pair_mut(pair);
            (gone.is_free, gone.far_end) = (true, FarEnd::default());
            self.free_pairs.give(pair.0);
        }
    }

    fn put_bits(&mut self, row: Row, col: Col, able: ClassMask, opens: Opens) {
        self.account_mut(row).bits.put(col.0, able, opens);
        self.lane_mut(col).bits.put(row.0, able, opens);
    }

    fn row(&self, id: AccountId) -> Option<Row> {
        self.rows.get(id.0).map(Row)
    }

    fn col(&self, id: LaneId) -> Option<Col> {
        self.cols.get(id.0).map(Col)
    }

    fn account(&self, row: Row) -> &Account {
        self.accounts.get(row.index()).expect("a row is an account")
    }

    fn account_mut(&mut self, row: Row) -> &mut Account {
        self.accounts
            .get_mut(row.index())
            .expect("a row is an account")
    }

    fn lane(&self, col: Col) -> &Lane {
        self.lanes.get(col.index()).expect("a column is a lane")
    }

    fn lane_mut(&mut self, col: Col) -> &mut Lane {
        self.lanes.get_mut(col.index()).expect("a column is a lane")
    }

    fn pair(&self, no: PairNo) -> &Pair {
        self.pairs
            .get(no.0 as usize)
            .expect("a pair is in the slab")
    }

    fn pair_mut(&mut self, no: PairNo) -> &mut Pair {
        self.pairs
            .get_mut(no.0 as usize)
            .expect("a pair is in the slab")
    }

    /// The pair of an account and a lane, made if they never met.
    fn meet(&mut self, row: Row, col: Col) -> PairNo {
        if let Some(pair) = self.account(row).pair(col.index()) {
            return pair;
        }
        let (able, opens) = self.unmet(row, col);
        let fresh = Pair::new(row, col, able, opens);
        let end = self.pairs.len();
        let no = PairNo(self.free_pairs.take(end).unwrap_or(end as u32));
        match no.0 as usize == end {
            true => self.pairs.push(fresh),
            false => *self.pair_mut(no) = fresh,
        }
        self.account_mut(row).put_pair(col.index(), Some(no));
        no
    }
}

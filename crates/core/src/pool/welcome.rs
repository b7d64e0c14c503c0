//! How many sessions a far end welcomes, and how many messages on each, where it
//! was found to refuse more.
//!
//! Such a refusal is no failure: what is open goes on, and nobody backs off.
//! Only if nothing is open is it one, since then there is nothing to go on with.

use crate::adapt::connections::Connections;
use crate::handle::{AccountId, LaneId, SessionId};
use crate::time::Mono;

use super::Pool;
use super::far_end::FarEndOf;
use super::session::State;
use super::timer::Timer;

/// What was found out of an account at a destination, or of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// So many sessions are welcome; none is too many as far as is known if
    /// nothing.
    pub sessions: Option<u32>,
    /// So many messages on each.
    pub messages: Option<u32>,
    /// When one session more is tried.
    pub try_at: Mono,
}

impl Pool {
    /// Whose session is being opened, for which lane, and since when.
    pub fn opening_of(&self, id: SessionId) -> Option<(AccountId, LaneId, Mono)> {
        let session = self.sessions.at(self.find(id, State::Opening)?);
        let pair = self.pair(session.carried());
        let (account, lane) = (self.account(pair.row).id, self.lane(pair.col).id);
        Some((account, lane, session.since))
    }

    /// A session that was being opened was refused because there are too many.
    /// How many are welcome, if that is news.
    pub fn session_unwelcome(&mut self, now: Mono, id: SessionId) -> Option<u32> {
        let Some(no) = self.find(id, State::Opening) else {
            self.session_closed(now, id);
            return None;
        };
        let since = self.sessions.at(no).since;
        let of = self.far_end_of_session(no);
        let open = self.open_at(of);
        if open == 0 {
            self.session_failed(now, id);
            return None;
        }
        let news = self.sink(now, of, since, open);
        self.drop_session(now, no);
        news
    }

    /// A message sent at `since` was refused because its session is one too
    /// many. How many are welcome, if that is news.
    pub fn session_crowded(&mut self, now: Mono, id: SessionId, since: Mono) -> Option<u32> {
        let of = self.far_end_of_session(self.find(id, State::Busy)?);
        let others = self.open_at(of).saturating_sub(1);
        self.sink(now, of, since, others)
    }

    /// A message was refused because its session carried enough. How many
    /// messages are welcome on one, if that is news.
    pub fn session_full(&mut self, now: Mono, id: SessionId) -> Option<u32> {
        let no = self.find(id, State::Busy)?;
        let carried = self.sessions.at(no).used.saturating_sub(1);
        let of = self.far_end_of_session(no);
        let welcome = self.welcome(of);
        let is_news = welcome.full(now, carried);
        let messages = welcome.messages();
        self.far_end_mut(of).messages = messages;
        is_news.then_some(messages)
    }

    /// What was found out of an account at a lane's destination.
    pub fn welcome_of(&self, account: AccountId, lane: LaneId) -> Option<Welcome> {
        let (row, col) = (self.row(account)?, self.col(lane)?);
        let far_end = match self.account(row).is_relay() {
            true => &self.account(row).far_end,
            false => &self.pair(self.account(row).pair(col.index())?).far_end,
        };
        let welcome = far_end.welcome.as_ref()?;
        let known = |most: u32| (most < u32::MAX).then_some(most);
        Some(Welcome {
            sessions: known(far_end.cap),
            messages: known(far_end.messages),
            try_at: welcome.try_at(),
        })
    }

    /// One more was opened: if that is more than was thought welcome, it is.
    pub(super) fn welcomed(&mut self, now: Mono, of: FarEndOf) {
        if self.far_end(of).welcome.is_none() {
            return;
        }
        // The one that was opened is not yet counted as open.
        let open = self.open_at(of) + 1;
        let welcome = self.welcome(of);
        welcome.opened(now, open);
        let messages = welcome.messages();
        self.far_end_mut(of).messages = messages;
        self.follow(now, of);
    }

    /// One more than was welcome may be tried.
    pub(super) fn welcome_due(&mut self, now: Mono, of: FarEndOf) {
        if self.far_end(of).welcome.is_some() {
            self.follow(now, of);
        }
    }

    /// Sessions that the far end has let in: of all lanes of one destination, or
    /// all of a relay.
    pub(super) fn open_at(&self, of: FarEndOf) -> u32 {
        let pair = match of {
            FarEndOf::Account(row) => return self.account(row).counts.open(),
            FarEndOf::Pair(no) => self.pair(no),
        };
        let members = self.lane(pair.col).site.and_then(|site| {
            let members = self.sites.get(site as usize)?;
            let account = self.account(pair.row);
            let pairs = members.iter().filter_map(|col| account.pair(col.index()));
            Some(pairs.map(|no| self.pair(no).counts.open()).sum())
        });
        members.unwrap_or_else(|| pair.counts.open())
    }

    fn sink(&mut self, now: Mono, of: FarEndOf, since: Mono, open: u32) -> Option<u32> {
        let is_news = self.welcome(of).refused(now, since, open);
        self.follow(now, of);
        is_news.then_some(self.far_end(of).cap)
    }

    fn welcome(&mut self, of: FarEndOf) -> &mut Connections {
        let most = match of {
            FarEndOf::Account(row) => self.account(row).caps.max_connections,
            FarEndOf::Pair(no) => {
                let row = self.pair(no).row;
                let account = self.account_mut(row);
                account.is_capped = true;
                account.caps.per_destination
            }
        };
        let welcome = self
            .far_end_mut(of)
            .welcome
            .get_or_insert_with(|| Box::new(Connections::new(most)));
        welcome.allow(most);
        welcome
    }

    /// Has a pair, or a relay, go by what was found out.
    fn follow(&mut self, now: Mono, of: FarEndOf) {
        let far_end = self.far_end_mut(of);
        let Some(welcome) = &far_end.welcome else {
            return;
        };
        let (cap, try_at) = (welcome.cap(now), welcome.try_at());
        far_end.cap = cap;
        // Timers are not taken back: one for each time, not for each session.
        if now < try_at && try_at != Mono::NEVER && far_end.tries_at != try_at {
            far_end.tries_at = try_at;
            self.timers.set(try_at, Timer::Welcome(of));
        }
        self.refresh_far_end(of);
    }
}

//! An account that becomes another: a relay in place of mail exchangers, or
//! connections in place of request slots.
//!
//! The sessions that it has cannot do what those of the other kind do. So it
//! sends nothing and opens none until the last one is closed. Of one that may
//! have fewer sessions than it has, the idle ones beyond are closed.

use crate::time::Mono;

use super::Pool;
use super::place::{Col, Row};
use super::settings::SessionCaps;
use super::timer::Timer;

impl Pool {
    /// Has an account change the kind of its sessions, unless it is of that kind.
    pub(super) fn begin_change(&mut self, row: Row, caps: SessionCaps) {
        let account = self.account_mut(row);
        account.next_kind = (caps.kind != account.caps.kind).then_some(caps.kind);
        if account.next_kind.is_some() {
            self.timers.set(Mono(0), Timer::Change(row));
        }
        self.refresh_account(row);
    }

    /// Has the sessions closed soon that an account has beyond its cap: those
    /// that are idle would keep it from opening any for a lane that waits.
    pub(super) fn time_excess(&mut self, row: Row) {
        let account = self.account(row);
        if account.counts.serving() > account.caps.max_connections && !account.is_slots() {
            self.timers.set(Mono(0), Timer::Change(row));
        }
    }

    /// Closes what is idle or being opened; the rest closes when its reply
    /// arrives.
    pub(super) fn change_due(&mut self, now: Mono, row: Row) {
        if self.account(row).next_kind.is_some() {
            self.retire_where(now, |_, session| session.row == row);
            self.change_if_done(row);
            return;
        }
        let account = self.account(row);
        let excess = account.counts.serving();
        let excess = excess.saturating_sub(account.caps.max_connections) as usize;
        let idle: Vec<_> = self.sessions.oldest(account.idle).take(excess).collect();
        for no in idle {
            self.retire(now, no);
        }
    }

    /// Changes the kind of an account once its last session is closed.
    pub(super) fn change_if_done(&mut self, row: Row) {
        let account = self.account_mut(row);
        let Some(kind) = account.next_kind else {
            return;
        };
        if account.counts.live() > 0 || account.gone {
            return;
        }
        account.next_kind = None;
        let before = account.caps;
        account.caps.kind = kind;
        let (after, is_relay) = (account.caps, account.is_relay());
        self.cap = self.cap - before.bound() + after.bound();
        self.slots = self.slots - before.slots() + after.slots();
        self.relays.set(row.0, is_relay);
        for col in (0..self.lanes.len() as u32).map(Col) {
            match self.account(row).pair(col.index()) {
                Some(pair) => self.refresh_pair(pair),
                None => self.put_unmet(row, col),
            }
        }
        self.refresh_account(row);
        self.mark_row(row);
    }
}

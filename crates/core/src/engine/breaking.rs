//! What replies say about whoever carried them, and whom that breaks.

use super::Engine;
use super::action::{Action, Alert, Standstill};
use super::desk::{Heard, Turn};
use super::permits::Permit;
use crate::breaker::Signal;
use crate::breaker::signal::is_refusal;
use crate::outcome::Outcome;
use crate::time::Now;

impl Engine {
    /// Tells the breakers of a reply, and people of what that changed.
    pub(super) fn tell_breakers(&mut self, now: &Now, permit: &Permit, outcome: &Outcome) {
        self.tell_breakers_that(now, permit, Signal::of(outcome), is_refusal(outcome));
    }

    /// A delivery ended that says nothing of the far end. Who waits for it to
    /// learn something waits for another.
    pub(super) fn tell_breakers_nothing(&mut self, now: &Now, permit: &Permit) {
        self.tell_breakers_that(now, permit, Signal::Silent, false);
    }

    fn tell_breakers_that(&mut self, now: &Now, permit: &Permit, signal: Signal, refused: bool) {
        let desk = &mut self.counter.desk;
        if signal == Signal::Fine && !refused && !desk.has_breakers() {
            return;
        }
        let heard = Heard {
            account: permit.account,
            lane: Some(permit.lane),
            sent_at: permit.sent_at,
            signal,
            refused,
        };
        for turn in desk.heard(now.mono, heard) {
            self.turned(now, permit, turn);
        }
    }

    fn turned(&mut self, now: &Now, permit: &Permit, turn: Turn) {
        let desk = &self.counter.desk;
        let Some(account) = desk.account(permit.account) else {
            return;
        };
        let account = account.spec.id.clone();
        let destination = |lane| desk.lane(lane).destination.clone();
        let alert = match turn {
            Turn::Broken { lane, until, why } => Alert::Broken {
                account,
                destination: lane.map(destination),
                until: now.wall_at(until),
                why,
            },
            Turn::Restored { lane } => Alert::Restored {
                account,
                destination: lane.map(destination),
            },
        };
        match turn {
            Turn::Broken {
                lane: None,
                until,
                why: Standstill::Refusals,
            } => self.write_block(now, permit.account, until),
            Turn::Broken { lane, until, .. } => {
                self.write_breaker(now, permit.account, lane, until);
            }
            Turn::Restored { .. } => {}
        }
        self.counter.actions.push(Action::Alert { alert });
    }
}

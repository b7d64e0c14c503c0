//! What goes back to the ledger: tokens that nobody wants, and those that would
//! end unused.

use std::sync::Arc;

use super::Feed;
use crate::engine::action::{Action, GiveBack, Receipt};
use crate::engine::event::LeaseAnswer;
use crate::limit::{Kind, Limit};
use crate::time::{Mono, Nanos, Now};

/// Tokens that nobody wants go back after this part of their life, in
/// thousandths: early enough that they are still worth something.
const IDLE_AGE: u64 = 500;
/// What is wanted, and waits for something else, goes back after this part.
const WAITED_AGE: u64 = 750;

impl Feed {
    /// Gives back what was leased and will hardly be used. When to look again.
    pub(super) fn give_back(
        &self,
        now: &Now,
        limit: &mut Limit,
        is_wanted: bool,
        actions: &mut Vec<Action>,
    ) -> Mono {
        let is_window = matches!(
            limit.shape().kind,
            Kind::SlidingWindow | Kind::CalendarWindow
        );
        let age = match (is_wanted, is_window) {
            (false, _) => IDLE_AGE,
            // What ends unused is lost to a window for all of its length. A flow
            // that waits for a slower limit meanwhile would empty it.
            (true, true) => WAITED_AGE,
            // Whoever stands here, or will come, may count on what is there.
            (true, false) => return Mono::NEVER,
        };
        for grant in limit.drain_older(now, age) {
            if let Some(receipt) = grant.receipt {
                self.give(limit, (grant.tokens, grant.spacing), receipt, actions);
            }
        }
        limit.ages_at(now, age).unwrap_or(Mono::NEVER)
    }

    /// Gives back what came too late, or cannot be trusted.
    pub(super) fn return_unused(
        &self,
        limit: &Limit,
        answer: LeaseAnswer,
        actions: &mut Vec<Action>,
    ) {
        if let LeaseAnswer::Leased {
            tokens,
            spacing,
            receipt,
            ..
        } = answer
            && limit.holds().is_none()
            && limit.is_leased()
        {
            self.give(limit, (tokens, spacing), receipt, actions);
        }
    }

    fn give(
        &self,
        limit: &Limit,
        (tokens, spacing): (u32, Nanos),
        receipt: Receipt,
        actions: &mut Vec<Action>,
    ) {
        // Of a spaced run nothing comes back: the next one begins when its time
        // is over.
        if tokens > 0 && spacing == Nanos::ZERO {
            actions.push(Action::GiveBack(GiveBack {
                key: Arc::clone(&self.key),
                spec: limit.spec().clone(),
                tokens,
                receipt,
            }));
        }
    }
}

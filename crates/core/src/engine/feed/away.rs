//! What a limit may spend while its ledger is away.

use super::{Feed, parting_max};
use crate::class::Class;
use crate::limit::{Grant, Limit};
use crate::policy::policy::WhenAway;
use crate::time::{Nanos, Now};

/// How long a limit that is open while its ledger is away spends at a time.
const OPEN_LIFE: Nanos = Nanos::from_millis(200);
/// What an open limit spends while its ledger is away: more than anybody can.
const OPEN_TOKENS: u32 = u32::MAX / 2;

impl Feed {
    /// What the policy lets this node spend while the ledger is away.
    pub(super) fn grant_alone(&mut self, now: &Now, limit: &mut Limit, class: Class) {
        let tokens = match self.when_away {
            WhenAway::Closed => return,
            WhenAway::Open => OPEN_TOKENS,
            // What was held goes on, and nothing is added to it.
            WhenAway::LocalShare if limit.holds().is_some() => limit.spec().capacity().min(
                limit
                    .holds()
                    .map_or(0, |holds| holds.in_use().max(holds.slots_before())),
            ),
            WhenAway::LocalShare => self.share.lot(now.mono),
        };
        let (usable_from, ends_at) = (now.mono, now.mono + OPEN_LIFE);
        if limit.holds().is_some() {
            limit.hold(tokens, ends_at);
            return;
        }
        limit.grant(
            now,
            Grant {
                tokens,
                class,
                usable_from,
                ends_at,
                spacing: Nanos::ZERO,
                cost: 1,
                asked_at: now.mono,
                asked: now.clocks(),
                parting_max: parting_max(OPEN_LIFE),
                receipt: None,
            },
        );
    }
}

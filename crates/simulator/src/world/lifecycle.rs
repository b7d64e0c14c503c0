//! How nodes start, stop and die.

use std::cmp::Reverse;

use outflow_core::account::AccountSpec;
use outflow_core::engine::event::Event;
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;
use outflow_pipeline::shutdown::Phase;

use super::resolver::SimResolver;
use super::script::Happening;
use super::{RESUBMIT_AFTER, World, setup};
use crate::trace::{NodeNo, Observer, Trace};

impl<O: Observer> World<'_, O> {
    /// A node that was asked to stop is gone once nothing is in flight.
    pub(super) fn stopped(&mut self, number: usize) {
        let Some(player) = self.players.get(number) else {
            return;
        };
        let done = player
            .node
            .as_ref()
            .is_some_and(|it| it.phase() == Phase::Done);
        if let Some(down) = player.stops_for.filter(|_| done) {
            self.end(number, down, true);
        }
    }

    /// The policies as an engine is told them.
    pub(super) fn policies_told(&self) -> Policies {
        self.sabotage
            .and_then(|it| setup::policies(&it.scenario(self.scenario), self.now).ok())
            .unwrap_or_else(|| self.cast.policies.clone())
    }

    /// The accounts as an engine is told them.
    fn accounts_told(&self) -> Vec<AccountSpec> {
        self.sabotage
            .and_then(|it| setup::accounts(&it.scenario(self.scenario)).ok())
            .unwrap_or_else(|| self.cast.accounts())
    }

    /// A node starts from what is on its disk, and is told what is in force.
    pub(super) fn boot(&mut self, number: usize) {
        let policies = self.policies_told();
        let accounts = self.accounts_told();
        let Some(player) = self.players.get_mut(number) else {
            return;
        };
        let resolver = SimResolver::knowing(&self.domains);
        player.boot(self.now, self.settings, policies, resolver);
        self.tell_pauses(number, None);
        if let Some(player) = self.players.get_mut(number)
            && let Some(node) = &mut player.node
        {
            for account in accounts {
                node.post(Event::AccountChanged {
                    account: Box::new(account),
                });
            }
        }
    }

    /// A node dies and is away for so long.
    pub(super) fn crash(&mut self, number: usize, down: Nanos) {
        self.end(number, down, false);
    }

    fn end(&mut self, number: usize, down: Nanos, in_peace: bool) {
        let Some(player) = self.players.get_mut(number) else {
            return;
        };
        if player.node.is_none() {
            return;
        }
        player.stops_for = None;
        for wire in player.crash(in_peace) {
            if let Some(network) = self.networks.get_mut(wire.network) {
                network.disconnect(wire.session);
            }
        }
        let node = number as NodeNo;
        self.open_since.retain(|(owner, _), _| *owner != node);
        self.tell(&Trace::Crashed { node });
        self.written(number);
        self.orders_lost(number);
        // Callers that were not answered try again once the node is back.
        let later = self.now + down + RESUBMIT_AFTER;
        if let Some(player) = self.players.get_mut(number) {
            let lost = std::mem::take(&mut player.batches).into_values().flatten();
            self.retries
                .extend(lost.map(|message| Reverse((later, message))));
        }
        self.script.at(self.now + down, Happening::Restart { node });
    }
}

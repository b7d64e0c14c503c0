//! What the world asks of running engines: what they hold, whether their books
//! agree, and which heads wait for nothing but limits.

use std::collections::BTreeMap;

use outflow_core::message::Recipient;

use super::{CHECKED_MAX, GAUGE_EVERY, PROBED, World};
use crate::trace::{Holdings, NodeNo, Observer, Trace, Violation};

impl<O: Observer> World<'_, O> {
    /// Tells what a node holds, and which of its heads wait for limits alone.
    pub(super) fn gauge(&mut self, number: usize) {
        let at = self.now;
        let Some(player) = self.players.get_mut(number) else {
            return;
        };
        let now = player.clock.read(at, 0);
        let Some(node) = &player.node else {
            return;
        };
        let node_no = number as NodeNo;
        let gauges = node.engine().gauges();
        if gauges.flows <= CHECKED_MAX
            && self.broken.is_empty()
            && let Err(what) = node.engine().check(&now)
        {
            self.broken.push(Violation {
                at: self.now,
                checker: "engine",
                what,
            });
        }
        let held = node
            .engine()
            .heads_at_open_gates(&now, PROBED, self.random.draw() as usize);
        let unserved = node.engine().unserved(PROBED);
        let frozen = at < player.frozen_until + GAUGE_EVERY;
        let opened_at = player.clock.true_time(gauges.opened_at);
        let holds = Holdings {
            heads: gauges.heads,
            flows: gauges.flows as u64,
            tenants: gauges.tenants as u64,
            lanes: gauges.lanes as u64,
            limits: gauges.limits as u64,
            in_flight: gauges.in_flight as u64,
            sessions: gauges.sessions,
            queued: gauges.unconfirmed as u64,
        };
        self.tell(&Trace::Gauge {
            node: node_no,
            holds,
        });
        let unserved = if frozen { Vec::new() } else { unserved };
        for head in unserved {
            let Some(message) = self.message_of(number, head.seq) else {
                continue;
            };
            let carriers = head.carriers.iter();
            let carriers: Vec<_> = carriers
                .map(|(name, may_connect)| (self.cast.account(name), *may_connect))
                .collect();
            self.tell(&Trace::LacksSession {
                node: node_no,
                message,
                carriers: &carriers,
            });
        }
        let mut open = BTreeMap::new();
        // With a ledger in between, more than limits may hold a message.
        // Between probes that are far apart a gate may shut and open again.
        let coarse = at >= self.scenario.duration.0;
        let held = if frozen || coarse || self.shared.is_some() {
            Vec::new()
        } else {
            held
        };
        for (flow, seq, cost) in held {
            let key = (node_no, flow);
            let since = self.open_since.get(&key).copied().unwrap_or(self.now);
            open.insert(key, since);
            let Some(message) = self.message_of(number, seq) else {
                continue;
            };
            let Some(fate) = self.fates.get(message as usize).copied() else {
                continue;
            };
            let recipient = Recipient(fate.recipient);
            let limits =
                self.cast
                    .needs(self.now, fate.flow, u32::MAX, recipient, &mut self.observer);
            let since = since.max(fate.due).max(opened_at);
            self.tell(&Trace::Waits {
                message,
                since,
                cost,
                limits: &limits,
            });
        }
        self.open_since.retain(|(owner, _), _| *owner != node_no);
        self.open_since.append(&mut open);
    }
}

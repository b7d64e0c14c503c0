//! How messages reach the nodes, and callers that try again.

use std::cmp::Reverse;
use std::sync::Arc;

use outflow_core::entropy::Entropy;
use outflow_core::message::Recipient;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::intake::Submission;

use super::operator::Ordered;
use super::{BATCH_MAX, Fate, RESUBMIT_AFTER, World, content};
use crate::trace::{MessageNo, Observer};
use crate::traffic::Arrival;

impl<O: Observer> World<'_, O> {
    /// Hands what arrives now to the nodes, in batches.
    pub(super) fn arrivals(&mut self) {
        let nodes = self.players.len() as u64;
        let mut batches: Vec<Vec<Arrival>> = vec![Vec::new(); self.players.len()];
        let mut again = Vec::new();
        while let Some(&Reverse((at, message))) = self.retries.peek() {
            if at > self.now {
                break;
            }
            self.retries.pop();
            again.extend(self.unacknowledged.get(&message).cloned());
        }
        let mut fresh = Vec::new();
        while self
            .traffic
            .peek()
            .is_some_and(|arrival| arrival.at <= self.now)
        {
            if fresh.len() >= BATCH_MAX * self.players.len() {
                break;
            }
            fresh.extend(self.traffic.next());
        }
        for arrival in fresh {
            if let Some(it) = &arrival.domain {
                let known = (it.destination.clone(), it.after);
                self.domains.entry(it.domain.clone()).or_insert(known);
            }
            self.introduce(&arrival);
            self.unacknowledged.insert(arrival.message, arrival.clone());
            again.push(arrival);
        }
        for arrival in again {
            if let Some(batch) = batches.get_mut(node_of(arrival.message, nodes)) {
                batch.push(arrival);
            }
        }
        for (node, batch) in batches.into_iter().enumerate() {
            for part in batch.chunks(BATCH_MAX) {
                self.submit(node, part);
            }
        }
    }

    pub(super) fn introduce(&mut self, arrival: &Arrival) {
        let resolved = arrival.domain.as_ref().map(|domain| &domain.destination);
        let flow = self
            .cast
            .flow(self.now, &arrival.flow, resolved, &mut self.observer);
        self.fates.push(Fate {
            flow,
            cost: arrival.cost,
            recipient: arrival.recipient,
            due: arrival.due,
            ready: arrival.due,
            expires: arrival.expires,
            attempts: 0,
            accepted: false,
            settled: false,
            ordered: Ordered::Nothing,
        });
        self.unsettled += 1;
    }

    pub(super) fn submit(&mut self, number: usize, batch: &[Arrival]) {
        let wall_at_zero = self.scenario.wall_at_zero();
        let keyed = self.keyed;
        let messages: Vec<MessageNo> = batch.iter().map(|arrival| arrival.message).collect();
        let Some(player) = self.players.get_mut(number) else {
            return;
        };
        let now = player.now(self.now);
        let Some(node) = &mut player.node else {
            let later = self.now + RESUBMIT_AFTER;
            self.retries.extend(
                messages
                    .into_iter()
                    .map(|message| Reverse((later, message))),
            );
            return;
        };
        let wall = |at: Nanos| {
            if at == Nanos::MAX {
                Wall::NEVER
            } else {
                wall_at_zero + at
            }
        };
        let mut bodies = content::Bodies::default();
        let mut submissions = Vec::with_capacity(batch.len());
        for arrival in batch {
            if let Some(domain) = &arrival.domain {
                let resolver = &mut node.ports_mut().resolver;
                resolver.learn(&domain.domain, &domain.destination, domain.after);
            }
            submissions.push(Submission {
                key: (*arrival.flow).clone(),
                idempotency_key: keyed.then(|| Arc::from(arrival.message.to_string())),
                not_before: (arrival.due > arrival.at).then(|| wall(arrival.due)),
                expires_at: wall(arrival.expires),
                recipient: Recipient(arrival.recipient),
                cost: arrival.cost,
                engaged: None,
                envelope: content::envelope(arrival.message),
                body: bodies.of(arrival.message),
            });
        }
        if let Some(sabotage) = self.sabotage {
            let all = submissions.iter_mut();
            all.for_each(|submission| sabotage.submission(&now, submission));
        }
        match node.submit(&now, submissions) {
            Ok(id) => {
                player.batches.insert(id, messages);
                player.turn_at = player.turn_at.min(self.now.max(player.frozen_until));
            }
            Err(_) => {
                let later = self.now + RESUBMIT_AFTER;
                self.retries.extend(
                    messages
                        .into_iter()
                        .map(|message| Reverse((later, message))),
                );
            }
        }
    }
}

/// The node that a message reaches: any, whichever tenant it is of, and the same
/// one each time its caller tries.
pub(super) fn node_of(message: MessageNo, nodes: u64) -> usize {
    (Entropy(message).draw() % nodes.max(1)) as usize
}

//! New messages on their way to the journal: numbers and idempotency keys.

use std::sync::Arc;

use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::time::Now;
use outflow_ports::intake::Given;
use outflow_ports::store::{BatchId, NewMessage};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::clerk::Clerk;
use crate::index::slots::Stamp;
use crate::journal::place::Place;
use crate::journal::task::{Numbered, Task};
use crate::store::EmbeddedStore;

/// A batch with more bytes than this is refused.
const BATCH_BYTES_MAX: usize = 256 << 20;
/// A message with more bytes than this is refused.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

impl EmbeddedStore {
    fn next_seq(&mut self) -> Seq {
        loop {
            self.last_given.0 += 1;
            let low = self.last_given.0 as u32;
            let is_special = low == 0 || low == u32::MAX;
            if !is_special && self.index.slots.find_low(low).is_none() {
                return self.last_given;
            }
        }
    }

    fn hash(&self, key: &str) -> u64 {
        xxh3_64_with_seed(key.as_bytes(), self.key_seed).max(1)
    }

    pub(crate) fn accept(&mut self, now: &Now, batch: BatchId, messages: Vec<NewMessage>) {
        let bytes = |it: &NewMessage| it.body.len() + it.envelope.len();
        let is_known = |id: FlowId| self.index.flow(id).is_some() || self.opening.contains_key(&id);
        let clerk_waits = self.clerk.as_ref().map_or(0, Clerk::waiting);
        let refused = clerk_waits > self.settings.unrecorded_max
            || messages.iter().map(bytes).sum::<usize>() > BATCH_BYTES_MAX
            || messages.iter().any(|it| bytes(it) > MESSAGE_BYTES_MAX)
            || messages.iter().any(|it| !is_known(it.flow));
        if refused {
            let messages = Vec::new();
            return self.order(Task::Accept {
                batch,
                messages,
                refused,
            });
        }
        let accepted_at = Stamp::floor(now.wall).wall();
        let mut numbered = Vec::with_capacity(messages.len());
        for message in messages {
            self.name_again(message.flow);
            self.index.expect_message(message.flow);
            let given = Given {
                seq: self.next_seq(),
                accepted_at,
                known: false,
            };
            numbered.push(self.numbered(given, message));
        }
        self.order(Task::Accept {
            batch,
            messages: numbered,
            refused,
        });
    }

    fn numbered(&mut self, given: Given, message: NewMessage) -> Numbered {
        let key = message.idempotency_key.as_deref();
        let key = key.map_or(0, |key| self.hash(key));
        let known = match key {
            0 => None,
            key => self.find_key(key),
        };
        if known.is_none() && key != 0 {
            self.index.keys.reserve(key, given);
        }
        Numbered {
            given: known.unwrap_or(given),
            key,
            message,
            root: Place::NONE,
            body: Place::NONE,
        }
    }

    fn find_key(&self, key: u64) -> Option<Given> {
        let known = self.index.keys.find(&self.index.slots, key);
        known.or_else(|| {
            // Only a store that remembers more keys than fit in memory asks.
            let (seq, accepted_at) = self.keys_moved.then(|| self.record.find_key(key))??;
            Some(Given {
                seq,
                accepted_at,
                known: true,
            })
        })
    }

    /// A flow whose name went with an old segment is named again.
    pub(crate) fn name_again(&mut self, id: FlowId) {
        let Some(flow) = self.index.flow(id) else {
            return;
        };
        if flow.named == Place::NONE && !self.opening.contains_key(&id) {
            let key = Arc::clone(&flow.key);
            self.open_flow(id, key);
        }
    }

    /// Whether the journal has this name for a flow, and no other is on its way.
    pub(crate) fn is_named(&self, id: FlowId, key: &FlowKey) -> bool {
        let flow = self.index.flow(id);
        let is_it = flow.is_some_and(|flow| *flow.key == *key && flow.named != Place::NONE);
        is_it && !self.opening.contains_key(&id)
    }

    pub(crate) fn open_flow(&mut self, flow: FlowId, key: Arc<FlowKey>) {
        let opening = self.opening.entry(flow);
        let opening = opening.or_insert_with(|| Opening {
            key: Arc::clone(&key),
            on_their_way: 0,
        });
        opening.key = Arc::clone(&key);
        opening.on_their_way += 1;
        let place = Place::NONE;
        self.order(Task::Open { flow, key, place });
    }

    /// A commit failed: names that are on their way are lost with it, whether or
    /// not that has been told of each. They are handed over again at once: what
    /// is accepted from now on must come behind them.
    pub(crate) fn open_lost_again(&mut self) {
        let lost = self.opening.iter();
        let lost: Vec<_> = lost.map(|(id, it)| (*id, Arc::clone(&it.key))).collect();
        for (flow, key) in lost {
            self.open_flow(flow, key);
        }
    }

    /// The writer has answered for a name. It is still on its way if another was
    /// handed over.
    pub(crate) fn name_answered(&mut self, flow: FlowId, is_durable: bool) {
        let Some(opening) = self.opening.get_mut(&flow) else {
            return;
        };
        opening.on_their_way = opening.on_their_way.saturating_sub(1);
        // One that was lost waits for the end of this answer.
        if opening.on_their_way == 0 && (is_durable || self.orders.is_none()) {
            self.opening.remove(&flow);
        }
    }
}

/// A name on its way to the disk.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The last that was handed over.
    key: Arc<FlowKey>,
    /// How many are not answered.
    on_their_way: u32,
}

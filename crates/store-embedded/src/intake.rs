//! New messages on their way to the journal: numbers and idempotency keys.

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
            self.index.keys.reserve(key, given, self.generation);
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
        let known = self
            .index
            .keys
            .find(&self.index.slots, key, self.generation);
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
}

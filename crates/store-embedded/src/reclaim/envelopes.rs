//! The oldest envelope segment: what is alive in it is written again.

use std::collections::VecDeque;
use std::sync::Arc;

use outflow_core::engine::action::{Hold, Record};
use outflow_core::engine::recall::BREAKER_FORGOTTEN;
use outflow_core::entropy::Entropy;
use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::policy::key::LimitKey;
use outflow_core::time::Now;

use super::{Job, SCAN_MAX};
use crate::index::slots::Stand;
use crate::journal::entry::Context;
use crate::journal::place::Place;
use crate::journal::segment::Kind;
use crate::journal::task::{Keep, Task};
use crate::keeper::Chore;
use crate::store::EmbeddedStore;

/// Messages written again in one task.
const KEEP_MAX: usize = 128;
/// Keys, names and limits written again in one turn.
const RESTATE_MAX: usize = 4_096;

impl EmbeddedStore {
    /// A message was written again at the end of the journal.
    pub(crate) fn kept(&mut self, it: &Keep) {
        if it.now != Place::NONE {
            self.index.rewritten(it.seq, it.root, it.now);
        }
    }

    pub(super) fn scan(&mut self, victim: u32, from: Seq, mut found: VecDeque<Seq>) -> Job {
        // Nothing to look for: the usual case when all are settled.
        let any = self
            .index
            .envelopes
            .get(&victim)
            .is_some_and(|live| *live > 0);
        let mut slots = self.index.slots.iter(from);
        if any {
            for (seq, slot) in slots.by_ref().take(SCAN_MAX) {
                if slot.root.segment() <= victim {
                    found.push_back(seq);
                }
            }
            if let Some((from, _)) = slots.next() {
                return Job::Scan {
                    victim,
                    from,
                    found,
                };
            }
        }
        Job::Keep {
            victim,
            left: found,
        }
    }

    pub(super) fn keep(&mut self, victim: u32, mut left: VecDeque<Seq>) -> Job {
        if self.reclaim.unanswered > 0 {
            return Job::Keep { victim, left };
        }
        // Keys first: a copy of a dead letter would remember its own for less.
        let keys = self.index.keys.remembered.take_in(victim, RESTATE_MAX);
        if !keys.is_empty() {
            let moved = self.keys_moved;
            self.order_of_job(Task::Keys { keys, moved });
            return Job::Keep { victim, left };
        }
        if self.restate_names(victim) || self.restate_limits(victim) {
            return Job::Keep { victim, left };
        }
        let mut messages = Vec::new();
        for _ in 0..left.len().min(KEEP_MAX) {
            let Some(seq) = left.pop_front() else {
                break;
            };
            let slot = self.index.slots.get(seq);
            let Some(slot) = slot.filter(|slot| slot.root.segment() <= victim) else {
                continue;
            };
            if self.index.is_about_to_change(slot) {
                left.push_back(seq);
                continue;
            }
            let more = self.index.more(seq, slot).copied();
            let mut tried = more.map(|more| more.tried).unwrap_or_default();
            tried.dead = slot.stand == Stand::Dead;
            messages.push(Keep {
                seq,
                flow: slot.flow(),
                due_at: more.and_then(|more| more.due_at),
                tried,
                root: slot.root,
                latest: more.map_or(Place::NONE, |more| more.latest),
                now: Place::NONE,
            });
        }
        if !messages.is_empty() {
            self.order_of_job(Task::Keep { messages });
        } else if left.is_empty() {
            let through = self.through;
            return Job::Wait { victim, through };
        }
        Job::Keep { victim, left }
    }

    pub(super) fn order_of_job(&mut self, task: Task) {
        self.reclaim.unanswered += 1;
        self.order(task);
    }

    /// Names of flows that stand in old segments: those with messages are
    /// written again, the others when they get some.
    pub(crate) fn restate_names(&mut self, victim: u32) -> bool {
        let mut again = Vec::new();
        let mut under_way = false;
        for (index, flow) in self.index.flows.iter_mut().enumerate() {
            let Some(flow) = flow else {
                continue;
            };
            let id = FlowId(index as u32);
            if flow.named == Place::NONE || flow.named.segment() > victim {
                continue;
            }
            if self.opening.contains_key(&id) {
                under_way = true;
            } else if !flow.is_used() {
                flow.named = Place::NONE;
            } else if again.len() < RESTATE_MAX {
                again.push((id, Arc::clone(&flow.key)));
            }
        }
        let any = !again.is_empty();
        for (id, key) in again {
            self.open_flow(id, key);
        }
        any || under_way
    }

    /// What is known of limits and accounts and stands in old segments. If
    /// something newer is on its way to the disk, it is waited for: written
    /// behind it, what is known now would count.
    pub(crate) fn restate_limits(&mut self, victim: u32) -> bool {
        let now = Now {
            mono: self.clocks.0,
            wall: self.clocks.1,
            entropy: Entropy(0),
        };
        let index = &mut self.index;
        // A breaker whose time is over still has one message ask.
        let over = |hold: &Hold| now.wall.since(hold.until) > BREAKER_FORGOTTEN;
        index.holds.retain(|_, (hold, _)| !over(hold));
        index
            .adapted
            .retain(|_, (lore, place)| place.segment() > victim || !lore.is_forgotten(&now));
        let index = &self.index;
        let mut waits = false;
        let mut is_old = |key: &LimitKey, place: Place| {
            let is_old = place.segment() <= victim;
            let is_free = !index.under_way.contains_key(key);
            waits |= is_old && !is_free;
            is_old && is_free
        };
        let mut old: Vec<Record> = Vec::new();
        for (key, it) in &index.limits {
            if old.len() < RESTATE_MAX && is_old(key, it.place) {
                old.push(Record::Reservation {
                    key: Arc::new(key.clone()),
                    saved: it.limit.saved.clone(),
                    block: u32::try_from(it.limit.reserved_since).unwrap_or(u32::MAX),
                });
            }
        }
        for (key, (hold, place)) in &index.holds {
            if old.len() < RESTATE_MAX && is_old(key, *place) {
                let key = Arc::new(key.clone());
                old.push(Record::Held { key, hold: *hold });
            }
        }
        for (key, (lore, place)) in &index.adapted {
            if old.len() < RESTATE_MAX && is_old(key, *place) {
                let (key, lore) = (Arc::new(key.clone()), Box::new(lore.clone()));
                old.push(Record::Adapted { key, lore });
            }
        }
        let any = waits || !old.is_empty();
        for record in old {
            self.order_of_job(Task::Append {
                no: None,
                record,
                context: Context::default(),
                place: Place::NONE,
            });
        }
        any
    }

    pub(super) fn wait(&mut self, victim: u32, through: u64) -> Job {
        let is_empty = self
            .index
            .envelopes
            .get(&victim)
            .is_none_or(|live| *live == 0);
        if !is_empty {
            return Job::Scan {
                victim,
                from: Seq(0),
                found: VecDeque::new(),
            };
        }
        // A message that was settled meanwhile left its key behind.
        if self.index.keys.remembered.any_in(victim) {
            let left = VecDeque::new();
            return Job::Keep { victim, left };
        }
        if self.record.applied() < through {
            self.record.hasten();
            return Job::Wait { victim, through };
        }
        self.reclaim.envelopes.pop_front();
        self.index.envelopes.remove(&victim);
        self.reclaim.leaving += 1;
        self.reclaim.chore(Chore::GiveUp(Kind::Envelope, victim));
        Job::None
    }
}

//! Which messages wait, seen from outside.
//!
//! A message waits from the time it is accepted and due until it is handed to
//! a transport, and again from its retry time on. What was on its way at a
//! node that died waits again. Reports every change by flow, so that depth,
//! demand and starvation can be followed without looking at all messages.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use outflow_core::class::Class;
use outflow_core::time::Nanos;

use crate::trace::{FlowNo, LimitNo, MessageNo, NodeNo, TenantNo, Trace};

/// Where a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Not accepted yet.
    #[default]
    Unknown,
    /// Not due yet.
    Later,
    /// Waits.
    Waiting,
    /// Handed to a transport, not settled.
    Sending,
    /// Settled.
    Done,
}

/// What is known of a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    /// Since when it waits, or from when on it will.
    pub since: Nanos,
    /// Its flow.
    pub flow: FlowNo,
    /// The node that accepted it, and keeps it.
    pub home: NodeNo,
    /// Which node handed it to a transport last.
    pub node: NodeNo,
    /// How often it was handed to a transport.
    pub dispatches: u16,
    /// Where it is.
    pub place: Place,
}

/// What is known of a flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its class.
    pub class: Class,
    /// Its tenant.
    pub tenant: TenantNo,
    /// Every limit that its messages may need.
    pub limits: Vec<LimitNo>,
}

/// A message of a flow began or ceased to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Nanos,
    /// In which flow.
    pub flow: FlowNo,
    /// At which node.
    pub node: NodeNo,
    /// Whether it began.
    pub began: bool,
}

/// All messages and where they are.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    messages: Vec<Entry>,
    flows: Vec<Option<Flow>>,
    later: BinaryHeap<Reverse<(Nanos, MessageNo)>>,
    sending: BTreeSet<(NodeNo, MessageNo)>,
    changes: Vec<Change>,
}

impl Backlog {
    /// What is known of a message.
    pub fn message(&self, message: MessageNo) -> Entry {
        self.messages
            .get(message as usize)
            .copied()
            .unwrap_or_default()
    }

    /// What is known of a flow.
    pub fn flow(&self, flow: FlowNo) -> Option<&Flow> {
        self.flows.get(flow as usize)?.as_ref()
    }

    /// How many messages were accepted.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Follows what happened. The changes it brought, in order of time.
    pub fn observe(&mut self, at: Nanos, trace: &Trace<'_>) -> &[Change] {
        self.changes.clear();
        self.due(at);
        match *trace {
            Trace::Flow {
                flow,
                class,
                tenant,
                limits,
            } => self.open(flow, class, tenant, limits),
            Trace::Accepted {
                node,
                message,
                flow,
                due,
                ..
            } => {
                let entry = self.entry(message);
                (entry.flow, entry.home) = (flow, node);
                self.wait_from(at, message, due);
            }
            Trace::Moved { message, flow } => self.change_flow(at, message, flow),
            Trace::Dispatched { node, message, .. } => {
                self.move_to(at, message, Place::Sending);
                let entry = self.entry(message);
                entry.dispatches = entry.dispatches.saturating_add(1);
                entry.node = node;
                self.sending.insert((node, message));
            }
            Trace::Deferred { message, until } => {
                self.no_longer_sent(message);
                self.wait_from(at, message, until);
            }
            Trace::Settled { message, .. } => {
                self.no_longer_sent(message);
                self.move_to(at, message, Place::Done);
            }
            Trace::Crashed { node } => {
                let gone: Vec<MessageNo> = self
                    .sending
                    .range((node, 0)..=(node, MessageNo::MAX))
                    .map(|(_, message)| *message)
                    .collect();
                for message in gone {
                    self.sending.remove(&(node, message));
                    self.wait_from(at, message, at);
                }
            }
            _ => {}
        }
        &self.changes
    }

    fn open(&mut self, flow: FlowNo, class: Class, tenant: TenantNo, limits: &[LimitNo]) {
        let index = flow as usize;
        if self.flows.len() <= index {
            self.flows.resize(index + 1, None);
        }
        if let Some(slot) = self.flows.get_mut(index) {
            slot.get_or_insert_with(|| Flow {
                class,
                tenant,
                limits: limits.to_vec(),
            });
        }
    }

    fn entry(&mut self, message: MessageNo) -> &mut Entry {
        let index = message as usize;
        if self.messages.len() <= index {
            self.messages.resize(index + 1, Entry::default());
        }
        self.messages
            .get_mut(index)
            .expect("it was just made to reach so far")
    }

    fn no_longer_sent(&mut self, message: MessageNo) {
        let node = self.entry(message).node;
        self.sending.remove(&(node, message));
    }

    fn wait_from(&mut self, at: Nanos, message: MessageNo, due: Nanos) {
        if self.message(message).place == Place::Done {
            return;
        }
        if due <= at {
            self.move_to(at, message, Place::Waiting);
            self.entry(message).since = at;
        } else {
            self.move_to(at, message, Place::Later);
            self.entry(message).since = due;
            self.later.push(Reverse((due, message)));
        }
    }

    fn change_flow(&mut self, at: Nanos, message: MessageNo, to: FlowNo) {
        let entry = self.entry(message);
        let from = std::mem::replace(&mut entry.flow, to);
        let node = entry.home;
        if entry.place == Place::Waiting {
            for (flow, began) in [(from, false), (to, true)] {
                let change = Change {
                    at,
                    flow,
                    node,
                    began,
                };
                self.changes.push(change);
            }
        }
    }

    fn due(&mut self, at: Nanos) {
        while let Some(Reverse((due, message))) = self.later.peek().copied() {
            if due > at {
                return;
            }
            self.later.pop();
            let entry = self.message(message);
            if entry.place == Place::Later && entry.since == due {
                self.move_to(due, message, Place::Waiting);
            }
        }
    }

    fn move_to(&mut self, at: Nanos, message: MessageNo, place: Place) {
        let entry = self.entry(message);
        let (flow, node, before) = (entry.flow, entry.home, entry.place);
        if before == Place::Done {
            return;
        }
        entry.place = place;
        if (before == Place::Waiting) != (place == Place::Waiting) {
            self.changes.push(Change {
                at,
                flow,
                node,
                began: place == Place::Waiting,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outflow_core::message::State;

    #[test]
    fn a_message_waits_when_due_and_not_under_way() {
        let mut backlog = Backlog::default();
        let mut waiting = 0;
        let mut step = |at: u64, trace: &Trace<'_>| {
            for change in backlog.observe(Nanos(at), trace) {
                waiting += if change.began { 1 } else { -1 };
            }
            waiting
        };
        let accepted = |message, due| Trace::Accepted {
            node: 0,
            message,
            flow: 0,
            cost: 1,
            due: Nanos(due),
            expires: Nanos::MAX,
        };
        let sent = |message| Trace::Dispatched {
            node: 0,
            message,
            attempt: 1,
            account: 0,
            cost: 1,
            limits: &[],
        };
        assert_eq!(step(0, &accepted(0, 0)), 1);
        assert_eq!(step(0, &accepted(1, 50)), 1);
        assert_eq!(step(10, &sent(0)), 0);
        assert_eq!(step(60, &Trace::Restarted { node: 0 }), 1);
        assert_eq!(step(61, &Trace::Crashed { node: 0 }), 2);
        assert_eq!(step(62, &sent(0)), 1);
        let until = Nanos(70);
        assert_eq!(step(63, &Trace::Deferred { message: 0, until }), 1);
        assert_eq!(step(71, &Trace::Restarted { node: 0 }), 2);
        let state = State::Delivered;
        assert_eq!(step(72, &Trace::Settled { message: 0, state }), 1);
        assert_eq!(step(73, &Trace::Crashed { node: 0 }), 1);
    }
}

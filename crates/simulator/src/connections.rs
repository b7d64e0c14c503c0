//! How busy the connections of a run were, from its start to the last message
//! that was sent.

use std::collections::BTreeMap;

use outflow_core::time::Nanos;
use serde::Serialize;

use crate::tally::Fixed;
use crate::trace::{ConnectionChange, NodeNo, Trace};

/// How busy connections were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionFigures {
    /// Connections that were opened.
    pub opened: u64,
    /// The share of the time, and of all connections that there may be, in
    /// which they carried messages, until the last one was sent.
    pub busy: Fixed,
}

/// Adds up how busy connections are.
#[derive(Clone, Debug, Default)]
pub struct ConnectionRecorder {
    /// The most that each account could ever have.
    max: BTreeMap<u32, u32>,
    opened: u64,
    busy_since: BTreeMap<(NodeNo, u64), Nanos>,
    busy: u64,
    last: Nanos,
    nodes: u64,
}

impl ConnectionRecorder {
    /// Something happened.
    pub fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        match *trace {
            Trace::Connects { account, max, .. } => {
                let most = self.max.entry(account).or_insert(0);
                *most = max.max(*most);
            }
            Trace::Connection {
                node,
                connection,
                change,
            } => {
                self.nodes = self.nodes.max(u64::from(node) + 1);
                let key = (node, connection);
                match change {
                    ConnectionChange::Opened { .. } => self.opened += 1,
                    ConnectionChange::Busy => {
                        self.last = at;
                        self.busy_since.insert(key, at);
                    }
                    ConnectionChange::Idle | ConnectionChange::Closed { .. } => {
                        let since = self.busy_since.remove(&key);
                        self.busy += since.map_or(0, |since| at.minus(since).0);
                    }
                }
            }
            Trace::Crashed { node } => self.busy_since.retain(|(owner, _), _| *owner != node),
            _ => {}
        }
    }

    /// The figures, if there were connections.
    pub fn finish(self) -> Option<ConnectionFigures> {
        let max: u64 = self.max.values().map(|max| u64::from(*max)).sum();
        let all = u128::from(max * self.nodes) * u128::from(self.last.0);
        let share = (u128::from(self.busy) * 1_000).checked_div(all)?;
        Some(ConnectionFigures {
            opened: self.opened,
            busy: Fixed(u64::try_from(share).unwrap_or(u64::MAX)),
        })
    }
}

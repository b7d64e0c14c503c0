//! Which limits of concurrency each attempt in flight holds.

use std::collections::BTreeMap;

use crate::trace::{LimitNo, MessageNo, NodeNo};

/// Attempts in flight that hold a limit of concurrency.
#[derive(Clone, Debug, Default)]
pub struct InFlight(BTreeMap<(NodeNo, MessageNo, u16), Vec<(LimitNo, u32)>>);

impl InFlight {
    /// An attempt left, holding `cost` of each of `limits`.
    pub fn sent(
        &mut self,
        node: NodeNo,
        message: MessageNo,
        attempt: u16,
        cost: u32,
        limits: impl Iterator<Item = LimitNo>,
    ) {
        let held: Vec<_> = limits.map(|limit| (limit, cost)).collect();
        if !held.is_empty() {
            self.0.insert((node, message, attempt), held);
        }
    }

    /// An attempt is over. What it held; nothing if it was over before.
    pub fn over(&mut self, node: NodeNo, message: MessageNo, attempt: u16) -> Vec<(LimitNo, u32)> {
        self.0.remove(&(node, message, attempt)).unwrap_or_default()
    }

    /// A node died, and all its connections with it. What they held.
    pub fn crashed(&mut self, node: NodeNo) -> Vec<(LimitNo, u32)> {
        let mut later = self.0.split_off(&(node, 0, 0));
        let mut others = later.split_off(&(node.saturating_add(1), 0, 0));
        self.0.append(&mut others);
        later.into_values().flatten().collect()
    }
}

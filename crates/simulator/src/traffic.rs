//! Traffic: who wants what sent, and when.
//!
//! Sources are data. Each draws from a random stream of its own and yields its
//! arrivals one at a time; [`Traffic`] merges them in order of time, so that a
//! million messages are never in memory at once.

pub mod pattern;
pub mod source;
pub mod spec;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::name::Name;
use outflow_core::time::Nanos;

use source::Source;
use spec::TrafficSpec;

/// One message as it reaches a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Nanos,
    /// Its number, from 0, in order of arrival over all sources.
    pub message: u64,
    /// Which source it comes from.
    pub source: u32,
    /// Its flow. The destination is that of `domain` until it is resolved.
    pub flow: Arc<FlowKey>,
    /// The domain that has to be resolved first, if any.
    pub domain: Option<Resolution>,
    /// What it takes from each limit.
    pub cost: u32,
    /// From when on it may be sent.
    pub due: Nanos,
    /// From when on it is of no use; [`Nanos::MAX`] if always.
    pub expires: Nanos,
    /// Whom it goes to.
    pub recipient: u64,
}

/// What a domain resolves to, and in how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The domain.
    pub domain: Name,
    /// The destination behind it.
    pub destination: Destination,
    /// How long the answer takes.
    pub after: Nanos,
}

/// All sources, merged in order of time.
pub struct Traffic {
    sources: Vec<Source>,
    next: BinaryHeap<Reverse<(Nanos, u32)>>,
    yielded: u64,
}

impl Traffic {
    /// The traffic of `specs`, none of it after `until`.
    pub fn new(specs: &[TrafficSpec], seed: u64, until: Nanos) -> Self {
        let mut sources: Vec<Source> = specs
            .iter()
            .enumerate()
            .map(|(index, spec)| Source::new(spec.clone(), index as u32, seed, until))
            .collect();
        let next = sources
            .iter_mut()
            .enumerate()
            .filter_map(|(index, source)| Some(Reverse((source.peek()?, index as u32))))
            .collect();
        Self {
            sources,
            next,
            yielded: 0,
        }
    }

    /// When the next message arrives.
    pub fn peek(&self) -> Option<Nanos> {
        self.next.peek().map(|Reverse((at, _))| *at)
    }
}

impl Iterator for Traffic {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let Reverse((_, index)) = self.next.pop()?;
        let source = self
            .sources
            .get_mut(index as usize)
            .expect("only known sources are queued");
        let arrival = source.take(self.yielded)?;
        if let Some(at) = source.peek() {
            self.next.push(Reverse((at, index)));
        }
        self.yielded += 1;
        Some(arrival)
    }
}

#[cfg(test)]
mod tests;

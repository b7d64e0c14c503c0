//! Where events go.
//!
//! The node's thread emits most of them, so a sink never waits: what cannot be
//! taken at once is dropped and counted.

use std::fmt;
use std::sync::Arc;

use outflow_core::flow::FlowKey;

use crate::catalogue::Event;

/// Where a destination is counted. Asked for once per flow, so that no name is
/// compared on the way of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

impl Slot {
    /// Where everything beyond the bound is counted.
    pub const OTHER: Self = Self(0);
}

/// Takes events.
pub trait Sink: fmt::Debug + Send + Sync {
    /// Something happened.
    fn emit(&self, event: &Event<'_>);

    /// Where the destination of a flow is counted.
    fn slot(&self, key: &FlowKey) -> Slot {
        let _ = key;
        Slot::OTHER
    }
}

/// Takes everything and tells nobody: for simulations and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Sink for Silent {
    fn emit(&self, _: &Event<'_>) {}
}

/// Hands each event to several sinks. One of them, the first, says where
/// destinations are counted.
#[derive(Clone, Debug, Default)]
pub struct Sinks(pub Vec<Arc<dyn Sink>>);

impl Sink for Sinks {
    fn emit(&self, event: &Event<'_>) {
        for sink in &self.0 {
            sink.emit(event);
        }
    }

    fn slot(&self, key: &FlowKey) -> Slot {
        self.0.first().map_or(Slot::OTHER, |sink| sink.slot(key))
    }
}

//! What must not be sent is settled before the engine can send it.

use outflow_core::engine::command::Command;
use outflow_core::engine::event::Event;
use outflow_core::time::Now;
use outflow_ports::intake::Given;
use outflow_ports::ledger::Ledger;
use outflow_ports::resolver::Resolver;
use outflow_ports::store::{BatchId, Store};
use outflow_ports::transport::Transport;

use super::Node;

impl<S: Store, L: Ledger, T: Transport, R: Resolver> Node<S, L, T, R> {
    /// Has what must not be sent settled before the engine hears that it is
    /// there.
    pub(super) fn screen_batch(&mut self, batch: BatchId, given: Option<&[Given]>) {
        for (seq, error) in self.screening.answered(batch, given) {
            if let Some(found) = self.ports.store.find(seq) {
                let flow = found.flow;
                self.post_first(Event::Command(Command::Suppress { flow, seq, error }));
            }
        }
    }

    /// The same for what was accepted before its recipient was suppressed, or
    /// before a crash.
    pub(super) fn screen(&mut self, event: &Event) {
        if let Event::Paged { flow, heads } = event {
            for (seq, error) in self.screening.paged(&self.engine, *flow, heads) {
                let flow = *flow;
                self.post_first(Event::Command(Command::Suppress { flow, seq, error }));
            }
        }
    }

    /// And for what the engine holds since before its recipient was suppressed.
    /// What it is about to hear must be heard first: a page that was screened
    /// before, or that a message is done with already.
    pub(super) fn review(&mut self, now: &Now) {
        let is_open = |event: &Event| {
            let suppress = matches!(event, Event::Command(Command::Suppress { .. }));
            suppress || matches!(event, Event::Paged { .. })
        };
        if self.inbox.iter().any(is_open) {
            return;
        }
        for (flow, marked) in self.screening.review(now.mono, &self.engine) {
            for (seq, error) in marked {
                self.post_first(Event::Command(Command::Suppress { flow, seq, error }));
            }
        }
    }
}

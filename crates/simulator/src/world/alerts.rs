//! What a node raises its voice about, as far as the simulation must know.

use outflow_core::engine::action::Alert;

use super::World;
use crate::trace::{Answered, NodeNo, Observer, Trace};

impl<O: Observer> World<'_, O> {
    /// Deliveries that a node gave up.
    pub(super) fn alerts(&mut self, number: usize) {
        loop {
            let Some(player) = self.players.get_mut(number) else {
                return;
            };
            let Some(alert) = player.node.as_mut().and_then(|node| node.next_alert()) else {
                return;
            };
            if let Alert::WorkerLost { permit } = alert
                && let Some(attempt) = player.attempts.remove(&permit)
            {
                self.tell(&Trace::Replied {
                    node: number as NodeNo,
                    message: attempt.message,
                    attempt: attempt.attempt,
                    answer: Answered::Uncertain,
                });
            }
        }
    }
}
